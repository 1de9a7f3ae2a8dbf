//! Reading: many readers beside the one writer, who holds none of them up.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};
use std::vec;

use imbl::Vector;

use super::super::{Events, LogError, LogReader, check_within};
use super::blocks::{at, before_block_of, head_at, missing, parse, undecodable};
use super::folder::{self, Access};
use super::segment::{Header, Segment, size_of};
use crate::events::{Envelope, Head, Offset};

/// How many blocks a reader takes at once: some 2 MB at most, and few enough that the handle on the newest
/// segment is never held for long.
const BLOCKS_AT_ONCE: usize = 64;

/// How many blocks a reader takes first; then twice as many each time, so that who wants ten events does not pay for
/// thousands.
const BLOCKS_FIRST: usize = 2;

/// What the writer and all readers of a log share.
#[derive(Debug)]
pub(super) struct Shared {
    dir: PathBuf,
    access: Access,
    cache_bytes: u64,
    view: RwLock<View>,
    /// Older segments that some reader has open.
    opened: Mutex<BTreeMap<Offset, Weak<Segment>>>,
}

#[derive(Debug)]
struct View {
    head: Head,
    segments: Vector<Header>,
    /// The newest segment; nothing while it is reopened after a failure.
    active: Option<Arc<Segment>>,
}

impl Shared {
    pub(super) fn new(
        dir: &Path,
        access: Access,
        cache_bytes: u64,
        row: Vec<Header>,
        head: Head,
        active: Segment,
    ) -> Arc<Self> {
        let view = View { head, segments: row.into(), active: Some(Arc::new(active)) };
        let opened = Mutex::new(BTreeMap::new());
        Arc::new(Self { dir: dir.to_owned(), access, cache_bytes, view: RwLock::new(view), opened })
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn active(&self) -> Result<Arc<Segment>, LogError> {
        self.view().active.clone().ok_or(LogError::NeedsRecovery)
    }

    pub(super) fn advance(&self, head: Head) {
        self.view_mut().head = head;
    }

    pub(super) fn begin_segment(&self, segment: Segment) {
        let mut view = self.view_mut();
        view.segments.push_back(segment.header());
        view.active = Some(Arc::new(segment));
    }

    /// Drops the newest segment's handle, and says which it was.
    pub(super) fn close_active(&self) -> Header {
        let mut view = self.view_mut();
        view.active = None;
        *view.segments.last().expect("a log has at least one segment")
    }

    pub(super) fn reopen_active(&self, segment: Segment) {
        self.view_mut().active = Some(Arc::new(segment));
    }

    /// The segments whose events are all below `keep_from`, each with the first offset of the one after it.
    pub(super) fn segments_below(&self, keep_from: Offset) -> Vec<(Header, Offset)> {
        let view = self.view();
        let next = view.segments.iter().skip(1).map(Header::first);
        view.segments.iter().copied().zip(next).take_while(|(_, next)| *next <= keep_from).collect()
    }

    /// The segments with what each takes on the disk.
    pub(super) fn segment_sizes(&self) -> Vec<(Header, u64)> {
        let segments = folder::segments(&self.dir);
        let row: Vec<Header> = self.view().segments.iter().copied().collect();
        row.into_iter().map(|header| (header, size_of(&segments.join(header.folder())))).collect()
    }

    pub(super) fn forget_below(&self, oldest: Offset) {
        self.view_mut().segments.retain(|header| header.first() >= oldest);
    }

    pub(super) fn read_from(&self, from: Offset) -> Result<Events<'_>, LogError> {
        let (end, oldest) = (self.head().offset, self.oldest());
        if from < oldest {
            return Err(LogError::Gone { requested: from, oldest });
        }
        Ok(Box::new(Cursor {
            shared: self,
            from,
            end,
            place: Place::Start,
            blocks: BLOCKS_FIRST,
            segment: None,
            ready: Vec::new().into_iter(),
        }))
    }

