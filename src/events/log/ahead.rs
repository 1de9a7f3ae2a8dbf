//! Reading on a thread of its own: whoever folds a long log does not wait for the disk, the checks and the decoding.

use std::sync::mpsc::sync_channel;
use std::thread;

use super::{LogError, LogReader};
use crate::events::{Envelope, Offset};

/// How many events are handed over at once: so many that the hand-over costs nothing beside them.
const CHUNK_EVENTS: usize = 256;

/// How many chunks may wait, so that neither side stops at each hiccup of the other: some 2 MB of events.
const CHUNKS_AHEAD_MAX: usize = 8;

/// Hands every event from `from` to `until`, or to the durable end of this moment, to `visit`, in order and without gaps.
///
/// # Errors
///
/// As [`LogReader::read`], or what `visit` says, which ends it. Every event before the error was handed over.
pub fn read_ahead<E: From<LogError>>(
    log: &dyn LogReader,
    from: Offset,
    until: Option<Offset>,
    mut visit: impl FnMut(Envelope) -> Result<(), E>,
) -> Result<(), E> {
    let until = until.unwrap_or(Offset::MAX);
    let mut events =
        log.read(from)?.take_while(|event| !matches!(event, Ok(envelope) if envelope.offset > until));
    thread::scope(|scope| {
        let (ahead, chunks) = sync_channel(CHUNKS_AHEAD_MAX);
        scope.spawn(move || {
            loop {
                let chunk: Vec<_> = events.by_ref().take(CHUNK_EVENTS).collect();
                // Who ended it hears no more.
                if chunk.is_empty() || ahead.send(chunk).is_err() {
                    break;
                }
            }
        });
        chunks.into_iter().flatten().try_for_each(|event| visit(event?))
    })
}
