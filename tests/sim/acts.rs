//! What happens in a run, made from its seed.

use foldplane::testing::{Answer, Step, Wanted, step, worker};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// So many clients, by turns of either variant.
pub(crate) const CLIENTS: usize = 4;

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
    /// From now on no write works.
    Break,
    /// From now on they do.
    Mend,
    /// The process dies while it handles these wishes, before or after they are written, and starts again.
    Crash(Death, Vec<Step>),
    /// A client looks at its stream.
    Turn(usize, Answer),
    /// A client loses its stream.
    Reconnect(usize),
}

/// When a process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Death {
    BeforeTheWrite,
    AfterTheWrite,
}

/// The acts of a seed. Which kinds are frequent is drawn once a run.
pub(crate) fn acts(seed: u64) -> Vec<Act> {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let weights = select(&[0, 1, 4][..]);
    let run = (weights.clone(), weights.clone(), weights)
        .prop_flat_map(|(breaks, crashes, refusals)| vec(act(breaks, crashes, refusals), 20..80));
    run.new_tree(&mut runner).expect("the strategies reject nothing").current()
}

/// What others may wish; starts and the ends of graces are the engine's own.
fn wish() -> impl Strategy<Value = Step> {
    step(worker().boxed()).prop_filter("the engine's own", |step| {
        !matches!(step.wanted, Wanted::StartReplica { .. } | Wanted::EndRejoin | Wanted::EndGrace { .. })
    })
}

fn act(breaks: u32, crashes: u32, refusals: u32) -> impl Strategy<Value = Act> {
    let death = select(&[Death::BeforeTheWrite, Death::AfterTheWrite][..]);
    let refuse = if refusals == 0 { Answer::Accept } else { Answer::Refuse };
    let answer = select(vec![Answer::Accept, Answer::Accept, Answer::Accept, Answer::Later, refuse]);
    prop_oneof![
        20 => vec(wish(), 1..6).prop_map(Act::Wish),
        2 => wish().prop_map(Box::new).prop_map(Act::Forget),
        4 => (0..8_000_u64).prop_map(Act::Wait),
        1 => (0..60_000_u64).prop_map(Act::SetBack),
        breaks => Just(Act::Break),
        2 * breaks => Just(Act::Mend),
        crashes => (death, vec(wish(), 0..4)).prop_map(|(death, wishes)| Act::Crash(death, wishes)),
        12 => (0..CLIENTS, answer).prop_map(|(client, answer)| Act::Turn(client, answer)),
        1 => (0..CLIENTS).prop_map(Act::Reconnect),
    ]
}
