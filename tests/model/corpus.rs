//! Every input that is kept for the fuzzers in `fuzz/corpus/<target>/`, as it is and with a few bytes changed.

use std::fs;
use std::path::Path;

use foldplane::testing::fuzz;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

type Target = fn(&[u8]);

/// The targets by the names of their corpora.
const TARGETS: [(&str, Target); 3] = [
    ("ads_stream", fuzz::ads_stream),
    ("decode_record", fuzz::decode_record),
    ("import_jsonl", fuzz::import_jsonl),
];

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "the corpus of {target} is empty");
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

#[test]
fn every_kept_input_is_survived() {
    for (name, target) in TARGETS {
        corpus(name).iter().for_each(|input| target(input));
    }
}

/// Bytes set to others, and how much is kept of the end.
type Damage = (Vec<(Index, u8)>, Index);

fn damaged(mut input: Vec<u8>, (changes, end): Damage) -> Vec<u8> {
    for (at, byte) in changes {
        if !input.is_empty() {
            let place = at.index(input.len());
            input[place] = byte;
        }
    }
    // Cut short in one of two cases.
    let length = end.index(2 * input.len() + 1);
    input.truncate(length.max(input.len() / 8));
    input
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, ..ProptestConfig::default() })]

    #[test]
    fn every_damaged_input_is_survived(
        target in 0..TARGETS.len(),
        which in any::<Index>(),
        damage in (vec((any::<Index>(), any::<u8>()), 0..6), any::<Index>()),
    ) {
        let (name, target) = TARGETS[target];
        let mut inputs = corpus(name);
        let input = inputs.swap_remove(which.index(inputs.len()));
        target(&damaged(input, damage));
    }
}
