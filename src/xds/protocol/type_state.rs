//! One type on one stream: what is wanted, what was sent, what is owed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::draft::{Draft, Pieces, Shape};
use super::in_flight::{Answered, InFlight, Rejection};
use super::last_good::LastGood;
use super::owed::{Leaving, Owed, Release};
use super::request::Names;
use super::response::Response;
use super::status::{TypeStatus, Verdict};
use super::subscription::{Edited, Subscription, WildcardEdit};
use super::variant::Variant;
use crate::events::Offset;
use crate::projection::resources::{Change, ResourceName, ResourceSet, TypeUrl};

/// Whether the client asked for this type at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Never,
    Once,
}

#[derive(Clone, Debug)]
pub(super) struct TypeState {
    type_url: TypeUrl,
    shape: Shape,
    asked: Asked,
    status: TypeStatus,
    last_good: LastGood,
    pub(super) owed: Owed,
    pub(super) in_flight: InFlight,
}

impl TypeState {
    pub(super) fn new(variant: Variant, type_url: TypeUrl) -> Self {
        Self {
            type_url,
            shape: Shape::of(variant, type_url),
            asked: Asked::Never,
            status: TypeStatus::default(),
            last_good: LastGood::default(),
            owed: Owed::default(),
            in_flight: InFlight::default(),
        }
    }

    pub(super) fn is_asked(&self) -> bool {
        self.asked == Asked::Once
    }

    pub(super) const fn subscription(&self) -> &Subscription {
        &self.status.subscription
    }

    /// How it stands, when it has taken in the resources of `seen`.
    pub(super) fn status(&self, seen: Offset) -> TypeStatus {
        let mut status = TypeStatus {
            owed: self.owed.names().clone(),
            in_flight: self.in_flight.newest().cloned(),
            ..self.status.clone()
        };
        if self.is_settled() {
            status.settle(seen);
        }
        status
    }

    /// Up to this offset it has answered for everything, when it has taken in the resources of `seen`.
    pub(super) fn settled(&self, seen: Offset) -> Offset {
        if self.is_settled() { seen } else { self.status.settled }
    }

    /// Remembers how far the client is with the resources of `seen`, before anything new becomes due.
    pub(super) fn keep_place(&mut self, seen: Offset) {
        if self.is_asked() && self.is_settled() {
            self.status.settle(seen);
        }
    }

    /// Whether the client knows everything and has said so.
    pub(super) fn is_settled(&self) -> bool {
        self.owed.is_empty() && self.in_flight.is_empty()
    }

    /// The set changed from `old` to `new`.
    pub(super) fn observe(&mut self, old: &ResourceSet, new: &ResourceSet, now: Duration) {
        for change in new.changes_since(old) {
            match change {
                Change::Upsert(resource) => {
                    if self.status.subscription.covers(&resource) {
                        self.status.rejected.remove(&resource.name);
                        self.last_good.forget(&resource.name);
                        self.owed.want(resource.name.clone());
                    }
                }
                Change::Removed(name) => self.observe_removed(&name, old, now),
            }
        }
    }

    fn observe_removed(&mut self, name: &ResourceName, old: &ResourceSet, now: Duration) {
        let Some(last) = old.get(name.as_str()) else { return };
        if !self.status.subscription.covers(last) {
            return;
        }
        self.status.rejected.remove(name);
        let last = self.last_good.stand_in(name).unwrap_or(Some(last)).map(Arc::clone);
        self.last_good.forget(name);
        match self.shape {
            // xds-rules 10, 11: a state-of-the-world stream has no way to say that a route is gone.
            Shape::Parts if self.type_url == TypeUrl::RouteConfiguration => self.owed.forget(name),
            Shape::Whole | Shape::Parts | Shape::Delta => {
                self.owed.gone(name.clone(), last, now);
            }
        }
    }

    /// Takes in what a message says about the response that it answers. ACK and NACK are told apart by the presence
    /// of an error only, and matched by nonce only (xds-rules 4, envoyproxy/envoy#14841).
    pub(super) fn answer(
        &mut self,
        nonce: &str,
        error: Option<&str>,
        world: &ResourceSet,
        now: Duration,
    ) -> Option<Verdict> {
        let Answered { response, completes } = self.in_flight.answer(nonce)?;
        Some(match error {
            None => {
                let verdict = self.accept(&response);
                self.status.settle(completes.unwrap_or_default());
                verdict
            }
            Some(message) if self.shape == Shape::Whole => self.reject_whole(&response, message, now),
            Some(message) => self.reject(&response, message, world, now),
        })
    }

