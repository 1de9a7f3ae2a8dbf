//! `foldplane replay`: the log is the debugger.

use clap::Args;
use serde::Serialize;

use super::out::{self, Format};
use super::source::Source;
use super::{Exit, Failure, lists};
use crate::api::services::{self, ServiceView};
use crate::api::views::{self, EndpointView, Listing, StateView, WorkerView};
use crate::events::Offset;
use crate::projection::state::State;
use crate::projection::{Outcome, Snapshot, evolve};

/// Fold a log and show what was true at an offset.
///
/// Services, workers, endpoints, every version that proxies were sent, and the digest of the whole state: two folds that
/// agree on the digest agree on everything. Nothing is written.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  foldplane replay                                        the end of the log, of a control plane that is stopped
  foldplane replay --until @42                            as it was after the event at 42
  foldplane replay --server http://127.0.0.1:18080        of one that is running, without disturbing it
  foldplane replay -o json | jq .state.state_digest")]
pub(super) struct Replay {
    #[command(flatten)]
    source: Source,
    /// Stop after the event at this offset
    #[arg(long, value_name = "@N")]
    until: Option<Offset>,
    /// How to print; text is one version a line
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

/// What a replay shows.
#[derive(Debug, Serialize)]
struct Shown {
    state: StateView,
    services: Listing<ServiceView>,
    workers: Listing<WorkerView>,
    endpoints: Listing<EndpointView>,
    anomalies: Vec<AnomalyView>,
}

/// An event that made no sense where it stood.
#[derive(Debug, Serialize)]
struct AnomalyView {
    offset: u64,
    event: &'static str,
    reason: String,
}

/// How many anomalies are listed; the state counts them all.
const ANOMALIES_LISTED_MAX: usize = 100;

impl Replay {
    pub(super) fn run(self) -> Result<(), Failure> {
        let mut state = State::default();
        let mut anomalies = Vec::new();
        self.source.read(None, self.until, |envelope| {
            if let Outcome::Ignored(anomaly) = evolve(&mut state, &envelope)
                && anomalies.len() < ANOMALIES_LISTED_MAX
            {
                let reason = anomaly.to_string();
                let event = envelope.event.name();
                anomalies.push(AnomalyView { offset: envelope.offset.get(), event, reason });
            }
            Ok(())
        })?;
        if let Some(until) = self.until.filter(|until| *until > state.offset()) {
            return Err(Failure::new(
                Exit::NotFound,
                format!("the log ends at {}, before {until}", state.offset()),
            )
            .hint("give an offset up to there, or leave --until out"));
        }
        out::data(&shown(&Snapshot::of(state), anomalies).print(self.output)?)
    }
}

fn shown(snapshot: &Snapshot, anomalies: Vec<AnomalyView>) -> Shown {
    Shown {
        state: views::state(snapshot),
        services: services::views(snapshot),
        workers: views::workers(snapshot, None),
        endpoints: views::endpoints(snapshot, None),
        anomalies,
    }
}

impl Shown {
    fn print(&self, format: Format) -> Result<String, Failure> {
        let versions = self.state.versions.iter();
        Ok(match format {
            Format::Json | Format::Yaml => out::document(self, format)?,
            Format::Text => {
                out::lines(versions.map(|item| format!("{} {} {}", item.r#type, item.name, item.version)))
            }
            Format::Table | Format::Wide => [
                format!(
                    "offset    @{}\ndigest    {}\nanomalies {}\n",
                    self.state.offset, self.state.state_digest, self.state.anomalies
                ),
                self.anomalies.iter().fold(String::new(), |text, anomaly| {
                    text + &format!("  @{} {}: {}\n", anomaly.offset, anomaly.event, anomaly.reason)
                }),
                lists::services(&self.services, format)?,
                lists::workers(&self.workers, format)?,
                lists::endpoints(&self.endpoints, format)?,
                out::table(
                    ["TYPE", "NAME", "VERSION"],
                    versions.map(|item| [item.r#type.clone(), item.name.clone(), item.version.clone()]),
                ),
            ]
            .join("\n"),
        })
    }
}
