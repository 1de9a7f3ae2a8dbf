//! A log on a pretended disk, which fails when it is told to, and which sees whether anything is published before it
//! is written.

use std::io;
use std::sync::{Arc, Mutex, OnceLock};

use foldplane::events::log::{
    EventLog, Events, Head, LogError, LogReader, MemoryFaults, MemoryLog, StoreHealth,
};
use foldplane::events::{Envelope, Offset};
use foldplane::projection::Snapshot;
use tokio::sync::watch;

/// What is done from outside to a disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Control {
    faults: MemoryFaults,
    dying: Arc<Mutex<Option<Dying>>>,
    published: Arc<OnceLock<watch::Receiver<Arc<Snapshot>>>>,
    violations: Arc<Mutex<Vec<String>>>,
}

/// What becomes of the writes of a process that is about to die.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Dying {
    Lost,
    Kept,
}

impl Control {
    /// From now on writes fail, or work.
    pub(crate) fn set(&self, health: StoreHealth) {
        self.faults.set(health);
    }

    /// The process is about to die.
    pub(crate) fn die(&self, dying: Dying) {
        *self.dying.lock().unwrap() = Some(dying);
    }

    /// Where the owner of the disk publishes.
    pub(crate) fn watch(&self, published: watch::Receiver<Arc<Snapshot>>) {
        self.published.set(published).expect("a disk has one owner");
    }

    /// What the disk has seen that must not be.
    pub(crate) fn violations(&self) -> Vec<String> {
        self.violations.lock().unwrap().clone()
    }
}

/// The disk.
pub(crate) struct Disk {
    log: MemoryLog,
    control: Control,
}

impl Disk {
    /// A disk that holds these events, as a process finds it that starts now.
    pub(crate) fn with(events: &[Envelope]) -> (Self, Control) {
        let log = MemoryLog::with_events(events).expect("events without a gap");
        let control = Control { faults: log.faults(), ..Control::default() };
        (Self { log, control: control.clone() }, control)
    }

    fn watch_for_early_news(&self) {
        let published = self.control.published.get().map(|published| published.borrow().offset());
        let durable = self.log.head().offset;
        if published.is_some_and(|published| published != durable) {
            let violation = format!("{published:?} is published while {durable} is durable");
            self.control.violations.lock().unwrap().push(violation);
        }
    }
}

impl LogReader for Disk {
    fn head(&self) -> Head {
        self.log.head()
    }

    fn oldest(&self) -> Offset {
        self.log.oldest()
    }

    fn head_at(&self, offset: Offset) -> Result<Head, LogError> {
        self.log.head_at(offset)
    }

    fn read(&self, from: Offset) -> Result<Events<'_>, LogError> {
        self.log.read(from)
    }
}

impl EventLog for Disk {
    fn append(&mut self, batch: &[Envelope]) -> Result<(), LogError> {
        self.watch_for_early_news();
        let dying = *self.control.dying.lock().unwrap();
        if !matches!(dying, Some(Dying::Lost)) {
            self.log.append(batch)?;
        }
        let dead = |_| LogError::Store {
            action: "append to",
            path: "the disk".into(),
            source: io::Error::other("the process is dying"),
        };
        dying.map_or(Ok(()), |dying| Err(dead(dying)))
    }

    fn recover(&mut self) -> Result<(), LogError> {
        self.log.recover()
    }

    fn truncate_before(&mut self, keep_from: Offset) -> Result<Offset, LogError> {
        self.log.truncate_before(keep_from)
    }

    fn reader(&self) -> Arc<dyn LogReader> {
        self.log.reader()
    }
}
