//! One run: every act in turn, each followed by what must hold; then peace, and what must come of it.

use std::time::Duration;

use foldplane::command::HOLD_MS_MAX;
use foldplane::engine::{Accepted, Storage, SubmitError};
use foldplane::events::{Envelope, Offset};
use foldplane::testing::{Answer, Ledger, Step, check_owners};

use super::acts::{Act, Scenario};
use super::checks;
use super::disk::{Disk, Health};
use super::network::{Line, PROXIES};
use super::reached::Reached;
use super::saved::SavedStates;
use super::site::{Site, WALL_MS};
use super::steady::{STEADY, Steady};

/// Longer than any grace, drain, lease or retry: the rejoin grace is 30 s, the longest lease of a step 20 s. Expiry may
/// be held for longer, once.
const PEACE_MS: u64 = 60_000;

/// Longer than a proxy that came back needs for everything: an unanswered response holds the next one back for 5 s.
const SETTLE_MS: u64 = 20_000;

/// How often workers and proxies look at the clock, in milliseconds.
const TICK_MS: u64 = 1_000;

/// When the first run of all begins. Any time will do, if it is always the same.
const START_MS: u64 = 1_767_225_600_000;

/// What a run leaves.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Trace {
    pub(crate) log: Vec<Envelope>,
    pub(crate) reached: Reached,
}

/// Runs a scenario. Fails where something does not hold.
pub(crate) fn run(scenario: &Scenario) -> Trace {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    // A stopped clock jumps to the next timer when the runtime finds nothing to do, which it also does in the moment between
    // the end of a write and the news of it. While a blocking task runs, it does not.
    let (run_ends, until_then) = std::sync::mpsc::channel::<()>();
    runtime.spawn_blocking(move || until_then.recv());
    WALL_MS.set(START_MS);
    let trace = runtime.block_on(async {
        let mut run = Run::start(scenario).await;
        for act in &scenario.acts {
            run.act(act).await;
            run.site.come_to_rest().await;
            run.check();
        }
        run.peace().await
    });
    drop(run_ends);
    trace
}

struct Run {
    disk: Disk,
    site: Site,
    starts: usize,
    now: Duration,
    steady: Vec<Steady>,
    lines: Vec<Line>,
    ledger: Ledger,
    saved: SavedStates,
    /// Nothing up to here may ever be lost.
    acknowledged: Offset,
    reached: Reached,
}

impl Run {
    async fn start(scenario: &Scenario) -> Self {
        let (disk, saved) = (Disk::new(scenario.seed), SavedStates::default());
        let site = Site::start(&disk, &saved, 1).await.expect("nobody has cut the power");
        let resources = site.handle.resources().borrow().clone();
        let line = |number| Line::new(number, scenario.seed, scenario.options, &resources);
        let (lines, steady) = ((0..PROXIES).map(line).collect(), (0..STEADY).map(Steady::new).collect());
        let (ledger, reached, acknowledged) = (Ledger::default(), Reached::default(), Offset::ZERO);
        let now = Duration::ZERO;
        let mut run =
            Self { disk, site, starts: 1, now, steady, lines, ledger, saved, acknowledged, reached };
        run.tick(0).await;
        run
    }

