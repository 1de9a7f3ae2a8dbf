//! Events side by side: what a log stores as one value.
//!
//! A block is checked as a whole (CRC-32C) before anything in it is decoded, because a flipped byte most
//! often decodes to another event without an error.

use super::body::{decode_body, encode_body};
use super::limits::BodyError;
use crate::events::{ChainHash, Envelope, Head, Offset};

/// The block layout that is written, and the newest that is read.
pub const BLOCK_FORMAT: u8 = 1;

/// The largest block, in bytes with all around it.
///
/// The store keeps up to seventeen values in one leaf before it splits it. A leaf of more than a quarter of the
/// store's own segments (2 MiB, `log::sled`) goes to a file that is never synced; seventeen such blocks are less.
pub const BLOCK_BYTES_MAX: usize = 30_000;

const MAGIC: u8 = 0xF7;
const HEADER_BYTES: usize = 20;
const LENGTH_BYTES: usize = 4;
const CHAIN_BYTES: usize = 32;
const CRC_BYTES: usize = 4;
const FRAME_BYTES: usize = HEADER_BYTES + CHAIN_BYTES + CRC_BYTES;

/// Why bytes are no block, or not the block that belongs here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    /// Less than the smallest block.
    #[error("a block has at least {FRAME_BYTES} bytes, here are {0}")]
    Short(usize),
    /// The first byte is not that of a block.
    #[error("the first byte is {0:#04x} instead of {MAGIC:#04x}")]
    Magic(u8),
    /// The layout is a newer one.
    #[error("block format {0} is newer than {BLOCK_FORMAT}, the newest that this version reads")]
    Newer(u8),
    /// The layout never existed.
    #[error("there is no block format {0}")]
    Format(u8),
    /// The checksum does not fit the bytes.
    #[error("the checksum is {stored:08x}, the bytes have {computed:08x}")]
    Checksum {
        /// What the block says.
        stored: u32,
        /// What its bytes have.
        computed: u32,
    },
    /// Lengths and counts contradict each other.
    #[error("the lengths in it do not add up")]
    Lengths,
    /// The block does not start where the one before it ended.
    #[error("it starts at {found}, expected is {expected}")]
    Place {
        /// Where the block starts.
        found: Offset,
        /// Where it should.
        expected: Offset,
    },
    /// The events before or in this block are not those that were written.
    #[error("the hash chain is broken: {stored} is stored, {computed} follows from the events")]
    Chain {
        /// What the block says.
        stored: ChainHash,
        /// What follows from its events and the chain before it.
        computed: ChainHash,
    },
}

/// A block, encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its first event's place: the key under which it is stored.
    pub first: Offset,
    /// The head of a log that ends with it.
    pub head: Head,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// Puts events into as few blocks as the limit allows. A block holds events of one schema version.
#[derive(Debug)]
pub struct BlockBuilder {
    head: Head,
    open: Option<OpenBlock>,
    done: Vec<Block>,
}

#[derive(Debug)]
struct OpenBlock {
    first: Offset,
    schema: u16,
    count: u32,
    bodies: Vec<u8>,
}

impl BlockBuilder {
    /// Blocks that go on after `head`.
    #[must_use]
    pub fn after(head: Head) -> Self {
        Self { head, open: None, done: Vec::new() }
    }

    /// Adds one event, whose body is at most [`EVENT_BYTES_MAX`](super::EVENT_BYTES_MAX) bytes long.
    pub fn push(&mut self, schema: u16, body: &[u8]) {
        let length = u32::try_from(body.len()).expect("a body is at most EVENT_BYTES_MAX long");
        let added = FRAME_BYTES + LENGTH_BYTES + body.len();
        let fits = |open: &OpenBlock| open.schema == schema && open.bodies.len() + added <= BLOCK_BYTES_MAX;
        if !self.open.as_ref().is_some_and(fits) {
            self.close();
        }
        let first = self.head.offset.next();
        let open = self.open.get_or_insert_with(|| OpenBlock { first, schema, count: 0, bodies: Vec::new() });
        open.count += 1;
        open.bodies.extend_from_slice(&length.to_be_bytes());
        open.bodies.extend_from_slice(body);
        self.head = self.head.link(schema, body);
    }

    /// The head after everything that was added.
    #[must_use]
    pub fn head(&self) -> Head {
        self.head
    }

    /// The blocks, in order.
    #[must_use]
    pub fn finish(mut self) -> Vec<Block> {
        self.close();
        self.done
    }

    fn close(&mut self) {
        if let Some(open) = self.open.take() {
            self.done.push(open.seal(self.head));
        }
    }
}

impl OpenBlock {
    fn seal(self, head: Head) -> Block {
        let length = u32::try_from(self.bodies.len()).expect("a block is at most BLOCK_BYTES_MAX long");
        let mut bytes = Vec::with_capacity(FRAME_BYTES + self.bodies.len());
        bytes.extend_from_slice(&[MAGIC, BLOCK_FORMAT]);
        bytes.extend_from_slice(&self.schema.to_be_bytes());
        bytes.extend_from_slice(&self.count.to_be_bytes());
        bytes.extend_from_slice(&self.first.get().to_be_bytes());
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(&self.bodies);
        bytes.extend_from_slice(&head.chain.0);
        let checksum = crc32c::crc32c(&bytes);
        bytes.extend_from_slice(&checksum.to_be_bytes());
        Block { first: self.first, head, bytes }
    }
}

