//! The rules that only a real Envoy can confirm, in both variants.

use std::time::Duration;

use envoy_types::pb::envoy::config::endpoint::v3::lb_endpoint::HostIdentifier;
use envoy_types::pb::google::protobuf::Duration as Span;
use foldplane::bootstrap::XdsVariant;
use foldplane::projection::resources::{ResourcesBuilder, TypeUrl, builders};

use crate::envoy::{Proxy, WARMING_MAX};
use crate::server::{Server, Upstreams, put_endpoints, put_service};

const VARIANTS: [XdsVariant; 2] = [XdsVariant::Delta, XdsVariant::StateOfTheWorld];

/// A way to change something, and what it is called.
type Change<'a> = (&'static str, &'a dyn Fn(&mut ResourcesBuilder));

/// Changes an attribute of a cluster, which makes Envoy build it anew.
fn touch(next: &mut ResourcesBuilder, name: &str, milliseconds: i32) {
    let connect_timeout = Some(Span { seconds: 1, nanos: milliseconds * 1_000_000 });
    next.put(
        name,
        &envoy_types::pb::envoy::config::cluster::v3::Cluster { connect_timeout, ..builders::cluster(name) },
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_6_10_24_endpoints_come_and_go() {
    for variant in VARIANTS {
        let (mut upstreams, server) = (Upstreams::default(), Server::start().await);
        let (one, two) = (upstreams.start("one").await, upstreams.start("two").await);
        server.change(|next| put_service(next, "web", &[one]));
        let proxy = Proxy::start(server.address, variant).await;
        proxy.answers("web", "one").await;

        server.change(|next| put_endpoints(next, "web", &[two]));
        proxy.answers("web", "two").await;
        server.change(|next| put_endpoints(next, "web", &[]));
        proxy.answers("web", "status 503").await;
        server.change(|next| put_endpoints(next, "web", &[one]));
        proxy.answers("web", "one").await;

        // A cluster without an assignment does not hold up anything.
        server.change(|next| next.put("bare", &builders::cluster("bare")));
        assert!(server.settled(1).await < WARMING_MAX, "{variant:?}");
        server.change(|next| put_endpoints(next, "bare", &[two]));
        proxy.answers("bare", "two").await;

        server.change(|next| {
            next.take(TypeUrl::Cluster, "web");
            next.take(TypeUrl::ClusterLoadAssignment, "web");
        });
        proxy.answers("web", "status 503").await;
        assert_eq!(proxy.statistic("cluster_manager.cds.update_rejected").await, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_17_22_no_way_to_change_a_cluster_under_load_fails_a_request_or_warms_long() {
    for variant in VARIANTS {
        let (mut upstreams, server) = (Upstreams::default(), Server::start().await);
        let (one, two) = (upstreams.start("one").await, upstreams.start("two").await);
        server.change(|next| {
            put_service(next, "web", &[one]);
            put_service(next, "old", &[one]);
            put_service(next, "other", &[two]);
        });
        let proxy = Proxy::start(server.address, variant).await;
        proxy.answers("web", "one").await;
        let load = proxy.load("web");
        let changes: [Change<'_>; 6] = [
            ("an attribute", &|next| touch(next, "web", 1)),
            ("its endpoints", &|next| put_endpoints(next, "web", &[one, two])),
            ("both", &|next| {
                touch(next, "web", 2);
                put_endpoints(next, "web", &[two]);
            }),
            ("one changed while another is removed", &|next| {
                touch(next, "web", 3);
                next.take(TypeUrl::Cluster, "old");
                next.take(TypeUrl::ClusterLoadAssignment, "old");
            }),
            ("two changed at once", &|next| {
                touch(next, "web", 4);
                touch(next, "other", 4);
            }),
            ("another takes the same assignment", &|next| {
                let mut canary = builders::cluster("canary");
                canary.eds_cluster_config.as_mut().unwrap().service_name = "web".into();
                next.put("canary", &canary);
            }),
        ];
        for (what, change) in changes {
            server.change(change);
            let took = server.settled(1).await;
            assert!(took < WARMING_MAX, "{variant:?}, {what}: warming took {took:?}");
            load.run(20).await;
        }
        proxy.answers("canary", "two").await;
        assert_eq!(load.end().await, Vec::<String>::new(), "{variant:?}");
        assert_eq!(proxy.statistic("cluster_manager.warming_clusters").await, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_18_a_bad_assignment_harms_neither_its_cluster_nor_the_good_ones() {
    for variant in VARIANTS {
        let (mut upstreams, mut server) = (Upstreams::default(), Server::start().await);
        let (one, two) = (upstreams.start("one").await, upstreams.start("two").await);
        server.change(|next| {
            put_service(next, "bad", &[one]);
            put_service(next, "good", &[one]);
        });
        let proxy = Proxy::start(server.address, variant).await;
        proxy.answers("good", "one").await;

        server.change(|next| {
            next.put("bad", &with_host_name("bad"));
            put_endpoints(next, "good", &[two]);
        });
        proxy.answers("good", "two").await;
        proxy.answers("bad", "one").await;
        let refusal = server.rejections.recv().await.unwrap();
        assert_eq!((refusal.node.as_str(), refusal.names), ("proxy-1", vec!["bad".to_owned()]));
        assert!(refusal.message.contains("malformed IP address"), "{}", refusal.message);
        server.settled(1).await;

        // Its cluster changes: the bad assignment is not sent again, and the old endpoints serve.
        let responses = server.ledger.totals().responses;
        server.change(|next| put_endpoints(next, "bad", &[two]));
        proxy.answers("bad", "two").await;
        server.settled(1).await;
        assert_eq!(server.ledger.totals().responses, responses + 1, "{variant:?}");
        assert!(server.rejections.try_recv().is_err());
    }
}

/// An assignment that Envoy refuses.
fn with_host_name(name: &str) -> envoy_types::pb::envoy::config::endpoint::v3::ClusterLoadAssignment {
    let mut endpoint = builders::endpoint("192.0.2.1:80".parse().unwrap());
    if let Some(HostIdentifier::Endpoint(endpoint)) = &mut endpoint.host_identifier {
        let address = endpoint.address.as_mut().unwrap().address.as_mut().unwrap();
        if let envoy_types::pb::envoy::config::core::v3::address::Address::SocketAddress(socket) = address {
            socket.address = "not-an-ip".into();
        }
    }
    builders::load_assignment(name, vec![endpoint])
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_9_a_restart_of_the_server_is_not_noticed() {
    for variant in VARIANTS {
        let (mut upstreams, server) = (Upstreams::default(), Server::start().await);
        let (one, two) = (upstreams.start("one").await, upstreams.start("two").await);
        server.change(|next| {
            put_service(next, "web", &[one]);
            put_service(next, "gone", &[one]);
        });
        let proxy = Proxy::start(server.address, variant).await;
        proxy.answers("web", "one").await;
        let load = proxy.load("web");
        let before = proxy.statistic("cluster_manager.cluster_updated").await;

        let (address, resources) = server.stop().await;
        load.run(20).await;
        let server = Server::start_on(address, resources).await;
        server.settled(1).await;
        let updated = proxy.statistic("cluster_manager.cluster_updated").await;
        assert_eq!(updated, before, "{variant:?}: a cluster was built anew");

        // What went while nobody was connected is gone.
        let (address, resources) = server.stop().await;
        let mut next = resources.builder(resources.offset().next());
        next.take(TypeUrl::Cluster, "gone");
        next.take(TypeUrl::ClusterLoadAssignment, "gone");
        put_endpoints(&mut next, "web", &[two]);
        let server = Server::start_on(address, std::sync::Arc::new(next.build())).await;
        proxy.answers("web", "two").await;
        proxy.answers("gone", "status 503").await;
        server.settled(1).await;
        assert_eq!(load.end().await, Vec::<String>::new(), "{variant:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_34_a_break_during_warming_ends_with_the_endpoints() {
    for variant in VARIANTS {
        let (mut upstreams, server) = (Upstreams::default(), Server::start().await);
        let one = upstreams.start("one").await;
        server.change(|next| put_service(next, "web", &[one]));
        let proxy = Proxy::start(server.address, variant).await;
        proxy.answers("web", "one").await;
        let load = proxy.load("web");
        // The server goes between the changed cluster and its assignment, as far as timing allows.
        for milliseconds in 1..6 {
            server.change(|next| touch(next, "web", milliseconds));
            tokio::task::yield_now().await;
        }
        let (address, resources) = server.stop().await;
        let server = Server::start_on(address, resources).await;
        assert!(server.settled(1).await < Duration::from_secs(8), "{variant:?}");
        load.run(20).await;
        assert_eq!(load.end().await, Vec::<String>::new(), "{variant:?}");
        assert_eq!(proxy.statistic("cluster_manager.warming_clusters").await, 0);
    }
}

/// How many Envoys follow one control plane: `FOLDPLANE_FLEET=100` for a fleet, which takes a minute to start and some
/// gigabytes.
fn fleet_size() -> usize {
    std::env::var("FOLDPLANE_FLEET").map_or(10, |text| text.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_converges_on_one_change() {
    let size = fleet_size();
    let (mut upstreams, server) = (Upstreams::default(), Server::start().await);
    let (one, two) = (upstreams.start("one").await, upstreams.start("two").await);
    server.change(|next| put_service(next, "web", &[one]));
    let mut fleet = Vec::new();
    for number in 0..size {
        fleet.push(Proxy::start(server.address, VARIANTS[number % 2]).await);
    }
    for proxy in &fleet {
        proxy.answers("web", "one").await;
    }
    server.settled(size).await;
    server.change(|next| put_endpoints(next, "web", &[two]));
    let took = server.settled(size).await;
    println!("one change was accepted by {size} Envoys in {took:?}");
    for proxy in &fleet {
        assert_eq!(proxy.ask("web").await, "two");
    }
}
