//! How facts become bytes, and back (docs/FORMAT.md). Pure: bytes in, events out.

mod block;
mod body;
mod frame;
mod limits;
mod mark;
mod schema;
mod tail;

pub use block::{
    BLOCK_BYTES_MAX, BLOCK_FORMAT, Block, BlockBuilder, BlockError, BlockView, Bodies, encode_blocks,
};
pub use body::{Body, check_size, decode_body, encode_body};
pub use frame::{FrameError, FrameKind, open_frame, seal_frame};
pub use limits::{BodyError, EVENT_BYTES_MAX, SCHEMA_NEWEST, SCHEMA_OLDEST};
pub use mark::{Mark, SLOT_BYTES};
pub use tail::{Tail, TailError};
