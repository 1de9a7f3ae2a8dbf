//! A state as bytes, to shorten replay. Never the truth: the log is.

use super::state::State;

/// Changes whenever [`State`] or anything in it does: a checkpoint of another layout is not read, and the log is
/// folded from the start instead.
const LAYOUT: u16 = 8;

/// The largest state that is read back, in bytes: some ten million workers.
const STATE_BYTES_MAX: usize = 4 << 30;

/// Why a checkpoint cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// Another build wrote it.
    #[error("it has layout {found}, and this build reads layout {LAYOUT}")]
    OtherLayout {
        /// The layout found.
        found: u16,
    },
    /// Other hooks made it, and would have decided otherwise.
    #[error("it was made with the hooks {found:?}, and these are {wanted:?}")]
    OtherHooks {
        /// Theirs.
        found: String,
        /// Ours.
        wanted: String,
    },
    /// It is not what was written.
    #[error("it cannot be decoded: {0}")]
    Garbled(String),
}

/// The whole state, all offsets of versions among it, as bytes.
#[must_use]
pub fn encode(state: &State) -> Vec<u8> {
    let mut bytes = LAYOUT.to_be_bytes().to_vec();
    bincode::serde::encode_into_std_write(state, &mut bytes, bincode::config::standard())
        .expect("memory takes every write, and a state holds nothing that cannot be serialized");
    bytes
}

/// The state that these bytes are, made without hooks around it.
///
/// # Errors
///
/// [`CheckpointError`]; then the log is folded from the start.
pub fn decode(bytes: &[u8]) -> Result<State, CheckpointError> {
    decode_onto(bytes, State::default())
}

/// The state that these bytes are, which goes on with the hooks of `start`.
///
/// # Errors
///
/// [`CheckpointError`]; then the log is folded from `start`.
pub fn decode_onto(bytes: &[u8], start: State) -> Result<State, CheckpointError> {
    let saved = decode_any(bytes)?;
    if saved.around != start.around {
        let (found, wanted) = (saved.around.name, start.around.name);
        return Err(CheckpointError::OtherHooks { found, wanted });
    }
    Ok(State { around: start.around, ..saved })
}

fn decode_any(bytes: &[u8]) -> Result<State, CheckpointError> {
    let garbled = |detail: &str| CheckpointError::Garbled(detail.to_owned());
    let (layout, body) = bytes.split_first_chunk().ok_or_else(|| garbled("it is too short"))?;
    let found = u16::from_be_bytes(*layout);
    if found != LAYOUT {
        return Err(CheckpointError::OtherLayout { found });
    }
    let config = bincode::config::standard().with_limit::<STATE_BYTES_MAX>();
    match bincode::serde::borrow_decode_from_slice(body, config) {
        Ok((state, read)) if read == body.len() => Ok(state),
        Ok(_) => Err(garbled("bytes are left over")),
        Err(fault) => Err(garbled(&fault.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_comes_back_whole_and_damage_is_an_error() {
        let bytes = encode(&State::default());
        assert_eq!(decode(&bytes).unwrap(), State::default());
        assert!(matches!(decode(&[]), Err(CheckpointError::Garbled(_))));
        assert!(matches!(decode(&[9, 9]), Err(CheckpointError::OtherLayout { found: 0x0909 })));
        assert!(decode(&bytes[..bytes.len() - 1]).is_err());
        assert!(decode(&[bytes.as_slice(), &[0]].concat()).is_err());
    }
}
