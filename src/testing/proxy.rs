//! A dull xDS client: it keeps what it is sent, and asks for the assignments of the clusters that it has, as an
//! Envoy does. It checks what must hold of every response, whatever it is about.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::Answer;
use crate::events::Offset;
use crate::projection::resources::{Resource, TypeUrl, Version};
use crate::xds::protocol::{ACK_WAIT_MAX, Edit, Names, Request, Response, ResponseType, Variant};

/// The proxy's end: responses in, requests out, and nothing that moves them.
#[derive(Debug)]
pub struct Proxy {
    variant: Variant,
    held: BTreeMap<TypeUrl, BTreeMap<String, Arc<Resource>>>,
    wanted: BTreeSet<String>,
    /// Clusters that are new or changed, and wait for their assignments before they serve.
    warming: BTreeSet<String>,
    unanswered: Vec<(Arc<Response>, Duration)>,
    stream: Stream,
}

/// What is to be remembered of one stream only.
#[derive(Debug, Default)]
struct Stream {
    asked: BTreeSet<TypeUrl>,
    newest: BTreeMap<TypeUrl, Offset>,
    nonces: BTreeMap<TypeUrl, String>,
    seen_nonces: BTreeSet<String>,
    refused: bool,
    /// What it refused in a response of one resource: the version of the set, and that of the resource.
    refused_alone: BTreeMap<(TypeUrl, String), (Version, Version)>,
    /// The whole sets that it refused: their versions, and those of their members.
    refused_sets: BTreeSet<(Version, Vec<Version>)>,
}

impl Proxy {
    /// A proxy that holds nothing and has no stream yet.
    #[must_use]
    pub fn new(variant: Variant) -> Self {
        let (held, wanted, warming, unanswered, stream) = Default::default();
        Self { variant, held, wanted, warming, unanswered, stream }
    }

    /// Which variant of the protocol it speaks.
    #[must_use]
    pub const fn variant(&self) -> Variant {
        self.variant
    }

    /// Has a new stream in the place of the old one, keeps what it holds, and gives what it asks first.
    pub fn connect(&mut self) -> Vec<Request> {
        self.unanswered.clear();
        self.stream = Stream::default();
        let mut requests = vec![self.ask(TypeUrl::Cluster, &BTreeSet::new(), &BTreeSet::new())];
        if !self.wanted.is_empty() {
            let names = self.wanted.clone();
            requests.push(self.ask(TypeUrl::ClusterLoadAssignment, &names, &BTreeSet::new()));
        }
        requests
    }

    /// Reads a response that left the server at `sent`, without an answer yet.
    ///
    /// # Panics
    ///
    /// When the response breaks a rule of the protocol.
    pub fn hear(&mut self, response: Arc<Response>, sent: Duration) {
        self.check(&response, sent);
        self.unanswered.push((response, sent));
    }

    /// Answers everything that it has read, and gives the messages in their order.
    pub fn answer(&mut self, answer: Answer) -> Vec<Request> {
        let answerable =
            if answer == Answer::Later { Vec::new() } else { std::mem::take(&mut self.unanswered) };
        answerable.iter().flat_map(|(response, _)| self.answer_one(response, answer)).collect()
    }

    /// A message of this kind was doubled on its way: whoever asks anew is answered anew.
    pub fn has_asked_twice(&mut self, request: &Request) {
        self.stream.refused_alone.retain(|(type_url, _), _| type_url.as_str() != request.type_url);
        self.stream.refused_sets.clear();
    }

    /// Whether it refused something on this stream, and so may lack it.
    #[must_use]
    pub const fn has_refused(&self) -> bool {
        self.stream.refused
    }

    /// The clusters that it cannot use, because their assignments did not follow them.
    #[must_use]
    pub const fn warming(&self) -> &BTreeSet<String> {
        &self.warming
    }

    /// The names of the assignments that it wants: those of its clusters.
    #[must_use]
    pub const fn wanted(&self) -> &BTreeSet<String> {
        &self.wanted
    }

    /// What it holds of what it wants, by type and name. Equal versions mean equal bytes.
    #[must_use]
    pub fn view(&self) -> BTreeMap<(TypeUrl, String), Version> {
        let of = |(type_url, resources): (&TypeUrl, &BTreeMap<String, Arc<Resource>>)| {
            let type_url = *type_url;
            let bytes =
                |(name, resource): (&String, &Arc<Resource>)| ((type_url, name.clone()), resource.version);
            resources.iter().map(bytes).collect::<Vec<_>>()
        };
        self.held.iter().flat_map(of).collect()
    }

    /// What must hold of every response, whatever it is about.
    fn check(&mut self, response: &Response, sent: Duration) {
        let ResponseType::Served(type_url) = response.type_url else {
            unreachable!("nobody asked: {response:?}")
        };
        let stream = &mut self.stream;
        let version = response.version.to_string();
        // xds-rules 3
        assert!(
            stream.seen_nonces.insert(response.nonce.clone()),
            "the nonce {} is used twice",
            response.nonce
        );
        assert_ne!(response.nonce, version);
        // xds-rules 19
        let offset = response.version.offset;
        let newest = stream.newest.entry(type_url).or_default();
        assert!(*newest <= offset, "{type_url} went back from {newest} to {offset}");
        *newest = offset;
        // xds-rules 18
        if self.variant == Variant::Sotw && type_url == TypeUrl::Cluster {
            assert!(!stream.refused_sets.contains(&set(response)), "sent again: {response:?}");
        } else if let [resource] = response.resources.as_slice() {
            let refused = stream.refused_alone.get(&(type_url, resource.name.to_string()));
            assert_ne!(refused, Some(&(response.version, resource.version)), "sent again: {response:?}");
        }
        // xds-rules 17
        let same = |(other, since): &&(Arc<Response>, Duration)| {
            other.type_url == response.type_url && sent < *since + ACK_WAIT_MAX
        };
        assert_eq!(self.unanswered.iter().find(same), None, "two unanswered responses: {response:?}");
    }

