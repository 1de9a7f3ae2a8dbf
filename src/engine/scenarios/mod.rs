//! Wishes in, events and endpoints out: what the pure rooms do together, as scenarios.

mod faults;
mod hosts;
mod leases;
mod life;
mod limits;
mod resources;
mod silence;

use std::num::NonZeroU16;

use expect_test::Expect;

use super::Batch;
use crate::api::views;
use crate::command::{Command, Listen, PortRequest, Registering, Rejection};
use crate::events::event::{
    DisconnectCause, ExitStatus, HealthSource, HostReport, Lease, Locality, PortRange, Readiness,
    RemovalCause, Verdict,
};
use crate::events::{
    Actor, HostName, PortName, ReplicaId, ServiceName, SessionId, Timestamp, WorkerId, WorkerKey, WorkerRef,
};
use crate::projection::Snapshot;
use crate::projection::state::State;

/// A state that wishes are made of.
#[derive(Default)]
struct World {
    state: State,
    now_ms: u64,
}

impl World {
    /// Does it, and writes down the events, or the reason why not.
    fn wish(&mut self, command: &Command) -> String {
        let mut batch = Batch::new(self.state.clone(), Timestamp::from_millis(self.now_ms));
        match batch.push(command, &Actor::System, None) {
            Err(Rejection { code, message, .. }) => format!("{code}: {message}"),
            Ok(_) => {
                let (events, state) = batch.finish();
                self.state = state;
                let lines = events.iter().map(|envelope| format!("{} {}", envelope.offset, envelope.event));
                lines.collect::<Vec<_>>().join("\n")
            }
        }
    }

    /// The time of `overdue` is over, and `quiet` have said nothing for a while.
    fn expire(&mut self, overdue: &[WorkerRef], quiet: &[WorkerRef]) -> String {
        let set = |workers: &[WorkerRef]| workers.iter().cloned().collect();
        self.wish(&Command::ExpireSilent { overdue: set(overdue), quiet: set(quiet) })
    }

    /// What proxies are told.
    fn endpoints(&self) -> String {
        let listing = views::endpoints(&Snapshot::of(self.state.clone()), None);
        let lines =
            listing.items.iter().map(|item| format!("{} {} {}", item.cluster, item.address, item.health));
        lines.collect::<Vec<_>>().join("\n")
    }

    fn current(&self, name: &str) -> WorkerRef {
        let key = key(name);
        let generation = self.state.workers().get(&key).expect("the worker lives").generation;
        WorkerRef { key, generation }
    }
}

/// `web/a@h1`.
fn key(name: &str) -> WorkerKey {
    let (service, rest) = name.split_once('/').unwrap();
    let (id, host) = rest.split_once('@').unwrap();
    WorkerKey {
        service: ServiceName::new(service).unwrap(),
        host: HostName::new(host).unwrap(),
        id: WorkerId::new(id).unwrap(),
    }
}

fn session(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

/// `http` is any port, `http=80` that one.
fn registering(name: &str, ports: &[&str]) -> Registering {
    let port = |text: &&str| {
        let (name, number) = text.split_once('=').unwrap_or((text, ""));
        PortRequest {
            name: PortName::new(name).unwrap(),
            listen: Listen::Port { number: number.parse::<NonZeroU16>().ok(), address: None },
        }
    };
    let lease = Lease::Session { disconnect_grace_ms: 0 };
    let ports = ports.iter().map(port).collect();
    Registering { ports, ..Registering::new(key(name), session("s1"), lease) }
}

fn register(name: &str, ports: &[&str]) -> Command {
    Command::Register(registering(name, ports))
}

fn report(host: &str, first: u16, last: u16) -> Command {
    let report = HostReport {
        addresses: vec!["192.0.2.1".parse().unwrap()],
        port_range: PortRange { first, last },
        locality: Locality::default(),
    };
    Command::ReportHost { host: HostName::new(host).unwrap(), report }
}

#[track_caller]
fn check(actual: &str, expected: Expect) {
    expected.assert_eq(actual);
}
