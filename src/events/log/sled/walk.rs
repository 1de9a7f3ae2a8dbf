//! Every event of a stopped log as it lies there, segment by segment, for tools that must see damage and go on.

use std::path::Path;

use super::super::LogError;
use super::blocks::{at, missing, parse};
use super::folder::{self, Access};
use super::row::{self, Row};
use super::segment::{Header, Segment};
use crate::events::codec::{BlockError, Mark};
use crate::events::{Head, Offset};

/// How many blocks are held at once: some 2 MB at most.
const BLOCKS_AT_ONCE: usize = 64;

/// How much memory the store may use for one segment: it is read once, from its start to its end.
const CACHE_BYTES: u64 = 16 << 20;

/// One event, as its bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step<'a> {
    /// The head of the log with it.
    pub(super) head: Head,
    /// The schema version of its bytes.
    pub(super) schema: u16,
    /// Its bytes.
    pub(super) body: &'a [u8],
}

/// The row of segments; where it is not whole, with what is wrong and the segments that are there all the same.
pub(super) fn row(dir: &Path, mark: Mark) -> (Row, Option<LogError>) {
    let segments = folder::segments(dir);
    match row::read(&segments, mark) {
        Ok(row) => (row, None),
        Err(error) => (row::read_what_is_there(&segments), Some(error)),
    }
}

/// Hands every event of the segment to `visit`, from its start up to the first damage.
///
/// Every block is handed over only when it is whole: its checksum, its place, and the chain over its events.
pub(super) fn walk<E: From<LogError>>(
    dir: &Path,
    header: Header,
    mut visit: impl FnMut(Step<'_>) -> Result<(), E>,
) -> Result<Head, E> {
    let segment = Segment::open(&folder::segments(dir), header, Access::Shared, CACHE_BYTES)?;
    let mut head = header.before;
    loop {
        let blocks = segment.blocks_from(head.offset.next(), BLOCKS_AT_ONCE)?;
        if blocks.is_empty() {
            return Ok(head);
        }
        for (key, bytes) in blocks {
            let block = parse(&segment, key, &bytes)?;
            block.check_link(head).map_err(|error| damage(&segment, head, key, &error))?;
            for body in block.bodies().flatten() {
                head = head.link(block.schema(), body);
                visit(Step { head, schema: block.schema(), body })?;
            }
        }
    }
}

/// A block that starts too late is no damage of its own: what is wrong is that others are missing.
fn damage(segment: &Segment, head: Head, key: Offset, error: &BlockError) -> LogError {
    if let BlockError::Place { found, expected } = error
        && found > expected
    {
        return missing(segment, head.offset.next(), Offset::new(key.get() - 1));
    }
    at(segment, key, error)
}
