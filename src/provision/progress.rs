//! Says on stderr what is being waited for.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// How often the spinner turns: often enough to look alive, seldom enough to cost nothing.
const SPINNER_TICK: Duration = Duration::from_millis(120);

/// Shows waiting: a spinner on a terminal, else a line for each step.
#[derive(Debug)]
pub struct Progress {
    spinner: Option<ProgressBar>,
}

impl Progress {
    /// Writes to stderr, as fits what it is.
    #[must_use]
    pub fn stderr() -> Self {
        Self { spinner: io::stderr().is_terminal().then(spinner) }
    }

    /// Says which step has begun.
    pub fn step(&self, text: &str) {
        match &self.spinner {
            Some(spinner) => spinner.set_message(text.to_owned()),
            None => line(text),
        }
    }

    /// Says something that stays readable when the step is over.
    pub fn note(&self, text: &str) {
        match &self.spinner {
            Some(spinner) => spinner.suspend(|| line(text)),
            None => line(text),
        }
    }
}

impl Drop for Progress {
    /// Leaves no half-drawn spinner behind.
    fn drop(&mut self) {
        if let Some(spinner) = &self.spinner {
            spinner.finish_and_clear();
        }
    }
}

fn spinner() -> ProgressBar {
    let spinner = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
        spinner.set_style(style);
    }
    spinner.enable_steady_tick(SPINNER_TICK);
    spinner
}

/// Progress that nobody can read is no reason to stop.
fn line(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}
