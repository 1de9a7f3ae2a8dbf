//! Clients that abuse HTTP/2, and clients that only use it often (xds-rules 31).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use foldplane::listen;
use foldplane::projection::resources::TypeUrl;
use foldplane::xds;
use foldplane::xds::protocol::Variant;
use h2::client::{Connection, SendRequest};
use h2::{Ping, Reason};
use http::Request;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::server::{PATIENCE, Server, put_service};
use crate::wire::connect;

async fn raw(server: &Server) -> (SendRequest<Bytes>, Connection<TcpStream>) {
    let socket = TcpStream::connect(server.address).await.unwrap();
    h2::client::handshake(socket).await.unwrap()
}

fn request(server: &Server) -> Request<()> {
    let path = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources";
    let uri = format!("http://{}{path}", server.address);
    Request::post(uri).header("content-type", "application/grpc").body(()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_31_a_flood_of_resets_ends_its_connection_and_no_other() {
    // F40: hyperium/hyper#2877, hyperium/h2#668, #856
    const PAIRS_MAX: u32 = 200_000;
    let server = Server::start().await;
    let mut client = connect(&server, Variant::Sotw).await;
    client.subscribe(TypeUrl::Cluster, &[]).await.unwrap();
    client.next().await.unwrap();

    let (mut sender, connection) = raw(&server).await;
    let ended = tokio::spawn(connection);
    let mut pairs = 0;
    while pairs < PAIRS_MAX && !ended.is_finished() {
        let Ok(ready) = sender.ready().await else { break };
        sender = ready;
        let Ok((_response, mut stream)) = sender.send_request(request(&server), false) else { break };
        stream.send_reset(Reason::CANCEL);
        pairs += 1;
    }
    let error = timeout(PATIENCE, ended).await.expect("the connection ends").unwrap().unwrap_err();
    // The word is lost when the flood runs into the closed connection first.
    let told = error.reason() == Some(Reason::ENHANCE_YOUR_CALM) && error.is_remote();
    assert!(told || error.is_io(), "{error}");
    assert!(pairs < PAIRS_MAX, "{pairs} resets were taken");

    let mut other = connect(&server, Variant::Delta).await;
    other.subscribe(TypeUrl::Cluster, &[]).await.unwrap();
    timeout(Duration::from_secs(5), other.next()).await.expect("others are answered").unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_honest_client_may_open_and_cancel_as_it_likes() {
    // F40: the other half, that limits hit nobody who behaves
    let server = Server::start().await;
    let (mut sender, mut connection) = raw(&server).await;
    let mut pings = connection.ping_pong().unwrap();
    let running = tokio::spawn(connection);
    for _ in 0..1_000 {
        sender = sender.ready().await.unwrap();
        let (response, mut stream) = sender.send_request(request(&server), false).unwrap();
        // Envoy opens and resets a stream for each change of a cluster; it waits for the answer before.
        response.await.unwrap();
        stream.send_reset(Reason::CANCEL);
    }
    pings.ping(Ping::opaque()).await.unwrap();
    assert!(!running.is_finished());
}

/// How often a client pings, and how many times: `FOLDPLANE_PING_SECONDS=300` pings every 10 s for five minutes, as in
/// the reports.
fn pings() -> (Duration, u64) {
    match std::env::var("FOLDPLANE_PING_SECONDS") {
        Ok(seconds) => (Duration::from_secs(10), seconds.parse::<u64>().unwrap() / 10),
        Err(_) => (Duration::from_millis(10), 150),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_31_pings_are_tolerated_with_a_stream_and_without() {
    // F42: envoyproxy/java-control-plane#239, envoyproxy/go-control-plane#1236, grpc/grpc-go#2202
    let server = Server::start().await;
    let (interval, count) = pings();
    let mut clients = Vec::new();
    for streams in [0, 1] {
        let (mut sender, mut connection) = raw(&server).await;
        let mut pings = connection.ping_pong().unwrap();
        let running = tokio::spawn(connection);
        let mut open = Vec::new();
        for _ in 0..streams {
            let (response, stream) = sender.send_request(request(&server), false).unwrap();
            open.push((response.await.unwrap(), stream));
        }
        clients.push(tokio::spawn(async move {
            for _ in 0..count {
                pings.ping(Ping::opaque()).await.unwrap();
                tokio::time::sleep(interval).await;
            }
            assert!(!running.is_finished());
            drop((sender, open));
        }));
    }
    for client in clients {
        client.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_31_who_answers_no_ping_is_let_go() {
    const PING: u8 = 6;
    let limits = listen::Limits {
        ping_interval: Duration::from_millis(300),
        ping_timeout: Duration::from_millis(300),
        ..listen::Limits::default()
    };
    let address = "127.0.0.1:0".parse().unwrap();
    let server = Server::start_listening(address, Arc::default(), xds::Limits::default(), limits).await;
    let mut polite = connect(&server, Variant::Delta).await;
    polite.subscribe(TypeUrl::Cluster, &[]).await.unwrap();
    let first = polite.next().await.unwrap();
    polite.accept(&first).await.unwrap();

    // It opens a connection by the book and then says nothing more.
    let mut frozen = TcpStream::connect(server.address).await.unwrap();
    frozen.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
    frozen.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).await.unwrap();
    let mut heard = Vec::new();
    timeout(PATIENCE, frozen.read_to_end(&mut heard)).await.expect("the connection ends").unwrap();
    let is_ping = |frame: &[u8]| matches!(frame, [0, 0, 8, kind, 0, ..] if *kind == PING);
    assert!(heard.windows(9).any(is_ping), "it was not pinged: {heard:?}");

    server.change(|next| put_service(next, "web", &[]));
    let second = timeout(PATIENCE, polite.next()).await.expect("who answers pings is served").unwrap();
    assert_eq!(second.resources.len(), 1);
}
