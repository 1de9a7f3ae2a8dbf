//! Where each version must come from.

use crate::events::{Offset, ResourceKind};
use crate::projection::resources::{Resources, TypeUrl};

use super::told::Told;

/// What clients were told after each event, the empty beginning first.
#[derive(Clone, Debug)]
pub struct Past(Vec<Told>);

impl Default for Past {
    fn default() -> Self {
        Self(vec![Told::new()])
    }
}

impl Past {
    /// One more event happened, and this is told now.
    pub fn push(&mut self, told: Told) {
        self.0.push(told);
    }

    /// What is told now.
    ///
    /// # Panics
    ///
    /// Never: it starts with one.
    #[must_use]
    pub fn last(&self) -> &Told {
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
    ///
    /// # Panics
    ///
    /// When one is not.
    #[track_caller]
    pub fn check(&self, resources: &Resources) {
        for type_url in ResourceKind::ALL.map(TypeUrl::from) {
            let set = resources.of(type_url);
            let of_type = |told: &Told| -> Vec<_> {
                let all = told.iter().filter(|((of, _), _)| *of == type_url);
                all.map(|(key, said)| (key.clone(), said.clone())).collect()
            };
            assert_eq!(set.version().offset, self.last_change(of_type), "{type_url} as a whole");
            for resource in set.iter() {
                let key = (type_url, resource.name.to_string());
                let expected = self.last_change(|told| told.get(&key));
                assert_eq!(resource.version.offset, expected, "{type_url} {}", resource.name);
            }
        }
    }
}
