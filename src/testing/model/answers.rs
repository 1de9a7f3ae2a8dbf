//! What an answer of `decide` is compared by.

use super::lives::Life;
use crate::command::{Rejection, RejectionCode};
use crate::events::{Event, WorkerRef};

/// What `decide` gives.
pub(super) type Answer = Result<Vec<Event>, Rejection>;

/// The kinds of these events.
pub(super) fn names(events: &[Event]) -> Vec<&'static str> {
    events.iter().map(Event::name).collect()
}

/// This event, unless it is so already.
pub(super) fn unless(already: bool, name: &'static str) -> Vec<&'static str> {
    if already { vec![] } else { vec![name] }
}

/// The life that a reference means, or why it means none.
pub(super) fn the<'a, 'b>(living: &'a [Life<'b>], worker: &WorkerRef) -> Result<&'a Life<'b>, RejectionCode> {
    let life = living.iter().find(|life| *life.key == worker.key).ok_or(RejectionCode::UnknownWorker)?;
    if life.generation == worker.generation { Ok(life) } else { Err(RejectionCode::StaleGeneration) }
}
