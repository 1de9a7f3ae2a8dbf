//! `foldplane log`: the log itself.

mod dump;

use clap::{Args, Subcommand};

use super::Failure;

/// Look at a log.
#[derive(Debug, Args)]
pub(super) struct Log {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Print events, one a line
    Dump(dump::Dump),
}

impl Log {
    pub(super) fn run(self) -> Result<(), Failure> {
        match self.what {
            What::Dump(dump) => dump.run(),
        }
    }
}
