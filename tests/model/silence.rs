//! A crowd that falls silent is held, and is not taken for dead, as the model says.

use foldplane::testing::crowd;
use proptest::prelude::*;

use crate::machine::Watched;

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_crowd_that_falls_silent_is_held_as_the_model_says(steps in crowd()) {
        let mut watched = Watched::default();
        for step in &steps {
            watched.step(step);
        }
    }
}
