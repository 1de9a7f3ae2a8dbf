//! The folder of a log whose server is stopped, and how far a long command has come.

use std::path::PathBuf;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use crate::cli::Failure;
use crate::config::default_data_dir;

/// Which log.
#[derive(Debug, Args)]
pub(super) struct Folder {
    /// The data folder of a control plane that is stopped [default: the per-user state folder]
    #[arg(value_name = "DATA-DIR", env = "FOLDPLANE_DATA_DIR")]
    data_dir: Option<PathBuf>,
}

impl Folder {
    pub(super) fn path(&self) -> Result<PathBuf, Failure> {
        self.data_dir.clone().or_else(default_data_dir).ok_or_else(|| {
            Failure::usage("there is no per-user folder for the log").hint("name the data folder")
        })
    }
}

/// A count of events on stderr, shown only to people.
pub(super) fn progress(what: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} {human_pos} events, {per_sec}, {elapsed}");
    ProgressBar::new_spinner()
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
        .with_message(what)
}
