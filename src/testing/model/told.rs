//! What clients are told, as lines to compare: by the model, and by the real resources.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::sync::Arc;

use crate::events::event::{EndpointAddress, LbPolicy, Locality, LocalityWeighting, Protocol, ServiceSpec};
use crate::events::{Envelope, PortName, ResourceKind, ServiceName};
use crate::projection::resources::{Dials, Resources, TypeUrl, builders};
use envoy_types::pb::envoy::config::cluster::v3 as pb;
use envoy_types::pb::envoy::config::cluster::v3::cluster::LbPolicy as LbPolicyPb;
use envoy_types::pb::envoy::config::cluster::v3::cluster::common_lb_config::LocalityConfigSpecifier;
use envoy_types::pb::envoy::config::core::v3::address::Address;
use envoy_types::pb::envoy::config::core::v3::socket_address::PortSpecifier;
use envoy_types::pb::envoy::config::endpoint::v3::lb_endpoint::HostIdentifier;
use envoy_types::pb::envoy::config::endpoint::v3::{ClusterLoadAssignment, LbEndpoint};
use envoy_types::pb::envoy::config::listener::v3::Listener;
use envoy_types::pb::envoy::config::route::v3::RouteConfiguration;
use prost::Message;

use super::applied::applied;
use super::lives::{Health, Life, cluster, declared, lives, living, locality, spec};
use super::rules;

/// What is told under every name of every type: of endpoints a line each, in the order in which they are sent; of clusters
/// how they are to be used, and the rest of the message; of others the message.
pub type Told = BTreeMap<(TypeUrl, String), Vec<String>>;

struct Entry {
    priority: u32,
    locality: Locality,
    address: EndpointAddress,
    health: Health,
    weight: Option<u32>,
}

/// What clients that dial so must be told after these events: the model's word.
pub fn told(events: &[Envelope], dials: Dials) -> Told {
    let lives = lives(events);
    let mut clusters: BTreeMap<String, (ServiceName, BTreeSet<PortName>, Vec<Entry>)> = BTreeMap::new();
    let own = |service: &ServiceName, port: &PortName| cluster(spec(events, service), &lives, service, port);
    for service in declared(events) {
        for port in spec(events, service).into_iter().flat_map(|spec| &spec.ports) {
            clusters
                .entry(own(service, &port.name))
                .or_insert_with(|| (service.clone(), BTreeSet::new(), vec![]));
        }
    }
    for life in lives.iter().filter(|life| life.ended.is_none()) {
        let (registration, service) = (life.registration, &life.key.service);
        let policy = spec(events, service).map(|spec| spec.cluster).unwrap_or_default();
        let hooks = rules::hooks(events, service);
        for endpoint in &registration.endpoints {
            let health = rules::health(&hooks, life, endpoint, life.health(&policy));
            let can_dial = dials == Dials::Everything || endpoint.address.port().is_some();
            let is_told = can_dial && rules::includes(&hooks, life);
            let entry = health.filter(|_| is_told).map(|health| Entry {
                priority: registration.priority,
                locality: stands(events, life),
                address: endpoint.address.clone(),
                health,
                weight: life.weight().map(NonZeroU32::get),
            });
            let name = rules::cluster(&hooks, life, own(service, &endpoint.port));
            let place = clusters.entry(name).or_insert_with(|| (service.clone(), BTreeSet::new(), vec![]));
            place.1.insert(endpoint.port.clone());
            place.2.extend(entry);
        }
    }
    let mut told = Told::new();
    for (name, (service, ports, entries)) in clusters {
        let spec = spec(events, &service).cloned().unwrap_or_default();
        let declared = spec.ports.iter().map(|port| &port.name).find(|port| own(&service, port) == name);
        let port = declared.or(ports.first()).and_then(|port| spec.port(port));
        let protocol = port.map(|port| port.protocol).unwrap_or_default();
        let cluster = [vec![attributes(&spec, protocol)], text(&builders::cluster(&name))].concat();
        told.insert((TypeUrl::Cluster, name.clone()), cluster);
        if protocol != Protocol::Tcp {
            told.insert((TypeUrl::Listener, name.clone()), text(&builders::api_listener(&name, &name)));
            told.insert((TypeUrl::RouteConfiguration, name.clone()), text(&builders::route(&name, &name)));
        }
        told.insert((TypeUrl::ClusterLoadAssignment, name), lines(entries));
    }
    for (key, message) in applied(events) {
        told.insert(
            (key.kind.into(), key.name.clone()),
            said(key.kind.into(), &key.name, message.as_slice()),
        );
    }
    told
}

