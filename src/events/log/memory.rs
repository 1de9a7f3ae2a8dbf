//! A log in memory, for tests, simulations and programs that need no past.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use imbl::Vector;

use super::{EventLog, Events, LogError, LogReader, check_follows, check_within};
use crate::events::codec::encode_body;
use crate::events::{Envelope, Head, Offset};

/// A log in memory. What it holds lives as long as the log or any of its readers.
///
/// ```
/// use foldplane::events::log::{EventLog, LogReader, MemoryLog};
/// use foldplane::events::{Actor, Envelope, Event, Offset, ReplicaId, Timestamp};
/// let mut log = MemoryLog::new();
/// let event = Event::ReplicaStarted { replica: ReplicaId::new("r1").unwrap(), version: "0.1.0".to_owned() };
/// let envelope = Envelope {
///     offset: Offset::new(1),
///     recorded_at: Timestamp::from_millis(0),
///     actor: Actor::System,
///     correlation: None,
///     event,
/// };
/// log.append(std::slice::from_ref(&envelope)).unwrap();
/// assert_eq!(log.read(Offset::new(1)).unwrap().next().unwrap().unwrap(), envelope);
/// ```
#[derive(Debug, Default)]
pub struct MemoryLog {
    contents: Arc<RwLock<Contents>>,
    faults: MemoryFaults,
    writable: Writable,
}

#[derive(Clone, Debug, Default)]
struct Contents {
    events: Vector<(Arc<Envelope>, Head)>,
    /// The head before the first of them.
    removed: Head,
    head: Head,
}

/// Whether the log takes appends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Writable {
    #[default]
    Yes,
    AfterRecovery,
}

/// The switch that makes a [`MemoryLog`] fail as a disk would. Clones turn the same switch.
#[derive(Clone, Debug, Default)]
pub struct MemoryFaults {
    health: Arc<RwLock<StoreHealth>>,
}

/// How the pretended store behaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoreHealth {
    /// Everything works.
    #[default]
    Healthy,
    /// Appends and recovery fail; reads work.
    Failing,
}

impl MemoryFaults {
    /// Turns the switch, from the next call on.
    pub fn set(&self, health: StoreHealth) {
        *self.health.write().unwrap_or_else(PoisonError::into_inner) = health;
    }

    fn check(&self, action: &'static str) -> Result<(), LogError> {
        match *self.health.read().unwrap_or_else(PoisonError::into_inner) {
            StoreHealth::Healthy => Ok(()),
            StoreHealth::Failing => Err(LogError::Store {
                action,
                path: "the log in memory".into(),
                source: std::io::Error::other("a fault was injected"),
            }),
        }
    }
}

impl MemoryLog {
    /// An empty log.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A log that already holds these events.
    ///
    /// # Errors
    ///
    /// As [`EventLog::append`]: the events start at `@1` and have no gap.
    pub fn with_events(events: &[Envelope]) -> Result<Self, LogError> {
        let mut log = Self::new();
        log.append(events)?;
        Ok(log)
    }

    /// The switch that makes this log fail.
    #[must_use]
    pub fn faults(&self) -> MemoryFaults {
        self.faults.clone()
    }

    /// The log as a process finds it that starts after this one was killed: the same durable events, a healthy store.
    #[must_use]
    pub fn reopened(&self) -> Self {
        let contents = self.contents().clone();
        Self { contents: Arc::new(RwLock::new(contents)), ..Self::default() }
    }

    fn contents(&self) -> RwLockReadGuard<'_, Contents> {
        self.contents.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn contents_mut(&self) -> RwLockWriteGuard<'_, Contents> {
        self.contents.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Contents {
    fn oldest(&self) -> Offset {
        self.removed.offset.next()
    }
}

impl LogReader for MemoryLog {
    fn head(&self) -> Head {
        self.contents().head
    }

    fn oldest(&self) -> Offset {
        self.contents().oldest()
    }

    fn head_at(&self, offset: Offset) -> Result<Head, LogError> {
        let Contents { events, removed, head } = self.contents().clone();
        check_within(offset, removed.offset.next(), head.offset)?;
        let index = usize::try_from(offset.since(removed.offset)).unwrap_or(usize::MAX);
        Ok(index.checked_sub(1).and_then(|index| events.get(index)).map_or(removed, |(_, head)| *head))
    }

    fn read(&self, from: Offset) -> Result<Events<'_>, LogError> {
        let Contents { events, removed, .. } = self.contents().clone();
        let oldest = removed.offset.next();
        if from < oldest {
            return Err(LogError::Gone { requested: from, oldest });
        }
        let skipped = usize::try_from(from.since(oldest)).unwrap_or(usize::MAX).min(events.len());
        Ok(Box::new(events.skip(skipped).into_iter().map(|(envelope, _)| Ok(Envelope::clone(&envelope)))))
    }
}