/// The batch as blocks that go on after `head`.
///
/// # Errors
///
/// [`BodyError::TooLarge`] when one event is too large; the whole batch is refused.
pub fn encode_blocks(head: Head, batch: &[Envelope]) -> Result<Vec<Block>, BodyError> {
    let mut builder = BlockBuilder::after(head);
    for envelope in batch {
        let body = encode_body(envelope)?;
        builder.push(body.schema, &body.bytes);
    }
    Ok(builder.finish())
}

/// A block whose checksum and lengths are right, as it lies in its bytes.
#[derive(Clone, Copy, Debug)]
pub struct BlockView<'a> {
    schema: u16,
    first: Offset,
    count: u32,
    bodies: &'a [u8],
    chain: ChainHash,
}

impl<'a> BlockView<'a> {
    /// Checks the bytes and finds the parts.
    ///
    /// # Errors
    ///
    /// Whatever is wrong with them.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, BlockError> {
        let short = BlockError::Short(bytes.len());
        let ([magic, format], _) = bytes.split_first_chunk().ok_or(short.clone())?;
        if *magic != MAGIC {
            return Err(BlockError::Magic(*magic));
        }
        let (content, stored) = bytes.split_last_chunk::<CRC_BYTES>().ok_or(short.clone())?;
        let (stored, computed) = (u32::from_be_bytes(*stored), crc32c::crc32c(content));
        if stored != computed {
            return Err(BlockError::Checksum { stored, computed });
        }
        match *format {
            BLOCK_FORMAT => Self::parse_content(content).ok_or(short)?,
            newer if newer > BLOCK_FORMAT => Err(BlockError::Newer(newer)),
            never => Err(BlockError::Format(never)),
        }
    }

    fn parse_content(content: &'a [u8]) -> Option<Result<Self, BlockError>> {
        let (_, rest) = content.split_first_chunk::<2>()?;
        let (schema, rest) = rest.split_first_chunk()?;
        let (count, rest) = rest.split_first_chunk()?;
        let (first, rest) = rest.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let (bodies, chain) = rest.split_last_chunk()?;
        let view = Self {
            schema: u16::from_be_bytes(*schema),
            first: Offset::new(u64::from_be_bytes(*first)),
            count: u32::from_be_bytes(*count),
            bodies,
            chain: ChainHash(*chain),
        };
        let counted = view.bodies().filter(|body| body.is_some()).count();
        let whole = usize::try_from(u32::from_be_bytes(*length)).ok() == Some(bodies.len())
            && u32::try_from(counted) == Ok(view.count)
            && view.bodies().all(|body| body.is_some())
            && counted > 0
            && view.first <= Offset::MAX;
        Some(if whole { Ok(view) } else { Err(BlockError::Lengths) })
    }

    /// Its first event's place.
    #[must_use]
    pub fn first(&self) -> Offset {
        self.first
    }

    /// The schema version of its events.
    #[must_use]
    pub fn schema(&self) -> u16 {
        self.schema
    }

    /// The head of a log that ends with it, as the block says.
    #[must_use]
    pub fn head(&self) -> Head {
        Head {
            offset: Offset::new(self.first.get().saturating_add(u64::from(self.count) - 1)),
            chain: self.chain,
        }
    }

    /// The encoded events; `None` where a length points outside of the block, which ends the row.
    #[must_use]
    pub fn bodies(&self) -> Bodies<'a> {
        Bodies { rest: self.bodies }
    }

    /// Whether the block goes on right after `before`, and its events give the hash that it says.
    ///
    /// # Errors
    ///
    /// [`BlockError::Place`] or [`BlockError::Chain`].
    pub fn check_link(&self, before: Head) -> Result<(), BlockError> {
        let expected = before.offset.next();
        if self.first != expected {
            return Err(BlockError::Place { found: self.first, expected });
        }
        let computed = self.bodies().flatten().fold(before, |head, body| head.link(self.schema, body)).chain;
        if computed != self.chain {
            return Err(BlockError::Chain { stored: self.chain, computed });
        }
        Ok(())
    }

    /// The events, brought to today's definitions.
    pub fn events(&self) -> impl Iterator<Item = Result<Envelope, (Offset, BodyError)>> + use<'a> {
        let schema = self.schema;
        let offsets = (self.first.get()..).map(Offset::new);
        offsets
            .zip(self.bodies().flatten())
            .map(move |(offset, body)| decode_body(offset, schema, body).map_err(|error| (offset, error)))
    }
}

/// Encoded events, one after the other.
#[derive(Clone, Debug)]
pub struct Bodies<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Bodies<'a> {
    type Item = Option<&'a [u8]>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let parts = self.rest.split_first_chunk::<LENGTH_BYTES>().and_then(|(length, rest)| {
            rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)
        });
        self.rest = parts.map_or(&[], |(_, rest)| rest);
        Some(parts.map(|(body, _)| body))
    }
}
