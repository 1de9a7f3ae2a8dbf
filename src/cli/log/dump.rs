//! `foldplane log dump`: events as they stand in the log.

use clap::{Args, ValueEnum};

use crate::cli::source::Source;
use crate::cli::{Failure, out};
use crate::events::{Envelope, Offset};

/// Print events, one a line.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  foldplane log dump                                      of a control plane that is stopped
  foldplane log dump --from @40 --until @42 -o json
  foldplane log dump --server http://127.0.0.1:18080      of one that is running")]
pub(super) struct Dump {
    #[command(flatten)]
    source: Source,
    /// Start with the event at this offset
    #[arg(long, value_name = "@N")]
    from: Option<Offset>,
    /// Stop after the event at this offset
    #[arg(long, value_name = "@N")]
    until: Option<Offset>,
    /// How to print
    #[arg(short, long, value_enum, default_value_t)]
    output: Lines,
}

/// How an event is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Lines {
    /// For people
    #[default]
    Text,
    /// For scripts: one JSON object a line, with everything
    Json,
}

impl Dump {
    pub(super) fn run(self) -> Result<(), Failure> {
        self.source.read(self.from, self.until, |envelope| {
            out::data(&match self.output {
                Lines::Text => text(&envelope),
                Lines::Json => json(&envelope)?,
            })
        })
    }
}

pub(super) fn text(envelope: &Envelope) -> String {
    let Envelope { offset, recorded_at, event, .. } = envelope;
    format!("{:<8} {recorded_at}  {event}\n", offset.to_string())
}

fn json(envelope: &Envelope) -> Result<String, Failure> {
    let line = serde_json::to_string(envelope)
        .map_err(|fault| Failure::fault("cannot write an event as JSON").because(fault))?;
    Ok(line + "\n")
}
