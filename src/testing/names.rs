//! The few names of the small world.

use proptest::prelude::*;
use proptest::sample::select;

use crate::events::{HostName, PortName, ServiceName, SessionId, ViewName, WorkerId, WorkerKey};

fn known<T>(name: Result<T, crate::events::InvalidName>) -> T {
    name.expect("the names of the small world are valid")
}

/// One of two services.
pub fn service() -> impl Strategy<Value = ServiceName> {
    select(&["pay", "web"][..]).prop_map(|text| known(ServiceName::new(text)))
}

/// One of three hosts.
pub fn host() -> impl Strategy<Value = HostName> {
    select(&["h1", "h2", "h3"][..]).prop_map(|text| known(HostName::new(text)))
}

/// One of three port names.
pub fn port() -> impl Strategy<Value = PortName> {
    select(&["http", "admin", "grpc"][..]).prop_map(|text| known(PortName::new(text)))
}

/// One of four connections.
pub fn session() -> impl Strategy<Value = SessionId> {
    select(&["s1", "s2", "s3", "s4"][..]).prop_map(|text| known(SessionId::new(text)))
}

/// One of three views.
pub fn view_name() -> impl Strategy<Value = ViewName> {
    select(&["edge", "inner", "rest"][..]).prop_map(|text| known(ViewName::new(text)))
}

/// One of twelve workers: two ids on each host, for each service.
pub fn worker() -> impl Strategy<Value = WorkerKey> {
    let id = select(&["1", "2"][..]).prop_map(|text| known(WorkerId::new(text)));
    (service(), host(), id).prop_map(|(service, host, id)| WorkerKey { service, host, id })
}