    fn accept(&mut self, response: &Arc<Response>) -> Verdict {
        if self.shape == Shape::Whole {
            self.last_good.accept(response);
        }
        if !self.status.rejected.is_empty() {
            for resource in &response.resources {
                if self.last_good.stand_in(&resource.name).is_none() {
                    self.status.rejected.remove(&resource.name);
                }
            }
        }
        if self.status.rejected.is_empty() {
            self.status.rejection = None;
        }
        self.status.acked = Some(response.version);
        Verdict::Acked(self.type_url)
    }

    /// Nothing of a refused response counts as delivered. Nothing becomes due either, so that it cannot loop
    /// (xds-rules 18, envoyproxy/go-control-plane#962): except that the members of a batch are tried apart.
    fn reject(&mut self, response: &Response, message: &str, world: &ResourceSet, now: Duration) -> Verdict {
        let rejection = Rejection::new(response.version, &response.resources, message, now);
        self.status.rejection = Some(rejection.clone());
        for resource in &response.resources {
            self.owed.forget_apart(&resource.name);
            if self.status.subscription.covers(resource) {
                self.status.rejected.insert(resource.name.clone(), resource.version);
            }
        }
        let (present, emptied): (Vec<_>, Vec<_>) =
            response.resources.iter().partition(|resource| world.get(resource.name.as_str()).is_some());
        if present.is_empty() {
            return Verdict::Rejected(self.type_url, rejection);
        }
        // What was taken away was refused along with what is bad: it is taken away again, by itself.
        for name in &response.removed {
            self.owed.gone(name.clone(), None, now);
        }
        for resource in &emptied {
            let leaving = Leaving { last: Some(Arc::clone(resource)), since: now };
            self.owed.put_back_leaving(resource.name.clone(), leaving);
        }
        if present.len() + emptied.len() == 1 {
            return Verdict::Rejected(self.type_url, rejection);
        }
        let names: Vec<_> = present.iter().map(|resource| resource.name.clone()).collect();
        self.owed.send_apart(&names);
        Verdict::RejectedTogether(self.type_url, rejection)
    }

    /// A set cannot be sent apart: what is absent is deleted. It is sent without what made the client refuse it, as
    /// soon as that is known.
    fn reject_whole(&mut self, response: &Arc<Response>, message: &str, now: Duration) -> Verdict {
        let found = self.last_good.reject(response, Rejection::cut(message));
        let rejection = Rejection::new(response.version, &found.blamed, message, now);
        self.status.rejection = Some(rejection.clone());
        for resource in &found.blamed {
            if self.status.subscription.covers(resource) {
                self.status.rejected.insert(resource.name.clone(), resource.version);
            } else {
                self.owed.rest = true;
            }
        }
        found.again.into_iter().for_each(|name| self.owed.want(name));
        Verdict::Rejected(self.type_url, rejection)
    }

    /// Takes in what a message says about what the client wants. Gives how many names are new.
    pub(super) fn ask(&mut self, names: &Names, world: &ResourceSet, now: Duration) -> usize {
        let first = std::mem::replace(&mut self.asked, Asked::Once) == Asked::Never;
        let edited = match names {
            Names::Whole(names) => self.status.subscription.replace(self.type_url, names, world),
            Names::Edit(edit) => self.status.subscription.edit(self.type_url, edit, world),
        };
        if first {
            self.ask_first(names, world, now);
        } else if edited.wildcard == WildcardEdit::Gained {
            self.want_all(world, now);
        }
        let entered = edited.entered.len();
        self.apply(edited, world);
        entered
    }

    /// The first message about a type is always answered (xds-rules 6), except that a state-of-the-world client that
    /// waits for a route hears nothing until it exists (xds-rules 10).
    fn ask_first(&mut self, names: &Names, world: &ResourceSet, now: Duration) {
        match names {
            Names::Whole(names) => {
                self.owed.answer = self.type_url != TypeUrl::RouteConfiguration || names.is_empty();
            }
            Names::Edit(edit) => {
                self.owed.answer = true;
                self.compare(&edit.known, world, now);
            }
        }
    }

