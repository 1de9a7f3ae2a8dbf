//! The real `decide`, `evolve` and rendering, step by step beside the model.

use std::collections::BTreeSet;

use foldplane::command::decide;
use foldplane::events::{Actor, Envelope, Timestamp, WorkerKey};
use foldplane::projection::findings::findings;
use foldplane::projection::resources::Dials;
use foldplane::projection::{Outcome, Snapshot};
use foldplane::testing::model::{Past, check_decision, failures, living, told, told_by};
use foldplane::testing::{Ledger, Step, Wanted, check_owners, step, worker};
use proptest::prelude::*;
use proptest::sample::select;
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};

/// Knows which workers anybody has ever wished for, so that later wishes hit something.
pub(crate) struct Wishes;

impl ReferenceStateMachine for Wishes {
    type State = BTreeSet<WorkerKey>;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<Self::State> {
        Just(BTreeSet::new()).boxed()
    }

    fn transitions(wished: &Self::State) -> BoxedStrategy<Step> {
        let known: Vec<WorkerKey> = wished.iter().cloned().collect();
        let anybody = worker().boxed();
        let workers =
            if known.is_empty() { anybody } else { prop_oneof![4 => select(known), 1 => anybody].boxed() };
        step(workers).boxed()
    }

    fn apply(mut wished: Self::State, step: &Step) -> Self::State {
        if let Wanted::Register(wish) = &step.wanted {
            wished.insert(wish.worker.clone());
        }
        wished
    }
}

/// The real thing, and what the model needs to judge it.
pub(crate) struct Watched {
    real: Snapshot,
    events: Vec<Envelope>,
    /// As those see it who dial everything, and those who dial IP addresses only.
    seen: [(Dials, Past, Ledger); 2],
    now_ms: u64,
}

impl Default for Watched {
    fn default() -> Self {
        let seen =
            [Dials::Everything, Dials::IpOnly].map(|dials| (dials, Past::default(), Ledger::default()));
        Self { real: Snapshot::default(), events: Vec::new(), seen, now_ms: 1_000_000 }
    }
}

impl Watched {
    /// Makes a step, and judges the answer.
    pub(crate) fn step(&mut self, step: &Step) {
        self.now_ms += step.after_ms;
        let now = Timestamp::from_millis(self.now_ms);
        let state = self.real.state();
        let command = step.wanted.command(state);
        let answer = decide(state, &command, now);
        check_decision(&self.events, &command, now, &answer);
        let Ok(made) = answer else { return };
        for event in made {
            self.happen(event, now);
        }
        let again = decide(self.real.state(), &command, now);
        assert_eq!(again, Ok(Vec::new()), "wished twice: {command:?}");
    }

    fn happen(&mut self, event: foldplane::events::Event, recorded_at: Timestamp) {
        let offset = self.real.offset().next();
        let envelope = Envelope { offset, recorded_at, actor: Actor::System, correlation: None, event };
        let (next, outcomes) = self.real.fold([&envelope]);
        assert_eq!(outcomes, [Outcome::Folded], "decided what cannot be folded: {envelope:?}");
        self.real = next;
        self.events.push(envelope);
        self.judge();
    }

    fn judge(&mut self) {
        for (dials, past, ledger) in &mut self.seen {
            past.push(told(&self.events, *dials));
            let resources = self.real.resources().dialled(*dials);
            assert_eq!(
                &told_by(self.real.resources(), *dials),
                past.last(),
                "what {dials:?} is and should be told"
            );
            past.check(&resources);
            ledger.check(&resources);
        }
        assert_eq!(findings(self.real.state()).count(), failures(&self.events), "hooks that give no answer");
    }
}

impl StateMachineTest for Watched {
    type SystemUnderTest = Self;
    type Reference = Wishes;

    fn init_test(_: &BTreeSet<WorkerKey>) -> Self {
        Self::default()
    }

    fn apply(mut watched: Self, _: &BTreeSet<WorkerKey>, step: Step) -> Self {
        watched.step(&step);
        watched
    }

    fn check_invariants(watched: &Self, _: &BTreeSet<WorkerKey>) {
        check_owners(watched.real.state());
        assert_eq!(watched.real.state().workers().len(), living(&watched.events).len());
        assert_eq!(watched.real.state().anomalies(), 0);
    }
}

prop_state_machine! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn the_fold_does_what_the_model_says(sequential 1..48 => Watched);
}
