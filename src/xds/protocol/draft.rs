//! What goes into one response.

use std::sync::Arc;

use envoy_types::pb::envoy::config::endpoint::v3::ClusterLoadAssignment;
use imbl::OrdSet;
use prost::Message;

use super::owed::{Leaving, Owed, Release};
use super::response::{RESPONSE_BYTES_MAX, name_bytes};
use super::status::TypeStatus;
use super::variant::Variant;
use crate::projection::resources::{Resource, ResourceName, ResourceSet, TypeUrl, Version};

/// How responses of one type are made (xds-rules 11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// State of the world, clusters and listeners: always the full set. What is absent is deleted.
    Whole,
    /// State of the world, assignments and routes: what changed. What is absent stays.
    Parts,
    /// Delta: what changed, and the names that are gone.
    Delta,
}

impl Shape {
    pub(super) const fn of(variant: Variant, type_url: TypeUrl) -> Self {
        match (variant, type_url) {
            (Variant::Delta, _) => Self::Delta,
            (Variant::Sotw, TypeUrl::Cluster | TypeUrl::Listener) => Self::Whole,
            (
                Variant::Sotw,
                TypeUrl::ClusterLoadAssignment | TypeUrl::LbEndpoint | TypeUrl::RouteConfiguration,
            ) => Self::Parts,
        }
    }
}

/// A response without its nonce.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) version: Version,
    pub(super) resources: Vec<Arc<Resource>>,
    pub(super) removed: Vec<ResourceName>,
    changed: Changed,
    bytes: usize,
}

/// Which of the resources may differ from what the client holds.
#[derive(Clone, Debug)]
enum Changed {
    All,
    These(OrdSet<ResourceName>),
}

impl Draft {
    const fn new(version: Version) -> Self {
        Self { version, resources: Vec::new(), removed: Vec::new(), changed: Changed::All, bytes: 0 }
    }

    /// The full set: everything that is wanted and exists, and what is gone but must be kept up a while longer.
    pub(super) fn whole(
        owed: &mut Owed,
        status: &TypeStatus,
        world: &ResourceSet,
        release: Release,
    ) -> Option<Self> {
        if !owed.has_news() && !owed.can_release(release) {
            return None;
        }
        let first = status.sent.is_none();
        (owed.answer, owed.rest) = (false, false);
        owed.take_leaving(release);
        let mut shown = world.clone();
        for kept in owed.kept() {
            shown.insert(Resource::clone(kept));
        }
        let changed = owed.take_names();
        Some(Self {
            version: shown.version(),
            resources: status.subscription.select(&shown).cloned().collect(),
            removed: Vec::new(),
            changed: if first { Changed::All } else { Changed::These(changed) },
            bytes: 0,
        })
    }

    /// The assignments without which the clusters in this response stay warming (xds-rules 22).
    pub(super) fn assignments(&self) -> Vec<ResourceName> {
        let changed = |resource: &&Arc<Resource>| match &self.changed {
            Changed::All => true,
            Changed::These(names) => names.contains(&resource.name),
        };
        let assignments = self.resources.iter().filter(changed).filter_map(|cluster| cluster.assignment());
        assignments.cloned().collect()
    }

    fn is_empty(&self) -> bool {
        self.resources.is_empty() && self.removed.is_empty()
    }

    /// Whether so much more still fits. Something larger than a whole response goes alone (xds-rules 23).
    fn fits(&self, bytes: usize) -> bool {
        self.is_empty() || self.bytes + bytes <= RESPONSE_BYTES_MAX
    }
}

/// Makes responses that hold only some of the resources.
pub(super) struct Pieces<'a> {
    pub(super) type_url: TypeUrl,
    pub(super) shape: Shape,
    pub(super) world: &'a ResourceSet,
    pub(super) status: &'a TypeStatus,
}

/// What a client is told about one name.
enum Piece {
    Resource(Arc<Resource>),
    Removed(ResourceName),
    Nothing,
}

/// Whether a piece went in.
#[derive(PartialEq, Eq)]
enum Fit {
    In,
    Full,
}

