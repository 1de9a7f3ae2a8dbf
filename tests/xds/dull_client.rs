//! A client that does by the book what the protocol text says, with loops and without cleverness.

use std::collections::{BTreeMap, BTreeSet};

use foldplane::projection::resources::{Resource, Resources, TypeUrl};
use foldplane::xds::protocol::{Edit, Names, Request, Response, ResponseType, Variant};

use envoy_types::pb::envoy::config::endpoint::v3::ClusterLoadAssignment;
use envoy_types::pb::google::protobuf::Any;
use foldplane::testing::scenario::Stock;
use prost::Message;

/// What it wants and holds of one type.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interest {
    pub(crate) wild: bool,
    pub(crate) names: BTreeSet<String>,
    pub(crate) held: BTreeMap<String, String>,
    /// Whether it ever named anything on this stream, `*` included.
    named: bool,
    asked: bool,
    nonce: String,
}

#[derive(Clone, Debug)]
pub(crate) struct DullClient {
    variant: Variant,
    pub(crate) interests: BTreeMap<TypeUrl, Interest>,
}

impl DullClient {
    pub(crate) fn new(variant: Variant) -> Self {
        let interests = TypeUrl::ALL.into_iter().map(|type_url| (type_url, Interest::default()));
        Self { variant, interests: interests.collect() }
    }

    /// Wants a name, or everything, or no longer. Gives what it says about that.
    pub(crate) fn toggle(&mut self, type_url: TypeUrl, name: &str) -> Option<Request> {
        let interest = self.interests.get_mut(&type_url).unwrap();
        let wild = name == "*";
        if wild && !type_url.has_wildcard() {
            return None;
        }
        let wants = if wild { !interest.wild } else { !interest.names.contains(name) };
        // State of the world has no words for leaving a wildcard that was never named.
        if wild && !wants && !interest.named && self.variant == Variant::Sotw {
            return None;
        }
        match (wild, wants) {
            (true, wants) => interest.wild = wants,
            (false, true) => drop(interest.names.insert(name.to_owned())),
            (false, false) => drop(interest.names.remove(name)),
        }
        let kept = interest.clone();
        interest.held.retain(|held, _| kept.wants(held));
        if !interest.asked {
            return self.first(type_url);
        }
        interest.named = true;
        let word = vec![name.to_owned()];
        let edit = match wants {
            true => Edit { subscribe: word, ..Edit::default() },
            false => Edit { unsubscribe: word, ..Edit::default() },
        };
        Some(self.say(type_url, edit, None))
    }

    /// The first messages on a new stream.
    pub(crate) fn reconnect(&mut self) -> Vec<Request> {
        for interest in self.interests.values_mut() {
            (interest.asked, interest.named) = (false, false);
            interest.nonce.clear();
        }
        TypeUrl::ALL.into_iter().filter_map(|type_url| self.first(type_url)).collect()
    }

    fn first(&mut self, type_url: TypeUrl) -> Option<Request> {
        let interest = self.interests.get_mut(&type_url).unwrap();
        if !interest.wild && interest.names.is_empty() {
            return None;
        }
        interest.asked = true;
        interest.named = !interest.names.is_empty();
        let known = interest.held.clone();
        let subscribe = interest.list();
        Some(self.say(type_url, Edit { subscribe, known, ..Edit::default() }, None))
    }

    /// Takes a response in, and answers it.
    pub(crate) fn receive(&mut self, response: &Response, world: &Stock) -> Request {
        let ResponseType::Served(type_url) = response.type_url else { panic!("an unserved type") };
        let interest = self.interests.get_mut(&type_url).unwrap();
        interest.nonce.clone_from(&response.nonce);
        let bad = response.resources.iter().filter(|resource| is_bad(world, resource));
        let bad: Vec<_> = bad.map(|resource| resource.name.to_string()).collect();
        if !bad.is_empty() {
            // Some clients say which, some do not.
            let reason = if response.nonce.ends_with('1') { "bad".to_owned() } else { bad.join(", ") };
            return self.say(type_url, Edit::default(), Some(reason));
        }
        let whole = self.variant == Variant::Sotw && type_url.has_wildcard();
        if whole {
            interest.held.clear();
        }
        for resource in &response.resources {
            interest.hold(resource);
        }
        for name in &response.removed {
            interest.held.remove(name.as_str());
        }
        self.say(type_url, Edit::default(), None)
    }

    fn say(&self, type_url: TypeUrl, edit: Edit, error: Option<String>) -> Request {
        let interest = &self.interests[&type_url];
        let names = match self.variant {
            Variant::Sotw => Names::Whole(interest.list()),
            Variant::Delta => Names::Edit(edit),
        };
        Request { type_url: type_url.as_str().to_owned(), nonce: interest.nonce.clone(), error, names }
    }

    /// Where it holds something else than it should, given everything that there is.
    pub(crate) fn differences(&self, resources: &Resources) -> Vec<String> {
        let mut differences = Vec::new();
        for (type_url, interest) in &self.interests {
            let mut expected = BTreeMap::new();
            for resource in resources.of(*type_url).iter() {
                if interest.wants(resource.name.as_str()) {
                    expected.insert(resource.name.to_string(), resource.version.to_string());
                }
            }
            let mut held = interest.held.clone();
            if self.variant == Variant::Sotw && *type_url == TypeUrl::RouteConfiguration {
                // xds-rules 11: there is no way to say that a route is gone.
                held.retain(|name, _| expected.contains_key(name));
            }
            if held != expected {
                differences.push(format!("{type_url}: holds {held:?}, should hold {expected:?}"));
            }
        }
        differences
    }
}

impl Interest {
    fn wants(&self, name: &str) -> bool {
        self.wild || self.names.contains(name)
    }

    /// The names as they stand in a message: nothing is everything, as long as nothing was ever named.
    fn list(&self) -> Vec<String> {
        let star = (self.wild && self.named).then(|| "*".to_owned());
        star.into_iter().chain(self.names.iter().cloned()).collect()
    }

    fn hold(&mut self, resource: &Resource) {
        let name = resource.name.to_string();
        if is_empty(resource) {
            self.held.remove(&name);
        } else if self.wants(&name) {
            self.held.insert(name, resource.version.to_string());
        }
    }
}

/// Whether this client refuses it.
pub(crate) fn is_bad(world: &Stock, resource: &Resource) -> bool {
    world.label(resource).ends_with("=bad")
}

/// Whether it is an assignment without endpoints.
fn is_empty(resource: &Resource) -> bool {
    let any = Any::decode(resource.any().as_ref()).unwrap();
    any.type_url == TypeUrl::ClusterLoadAssignment.as_str()
        && ClusterLoadAssignment::decode(any.value.as_slice()).unwrap().endpoints.is_empty()
}
