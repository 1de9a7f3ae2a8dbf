//! Clients that abuse HTTP/2, and clients that only use it often (xds-rules 31).

use std::time::Duration;

use bytes::Bytes;
use foldplane::projection::resources::TypeUrl;
use foldplane::xds::protocol::Variant;
use h2::client::{Connection, SendRequest};
use h2::{Ping, Reason};
use http::Request;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::server::{PATIENCE, Server};
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
async fn a_flood_of_resets_ends_its_connection_and_no_other() {
    // hyperium/hyper#2877, hyperium/h2#668, #856
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
async fn an_honest_client_may_ping_and_open_and_cancel_as_it_likes() {
    // envoyproxy/java-control-plane#239, envoyproxy/go-control-plane#1236, grpc/grpc-go#2202
    let server = Server::start().await;
    let (mut sender, mut connection) = raw(&server).await;
    let mut pings = connection.ping_pong().unwrap();
    let running = tokio::spawn(connection);
    for _ in 0..100 {
        pings.ping(Ping::opaque()).await.unwrap();
    }
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
