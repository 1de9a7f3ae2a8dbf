//! Streams as guests: over real sockets, with the library's own client (xds-rules 13, 30, 31, 37).

use std::sync::Arc;
use std::time::{Duration, Instant};

use envoy_types::pb::envoy::service::discovery::v3::DiscoveryRequest;
use envoy_types::pb::envoy::service::endpoint::v3::endpoint_discovery_service_client::EndpointDiscoveryServiceClient;
use foldplane::projection::resources::{TypeUrl, builders};
use foldplane::xds::Limits;
use foldplane::xds::client::{Client, ClientError, Update};
use foldplane::xds::protocol::{Served, Variant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::server::{PATIENCE, Server, put_endpoints, put_service};

const VARIANTS: [Variant; 2] = [Variant::Sotw, Variant::Delta];

pub(crate) async fn connect(server: &Server, variant: Variant) -> Client {
    Client::connect(&format!("http://{}", server.address), "node-1", variant).await.unwrap()
}

async fn take(client: &mut Client) -> Update {
    let update = timeout(PATIENCE, client.next()).await.expect("an answer").unwrap();
    client.accept(&update).await.unwrap();
    update
}

async fn silent(client: &mut Client) {
    let update = timeout(Duration::from_millis(300), client.next()).await;
    assert!(update.is_err(), "{update:?}");
}

#[tokio::test]
async fn clusters_and_endpoints_reach_a_client_and_an_idle_server_is_silent() {
    for variant in VARIANTS {
        let server = Server::start().await;
        server.change(|next| {
            put_service(next, "pay", &["192.0.2.1:80".parse().unwrap()]);
            put_service(next, "web", &["192.0.2.2:80".parse().unwrap()]);
        });
        let mut client = connect(&server, variant).await;
        client.subscribe(TypeUrl::Cluster, &[]).await.unwrap();
        assert_eq!(take(&mut client).await.resources.len(), 2);
        client.subscribe(TypeUrl::ClusterLoadAssignment, &["pay", "web"]).await.unwrap();
        assert_eq!(take(&mut client).await.resources.len(), 2);

        server.change(|next| put_endpoints(next, "pay", &[]));
        let update = take(&mut client).await;
        assert_eq!(update.type_url, TypeUrl::ClusterLoadAssignment.as_str());
        assert_eq!(update.resources.keys().collect::<Vec<_>>(), ["pay"]);
        silent(&mut client).await;

        // xds-rules 9: a delta client that comes back is sent nothing that it has.
        client.reconnect(&format!("http://{}", server.address)).await.unwrap();
        let clusters = take(&mut client).await;
        let expected = if variant == Variant::Delta { 0 } else { 2 };
        assert_eq!(clusters.resources.len(), expected, "{variant:?}");
    }
}

#[tokio::test]
async fn the_service_of_one_type_needs_no_type_and_refuses_another() {
    let server = Server::start().await;
    server.change(|next| put_service(next, "web", &["192.0.2.2:80".parse().unwrap()]));
    let uri = format!("http://{}", server.address);
    let mut service = EndpointDiscoveryServiceClient::connect(uri).await.unwrap();
    let names = DiscoveryRequest { resource_names: vec!["web".into()], ..DiscoveryRequest::default() };
    let endless = tokio_stream::iter([names.clone()]);
    let endless = tokio_stream::StreamExt::chain(endless, tokio_stream::pending());
    let mut responses = service.stream_endpoints(endless).await.unwrap().into_inner();
    let response = responses.message().await.unwrap().unwrap();
    assert_eq!(response.resources.len(), 1);
    assert_eq!(server.ledger.snapshot()[0].served, Served::Only(TypeUrl::ClusterLoadAssignment));

    let other = DiscoveryRequest { type_url: TypeUrl::Cluster.as_str().into(), ..names };
    let endless = tokio_stream::StreamExt::chain(tokio_stream::iter([other]), tokio_stream::pending());
    let mut responses = service.stream_endpoints(endless).await.unwrap().into_inner();
    assert_eq!(responses.message().await.unwrap_err().code(), tonic::Code::InvalidArgument);
}

#[tokio::test]
async fn rule_31_streams_end_by_the_deadline_with_a_word() {
    // F41: hyperium/hyper#2787, #1885
    let server = Server::start().await;
    let mut client = connect(&server, Variant::Delta).await;
    client.subscribe(TypeUrl::Cluster, &[]).await.unwrap();
    take(&mut client).await;
    // One that never says anything holds up nobody.
    let _mute = TcpStream::connect(server.address).await.unwrap();
    timeout(Duration::from_secs(8), server.stop()).await.expect("the server ends");
    let ended = client.next().await.unwrap_err();
    assert!(
        matches!(&ended, ClientError::Ended(status) if status.code() == tonic::Code::Unavailable),
        "{ended}"
    );
}

#[tokio::test]
async fn rule_30_what_belongs_to_a_stream_goes_with_it() {
    // F17: envoyproxy/go-control-plane#570
    let server = Server::start().await;
    server.change(|next| put_service(next, "web", &["192.0.2.2:80".parse().unwrap()]));
    for round in 0..200_u32 {
        let mut client = connect(&server, VARIANTS[round as usize % 2]).await;
        client.subscribe(TypeUrl::Cluster, &[]).await.unwrap();
        if round % 3 == 0 {
            take(&mut client).await;
        }
    }
    let mut changes = server.ledger.changes();
    let gone = async {
        while server.ledger.open_streams() > 0 {
            changes.changed().await.unwrap();
        }
    };
    timeout(PATIENCE, gone).await.expect("every stream is forgotten");
    assert_eq!(server.ledger.totals().opened, 200);
}

#[tokio::test]
async fn rule_30_a_client_that_closes_its_half_is_answered_no_more() {
    let server = Server::start().await;
    let uri = format!("http://{}", server.address);
    let mut service = EndpointDiscoveryServiceClient::connect(uri).await.unwrap();
    let names = DiscoveryRequest { resource_names: vec!["web".into()], ..DiscoveryRequest::default() };
    let mut responses = service.stream_endpoints(tokio_stream::iter([names])).await.unwrap().into_inner();
    // What was asked before is answered, and then the stream ends in order.
    let last = timeout(PATIENCE, async { while responses.message().await.unwrap().is_some() {} });
    last.await.expect("an end");
    let mut changes = server.ledger.changes();
    while server.ledger.open_streams() > 0 {
        timeout(PATIENCE, changes.changed()).await.expect("the stream is forgotten").unwrap();
    }
}

#[tokio::test]
async fn rule_37_garbage_disturbs_nobody() {
    let server = Server::start().await;
    server.change(|next| put_service(next, "web", &["192.0.2.2:80".parse().unwrap()]));
    let mut client = connect(&server, Variant::Sotw).await;
    client.subscribe(TypeUrl::Cluster, &[]).await.unwrap();
    take(&mut client).await;

    // Not HTTP at all, and half a preface.
    for noise in [
        &b"\x16\x03\x01\x00\xa5\x01\x00"[..],
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nxxxxxxxxxxxxxxxxxxxxx",
        b"PRI * HT",
    ] {
        let mut socket = TcpStream::connect(server.address).await.unwrap();
        socket.write_all(noise).await.unwrap();
        socket.shutdown().await.unwrap();
        let _ = timeout(PATIENCE, socket.read_to_end(&mut Vec::new())).await.expect("an end");
    }
    // Messages that are none, in a proper request.
    let http = reqwest::Client::new();
    let path = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources";
    for body in
        [vec![0xff; 1000], vec![0, 0, 0, 0, 3, 0xff, 0xff, 0xff], vec![0, 0xff, 0xff, 0xff, 0xff, 1], vec![]]
    {
        let request =
            http.post(format!("http://{}{path}", server.address)).header("content-type", "application/grpc");
        let response = request.body(body).send().await.unwrap();
        timeout(PATIENCE, response.bytes()).await.expect("an end").unwrap();
    }
    // A path that is not served is said in gRPC's words.
    let unknown = http
        .post(format!("http://{}/foo.Bar/Baz", server.address))
        .header("content-type", "application/grpc");
    assert_eq!(unknown.send().await.unwrap().headers()["grpc-status"], "12");

    server.change(|next| put_service(next, "pay", &[]));
    assert_eq!(take(&mut client).await.resources.len(), 2);
}

#[tokio::test]
async fn rule_37_a_hundred_thousand_names_are_answered() {
    let server = Server::start().await;
    let names: Vec<_> = (0..100_000).map(|number| format!("name-{number}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let mut client = connect(&server, Variant::Delta).await;
    client.subscribe(TypeUrl::ClusterLoadAssignment, &names).await.unwrap();
    assert_eq!(take(&mut client).await.removed.len(), 100_000);
}

#[tokio::test]
async fn rule_23_what_cannot_be_split_is_counted() {
    // F43: one service of very many endpoints
    let server = Server::start().await;
    server.change(|next| {
        let endpoints: Vec<_> = (0..200_000_u32)
            .map(|number| std::net::SocketAddr::from((std::net::Ipv4Addr::from(0x0a00_0001 + number), 80)))
            .collect();
        put_endpoints(next, "huge", &endpoints);
        put_endpoints(next, "small", &endpoints[..1]);
    });
    let mut client = connect(&server, Variant::Delta).await;
    client.subscribe(TypeUrl::ClusterLoadAssignment, &["huge", "small"]).await.unwrap();
    let (first, second) = (take(&mut client).await, take(&mut client).await);
    assert_eq!((first.resources.len(), second.resources.len()), (1, 1), "it goes alone");
    assert!(first.bytes > 4 << 20);
    assert_eq!(server.ledger.totals().oversized, 1);
}

#[tokio::test]
async fn rule_20_a_reader_that_stalls_is_disconnected_and_nobody_else_notices() {
    let limits = Limits { unread: Duration::from_secs(1), silence: Duration::from_secs(300) };
    let server = Server::start_with("127.0.0.1:0".parse().unwrap(), Arc::default(), limits).await;
    // More than the windows of a client take in unread.
    server.change(|next| {
        for name in ["a", "b", "c", "d"] {
            let mut large = builders::cluster(name);
            large.alt_stat_name = "x".repeat(3_000_000);
            next.put(name, &large);
        }
    });
    let mut stalled = connect(&server, Variant::Sotw).await;
    stalled.subscribe(TypeUrl::Cluster, &[]).await.unwrap();
    let mut reader = connect(&server, Variant::Delta).await;
    reader.subscribe(TypeUrl::Cluster, &["web"]).await.unwrap();
    assert_eq!(take(&mut reader).await.removed, ["web"]);
    for round in 0..30 {
        server.change(|next| match round % 2 {
            0 => put_service(next, "web", &[]),
            _ => next.take(TypeUrl::Cluster, "web"),
        });
        let start = Instant::now();
        take(&mut reader).await;
        assert!(start.elapsed() < Duration::from_secs(1), "{round}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(server.ledger.open_streams(), 1);
}

#[tokio::test]
async fn rule_20_a_client_that_never_answers_is_let_go() {
    let limits = Limits { unread: Duration::from_secs(60), silence: Duration::from_secs(1) };
    let server = Server::start_with("127.0.0.1:0".parse().unwrap(), Arc::default(), limits).await;
    let mut mute = connect(&server, Variant::Sotw).await;
    mute.subscribe(TypeUrl::Cluster, &[]).await.unwrap();
    let mut polite = connect(&server, Variant::Sotw).await;
    polite.subscribe(TypeUrl::Cluster, &[]).await.unwrap();
    take(&mut polite).await;
    mute.next().await.unwrap();
    let ended = timeout(PATIENCE, mute.next()).await.expect("an end").unwrap_err();
    assert!(ended.to_string().contains("no answer for 1 seconds"), "{ended}");
    silent(&mut polite).await;
}
