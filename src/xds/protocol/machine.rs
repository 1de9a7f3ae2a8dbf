//! One stream: every type that it asks for, and the order in which they are answered.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::draft::Draft;
use super::in_flight::ACK_WAIT_MAX;
use super::owed::Release;
use super::request::{Names, Request};
use super::response::{Response, ResponseType};
use super::status::{TypeStatus, Verdict};
use super::type_state::TypeState;
use super::unserved::{Unserved, is_well_formed};
use super::variant::Variant;
use crate::events::Offset;
use crate::projection::resources::{Resources, TypeUrl, Version};

/// What a stream may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Served {
    /// Every type: the aggregated service.
    All,
    /// One type: the service of that type.
    Only(TypeUrl),
}

/// Tells streams apart, also across restarts: nonces are made of it, and a nonce belongs to one stream (xds-rules 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u64);

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

/// What came of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Handled {
    /// What it said about the response that it answered, if it answered one.
    pub verdict: Option<Verdict>,
    /// A type that is not served, when it was asked for the first time.
    pub unserved: Option<Arc<str>>,
}

/// A message that ends the stream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The type URL is no type URL.
    #[error(
        "{0:?} is not a type URL: expected something like type.googleapis.com/envoy.config.cluster.v3.Cluster"
    )]
    MalformedTypeUrl(String),
    /// The service is for one type, and this is another.
    #[error("this service serves {}, not {asked:?}: ask for that type, or use the aggregated service", served.as_str())]
    OtherType {
        /// The type of the service.
        served: TypeUrl,
        /// What was asked for.
        asked: String,
    },
}

/// One stream. Pure: it is told everything and does nothing but answer.
#[derive(Clone, Debug)]
pub struct Machine {
    variant: Variant,
    served: Served,
    stream: StreamId,
    responses: u64,
    seen: Arc<Resources>,
    states: [TypeState; TypeUrl::ALL.len()],
    unserved: Unserved,
}

/// Removals go out in the other direction than news, except that an assignment goes after its cluster: by then
/// the client has let go of it (xds-rules 21).
const REMOVAL_ORDER: [TypeUrl; TypeUrl::ALL.len()] = [
    TypeUrl::RouteConfiguration,
    TypeUrl::Listener,
    TypeUrl::Cluster,
    TypeUrl::ClusterLoadAssignment,
    TypeUrl::LbEndpoint,
];

impl Machine {
    /// A stream that has just opened.
    #[must_use]
    pub fn new(stream: StreamId, variant: Variant, served: Served, resources: &Arc<Resources>) -> Self {
        Self {
            variant,
            served,
            stream,
            responses: 0,
            seen: Arc::clone(resources),
            states: TypeUrl::ALL.map(|type_url| TypeState::new(variant, type_url)),
            unserved: Unserved::default(),
        }
    }

    /// Takes in a message.
    ///
    /// # Errors
    ///
    /// [`Refused`] when the stream must end because of it.
    pub fn on_request(
        &mut self,
        request: &Request,
        resources: &Arc<Resources>,
        now: Duration,
    ) -> Result<Handled, Refused> {
        self.observe(resources, now);
        let Some(type_url) = self.type_of(&request.type_url)? else {
            let unserved = self.unserved.ask(&request.type_url, &request.names);
            return Ok(Handled { verdict: None, unserved });
        };
        let asks_again = self.asks_again(type_url, request);
        let seen = Arc::clone(&self.seen);
        let world = self.variant.of(&seen, type_url);
        let state = self.state_mut(type_url);
        state.keep_place(seen.offset());
        let verdict = state.answer(&request.nonce, request.error.as_deref(), world, now);
        let entered = state.ask(&request.names, world, now);
        if asks_again && entered == 0 {
            state.ask_again(world);
        }
        Ok(Handled { verdict, unserved: None })
    }

    /// What to send now. To be called when the wire has room, until there is nothing: what is sent is computed when
    /// it is sent, so that a slow reader skips what is outdated (xds-rules 17).
    pub fn next(&mut self, resources: &Arc<Resources>, now: Duration) -> Option<Arc<Response>> {
        self.observe(resources, now);
        if let Some(answer) = self.unserved.pop() {
            let nonce = self.nonce();
            let type_url = ResponseType::Unserved(answer.url);
            let version = Version::default();
            let removed = answer.removed;
            return Some(Arc::new(Response { type_url, nonce, version, resources: Vec::new(), removed }));
        }
        let news = TypeUrl::ALL.into_iter().find_map(|type_url| self.next_news(type_url, now));
        news.or_else(|| REMOVAL_ORDER.into_iter().find_map(|type_url| self.next_removal(type_url, now)))
    }

