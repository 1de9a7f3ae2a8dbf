//! REST polling: what a request is answered. A real Envoy polls in `with_envoy_otherwise.rs`.

use std::sync::Arc;

use foldplane::events::ViewName;
use foldplane::events::view::{NodeSelector, NodeView};
use foldplane::projection::resources::{NodeViews, Resources, TypeUrl, builders};
use foldplane::xds::protocol::poll;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::server::{Server, put_service};

fn world() -> Resources {
    let mut next = Resources::default().builder("1".parse().unwrap());
    for name in ["pay", "web"] {
        put_service(&mut next, name, &["192.0.2.1:80".parse().unwrap()]);
        next.put(name, &builders::api_listener(name, name));
    }
    next.build()
}

fn polled(type_url: TypeUrl, names: &[&str], world: &Resources) -> Vec<String> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let polled = poll(type_url, &names, "", world).expect("no version is that of nothing");
    assert_eq!(poll(type_url, &names, &polled.version.to_string(), world), None, "it has that");
    polled.resources.iter().map(|resource| resource.name.to_string()).collect()
}

#[test]
fn names_mean_what_they_mean_in_the_first_message_of_a_stream() {
    let world = world();
    assert_eq!(polled(TypeUrl::Cluster, &[], &world), ["pay", "web"]);
    assert_eq!(polled(TypeUrl::Cluster, &["*"], &world), ["pay", "web"]);
    assert_eq!(polled(TypeUrl::Cluster, &["web", "none"], &world), ["web"]);
    assert_eq!(polled(TypeUrl::ClusterLoadAssignment, &[], &world), [""; 0]);
    // xds-rules 10: a missing assignment is an empty one, so that warming ends.
    assert_eq!(polled(TypeUrl::ClusterLoadAssignment, &["web", "none"], &world), ["none", "web"]);
    // xds-rules 29
    assert_eq!(polled(TypeUrl::Listener, &[], &world), [""; 0]);
    assert_eq!(polled(TypeUrl::Listener, &["web"], &world), ["web"]);
}

#[test]
fn another_choice_of_names_has_another_version() {
    let world = world();
    let version = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        poll(TypeUrl::ClusterLoadAssignment, &names, "", &world).unwrap().version
    };
    assert_ne!(version(&["web"]), version(&["web", "pay"]));
    assert_eq!(version(&["pay", "web"]), version(&["web", "pay"]));
}

async fn post(server: &Server, what: &str, body: &Value) -> (StatusCode, String) {
    let url = format!("http://{}/v3/discovery:{what}", server.address);
    let response = reqwest::Client::new().post(url).json(body).send().await.unwrap();
    (response.status(), response.text().await.unwrap())
}

#[tokio::test]
async fn a_request_is_answered_in_json_and_once_for_each_version() {
    let server = Server::start().await;
    server.change(|next| put_service(next, "web", &["192.0.2.1:80".parse().unwrap()]));
    let asked = json!({"node": {"id": "proxy-1"}, "resource_names": ["web"], "a_field_of_tomorrow": 1});
    let (status, body) = post(&server, "endpoints", &asked).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    let answer: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(answer["type_url"], TypeUrl::ClusterLoadAssignment.as_str());
    let assignment = &answer["resources"][0];
    assert_eq!((&assignment["@type"], &assignment["cluster_name"]), (&answer["type_url"], &json!("web")));

    let again = json!({"resource_names": ["web"], "version_info": answer["version_info"]});
    assert_eq!(post(&server, "endpoints", &again).await, (StatusCode::NOT_MODIFIED, String::new()));
    server.change(|next| put_service(next, "web", &["192.0.2.2:80".parse().unwrap()]));
    assert_eq!(post(&server, "endpoints", &again).await.0, StatusCode::OK);
}

// xds-rules 32
#[tokio::test]
async fn who_polls_sees_what_its_view_shows() {
    let server = Server::start().await;
    server.change(|next| {
        let nodes = NodeSelector { ids: vec!["edge-*".parse().unwrap()], ..NodeSelector::default() };
        let view = NodeView { nodes, services: vec!["web".parse().unwrap()] };
        let views = [(ViewName::new("edges").unwrap(), Arc::new(view))].into_iter().collect();
        next.set_views(NodeViews::new("1".parse().unwrap(), views));
        ["pay", "web"].into_iter().for_each(|name| put_service(next, name, &[]));
    });
    for (node, sees_pay) in [("edge-1", false), ("inner-1", true)] {
        let (_, body) = post(&server, "clusters", &json!({"node": {"id": node}})).await;
        assert_eq!((body.contains("pay"), body.contains("web")), (sees_pay, true), "{node}: {body}");
    }
}

#[tokio::test]
async fn a_request_that_makes_no_sense_is_told_why() {
    let server = Server::start().await;
    for (what, body, why) in [
        ("clusters", json!([]), "DiscoveryRequest"),
        ("clusters", json!({"resource_names": 7}), "resource_names"),
        ("clusters", json!({"type_url": TypeUrl::Listener.as_str()}), "serves"),
    ] {
        let (status, text) = post(&server, what, &body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{body}: {text}");
        assert!(text.contains(why), "{body}: {text}");
    }
}
