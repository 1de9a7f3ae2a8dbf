//! Small files that say what they are and notice when they were altered: witness, segment header, checkpoint.

/// The layout that is written, and the newest that is read.
const FORMAT: u8 = 1;
const MAGIC: [u8; 3] = *b"FPL";
const HEADER_BYTES: usize = 13;
const CRC_BYTES: usize = 4;

/// What a frame holds, so that one file in another's place is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// The acknowledged head.
    Witness,
    /// How a segment goes on after the one before it.
    Segment,
    /// A saved state.
    Checkpoint,
}

impl FrameKind {
    const fn tag(self) -> u8 {
        match self {
            Self::Witness => b'w',
            Self::Segment => b's',
            Self::Checkpoint => b'c',
        }
    }
}

/// Why bytes are no such frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Something is missing or altered.
    #[error("its bytes are not what was written")]
    Damaged,
    /// The layout is a newer one.
    #[error("format {0} is newer than {FORMAT}, the newest that this version reads")]
    Newer(u8),
}

/// The payload with all that is needed to recognise it again.
#[must_use]
pub fn seal_frame(kind: FrameKind, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES + payload.len() + CRC_BYTES);
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&[kind.tag(), FORMAT]);
    bytes.extend_from_slice(&(payload.len() as u64).to_be_bytes());
    bytes.extend_from_slice(payload);
    let checksum = crc32c::crc32c(&bytes);
    bytes.extend_from_slice(&checksum.to_be_bytes());
    bytes
}

/// The payload of the frame at the start of `bytes`; what follows the frame is not looked at.
///
/// # Errors
///
/// [`FrameError`], and nothing of the payload.
pub fn open_frame(kind: FrameKind, bytes: &[u8]) -> Result<&[u8], FrameError> {
    let (header, rest) = bytes.split_first_chunk::<HEADER_BYTES>().ok_or(FrameError::Damaged)?;
    let [m0, m1, m2, tag, format, length @ ..] = *header;
    if [m0, m1, m2] != MAGIC || tag != kind.tag() {
        return Err(FrameError::Damaged);
    }
    let length = usize::try_from(u64::from_be_bytes(length)).map_err(|_| FrameError::Damaged)?;
    let (payload, rest) = rest.split_at_checked(length).ok_or(FrameError::Damaged)?;
    let (stored, _) = rest.split_first_chunk::<CRC_BYTES>().ok_or(FrameError::Damaged)?;
    let computed = crc32c::crc32c_append(crc32c::crc32c(header), payload);
    if u32::from_be_bytes(*stored) != computed {
        return Err(FrameError::Damaged);
    }
    match format {
        FORMAT => Ok(payload),
        newer if newer > FORMAT => Err(FrameError::Newer(newer)),
        _ => Err(FrameError::Damaged),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flip_and_every_cut_is_noticed() {
        let bytes = seal_frame(FrameKind::Witness, b"payload");
        assert_eq!(open_frame(FrameKind::Witness, &bytes), Ok(b"payload".as_slice()));
        assert_eq!(open_frame(FrameKind::Checkpoint, &bytes), Err(FrameError::Damaged));
        for index in 0..bytes.len() {
            for bit in 0..8 {
                let mut flipped = bytes.clone();
                flipped[index] ^= 1 << bit;
                assert!(open_frame(FrameKind::Witness, &flipped).is_err(), "byte {index} bit {bit}");
            }
            assert!(open_frame(FrameKind::Witness, &bytes[..index]).is_err(), "cut at {index}");
        }
    }

    #[test]
    fn a_newer_layout_is_named() {
        let mut bytes = seal_frame(FrameKind::Segment, b"");
        bytes[4] = 9;
        let end = bytes.len() - CRC_BYTES;
        let checksum = crc32c::crc32c(&bytes[..end]).to_be_bytes();
        bytes[end..].copy_from_slice(&checksum);
        assert_eq!(open_frame(FrameKind::Segment, &bytes), Err(FrameError::Newer(9)));
    }
}
