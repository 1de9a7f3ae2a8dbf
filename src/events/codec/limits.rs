//! What an event may be as bytes, and why it is refused.

/// The oldest schema version that is read.
pub const SCHEMA_OLDEST: u16 = 1;

/// The schema version that is written, and the newest that is read.
pub const SCHEMA_NEWEST: u16 = 1;

/// The largest event, in bytes of its encoded body.
///
/// It has to fit into one block, and a block into what the store keeps in its own file
/// ([`BLOCK_BYTES_MAX`](super::BLOCK_BYTES_MAX)). A worker with a hundred endpoints and labels has about 10,000.
pub const EVENT_BYTES_MAX: usize = 24 * 1024;

/// Why an event has no bytes, or bytes have no event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// More than [`EVENT_BYTES_MAX`].
    #[error(
        "the event {name} has {bytes} bytes, at most {EVENT_BYTES_MAX} are kept: shorten its texts and labels"
    )]
    TooLarge {
        /// Which event.
        name: &'static str,
        /// How large it is.
        bytes: usize,
    },
    /// Written by a newer version of Foldplane.
    #[error("schema version {found} is newer than {SCHEMA_NEWEST}, the newest that this version reads")]
    Newer {
        /// The version found.
        found: u16,
    },
    /// No event has these bytes.
    #[error("the bytes are no event of schema version {schema}: {detail}")]
    Malformed {
        /// Which definitions were tried.
        schema: u16,
        /// What does not fit.
        detail: String,
    },
}
