//! What those who watch a worker say of it.

use std::num::NonZeroU32;

use super::{Event, Rejection, State, check, live, unless};
use crate::events::WorkerRef;
use crate::events::event::{HealthSource, Verdict};

/// How many sources one worker may have: the four that are known, and some of the user's own.
const SOURCES_MAX: usize = 16;

/// A verdict holds until its source changes it; a reason alone is a change too, since people read it. Of a monitor that says
/// that all is well it is none: that would be its measurements. Of the worker itself it is, being its status.
pub(super) fn report_health(
    state: &State,
    worker: &WorkerRef,
    source: &HealthSource,
    verdict: Verdict,
    reason: &str,
) -> Result<Vec<Event>, Rejection> {
    let live = live(state, worker)?;
    let known = live.verdicts.get(source);
    if known.is_none() && live.verdicts.len() >= SOURCES_MAX {
        return Err(Rejection::invalid(
            format!("{} is watched by {SOURCES_MAX} sources already", worker.key),
            "use one of them",
        ));
    }
    let reason = check::shortened(reason);
    let any_reason = verdict == Verdict::Healthy && *source != HealthSource::Worker;
    // Who never said anything said that all is well.
    let (known_verdict, known_reason) =
        known.map_or((Verdict::Healthy, ""), |known| (known.verdict, known.reason.as_str()));
    let already = known_verdict == verdict && (known_reason == reason || any_reason);
    Ok(unless(already, || Event::WorkerHealthReported {
        worker: worker.clone(),
        source: source.clone(),
        verdict,
        reason,
    }))
}

/// Gives the worker another share of the load.
pub(super) fn reweight(
    state: &State,
    worker: &WorkerRef,
    weight: Option<NonZeroU32>,
) -> Result<Vec<Event>, Rejection> {
    let live = live(state, worker)?;
    Ok(unless(live.weight == weight, || Event::WorkerReweighted { worker: worker.clone(), weight }))
}
