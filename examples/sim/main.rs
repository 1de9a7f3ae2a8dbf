//! The simulator for as long as you like: seed after seed, until the time is over or one fails.
//!
//! ```console
//! $ cargo run --release --example sim -- --seeds 0..1000000 --minutes 60
//! ```
//!
//! Says each half minute how far it is, and at the end what the runs came by. Exit code 1 when a seed fails, with the seed and
//! the shortest list of acts that still fails.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test program, not the product"
)]

#[path = "../../tests/sim/simulator/mod.rs"]
mod simulator;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use simulator::reached::Reached;
use simulator::seeds::{commit, try_seed};

/// How often it says how far it is.
const PROGRESS_EVERY: Duration = Duration::from_secs(30);

#[derive(Parser)]
struct Options {
    /// Which seeds, written FIRST..END.
    #[arg(long, value_parser = range, default_value = "0..1000000")]
    seeds: (u64, u64),
    /// No new seed is begun after so many minutes.
    #[arg(long, default_value_t = 60)]
    minutes: u64,
}

fn range(text: &str) -> Result<(u64, u64), String> {
    let (first, end) = text.split_once("..").ok_or("it is written FIRST..END")?;
    let number = |text: &str| text.parse().map_err(|error| format!("{text}: {error}"));
    Ok((number(first)?, number(end)?))
}

fn main() -> ExitCode {
    let Options { seeds: (first, end), minutes } = Options::parse();
    let (begun, until) = (Instant::now(), Duration::from_secs(60 * minutes));
    let (mut reached, mut said, mut seed) = (Reached::default(), begun, first);
    while seed < end && begun.elapsed() < until {
        match try_seed(seed) {
            Ok(trace) => reached += &trace.reached,
            Err(failure) => {
                eprintln!("{failure}");
                return ExitCode::FAILURE;
            }
        }
        seed += 1;
        if said.elapsed() >= PROGRESS_EVERY {
            said = Instant::now();
            let (seconds, answers) = (begun.elapsed().as_secs(), reached.times("acknowledged"));
            println!("up to seed {seed} all hold, with {answers} acknowledged wishes, after {seconds} s");
        }
    }
    println!("commit {}: the seeds {first}..{seed} hold, in {} s", commit(), begun.elapsed().as_secs());
    println!("{reached}");
    ExitCode::SUCCESS
}
