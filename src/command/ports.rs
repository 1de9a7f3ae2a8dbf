//! Which port and address a worker gets. Decided against the state, so that two workers can never collide.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};

use super::{Listen, PortRequest, Registering, Rejection, RejectionCode};
use crate::events::event::{Endpoint, EndpointAddress, PortRange};
use crate::events::{HostName, PortName, SocketPath, Timestamp, WorkerKey};
use crate::projection::state::{Host, PortKey, RestCause, State};

/// How long a port rests after its owner is gone before it is handed out again, in milliseconds: connections
/// to the old owner end in that time, and TCP's own wait on Linux (60 s) is covered by the agent's test bind.
const QUARANTINE_MS: u64 = 30_000;

/// How long a port on which a stranger was found is left alone, in milliseconds: a stranger that stays is found again
/// by the next test bind, one that has gone should not cost the port for long.
const BUSY_MS: u64 = 600_000;

/// The most ports that one worker may ask for, and a service declare: far above any real worker, far below what a
/// message can hold.
pub(super) const PORTS_MAX: usize = 64;

/// The endpoints of a worker, in the order of its requests.
pub(super) fn allocate(
    state: &State,
    wish: &Registering,
    now: Timestamp,
) -> Result<Vec<Endpoint>, Rejection> {
    check_names(wish)?;
    let host = state.hosts().get(&wish.worker.host).cloned().unwrap_or_default();
    if let Some(reason) = &host.draining {
        return Err(Rejection::new(
            RejectionCode::HostDraining,
            format!("host {} is being emptied: {reason}", wish.worker.host),
            "register on another host",
        ));
    }
    let requests = as_declared(state, wish)?;
    let mut search = Search::new(state, &wish.worker, &host, now);
    // Fixed numbers first, so that a free choice does not take one of them.
    for number in requests.iter().filter_map(|request| request.listen.number()) {
        search.claim_fixed(number.get())?;
    }
    requests
        .iter()
        .map(|PortRequest { name, listen }| {
            let address = match listen {
                Listen::Port { number, address } => {
                    let ip = address.unwrap_or_else(|| host.address());
                    let fixed = number.map(|number| Ok(number.get()));
                    let number = fixed.unwrap_or_else(|| search.claim_any(name, ip))?;
                    EndpointAddress::Ip(SocketAddr::new(ip, number))
                }
                Listen::Path(path) => {
                    search.claim_path(path)?;
                    EndpointAddress::Unix(path.clone())
                }
            };
            claim_address(state, &wish.worker, name, address)
        })
        .collect()
}

fn check_names(wish: &Registering) -> Result<(), Rejection> {
    if wish.ports.len() > PORTS_MAX {
        return Err(Rejection::invalid(
            format!("{} ports are asked for, at most {PORTS_MAX} are allowed", wish.ports.len()),
            "ask for fewer, or register more than one worker",
        ));
    }
    let mut seen = BTreeSet::new();
    match wish.ports.iter().find(|request| !seen.insert(&request.name)) {
        None => Ok(()),
        Some(twice) => Err(Rejection::invalid(
            format!("the port {} is asked for twice", twice.name),
            "give each port of a worker its own name",
        )),
    }
}

/// The requests with the numbers that the service is declared to have. A service that declares no port leaves them to
/// its workers.
fn as_declared(state: &State, wish: &Registering) -> Result<Vec<PortRequest>, Rejection> {
    let service = state.services().get(&wish.worker.service);
    let declared = service.map_or(&[][..], |service| service.declared_ports());
    let resolve = |request: &PortRequest| {
        if declared.is_empty() {
            return Ok(request.clone());
        }
        let not_declared = |what: String| {
            let names: Vec<&str> = declared.iter().map(|port| port.name.as_str()).collect();
            let hint = format!("{} is declared with {}", wish.worker.service, names.join(", "));
            Rejection::new(RejectionCode::NotDeclared, what, hint)
        };
        let Some(port) = declared.iter().find(|port| port.name == request.name) else {
            return Err(not_declared(format!("{} has no port {}", wish.worker.service, request.name)));
        };
        let is_fixed = |fixed, asked: &dyn Display| {
            let service = &wish.worker.service;
            not_declared(format!("port {} of {service} is {fixed}, not {asked}", request.name))
        };
        let listen = match (port.number, &request.listen) {
            (Some(fixed), Listen::Port { number: Some(asked), .. }) if fixed != *asked => {
                return Err(is_fixed(fixed, asked));
            }
            (Some(fixed), Listen::Path(path)) => return Err(is_fixed(fixed, path)),
            (fixed, Listen::Port { number, address }) => {
                Listen::Port { number: fixed.or(*number), address: *address }
            }
            (None, Listen::Path(path)) => Listen::Path(path.clone()),
        };
        Ok(PortRequest { name: request.name.clone(), listen })
    };
    wish.ports.iter().map(resolve).collect()
}

