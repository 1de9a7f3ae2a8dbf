//! Whose each place is.

use std::collections::BTreeSet;

use crate::projection::state::State;

/// No port of a host and no address has two owners, and the state knows every owner and nobody else.
///
/// # Panics
///
/// When it is not so.
#[track_caller]
pub fn check_owners(state: &State) {
    let (mut ports, mut addresses) = (BTreeSet::new(), BTreeSet::new());
    for (key, worker) in state.workers() {
        for endpoint in &worker.registration.endpoints {
            let address = &endpoint.address;
            assert!(addresses.insert(address), "{address} has two owners");
            assert_eq!(state.addresses().get(address), Some(key), "whose is {address}?");
            if let Some(port) = address.port() {
                assert!(ports.insert((&key.host, port)), "port {port} of {} has two owners", key.host);
            }
        }
    }
    assert_eq!(state.ports().len(), ports.len(), "a port belongs to nobody who lives");
    assert_eq!(state.addresses().len(), addresses.len(), "an address belongs to nobody who lives");
}
