//! The blocks of a segment, checked, and what is said when one is not what was written.

use super::super::LogError;
use super::segment::Segment;
use crate::events::codec::{BLOCK_FORMAT, BlockError, BlockView, BodyError, SCHEMA_NEWEST};
use crate::events::{Head, Offset};

/// The block that lies under `key`.
pub(super) fn parse<'a>(segment: &Segment, key: Offset, bytes: &'a [u8]) -> Result<BlockView<'a>, LogError> {
    let block = BlockView::parse(bytes).map_err(|error| at(segment, key, &error))?;
    if block.first() == key {
        Ok(block)
    } else {
        Err(at(segment, key, &BlockError::Place { found: block.first(), expected: key }))
    }
}

/// The head before the block that holds `offset`: the end of the block before it, or of the segment before.
///
/// Where events are missing it is the end of the last block before the hole.
pub(super) fn before_block_of(segment: &Segment, offset: Offset) -> Result<Head, LogError> {
    let before = segment.header().before;
    let mut offset = offset;
    loop {
        if offset <= before.offset.next() {
            return Ok(before);
        }
        let previous = Offset::new(offset.get() - 1);
        let Some((key, bytes)) = segment.block_at(previous)? else { return Ok(before) };
        let block = parse(segment, key, &bytes)?;
        if block.head().offset <= previous {
            return Ok(block.head());
        }
        offset = block.first();
    }
}

/// The head of the log when `offset`, which is in this segment, was its last event.
pub(super) fn head_at(segment: &Segment, offset: Offset) -> Result<Head, LogError> {
    let before = before_block_of(segment, offset)?;
    let found = segment.block_at(offset)?;
    let Some((key, bytes)) = found else { return Err(missing(segment, offset, offset)) };
    let block = parse(segment, key, &bytes)?;
    block.check_link(before).map_err(|error| at(segment, key, &error))?;
    let wanted = usize::try_from(offset.since(before.offset)).unwrap_or(usize::MAX);
    let head =
        block.bodies().flatten().take(wanted).fold(before, |head, body| head.link(block.schema(), body));
    if head.offset == offset { Ok(head) } else { Err(missing(segment, head.offset.next(), offset)) }
}

/// What is wrong with the block at `offset`.
pub(super) fn at(segment: &Segment, offset: Offset, error: &BlockError) -> LogError {
    match error {
        BlockError::Newer(found) => LogError::Newer {
            place: place(segment, offset),
            found: (*found).into(),
            known: BLOCK_FORMAT.into(),
        },
        BlockError::Short(_)
        | BlockError::Magic(_)
        | BlockError::Format(_)
        | BlockError::Checksum { .. }
        | BlockError::Lengths
        | BlockError::Place { .. }
        | BlockError::Chain { .. } => {
            LogError::Damaged { place: place(segment, offset), detail: error.to_string() }
        }
    }
}

/// What is wrong with the event at `offset`.
pub(super) fn undecodable(segment: &Segment, offset: Offset, error: &BodyError) -> LogError {
    match error {
        BodyError::Newer { found } => LogError::Newer {
            place: place(segment, offset),
            found: (*found).into(),
            known: SCHEMA_NEWEST.into(),
        },
        BodyError::Malformed { .. } | BodyError::TooLarge { .. } => {
            LogError::Damaged { place: place(segment, offset), detail: error.to_string() }
        }
    }
}

/// Events that should be there are not.
pub(super) fn missing(segment: &Segment, first: Offset, last: Offset) -> LogError {
    let detail = format!("the events from {first} to {last} are missing");
    LogError::Damaged { place: place(segment, first), detail }
}

fn place(segment: &Segment, offset: Offset) -> String {
    format!("{} {offset}", segment.path().display())
}
