//! The inputs that are kept for the fuzzers in `fuzz/corpus/<target>/`, as they are and with a few bytes changed.
#![allow(dead_code, unreachable_pub, reason = "not every binary uses every part")]

use std::fs;
use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

/// What a fuzzer feeds.
pub type Target = fn(&[u8]);

/// Feeds every kept input to its target.
pub fn feed_all(targets: &[(&str, Target)]) {
    for (name, target) in targets {
        corpus(name).iter().for_each(|input| target(input));
    }
}

/// A target, and a kept input for it that was damaged.
pub fn damaged_input(targets: &'static [(&'static str, Target)]) -> impl Strategy<Value = (Target, Vec<u8>)> {
    let damage = (vec((any::<Index>(), any::<u8>()), 0..6), any::<Index>());
    (0..targets.len(), any::<Index>(), damage).prop_map(|(target, which, damage)| {
        let (name, target) = targets[target];
        let mut inputs = corpus(name);
        let input = inputs.swap_remove(which.index(inputs.len()));
        (target, damaged(input, damage))
    })
}

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "the corpus of {target} is empty");
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
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
