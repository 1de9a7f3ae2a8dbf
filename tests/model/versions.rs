//! Where each version must come from.

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
    pub(crate) fn check<'a>(&'a self, resources: &Resources) {
        let clusters =
            |told: &'a Told| told.iter().map(|(name, c)| (name, &c.attributes)).collect::<Vec<_>>();
        let attributes = |told: &'a Told, name: &str| told.get(name).map(|cluster| &cluster.attributes);
        self.check_type(resources, TypeUrl::Cluster, clusters, attributes);
        // What leads to a cluster is made of its name alone.
        for type_url in [TypeUrl::Listener, TypeUrl::RouteConfiguration] {
            let routed =
                |told: &'a Told| told.iter().filter(|(_, c)| c.routed).map(|(n, _)| n).collect::<Vec<_>>();
            self.check_type(resources, type_url, routed, |told, name| {
                told.get(name).is_some_and(|c| c.routed)
            });
        }
        let names_and =
            |told: &'a Told| told.iter().map(|(name, c)| (name, &c.endpoints)).collect::<Vec<_>>();
        let endpoints = |told: &'a Told, name: &str| told.get(name).map(|cluster| &cluster.endpoints);
        self.check_type(resources, TypeUrl::ClusterLoadAssignment, names_and, endpoints);
    }

    #[track_caller]
    fn check_type<'a, A: PartialEq, O: PartialEq>(
        &'a self,
        resources: &Resources,
        type_url: TypeUrl,
        all: impl Fn(&'a Told) -> A,
        one: impl Fn(&'a Told, &str) -> O,
    ) {
        let set = resources.of(type_url);
        assert_eq!(set.version().offset, self.last_change(all), "{type_url} as a whole");
        for resource in set.iter() {
            let expected = self.last_change(|told| one(told, resource.name.as_str()));
            assert_eq!(resource.version.offset, expected, "{type_url} {}", resource.name);
        }
    }
}
