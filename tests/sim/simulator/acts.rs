//! What happens in a run, made from its seed.

use foldplane::testing::{Answer, Step, Wanted, step, worker};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::disk::Health;
use super::network::PROXIES;
use super::steady::{Lie, STEADY};

/// A run: everything that it does follows from this.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    /// Chance in the disk and the network.
    pub(crate) seed: u64,
    pub(crate) options: Options,
    pub(crate) acts: Vec<Act>,
}

/// How frequent each kind of fault is: never, now and then, or often. Drawn once a run, because faults that are always
/// all there hide each other.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options {
    /// The disk fails.
    pub(crate) breaks: u32,
    /// The disk is full.
    pub(crate) full: u32,
    /// The power goes.
    pub(crate) cuts: u32,
    /// Proxies refuse.
    pub(crate) refusals: u32,
    /// Proxies do not read, and later go on.
    pub(crate) stalls: u32,
    /// Connections are lost, of proxies and of workers.
    pub(crate) resets: u32,
    /// Workers lie.
    pub(crate) lies: u32,
    /// The wall clock is set back.
    pub(crate) set_backs: u32,
    /// Messages of proxies come twice.
    pub(crate) doubles: u32,
    /// How long a message is on its way at most, in milliseconds.
    pub(crate) delay_ms_max: u64,
}

/// One thing that happens.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Wishes made at once; whoever made them waits for the answers.
    Wish(Vec<Step>),
    /// A wish whose caller goes away before the answer.
    Forget(Box<Step>),
    /// Time goes by.
    Wait(u64),
    /// The wall clock is set back by so many milliseconds.
    SetBack(u64),
    /// From now on the disk behaves like this.
    Disk(Health),
    /// The power goes after so many operations of the disk, in the middle of these wishes, and sometimes once more
    /// while the process starts again.
    Cut { after: u32, again: Option<u32>, wishes: Vec<Step> },
    /// A proxy looks at its stream.
    Turn(usize, Answer),
    /// A proxy stops to read.
    Stall(usize),
    /// A proxy goes on.
    Resume(usize),
    /// A proxy loses its connection, and what is on its way.
    Reset(usize),
    /// A proxy forgets everything that it held.
    Restart(usize),
    /// A steady worker loses its connection.
    Disconnect(usize),
    /// Somebody says of a steady worker what is not so.
    Lie(usize, Lie),
}

impl Scenario {
    /// The scenario of a seed.
    pub(crate) fn of(seed: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        let mut runner = TestRunner::new_with_rng(Config::default(), rng);
        let run = options().prop_flat_map(|options| (Just(options), vec(act(options), 20..80)));
        let (options, acts) = run.new_tree(&mut runner).expect("the strategies reject nothing").current();
        Self { seed, options, acts }
    }

    /// The same with other acts.
    pub(crate) fn with(&self, acts: Vec<Act>) -> Self {
        Self { acts, ..self.clone() }
    }
}

fn options() -> impl Strategy<Value = Options> {
    let often = || select(&[0, 1, 4][..]);
    let delay = select(&[0, 20, 700][..]);
    let of_disks = (often(), often(), often());
    let of_others = (often(), often(), often(), often(), often(), often());
    (of_disks, of_others, delay).prop_map(|((breaks, full, cuts), others, delay_ms_max)| {
        let (refusals, stalls, resets, lies, set_backs, doubles) = others;
        Options { breaks, full, cuts, refusals, stalls, resets, lies, set_backs, doubles, delay_ms_max }
    })
}

/// What others may wish; starts and the ends of graces and leases are the engine's own.
fn wish() -> impl Strategy<Value = Step> {
    step(worker().boxed()).prop_filter("the engine's own", |step| {
        !matches!(
            step.wanted,
            Wanted::StartReplica { .. }
                | Wanted::EndGrace { .. }
                | Wanted::ExpireSilent { .. }
                | Wanted::ReviewHold { .. }
                | Wanted::EndHold { .. }
        )
    })
}

fn act(options: Options) -> impl Strategy<Value = Act> {
    prop_oneof![30 => of_the_world(options), 20 => of_proxies(options), 12 => of_the_disk(options)]
}

fn of_the_world(options: Options) -> impl Strategy<Value = Act> {
    let Options { resets, lies, set_backs, .. } = options;
    let lie = select(Lie::ALL.as_slice());
    prop_oneof![
        20 => vec(wish(), 1..6).prop_map(Act::Wish),
        2 => wish().prop_map(Box::new).prop_map(Act::Forget),
        6 => (0..8_000_u64).prop_map(Act::Wait),
        set_backs => (0..60_000_u64).prop_map(Act::SetBack),
        resets => (0..STEADY).prop_map(Act::Disconnect),
        lies => (0..STEADY, lie).prop_map(|(worker, lie)| Act::Lie(worker, lie)),
    ]
}

fn of_proxies(options: Options) -> impl Strategy<Value = Act> {
    let Options { refusals, stalls, resets, .. } = options;
    let turn = |answer| (0..PROXIES).prop_map(move |proxy| Act::Turn(proxy, answer));
    prop_oneof![
        12 => turn(Answer::Accept),
        refusals => turn(Answer::Refuse),
        stalls => turn(Answer::Later),
        stalls => (0..PROXIES).prop_map(Act::Stall),
        2 * stalls => (0..PROXIES).prop_map(Act::Resume),
        resets => (0..PROXIES).prop_map(Act::Reset),
        resets => (0..PROXIES).prop_map(Act::Restart),
    ]
}

fn of_the_disk(options: Options) -> impl Strategy<Value = Act> {
    let Options { breaks, full, cuts, .. } = options;
    let cut = (0..12_u32, proptest::option::weighted(0.3, 0..4_u32), vec(wish(), 0..4));
    prop_oneof![
        6 => (0..2_000_u64).prop_map(Act::Wait),
        breaks => select(&[Health::RefusesWrites, Health::RefusesSyncs][..]).prop_map(Act::Disk),
        full => Just(Act::Disk(Health::Full)),
        2 * breaks + full => Just(Act::Disk(Health::Healthy)),
        cuts => cut.prop_map(|(after, again, wishes)| Act::Cut { after, again, wishes }),
    ]
}

impl Act {
    /// What it is, for counts.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Wish(_) => "wishes",
            Self::Forget(_) => "a caller that goes away",
            Self::Wait(_) => "time goes by",
            Self::SetBack(_) => "wall clock set back",
            Self::Disk(Health::Healthy) => "disk mended",
            Self::Disk(Health::RefusesWrites) => "writes fail",
            Self::Disk(Health::RefusesSyncs) => "syncs fail",
            Self::Disk(Health::Full) => "disk full",
            Self::Cut { .. } => "power cut",
            Self::Turn(_, Answer::Accept) => "a proxy accepts",
            Self::Turn(_, Answer::Refuse) => "a proxy refuses",
            Self::Turn(_, Answer::Later) => "a proxy is late",
            Self::Stall(_) => "a proxy stalls",
            Self::Resume(_) => "a proxy goes on",
            Self::Reset(_) => "a proxy's connection is lost",
            Self::Restart(_) => "a proxy restarts",
            Self::Disconnect(_) => "a worker's connection is lost",
            Self::Lie(..) => "a worker lies",
        }
    }
}
