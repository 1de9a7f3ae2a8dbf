//! A dull client of one aggregated stream: it keeps what it is sent, and asks for the assignments of the clusters
//! that it has, as an Envoy does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::events::Offset;
use crate::projection::resources::{Resource, Resources, TypeUrl, Version};
use crate::xds::protocol::{
    ACK_WAIT_MAX, Edit, Machine, Names, Request, Response, ResponseType, Served, StreamId, Variant,
};

/// What a client does with a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Takes it.
    Accept,
    /// Refuses it, whatever it is.
    Refuse,
    /// It will answer when it is asked for the next time.
    Later,
}

/// What happened on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It had a response.
    Responded,
    /// It had none, but an earlier one was answered.
    Answered,
    /// Nothing.
    Silent,
}

/// A stream that has not come to rest after so many turns never will.
const TURNS_MAX: usize = 500;

/// A client, and the server's end of its stream. It checks what must hold of every response, whatever it is about.
#[derive(Debug)]
pub struct Client {
    variant: Variant,
    machine: Machine,
    streams: u64,
    held: BTreeMap<TypeUrl, BTreeMap<String, Arc<Resource>>>,
    wanted: BTreeSet<String>,
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

impl Client {
    /// A client that holds nothing and has just opened its stream.
    #[must_use]
    pub fn new(variant: Variant, resources: &Arc<Resources>, now: Duration) -> Self {
        let machine = Machine::new(StreamId(0), variant, Served::All, resources);
        let (held, wanted, unanswered) = Default::default();
        let mut client =
            Self { variant, machine, streams: 0, held, wanted, unanswered, stream: Stream::default() };
        client.reconnect(resources, now);
        client
    }

    /// Loses its stream, keeps what it holds, and comes back.
    pub fn reconnect(&mut self, resources: &Arc<Resources>, now: Duration) {
        self.streams += 1;
        self.machine = Machine::new(StreamId(self.streams), self.variant, Served::All, resources);
        self.unanswered.clear();
        self.stream = Stream::default();
        self.ask(TypeUrl::Cluster, &BTreeSet::new(), &BTreeSet::new(), resources, now);
        if !self.wanted.is_empty() {
            let names = self.wanted.clone();
            self.ask(TypeUrl::ClusterLoadAssignment, &names, &BTreeSet::new(), resources, now);
        }
    }

    /// Takes one response, if there is one, and does this with it and with those that it has not answered yet.
    ///
    /// # Panics
    ///
    /// When the response breaks a rule of the protocol.
    pub fn turn(&mut self, answer: Answer, resources: &Arc<Resources>, now: Duration) -> Turn {
        let response = self.machine.next(resources, now);
        if let Some(response) = &response {
            self.check(response, now);
            self.unanswered.push((Arc::clone(response), now));
        }
        let answerable =
            if answer == Answer::Later { Vec::new() } else { std::mem::take(&mut self.unanswered) };
        for (response, _) in &answerable {
            self.answer(response, answer, resources, now);
        }
        match response {
            Some(_) => Turn::Responded,
            None if answerable.is_empty() => Turn::Silent,
            None => Turn::Answered,
        }
    }

    /// Accepts everything until there is nothing more, and gives the time at which that is so.
    ///
    /// # Panics
    ///
    /// When the stream does not come to rest.
    pub fn settle(&mut self, resources: &Arc<Resources>, mut now: Duration) -> Duration {
        for _ in 0..TURNS_MAX {
            if self.turn(Answer::Accept, resources, now) == Turn::Silent {
                match self.machine.deadline(now) {
                    Some(later) => now = later,
                    None => return now,
                }
            }
        }
        unreachable!("the stream does not come to rest in {TURNS_MAX} turns")
    }

    /// Whether it refused something on this stream, and so may lack it.
    #[must_use]
    pub fn has_refused(&self) -> bool {
        self.stream.refused
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
    fn check(&mut self, response: &Response, now: Duration) {
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
            other.type_url == response.type_url && now < *since + ACK_WAIT_MAX
        };
        assert_eq!(self.unanswered.iter().find(same), None, "two unanswered responses: {response:?}");
    }

    fn answer(&mut self, response: &Response, answer: Answer, resources: &Arc<Resources>, now: Duration) {
        let ResponseType::Served(type_url) = response.type_url else { return };
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
        let request = Request { type_url: type_url.as_str().to_owned(), nonce, error, names };
        self.machine.on_request(&request, resources, now).expect("a well-formed message");
        if accepted && type_url == TypeUrl::Cluster {
            self.follow_clusters(resources, now);
        }
    }

    fn take(&mut self, type_url: TypeUrl, response: &Response) {
        let held = self.held.entry(type_url).or_default();
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
    fn follow_clusters(&mut self, resources: &Arc<Resources>, now: Duration) {
        let clusters = self.held.entry(TypeUrl::Cluster).or_default();
        let wanted: BTreeSet<String> =
            clusters.values().filter_map(|c| c.assignment()).map(ToString::to_string).collect();
        let before = std::mem::replace(&mut self.wanted, wanted);
        if before == self.wanted {
            return;
        }
        let assignments = self.held.entry(TypeUrl::ClusterLoadAssignment).or_default();
        assignments.retain(|name, _| self.wanted.contains(name));
        let (new, gone) = (&self.wanted - &before, &before - &self.wanted);
        self.ask(TypeUrl::ClusterLoadAssignment, &new, &gone, resources, now);
    }

    /// Asks for names, the whole set or the change of it.
    fn ask(
        &mut self,
        type_url: TypeUrl,
        new: &BTreeSet<String>,
        gone: &BTreeSet<String>,
        resources: &Arc<Resources>,
        now: Duration,
    ) {
        let first = self.stream.asked.insert(type_url);
        // Whoever asks anew is answered anew.
        self.stream.refused_alone.retain(|(_, name), _| !new.contains(name));
        let held = self.held.entry(type_url).or_default();
        let known = held.iter().map(|(name, resource)| (name.clone(), resource.version.to_string()));
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
        let request = Request { type_url: type_url.as_str().to_owned(), nonce, error: None, names };
        self.machine.on_request(&request, resources, now).expect("a well-formed message");
    }
}

/// What tells one whole set from another.
fn set(response: &Response) -> (Version, Vec<Version>) {
    (response.version, response.resources.iter().map(|resource| resource.version).collect())
}

/// What every such client must hold in the end, by type and name.
#[must_use]
pub fn published(resources: &Resources) -> BTreeMap<(TypeUrl, String), Version> {
    let of = |type_url| {
        let set = resources.of(type_url);
        set.iter().map(move |resource| ((type_url, resource.name.to_string()), resource.version))
    };
    [TypeUrl::Cluster, TypeUrl::ClusterLoadAssignment].into_iter().flat_map(of).collect()
}
