//! A small xDS client over the aggregated service, in both variants: for tests, for watching, for load.
//!
//! It holds what it was sent and says so when it comes back. Whether an update is accepted or refused is the
//! caller's to say.

mod holdings;

use std::collections::BTreeMap;

use envoy_types::pb::envoy::config::core::v3::Node;
use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
use envoy_types::pb::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse,
};
use envoy_types::pb::google::rpc::Status as RpcStatus;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Status, Streaming};

use super::protocol::Variant;
use crate::projection::resources::TypeUrl;
use holdings::{Holdings, Reading};

pub use holdings::{Held, Update};

/// How many requests may wait for the wire: one a type and a few answers. A caller that has more waits.
const REQUESTS_MAX: usize = 32;

/// The code that Envoy gives with a refusal.
const INTERNAL: i32 = 13;

/// Larger than what a server should send, so that one that does is seen and not merely lost.
const RESPONSE_BYTES_MAX: usize = 64 << 20;

/// Why a client cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server cannot be reached.
    #[error("cannot connect to {uri}")]
    Connect {
        /// What was tried.
        uri: String,
        /// Why.
        source: tonic::transport::Error,
    },
    /// The server ended the stream, or refused it.
    #[error("the stream ended: {0}")]
    Ended(Box<Status>),
}

/// One stream to an xDS server.
#[derive(Debug)]
pub struct Client {
    node: String,
    stream: Stream,
    holdings: BTreeMap<TypeUrl, Holdings>,
    greeted: bool,
}

#[derive(Debug)]
enum Stream {
    Sotw(mpsc::Sender<DiscoveryRequest>, Streaming<DiscoveryResponse>),
    Delta(mpsc::Sender<DeltaDiscoveryRequest>, Streaming<DeltaDiscoveryResponse>),
}

/// What a message to the server is about.
#[derive(Default)]
struct Message {
    subscribe: Vec<String>,
    unsubscribe: Vec<String>,
    known: BTreeMap<String, String>,
    error: Option<String>,
}

impl Client {
    /// Opens a stream to `uri`, such as `http://127.0.0.1:18000`, as the node with this id.
    ///
    /// # Errors
    ///
    /// [`ClientError`] when the server cannot be reached or refuses the stream.
    pub async fn connect(uri: &str, node: &str, variant: Variant) -> Result<Self, ClientError> {
        let connect = |source| ClientError::Connect { uri: uri.to_owned(), source };
        let endpoint = Channel::from_shared(uri.to_owned())
            .map_err(|invalid| ClientError::Ended(Box::new(Status::invalid_argument(invalid.to_string()))))?;
        let channel = endpoint.connect().await.map_err(connect)?;
        Self::over(channel, node, variant).await
    }

    /// Opens a stream over a connection that may carry others.
    ///
    /// # Errors
    ///
    /// [`ClientError`] when the server refuses the stream.
    pub async fn over(channel: Channel, node: &str, variant: Variant) -> Result<Self, ClientError> {
        let stream = open(channel, variant).await?;
        Ok(Self { node: node.to_owned(), stream, holdings: BTreeMap::new(), greeted: false })
    }

    /// Opens a new stream and tells the server what this one holds.
    ///
    /// # Errors
    ///
    /// [`ClientError`] when the server cannot be reached or refuses the stream.
    pub async fn reconnect(&mut self, uri: &str) -> Result<(), ClientError> {
        let variant = match self.stream {
            Stream::Sotw(..) => Variant::Sotw,
            Stream::Delta(..) => Variant::Delta,
        };
        let fresh = Self::connect(uri, &self.node, variant).await?;
        (self.stream, self.greeted) = (fresh.stream, false);
        for type_url in TypeUrl::ALL {
            if let Some(holdings) = self.holdings.get_mut(&type_url) {
                let (subscribe, known) = holdings.reopened();
                self.send(type_url, Message { subscribe, known, ..Message::default() }).await?;
            }
        }
        Ok(())
    }

    /// Wants these names too; none, in the first call for a type, means everything.
    ///
    /// # Errors
    ///
    /// [`ClientError::Ended`] when the stream is over.
    pub async fn subscribe(&mut self, type_url: TypeUrl, names: &[&str]) -> Result<(), ClientError> {
        let subscribe: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        self.holdings.entry(type_url).or_default().want(&subscribe);
        self.send(type_url, Message { subscribe, ..Message::default() }).await
    }

    /// Wants these names no longer.
    ///
    /// # Errors
    ///
    /// [`ClientError::Ended`] when the stream is over.
    pub async fn unsubscribe(&mut self, type_url: TypeUrl, names: &[&str]) -> Result<(), ClientError> {
        let unsubscribe: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        self.holdings.entry(type_url).or_default().leave(&unsubscribe);
        self.send(type_url, Message { unsubscribe, ..Message::default() }).await
    }

