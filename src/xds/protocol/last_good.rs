//! Whole sets: what a client took last, and what it keeps in place of what it refused.
//!
//! A state-of-the-world client refuses a set of clusters or listeners as a whole, for the sake of one member. Until that
//! member changes the set is sent with the version of it that the client took before, so that the others go on
//! (xds-rules 18). Nothing of this is needed where resources are sent apart.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::response::Response;
use crate::events::Offset;
use crate::projection::resources::{Resource, ResourceName, ResourceSet, Version};

/// What one client made of the whole sets of one type.
#[derive(Clone, Debug, Default)]
pub(super) struct LastGood {
    /// The newest set that it took.
    accepted: Option<Arc<Response>>,
    /// The newest set that it took or refused.
    answered: Option<Arc<Response>>,
    stand_ins: BTreeMap<ResourceName, StandIn>,
    /// Those of the stand-ins that a refusal named and no acceptance has confirmed.
    guessed: Vec<ResourceName>,
}

#[derive(Clone, Debug)]
struct StandIn {
    refused: Version,
    /// As the client took it before; nothing where it had none.
    last: Option<Arc<Resource>>,
}

/// What a refusal says about a set.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// What the client means, or can have meant.
    pub(super) blamed: Vec<Arc<Resource>>,
    /// What has to be sent again, now without that.
    pub(super) again: Vec<ResourceName>,
}

impl LastGood {
    pub(super) fn accept(&mut self, response: &Arc<Response>) {
        self.accepted = Some(Arc::clone(response));
        self.answered = Some(Arc::clone(response));
        self.guessed.clear();
    }

    /// What the client took before and gets again cannot be why it refuses. Where a single suspect is left, or the
    /// reason names some of them, as those of Envoy and gRPC do, these are not sent again until they change. A client
    /// that has taken nothing on this stream may hold more than we know, so that nothing is left out.
    pub(super) fn reject(&mut self, response: &Arc<Response>, reason: &str) -> Findings {
        self.answered = Some(Arc::clone(response));
        let (blamed, others) = blame(self.suspects(response), reason);
        let is_old_news = blamed.iter().any(|resource| self.refuses(resource));
        if self.accepted.is_none() || is_old_news {
            return Findings { blamed, again: Vec::new() };
        }
        let withdrawn = std::mem::take(&mut self.guessed);
        self.stand_ins.retain(|name, _| !withdrawn.contains(name));
        let again = match (blamed.as_slice(), others.is_empty()) {
            ([only], true) => {
                self.keep_last(only);
                withdrawn
            }
            (named, false) if withdrawn.is_empty() => {
                named.iter().for_each(|resource| self.keep_last(resource));
                self.guessed = named.iter().map(|resource| resource.name.clone()).collect();
                others.iter().map(|resource| resource.name.clone()).collect()
            }
            (_, _) => Vec::new(),
        };
        Findings { blamed, again }
    }

    /// The set as the client is to see it.
    pub(super) fn apply(&self, world: &ResourceSet) -> ResourceSet {
        let mut shown = world.clone();
        for (name, stand_in) in &self.stand_ins {
            if world.get(name.as_str()).is_some_and(|resource| resource.version == stand_in.refused) {
                match &stand_in.last {
                    Some(last) => shown.insert(Resource::clone(last)),
                    None => shown.remove(name, Offset::ZERO),
                }
            }
        }
        shown
    }

    /// What the client holds under this name, if that is not what there is.
    pub(super) fn stand_in(&self, name: &ResourceName) -> Option<Option<&Arc<Resource>>> {
        self.stand_ins.get(name).map(|stand_in| stand_in.last.as_ref())
    }

    /// What is called like this changed, or the client wants to hear of it anew.
    pub(super) fn forget(&mut self, name: &ResourceName) {
        self.stand_ins.remove(name);
        self.guessed.retain(|guessed| guessed != name);
    }

    /// The newest set that it took or refused.
    pub(super) const fn answered(&self) -> Option<&Arc<Response>> {
        self.answered.as_ref()
    }

    fn suspects(&self, response: &Response) -> Vec<Arc<Resource>> {
        let accepted = self.accepted.iter().flat_map(|accepted| &accepted.resources);
        let accepted: BTreeMap<_, _> = accepted.map(|resource| (&resource.name, resource.version)).collect();
        let differs = |resource: &&Arc<Resource>| accepted.get(&resource.name) != Some(&resource.version);
        response.resources.iter().filter(differs).cloned().collect()
    }

    fn refuses(&self, resource: &Resource) -> bool {
        self.stand_ins.get(&resource.name).is_some_and(|stand_in| stand_in.refused == resource.version)
    }

    fn keep_last(&mut self, refused: &Resource) {
        let mut accepted = self.accepted.iter().flat_map(|accepted| &accepted.resources);
        let last = accepted.find(|resource| resource.name == refused.name).cloned();
        self.stand_ins.insert(refused.name.clone(), StandIn { refused: refused.version, last });
    }
}

/// Those that the reason names, and the others; all of them where it names none.
fn blame(suspects: Vec<Arc<Resource>>, reason: &str) -> (Vec<Arc<Resource>>, Vec<Arc<Resource>>) {
    let (named, others): (Vec<_>, Vec<_>) =
        suspects.into_iter().partition(|resource| names(reason, resource.name.as_str()));
    if named.is_empty() { (others, named) } else { (named, others) }
}

/// Whether a text names this, as a word of its own.
fn names(text: &str, name: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || "-_.:/".contains(c);
    !name.is_empty()
        && text.match_indices(name).any(|(at, found)| {
            let before = text.get(..at).and_then(|text| text.chars().next_back());
            let after = text.get(at + found.len()..).unwrap_or_default();
            // A colon or a full stop may end a sentence as well as go on with a name.
            let after = after.trim_start_matches([':', '.']).chars().next();
            !before.is_some_and(inside) && !after.is_some_and(inside)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_a_reason_is_a_word_of_its_own() {
        // As Envoy and gRPC write.
        let envoy =
            "Error adding/updating cluster(s) pay-v2: cannot create an EDS cluster without an EDS config";
        let grpc = "xDS response validation errors: [resource index 0: pay-v2: INVALID_ARGUMENT: errors]";
        for text in [envoy, grpc, "pay-v2", "bad: pay-v2."] {
            assert!(names(text, "pay-v2"), "{text}");
            assert!(!names(text, "pay"), "{text}");
            assert!(!names(text, "v2"), "{text}");
        }
        assert!(!names(envoy, ""));
    }
}
