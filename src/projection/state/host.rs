//! One host and the ports it lends.

use std::net::{IpAddr, Ipv4Addr};

use imbl::OrdSet;
use serde::{Deserialize, Serialize};

use crate::events::event::{HostReport, Locality, PortRange};
use crate::events::{HostName, WorkerKey};

/// A port of a host: at most one live worker holds it, whatever its service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PortKey {
    /// Which host.
    pub host: HostName,
    /// Which port.
    pub number: u16,
}

/// A host that reported, or on which a worker lives.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// What it said that it lends.
    pub report: Option<HostReport>,
    /// Who lives there.
    pub workers: OrdSet<WorkerKey>,
    /// Where the search for a free port starts: after the one handed out last, so that a port rests longest.
    pub next_port: u16,
}

impl Host {
    /// The address of endpoints that name none.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        let first = self.report.as_ref().and_then(|report| report.addresses.first());
        first.copied().unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
    }

    /// The ports it hands out.
    #[must_use]
    pub fn port_range(&self) -> PortRange {
        self.report.as_ref().map_or_else(PortRange::default, |report| report.port_range)
    }

    /// Where it stands.
    #[must_use]
    pub fn locality(&self) -> Locality {
        self.report.as_ref().map_or_else(Locality::default, |report| report.locality.clone())
    }
}
