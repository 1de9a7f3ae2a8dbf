//! Who follows the control plane over xDS, with what each was sent and has accepted.

use serde::{Deserialize, Serialize};

use crate::projection::resources::TypeUrl;
use crate::xds::Ledger;
use crate::xds::ledger::{Rejection, Served, StreamStatus, TypeStatus, Variant};

/// One open stream of a proxy or gRPC client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProxyView {
    /// The node id that it gave itself.
    pub node: String,
    /// The cluster of proxies that it says it belongs to.
    pub cluster: String,
    /// The program and its version.
    pub user_agent: String,
    /// From where, where that is known.
    pub peer: Option<String>,
    /// `sotw` or `delta`.
    pub variant: String,
    /// `ADS`, or the one type that the stream is for.
    pub service: String,
    /// The views that say what it sees; none means that it sees everything.
    pub views: Vec<String>,
    /// When the stream was opened, in RFC 3339.
    pub since: String,
    /// How many events it is behind.
    pub lag: u64,
    /// How each type stands that it asked for.
    pub types: Vec<ProxyTypeView>,
}

/// One type on a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProxyTypeView {
    /// `CDS`, `EDS`, `LEDS`, `LDS` or `RDS`.
    pub r#type: String,
    /// Whether it wants everything.
    pub wildcard: bool,
    /// The names that it asked for.
    pub names: Vec<String>,
    /// The version of the newest response.
    pub sent: Option<String>,
    /// The version of the newest response that it accepted.
    pub acked: Option<String>,
    /// What it refused last, until it accepts something newer.
    pub rejected: Option<RejectedView>,
}

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejectedView {
    /// When, in RFC 3339.
    pub at: String,
    /// Which version.
    pub version: String,
    /// Which resources the response held, at most a few.
    pub names: Vec<String>,
    /// Why, in the client's words.
    pub message: String,
}

impl RejectedView {
    /// A refusal on a stream, as people read it.
    #[must_use]
    pub fn of(stream: &StreamStatus, rejection: &Rejection) -> Self {
        Self {
            at: stream.since.plus(rejection.at).to_string(),
            version: rejection.version.to_string(),
            names: rejection.names.iter().map(ToString::to_string).collect(),
            message: rejection.message.as_ref().to_owned(),
        }
    }
}

/// Every open stream, by node, then by age.
#[must_use]
pub fn views(ledger: &Ledger) -> Vec<ProxyView> {
    ledger.snapshot().iter().map(view).collect()
}

fn view(stream: &StreamStatus) -> ProxyView {
    ProxyView {
        node: stream.node.id().to_owned(),
        cluster: stream.node.cluster().to_owned(),
        user_agent: stream.node.user_agent().to_owned(),
        peer: stream.peer.map(|address| address.to_string()),
        variant: match stream.variant {
            Variant::Sotw => "sotw".to_owned(),
            Variant::Delta => "delta".to_owned(),
        },
        service: match stream.served {
            Served::All => "ADS".to_owned(),
            Served::Only(type_url) => type_url.to_string(),
        },
        views: stream.views.iter().map(ToString::to_string).collect(),
        since: stream.since.to_string(),
        lag: stream.lag(),
        types: stream.types.iter().map(|(type_url, status)| type_view(stream, *type_url, status)).collect(),
    }
}

fn type_view(stream: &StreamStatus, type_url: TypeUrl, status: &TypeStatus) -> ProxyTypeView {
    ProxyTypeView {
        r#type: type_url.to_string(),
        wildcard: status.subscription.is_wildcard(),
        names: status.subscription.names().iter().map(ToString::to_string).collect(),
        sent: status.sent.map(|version| version.to_string()),
        acked: status.acked.map(|version| version.to_string()),
        rejected: status.rejection.as_ref().map(|rejection| RejectedView::of(stream, rejection)),
    }
}
