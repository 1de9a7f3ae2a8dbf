//! A real Envoy that refuses a cluster, in both variants (xds-rules 18).

use envoy_types::pb::envoy::config::cluster::v3::Cluster;
use foldplane::bootstrap::XdsVariant;
use foldplane::projection::resources::builders;

use crate::envoy::Proxy;
use crate::server::{Server, Upstreams, put_endpoints, put_service};

/// A cluster of endpoints that do not say where they come from.
fn broken(name: &str) -> Cluster {
    Cluster { eds_cluster_config: None, ..builders::cluster(name) }
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_18_an_envoy_that_refuses_a_cluster_keeps_it_and_takes_the_others() {
    for variant in [XdsVariant::Delta, XdsVariant::StateOfTheWorld] {
        let (mut upstreams, mut server) = (Upstreams::default(), Server::start().await);
        let (one, two) = (upstreams.start("one").await, upstreams.start("two").await);
        server.change(|next| {
            put_service(next, "bad", &[one]);
            put_service(next, "good", &[one]);
        });
        let proxy = Proxy::start(server.address, variant).await;
        proxy.answers("bad", "one").await;
        let load = proxy.load("bad");

        // In one event with a good one, of which Envoy says nothing.
        server.change(|next| {
            next.put("bad", &broken("bad"));
            put_service(next, "new", &[two]);
        });
        proxy.answers("new", "two").await;
        let refusal = server.rejections.recv().await.unwrap();
        assert_eq!((refusal.node.as_str(), refusal.names), ("proxy-1", vec!["bad".to_owned()]));
        server.settled(1).await;
        let refused = proxy.statistic("cluster_manager.cds.update_rejected").await;

        // What comes after it is taken without a word about the bad one.
        server.change(|next| put_service(next, "newer", &[two]));
        proxy.answers("newer", "two").await;
        server.change(|next| put_endpoints(next, "bad", &[one, two]));
        server.settled(1).await;
        assert_eq!(proxy.statistic("cluster_manager.cds.update_rejected").await, refused, "{variant:?}");
        assert!(server.rejections.try_recv().is_err());

        server.change(|next| put_service(next, "bad", &[two]));
        proxy.answers("bad", "two").await;
        assert_eq!(load.end().await, Vec::<String>::new(), "{variant:?}");
    }
}
