//! Responses that a client has not answered yet.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::response::Response;
use crate::events::Offset;
use crate::projection::resources::{Resource, ResourceName, Version};

/// How long one unanswered response holds back the next of its type (xds-rules 17), and how long a removal waits for
/// what should go before it (xds-rules 21). Envoy answers in milliseconds, except for clusters that are warming.
pub const ACK_WAIT_MAX: Duration = Duration::from_secs(5);

/// How many unanswered responses of one type are remembered: a client that answers none of the last four and then
/// one of the earlier has lost its place, which costs only bookkeeping.
const REMEMBERED_MAX: usize = 4;

/// What a client refused, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The version: of the resource, where the client can only have meant that one; else of the whole set.
    pub version: Version,
    /// Which resources the client can have meant, at most [`Rejection::NAMES_MAX`].
    pub names: Vec<ResourceName>,
    /// Why, in the client's words, at most [`Rejection::MESSAGE_BYTES_MAX`].
    pub message: Arc<str>,
    /// When, on the clock that the stream is told the time by.
    pub at: Duration,
}

impl Rejection {
    /// How many names are kept: enough to know where to look.
    pub const NAMES_MAX: usize = 8;

    /// How much of the reason is kept: Envoy dumps the whole resource into it (xds-rules 18).
    pub const MESSAGE_BYTES_MAX: usize = 2048;

    /// A refusal of a response with the set's version `version`, in which the client can have meant `suspects`.
    pub(super) fn new(version: Version, suspects: &[Arc<Resource>], message: &str, at: Duration) -> Self {
        let version = match suspects {
            [only] => only.version,
            _ => version,
        };
        let names = suspects.iter().take(Self::NAMES_MAX).map(|resource| resource.name.clone());
        Self { version, names: names.collect(), message: Self::cut(message).into(), at }
    }

    /// As much of a reason as is kept.
    pub(super) fn cut(message: &str) -> &str {
        message.get(..message.floor_char_boundary(Self::MESSAGE_BYTES_MAX)).unwrap_or_default()
    }
}

/// The unanswered responses of one type on one stream, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct InFlight {
    sent: VecDeque<Sent>,
    /// Since when the client owes an answer.
    since: Option<Duration>,
    /// The newest nonce that was answered.
    answered: Option<String>,
}

#[derive(Clone, Debug)]
struct Sent {
    response: Arc<Response>,
    at: Duration,
    completes: Option<Offset>,
}

/// A response that the client has answered.
#[derive(Clone, Debug)]
pub(super) struct Answered {
    pub(super) response: Arc<Response>,
    /// The offset up to which the client knows everything when it has this response; nothing when more was owed.
    pub(super) completes: Option<Offset>,
}

impl InFlight {
    pub(super) fn push(&mut self, response: Arc<Response>, completes: Option<Offset>, now: Duration) {
        if self.sent.len() == REMEMBERED_MAX {
            self.sent.pop_front();
        }
        self.since.get_or_insert(now);
        self.sent.push_back(Sent { response, at: now, completes });
    }

    /// The response that this nonce answers, if it is one of these. Earlier ones count as answered with it: Envoy
    /// answers only the last of several that it got while clusters were warming.
    pub(super) fn answer(&mut self, nonce: &str) -> Option<Answered> {
        let place = self.sent.iter().position(|sent| sent.response.nonce == nonce)?;
        let Sent { response, completes, .. } = self.sent.drain(..=place).next_back()?;
        self.since = self.sent.front().map(|sent| sent.at);
        self.answered = Some(response.nonce.clone());
        Some(Answered { response, completes })
    }

    /// Whether this nonce was answered before and nothing was sent since.
    pub(super) fn repeats(&self, nonce: &str) -> bool {
        self.sent.is_empty() && self.answered.as_deref() == Some(nonce)
    }

    /// Whether the next response must wait.
    pub(super) fn blocks(&self, now: Duration) -> bool {
        self.blocked_until().is_some_and(|until| until > now)
    }

    /// When the wait for the newest answer ends.
    pub(super) fn blocked_until(&self) -> Option<Duration> {
        self.sent.back().map(|newest| newest.at.saturating_add(ACK_WAIT_MAX))
    }

    pub(super) fn newest(&self) -> Option<&Arc<Response>> {
        self.sent.back().map(|sent| &sent.response)
    }

    /// What is in these responses.
    pub(super) fn resources(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.sent.iter().flat_map(|sent| &sent.response.resources)
    }

    pub(super) const fn since(&self) -> Option<Duration> {
        self.since
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }
}
