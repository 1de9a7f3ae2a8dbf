//! `foldplane apply` and `foldplane delete`: resources of an operator's own.

use std::path::PathBuf;

use clap::Args;
use serde_json::Value;

use super::fetch::Server;
use super::out::{self, Format};
use super::{Exit, Failure, block_on, documents};
use crate::api::resources::{ChangeBody, ChangedBody, KeyBody};
use crate::events::ResourceKind;
use crate::transcode;

/// Bring resources of your own: clusters, endpoints, listeners and routes.
///
/// A file holds them in YAML or JSON as Envoy's documents do, each with its `@type`; several documents, a list, and Envoy's own
/// `resources:` are taken. All of it is checked and applied as one change, or none of it. What was applied is recorded in the
/// log: it outlives restarts and shows in `replay`. Applying the same again changes nothing.
///
/// A resource that is applied is served in the place of one that workers make under the same name, until it is deleted.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  foldplane apply -f edge.yaml                        a listener, its route and a cluster, all at once
  foldplane apply -f edge.yaml --dry-run              what would change
  foldplane get resources route -o yaml > routes.yaml what is served, to be edited and applied
  jq '{resources: .static_resources.clusters}' envoy.json | foldplane apply -f -

  # edge.yaml
  \"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: legacy
  type: STRICT_DNS
  load_assignment:
    cluster_name: legacy
    endpoints:
    - lb_endpoints:
      - endpoint: { address: { socket_address: { address: legacy.example, port_value: 80 } } }")]
pub(super) struct Apply {
    /// A file of resources, or - for stdin; may be given several times
    #[arg(short, long = "file", value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    how: How,
}

/// Take back resources that were applied.
///
/// What workers make under the same name is served again. Deleting what is not there changes nothing; exit code 3 when none of
/// them was.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  foldplane delete listener edge
  foldplane delete -f edge.yaml           all that the file names")]
pub(super) struct Delete {
    /// cluster, endpoints, listener or route
    #[arg(required_unless_present = "files", requires = "names")]
    kind: Option<ResourceKind>,
    /// Their names
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// A file that names them, or - for stdin; may be given several times
    #[arg(short, long = "file", value_name = "FILE", conflicts_with = "kind")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    how: How,
}

/// How a change is made and told.
#[derive(Debug, Args)]
struct How {
    /// Only say what would change
    #[arg(long)]
    dry_run: bool,
    /// Do not insist that the clusters, endpoints and routes that a resource names are there
    #[arg(long)]
    allow_missing: bool,
    /// How to print; text is the offset from which it holds
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    server: Server,
}

impl Apply {
    pub(super) fn run(self) -> Result<(), Failure> {
        let apply = documents::read(&self.files)?;
        if apply.is_empty() {
            return Err(
                Failure::usage("there is no resource in what was given").hint("see `foldplane apply --help`")
            );
        }
        self.how.change(apply, Vec::new()).map(drop)
    }
}

impl Delete {
    pub(super) fn run(self) -> Result<(), Failure> {
        let mut keys = Vec::new();
        for name in self.names {
            let kind = self.kind.map(|kind| kind.to_string()).unwrap_or_default();
            keys.push(KeyBody { kind, name });
        }
        for document in documents::read(&self.files)? {
            keys.push(key(&document)?);
        }
        let changed = self.how.change(Vec::new(), keys)?;
        if changed.changes.iter().all(|line| line.change == "absent") {
            return Err(Failure::new(Exit::NotFound, "nothing of it was applied")
                .hint("`foldplane get resources` shows what an operator applied, and what workers make"));
        }
        Ok(())
    }
}

/// Which resource a document is, by its own words.
fn key(document: &Value) -> Result<KeyBody, Failure> {
    let written = transcode::resource(document)
        .map_err(|invalid| Failure::usage(invalid.to_string()).hint(invalid.hint))?;
    Ok(KeyBody { kind: written.key.kind.to_string(), name: written.key.name })
}

impl How {
    /// Makes the change, and tells what came of it.
    fn change(&self, apply: Vec<Value>, delete: Vec<KeyBody>) -> Result<ChangedBody, Failure> {
        let Self { dry_run, allow_missing, .. } = *self;
        let body = ChangeBody { apply, delete, allow_missing, dry_run };
        let changed: ChangedBody = block_on(self.server.post("/v1/resources", &body))?;
        out::data(&self.shown(&changed)?)?;
        Ok(changed)
    }

    fn shown(&self, changed: &ChangedBody) -> Result<String, Failure> {
        Ok(match self.output {
            Format::Json | Format::Yaml => out::document(changed, self.output)?,
            Format::Text => format!("@{}\n", changed.offset),
            Format::Table | Format::Wide => {
                let note = |makes: bool| if makes { "workers make one too" } else { "" };
                let lines = changed.changes.iter();
                let table = out::table(
                    ["KIND", "NAME", "CHANGE", "NOTE"],
                    lines.map(|line| {
                        let note = note(line.workers_make_one).to_owned();
                        [line.kind.clone(), line.name.clone(), line.change.clone(), note]
                    }),
                );
                let end = if self.dry_run { "nothing was changed: a dry run, at" } else { "holds from" };
                format!("{table}{end} @{}\n", changed.offset)
            }
        })
    }
}
