//! `foldplane status`: how a control plane is, and what somebody should look at.

use std::collections::BTreeMap;

use clap::Args;

use super::fetch::Server;
use super::out::{self, Format};
use super::{Exit, Failure, block_on, lists};
use crate::api::findings::{Finding, Severity};
use crate::api::status::StatusView;

/// Ask a running control plane how it is, and what somebody should look at.
///
/// Exit code 1 when a finding is a fault: the log cannot be written, expiry is held, or a client refuses what it is sent.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  foldplane status
  foldplane status -o wide                          with what to do about each finding
  foldplane status -o text                          one finding a line: kind, and whom it is about
  foldplane status -o json | jq '.workers.ready'")]
pub(super) struct Status {
    #[command(flatten)]
    server: Server,
    /// How to print
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

impl Status {
    pub(super) fn run(self) -> Result<(), Failure> {
        let status: StatusView = block_on(self.server.get("/v1/status", &[]))?;
        out::data(&shown(&status, self.output)?)?;
        let faults = status.findings.iter().filter(|finding| finding.severity == Severity::Fault).count();
        if faults == 0 {
            return Ok(());
        }
        Err(Failure::new(Exit::Fault, format!("{faults} of the findings are faults"))
            .hint("`foldplane status -o wide` says what to do about each"))
    }
}

fn shown(status: &StatusView, format: Format) -> Result<String, Failure> {
    Ok(match format {
        Format::Json | Format::Yaml => out::document(status, format)?,
        Format::Text => {
            out::lines(status.findings.iter().map(|finding| format!("{} {}", finding.kind, finding.about)))
        }
        Format::Table => overview(status) + &findings(&status.findings, lists::finding_table),
        Format::Wide => overview(status) + &findings(&status.findings, lists::finding_table_with_hints),
    })
}

fn overview(status: &StatusView) -> String {
    let log = match &status.storage_fault {
        None => format!("@{} durable, from @{}", status.durable_offset, status.oldest_offset),
        Some(reason) => format!("@{} durable, cannot be written: {reason}", status.durable_offset),
    };
    let expiry = match &status.expiry_held {
        None => "as leases end".to_owned(),
        Some(hold) => format!("held until {} at the latest: {}", hold.until, hold.reason),
    };
    let started = status.started.map(|offset| format!(", started @{offset}")).unwrap_or_default();
    let replica = status.replica.clone().unwrap_or_default();
    let followers = format!("{} streams, {} events behind", status.xds.streams, status.xds.lag_events);
    let rows = [
        ("offset", format!("@{}", status.offset)),
        ("log", log),
        ("replica", format!("{replica} version {}{started}", status.version)),
        ("workers", counts(&status.workers)),
        ("endpoints", counts(&status.endpoints)),
        ("hosts", counts(&status.hosts)),
        ("ports", counts(&status.ports)),
        ("sessions", status.sessions.to_string()),
        ("xds", followers),
        ("expiry", expiry),
    ];
    out::table(["STATUS", ""], rows.map(|(name, value)| [name.to_owned(), value]))
}

/// `12 ready, 1 draining`; what there is none of is left out.
fn counts(counts: &BTreeMap<String, usize>) -> String {
    let some = counts.iter().filter(|(_, count)| **count > 0);
    let some: Vec<String> = some.map(|(name, count)| format!("{count} {name}")).collect();
    if some.is_empty() { "none".to_owned() } else { some.join(", ") }
}

fn findings(all: &[Finding], table: impl Fn(&[Finding]) -> String) -> String {
    if all.is_empty() { "\nnothing to look at\n".to_owned() } else { format!("\n{}", table(all)) }
}
