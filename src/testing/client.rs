//! A proxy and the server's end of its stream, with nothing in between.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::Proxy;
use crate::projection::resources::{Resource, Resources, TypeUrl, Version};
use crate::xds::protocol::{Machine, Served, StreamId, Variant};

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

/// A client, and the server's end of its aggregated stream.
#[derive(Debug)]
pub struct Client {
    proxy: Proxy,
    machine: Machine,
    streams: u64,
}

impl Client {
    /// A client that holds nothing and has just opened its stream.
    #[must_use]
    pub fn new(variant: Variant, resources: &Arc<Resources>, now: Duration) -> Self {
        let machine = Machine::new(StreamId(0), variant, Served::All, resources);
        let mut client = Self { proxy: Proxy::new(variant), machine, streams: 0 };
        client.reconnect(resources, now);
        client
    }

    /// Loses its stream, keeps what it holds, and comes back.
    pub fn reconnect(&mut self, resources: &Arc<Resources>, now: Duration) {
        self.streams += 1;
        let variant = self.proxy.variant();
        self.machine = Machine::new(StreamId(self.streams), variant, Served::All, resources);
        for request in self.proxy.connect() {
            self.machine.on_request(&request, resources, now).expect("a well-formed message");
        }
    }

    /// Takes one response, if there is one, and does this with it and with those that it has not answered yet.
    ///
    /// # Panics
    ///
    /// When the response breaks a rule of the protocol.
    pub fn turn(&mut self, answer: Answer, resources: &Arc<Resources>, now: Duration) -> Turn {
        let response = self.machine.next(resources, now);
        let responded = response.is_some();
        if let Some(response) = response {
            self.proxy.hear(response, now);
        }
        let requests = self.proxy.answer(answer);
        for request in &requests {
            self.machine.on_request(request, resources, now).expect("a well-formed message");
        }
        match (responded, requests.is_empty()) {
            (true, _) => Turn::Responded,
            (false, true) => Turn::Silent,
            (false, false) => Turn::Answered,
        }
    }

    /// Accepts everything until there is nothing more, and gives the time at which that is so.
    ///
    /// # Panics
    ///
    /// When the stream does not come to rest, or rests with a name that the client does not want.
    pub fn settle(&mut self, resources: &Arc<Resources>, mut now: Duration) -> Duration {
        for _ in 0..TURNS_MAX {
            if self.turn(Answer::Accept, resources, now) == Turn::Silent {
                match self.machine.deadline(now) {
                    Some(later) => now = later,
                    None => {
                        self.check_names();
                        return now;
                    }
                }
            }
        }
        unreachable!("the stream does not come to rest in {TURNS_MAX} turns")
    }

    /// The server is subscribed to what the client wants, and to nothing else.
    fn check_names(&self) {
        let status = self.machine.status(TypeUrl::ClusterLoadAssignment);
        let names = status.map(|status| status.subscription.names().clone()).unwrap_or_default();
        let names: BTreeSet<String> = names.iter().map(ToString::to_string).collect();
        assert_eq!(&names, self.proxy.wanted(), "the server's subscription is not what the client wants");
    }

    /// The proxy's end.
    #[must_use]
    pub const fn proxy(&self) -> &Proxy {
        &self.proxy
    }
}

/// What every such client of a variant must hold in the end, by type and name: clusters, and the assignments that they name.
#[must_use]
pub fn published(variant: Variant, resources: &Resources) -> BTreeMap<(TypeUrl, String), Version> {
    let (clusters, assignments) =
        (variant.of(resources, TypeUrl::Cluster), variant.of(resources, TypeUrl::ClusterLoadAssignment));
    let named = clusters.iter().filter_map(|cluster| assignments.get(cluster.assignment()?.as_str()));
    let line =
        |type_url| move |resource: &Arc<Resource>| ((type_url, resource.name.to_string()), resource.version);
    let clusters = clusters.iter().map(line(TypeUrl::Cluster));
    clusters.chain(named.map(line(TypeUrl::ClusterLoadAssignment))).collect()
}
