//! Golden worlds: a log in, out what clients are told after each event and the versions at the end, in `tests/testdata/worlds/<case>/`.
//!
//! `UPDATE_EXPECT=1 cargo test --test model worlds` writes the outcomes anew after a change that is meant. The logs are what
//! `foldplane log dump` prints, so that a real one can become a case.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use expect_test::expect_file;
use foldplane::events::Envelope;
use foldplane::projection::resources::{Change, Dials, Resources, TypeUrl};
use foldplane::projection::{Outcome, Snapshot};
use foldplane::testing::model::told_by;
use foldplane::testing::{corpus, replay};

fn worlds() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/testdata/worlds")
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

/// What happened at each event, and what clients are told at the end.
fn outcome(log: &[Envelope]) -> String {
    let mut text = String::new();
    let mut snapshot = Snapshot::default();
    for envelope in log {
        let (next, outcomes) = snapshot.fold([envelope]);
        let news = match outcomes.as_slice() {
            [Outcome::Ignored(anomaly)] => format!(" ignored: {anomaly}"),
            _ => changes(snapshot.resources(), next.resources()),
        };
        writeln!(text, "{} {}:{news}", envelope.offset, envelope.event.name()).unwrap();
        if told_by(next.resources(), Dials::Everything) != told_by(snapshot.resources(), Dials::Everything) {
            text.push_str(&endpoints(next.resources()));
        }
        snapshot = next;
    }
    text + "\n" + &versions(snapshot.resources())
}

fn changes(earlier: &Resources, later: &Resources) -> String {
    let mut text = String::new();
    for type_url in TypeUrl::ALL {
        for change in later.of(type_url).changes_since(earlier.of(type_url)) {
            match change {
                Change::Upsert(resource) => write!(text, " {type_url} +{}", resource.name).unwrap(),
                Change::Removed(name) => write!(text, " {type_url} -{name}").unwrap(),
            }
        }
    }
    if text.is_empty() { " nothing that clients see".to_owned() } else { text }
}

fn versions(resources: &Arc<Resources>) -> String {
    let mut text = String::new();
    for type_url in TypeUrl::ALL {
        let set = resources.of(type_url);
        writeln!(text, "{type_url} {}", set.version()).unwrap();
        set.iter().for_each(|r| writeln!(text, "  {} {}", r.name, r.version).unwrap());
        let by_ip = resources.dialled(Dials::IpOnly);
        let others = by_ip.of(type_url).iter().filter(|r| set.get(r.name.as_str()) != Some(*r));
        others.for_each(|r| writeln!(text, "  {} {} as gRPC has it", r.name, r.version).unwrap());
    }
    text
}

fn endpoints(resources: &Arc<Resources>) -> String {
    let mut text = String::new();
    let (told, told_by_ip) = (told_by(resources, Dials::Everything), told_by(resources, Dials::IpOnly));
    for ((type_url, name), endpoints) in &told {
        if *type_url != TypeUrl::ClusterLoadAssignment {
            continue;
        }
        let of = |type_url| told.get(&(type_url, name.clone()));
        let attributes = of(TypeUrl::Cluster).map_or("", |said| said[0].as_str());
        let led = if of(TypeUrl::Listener).is_some() { "" } else { " (not for gRPC)" };
        writeln!(text, "    {}", format!("{name}{led} {attributes}").trim_end()).unwrap();
        endpoints.iter().for_each(|line| writeln!(text, "      {line}").unwrap());
        let by_ip = &told_by_ip[&(*type_url, name.clone())];
        if by_ip != endpoints {
            writeln!(text, "    {name} as gRPC has it").unwrap();
            by_ip.iter().for_each(|line| writeln!(text, "      {line}").unwrap());
        }
    }
    text
}

#[test]
fn every_world_comes_out_as_it_is_written() {
    let cases = names_in(&worlds());
    assert!(!cases.is_empty());
    for case in cases {
        let folder = worlds().join(&case);
        let text = fs::read_to_string(folder.join("log.jsonl")).unwrap();
        let log = corpus(&text).unwrap();
        replay(&log, |_| ());
        expect_file![folder.join("told.txt")].assert_eq(&outcome(&log));
        assert_eq!(names_in(&folder), ["log.jsonl", "told.txt"], "{case} holds what no test reads");
    }
}