    async fn act(&mut self, act: &Act) {
        self.reached.note(act.name());
        let resources = self.site.handle.resources().borrow().clone();
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
                self.check_against_the_log();
                self.saved.save(self.site.handle.log().head(), self.site.handle.snapshot().state());
            }
            Act::SetBack(ms) => WALL_MS.set(WALL_MS.get() - ms),
            Act::Disk(health) => self.disk.set(*health),
            Act::Cut { after, again, wishes } => self.cut(*after, *again, wishes).await,
            Act::Turn(proxy, answer) => {
                self.lines[*proxy].turn(*answer, &resources, self.now);
            }
            Act::Stall(proxy) => self.lines[*proxy].stall(),
            Act::Resume(proxy) => self.lines[*proxy].resume(),
            Act::Reset(proxy) => self.lines[*proxy].connect(&resources, self.now),
            Act::Restart(proxy) => self.lines[*proxy].restart(&resources, self.now),
            Act::Disconnect(worker) => self.steady[*worker].disconnect(&self.site).await,
            Act::Lie(worker, lie) => self.steady[*worker].slander(*lie, &self.site).await,
        }
    }

    /// Time goes by, and everybody does what is to be done meanwhile.
    async fn later(&mut self, mut ms: u64) {
        while ms > 0 {
            let step = ms.min(TICK_MS);
            ms -= step;
            self.tick(step).await;
        }
    }

    async fn tick(&mut self, ms: u64) {
        WALL_MS.set(WALL_MS.get() + ms);
        self.now += Duration::from_millis(ms);
        tokio::time::advance(Duration::from_millis(ms)).await;
        self.site.come_to_rest().await;
        let now_ms = self.now_ms();
        for worker in &mut self.steady {
            worker.tick(&self.site, now_ms).await;
        }
        self.site.come_to_rest().await;
        let resources = self.site.handle.resources().borrow().clone();
        for line in &mut self.lines {
            line.turn(Answer::Accept, &resources, self.now);
        }
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.now.as_millis()).expect("a run lasts minutes")
    }

    fn note(&mut self, answer: Result<Accepted, SubmitError>) {
        match answer {
            Ok(accepted) => {
                let published = accepted.snapshot.offset();
                assert!(accepted.offset <= published, "an answer came before its publication");
                self.acknowledged = self.acknowledged.max(accepted.offset);
                self.reached.note("acknowledged");
            }
            Err(SubmitError::Rejected(_)) => self.reached.note("refused"),
            Err(SubmitError::StorageUnavailable { .. }) => self.reached.note("unavailable"),
            Err(SubmitError::Stopping) => panic!("nobody told the writer to stop"),
        }
    }

    /// The power goes, and comes back.
    async fn cut(&mut self, after: u32, again: Option<u32>, wishes: &[Step]) {
        self.disk.cut_after(after);
        let answers = self.site.wish(wishes).await;
        answers.into_iter().for_each(|answer| self.note(answer));
        self.site.come_to_rest().await;
        checks::acknowledged_is_durable(self.acknowledged, &self.site);
        let before = self.site.durable();
        self.saved.spoil(after);
        self.disk.restart();
        if let Some(after) = again {
            self.disk.cut_after(after);
        }
        let next = loop {
            self.starts += 1;
            match Site::start(&self.disk, &self.saved, self.starts).await {
                Some(site) => break site,
                None => {
                    self.reached.note("power cut at a start");
                    self.disk.restart();
                }
            }
        };
        let durable = std::mem::replace(&mut self.site, next).kill().await;
        assert_eq!(durable, before, "a dying process wrote");
        checks::log_is_a_prefix(&before, &self.site.durable());
        self.disk.keep_power();
        let resources = self.site.handle.resources().borrow().clone();
        self.lines.iter_mut().for_each(|line| line.connect(&resources, self.now));
        self.steady.iter_mut().for_each(Steady::lose_server);
    }

    /// What holds at all times.
    fn check(&mut self) {
        checks::acknowledged_is_durable(self.acknowledged, &self.site);
        let snapshot = self.site.handle.snapshot();
        check_owners(snapshot.state());
        // No version falls, and equal versions mean equal bytes.
        self.ledger.check(snapshot.resources());
    }

    /// What takes longer to look at.
    fn check_against_the_log(&self) {
        checks::disk_is_the_log(&self.disk, &self.site.durable());
        checks::live_is_replay_is_saved_state_and_tail(
            &self.site,
            self.saved.newest(self.site.handle.log().as_ref()),
        );
        checks::published_is_what_the_model_says(&self.site);
    }

    /// No more faults: everything must come to rest.
    async fn peace(mut self) -> Trace {
        self.disk.set(Health::Healthy);
        self.lines.iter_mut().for_each(Line::calm);
        // The first second is for a retry, which starts the clocks that could not start before.
        for ms in [1_000, PEACE_MS, HOLD_MS_MAX, PEACE_MS] {
            self.later(ms).await;
            self.site.come_to_rest().await;
            self.check();
        }
        self.check_against_the_log();
        assert_eq!(*self.site.handle.storage().borrow(), Storage::Writable);
        let snapshot = self.site.handle.snapshot();
        checks::nobody_waits_for_ever(snapshot.state());
        checks::the_steady_keep_their_place(&self.steady, snapshot.state());
        self.settle_proxies().await;
        let log = self.site.durable();
        log.iter().for_each(|envelope| self.reached.note(envelope.event.name()));
        let responses = self.lines.iter().map(|line| line.responses).sum();
        self.reached.add("responses", responses);
        Trace { log, reached: self.reached }
    }

    async fn settle_proxies(&mut self) {
        let resources = self.site.handle.resources().borrow().clone();
        for line in &mut self.lines {
            // What was refused is not sent again on its stream, until it changes (xds-rules 18).
            if line.proxy().has_refused() {
                line.connect(&resources, self.now);
            }
        }
        self.later(SETTLE_MS).await;
        for line in &mut self.lines {
            checks::a_proxy_ends_at_its_view(line, &self.site, self.now);
        }
    }
}
