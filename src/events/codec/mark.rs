//! What a witness says: how far a log was acknowledged. It lies in two slots that are written in turn, each within
//! one disk sector, so that a torn write leaves the other one.

use super::{FrameError, FrameKind, open_frame, seal_frame};
use crate::events::{ChainHash, Head, Offset};

/// The smallest unit that a disk writes whole, and the size of a slot.
pub const SLOT_BYTES: usize = 512;

/// What a witness says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// The last acknowledged event.
    pub head: Head,
    /// The first event that retention has left.
    pub oldest: Offset,
}

impl Mark {
    /// The slot of the writing with this number, and where it lies in the file.
    #[must_use]
    pub fn seal(self, sequence: u64) -> (u64, Vec<u8>) {
        let mut payload = Vec::new();
        payload.extend_from_slice(&sequence.to_be_bytes());
        payload.extend_from_slice(&self.oldest.get().to_be_bytes());
        payload.extend_from_slice(&self.head.offset.get().to_be_bytes());
        payload.extend_from_slice(&self.head.chain.0);
        let mut slot = seal_frame(FrameKind::Witness, &payload);
        slot.resize(SLOT_BYTES, 0);
        ((sequence % 2) * SLOT_BYTES as u64, slot)
    }

    /// The newest mark of a witness with the number of its writing; nothing where neither slot holds what was written.
    ///
    /// # Errors
    ///
    /// [`FrameError::Newer`].
    pub fn newest(slots: &[u8]) -> Result<Option<(u64, Self)>, FrameError> {
        let mut marks = Vec::new();
        for slot in slots.chunks(SLOT_BYTES) {
            match open_frame(FrameKind::Witness, slot) {
                Ok(payload) => marks.extend(decode(payload)),
                Err(FrameError::Damaged) => {}
                Err(newer @ FrameError::Newer(_)) => return Err(newer),
            }
        }
        Ok(marks.into_iter().max_by_key(|(sequence, _)| *sequence))
    }
}

fn decode(payload: &[u8]) -> Option<(u64, Mark)> {
    let (sequence, rest) = payload.split_first_chunk()?;
    let (oldest, rest) = rest.split_first_chunk()?;
    let (offset, rest) = rest.split_first_chunk()?;
    let chain = ChainHash(rest.try_into().ok()?);
    let head = Head { offset: Offset::new(u64::from_be_bytes(*offset)), chain };
    Some((u64::from_be_bytes(*sequence), Mark { head, oldest: Offset::new(u64::from_be_bytes(*oldest)) }))
}
