//! What people write, and what they are told when it is wrong.

use serde_json::{Value, json};

use super::{resource, resource_as_json};
use crate::events::ResourceKind;
use crate::projection::resources::TypeUrl;

const MANAGER: &str =
    "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";

fn listener(typed_config: &Value) -> Value {
    json!({
        "@type": TypeUrl::Listener.as_str(),
        "name": "ingress",
        "address": { "socket_address": { "address": "127.0.0.1", "port_value": 10000 } },
        "filter_chains": [{ "filters": [{ "name": "http", "typed_config": typed_config }] }],
    })
}

#[track_caller]
fn refused(value: &Value, place: &str, problem: &str) {
    let invalid = resource(value).unwrap_err();
    assert_eq!(invalid.place, place, "{invalid}");
    assert!(invalid.problem.contains(problem), "{invalid}");
    assert!(!invalid.hint.is_empty());
}

#[test]
fn a_listener_as_envoy_writes_it_comes_back_as_it_was() {
    let manager = json!({
        "@type": MANAGER,
        "stat_prefix": "ingress",
        "stream_idle_timeout": "1.500s",
        "route_config": { "name": "local", "virtual_hosts": [{
            "name": "all", "domains": ["*"],
            "routes": [{ "match": { "prefix": "/" }, "route": { "cluster": "web" } }],
        }]},
        "access_log": [{
            "name": "stdout",
            "typed_config": { "@type": "type.googleapis.com/envoy.extensions.access_loggers.stream.v3.StdoutAccessLog" },
        }],
        "http_filters": [{
            "name": "envoy.filters.http.router",
            "typed_config": { "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router" },
        }],
    });
    let written = resource(&listener(&manager)).unwrap();
    assert_eq!(written.key.to_string(), "listener/ingress");
    assert_eq!(
        resource_as_json(ResourceKind::Listener, written.message.as_slice()).unwrap(),
        listener(&manager)
    );
}

#[test]
fn both_spellings_of_a_field_and_wrapped_numbers_are_the_same_bytes() {
    let cluster = |rest: Value| {
        let mut whole = json!({ "@type": TypeUrl::Cluster.as_str(), "name": "web" });
        whole.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        resource(&whole).unwrap().message
    };
    let snake = cluster(json!({ "connect_timeout": "1s", "per_connection_buffer_limit_bytes": 32768 }));
    let camel = cluster(json!({ "connectTimeout": "1.0s", "perConnectionBufferLimitBytes": "32768" }));
    assert_eq!(snake, camel);
}

#[test]
fn maps_have_one_encoding_also_inside_of_what_is_packed() {
    let metadata: Value =
        (0..20).map(|n| (format!("key-{n}"), json!({ "nested": { "a": 1.0, "b": 2.0 } }))).collect();
    let manager = json!({
        "@type": MANAGER,
        "stat_prefix": "x",
        "route_config": { "virtual_hosts": [{ "name": "v", "metadata": { "filter_metadata": metadata } }] },
    });
    let mut whole = listener(&manager);
    whole["metadata"] = json!({ "filter_metadata": metadata });
    let first = resource(&whole).unwrap();
    for _ in 0..5 {
        assert_eq!(resource(&whole).unwrap(), first);
    }
    assert_eq!(resource_as_json(ResourceKind::Listener, first.message.as_slice()).unwrap(), whole);
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let cluster = |rest: Value| {
        let mut whole = json!({ "@type": TypeUrl::Cluster.as_str(), "name": "web" });
        whole.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        whole
    };
    refused(&json!({ "name": "web" }), "@type", "missing");
    refused(&json!([1]), "the resource", "found a list");
    refused(
        &json!({ "@type": "type.googleapis.com/envoy.config.core.v3.Node" }),
        "@type",
        "not a type that is served",
    );
    refused(&cluster(json!({ "lb_polici": "RANDOM" })), "the resource", "lb_polici");
    refused(&cluster(json!({ "lb_policy": "FASTEST" })), "lb_policy", "FASTEST");
    refused(&cluster(json!({ "connect_timeout": 5 })), "connect_timeout", "integer");
    let endpoint = json!({ "endpoint": { "address": { "socket_address": { "port_value": -1 } } } });
    let endpoints = json!({ "endpoints": [{ "lb_endpoints": [endpoint] }] });
    refused(
        &cluster(json!({ "load_assignment": endpoints })),
        "load_assignment.endpoints[0].lb_endpoints[0].endpoint.address.socket_address.port_value",
        "out of range",
    );
}

#[test]
fn an_unknown_message_inside_is_named_with_its_place_and_the_way_out() {
    let unknown = json!({ "@type": "type.googleapis.com/acme.Filter", "speed": 3 });
    let place = "filter_chains[0].filters[0].typed_config";
    refused(&listener(&unknown), place, "\"acme.Filter\"");
    let typed = json!({
        "@type": "type.googleapis.com/xds.type.v3.TypedStruct",
        "type_url": "type.googleapis.com/acme.Filter",
        "value": { "speed": 3.0 },
    });
    let written = resource(&listener(&typed)).unwrap();
    assert_eq!(
        resource_as_json(ResourceKind::Listener, written.message.as_slice()).unwrap(),
        listener(&typed)
    );
    refused(&listener(&json!({ "@type": MANAGER, "stat_prefx": "x" })), place, "stat_prefx");
}

#[test]
fn no_document_is_too_deep_for_the_stack() {
    let deep = (0..120).fold(json!({}), |inner, _| json!({ "a": inner }));
    refused(&json!({ "@type": TypeUrl::Cluster.as_str(), "metadata": deep }), "the resource", "levels deep");
}