fn claim_address(
    state: &State,
    key: &WorkerKey,
    name: &PortName,
    address: EndpointAddress,
) -> Result<Endpoint, Rejection> {
    match state.addresses().get(&address) {
        Some(holder) if holder != key => Err(Rejection::new(
            RejectionCode::AddressTaken,
            format!("{address} belongs to {holder}"),
            "give another port or address, or remove that worker first",
        )),
        Some(_) | None => Ok(Endpoint { port: name.clone(), address }),
    }
}

/// One worker's search for ports on its host.
struct Search<'a> {
    state: &'a State,
    key: &'a WorkerKey,
    range: PortRange,
    next: u16,
    now: Timestamp,
    claimed: BTreeSet<u16>,
    claimed_paths: BTreeSet<SocketPath>,
}

impl<'a> Search<'a> {
    fn new(state: &'a State, key: &'a WorkerKey, host: &Host, now: Timestamp) -> Self {
        let (claimed, claimed_paths) = (BTreeSet::new(), BTreeSet::new());
        Self { state, key, range: host.port_range(), next: host.next_port, now, claimed, claimed_paths }
    }

    fn claim_fixed(&mut self, number: u16) -> Result<(), Rejection> {
        if let Some(holder) = self.holder(number).filter(|holder| *holder != self.key) {
            return Err(Rejection::new(
                RejectionCode::PortTaken,
                format!("port {number} of host {} belongs to {holder}", self.key.host),
                "give another number, or none to let the control plane choose",
            ));
        }
        if !self.claimed.insert(number) {
            return Err(Rejection::invalid(
                format!("port {number} is asked for twice"),
                "give each port of a worker its own number",
            ));
        }
        Ok(())
    }

    fn claim_path(&mut self, path: &SocketPath) -> Result<(), Rejection> {
        if !self.claimed_paths.insert(path.clone()) {
            return Err(Rejection::invalid(
                format!("the socket {path} is asked for twice"),
                "give each port of a worker its own path",
            ));
        }
        Ok(())
    }

    /// The number that this worker holds under this name already, or the free one that has rested longest.
    fn claim_any(&mut self, name: &PortName, ip: IpAddr) -> Result<u16, Rejection> {
        let number = self
            .held(name)
            .filter(|number| !self.claimed.contains(number) && !self.rests(*number))
            .or_else(|| self.candidates().find(|number| self.is_free(*number, ip)))
            .ok_or_else(|| self.exhausted())?;
        self.claimed.insert(number);
        self.next = number.saturating_add(1);
        Ok(number)
    }

    /// Every port of the range once, from the one after the last that was handed out.
    fn candidates(&self) -> impl Iterator<Item = u16> + use<> {
        let PortRange { first, last } = self.range;
        let start = if (first..=last).contains(&self.next) { self.next } else { first };
        (start..=last).chain(first..start)
    }

    fn held(&self, name: &PortName) -> Option<u16> {
        let worker = self.state.workers().get(self.key)?;
        let endpoint = worker.registration.endpoints.iter().find(|endpoint| endpoint.port == *name)?;
        endpoint.address.port()
    }

    /// Two hosts may have one address, such as two that never reported: a number is free where neither uses it there.
    fn is_free(&self, number: u16, ip: IpAddr) -> bool {
        let address = EndpointAddress::Ip(SocketAddr::new(ip, number));
        self.holder(number).is_none()
            && !self.claimed.contains(&number)
            && !self.rests(number)
            && !self.state.addresses().contains_key(&address)
    }

    fn holder(&self, number: u16) -> Option<&'a WorkerKey> {
        self.state.ports().get(&port_key(&self.key.host, number))
    }

    /// Whether something happened to the port a moment ago. A time in the future means that the clock was set back:
    /// the port does not rest then, since nobody could say for how long.
    fn rests(&self, number: u16) -> bool {
        let rest = self.state.resting().get(&port_key(&self.key.host, number));
        rest.is_some_and(|rest| {
            let rested = self.now.as_millis().checked_sub(rest.since.as_millis());
            rested.is_some_and(|rested| rested < rest_ms(rest.cause))
        })
    }

    fn exhausted(&self) -> Rejection {
        let range = self.range.first..=self.range.last;
        let used = range.clone().filter(|number| self.holder(*number).is_some()).count();
        let resting = range.clone().filter(|number| self.rests(*number)).count();
        Rejection::new(
            RejectionCode::PortsExhausted,
            format!(
                "host {} has no free port in {}: {used} in use, {resting} resting after their owner left or a stranger was found",
                self.key.host, self.range
            ),
            "report a larger port range for the host, or wait",
        )
    }
}

const fn rest_ms(cause: RestCause) -> u64 {
    match cause {
        RestCause::Released => QUARANTINE_MS,
        RestCause::Busy => BUSY_MS,
    }
}

fn port_key(host: &HostName, number: u16) -> PortKey {
    PortKey { host: host.clone(), number }
}
