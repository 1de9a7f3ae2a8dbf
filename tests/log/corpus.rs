//! Every input that is kept for the fuzzers of folders and doors, as it is and with a few bytes changed.

use proptest::prelude::*;

use crate::inputs::{Target, damaged_input, feed_all};
use crate::targets::{doors, folder};

/// The targets by the names of their corpora.
const TARGETS: [(&str, Target); 3] = [
    ("open_data_dir", folder::open_data_dir),
    ("rest_body", doors::rest_body),
    ("worker_session", doors::worker_session),
];

#[test]
fn every_kept_input_is_survived() {
    feed_all(&TARGETS);
}

proptest! {
    // Each is a folder that is copied, or a control plane that starts and stops.
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn every_damaged_input_is_survived((target, input) in damaged_input(&TARGETS)) {
        target(&input);
    }
}
