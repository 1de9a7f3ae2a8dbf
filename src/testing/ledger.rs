//! Every version that was ever published, and the bytes that it stood for.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::events::Offset;
use crate::projection::resources::{Resources, TypeUrl};

/// The longest version that clients and tools take (xds-rules 1).
const VERSION_CHARACTERS_MAX: usize = 32;

/// Remembers what was published, to find a version that falls or that means two things.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    bytes: BTreeMap<(TypeUrl, String, String), Bytes>,
    newest: BTreeMap<(TypeUrl, String), Offset>,
}

impl Ledger {
    /// Takes in what is published now.
    ///
    /// # Panics
    ///
    /// When a version has fallen, stands for other bytes than before, or is too long.
    #[track_caller]
    pub fn check(&mut self, resources: &Resources) {
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
        assert!(version.len() <= VERSION_CHARACTERS_MAX, "{version} is too long");
        let newest = self.newest.entry((type_url, name.to_owned())).or_default();
        assert!(*newest <= offset, "{type_url} {name} fell from {newest} to {offset}");
        *newest = offset;
        let key = (type_url, name.to_owned(), version);
        if let Some(known) = self.bytes.get(&key) {
            assert_eq!(*known, bytes, "{key:?} stands for two contents");
        }
        self.bytes.insert(key, bytes);
    }
}
