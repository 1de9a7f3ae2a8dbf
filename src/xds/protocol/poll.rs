//! A client that polls over REST: no stream, so that what it has is what its request says.

use std::sync::Arc;

use super::subscription::Subscription;
use crate::events::Offset;
use crate::projection::resources::builders::load_assignment;
use crate::projection::resources::{Resource, Resources, SetDigest, TypeUrl, Version};

/// What a client that polls is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Polled {
    /// The version of what was asked for: the newest of its members, and a digest of their names and versions. Another
    /// choice of names has another version, so that a client that asks for more is answered.
    pub version: Version,
    /// All of it, sorted by name.
    pub resources: Vec<Arc<Resource>>,
}

/// Everything of a type that `names` stand for. Nothing when the client holds that already, by its `version`.
///
/// The names mean what they mean in the first message of a stream (xds-rules 12), and an assignment that is missing is an
/// empty one (xds-rules 10).
#[must_use]
pub fn poll(type_url: TypeUrl, names: &[String], version: &str, resources: &Resources) -> Option<Polled> {
    let world = resources.of(type_url);
    let mut wanted = Subscription::default();
    let _first = wanted.replace(type_url, names, world);
    let mut found: Vec<Arc<Resource>> = wanted.select(world).cloned().collect();
    if type_url == TypeUrl::ClusterLoadAssignment {
        let missing = wanted.names().iter().filter(|name| world.get(name.as_str()).is_none());
        let missing = missing.map(|name| name.as_str()).filter(|name| !name.is_empty());
        found.extend(
            missing.map(|name| {
                Arc::new(Resource::encode(name, Offset::ZERO, &load_assignment(name, Vec::new())))
            }),
        );
        found.sort_by(|a, b| a.name.cmp(&b.name));
    }
    let now = version_of(&found);
    (now.to_string() != version).then_some(Polled { version: now, resources: found })
}

fn version_of(resources: &[Arc<Resource>]) -> Version {
    let mut digest = SetDigest::default();
    resources.iter().for_each(|resource| digest.insert(&resource.name, resource.version));
    let offset = resources.iter().map(|resource| resource.version.offset).max();
    Version { offset: offset.unwrap_or_default(), digest: digest.content() }
}
