//! `foldplane view`: which nodes see which services.

use clap::{Args, Subcommand};

use super::fetch::Server;
use super::{Failure, block_on, out};
use crate::api::node_views::ViewBody;
use crate::api::obey::OffsetBody;
use crate::events::{Glob, ViewName};

/// Say which nodes see which services.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  foldplane view set edge --id 'edge-*' --services web pay        those Envoys see these two services only
  foldplane view set eu --cluster front --metadata region=eu --services 'eu-*'
  foldplane view set rest --id '*' --services 'public-*'          every node sees these too
  foldplane view delete edge
  foldplane get views
  foldplane get proxies -o wide                                   which views are for whom

A node sees what the views that are for it show, together; one that no view is for sees everything. What it does not see
does not exist for it, whether it asks for everything or by name. Services are matched by name; so are resources of your
own. In patterns `*` stands for any text and `?` for one character.

A view is set whole. Prints the offset from which it is so; `foldplane wait` tells when it has arrived.")]
pub(super) struct ViewCommand {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    server: Server,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Make a view, or replace it
    #[command(group = clap::ArgGroup::new("nodes").args(["ids", "clusters", "metadata"]).required(true).multiple(true))]
    Set {
        /// The view's name
        name: ViewName,
        /// Nodes whose id is like one of these
        #[arg(long = "id", value_name = "GLOB", num_args = 1..)]
        ids: Vec<Glob>,
        /// Nodes whose cluster is like one of these
        #[arg(long = "cluster", value_name = "GLOB", num_args = 1..)]
        clusters: Vec<Glob>,
        /// Nodes whose metadata has this value
        #[arg(long, value_name = "KEY=VALUE", num_args = 1.., value_parser = label)]
        metadata: Vec<(String, String)>,
        /// The services that they see
        #[arg(long, value_name = "GLOB", num_args = 1.., required = true)]
        services: Vec<Glob>,
    },
    /// Forget a view
    Delete {
        /// The view's name
        name: ViewName,
    },
}

impl ViewCommand {
    pub(super) fn run(self) -> Result<(), Failure> {
        let done: OffsetBody = block_on(async {
            match self.what {
                What::Set { name, ids, clusters, metadata, services } => {
                    let metadata = metadata.into_iter().collect();
                    let body = ViewBody { ids, clusters, metadata, services };
                    self.server.put(&format!("/v1/views/{name}"), &body).await
                }
                What::Delete { name } => self.server.delete(&format!("/v1/views/{name}")).await,
            }
        })?;
        out::data(&format!("@{}\n", done.offset))
    }
}

fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or("write KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}
