//! One run: every act in turn, each followed by what must hold; then peace, and what must come of it.

use std::ops::AddAssign;
use std::time::Duration;

use foldplane::engine::{Accepted, Storage, SubmitError};
use foldplane::events::event::RemovalCause;
use foldplane::events::log::StoreHealth;
use foldplane::events::{Envelope, Event, Offset};
use foldplane::projection::checkpoint;
use foldplane::projection::state::{Link, Phase, State};
use foldplane::testing::{Answer, Client, Ledger, Step, Turn, published};
use foldplane::xds::protocol::Variant;

use crate::acts::{Act, CLIENTS, Death};
use crate::disk::Dying;
use crate::site::{Site, WALL_MS};

/// Longer than any grace, drain or retry: the rejoin grace is 30 s, the longest drain of a step 10 s.
const PEACE_MS: u64 = 60_000;

/// How often what was to be seen was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reached {
    pub(crate) acknowledged: u64,
    pub(crate) refused: u64,
    pub(crate) unavailable: u64,
    pub(crate) crashes: u64,
    pub(crate) removed: u64,
    pub(crate) responses: u64,
}

impl AddAssign for Reached {
    fn add_assign(&mut self, other: Self) {
        self.acknowledged += other.acknowledged;
        self.refused += other.refused;
        self.unavailable += other.unavailable;
        self.crashes += other.crashes;
        self.removed += other.removed;
        self.responses += other.responses;
    }
}

/// What a run leaves.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Trace {
    pub(crate) log: Vec<Envelope>,
    pub(crate) reached: Reached,
}

/// Runs these acts. Fails where something does not hold.
pub(crate) fn run(acts: &[Act]) -> Trace {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    WALL_MS.set(1_767_225_600_000);
    runtime.block_on(async {
        let mut run = Run::start().await;
        for act in acts {
            run.act(act).await;
            run.site.come_to_rest().await;
            run.check();
        }
        run.peace().await
    })
}

struct Run {
    site: Site,
    starts: usize,
    now: Duration,
    clients: Vec<Client>,
    ledger: Ledger,
    /// From where the next process starts to fold.
    saved: Vec<u8>,
    /// Nothing up to here may ever be lost.
    acknowledged: Offset,
    reached: Reached,
}

impl Run {
    async fn start() -> Self {
        let saved = checkpoint::encode(&State::default());
        let site = Site::start(&[], &saved, 1).await;
        let resources = std::sync::Arc::clone(site.handle.snapshot().resources());
        let variants = [Variant::Sotw, Variant::Delta].into_iter().cycle().take(CLIENTS);
        let clients = variants.map(|variant| Client::new(variant, &resources, Duration::ZERO)).collect();
        let (ledger, reached, acknowledged) = (Ledger::default(), Reached::default(), Offset::ZERO);
        Self { site, starts: 1, now: Duration::ZERO, clients, ledger, saved, acknowledged, reached }
    }

    async fn act(&mut self, act: &Act) {
        match act {
            Act::Wish(steps) => {
                self.later(steps.iter().map(|step| step.after_ms % 50).sum()).await;
                let answers = self.site.wish(steps).await;
                answers.into_iter().for_each(|answer| self.note(answer));
            }
            Act::Forget(step) => {
                drop(self.site.begin(step).await);
                let answer = self.site.rest().await;
                self.note(answer);
            }
            Act::Wait(ms) => {
                self.later(*ms).await;
                self.site.check_against_the_log();
                self.saved = checkpoint::encode(self.site.handle.snapshot().state());
            }
            Act::SetBack(ms) => WALL_MS.set(WALL_MS.get() - ms),
            Act::Break => self.site.disk.set(StoreHealth::Failing),
            Act::Mend => self.site.disk.set(StoreHealth::Healthy),
            Act::Crash(death, steps) => self.crash(*death, steps).await,
            Act::Turn(client, answer) => self.turn(*client, *answer),
            Act::Reconnect(client) => {
                let resources = self.site.handle.resources().borrow().clone();
                self.clients[*client].reconnect(&resources, self.now);
            }
        }
    }

    async fn later(&mut self, ms: u64) {
        let step = Duration::from_millis(ms);
        WALL_MS.set(WALL_MS.get() + ms);
        self.now += step;
        tokio::time::advance(step).await;
        let answer = self.site.rest().await;
        self.note(answer);
    }

