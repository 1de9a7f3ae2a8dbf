//! What the program says while it works: lines for people on a terminal, JSON elsewhere; always on stderr.
#![allow(clippy::disallowed_methods, reason = "a shell: it reads RUST_LOG once, at the start")]

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::SubscriberInitExt;

/// Starts it. `RUST_LOG` sets the level; warnings and what Foldplane itself has to say are the default.
pub fn start() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn,foldplane=info"));
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let terminal = std::io::stderr().is_terminal();
    // A subscriber that is there already stays: a test harness has its own.
    let _already = if terminal {
        lines.with_target(false).finish().try_init()
    } else {
        lines.json().finish().try_init()
    };
}
