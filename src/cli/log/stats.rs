//! `foldplane log stats` and `foldplane log tail`: what a log holds, and how it ends.

use std::collections::BTreeMap;

use clap::Args;

use super::dump::text;
use super::folder::{Folder, progress};
use crate::cli::{Failure, out};
use crate::events::log::{Checkpoints, LogReader, open_reader};
use crate::events::{Offset, Timestamp};

/// Count what a log holds.
#[derive(Debug, Args)]
pub(super) struct Stats {
    #[command(flatten)]
    folder: Folder,
}

impl Stats {
    pub(super) fn run(self) -> Result<(), Failure> {
        let dir = self.folder.path()?;
        let log = open_reader(&dir)?;
        let bar = progress("counted");
        let mut kinds: BTreeMap<&'static str, u64> = BTreeMap::new();
        let mut times: Option<(Timestamp, Timestamp)> = None;
        for envelope in log.read(log.oldest())? {
            let envelope = envelope?;
            *kinds.entry(envelope.event.name()).or_default() += 1;
            let first = times.map_or(envelope.recorded_at, |(first, _)| first);
            times = Some((first, envelope.recorded_at));
            bar.inc(1);
        }
        bar.finish_and_clear();
        let mut report = format!("events    {} to {}\n", log.oldest(), log.head().offset);
        if let Some((first, last)) = times {
            report.push_str(&format!("recorded  {first} to {last}\n"));
        }
        for offset in Checkpoints::of(&dir).offsets()? {
            report.push_str(&format!("saved     state at {offset}\n"));
        }
        for (first, bytes) in log.segments() {
            report.push_str(&format!("segment   from {first}, {bytes} bytes\n"));
        }
        out::data(&report)?;
        out::data(&out::table(
            ["EVENT", "COUNT"],
            kinds.into_iter().map(|(name, count)| [name.to_owned(), count.to_string()]),
        ))
    }
}

/// Print the last events.
#[derive(Debug, Args)]
pub(super) struct Tail {
    #[command(flatten)]
    folder: Folder,
    /// How many
    #[arg(short = 'n', long, default_value_t = 10)]
    lines: u64,
}

impl Tail {
    pub(super) fn run(self) -> Result<(), Failure> {
        let log = open_reader(&self.folder.path()?)?;
        let first = log.head().offset.get().saturating_sub(self.lines) + 1;
        for envelope in log.read(Offset::new(first).max(log.oldest()))? {
            out::data(&text(&envelope?))?;
        }
        Ok(())
    }
}
