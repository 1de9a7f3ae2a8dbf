//! Lists for people and resources for clients are of one snapshot: they cannot disagree.

use std::collections::BTreeSet;

use foldplane::api::views;
use foldplane::projection::Snapshot;
use foldplane::projection::resources::{Dials, TypeUrl};
use foldplane::testing::model::{is_hidden, told_by};
use foldplane::testing::{play, steps};
use proptest::prelude::*;

/// `cluster address HEALTH` of all that workers make and clients are sent, as lists have it.
fn listed(snapshot: &Snapshot) -> BTreeSet<String> {
    let listing = views::endpoints(snapshot, None);
    let sent = listing.items.iter().filter(|item| !is_hidden(snapshot, &item.cluster));
    sent.map(|item| format!("{} {} {}", item.cluster, item.address, item.health)).collect()
}

/// The same as clients are sent it.
fn sent(snapshot: &Snapshot) -> BTreeSet<String> {
    let line = |cluster: &str, line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        format!("{cluster} {} {}", words[2], words[3])
    };
    let told = told_by(snapshot.resources(), Dials::Everything);
    let of_workers = told.iter().filter(|((type_url, name), _)| {
        *type_url == TypeUrl::ClusterLoadAssignment && !is_hidden(snapshot, name)
    });
    of_workers.flat_map(|((_, name), lines)| lines.iter().map(move |told| line(name, told))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    // kubernetes/kubernetes#125619, kubernetes/kubernetes#117193 (F28)
    #[test]
    fn lists_and_resources_say_the_same_at_every_offset(steps in steps(1..60)) {
        let mut snapshot = Snapshot::default();
        for envelope in &play(&steps) {
            snapshot = snapshot.fold([envelope]).0;
            prop_assert_eq!(listed(&snapshot), sent(&snapshot));
            prop_assert_eq!(views::endpoints(&snapshot, None).offset, envelope.offset.get());
        }
    }
}
