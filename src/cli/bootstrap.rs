//! `foldplane bootstrap`: the configuration with which a proxy starts.

use std::net::SocketAddr;
use std::str::FromStr;

use clap::{Args, Subcommand, ValueEnum};

use super::{Failure, out};
use crate::bootstrap::{EnvoyBootstrap, Label, ServerAddress, ServiceRoute, XdsVariant};
use crate::config::XDS_ADDRESS_DEFAULT;

/// Where Envoy's admin pages are unless told otherwise: the port of Envoy's own examples.
const ADMIN_ADDRESS_DEFAULT: &str = "127.0.0.1:9901";

/// Where Envoy takes requests unless told otherwise: the port of Envoy's own examples.
const LISTENER_ADDRESS_DEFAULT: &str = "127.0.0.1:10000";

/// Print the configuration with which a proxy starts.
#[derive(Debug, Args)]
pub(super) struct Bootstrap {
    #[command(subcommand)]
    proxy: Proxy,
}

#[derive(Debug, Subcommand)]
enum Proxy {
    /// For Envoy, as YAML
    Envoy(Envoy),
}

/// For Envoy, as YAML.
///
/// The result has a listener that passes each request to the service that its host names, so that it is of use at once.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  foldplane bootstrap envoy > envoy.yaml && envoy -c envoy.yaml
  curl http://web.localhost:10000/                        a request to the service `web`
  curl -H 'Host: web' http://127.0.0.1:10000/             the same
  curl -H 'x-foldplane-service: web:admin' http://127.0.0.1:10000/      to its second port
  foldplane bootstrap envoy --route /pay=pay --route /=web              by path instead
  foldplane bootstrap envoy --listener none               endpoints only: bring your own listeners")]
struct Envoy {
    /// The node's name among the proxies [default: this machine's name]
    #[arg(long, value_name = "NAME")]
    node_id: Option<Label>,
    /// The fleet that the node belongs to
    #[arg(long, value_name = "NAME", default_value = "envoy")]
    node_cluster: Label,
    /// Where the control plane serves proxies
    #[arg(long, value_name = "HOST:PORT", env = "FOLDPLANE_XDS", default_value = XDS_ADDRESS_DEFAULT)]
    xds: ServerAddress,
    /// How updates are asked for
    #[arg(long, value_enum, default_value_t)]
    protocol: Protocol,
    /// Where Envoy's admin pages are: an address or `none`
    #[arg(long, value_name = "ADDRESS", default_value = ADMIN_ADDRESS_DEFAULT)]
    admin: Place,
    /// Where requests come in: an address or `none`
    #[arg(long, value_name = "ADDRESS", default_value = LISTENER_ADDRESS_DEFAULT)]
    listener: Place,
    /// Paths that belong to one service whatever host is named; repeatable, first match wins
    #[arg(long = "route", value_name = "PREFIX=SERVICE")]
    routes: Vec<ServiceRoute>,
}

/// How updates are asked for.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(super) enum Protocol {
    /// Changes only
    #[default]
    Delta,
    /// Whole sets: the older variant
    Sotw,
}

/// A place to listen, or none.
#[derive(Clone, Copy, Debug)]
enum Place {
    At(SocketAddr),
    None,
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "none" {
            return Ok(Self::None);
        }
        text.parse()
            .map(Self::At)
            .map_err(|_| "write an address such as 127.0.0.1:10000, or `none`".to_owned())
    }
}

impl Place {
    fn address(self) -> Option<SocketAddr> {
        match self {
            Self::At(address) => Some(address),
            Self::None => None,
        }
    }
}

impl Bootstrap {
    pub(super) fn run(self) -> Result<(), Failure> {
        let Proxy::Envoy(envoy) = self.proxy;
        out::data(&envoy.bootstrap()?.to_string())
    }
}

impl Envoy {
    fn bootstrap(self) -> Result<EnvoyBootstrap, Failure> {
        if !self.routes.is_empty() && self.listener.address().is_none() {
            return Err(Failure::usage("--route needs a listener")
                .hint("leave `--listener none` out, or write the routes into your own listener"));
        }
        Ok(EnvoyBootstrap {
            node_id: self.node_id.map_or_else(machine_name, Ok)?,
            node_cluster: self.node_cluster,
            control_plane: self.xds,
            variant: match self.protocol {
                Protocol::Delta => XdsVariant::Delta,
                Protocol::Sotw => XdsVariant::StateOfTheWorld,
            },
            admin: self.admin.address(),
            listener: self.listener.address(),
            routes: self.routes,
        })
    }
}

fn machine_name() -> Result<Label, Failure> {
    let name = nix::unistd::gethostname()
        .map_err(|fault| Failure::fault("cannot read this machine's name").because(fault))?;
    name.to_string_lossy().parse().map_err(|invalid| {
        Failure::fault("this machine's name cannot be a node's name").because(invalid).hint("give --node-id")
    })
}