    /// What a delta client holds from an earlier stream: what differs is sent, what is gone is removed, what is equal
    /// is left alone (xds-rules 9). Versions are compared for equality only (envoyproxy/envoy#20699).
    fn compare(&mut self, known: &BTreeMap<String, String>, world: &ResourceSet, now: Duration) {
        for resource in self.status.subscription.select(world) {
            if known.get(resource.name.as_str()) != Some(&resource.version.to_string()) {
                self.owed.want(resource.name.clone());
            }
        }
        for name in known.keys().filter(|name| world.get(name).is_none()) {
            self.owed.gone(ResourceName::new(name), None, now);
        }
    }

    /// Everything is wanted again. What is on its way from before and is gone since must be taken back.
    fn want_all(&mut self, world: &ResourceSet, now: Duration) {
        match self.shape {
            Shape::Whole => self.owed.answer = true,
            Shape::Parts | Shape::Delta => {
                for resource in self.status.subscription.select(world) {
                    self.owed.want(resource.name.clone());
                }
                for resource in self.in_flight.resources() {
                    if world.get(resource.name.as_str()).is_none() {
                        self.owed.gone(resource.name.clone(), None, now);
                    }
                }
            }
        }
    }

    fn apply(&mut self, edited: Edited, world: &ResourceSet) {
        for name in edited.left {
            self.last_good.forget(&name);
            match self.shape {
                // xds-rules 12: whether the wildcard still covers it or not, the client must be told.
                Shape::Delta if self.subscription().is_wildcard() => self.owed.want(name),
                // Whatever it stands for, or stood for until now, the wildcard still covers it.
                Shape::Whole if self.subscription().is_wildcard() => {}
                Shape::Delta | Shape::Whole | Shape::Parts => self.owed.forget(&name),
            }
        }
        for name in edited.entered {
            self.last_good.forget(&name);
            self.owed.want(name);
        }
        self.forget_refused(world);
    }

    /// What was refused and is no longer wanted does not matter any more. A set that was refused with it is smaller
    /// now, and may be good.
    fn forget_refused(&mut self, world: &ResourceSet) {
        let subscription = &self.status.subscription;
        let unwanted = |name: &&ResourceName| {
            let covered = world.get(name.as_str()).is_some_and(|resource| subscription.covers(resource));
            !covered && !subscription.names().contains(*name) && !self.owed.is_leaving(name)
        };
        let unwanted: Vec<_> = self.status.rejected.keys().filter(unwanted).cloned().collect();
        for name in unwanted {
            self.status.rejected.remove(&name);
            self.owed.rest |= self.shape == Shape::Whole;
        }
    }

    /// A message repeats an answer that was already given. Envoy does this when it re-creates a cluster from elsewhere
    /// and needs the assignment again, with reordered or fewer names (xds-rules 22, envoyproxy/envoy#22377).
    pub(super) fn ask_again(&mut self, world: &ResourceSet) {
        for name in self.status.subscription.names().clone() {
            self.push(name, world);
        }
    }

    /// A cluster that was just sent takes its endpoints from this assignment. One that the client refused is not
    /// repeated: it would empty the cluster, which otherwise comes up with the endpoints that it has (xds-rules 18).
    pub(super) fn push(&mut self, name: ResourceName, world: &ResourceSet) {
        let current = world.get(name.as_str()).map(|resource| resource.version);
        let refused = current.is_some() && self.status.rejected.get(&name).copied() == current;
        if self.status.subscription.names().contains(&name) && !refused {
            self.owed.want(name);
        }
    }

    /// Makes the next response, if there is something to say.
    pub(super) fn draft(&mut self, world: &ResourceSet, release: Release) -> Option<Draft> {
        let draft = match self.shape {
            Shape::Whole => self.draft_whole(world, release),
            Shape::Parts | Shape::Delta => {
                let (type_url, shape) = (self.type_url, self.shape);
                let pieces = Pieces { type_url, shape, world, status: &self.status };
                pieces.draft(&mut self.owed, release)
            }
        }?;
        self.status.sent = Some(draft.version);
        Some(draft)
    }

    fn draft_whole(&mut self, world: &ResourceSet, release: Release) -> Option<Draft> {
        let only_rest = self.owed.is_only_rest(release);
        let shown = self.last_good.apply(world);
        let draft = Draft::whole(&mut self.owed, &self.status, &shown, release)?;
        let newest = self.in_flight.newest().or(self.last_good.answered());
        let is_known = only_rest && newest.is_some_and(|newest| newest.resources == draft.resources);
        (!is_known).then_some(draft)
    }
}
