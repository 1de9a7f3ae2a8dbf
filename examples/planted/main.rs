//! Puts wrong changes into a copy of the repository, one at a time, and sees whether the tests find each within a minute.
//!
//! ```console
//! $ cargo run --example planted
//! $ cargo run --example planted -- --only 'hash order'
//! ```
//!
//! The faults are in `tests/testdata/planted.yaml`. Before them, the same tests must pass. Exit code 1 when a fault is not found.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test program, not the product"
)]

mod copy;
mod faults;
mod run;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use clap::Parser;
use faults::Fault;

/// Wrong changes, one at a time, and whether the tests find them.
#[derive(Parser)]
struct Options {
    /// Only the faults whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// How long the tests may take to find one, without the build.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
}

fn main() -> ExitCode {
    match plant_all(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether each fault is found.
fn plant_all(options: &Options) -> anyhow::Result<bool> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let limit = Duration::from_secs(options.seconds);
    let faults = faults::read(root, &options.only)?;
    let copy = copy::of(root)?;
    let tests: BTreeSet<&str> = faults.iter().map(|fault| fault.test.as_str()).collect();
    for test in tests {
        println!("without a fault: cargo test {test} (the first build takes minutes)");
        // Nothing cuts short what passes.
        let outcome = run::tests(&copy, test, limit.saturating_mul(10))?;
        if outcome.stopped || !outcome.failed.is_empty() {
            bail!("it does not pass without a fault: {}", outcome.failed.join(", "));
        }
    }
    let mut missed = 0;
    for fault in &faults {
        missed += usize::from(!plant(fault, &copy, limit)?);
    }
    println!("{} of {} found", faults.len() - missed, faults.len());
    Ok(missed == 0)
}

/// Whether the fault is found.
fn plant(fault: &Fault, copy: &Path, limit: Duration) -> anyhow::Result<bool> {
    let outcome = fault.planted(copy, || run::tests(copy, &fault.test, limit))??;
    let (seconds, finders) = (outcome.took.as_secs_f64(), fault.finders(&outcome.failed));
    if finders.is_empty() {
        println!("NOT FOUND in {seconds:.1} s: {}", fault.fault);
    } else {
        println!("found in {seconds:.1} s: {}, by {}", fault.fault, finders.join(", "));
    }
    Ok(!finders.is_empty())
}
