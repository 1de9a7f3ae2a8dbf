//! One process of the control plane on one thread, from its start to its death.

use std::cell::Cell;
use std::sync::Arc;

use foldplane::command::Command;
use foldplane::engine::{Accepted, Handle, Pending, Settings, SubmitError, engine, open};
use foldplane::events::{Actor, Envelope, Offset, ReplicaId, Timestamp, WorkerKey};
use foldplane::projection::state::State;
use foldplane::projection::{Snapshot, StateDigest, checkpoint};
use foldplane::testing::{Step, published};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::disk::{Control, Disk};

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
    pub(crate) disk: Control,
    writer: JoinSet<()>,
}

impl Site {
    /// Starts on what an earlier process has left: its log, and a state that was saved on the way.
    pub(crate) async fn start(events: &[Envelope], saved: &[u8], number: usize) -> Self {
        let (log, disk) = Disk::with(events);
        let state = checkpoint::decode(saved).expect("a saved state");
        let opened = open(&log, state, None).expect("the log can be read");
        let (handle, writer) = engine(Box::new(log), opened.snapshot, Settings::default(), wall_clock);
        disk.watch(handle.snapshots());
        let mut tasks = JoinSet::new();
        tasks.spawn(writer.run(CancellationToken::new()));
        let site = Self { handle, disk, writer: tasks };
        let replica = ReplicaId::new(&format!("r{number}")).unwrap();
        let start = Command::StartReplica { replica, version: "1.0.0".to_owned() };
        site.handle.submit(Actor::System, start).await.expect("a new disk works");
        site.handle.doors_are_open();
        site
    }

    /// The wish of a step, as somebody makes it who sees what is published now.
    fn command(&self, step: &Step) -> Command {
        let snapshot = self.handle.snapshot();
        step.wanted.command(|key: &WorkerKey| snapshot.state().workers().get(key).map(|live| live.generation))
    }

    /// Hands a wish over.
    pub(crate) async fn begin(&self, step: &Step) -> Pending {
        self.handle.begin(Actor::System, self.command(step)).await.expect("the writer lives")
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
        self.handle.submit(Actor::System, Command::CloseSession { session: nobody(), cause: closed() }).await
    }

    /// Waits until nothing is due any more: what one step makes may be due at once, and what that makes too.
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

    /// What is published is what the log says, folded from its start.
    pub(crate) fn check_against_the_log(&self) {
        let snapshot: Arc<Snapshot> = self.handle.snapshot();
        let opened = open(self.handle.log().as_ref(), State::default(), Some(snapshot.offset())).unwrap();
        assert_eq!(
            StateDigest::of(opened.snapshot.state()),
            StateDigest::of(snapshot.state()),
            "the state and its replay"
        );
        assert_eq!(published(opened.snapshot.resources()), published(snapshot.resources()));
        for type_url in foldplane::projection::resources::TypeUrl::ALL {
            let (live, replayed) =
                (snapshot.resources().of(type_url), opened.snapshot.resources().of(type_url));
            assert_eq!(live.version(), replayed.version(), "{type_url}");
        }
        assert_eq!(opened.anomalies, [], "an event that was decided made no sense");
    }
}

fn nobody() -> foldplane::events::SessionId {
    foldplane::events::SessionId::new("nobody").unwrap()
}

const fn closed() -> foldplane::events::event::DisconnectCause {
    foldplane::events::event::DisconnectCause::Closed
}