    /// When to call [`Machine::next`] although nothing happened, if ever.
    #[must_use]
    pub fn deadline(&self, now: Duration) -> Option<Duration> {
        let waits = self.states.iter().flat_map(|state| {
            let blocked = state.in_flight.blocked_until().filter(|_| !state.owed.is_empty());
            let leaving = state.owed.leaving_since().map(|since| since.saturating_add(ACK_WAIT_MAX));
            [blocked, leaving]
        });
        waits.flatten().filter(|at| *at > now).min()
    }

    /// Since when the client owes an answer.
    #[must_use]
    pub fn unanswered_since(&self) -> Option<Duration> {
        self.states.iter().filter_map(|state| state.in_flight.since()).min()
    }

    /// How a type stands; nothing when the client never asked for it.
    #[must_use]
    pub fn status(&self, type_url: TypeUrl) -> Option<TypeStatus> {
        let state = self.state(type_url);
        state.is_asked().then(|| state.status(self.seen.offset()))
    }

    /// The newest resources that this stream has taken in.
    #[must_use]
    pub const fn seen(&self) -> &Arc<Resources> {
        &self.seen
    }

    /// The offset up to which the client has answered for everything that concerns it.
    #[must_use]
    pub fn settled(&self) -> Offset {
        let seen = self.seen.offset();
        let asked = self.states.iter().filter(|state| state.is_asked());
        asked.map(|state| state.settled(seen)).min().unwrap_or(seen)
    }

    /// Takes in newer resources. Older ones are ignored: a stream never goes back (xds-rules 19).
    fn observe(&mut self, resources: &Arc<Resources>, now: Duration) {
        if Arc::ptr_eq(&self.seen, resources) || resources.offset() < self.seen.offset() {
            return;
        }
        let old = std::mem::replace(&mut self.seen, Arc::clone(resources));
        let variant = self.variant;
        for type_url in TypeUrl::ALL {
            let state = self.state_mut(type_url);
            if state.is_asked() {
                state.keep_place(old.offset());
                state.observe(variant.of(&old, type_url), variant.of(resources, type_url), now);
            }
        }
    }

    fn type_of(&self, url: &str) -> Result<Option<TypeUrl>, Refused> {
        match self.served {
            Served::Only(only) if url.is_empty() || url == only.as_str() => Ok(Some(only)),
            Served::Only(served) => Err(Refused::OtherType { served, asked: shorten(url) }),
            Served::All if is_well_formed(url) => {
                Ok(TypeUrl::from_url(url).filter(|type_url| self.variant.has(*type_url)))
            }
            Served::All => Err(Refused::MalformedTypeUrl(shorten(url))),
        }
    }

    /// Whether a message that looks like an answer given twice is a question. On a stream that carries clusters it is
    /// not: their assignments were sent right behind them.
    fn asks_again(&self, type_url: TypeUrl, request: &Request) -> bool {
        type_url == TypeUrl::ClusterLoadAssignment
            && matches!(request.names, Names::Whole(_))
            && request.error.is_none()
            && !self.state(TypeUrl::Cluster).is_asked()
            && self.state(type_url).in_flight.repeats(&request.nonce)
    }

    fn next_news(&mut self, type_url: TypeUrl, now: Duration) -> Option<Arc<Response>> {
        let ready = self.state(type_url).owed.has_news() && !self.is_held(type_url);
        ready.then(|| self.send(type_url, now)).flatten()
    }

    fn next_removal(&mut self, type_url: TypeUrl, now: Duration) -> Option<Arc<Response>> {
        let ready = self.state(type_url).owed.can_release(self.release(type_url, now));
        ready.then(|| self.send(type_url, now)).flatten()
    }

