//! Seeds: the run of one, and the shortest list of acts that still fails where one does.

use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::Once;

use super::acts::{Act, Scenario};
use super::run::{Trace, run};

/// So many tries to make a failing run shorter.
const SHRINKS_MAX: usize = 400;

/// A seed that fails.
#[derive(Debug)]
pub(crate) struct Failure {
    reason: String,
    /// The shortest run that was found.
    scenario: Scenario,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Scenario { seed, options, acts } = &self.scenario;
        writeln!(f, "seed {seed}, commit {}: {}", commit(), self.reason)?;
        writeln!(f, "again: FOLDPLANE_SIM_SEEDS={seed}..{} cargo test --test sim seeds", seed + 1)?;
        writeln!(f, "{options:?}")?;
        acts.iter().try_for_each(|act| writeln!(f, "{act:?}"))
    }
}

/// The commit that is checked out, as far as git can tell.
pub(crate) fn commit() -> String {
    let said = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output();
    let text = said.ok().filter(|output| output.status.success());
    let text = text.and_then(|output| String::from_utf8(output.stdout).ok());
    text.map_or_else(|| "unknown".to_owned(), |text| text.trim().to_owned())
}

/// Runs the scenario of a seed; what fails is made shorter.
pub(crate) fn try_seed(seed: u64) -> Result<Trace, Box<Failure>> {
    let scenario = Scenario::of(seed);
    outcome(&scenario).map_err(|first| {
        let scenario = shrink(scenario);
        let reason = outcome(&scenario).err().unwrap_or_else(|| format!("not every time: {first}"));
        Box::new(Failure { reason, scenario })
    })
}

thread_local! {
    /// Whether panics of this thread are expected, and are not to be printed.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Panics are printed as ever, but for those of runs, of which only the last one matters.
fn keep_runs_quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                print(panic);
            }
        }));
    });
}

/// What came of a run, or why it fails.
fn outcome(scenario: &Scenario) -> Result<Trace, String> {
    keep_runs_quiet();
    QUIET.set(true);
    let outcome = catch_unwind(AssertUnwindSafe(|| run(scenario)));
    QUIET.set(false);
    outcome.map_err(|panic| match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => panic.downcast_ref::<&str>().map_or("a panic", |text| *text).to_owned(),
    })
}

/// The scenario without those acts that the failure does not need.
fn shrink(mut scenario: Scenario) -> Scenario {
    let (mut size, mut tries) = (scenario.acts.len() / 2, 0);
    while size > 0 && tries < SHRINKS_MAX {
        let mut at = 0;
        while at < scenario.acts.len() && tries < SHRINKS_MAX {
            tries += 1;
            let end = (at + size).min(scenario.acts.len());
            let acts = &scenario.acts;
            let fewer: Vec<Act> = acts.iter().take(at).chain(acts.iter().skip(end)).cloned().collect();
            let fewer = scenario.with(fewer);
            if outcome(&fewer).is_err() { scenario = fewer } else { at = end }
        }
        size /= 2;
    }
    scenario
}