    /// The next update. It does not count before it is accepted.
    ///
    /// # Errors
    ///
    /// [`ClientError::Ended`] when the stream is over.
    pub async fn next(&mut self) -> Result<Update, ClientError> {
        let update = match &mut self.stream {
            Stream::Sotw(_, responses) => responses.message().await.map(|some| some.map(Update::from)),
            Stream::Delta(_, responses) => responses.message().await.map(|some| some.map(Update::from)),
        };
        let update = update.map_err(|status| ClientError::Ended(Box::new(status)))?;
        update.ok_or_else(|| ClientError::Ended(Box::new(Status::ok("the server is done"))))
    }

    /// Takes an update in, and tells the server so (ACK).
    ///
    /// # Errors
    ///
    /// [`ClientError::Ended`] when the stream is over.
    pub async fn accept(&mut self, update: &Update) -> Result<(), ClientError> {
        let Some(type_url) = TypeUrl::from_url(&update.type_url) else { return Ok(()) };
        let reading = match self.stream {
            Stream::Sotw(..) if type_url.has_wildcard() => Reading::Whole,
            Stream::Sotw(..) | Stream::Delta(..) => Reading::Parts,
        };
        self.holdings.entry(type_url).or_default().take(update, reading);
        self.send(type_url, Message::default()).await
    }

    /// Refuses an update (NACK): what it held before stays.
    ///
    /// # Errors
    ///
    /// [`ClientError::Ended`] when the stream is over.
    pub async fn reject(&mut self, update: &Update, reason: &str) -> Result<(), ClientError> {
        let Some(type_url) = TypeUrl::from_url(&update.type_url) else { return Ok(()) };
        self.holdings.entry(type_url).or_default().nonce.clone_from(&update.nonce);
        self.send(type_url, Message { error: Some(reason.to_owned()), ..Message::default() }).await
    }

    /// What it holds of a type, by name.
    #[must_use]
    pub fn held(&self, type_url: TypeUrl) -> BTreeMap<String, Held> {
        self.holdings.get(&type_url).map(|holdings| holdings.held.clone()).unwrap_or_default()
    }

    async fn send(&mut self, type_url: TypeUrl, message: Message) -> Result<(), ClientError> {
        let node = (!std::mem::replace(&mut self.greeted, true)).then(|| Node {
            id: self.node.clone(),
            user_agent_name: "foldplane client".into(),
            ..Node::default()
        });
        let holdings = self.holdings.entry(type_url).or_default();
        let error_detail =
            message.error.map(|message| RpcStatus { code: INTERNAL, message, ..RpcStatus::default() });
        let (url, response_nonce) = (type_url.as_str().to_owned(), holdings.nonce.clone());
        let sent = match &self.stream {
            Stream::Sotw(requests, _) => {
                let (version_info, resource_names) = (holdings.version.clone(), holdings.names());
                let rest = DiscoveryRequest::default();
                let type_url = url;
                let request = DiscoveryRequest {
                    version_info,
                    node,
                    resource_names,
                    type_url,
                    response_nonce,
                    error_detail,
                    ..rest
                };
                requests.send(request).await.is_ok()
            }
            Stream::Delta(requests, _) => {
                let request = DeltaDiscoveryRequest {
                    node,
                    type_url: url,
                    resource_names_subscribe: message.subscribe,
                    resource_names_unsubscribe: message.unsubscribe,
                    initial_resource_versions: message.known.into_iter().collect(),
                    response_nonce,
                    error_detail,
                    ..DeltaDiscoveryRequest::default()
                };
                requests.send(request).await.is_ok()
            }
        };
        if sent {
            Ok(())
        } else {
            Err(ClientError::Ended(Box::new(Status::unavailable("the stream is over"))))
        }
    }
}

async fn open(channel: Channel, variant: Variant) -> Result<Stream, ClientError> {
    let mut service =
        AggregatedDiscoveryServiceClient::new(channel).max_decoding_message_size(RESPONSE_BYTES_MAX);
    let ended = |status| ClientError::Ended(Box::new(status));
    Ok(match variant {
        Variant::Sotw => {
            let (sender, requests) = mpsc::channel(REQUESTS_MAX);
            let requests = ReceiverStream::new(requests);
            let responses = service.stream_aggregated_resources(requests).await.map_err(ended)?;
            Stream::Sotw(sender, responses.into_inner())
        }
        Variant::Delta => {
            let (sender, requests) = mpsc::channel(REQUESTS_MAX);
            let requests = ReceiverStream::new(requests);
            let responses = service.delta_aggregated_resources(requests).await.map_err(ended)?;
            Stream::Delta(sender, responses.into_inner())
        }
    })
}
