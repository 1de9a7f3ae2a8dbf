//! `foldplane get`: lists of a running control plane.

use clap::{Args, Subcommand};

use super::fetch::Server;
use super::out::{self, Format};
use super::{Exit, Failure, block_on, lists};
use crate::api::findings::Finding;
use crate::api::hosts::HostView;
use crate::api::node_views::NodeViewView;
use crate::api::proxies::ProxyView;
use crate::api::resources::ResourceView;
use crate::api::services::ServiceView;
use crate::api::views::{EndpointView, Listing, WorkerView};
use crate::events::ResourceKind;

/// Ask a running control plane for lists.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  foldplane get services
  foldplane get endpoints web --ready -o text      one host:port a line; exit code 3 when none is ready
  foldplane get workers -o json | jq '.items[].state'
  foldplane get proxies -o wide
  foldplane get resources listener edge -o yaml    what it says, ready to be edited and applied")]
pub(super) struct Get {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    server: Server,
    /// How to print
    #[arg(short, long, value_enum, default_value_t, global = true)]
    output: Format,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Services that are declared or have live workers
    Services,
    /// Live workers
    Workers {
        /// Only those of this service
        service: Option<String>,
    },
    /// Published endpoints
    Endpoints {
        /// Only those of this service
        service: Option<String>,
        /// Only those that get requests; exit code 3 when there is none
        #[arg(long)]
        ready: bool,
    },
    /// Hosts, with the ports that they lend
    Hosts,
    /// Views: which nodes see which services
    Views,
    /// What somebody should look at, such as hooks that give no answer
    Findings,
    /// Clusters, endpoints, listeners and routes as clients are sent them
    Resources {
        /// Only of this kind: cluster, endpoints, listener or route
        kind: Option<ResourceKind>,
        /// Only the one of this name; exit code 3 when there is none
        name: Option<String>,
    },
    /// Proxies and gRPC clients, with what each was sent and has accepted
    Proxies,
}

impl Get {
    pub(super) fn run(self) -> Result<(), Failure> {
        block_on(async {
            match &self.what {
                What::Services => {
                    let listing: Listing<ServiceView> = self.server.get("/v1/services", &[]).await?;
                    out::data(&lists::services(&listing, self.output)?)
                }
                What::Workers { service } => {
                    let query = narrowed(service.as_ref());
                    let listing: Listing<WorkerView> = self.server.get("/v1/workers", &query).await?;
                    out::data(&lists::workers(&listing, self.output)?)
                }
                What::Hosts => {
                    let listing: Listing<HostView> = self.server.get("/v1/hosts", &[]).await?;
                    out::data(&lists::hosts(&listing, self.output)?)
                }
                What::Views => {
                    let listing: Listing<NodeViewView> = self.server.get("/v1/views", &[]).await?;
                    out::data(&lists::node_views(&listing, self.output)?)
                }
                What::Findings => {
                    let listing: Listing<Finding> = self.server.get("/v1/findings", &[]).await?;
                    out::data(&lists::findings(&listing, self.output)?)
                }
                What::Resources { kind, name } => self.resources(*kind, name.as_ref()).await,
                What::Proxies => {
                    let listing: Listing<ProxyView> = self.server.get("/v1/proxies", &[]).await?;
                    out::data(&lists::proxies(&listing, self.output)?)
                }
                What::Endpoints { service, ready } => self.endpoints(service.as_ref(), *ready).await,
            }
        })
    }

    async fn endpoints(&self, service: Option<&String>, ready: bool) -> Result<(), Failure> {
        let mut query = narrowed(service);
        if ready {
            query.push(("ready", "true".to_owned()));
        }
        let listing: Listing<EndpointView> = self.server.get("/v1/endpoints", &query).await?;
        if ready && listing.items.is_empty() {
            let of = service.map(|name| format!(" of {name}")).unwrap_or_default();
            return Err(Failure::new(Exit::NotFound, format!("no endpoint{of} is ready"))
                .hint("`foldplane get workers` shows why"));
        }
        out::data(&lists::endpoints(&listing, self.output)?)
    }

    async fn resources(&self, kind: Option<ResourceKind>, name: Option<&String>) -> Result<(), Failure> {
        let content = matches!(self.output, Format::Json | Format::Yaml);
        let mut query = vec![("content", content.to_string())];
        query.extend(kind.map(|kind| ("kind", kind.to_string())));
        query.extend(name.map(|name| ("name", name.clone())));
        let listing: Listing<ResourceView> = self.server.get("/v1/resources", &query).await?;
        out::data(&lists::resources(&listing, self.output)?)
    }
}

fn narrowed(service: Option<&String>) -> Vec<(&'static str, String)> {
    service.map(|name| ("service", name.clone())).into_iter().collect()
}
