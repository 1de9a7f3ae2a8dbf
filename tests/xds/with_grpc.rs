//! The rules that only a real gRPC client can confirm, in two implementations.

use std::net::SocketAddr;

use foldplane::projection::resources::{ResourcesBuilder, TypeUrl, builders};
use tokio::time::timeout;

use crate::grpc::{Implementation, Peer};
use crate::server::{PATIENCE, Server, put_endpoints, put_service};

fn put_reachable(next: &mut ResourcesBuilder, name: &str, endpoints: &[SocketAddr]) {
    put_service(next, name, endpoints);
    next.put(name, &builders::api_listener(name, name));
    next.put(name, &builders::route(name, name));
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_29_a_service_is_reached_by_its_name() {
    for implementation in Implementation::ALL {
        let mut server = Server::start().await;
        let (_servers, addresses) = Peer::servers(&["one", "two"]).await;
        let (one, two) = (addresses[0], addresses[1]);
        server.change(|next| {
            put_reachable(next, "pay", &[one]);
            put_reachable(next, "web", &[two]);
        });
        let mut client = Peer::client(implementation, server.address).await;
        assert_eq!(client.ask("pay"), "one");
        assert_eq!(client.ask("web"), "two");

        server.change(|next| put_endpoints(next, "pay", &[two]));
        client.answers("pay", "two");

        // xds-rules 18: what gRPC refuses (endpoints without a locality) leaves what it had.
        server.change(|next| {
            let mut bad = builders::load_assignment("pay", vec![builders::endpoint(one)]);
            bad.endpoints[0].locality = None;
            next.put("pay", &bad);
        });
        let refusal = timeout(PATIENCE, server.rejections.recv()).await.expect("a refusal").unwrap();
        assert_eq!(
            (refusal.node.as_str(), refusal.names),
            (implementation.node_id(), vec!["pay".to_owned()])
        );
        assert_eq!(client.ask("pay"), "two");
        assert_eq!(client.ask("web"), "two");

        // xds-rules 24: the last endpoint goes, and comes back.
        server.change(|next| put_endpoints(next, "pay", &[]));
        client.answers("pay", "error UNAVAILABLE");
        server.change(|next| put_endpoints(next, "pay", &[one]));
        client.answers("pay", "one");

        // The service goes, and with it the way to it.
        server.change(|next| {
            for type_url in TypeUrl::ALL {
                next.take(type_url, "web");
            }
        });
        client.answers("web", "error UNAVAILABLE");
        assert_eq!(client.ask("pay"), "one");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_dies_is_left_before_and_after_its_endpoint_goes() {
    for implementation in Implementation::ALL {
        let server = Server::start().await;
        let (first, one) = Peer::servers(&["one"]).await;
        let (_second, two) = Peer::servers(&["two"]).await;
        server.change(|next| put_reachable(next, "pay", &[one[0], two[0]]));
        let mut client = Peer::client(implementation, server.address).await;
        client.answers("pay", "one");
        client.answers("pay", "two");
        drop(first);
        // The client notices by itself, and the control plane does not bring it back.
        client.answers("pay", "two");
        server.change(|next| put_endpoints(next, "pay", &two));
        client.answers("pay", "two");
        for _ in 0..20 {
            assert_eq!(client.ask("pay"), "two", "{implementation:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_9_a_restart_of_the_server_is_not_noticed_by_grpc() {
    for implementation in Implementation::ALL {
        let server = Server::start().await;
        let (_servers, addresses) = Peer::servers(&["one", "two"]).await;
        server.change(|next| put_reachable(next, "pay", &addresses[..1]));
        let mut client = Peer::client(implementation, server.address).await;
        assert_eq!(client.ask("pay"), "one");
        let (address, resources) = server.stop().await;
        assert_eq!(client.ask("pay"), "one");
        let server = Server::start_on(address, resources).await;
        server.settled(1).await;
        assert_eq!(client.ask("pay"), "one");
        server.change(|next| put_endpoints(next, "pay", &addresses[1..]));
        client.answers("pay", "two");
    }
}