impl Pieces<'_> {
    pub(super) fn draft(&self, owed: &mut Owed, release: Release) -> Option<Draft> {
        let mut draft = Draft::new(self.world.version());
        if self.add_names(&mut draft, owed) == Fit::In {
            self.add_leaving(&mut draft, owed, release);
        }
        let answer = std::mem::take(&mut owed.answer);
        while draft.is_empty()
            && !answer
            && let Some(group) = owed.pop_apart()
        {
            self.add_apart(&mut draft, &group);
        }
        (answer || !draft.is_empty()).then_some(draft)
    }

    fn add_names(&self, draft: &mut Draft, owed: &mut Owed) -> Fit {
        while let Some(name) = owed.pop() {
            self.world.departed(&name).cloned().for_each(|departed| owed.want(departed));
            let members: Vec<_> = self.world.collection(&name).map(|member| member.name.clone()).collect();
            if !members.is_empty() {
                members.into_iter().for_each(|member| owed.want(member));
                continue;
            }
            if add(draft, self.piece(&name)) == Fit::Full {
                owed.put_back(name);
                return Fit::Full;
            }
        }
        Fit::In
    }

    fn add_leaving(&self, draft: &mut Draft, owed: &mut Owed, release: Release) {
        for (name, leaving) in owed.take_leaving(release) {
            if add(draft, self.last_piece(&name, &leaving)) == Fit::Full {
                owed.put_back_leaving(name, leaving);
            } else if self.shape == Shape::Delta && self.is_emptied(&leaving) {
                owed.put_back_leaving(name, Leaving { last: None, since: leaving.since });
            }
        }
    }

    /// A batch was refused: sends some of it again, as far as it is still wanted and still the same. What changed
    /// since is sent because it changed.
    fn add_apart(&self, draft: &mut Draft, group: &[ResourceName]) {
        for name in group {
            if let Piece::Resource(resource) = self.piece(name)
                && self.status.rejected.get(name) == Some(&resource.version)
            {
                add(draft, Piece::Resource(resource));
            }
        }
    }

    fn piece(&self, name: &ResourceName) -> Piece {
        let wanted = |resource: &&Arc<Resource>| self.status.subscription.covers(resource);
        match (self.world.get(name.as_str()).filter(wanted), self.shape) {
            (Some(resource), _) => Piece::Resource(Arc::clone(resource)),
            (None, Shape::Delta) => Piece::Removed(name.clone()),
            // xds-rules 10: an empty assignment ends warming at once (envoyproxy/envoy#9934).
            // One without a name would be refused.
            (None, Shape::Parts)
                if self.type_url == TypeUrl::ClusterLoadAssignment && !name.as_str().is_empty() =>
            {
                Piece::Resource(self.empty_assignment(name))
            }
            (None, Shape::Parts | Shape::Whole) => Piece::Nothing,
        }
    }

    /// A client keeps the endpoints of an assignment that is removed, so that it is emptied first (xds-rules 24).
    fn last_piece(&self, name: &ResourceName, leaving: &Leaving) -> Piece {
        if self.is_emptied(leaving) { Piece::Resource(self.empty_assignment(name)) } else { self.piece(name) }
    }

    fn is_emptied(&self, leaving: &Leaving) -> bool {
        self.type_url == TypeUrl::ClusterLoadAssignment && leaving.last.is_some()
    }

    fn empty_assignment(&self, name: &ResourceName) -> Arc<Resource> {
        let cluster_name = name.as_str().to_owned();
        let message = ClusterLoadAssignment { cluster_name, ..ClusterLoadAssignment::default() };
        let offset = self.world.version().offset;
        Arc::new(Resource::new(self.type_url, name.clone(), offset, &message.encode_to_vec()))
    }
}

fn add(draft: &mut Draft, piece: Piece) -> Fit {
    let bytes = match &piece {
        Piece::Resource(resource) => resource.field_bytes(),
        Piece::Removed(name) => name_bytes(name),
        Piece::Nothing => 0,
    };
    if !draft.fits(bytes) {
        return Fit::Full;
    }
    draft.bytes += bytes;
    match piece {
        Piece::Resource(resource) => draft.resources.push(resource),
        Piece::Removed(name) => draft.removed.push(name),
        Piece::Nothing => {}
    }
    Fit::In
}