/// A message as a line to compare.
fn text(message: &impl Message) -> Vec<String> {
    vec![format!("{:?}", message.encode_to_vec())]
}

/// What a message says, which must give itself the name of its resource.
#[track_caller]
fn said(type_url: TypeUrl, name: &str, message: &[u8]) -> Vec<String> {
    let whole = "the message that its type says";
    let (own_name, said) = match type_url {
        TypeUrl::Cluster => {
            let cluster = pb::Cluster::decode(message).expect(whole);
            let attributes = attributes_of(&cluster);
            (cluster.name.clone(), [vec![attributes], text(&without_attributes(cluster))].concat())
        }
        TypeUrl::ClusterLoadAssignment => {
            let assignment = ClusterLoadAssignment::decode(message).expect(whole);
            (assignment.cluster_name.clone(), lines_of(&assignment))
        }
        TypeUrl::LbEndpoint => unreachable!("collections are looked at in collections.rs"),
        TypeUrl::Listener => {
            let listener = Listener::decode(message).expect(whole);
            (listener.name.clone(), text(&listener))
        }
        TypeUrl::RouteConfiguration => {
            let route = RouteConfiguration::decode(message).expect(whole);
            (route.name.clone(), text(&route))
        }
    };
    assert_eq!(own_name, name);
    said
}

fn without_attributes(mut cluster: pb::Cluster) -> pb::Cluster {
    cluster.lb_policy = LbPolicyPb::default().into();
    cluster.connect_timeout = None;
    cluster.common_lb_config = None;
    cluster.typed_extension_protocol_options.clear();
    cluster
}

/// How many hooks give no answer.
pub fn failures(events: &[Envelope]) -> usize {
    let of_life = |life: &Life<'_>| {
        let hooks = rules::hooks(events, &life.key.service);
        life.registration.endpoints.len() * rules::failures(&hooks, life, &stands(events, life))
    };
    living(events).iter().map(of_life).sum()
}

/// Where a worker stands.
fn stands(events: &[Envelope], life: &Life<'_>) -> Locality {
    life.registration.locality.clone().unwrap_or_else(|| locality(events, &life.key.host))
}

fn attributes(spec: &ServiceSpec, protocol: Protocol) -> String {
    let policy = &spec.cluster;
    let mut said = Vec::new();
    match policy.lb {
        LbPolicy::RoundRobin => {}
        LbPolicy::LeastRequest => said.push("LEAST_REQUEST".to_owned()),
        LbPolicy::Random => said.push("RANDOM".to_owned()),
        LbPolicy::RingHash => said.push("RING_HASH".to_owned()),
    }
    said.extend(policy.connect_timeout_ms.map(|ms| format!("connects within {ms} ms")));
    said.extend(policy.panic_threshold.map(|percent| format!("panics below {percent} %")));
    if policy.locality_weighting == LocalityWeighting::On {
        said.push("weighs localities".to_owned());
    }
    if protocol == Protocol::Http2 {
        said.push("HTTP/2".to_owned());
    }
    said.join(", ")
}

