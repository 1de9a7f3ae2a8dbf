//! What an operator may apply: what a client would refuse, or could not use, is refused with its place.

use serde_json::{Value, json};

use super::*;
use crate::command::{Applying, References, ResourceChange};
use crate::transcode;

fn apply(resources: &[Value], references: References) -> Command {
    let read = |value: &Value| {
        let written = transcode::resource(value).expect("a resource in Envoy's JSON");
        Applying { key: written.key, message: written.message }
    };
    let apply = resources.iter().map(read).collect();
    Command::ChangeResources(ResourceChange { apply, references, ..ResourceChange::default() })
}

#[track_caller]
fn taken(resource: &Value) {
    let said = World::default().wish(&apply(std::slice::from_ref(resource), References::Unchecked));
    assert!(said.starts_with("@1 ResourceApplied"), "{said}");
}

#[track_caller]
fn refused(resource: &Value, words: &str) {
    let said = World::default().wish(&apply(std::slice::from_ref(resource), References::Unchecked));
    assert!(said.starts_with("invalid_argument: ") && said.contains(words), "{said}");
}

/// A resource of this type.
fn of(kind: &str, mut fields: Value) -> Value {
    fields["@type"] = format!("type.googleapis.com/envoy.config.{kind}").into();
    fields
}

fn assignment(groups: Value) -> Value {
    of("endpoint.v3.ClusterLoadAssignment", json!({"cluster_name": "web", "endpoints": groups}))
}

/// One locality with one endpoint at this address.
fn at(address: Value) -> Value {
    assignment(json!([{"lb_endpoints": [{"endpoint": {"address": address}}]}]))
}

fn socket(address: &str, port: u32) -> Value {
    json!({"socket_address": {"address": address, "port_value": port}})
}

#[test]
fn endpoints_must_be_such_as_clients_take() {
    for good in [
        socket("192.0.2.1", 1),
        socket("2001:db8::1", 65_535),
        json!({"pipe": {"path": "/a"}}),
        json!({"pipe": {"path": format!("@{}", "a".repeat(106))}}),
        json!({"socket_address": {"address": "db.example", "port_value": 80, "resolver_name": "mine"}}),
        json!({"socket_address": {"address": "192.0.2.1", "named_port": "http"}}),
    ] {
        taken(&at(good));
    }
    refused(
        &at(socket("db.example", 80)),
        "endpoints[0].lb_endpoints[0].endpoint.address.socket_address.address",
    );
    refused(&at(socket("192.0.2.1", 0)), "port_value: 0 is not a port");
    refused(&at(socket("192.0.2.1", 65_536)), "65536 is not a port");
    refused(&at(json!({"pipe": {"path": ""}})), "pipe.path: a socket's path has 1 to 107 bytes, this one 0");
    refused(&at(json!({"pipe": {"path": format!("/{}", "a".repeat(107))}})), "this one 108");
    let endpoint = |address: Value| json!({"endpoint": {"address": address}});
    for twice in [socket("192.0.2.1", 80), json!({"pipe": {"path": "/a"}})] {
        let endpoints = json!([endpoint(twice.clone()), endpoint(twice)]);
        refused(
            &assignment(json!([{"lb_endpoints": endpoints}])),
            "lb_endpoints[1]: its address is listed twice",
        );
    }
    let two = json!([endpoint(socket("192.0.2.1", 80)), endpoint(socket("192.0.2.1", 81))]);
    taken(&assignment(json!([{"lb_endpoints": two}])));
    let weightless = json!({"endpoint": {"address": socket("192.0.2.1", 80)}, "load_balancing_weight": 0});
    refused(&assignment(json!([{"lb_endpoints": [weightless]}])), "lb_endpoints[0].load_balancing_weight");
    refused(&assignment(json!([{"load_balancing_weight": 0}])), "endpoints[0].load_balancing_weight");
    taken(&assignment(json!([{"load_balancing_weight": 1, "priority": 1}, {"priority": 0}])));
    refused(&assignment(json!([{"priority": 2}, {"priority": 0}])), "a priority 2 and no priority 1");
}

#[test]
fn clusters_must_have_a_place_for_their_endpoints() {
    let cluster = |fields: Value| {
        let mut cluster = of("cluster.v3.Cluster", fields);
        cluster["name"] = "web".into();
        cluster
    };
    let with = |kind: &str, address: &str| {
        let assignment = json!({"cluster_name": "web", "endpoints": [{"lb_endpoints": [{"endpoint": {"address": socket(address, 80)}}]}]});
        cluster(json!({"type": kind, "load_assignment": assignment}))
    };
    taken(&cluster(json!({"type": "EDS", "eds_cluster_config": {"eds_config": {"ads": {}}}})));
    refused(&cluster(json!({"type": "EDS"})), "eds_cluster_config: an EDS cluster needs it");
    refused(&cluster(json!({})), "type: a STATIC cluster needs its endpoints");
    refused(&cluster(json!({"type": "STATIC"})), "type: a STATIC cluster needs its endpoints");
    taken(&cluster(json!({"type": "ORIGINAL_DST"})));
    taken(&with("STATIC", "192.0.2.1"));
    taken(&with("STRICT_DNS", "db.example"));
    refused(&with("STATIC", "db.example"), "load_assignment.endpoints[0].lb_endpoints[0]");
}

