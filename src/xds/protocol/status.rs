//! How a client stands: what it wants, has, and thinks of what it was sent.

use std::sync::Arc;

use imbl::{OrdMap, OrdSet};

use super::in_flight::Rejection;
use super::response::Response;
use super::subscription::Subscription;
use crate::events::Offset;
use crate::projection::resources::{ResourceName, TypeUrl, Version};

/// How one type stands on one stream. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct TypeStatus {
    /// What the client wants.
    pub subscription: Subscription,
    /// The version of the newest response.
    pub sent: Option<Version>,
    /// The version of the newest response that the client accepted.
    pub acked: Option<Version>,
    /// What the client refused last, until it accepts something newer.
    pub rejection: Option<Rejection>,
    /// The resources that the client holds an older version of because it refused this one.
    pub rejected: OrdMap<ResourceName, Version>,
    /// Names of which it will be told next.
    pub owed: OrdSet<ResourceName>,
    /// The newest response that it has not answered.
    pub in_flight: Option<Arc<Response>>,
    /// Up to this offset it has answered for everything that concerns it, whether it liked it or not.
    pub settled: Offset,
    /// Up to this offset it has accepted everything that concerns it.
    pub accepted: Offset,
}

impl TypeStatus {
    /// Nothing up to `offset` is owed or unanswered.
    pub(super) fn settle(&mut self, offset: Offset) {
        self.settled = self.settled.max(offset);
        if self.rejected.is_empty() {
            self.accepted = self.accepted.max(offset);
        }
    }
}

/// What a client thinks of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It accepted it.
    Acked(TypeUrl),
    /// It refused it; nothing of it is sent again until it changes.
    Rejected(TypeUrl, Rejection),
    /// It refused a response of several resources, which are sent again apart to find the one that is bad.
    RejectedTogether(TypeUrl, Rejection),
}
