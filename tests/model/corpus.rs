//! Every input that is kept for the fuzzers of pure code, as it is and with a few bytes changed.

use foldplane::testing::fuzz;
use proptest::prelude::*;

use crate::inputs::{Target, damaged_input, feed_all};

/// The targets by the names of their corpora.
const TARGETS: [(&str, Target); 5] = [
    ("ads_stream", fuzz::ads_stream),
    ("cel_policy", fuzz::cel_policy),
    ("decode_record", fuzz::decode_record),
    ("import_jsonl", fuzz::import_jsonl),
    ("upcast", fuzz::upcast),
];

#[test]
fn every_kept_input_is_survived() {
    feed_all(&TARGETS);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, ..ProptestConfig::default() })]

    #[test]
    fn every_damaged_input_is_survived((target, input) in damaged_input(&TARGETS)) {
        target(&input);
    }
}
