//! The log on a simulated disk: the blocks, the chain, the witness and the check of the tail are the real ones; where
//! the real log has sled, there is a file of blocks, one after the other.

use std::io;
use std::sync::{Arc, Mutex, OnceLock};

use foldplane::events::codec::{BlockView, Mark, Tail, encode_blocks};
use foldplane::events::log::{EventLog, Events, Head, LogError, LogReader, MemoryLog, relieves};
use foldplane::events::{Envelope, Offset};
use foldplane::projection::Snapshot;
use tokio::sync::watch;

use super::disk::{Disk, Health};

const BLOCKS: &str = "blocks";
const WITNESS: &str = "witness";

/// Before each block stands its length.
const LENGTH_BYTES: usize = 4;

/// The witness is synced once in so many commits: few, so that runs see both.
const COMMITS_UNSYNCED_MAX: u64 = 4;

/// The log, open for writing.
pub(crate) struct DiskLog {
    disk: Disk,
    /// What is durable, for readers.
    durable: MemoryLog,
    end: usize,
    sequence: u64,
    state: State,
    space: Space,
    observer: Observer,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Ready,
    Failed,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Space {
    Ample,
    Tight,
}

/// Sees whether anything is published before it is written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Observer {
    published: Arc<OnceLock<watch::Receiver<Arc<Snapshot>>>>,
    violations: Arc<Mutex<Vec<String>>>,
}

impl Observer {
    /// Where the owner of the log publishes.
    pub(crate) fn watch(&self, published: watch::Receiver<Arc<Snapshot>>) {
        self.published.set(published).expect("a log has one owner");
    }

    /// What must not be.
    pub(crate) fn violations(&self) -> Vec<String> {
        self.violations.lock().expect("nobody panics with it in hand").clone()
    }

    fn look(&self, durable: Offset) {
        let published = self.published.get().map(|published| published.borrow().offset());
        if published.is_some_and(|published| published != durable) {
            let violation = format!("{published:?} is published while {durable} is durable");
            self.violations.lock().expect("nobody panics with it in hand").push(violation);
        }
    }
}

/// What lies in the file of blocks, as far as it is whole.
struct Found {
    events: Vec<Envelope>,
    head: Head,
    end: usize,
}

impl DiskLog {
    /// Opens the log that is on the disk, or makes one.
    pub(crate) fn open(disk: &Disk) -> Result<Self, LogError> {
        let newest = Mark::newest(&disk.read(WITNESS)).map_err(|error| damaged(WITNESS, &error))?;
        let (sequence, mark) = match newest {
            Some(newest) => newest,
            None if disk.read(BLOCKS).is_empty() => create(disk)?,
            None => return Err(damaged(WITNESS, &"neither of its two slots holds what was written")),
        };
        let found = walk(disk, mark.head)?;
        disk.truncate(BLOCKS, found.end).map_err(store(BLOCKS))?;
        let durable = MemoryLog::with_events(&found.events)?;
        let (state, space, observer) = (State::Ready, Space::Ample, Observer::default());
        let mut log = Self { disk: disk.clone(), durable, end: found.end, sequence, state, space, observer };
        log.acknowledge(found.head)?;
        disk.sync(WITNESS).map_err(store(WITNESS))?;
        Ok(log)
    }

    /// Who sees what this log's owner publishes.
    pub(crate) fn observer(&self) -> Observer {
        self.observer.clone()
    }

    fn acknowledge(&mut self, head: Head) -> Result<(), LogError> {
        self.sequence += 1;
        let (at, slot) = Mark { head, oldest: Offset::new(1) }.seal(self.sequence);
        self.disk.write(WITNESS, at.try_into().expect("one of two slots"), &slot).map_err(store(WITNESS))?;
        if self.sequence.is_multiple_of(COMMITS_UNSYNCED_MAX) {
            self.disk.sync(WITNESS).map_err(store(WITNESS))?;
        }
        Ok(())
    }

    /// Whether these events may be written on a disk that is full.
    fn admit(&mut self, batch: &[Envelope]) -> Result<(), LogError> {
        if self.disk.health() != Health::Full {
            self.space = Space::Ample;
        }
        if self.space == Space::Ample || batch.iter().all(|envelope| relieves(&envelope.event)) {
            return Ok(());
        }
        Err(LogError::Full { path: BLOCKS.into(), free_needed: 1 })
    }

    fn write(&mut self, batch: &[Envelope]) -> Result<(), LogError> {
        let blocks = encode_blocks(self.durable.head(), batch)?;
        let mut end = self.end;
        for block in &blocks {
            let length = u32::try_from(block.bytes.len()).expect("blocks are small");
            let record = [length.to_le_bytes().as_slice(), &block.bytes].concat();
            self.disk.write(BLOCKS, end, &record).map_err(store(BLOCKS))?;
            end += record.len();
        }
        self.disk.sync(BLOCKS).map_err(store(BLOCKS))?;
        if let Some(last) = blocks.last() {
            self.acknowledge(last.head)?;
        }
        self.end = end;
        self.durable.append(batch)
    }
}

