//! Who has what there was at an offset: accepted, refused, or still to come.

use super::ledger::{Ledger, StreamStatus, TypeStatus};
use crate::events::{Glob, Offset, Timestamp};

/// How long a stream that is open may say nothing before it no longer counts, in milliseconds. A client that comes
/// back asks at once; until it has, nobody knows who it is and what it lacks.
const FIRST_WORDS_WITHIN_MS: u64 = 5000;

/// How a stream, or one type of it, stands with an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// It has accepted everything that concerns it, or nothing does.
    Reached,
    /// It has answered for everything, and refused some.
    Rejected,
    /// It owes an answer, or is owed something.
    Waiting,
}

/// How the streams stand with an offset.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// How many have reached it.
    pub reached: usize,
    /// The others, sorted by node.
    pub behind: Vec<StreamStatus>,
}

impl TypeStatus {
    /// How the client stands with an offset.
    #[must_use]
    pub fn standing(&self, offset: Offset) -> Standing {
        if self.accepted >= offset {
            Standing::Reached
        } else if self.settled >= offset {
            Standing::Rejected
        } else {
            Standing::Waiting
        }
    }
}

impl StreamStatus {
    /// How the client stands with an offset: as with the type with which it is least far. One that has not asked for
    /// anything yet is about to.
    #[must_use]
    pub fn standing(&self, offset: Offset, now: Timestamp) -> Standing {
        let silent_ms = now.as_millis().saturating_sub(self.since.as_millis());
        if self.types.is_empty() && silent_ms < FIRST_WORDS_WITHIN_MS {
            return Standing::Waiting;
        }
        let types = self.types.values().map(|status| status.standing(offset));
        types.max().unwrap_or(Standing::Reached)
    }

    /// Whether it may be that of a node like this.
    fn concerns(&self, node: Option<&Glob>) -> bool {
        self.types.is_empty() || node.is_none_or(|node| node.matches(self.node.id()))
    }
}

impl Ledger {
    /// How the streams, of nodes like `node`, stand with an offset at this time. One whose node is not known yet
    /// counts while it keeps others waiting.
    #[must_use]
    pub fn progress(&self, offset: Offset, node: Option<&Glob>, now: Timestamp) -> Progress {
        let mut progress = Progress::default();
        for stream in self.snapshot() {
            match stream.standing(offset, now) {
                Standing::Reached if stream.concerns(node) && !stream.types.is_empty() => {
                    progress.reached += 1
                }
                Standing::Rejected | Standing::Waiting if stream.concerns(node) => {
                    progress.behind.push(stream)
                }
                Standing::Reached | Standing::Rejected | Standing::Waiting => {}
            }
        }
        progress
    }
}
