//! Which old segments may go.

use super::segment::Header;
use crate::events::{Offset, Timestamp};

/// How long events are kept at least, by age and by size. Whole segments go, and only those below the oldest
/// saved state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Events older than this may go, in milliseconds. Nothing keeps all, whatever their age.
    pub age_ms: Option<u64>,
    /// The oldest events may go while the log takes more than this on the disk, in bytes. Nothing keeps all.
    pub bytes: Option<u64>,
}

/// A segment is closed when it has been filled for this part of the retention time, so that events do not
/// outlive it by much only because there are few of them.
const AGE_PARTS: u64 = 4;

impl Retention {
    /// Whether a segment that began to be filled at `since` holds enough of the retention time.
    pub(super) fn is_segment_old(&self, since: Timestamp, now: Timestamp) -> bool {
        let age = now.as_millis().saturating_sub(since.as_millis());
        self.age_ms.is_some_and(|max| age > 0 && age >= max / AGE_PARTS)
    }

    /// The first event to keep, given the row of segments with their sizes, and the first event that is needed.
    pub(super) fn keep_from(&self, row: &[(Header, u64)], now: Timestamp, needed: Offset) -> Offset {
        let mut bytes: u64 = row.iter().map(|(_, size)| size).sum();
        let mut keep_from = Offset::ZERO;
        for ((_, size), (next, _)) in row.iter().zip(row.iter().skip(1)) {
            let age = now.as_millis().saturating_sub(next.began.as_millis());
            let old = self.age_ms.is_some_and(|max| age > max);
            let large = self.bytes.is_some_and(|max| bytes > max);
            if next.first() > needed || !(old || large) {
                break;
            }
            keep_from = next.first();
            bytes -= size;
        }
        keep_from
    }
}
