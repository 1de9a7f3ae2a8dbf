//! `foldplane log repair` and `foldplane log compact`: a copy beside the original.

use std::path::PathBuf;

use clap::Args;

use super::folder::{Folder, progress};
use super::verify::report;
use crate::cli::{Failure, out};
use crate::events::Offset;
use crate::events::log::{copy_log, verify};

/// Copy what is whole of a damaged log, and say what is lost.
#[derive(Debug, Args)]
#[command(after_help = "\
Without --to it only says what a copy would hold and what it would lose. The original is never changed.

Examples:
  foldplane log repair /var/lib/foldplane
  foldplane log repair /var/lib/foldplane --truncate-from @4711 --to /var/lib/foldplane.repaired")]
pub(super) struct Repair {
    #[command(flatten)]
    folder: Folder,
    /// Leave out the event at this offset and all after it [default: those after the last whole event]
    #[arg(long, value_name = "@N")]
    truncate_from: Option<Offset>,
    /// Make the copy here: a folder that does not exist yet
    #[arg(long, value_name = "NEW-DIR")]
    to: Option<PathBuf>,
}

impl Repair {
    pub(super) fn run(self) -> Result<(), Failure> {
        let dir = self.folder.path()?;
        let bar = progress("verified");
        let found = verify(&dir, |_, _| bar.inc(1))?;
        bar.finish_and_clear();
        let whole = found.good.offset;
        let last = match self.truncate_from {
            Some(first) if first.get() > whole.get() + 1 => {
                let message =
                    format!("the events from {} on are not whole, so {first} is too far", whole.next());
                return Err(Failure::usage(message).hint(format!("use --truncate-from {}", whole.next())));
            }
            Some(first) => Offset::new(first.get().saturating_sub(1)),
            None => whole,
        };
        let end = found.acknowledged.map_or(whole, |head| head.offset).max(whole);
        out::data(&report(&found, &[]))?;
        out::data(&format!("kept      {} to {last}\n", found.before.offset.next()))?;
        if last < end {
            out::data(&format!("lost      {} to {end}\n", last.next()))?;
        }
        let Some(to) = self.to else {
            out::note("nothing was changed: name a new folder with --to to make the copy");
            return Ok(());
        };
        let bar = progress("copied");
        let head = copy_log(&dir, &to, Some(last), |_| bar.inc(1))?;
        bar.finish_and_clear();
        out::data(&format!("copied    {} to {}\n", head, to.display()))
    }
}

/// Copy a log into fewer, larger blocks: the same events under the same chain, read faster.
#[derive(Debug, Args)]
pub(super) struct Compact {
    #[command(flatten)]
    folder: Folder,
    /// Make the copy here: a folder that does not exist yet
    #[arg(long, value_name = "NEW-DIR")]
    to: PathBuf,
}

impl Compact {
    pub(super) fn run(self) -> Result<(), Failure> {
        let dir = self.folder.path()?;
        let bar = progress("copied");
        let head = copy_log(&dir, &self.to, None, |_| bar.inc(1))?;
        bar.finish_and_clear();
        out::data(&format!("copied    {} to {}\n", head, self.to.display()))
    }
}