/// What the disk holds now, which must be at least what the witness says.
pub(crate) fn events_on(disk: &Disk) -> Result<Vec<Envelope>, LogError> {
    let newest = Mark::newest(&disk.read(WITNESS)).map_err(|error| damaged(WITNESS, &error))?;
    let Some((_, mark)) = newest else { return Err(damaged(WITNESS, &"it is not whole")) };
    walk(disk, mark.head).map(|found| found.events)
}

/// An unlucky disk: what opening makes of the log when a byte of it has changed, or its end is missing.
pub(crate) fn events_after_damage(disk: &Disk) -> Result<Vec<Envelope>, LogError> {
    events_on(&disk.damaged_copy(BLOCKS))
}

fn create(disk: &Disk) -> Result<(u64, Mark), LogError> {
    let mark = Mark { head: Head::default(), oldest: Offset::new(1) };
    for sequence in [1, 2] {
        let (at, slot) = mark.seal(sequence);
        disk.write(WITNESS, at.try_into().expect("one of two slots"), &slot).map_err(store(WITNESS))?;
        disk.sync(WITNESS).map_err(store(WITNESS))?;
    }
    Ok((2, mark))
}

/// Reads the blocks up to the first that is not whole, as sled cuts off what it cannot read.
fn walk(disk: &Disk, acknowledged: Head) -> Result<Found, LogError> {
    let contents = disk.read(BLOCKS);
    let mut tail = Tail::after(Head::default(), acknowledged);
    let (mut events, mut end) = (Vec::new(), 0);
    while let Some(block) = contents.get(end..).and_then(whole_block) {
        let view = BlockView::parse(block).expect("it is whole");
        tail.take(&view).map_err(|error| damaged(BLOCKS, &error))?;
        for event in view.events() {
            events.push(event.map_err(|(_, error)| damaged(BLOCKS, &error))?);
        }
        end += LENGTH_BYTES + block.len();
    }
    let head = tail.end().map_err(|error| damaged(BLOCKS, &error))?;
    Ok(Found { events, head, end })
}

fn whole_block(bytes: &[u8]) -> Option<&[u8]> {
    let (length, rest) = bytes.split_first_chunk::<LENGTH_BYTES>()?;
    let block = rest.get(..u32::from_le_bytes(*length).try_into().ok()?)?;
    BlockView::parse(block).is_ok().then_some(block)
}

fn damaged(file: &str, detail: &impl std::fmt::Display) -> LogError {
    LogError::Damaged { place: file.to_owned(), detail: detail.to_string() }
}

fn store(file: &'static str) -> impl FnOnce(io::Error) -> LogError {
    move |source| LogError::Store { action: "write", path: file.into(), source }
}

impl LogReader for DiskLog {
    fn head(&self) -> Head {
        self.durable.head()
    }

    fn oldest(&self) -> Offset {
        self.durable.oldest()
    }

    fn head_at(&self, offset: Offset) -> Result<Head, LogError> {
        self.durable.head_at(offset)
    }

    fn read(&self, from: Offset) -> Result<Events<'_>, LogError> {
        self.durable.read(from)
    }
}

impl EventLog for DiskLog {
    fn append(&mut self, batch: &[Envelope]) -> Result<(), LogError> {
        self.observer.look(self.durable.head().offset);
        if self.state == State::Failed {
            return Err(LogError::NeedsRecovery);
        }
        self.admit(batch)?;
        let result = self.write(batch);
        if let Err(error) = &result {
            self.state = State::Failed;
            if matches!(error, LogError::Store { source, .. } if source.kind() == io::ErrorKind::StorageFull)
            {
                self.space = Space::Tight;
                self.disk.release_reserve();
            }
        }
        result
    }

    fn recover(&mut self) -> Result<(), LogError> {
        if self.state == State::Ready {
            return Ok(());
        }
        let head = self.durable.head();
        self.acknowledge(head)?;
        self.disk.sync(WITNESS).map_err(store(WITNESS))?;
        self.disk.forget_cached(BLOCKS);
        self.disk.truncate(BLOCKS, self.end).map_err(store(BLOCKS))?;
        let found = walk(&self.disk, head)?;
        assert_eq!((found.head, found.end), (head, self.end), "the log after its recovery");
        self.state = State::Ready;
        Ok(())
    }

    fn truncate_before(&mut self, _: Offset) -> Result<Offset, LogError> {
        Ok(self.oldest())
    }

    fn reader(&self) -> Arc<dyn LogReader> {
        self.durable.reader()
    }
}
