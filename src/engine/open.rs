//! From a log to the snapshot at its end.

use crate::events::Offset;
use crate::events::log::{LogError, LogReader, read_ahead};
use crate::projection::state::State;
use crate::projection::{Outcome, Snapshot, evolve};

/// What a log held.
#[derive(Debug)]
pub struct Opened {
    /// The state and the resources at its end.
    pub snapshot: Snapshot,
    /// How many events were folded.
    pub folded: u64,
    /// The events that made no sense, the first hundred of them.
    pub anomalies: Vec<(Offset, crate::projection::Anomaly)>,
}

/// How many anomalies are named; the state counts them all.
const ANOMALIES_SHOWN_MAX: usize = 100;

/// Folds `log` from `start` up to `until`, or to its end.
///
/// # Errors
///
/// Whatever the log says of damage; nothing is skipped.
pub fn open(log: &dyn LogReader, start: State, until: Option<Offset>) -> Result<Opened, LogError> {
    let mut state = start;
    let mut folded = 0;
    let mut anomalies = Vec::new();
    let from = state.offset().next();
    if from <= log.head().offset {
        read_ahead(log, from, until, |envelope| {
            folded += 1;
            if let Outcome::Ignored(anomaly) = evolve(&mut state, &envelope)
                && anomalies.len() < ANOMALIES_SHOWN_MAX
            {
                anomalies.push((envelope.offset, anomaly));
            }
            Ok::<(), LogError>(())
        })?;
    }
    Ok(Opened { snapshot: Snapshot::of(state), folded, anomalies })
}
