//! Saved states: the newest two, as the real ones are kept, one of which may have gone bad.

use foldplane::events::codec::{FrameKind, open_frame, seal_frame};
use foldplane::events::log::{CHECKPOINTS_KEPT, Head, LogReader};
use foldplane::projection::checkpoint;
use foldplane::projection::state::State;

/// Saved states, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct SavedStates {
    frames: Vec<(Head, Vec<u8>)>,
}

impl SavedStates {
    /// Saves the state of the log that ends in `head`.
    pub(crate) fn save(&mut self, head: Head, state: &State) {
        self.frames.retain(|(known, _)| known.offset != head.offset);
        self.frames.push((head, seal_frame(FrameKind::Checkpoint, &checkpoint::encode(state))));
        let outdated = self.frames.len().saturating_sub(CHECKPOINTS_KEPT);
        self.frames.drain(..outdated);
    }

    /// A bit of the newest one turns.
    pub(crate) fn spoil(&mut self, at: u32) {
        if let Some((_, frame)) = self.frames.last_mut() {
            let at = at as usize % frame.len();
            frame[at] ^= 1;
        }
    }

    /// The newest one that is whole and belongs to this log, or the beginning.
    pub(crate) fn newest(&self, log: &dyn LogReader) -> State {
        let whole = self.frames.iter().rev().find_map(|(head, frame)| {
            let same = log.head_at(head.offset).is_ok_and(|found| found == *head);
            let payload = open_frame(FrameKind::Checkpoint, frame).ok().filter(|_| same)?;
            Some(checkpoint::decode(payload).expect("a whole state can be read"))
        });
        whole.unwrap_or_default()
    }
}
