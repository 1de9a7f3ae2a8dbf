//! The few names of the small world.

use proptest::prelude::*;
use proptest::sample::select;

use crate::events::{HostName, PortName, ServiceName, SessionId, SocketPath, ViewName, WorkerId, WorkerKey};

fn known<T>(name: Result<T, crate::events::InvalidName>) -> T {
    name.expect("the names of the small world are valid")
}

const SERVICES: [&str; 2] = ["pay", "web"];
const HOSTS: [&str; 3] = ["h1", "h2", "h3"];
const IDS: [&str; 2] = ["1", "2"];

/// One of two services.
pub fn service() -> impl Strategy<Value = ServiceName> {
    select(&SERVICES[..]).prop_map(|text| known(ServiceName::new(text)))
}

/// One of three hosts.
pub fn host() -> impl Strategy<Value = HostName> {
    select(&HOSTS[..]).prop_map(|text| known(HostName::new(text)))
}

/// One of three port names.
pub fn port() -> impl Strategy<Value = PortName> {
    select(&["http", "admin", "grpc"][..]).prop_map(|text| known(PortName::new(text)))
}

/// One of three places for a Unix domain socket, on whatever host.
pub fn socket_path() -> impl Strategy<Value = SocketPath> {
    select(&["/run/a.sock", "/run/b.sock", "/run/c.sock"][..])
        .prop_map(|text| SocketPath::new(text).expect("a valid path"))
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
    let id = select(&IDS[..]).prop_map(|text| known(WorkerId::new(text)));
    (service(), host(), id).prop_map(|(service, host, id)| WorkerKey { service, host, id })
}

/// All twelve.
pub(super) fn every_worker() -> Vec<WorkerKey> {
    let key = |service, host, id| WorkerKey {
        service: known(ServiceName::new(service)),
        host: known(HostName::new(host)),
        id: known(WorkerId::new(id)),
    };
    let ids = |service, host| IDS.into_iter().map(move |id| key(service, host, id));
    let hosts = |service| HOSTS.into_iter().flat_map(move |host| ids(service, host));
    SERVICES.into_iter().flat_map(hosts).collect()
}
