//! `foldplane policy`: what decides over endpoints.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::fetch::Server;
use super::out::{self, Format};
use super::service::from_file;
use super::{Failure, block_on};
use crate::api::obey::OffsetBody;
use crate::api::policies::{EndpointChange, PolicyPreview, PolicyView, Shown};
use crate::events::ServiceName;
use crate::events::event::Policy;

/// Set, show or delete what decides over endpoints.
///
/// A hook is an expression in CEL over `worker` (service, id, host, locality, endpoint, metadata, monitors, verdict) and
/// `default`, what holds without it. A service's own hook comes before the one for all. Where a hook gives no answer,
/// `default` holds, and `foldplane get findings` says so.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  foldplane policy set --service web --include \"!has(worker.metadata.test)\" --dry-run
  foldplane policy set --service web --cluster \"has(worker.metadata.track) ? default + ':' + worker.metadata.track : default\"
  foldplane policy set --health \"worker.verdict == 'degraded' ? 'UNHEALTHY' : default\"      for every service
  foldplane policy set --service web -f policy.json
  foldplane policy get --service web
  foldplane policy delete --service web

A policy replaces the one before it, all of it. --dry-run writes nothing, and shows which endpoints would change.")]
pub(super) struct PolicyCommand {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    server: Server,
    /// Of which service [default: of all that have no hook of their own]
    #[arg(long, global = true)]
    service: Option<ServiceName>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Say what decides from now on
    Set(Set),
    /// Print a policy as JSON, as a file for `set -f`
    Get,
    /// Let what always decides do so
    Delete,
}

/// What a file says instead.
const HOOKS: [&str; 3] = ["include", "cluster", "health"];

#[derive(Debug, Args)]
struct Set {
    /// Read the hooks from this JSON file, `-` for the standard input
    #[arg(short, long, value_name = "FILE", conflicts_with_all = HOOKS, required_unless_present_any = HOOKS)]
    file: Option<PathBuf>,
    /// Whether an endpoint is published
    #[arg(long, value_name = "EXPRESSION")]
    include: Option<String>,
    /// In which cluster: the service's name, or that and a colon and more
    #[arg(long, value_name = "EXPRESSION")]
    cluster: Option<String>,
    /// As what: HEALTHY, DEGRADED, UNHEALTHY or ABSENT
    #[arg(long, value_name = "EXPRESSION")]
    health: Option<String>,
    /// Write nothing, and show what would change
    #[arg(long)]
    dry_run: bool,
    /// How to print what would change
    #[arg(short, long, value_enum, default_value_t, requires = "dry_run")]
    output: Format,
}

impl PolicyCommand {
    pub(super) fn run(self) -> Result<(), Failure> {
        let path = match &self.service {
            None => "/v1/policy".to_owned(),
            Some(service) => format!("/v1/services/{service}/policy"),
        };
        let done: OffsetBody = match self.what {
            What::Get => {
                let view: PolicyView = block_on(self.server.get(&path, &[]))?;
                return out::data(&out::json(&view.policy)?);
            }
            What::Set(set) if set.dry_run => {
                let (path, output) = (format!("{path}?dry_run=true"), set.output);
                let preview: PolicyPreview = block_on(self.server.put(&path, &set.policy()?))?;
                return out::data(&print(&preview, output)?);
            }
            What::Set(set) => block_on(self.server.put(&path, &set.policy()?))?,
            What::Delete => block_on(self.server.delete(&path))?,
        };
        out::data(&format!("@{}\n", done.offset))
    }
}

impl Set {
    fn policy(self) -> Result<Policy, Failure> {
        match &self.file {
            Some(file) => from_file(file),
            None => Ok(Policy { include: self.include, cluster: self.cluster, health: self.health }),
        }
    }
}

fn print(preview: &PolicyPreview, format: Format) -> Result<String, Failure> {
    let shown = |shown: &Option<Shown>| match shown {
        None => "absent".to_owned(),
        Some(Shown { cluster, health }) => format!("{cluster} {health}"),
    };
    let row = |change: &EndpointChange| {
        [change.worker.clone(), change.port.clone(), shown(&change.before), shown(&change.after)]
    };
    Ok(match format {
        Format::Json | Format::Yaml => out::document(preview, format)?,
        Format::Text => {
            out::lines(preview.changes.iter().map(|change| format!("{} {}", change.worker, change.port)))
        }
        Format::Table | Format::Wide => {
            let changes = out::table(["WORKER", "PORT", "NOW", "THEN"], preview.changes.iter().map(row));
            let findings = preview.findings.iter();
            findings.fold(changes, |text, finding| {
                text + &format!("finding: {}: {}\n", finding.about, finding.detail)
            })
        }
    })
}
