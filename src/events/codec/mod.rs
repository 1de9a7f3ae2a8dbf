//! How facts become bytes, and back (docs/FORMAT.md). Pure: bytes in, events out.

mod body;

pub use body::{
    Body, BodyError, EVENT_BYTES_MAX, SCHEMA_NEWEST, SCHEMA_OLDEST, check_size, decode_body, encode_body,
};