    /// The segment that holds the event at `offset`, and the last offset in it, where another one follows.
    fn segment_of(&self, offset: Offset) -> Result<(Arc<Segment>, Option<Offset>), LogError> {
        let view = self.view();
        let index = view.segments.iter().take_while(|header| header.first() <= offset).count();
        let Some(header) = index.checked_sub(1).and_then(|index| view.segments.get(index)).copied() else {
            let oldest = view.segments.front().map_or(Offset::ZERO, Header::first);
            return Err(LogError::Gone { requested: offset, oldest });
        };
        match view.segments.get(index) {
            None => Ok((view.active.clone().ok_or(LogError::NeedsRecovery)?, None)),
            Some(next) => {
                let last = next.before.offset;
                drop(view);
                Ok((self.open_older(header)?, Some(last)))
            }
        }
    }

    /// Opens an older segment, or shares it with another reader that has it open.
    fn open_older(&self, header: Header) -> Result<Arc<Segment>, LogError> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.retain(|_, segment| segment.strong_count() > 0);
        if let Some(segment) = opened.get(&header.first()).and_then(Weak::upgrade) {
            return Ok(segment);
        }
        let segment =
            Arc::new(Segment::open(&folder::segments(&self.dir), header, self.access, self.cache_bytes)?);
        opened.insert(header.first(), Arc::downgrade(&segment));
        Ok(segment)
    }

    fn view(&self) -> RwLockReadGuard<'_, View> {
        self.view.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn view_mut(&self) -> RwLockWriteGuard<'_, View> {
        self.view.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LogReader for Shared {
    fn head(&self) -> Head {
        self.view().head
    }

    fn oldest(&self) -> Offset {
        self.view().segments.front().map_or(Offset::ZERO.next(), Header::first)
    }

    fn head_at(&self, offset: Offset) -> Result<Head, LogError> {
        check_within(offset, self.oldest(), self.head().offset)?;
        if let Some(header) = self.view().segments.iter().find(|header| header.before.offset == offset) {
            return Ok(header.before);
        }
        let (segment, _) = self.segment_of(offset)?;
        head_at(&segment, offset)
    }

    fn read(&self, from: Offset) -> Result<Events<'_>, LogError> {
        self.read_from(from)
    }
}

/// One reader's way through the log.
struct Cursor<'a> {
    shared: &'a Shared,
    from: Offset,
    end: Offset,
    place: Place,
    blocks: usize,
    /// An older segment stays open while it is read, so that each is opened once.
    segment: Option<Arc<Segment>>,
    ready: vec::IntoIter<Envelope>,
}

/// Where a cursor stands.
#[derive(Clone, Copy)]
enum Place {
    /// Nothing was read yet.
    Start,
    /// After this head.
    After(Head),
    /// At the end, or behind an error.
    Done,
}

impl Iterator for Cursor<'_> {
    type Item = Result<Envelope, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(envelope) = self.ready.next() {
                return Some(Ok(envelope));
            }
            match self.place {
                Place::Done => return None,
                Place::After(head) if head.offset >= self.end => return None,
                Place::Start if self.from > self.end => return None,
                Place::Start | Place::After(_) => {}
            }
            if let Err(error) = self.fill() {
                self.place = Place::Done;
                return Some(Err(error));
            }
        }
    }
}

impl Cursor<'_> {
    /// Reads the next blocks. Even where they are not wanted, the chain goes on through them.
    fn fill(&mut self) -> Result<(), LogError> {
        let wanted = match self.place {
            Place::After(head) => head.offset.next(),
            Place::Start | Place::Done => self.from,
        };
        let (segment, last) = self.shared.segment_of(wanted)?;
        let before = match self.place {
            Place::After(head) => head,
            Place::Start | Place::Done => before_block_of(&segment, wanted)?,
        };
        let end = last.unwrap_or(self.end).min(self.end);
        let mut head = before;
        let mut ready = Vec::new();
        for (key, bytes) in segment.blocks_from(before.offset.next(), self.blocks)? {
            if key > end {
                break;
            }
            let block = parse(&segment, key, &bytes)?;
            block.check_link(head).map_err(|error| at(&segment, key, &error))?;
            head = block.head();
            for event in block.events() {
                let envelope = event.map_err(|(offset, error)| undecodable(&segment, offset, &error))?;
                if envelope.offset >= self.from {
                    ready.push(envelope);
                }
            }
        }
        if head == before {
            return Err(missing(&segment, head.offset.next(), end));
        }
        self.blocks = (self.blocks * 2).min(BLOCKS_AT_ONCE);
        self.segment = last.map(|_| segment);
        self.place = Place::After(head);
        self.ready = ready.into_iter();
        Ok(())
    }
}
