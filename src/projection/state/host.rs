//! One host and the ports it lends.

use std::net::{IpAddr, Ipv4Addr};

use imbl::OrdSet;
use serde::{Deserialize, Serialize};

use crate::events::event::{HostReport, Locality, PortRange};
use crate::events::{HostName, Timestamp, WorkerKey};

/// A port of a host: at most one live worker holds it, whatever its service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PortKey {
    /// Which host.
    pub host: HostName,
    /// Which port.
    pub number: u16,
}

/// Why a port is not handed out for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rest {
    /// Since when.
    pub since: Timestamp,
    /// Why.
    pub cause: RestCause,
}

/// What happened to a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RestCause {
    /// Its owner gave it back.
    Released,
    /// A stranger was found on it.
    Busy,
}

impl RestCause {
    /// Its name, as it is written in lists.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Released => "released",
            Self::Busy => "busy",
        }
    }
}

/// A host that reported, or on which a worker lives.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// What it said that it lends.
    pub report: Option<HostReport>,
    /// Who lives there.
    pub workers: OrdSet<WorkerKey>,
    /// Why it is being emptied, while it is.
    pub draining: Option<String>,
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
