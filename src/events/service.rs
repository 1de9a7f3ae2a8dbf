//! What a service is declared to be. Its JSON is the body of REST and of files; its fields and variants are
//! in the bytes of the log: they are never moved.

use std::fmt;
use std::num::{NonZeroU16, NonZeroU32};

use serde::{Deserialize, Serialize};

use super::PortName;

/// A declaration. What is left out is as for a service that nobody declared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServiceSpec {
    /// Its ports, the first of which is published under the service's own name. Without any, workers name their own.
    pub ports: Vec<PortSpec>,
    /// How clients are to use its clusters.
    pub cluster: ClusterPolicy,
    /// How long its workers drain when nobody says otherwise, in milliseconds.
    pub drain_ms: Option<u32>,
}

impl ServiceSpec {
    /// The declared port of this name.
    #[must_use]
    pub fn port(&self, name: &PortName) -> Option<&PortSpec> {
        self.ports.iter().find(|port| port.name == *name)
    }
}

/// One port of a service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortSpec {
    /// What workers call it.
    pub name: PortName,
    /// Its number, the same for every worker; absent is any that is free.
    #[serde(default)]
    pub number: Option<NonZeroU16>,
    /// What is spoken there.
    #[serde(default)]
    pub protocol: Protocol,
}

/// What is spoken on a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Protocol {
    /// HTTP/1.1; proxyless gRPC is led there too.
    #[default]
    #[serde(rename = "http1")]
    Http1,
    /// HTTP/2 without negotiation, as gRPC servers speak it.
    #[serde(rename = "http2")]
    Http2,
    /// Bytes. Proxyless gRPC is not led there.
    #[serde(rename = "tcp")]
    Tcp,
}

/// How clients are to use the clusters of a service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClusterPolicy {
    /// How an endpoint is chosen.
    pub lb: LbPolicy,
    /// How long a connection may take, in milliseconds; absent is the client's own default (Envoy's is 5 s).
    pub connect_timeout_ms: Option<NonZeroU32>,
    /// Below this percentage of healthy endpoints clients send to all of them; 0 turns that off. Absent is the client's own
    /// default (Envoy's is 50).
    pub panic_threshold: Option<u8>,
    /// Whether the weights of localities count.
    pub locality_weighting: LocalityWeighting,
    /// As what a degraded endpoint is published.
    pub degraded: DegradedAs,
    /// As what an endpoint is published that says it cannot serve now.
    pub unready: UnreadyAs,
    /// How clients get the endpoints.
    pub delivery: Delivery,
}

/// How an endpoint is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LbPolicy {
    /// In turn.
    #[default]
    RoundRobin,
    /// The less busy of two.
    LeastRequest,
    /// By chance. gRPC refuses clusters that ask for it.
    Random,
    /// By a hash of the request, for requests that should meet the same endpoint again.
    RingHash,
}

/// Whether the weights of localities count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LocalityWeighting {
    /// Envoy treats all endpoints of a priority alike; gRPC weighs localities always.
    #[default]
    Off,
    /// Each locality gets its share.
    On,
}

/// As what a degraded endpoint is published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DegradedAs {
    /// As any other: gRPC sends nothing to a degraded endpoint (xds-rules 27).
    #[default]
    Healthy,
    /// Envoy uses it when there are not enough healthy ones.
    Degraded,
}

/// As what an endpoint is published that says it cannot serve now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnreadyAs {
    /// There, and unhealthy.
    #[default]
    Unhealthy,
    /// Not at all.
    Absent,
}

/// How clients get the endpoints of a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// All in one load assignment.
    #[default]
    Eds,
    /// One by one (LEDS), for delta Envoys and clusters of many endpoints; all others get the load assignment. Not where
    /// localities are weighted.
    Leds,
}

impl fmt::Display for ServiceSpec {
    /// `http=8080 grpc`: its ports, as a line about it shows them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, port) in self.ports.iter().enumerate() {
            let space = if index == 0 { "" } else { " " };
            write!(f, "{space}{}", port.name)?;
            if let Some(number) = port.number {
                write!(f, "={number}")?;
            }
        }
        Ok(())
    }
}
