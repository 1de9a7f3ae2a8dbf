//! What is to be run, and as what.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::IpAddr;
use std::time::Duration;

use crate::proto;

use super::Thresholds;
use super::assignment::variable;

/// What is to be run, and as what.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The service that the worker belongs to.
    pub service: String,
    /// What the worker calls itself.
    pub id: String,
    /// The host whose ports it takes.
    pub host: String,
    /// What that host lends, where this agent is to say so; it is told at the start of each session.
    pub lends: Option<Lends>,
    /// Its ports; the first is the service's own cluster.
    pub ports: Vec<PlannedPort>,
    /// Where it listens, if not on the host's first address.
    pub address: Option<IpAddr>,
    /// Its share of the load; 1 where none is given.
    pub weight: Option<u32>,
    /// Labels.
    pub metadata: BTreeMap<String, String>,
    /// The control plane's API, such as `http://127.0.0.1:18080`.
    pub server: String,
    /// How to see that the child can serve.
    pub ready: ReadyBy,
    /// How long the child may take until it can serve; then it is stopped.
    pub ready_within: Duration,
    /// How often the child has to say that it is alive, if at all; one that does not is aborted.
    pub watchdog: Option<Duration>,
    /// From where on it counts as not well.
    pub thresholds: Thresholds,
    /// How long requests in flight have before the child is asked to stop.
    pub drain: Duration,
    /// How long the child may take to stop; then it is killed.
    pub stop_within: Duration,
    /// Whether a child that ended is started again.
    pub restart: Restart,
    /// How long the worker keeps its place, UNHEALTHY, when the session is lost.
    pub disconnect_grace: Duration,
    /// How long to wait for a control plane at the start; for ever if absent.
    pub wait: Option<Duration>,
    /// The program and its arguments.
    pub command: Vec<OsString>,
}

/// What a host lends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lends {
    /// Where its workers are reached; the first is used for ports that name none.
    pub addresses: Vec<IpAddr>,
    /// The first and the last port that it hands out; absent is the control plane's default.
    pub ports: Option<(u16, u16)>,
    /// Where it stands: region, zone and what is finer than a zone; empty where unknown.
    pub locality: [String; 3],
}

/// A port that the child needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedPort {
    /// What it is called.
    pub name: String,
    /// Where the child is to listen.
    pub place: PlannedPlace,
}

/// Where a child is to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlannedPlace {
    /// On any port that is free.
    AnyPort,
    /// On this port.
    Port(u16),
    /// On the Unix domain socket at this absolute path.
    Path(String),
}

impl PlannedPort {
    /// The environment variable in which the child finds it: `PORT_HTTP` for `http`, `PORT_ADMIN_UI` for `admin-ui`.
    #[must_use]
    pub fn variable(&self) -> String {
        variable(&self.name)
    }
}

/// How to see that the child can serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadyBy {
    /// It can once it runs.
    Now,
    /// It can once it listens on all its ports.
    Listening,
    /// It can once it says so with `sd_notify`.
    Telling,
    /// It can once a GET of this path on its first port is answered with success; asked until then only.
    Answering(String),
}

/// Whether a child that ended is started again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Restart {
    /// No: the agent ends with it.
    #[default]
    Never,
    /// Unless it ended with code 0.
    OnFailure,
    /// Yes.
    Always,
}

impl Plan {
    /// The registration that this plan asks for. It is not published before the child can serve, because it
    /// is asked for before there is a child.
    pub(super) fn register(&self, process: Option<proto::Process>) -> proto::Register {
        let address = self.address.map(|ip| ip.to_string()).unwrap_or_default();
        let port = |port: &PlannedPort| {
            let (address, name) = (address.clone(), port.name.clone());
            let any = proto::Port { name, address, ..proto::Port::default() };
            match &port.place {
                PlannedPlace::AnyPort => any,
                PlannedPlace::Port(number) => proto::Port { number: Some((*number).into()), ..any },
                PlannedPlace::Path(path) => proto::Port { path: path.clone(), address: String::new(), ..any },
            }
        };
        proto::Register {
            service: self.service.clone(),
            host: self.host.clone(),
            id: self.id.clone(),
            ports: self.ports.iter().map(port).collect(),
            readiness: proto::Readiness::Reported.into(),
            weight: self.weight,
            metadata: self.metadata.clone().into_iter().collect(),
            process,
            disconnect_grace_ms: u32::try_from(self.disconnect_grace.as_millis()).unwrap_or(u32::MAX),
            ..Default::default()
        }
    }

    /// What the control plane is told of the host, if anything.
    pub(super) fn host_report(&self) -> Option<proto::ReportHost> {
        let Lends { addresses, ports, locality: [region, zone, sub_zone] } = self.lends.clone()?;
        // 0 and 0 are the default.
        let (first, last) = ports.unwrap_or_default();
        Some(proto::ReportHost {
            host: self.host.clone(),
            addresses: addresses.iter().map(ToString::to_string).collect(),
            port_first: first.into(),
            port_last: last.into(),
            locality: Some(proto::Locality { region, zone, sub_zone }),
        })
    }

    /// Whether this port was asked for by its number, so that no other will do.
    pub(super) fn insists_on(&self, number: u16) -> bool {
        self.ports.iter().any(|port| port.place == PlannedPlace::Port(number))
    }
}

#[cfg(test)]
impl Plan {
    /// A plan for tests: one port, ready when it listens.
    pub(super) fn of(command: &[&str]) -> Self {
        Self {
            service: "pay".to_owned(),
            id: "a".to_owned(),
            host: "h".to_owned(),
            lends: None,
            ports: vec![PlannedPort { name: "http".to_owned(), place: PlannedPlace::AnyPort }],
            address: None,
            weight: None,
            metadata: BTreeMap::new(),
            server: "http://127.0.0.1:1".to_owned(),
            ready: ReadyBy::Listening,
            ready_within: Duration::from_secs(300),
            watchdog: None,
            thresholds: Thresholds::default(),
            drain: Duration::from_secs(5),
            stop_within: Duration::from_secs(10),
            restart: Restart::Never,
            disconnect_grace: Duration::ZERO,
            wait: None,
            command: command.iter().map(OsString::from).collect(),
        }
    }
}
