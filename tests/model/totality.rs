//! Any event on any state: no panic, and what makes no sense changes nothing.

use foldplane::events::Envelope;
use foldplane::projection::resources::Dials;
use foldplane::projection::{Outcome, Snapshot};
use foldplane::testing::model::{Past, told, told_by};
use foldplane::testing::{Ledger, events, play, steps};
use proptest::prelude::*;

/// Folds the events one by one beside the model.
#[track_caller]
fn check(events: &[Envelope]) {
    let (mut real, mut past, mut ledger) = (Snapshot::default(), Past::default(), Ledger::default());
    let mut ignored = 0;
    for (count, envelope) in (1..).zip(events) {
        let (next, outcomes) = real.fold([envelope]);
        if let [Outcome::Ignored(_)] = outcomes.as_slice() {
            ignored += 1;
            assert_eq!(
                told_by(next.resources(), Dials::Everything),
                told_by(real.resources(), Dials::Everything),
                "an ignored event changed something"
            );
            assert_eq!(next.state().workers(), real.state().workers());
        }
        real = next;
        assert_eq!(real.state().anomalies(), ignored);
        past.push(told(&events[..count], Dials::Everything));
        assert_eq!(&told_by(real.resources(), Dials::Everything), past.last());
        past.check(real.resources());
        ledger.check(real.resources());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn any_event_on_any_state_is_folded_or_counted(events in events(1..50)) {
        check(&events);
    }

    #[test]
    fn an_event_that_was_folded_is_not_folded_again(steps in steps(1..30)) {
        let log = play(&steps);
        let (snapshot, _) = Snapshot::default().fold(&log);
        let (again, outcomes) = snapshot.fold(&log);
        prop_assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Repeated));
        prop_assert_eq!(again.state(), snapshot.state());
    }
}
