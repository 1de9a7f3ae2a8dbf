//! Whose stream it is, and which answer belongs to which response (xds-rules 3, 4, 14, 24, 36).

use envoy_types::pb::envoy::config::core::v3::Node;
use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
use envoy_types::pb::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DeltaDiscoveryResponse};
use expect_test::expect;
use foldplane::projection::resources::TypeUrl;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

use crate::script::{delta, sotw};
use crate::server::{PATIENCE, Server, put_service};

#[test]
fn rule_3_a_nonce_of_another_stream_or_of_none_harms_nothing() {
    let script = "change eds a=1 \n auto \n ask eds a \n reconnect \n ask eds a n=1 \n ask eds a b n=99
        change eds a=2 \n nack eds n=77 no such response \n change eds a=3";
    sotw(
        script,
        expect![[r#"
        change eds a=1
        auto
        ask eds a
           → EDS 1 @1 [a=1]
        reconnect
        ask eds a n=1
           → EDS 1 @1 [a=1]
        ask eds a b n=99
           → EDS 2 @1 [b=∅]
        change eds a=2
           → EDS 3 @2 [a=2]
        nack eds n=77 no such response
        change eds a=3
           → EDS 4 @3 [a=3]
    "#]],
    );
    delta(
        &script
            .replace("eds a b", "eds +a +b")
            .replace("eds a \n", "eds +a \n")
            .replace("eds a n", "eds +a n"),
        expect![[r#"
            change eds a=1
            auto
            ask eds +a
               → EDS 1 @1 [a=1]
            reconnect
            ask eds +a n=1
               → EDS 1 @1 [a=1]
            ask eds +a +b n=99
               → EDS 2 @1 [a=1] -[b]
            change eds a=2
               → EDS 3 @2 [a=2]
            nack eds n=77 no such response
            change eds a=3
               → EDS 4 @3 [a=3]
        "#]],
    );
}

#[test]
fn rule_4_only_the_error_makes_a_refusal_and_only_the_nonce_says_of_what() {
    // F12: envoyproxy/envoy#14841
    sotw(
        "change eds a=1 b=1 \n ask eds a \n ack eds \n ask eds a b \n nack eds b is bad \n ask eds a b \n wait 100
        change eds b=2 \n ack eds",
        expect![[r#"
            change eds a=1 b=1
            ask eds a
               → EDS 1 @1 [a=1]
            ack eds
            ask eds a b
               → EDS 2 @1 [b=1]
            nack eds b is bad
               rejected: EDS @1 [b] b is bad
            ask eds a b
               → EDS 3 @1 [a=1]
            wait 100
            change eds b=2
               → EDS 4 @2 [b=2]
            ack eds
        "#]],
    );
    delta(
        "change eds a=1 \n ask eds +a \n nack eds n=9 of another \n nack eds \n ack eds \n change eds a=2 \n ack eds",
        expect![[r#"
            change eds a=1
            ask eds +a
               → EDS 1 @1 [a=1]
            nack eds n=9 of another
            nack eds
               rejected: EDS @1 [a] bad
            ack eds
            change eds a=2
               → EDS 2 @2 [a=2]
            ack eds
        "#]],
    );
}

#[test]
fn rule_7_a_name_is_heard_while_every_answer_comes_too_late() {
    // F7: envoyproxy/envoy#10363
    sotw(
        "change eds a=1 b=1 \n ask eds a \n change eds a=2 \n wait 5 \n ask eds a b n=1 \n change eds a=3 \n wait 5
        ask eds a b n=2 \n change eds a=4 \n wait 5",
        expect![[r#"
            change eds a=1 b=1
            ask eds a
               → EDS 1 @1 [a=1]
            change eds a=2
            wait 5
               → EDS 2 @2 [a=2]
            ask eds a b n=1
            change eds a=3
            wait 5
               → EDS 3 @3 [a=3 b=1]
            ask eds a b n=2
            change eds a=4
            wait 5
               → EDS 4 @4 [a=4]
        "#]],
    );
}

/// A delta stream of which every field of every message is in the test's hands.
struct Raw {
    requests: mpsc::Sender<DeltaDiscoveryRequest>,
    responses: Streaming<DeltaDiscoveryResponse>,
}

impl Raw {
    async fn open(server: &Server) -> Self {
        let uri = format!("http://{}", server.address);
        let mut service = AggregatedDiscoveryServiceClient::connect(uri).await.unwrap();
        let (requests, sent) = mpsc::channel(8);
        let responses = service.delta_aggregated_resources(ReceiverStream::new(sent)).await.unwrap();
        Self { requests, responses: responses.into_inner() }
    }

    async fn ask(&self, type_url: TypeUrl, node: Option<&str>, names: &[&str]) {
        let request = DeltaDiscoveryRequest {
            node: node.map(|id| Node { id: id.to_owned(), ..Node::default() }),
            type_url: type_url.as_str().to_owned(),
            resource_names_subscribe: names.iter().map(|name| (*name).to_owned()).collect(),
            ..DeltaDiscoveryRequest::default()
        };
        self.requests.send(request).await.unwrap();
    }

    async fn take(&mut self) -> DeltaDiscoveryResponse {
        let response = timeout(PATIENCE, self.responses.message()).await.expect("an answer");
        let response = response.unwrap().expect("the stream goes on");
        let answer = DeltaDiscoveryRequest {
            type_url: response.type_url.clone(),
            response_nonce: response.nonce.clone(),
            ..DeltaDiscoveryRequest::default()
        };
        self.requests.send(answer).await.unwrap();
        response
    }
}

#[tokio::test]
async fn rule_14_the_node_of_the_first_message_is_remembered_whatever_its_type() {
    let server = Server::start().await;
    let mut stream = Raw::open(&server).await;
    stream.ask(TypeUrl::RouteConfiguration, Some("edge-1"), &["web"]).await;
    stream.take().await;
    stream.ask(TypeUrl::Cluster, None, &[]).await;
    stream.take().await;
    server.settled(1).await;
    let known = &server.ledger.snapshot()[0];
    assert_eq!((known.node.id(), known.types.len()), ("edge-1", 2));
}

#[tokio::test]
async fn rule_36_a_node_id_is_a_label_and_takes_nothing_from_whoever_has_it_too() {
    let server = Server::start().await;
    server.change(|next| put_service(next, "web", &["192.0.2.1:80".parse().unwrap()]));
    let (mut first, mut second) = (Raw::open(&server).await, Raw::open(&server).await);
    for stream in [&mut first, &mut second] {
        stream.ask(TypeUrl::Cluster, Some("edge-1"), &[]).await;
        assert_eq!(stream.take().await.resources.len(), 1);
    }
    // A stream that calls itself something else later is still the same, and gets no more.
    second.ask(TypeUrl::ClusterLoadAssignment, Some("admin"), &["web"]).await;
    second.take().await;
    server.change(|next| put_service(next, "pay", &[]));
    for stream in [&mut first, &mut second] {
        assert_eq!(stream.take().await.resources[0].name, "pay");
    }
    server.settled(2).await;
    let ids: Vec<_> = server.ledger.snapshot().iter().map(|stream| stream.node.id().to_owned()).collect();
    assert_eq!(ids, ["edge-1", "edge-1"]);
}

#[tokio::test]
async fn rule_24_nothing_has_a_time_to_live() {
    let server = Server::start().await;
    server.change(|next| put_service(next, "web", &["192.0.2.1:80".parse().unwrap()]));
    let mut stream = Raw::open(&server).await;
    for type_url in [TypeUrl::Cluster, TypeUrl::ClusterLoadAssignment] {
        stream.ask(type_url, Some("edge-1"), &["web"]).await;
        let response = stream.take().await;
        assert!(
            response.resources.iter().all(|resource| resource.ttl.is_none() && resource.resource.is_some())
        );
    }
}