    fn note(&mut self, answer: Result<Accepted, SubmitError>) {
        match answer {
            Ok(accepted) => {
                let durable = self.site.handle.log().head().offset;
                assert!(
                    accepted.offset <= durable,
                    "{} was acknowledged, {durable} is durable",
                    accepted.offset
                );
                assert!(
                    accepted.offset <= accepted.snapshot.offset(),
                    "an answer came before its publication"
                );
                self.acknowledged = self.acknowledged.max(accepted.offset);
                self.reached.acknowledged += 1;
            }
            Err(SubmitError::Rejected(_)) => self.reached.refused += 1,
            Err(SubmitError::StorageUnavailable { .. }) => self.reached.unavailable += 1,
            Err(SubmitError::Stopping) => panic!("nobody told the writer to stop"),
        }
    }

    async fn crash(&mut self, death: Death, steps: &[Step]) {
        self.site.disk.die(match death {
            Death::BeforeTheWrite => Dying::Lost,
            Death::AfterTheWrite => Dying::Kept,
        });
        // Nobody hears these answers.
        let _unheard = self.site.wish(steps).await;
        self.starts += 1;
        self.reached.crashes += 1;
        self.site.come_to_rest().await;
        let before = self.site.durable();
        self.site.check_against_the_log();
        let next = Site::start(&before, &self.saved, self.starts).await;
        let durable = std::mem::replace(&mut self.site, next).kill().await;
        assert_eq!(durable, before, "a dying process wrote");
        let resources = self.site.handle.resources().borrow().clone();
        self.clients.iter_mut().for_each(|client| client.reconnect(&resources, self.now));
    }

    fn turn(&mut self, client: usize, answer: Answer) {
        let resources = self.site.handle.resources().borrow().clone();
        let turn = self.clients[client].turn(answer, &resources, self.now);
        self.reached.responses += u64::from(turn == Turn::Responded);
    }

    /// What holds at all times.
    fn check(&mut self) {
        assert_eq!(self.site.disk.violations(), [] as [String; 0]);
        let (durable, snapshot) = (self.site.handle.log().head().offset, self.site.handle.snapshot());
        assert!(self.acknowledged <= durable, "{} was acknowledged and is lost", self.acknowledged);
        assert_eq!(snapshot.offset(), durable, "what is published, and what is durable");
        self.ledger.check(snapshot.resources());
    }

    /// No more faults: everything must come to rest.
    async fn peace(mut self) -> Trace {
        self.site.disk.set(StoreHealth::Healthy);
        // The first second is for a retry, which starts the clocks that could not start before.
        for ms in [1_000, PEACE_MS, PEACE_MS] {
            self.later(ms).await;
            self.site.come_to_rest().await;
            self.check();
        }
        self.site.check_against_the_log();
        assert_eq!(*self.site.handle.storage().borrow(), Storage::Writable);
        self.check_workers();
        self.check_clients();
        let log = self.site.durable();
        let by_timer = |envelope: &&Envelope| {
            let Event::WorkerRemoved { cause, .. } = &envelope.event else { return false };
            matches!(
                cause,
                RemovalCause::DidNotRejoin | RemovalCause::Drained | RemovalCause::Disconnected(_)
            )
        };
        self.reached.removed += log.iter().filter(by_timer).count() as u64;
        Trace { log, reached: self.reached }
    }

    /// Nobody waits for ever: every grace and every drain has come to its end.
    fn check_workers(&self) {
        for (key, worker) in self.site.handle.snapshot().state().workers() {
            assert!(matches!(worker.link, Link::Connected { .. }), "{key} still waits: {:?}", worker.link);
            assert!(!matches!(worker.phase, Phase::Draining { .. }), "{key} still drains");
        }
    }

    fn check_clients(&mut self) {
        let resources = self.site.handle.resources().borrow().clone();
        for client in &mut self.clients {
            // What was refused is not sent again on its stream, until it changes (xds-rules 18).
            if client.has_refused() {
                client.reconnect(&resources, self.now);
            }
            let rest = client.settle(&resources, self.now);
            assert_eq!(client.view(), published(&resources), "what a client holds, and what is published");
            let later = rest + Duration::from_secs(3600);
            assert_eq!(client.turn(Answer::Accept, &resources, later), Turn::Silent, "an idle stream spoke");
        }
    }
}
