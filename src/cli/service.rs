//! `foldplane service`: declaring and retiring a service.

use std::num::{NonZeroU16, NonZeroU32};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::{Args, Subcommand};
use serde::de::DeserializeOwned;

use super::fetch::Server;
use super::{Failure, block_on, out};
use crate::api::obey::OffsetBody;
use crate::api::services::ServiceAt;
use crate::events::event::{
    ClusterPolicy, DegradedAs, Delivery, LbPolicy, LocalityWeighting, PortSpec, Protocol, ServiceSpec,
    UnreadyAs,
};
use crate::events::{PortName, ServiceName};

/// Declare, show or retire a service.
///
/// A service need not be declared: its first worker makes it known. A declaration fixes its ports, says how clients are to
/// use its clusters, and keeps them published while no worker lives.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  foldplane service declare web --port http                 any free number, HTTP/1.1
  foldplane service declare pay --port grpc=9000/http2 --port admin --lb least-request --panic-threshold 0
  foldplane service declare pay -f pay.json                 the JSON that `service show` prints as spec
  foldplane service show pay | jq .spec
  foldplane service retire pay                              its workers are removed at once
  foldplane get services

A declaration replaces the one before it, all of it. Prints the offset from which it is so.")]
pub(super) struct ServiceCommand {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    server: Server,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Say what a service is
    Declare(Box<Declare>),
    /// Print a service as JSON, with its declaration
    Show {
        /// The service's name
        service: ServiceName,
    },
    /// Forget the service, and remove at once all its workers
    Retire {
        /// The service's name
        service: ServiceName,
    },
}

/// What a file says instead.
const FLAGS: [&str; 9] = [
    "port",
    "lb",
    "connect_timeout_ms",
    "panic_threshold",
    "locality_weighting",
    "degraded",
    "unready",
    "delivery",
    "drain_ms",
];

#[derive(Debug, Args)]
struct Declare {
    /// The service's name
    service: ServiceName,
    /// Read the declaration from this JSON file, `-` for the standard input
    #[arg(short, long, value_name = "FILE", conflicts_with_all = FLAGS)]
    file: Option<PathBuf>,
    /// A port: its number is any without `=`, its protocol http1, http2 or tcp; the first is published under the service's name
    #[arg(long, value_name = "NAME[=NUMBER][/PROTOCOL]", value_parser = port)]
    port: Vec<PortSpec>,
    /// How an endpoint is chosen: `round_robin`, `least_request`, `random` or `ring_hash` [default: `round_robin`]
    #[arg(long, value_parser = word::<LbPolicy>)]
    lb: Option<LbPolicy>,
    /// How long a connection may take [default: the client's own]
    #[arg(long, value_name = "MILLISECONDS")]
    connect_timeout_ms: Option<NonZeroU32>,
    /// Below this percentage of healthy endpoints clients send to all; 0 turns that off [default: the client's own]
    #[arg(long, value_name = "PERCENT")]
    panic_threshold: Option<u8>,
    /// Whether Envoy heeds the weights of localities: `on` or `off` [default: `off`]
    #[arg(long, value_name = "ON-OFF", value_parser = word::<LocalityWeighting>)]
    locality_weighting: Option<LocalityWeighting>,
    /// As what a degraded endpoint is published: `healthy` or `degraded` [default: `healthy`]
    #[arg(long, value_name = "STATUS", value_parser = word::<DegradedAs>)]
    degraded: Option<DegradedAs>,
    /// As what an unready endpoint is published: `unhealthy` or `absent` [default: `unhealthy`]
    #[arg(long, value_name = "STATUS", value_parser = word::<UnreadyAs>)]
    unready: Option<UnreadyAs>,
    /// How delta Envoys get the endpoints: `eds`, all at once, or `leds`, one by one [default: `eds`]
    #[arg(long, value_parser = word::<Delivery>)]
    delivery: Option<Delivery>,
    /// How long its workers drain when nobody says otherwise [default: 5000]
    #[arg(long, value_name = "MILLISECONDS")]
    drain_ms: Option<u32>,
}

impl ServiceCommand {
    pub(super) fn run(self) -> Result<(), Failure> {
        let server = self.server;
        let path = |service: &ServiceName| format!("/v1/services/{service}");
        let done: OffsetBody = match self.what {
            What::Declare(declare) => {
                let (path, spec) = (path(&declare.service), declare.spec()?);
                block_on(server.put(&path, &spec))?
            }
            What::Retire { service } => block_on(server.delete(&path(&service)))?,
            What::Show { service } => {
                let shown: ServiceAt = block_on(server.get(&path(&service), &[]))?;
                return out::data(&out::json(&shown)?);
            }
        };
        out::data(&format!("@{}\n", done.offset))
    }
}

impl Declare {
    fn spec(self) -> Result<ServiceSpec, Failure> {
        if let Some(file) = &self.file {
            return from_file(file);
        }
        Ok(ServiceSpec {
            ports: self.port,
            cluster: ClusterPolicy {
                lb: self.lb.unwrap_or_default(),
                connect_timeout_ms: self.connect_timeout_ms,
                panic_threshold: self.panic_threshold,
                locality_weighting: self.locality_weighting.unwrap_or_default(),
                degraded: self.degraded.unwrap_or_default(),
                unready: self.unready.unwrap_or_default(),
                delivery: self.delivery.unwrap_or_default(),
            },
            drain_ms: self.drain_ms,
        })
    }
}

/// The JSON document in a file, or on the standard input.
pub(super) fn from_file<T: DeserializeOwned>(path: &Path) -> Result<T, Failure> {
    let name = path.display();
    let text = if path == Path::new("-") {
        std::io::read_to_string(std::io::stdin())
    } else {
        std::fs::read_to_string(path)
    };
    let text = text.map_err(|fault| Failure::usage(format!("cannot read {name}")).because(fault))?;
    serde_json::from_str(&text)
        .map_err(|fault| Failure::usage(format!("{name} is not what is expected")).because(fault))
}

/// One of the words that JSON has for it; people may write dashes.
fn word<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let word = serde_json::Value::String(text.replace('-', "_"));
    serde_json::from_value(word).map_err(|fault| fault.to_string())
}

fn port(text: &str) -> Result<PortSpec, String> {
    let (place, protocol) = match text.split_once('/') {
        Some((place, protocol)) => (place, word(protocol)?),
        None => (text, Protocol::default()),
    };
    let (name, number) = match place.split_once('=') {
        Some((name, number)) => {
            (name, Some(NonZeroU16::from_str(number).map_err(|fault| fault.to_string())?))
        }
        None => (place, None),
    };
    let name = PortName::new(name).map_err(|fault| fault.to_string())?;
    Ok(PortSpec { name, number, protocol })
}
