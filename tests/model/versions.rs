//! Where each version must come from, and that none ever means two things.

use std::collections::BTreeMap;

use bytes::Bytes;
use foldplane::events::Offset;
use foldplane::projection::resources::{Resources, TypeUrl};

use crate::told::Told;

/// What clients were told after each event, the empty beginning first.
#[derive(Clone, Debug)]
pub(crate) struct Past(Vec<Told>);

impl Past {
    pub(crate) fn new() -> Self {
        Self(vec![Told::new()])
    }

    pub(crate) fn push(&mut self, told: Told) {
        self.0.push(told);
    }

    pub(crate) fn last(&self) -> &Told {
        self.0.last().expect("it starts with one")
    }

    /// The last event before and after which `look` sees something else.
    fn last_change<'a, T: PartialEq>(&'a self, look: impl Fn(&'a Told) -> T) -> Offset {
        let pairs = self.0.windows(2).enumerate().rev();
        let changed = pairs.map(|(index, pair)| (index, look(&pair[0]) != look(&pair[1])));
        let last = changed.into_iter().find(|(_, changed)| *changed);
        Offset::new(last.map_or(0, |(index, _)| index as u64 + 1))
    }

    /// Each version's offset is that of the last event that changed what it stands for (xds-rules 1 and 2).
    #[track_caller]
    pub(crate) fn check(&self, resources: &Resources) {
        let clusters = resources.of(TypeUrl::Cluster);
        let names = self.last_change(|told| told.keys().collect::<Vec<_>>());
        assert_eq!(clusters.version().offset, names, "all clusters");
        for cluster in clusters.iter() {
            let expected = self.last_change(|told| told.contains_key(cluster.name.as_str()));
            assert_eq!(cluster.version.offset, expected, "cluster {}", cluster.name);
        }
        let assignments = resources.of(TypeUrl::ClusterLoadAssignment);
        assert_eq!(assignments.version().offset, self.last_change(|told| told), "all assignments");
        for assignment in assignments.iter() {
            let expected = self.last_change(|told| told.get(assignment.name.as_str()));
            assert_eq!(assignment.version.offset, expected, "assignment {}", assignment.name);
        }
    }
}

/// Every version that was ever published, and the bytes that it stood for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    bytes: BTreeMap<(TypeUrl, String, String), Bytes>,
    newest: BTreeMap<(TypeUrl, String), Offset>,
}

impl Ledger {
    /// Equal version, equal bytes; and no version ever falls.
    #[track_caller]
    pub(crate) fn check(&mut self, resources: &Resources) {
        for type_url in TypeUrl::ALL {
            let set = resources.of(type_url);
            let all: Vec<u8> = set.iter().flat_map(|resource| resource.any().to_vec()).collect();
            self.note(type_url, "", set.version().to_string(), set.version().offset, all.into());
            for resource in set.iter() {
                let version = resource.version;
                let name = resource.name.as_str();
                self.note(type_url, name, version.to_string(), version.offset, resource.any().clone());
            }
        }
    }

    #[track_caller]
    fn note(&mut self, type_url: TypeUrl, name: &str, version: String, offset: Offset, bytes: Bytes) {
        assert!(version.len() <= 32, "{version} has more than 32 characters");
        let newest = self.newest.entry((type_url, name.to_owned())).or_default();
        assert!(*newest <= offset, "{type_url} {name} fell from {newest} to {offset}");
        *newest = offset;
        let key = (type_url, name.to_owned(), version);
        let known = self.bytes.entry(key.clone()).or_insert_with(|| bytes.clone());
        assert_eq!(*known, bytes, "{key:?} stands for two contents");
    }
}
