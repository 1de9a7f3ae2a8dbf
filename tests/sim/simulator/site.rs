//! One process of the control plane on one thread, from its start to its death.

use std::cell::Cell;

use foldplane::command::Command;
use foldplane::engine::{Accepted, Handle, Pending, Settings, SubmitError, engine, open};
use foldplane::events::event::DisconnectCause;
use foldplane::events::log::LogReader;
use foldplane::events::{Actor, Envelope, Offset, ReplicaId, SessionId, Timestamp};
use foldplane::testing::Step;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::disk::Disk;
use super::log::{DiskLog, Observer};
use super::saved::SavedStates;

thread_local! {
    /// The wall clock of this run.
    pub(crate) static WALL_MS: Cell<u64> = const { Cell::new(0) };
}

fn wall_clock() -> Timestamp {
    Timestamp::from_millis(WALL_MS.get())
}

/// A running control plane.
pub(crate) struct Site {
    pub(crate) handle: Handle,
    pub(crate) observer: Observer,
    writer: JoinSet<()>,
}

impl Site {
    /// Starts on what the disk holds. Fails when the power goes meanwhile.
    pub(crate) async fn start(disk: &Disk, saved: &SavedStates, number: usize) -> Option<Self> {
        let log = match DiskLog::open(disk) {
            Ok(log) => log,
            Err(error) => {
                assert!(disk.is_without_power(), "the log cannot be opened: {error}");
                return None;
            }
        };
        let opened = open(&log, saved.newest(&log), None).expect("the log can be read");
        assert_eq!(opened.snapshot.offset(), log.head().offset);
        let observer = log.observer();
        let (handle, writer) = engine(Box::new(log), opened.snapshot, Settings::default(), wall_clock);
        observer.watch(handle.snapshots());
        let mut tasks = JoinSet::new();
        tasks.spawn(writer.run(CancellationToken::new()));
        let site = Self { handle, observer, writer: tasks };
        let replica = ReplicaId::new(&format!("r{number}")).unwrap();
        let start = Command::StartReplica { replica, version: "1.0.0".to_owned() };
        match site.submit(start).await {
            Ok(_) => {}
            Err(error) => {
                assert!(disk.is_without_power(), "the start was refused: {error}");
                return None;
            }
        }
        site.handle.doors_are_open();
        Some(site)
    }

    /// Submits a wish, and waits for what comes of it.
    pub(crate) async fn submit(&self, command: Command) -> Result<Accepted, SubmitError> {
        self.handle.submit(Actor::System, command).await
    }

    /// Submits a wish that must come true sooner or later.
    pub(crate) async fn notify(&self, command: Command) {
        self.handle.notify(Actor::System, command).await;
    }

    /// Hands the wish of a step over, as somebody makes it who sees what is published now.
    pub(crate) async fn begin(&self, step: &Step) -> Pending {
        let snapshot = self.handle.snapshot();
        let command = step.wanted.command(snapshot.state());
        self.handle.begin(Actor::System, command).await.expect("the writer lives")
    }

    /// Hands wishes over at once, and waits for all answers.
    pub(crate) async fn wish(&self, steps: &[Step]) -> Vec<Result<Accepted, SubmitError>> {
        let mut pending = Vec::new();
        for step in steps {
            pending.push(self.begin(step).await);
        }
        let mut answers = Vec::new();
        for pending in pending {
            answers.push(pending.answer().await);
        }
        answers
    }

    /// Waits until the writer has done what there was to do: it answers in order.
    pub(crate) async fn rest(&self) -> Result<Accepted, SubmitError> {
        // Nobody's grace: it changes nothing, and is answered like any other.
        let nobody = SessionId::new("nobody").unwrap();
        self.submit(Command::CloseSession { session: nobody, cause: DisconnectCause::Closed }).await
    }

    /// Waits until nothing is due any more: what one step makes may be due at once, and what that makes too. An answer
    /// alone does not mean that the writer is done: it writes what a full disk refused together one by one, on a thread
    /// of its own.
    pub(crate) async fn come_to_rest(&self) {
        for _ in 0..3 {
            let _answer = self.rest().await;
        }
    }

    /// Everything durable.
    pub(crate) fn durable(&self) -> Vec<Envelope> {
        let events = self.handle.log().read(Offset::new(1)).expect("nothing was removed");
        events.map(|envelope| envelope.expect("the log is whole")).collect()
    }

    /// Ends the process at once.
    pub(crate) async fn kill(mut self) -> Vec<Envelope> {
        self.writer.shutdown().await;
        self.durable()
    }
}