/// The same of a cluster as it is sent.
fn attributes_of(cluster: &pb::Cluster) -> String {
    let mut said = Vec::new();
    if cluster.lb_policy() != LbPolicyPb::RoundRobin {
        said.push(cluster.lb_policy().as_str_name().to_owned());
    }
    let timeout = cluster.connect_timeout.as_ref();
    said.extend(timeout.map(|time| {
        format!("connects within {} ms", time.seconds * 1000 + i64::from(time.nanos) / 1_000_000)
    }));
    let common = cluster.common_lb_config.clone().unwrap_or_default();
    said.extend(common.healthy_panic_threshold.map(|percent| format!("panics below {} %", percent.value)));
    if let Some(LocalityConfigSpecifier::LocalityWeightedLbConfig(_)) = common.locality_config_specifier {
        said.push("weighs localities".to_owned());
    }
    if !cluster.typed_extension_protocol_options.is_empty() {
        said.push("HTTP/2".to_owned());
    }
    said.join(", ")
}

fn lines(mut entries: Vec<Entry>) -> Vec<String> {
    entries.sort_by_key(|entry| (entry.priority, entry.locality.clone(), entry.address.clone()));
    let mut priorities: Vec<u32> = entries.iter().map(|entry| entry.priority).collect();
    priorities.dedup();
    let line = |entry: &Entry| {
        let rank = priorities.iter().position(|priority| *priority == entry.priority).unwrap();
        let beside = |other: &&Entry| other.priority == entry.priority && other.locality == entry.locality;
        let healthy = entries.iter().filter(beside).filter(|other| other.health == Health::Healthy);
        let share: u32 = healthy.map(|other| other.weight.unwrap_or(1)).sum();
        let health = match entry.health {
            Health::Healthy => "HEALTHY",
            Health::Degraded => "DEGRADED",
            Health::Unhealthy => "UNHEALTHY",
            Health::Draining => "DRAINING",
        };
        let zone = &entry.locality.zone;
        format!("P{rank} {zone}({}) {} {health} {:?}", share.max(1), entry.address, entry.weight)
    };
    entries.iter().map(line).collect()
}

/// What clients that dial so are told by these resources, to compare with [`told`].
///
/// # Panics
///
/// When a resource is no message of its type, or gives itself another name.
#[track_caller]
pub fn told_by(resources: &Arc<Resources>, dials: Dials) -> Told {
    let resources = resources.dialled(dials);
    let mut told = Told::new();
    for type_url in ResourceKind::ALL.map(TypeUrl::from) {
        for resource in resources.of(type_url).iter() {
            let name = resource.name.as_str();
            told.insert((type_url, name.to_owned()), said(type_url, name, &resource.message()));
        }
    }
    told
}

fn lines_of(assignment: &ClusterLoadAssignment) -> Vec<String> {
    let mut lines = Vec::new();
    for group in &assignment.endpoints {
        let zone = group.locality.as_ref().map_or("", |locality| locality.zone.as_str());
        let share = group.load_balancing_weight.map_or(0, |weight| weight.value);
        for endpoint in &group.lb_endpoints {
            let weight = endpoint.load_balancing_weight.map(|weight| weight.value);
            let health = endpoint.health_status().as_str_name();
            lines.push(format!(
                "P{} {zone}({share}) {} {health} {weight:?}",
                group.priority,
                place(endpoint)
            ));
        }
    }
    lines
}

fn place(endpoint: &LbEndpoint) -> String {
    let Some(HostIdentifier::Endpoint(endpoint)) = &endpoint.host_identifier else { panic!("no endpoint") };
    let socket = match endpoint.address.as_ref().and_then(|a| a.address.as_ref()) {
        Some(Address::SocketAddress(socket)) => socket,
        Some(Address::Pipe(pipe)) => return format!("unix:{}", pipe.path),
        _ => panic!("no address that Envoy can dial"),
    };
    let Some(PortSpecifier::PortValue(port)) = socket.port_specifier else { panic!("no port") };
    let address: IpAddr = socket.address.parse().expect("an IP address");
    SocketAddr::new(address, port.try_into().expect("a port")).to_string()
}