    fn send(&mut self, type_url: TypeUrl, now: Duration) -> Option<Arc<Response>> {
        let release = self.release(type_url, now);
        let seen = Arc::clone(&self.seen);
        let variant = self.variant;
        let state = self.state_mut(type_url);
        if state.in_flight.blocks(now) {
            return None;
        }
        let draft = state.draft(variant.of(&seen, type_url), release)?;
        if type_url == TypeUrl::Cluster {
            self.push_assignments(&draft);
        }
        let Draft { version, resources, removed, .. } = draft;
        let nonce = self.nonce();
        let type_url_sent = ResponseType::Served(type_url);
        let response = Arc::new(Response { type_url: type_url_sent, nonce, version, resources, removed });
        let state = self.state_mut(type_url);
        let completes = state.owed.is_empty().then(|| seen.offset());
        state.in_flight.push(Arc::clone(&response), completes, now);
        Some(response)
    }

    /// Envoy ends the warming of a changed cluster only on a new assignment, and in delta it does not ask for one: it is
    /// sent right behind the cluster, even if unchanged (xds-rules 22, envoyproxy/envoy#22377).
    fn push_assignments(&mut self, clusters: &Draft) {
        let (variant, seen) = (self.variant, Arc::clone(&self.seen));
        let assignments = self.state_mut(TypeUrl::ClusterLoadAssignment);
        if !assignments.is_asked() {
            return;
        }
        for name in clusters.assignments() {
            assignments.push(name, variant.of(&seen, TypeUrl::ClusterLoadAssignment));
        }
    }

    /// Listeners and routes are not sent before the clusters, and routes not before the listeners, that were to go
    /// first and have to wait for an answer. Assignments never wait for clusters: Envoy withholds its answer to the
    /// clusters until it has them (xds-rules 17, 21).
    fn is_held(&self, type_url: TypeUrl) -> bool {
        let has_news = |type_url| self.state(type_url).owed.has_news();
        match type_url {
            TypeUrl::Cluster | TypeUrl::ClusterLoadAssignment | TypeUrl::LbEndpoint => false,
            TypeUrl::Listener => has_news(TypeUrl::Cluster),
            TypeUrl::RouteConfiguration => has_news(TypeUrl::Cluster) || has_news(TypeUrl::Listener),
        }
    }

    /// Which removals of this type may go out: all, once what could still name them is replaced and answered for;
    /// before that only those that have waited long enough (xds-rules 21).
    fn release(&self, type_url: TypeUrl, now: Duration) -> Release {
        let settled = |type_url| self.state(type_url).is_settled();
        let clear = match type_url {
            TypeUrl::RouteConfiguration => true,
            TypeUrl::Listener => !self.state(TypeUrl::RouteConfiguration).owed.has_leaving(),
            TypeUrl::Cluster => settled(TypeUrl::Listener) && settled(TypeUrl::RouteConfiguration),
            TypeUrl::ClusterLoadAssignment => {
                let clusters = self.state(TypeUrl::Cluster);
                !clusters.owed.has_leaving() && clusters.in_flight.is_empty()
            }
            // A collection that is replaced serves until the assignment has named the next one.
            TypeUrl::LbEndpoint => {
                let clusters = self.state(TypeUrl::Cluster);
                !clusters.owed.has_leaving() && settled(TypeUrl::ClusterLoadAssignment)
            }
        };
        if clear { Release::All } else { Release::Since(now.checked_sub(ACK_WAIT_MAX)) }
    }

    fn nonce(&mut self) -> String {
        self.responses += 1;
        format!("{}.{}", self.stream, self.responses)
    }

    const fn state(&self, type_url: TypeUrl) -> &TypeState {
        let [clusters, assignments, endpoints, listeners, routes] = &self.states;
        match type_url {
            TypeUrl::Cluster => clusters,
            TypeUrl::ClusterLoadAssignment => assignments,
            TypeUrl::LbEndpoint => endpoints,
            TypeUrl::Listener => listeners,
            TypeUrl::RouteConfiguration => routes,
        }
    }

    const fn state_mut(&mut self, type_url: TypeUrl) -> &mut TypeState {
        let [clusters, assignments, endpoints, listeners, routes] = &mut self.states;
        match type_url {
            TypeUrl::Cluster => clusters,
            TypeUrl::ClusterLoadAssignment => assignments,
            TypeUrl::LbEndpoint => endpoints,
            TypeUrl::Listener => listeners,
            TypeUrl::RouteConfiguration => routes,
        }
    }
}

/// The text as an error may show it.
fn shorten(text: &str) -> String {
    const SHOWN_CHARS_MAX: usize = 100;
    text.chars().take(SHOWN_CHARS_MAX).collect()
}
