//! `foldplane log`: the log itself.

mod dump;
mod folder;
mod lines;
mod repair;
mod stats;
mod verify;

use clap::{Args, Subcommand};

use super::Failure;

/// Look at a log, check it, copy it.
#[derive(Debug, Args)]
pub(super) struct Log {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Print events, one a line
    Dump(dump::Dump),
    /// Print the last events
    Tail(stats::Tail),
    /// Count what a log holds
    Stats(stats::Stats),
    /// Read a whole log and say everything that is wrong with it
    Verify(verify::Verify),
    /// Copy what is whole of a damaged log, and say what is lost
    Repair(repair::Repair),
    /// Copy a log into fewer, larger blocks
    Compact(repair::Compact),
    /// Write a log as JSON lines
    Export(lines::Export),
    /// Make a log of JSON lines
    Import(lines::Import),
}

impl Log {
    pub(super) fn run(self) -> Result<(), Failure> {
        match self.what {
            What::Dump(dump) => dump.run(),
            What::Tail(tail) => tail.run(),
            What::Stats(stats) => stats.run(),
            What::Verify(verify) => verify.run(),
            What::Repair(repair) => repair.run(),
            What::Compact(compact) => compact.run(),
            What::Export(export) => export.run(),
            What::Import(import) => import.run(),
        }
    }
}