#[test]
fn routes_and_listeners_must_lead_somewhere() {
    let route =
        |hosts: Value| of("route.v3.RouteConfiguration", json!({"name": "web", "virtual_hosts": hosts}));
    taken(&route(json!([{"name": "a", "domains": ["a"]}, {"name": "b", "domains": ["b"]}])));
    refused(&route(json!([{"name": "a"}])), "virtual_hosts[0].domains: it matches nothing");
    let twice = json!([{"name": "a", "domains": ["a.example"]}, {"name": "b", "domains": ["A.example"]}]);
    refused(&route(twice), "virtual_hosts[1].domains: \"A.example\" is a domain of two virtual hosts");
    let listener = |fields: Value| {
        let mut listener = of("listener.v3.Listener", fields);
        listener["name"] = "web".into();
        listener
    };
    taken(&listener(json!({"address": socket("0.0.0.0", 80)})));
    refused(&listener(json!({})), "address: nobody can reach it");
    let manager = json!({
        "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "web",
    });
    let chains = json!([{"filters": [{"name": "http", "typed_config": manager}]}]);
    refused(
        &listener(json!({"address": socket("0.0.0.0", 80), "filter_chains": chains})),
        "filter_chains[0].filters[0].typed_config: nothing says where requests go",
    );
    refused(
        &listener(json!({"api_listener": {"api_listener": manager}})),
        "api_listener.api_listener: nothing says",
    );
}

#[test]
fn what_is_named_must_be_there_everywhere_where_something_can_be_named() {
    let hosts = |action: Value| json!([{"name": "a", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": action}]}]);
    let route = |action: Value| {
        of("route.v3.RouteConfiguration", json!({"name": "web", "virtual_hosts": hosts(action)}))
    };
    let weighted = json!({"weighted_clusters": {"clusters": [{"name": "b", "weight": 1}]}});
    let mirrored = json!({"cluster_header": "x", "request_mirror_policies": [{"cluster": "c"}]});
    let manager = |specifier: &str, value: Value| {
        let name = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
        json!({"@type": name, "stat_prefix": "web", specifier: value})
    };
    let proxy = |fields: Value| {
        let mut proxy = fields;
        proxy["@type"] = "type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy".into();
        proxy["stat_prefix"] = "tcp".into();
        proxy
    };
    let listener = |chains: &str, filter: Value| {
        let chain = json!({"filters": [{"name": "f", "typed_config": filter}]});
        let chains_of = if chains == "filter_chains" { json!([chain]) } else { chain };
        of(
            "listener.v3.Listener",
            json!({"name": "web", "address": socket("0.0.0.0", 80), chains: chains_of}),
        )
    };
    let rds = json!({"route_config_name": "r", "config_source": {"ads": {}}});
    let inline = json!({"name": "inline", "virtual_hosts": hosts(json!({"cluster": "d"}))});
    let eds = json!({"eds_config": {"ads": {}}, "service_name": "e"});
    let named = [
        (route(json!({"cluster": "a"})), "route.cluster: there is no cluster/a"),
        (route(weighted), "weighted_clusters.clusters[0].name: there is no cluster/b"),
        (route(mirrored), "request_mirror_policies[0].cluster: there is no cluster/c"),
        (
            listener("filter_chains", manager("rds", rds.clone())),
            "rds.route_config_name: there is no route/r",
        ),
        (
            listener("default_filter_chain", manager("rds", rds)),
            "default_filter_chain.filters[0].typed_config.rds",
        ),
        (listener("filter_chains", manager("route_config", inline)), "route.cluster: there is no cluster/d"),
        (listener("filter_chains", proxy(json!({"cluster": "t"}))), "there is no cluster/t"),
        (
            of("cluster.v3.Cluster", json!({"name": "web", "type": "EDS", "eds_cluster_config": eds})),
            "service_name: there is no endpoints/e",
        ),
    ];
    for (resource, words) in named {
        let said = World::default().wish(&apply(std::slice::from_ref(&resource), References::Checked));
        assert!(said.starts_with("unknown_reference: ") && said.contains(words), "{said}");
    }
    let both = [
        route(json!({"cluster": "a"})),
        of("cluster.v3.Cluster", json!({"name": "a", "type": "ORIGINAL_DST"})),
    ];
    let said = World::default().wish(&apply(&both, References::Checked));
    assert!(said.starts_with("@1 ResourceApplied"), "{said}");
}

#[test]
fn a_name_is_said_twice_and_means_something_to_clients_only_once() {
    let cluster = |name: &str| of("cluster.v3.Cluster", json!({"name": name, "type": "ORIGINAL_DST"}));
    for bad in ["*", "a\nb"] {
        refused(&cluster(bad), "name");
    }
    taken(&cluster(&"a".repeat(253)));
    refused(&cluster(&"a".repeat(254)), "253");
    let mut change = apply(&[cluster("web")], References::Unchecked);
    if let Command::ChangeResources(change) = &mut change {
        "other".clone_into(&mut change.apply[0].key.name);
    }
    let said = World::default().wish(&change);
    assert!(said.contains("it says \"web\", and is applied as \"other\""), "{said}");
}