impl EventLog for MemoryLog {
    fn append(&mut self, batch: &[Envelope]) -> Result<(), LogError> {
        let mut head = self.head();
        check_follows(head.offset, batch)?;
        if self.writable == Writable::AfterRecovery {
            return Err(LogError::NeedsRecovery);
        }
        let mut linked = Vector::new();
        for envelope in batch {
            let body = encode_body(envelope)?;
            head = head.link(body.schema, &body.bytes);
            linked.push_back((Arc::new(envelope.clone()), head));
        }
        if let Err(error) = self.faults.check("append to") {
            self.writable = Writable::AfterRecovery;
            return Err(error);
        }
        let mut contents = self.contents_mut();
        contents.events.append(linked);
        contents.head = head;
        Ok(())
    }

    fn recover(&mut self) -> Result<(), LogError> {
        self.faults.check("reopen")?;
        self.writable = Writable::Yes;
        Ok(())
    }

    fn truncate_before(&mut self, keep_from: Offset) -> Result<Offset, LogError> {
        self.faults.check("remove old events from")?;
        let mut contents = self.contents_mut();
        let oldest = contents.oldest();
        let keep_from = keep_from.min(contents.head.offset.next());
        let removed =
            usize::try_from(keep_from.since(oldest)).unwrap_or(usize::MAX).min(contents.events.len());
        let kept = contents.events.split_off(removed);
        if let Some((_, head)) = std::mem::replace(&mut contents.events, kept).last() {
            contents.removed = *head;
        }
        Ok(contents.oldest())
    }

    fn reader(&self) -> Arc<dyn LogReader> {
        Arc::new(Self {
            contents: Arc::clone(&self.contents),
            faults: self.faults.clone(),
            writable: Writable::Yes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{Actor, Event, ReplicaId, Timestamp};

    fn started(offset: u64) -> Envelope {
        Envelope {
            offset: Offset::new(offset),
            recorded_at: Timestamp::from_millis(offset),
            actor: Actor::System,
            correlation: None,
            event: Event::ReplicaStarted { replica: ReplicaId::new("r").unwrap(), version: "0".to_owned() },
        }
    }

    fn log_of(count: u64) -> MemoryLog {
        MemoryLog::with_events(&(1..=count).map(started).collect::<Vec<_>>()).unwrap()
    }

    fn offsets(log: &dyn LogReader, from: u64) -> Vec<u64> {
        log.read(Offset::new(from)).unwrap().map(|event| event.unwrap().offset.get()).collect()
    }

    #[test]
    fn a_batch_that_does_not_follow_is_refused_whole() {
        let mut log = log_of(2);
        let conflict = log.append(&[started(2)]).unwrap_err();
        assert_eq!(conflict.to_string(), "the batch starts at @2, but the log expects @3");
        assert!(matches!(log.append(&[started(3), started(5)]), Err(LogError::Conflict { .. })));
        assert_eq!(offsets(&log, 1), [1, 2]);
    }

    #[test]
    fn after_a_failed_append_nothing_is_taken_before_recovery() {
        let mut log = log_of(1);
        let reader = log.reader();
        log.faults().set(StoreHealth::Failing);
        assert!(matches!(log.append(&[started(2)]), Err(LogError::Store { .. })));
        assert!(log.recover().is_err());
        log.faults().set(StoreHealth::Healthy);
        assert!(matches!(log.append(&[started(2)]), Err(LogError::NeedsRecovery)));
        log.recover().unwrap();
        log.append(&[started(2)]).unwrap();
        assert_eq!(offsets(&*reader, 1), [1, 2]);
    }

    #[test]
    fn reading_below_the_oldest_is_gone() {
        let mut log = log_of(5);
        assert_eq!(log.truncate_before(Offset::new(4)).unwrap(), Offset::new(4));
        let gone = log.read(Offset::new(3)).err().unwrap();
        assert_eq!(gone.to_string(), "events from @3 are gone: the oldest that is kept is @4");
        assert_eq!(offsets(&log, 4), [4, 5]);
        assert!(offsets(&log, 6).is_empty());
        log.append(&[started(6)]).unwrap();
        assert_eq!(offsets(&log.reopened(), 5), [5, 6]);
    }

    #[test]
    fn an_event_above_the_limit_is_refused_before_anything_is_written() {
        let mut log = log_of(1);
        let mut large = started(2);
        large.event =
            Event::ReplicaStarted { replica: ReplicaId::new("r").unwrap(), version: "x".repeat(70_000) };
        let error = log.append(&[large]).unwrap_err().to_string();
        assert!(error.contains("ReplicaStarted has 70") && error.contains("at most 24576"), "{error}");
        log.append(&[started(2)]).unwrap();
    }
}
