//! `foldplane log export` and `foldplane log import`: a log as JSON lines.

use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::PathBuf;

use clap::Args;

use super::folder::{Folder, progress};
use crate::cli::{Failure, out};
use crate::events::log::{LinesError, SledOptions, Texts, export, import, open_reader};

/// Write a log as JSON lines, one event a line.
#[derive(Debug, Args)]
#[command(after_help = "\
Lossless, unless it is scrubbed: `foldplane log import` makes a log with the same hash chain of it. docs/FORMAT.md has the layout.")]
pub(super) struct Export {
    #[command(flatten)]
    folder: Folder,
    /// Write to this file [default: stdout]
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
    /// Replace every name, address, label and sentence, each always by the same
    ///
    /// What happened stays what it was: the lines can be shown to strangers, imported, replayed and tested with. Times, ports
    /// and other numbers stay, hooks of policies are left out, and the chain is that of the new log.
    #[arg(long)]
    scrub: bool,
}

impl Export {
    pub(super) fn run(self) -> Result<(), Failure> {
        let log = open_reader(&self.folder.path()?)?;
        let bar = progress("exported");
        let texts = if self.scrub { Texts::Scrubbed } else { Texts::Kept };
        let head = match &self.to {
            Some(path) => {
                let file = File::create_new(path).map_err(|fault| {
                    Failure::fault(format!("cannot create {}", path.display())).because(fault)
                })?;
                export(&log, &mut BufWriter::new(file), texts, |_| bar.inc(1))?
            }
            None => export(&log, &mut BufWriter::new(std::io::stdout().lock()), texts, |_| bar.inc(1))?,
        };
        bar.finish_and_clear();
        out::note(&format!("exported {head}"));
        Ok(())
    }
}

/// Make a log of JSON lines.
#[derive(Debug, Args)]
pub(super) struct Import {
    /// The lines, as `foldplane log export` writes them
    #[arg(value_name = "FILE")]
    from: PathBuf,
    /// Make the log here: a folder that does not exist yet
    #[arg(long, value_name = "NEW-DIR")]
    to: PathBuf,
}

impl Import {
    pub(super) fn run(self) -> Result<(), Failure> {
        let file = File::open(&self.from)
            .map_err(|fault| Failure::fault(format!("cannot open {}", self.from.display())).because(fault))?;
        let bar = progress("imported");
        let head = import(&mut BufReader::new(file), &self.to, SledOptions::default(), |_| bar.inc(1))?;
        bar.finish_and_clear();
        out::data(&format!("imported  {} to {}\n", head, self.to.display()))
    }
}

impl From<LinesError> for Failure {
    fn from(fault: LinesError) -> Self {
        match fault {
            LinesError::Log(fault) => fault.into(),
            fault @ LinesError::Io(_) => Self::fault("the lines could not be read or written").because(fault),
            fault @ (LinesError::Line { .. } | LinesError::Altered { .. }) => {
                Self::fault(fault.to_string()).hint("the new folder is no log: remove it, and export again")
            }
        }
    }
}