    fn answer_one(&mut self, response: &Response, answer: Answer) -> Vec<Request> {
        let ResponseType::Served(type_url) = response.type_url else { return Vec::new() };
        self.stream.nonces.insert(type_url, response.nonce.clone());
        let error = (answer == Answer::Refuse).then(|| "refused".to_owned());
        self.stream.refused |= error.is_some();
        if error.is_some() && self.variant == Variant::Sotw && type_url == TypeUrl::Cluster {
            self.stream.refused_sets.insert(set(response));
        }
        if let (Answer::Refuse, [resource]) = (answer, response.resources.as_slice()) {
            let versions = (response.version, resource.version);
            self.stream.refused_alone.insert((type_url, resource.name.to_string()), versions);
        }
        let names = match self.variant {
            Variant::Sotw if type_url == TypeUrl::Cluster => Names::Whole(Vec::new()),
            Variant::Sotw => Names::Whole(self.wanted.iter().cloned().collect()),
            Variant::Delta => Names::Edit(Edit::default()),
        };
        let accepted = error.is_none();
        if accepted {
            self.take(type_url, response);
        }
        let nonce = response.nonce.clone();
        let mut requests = vec![Request { type_url: type_url.as_str().to_owned(), nonce, error, names }];
        if accepted && type_url == TypeUrl::Cluster {
            requests.extend(self.follow_clusters());
        }
        requests
    }

    fn take(&mut self, type_url: TypeUrl, response: &Response) {
        let held = self.held.entry(type_url).or_default();
        let changed = |resource: &&Arc<Resource>| {
            held.get(resource.name.as_str()).is_none_or(|known| known.version != resource.version)
        };
        if type_url == TypeUrl::Cluster {
            let changed = response.resources.iter().filter(changed);
            self.warming.extend(changed.filter_map(|cluster| cluster.assignment()).map(ToString::to_string));
        } else {
            self.warming.retain(|name| !response.resources.iter().any(|sent| sent.name.as_str() == name));
        }
        // xds-rules 11
        if self.variant == Variant::Sotw && type_url == TypeUrl::Cluster {
            held.clear();
        }
        // What was on its way when the client lost interest is not kept.
        let wanted = |resource: &&Arc<Resource>| {
            type_url != TypeUrl::ClusterLoadAssignment || self.wanted.contains(resource.name.as_str())
        };
        for resource in response.resources.iter().filter(wanted) {
            held.insert(resource.name.to_string(), Arc::clone(resource));
        }
        response.removed.iter().for_each(|name| drop(held.remove(name.as_str())));
    }

    /// Wants the assignments of the clusters that it has, and drops the others.
    fn follow_clusters(&mut self) -> Option<Request> {
        let clusters = self.held.entry(TypeUrl::Cluster).or_default();
        let wanted: BTreeSet<String> =
            clusters.values().filter_map(|c| c.assignment()).map(ToString::to_string).collect();
        self.warming.retain(|name| wanted.contains(name));
        let before = std::mem::replace(&mut self.wanted, wanted);
        if before == self.wanted {
            return None;
        }
        let assignments = self.held.entry(TypeUrl::ClusterLoadAssignment).or_default();
        assignments.retain(|name, _| self.wanted.contains(name));
        let (new, gone) = (&self.wanted - &before, &before - &self.wanted);
        Some(self.ask(TypeUrl::ClusterLoadAssignment, &new, &gone))
    }

    /// Asks for names, the whole set or the change of it.
    fn ask(&mut self, type_url: TypeUrl, new: &BTreeSet<String>, gone: &BTreeSet<String>) -> Request {
        let first = self.stream.asked.insert(type_url);
        // Whoever asks anew is answered anew.
        self.stream.refused_alone.retain(|(_, name), _| !new.contains(name));
        let warming = &self.warming;
        let held = self.held.entry(type_url).or_default();
        // What a cluster waits for it does not have.
        let usable = held.iter().filter(|(name, _)| type_url == TypeUrl::Cluster || !warming.contains(*name));
        let known = usable.map(|(name, resource)| (name.clone(), resource.version.to_string()));
        let list = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>();
        let names = match (self.variant, type_url) {
            (Variant::Sotw, TypeUrl::Cluster) => Names::Whole(Vec::new()),
            (Variant::Sotw, _) => Names::Whole(list(&self.wanted)),
            (Variant::Delta, _) => Names::Edit(Edit {
                subscribe: list(new),
                unsubscribe: list(gone),
                known: if first { known.collect() } else { BTreeMap::new() },
            }),
        };
        let nonce = match self.variant {
            Variant::Sotw => self.stream.nonces.get(&type_url).cloned().unwrap_or_default(),
            Variant::Delta => String::new(),
        };
        Request { type_url: type_url.as_str().to_owned(), nonce, error: None, names }
    }
}

/// What tells one whole set from another.
fn set(response: &Response) -> (Version, Vec<Version>) {
    (response.version, response.resources.iter().map(|resource| resource.version).collect())
}
