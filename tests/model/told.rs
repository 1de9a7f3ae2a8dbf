//! What clients are told, as lines to compare: by the model, and by the real resources.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;

use envoy_types::pb::envoy::config::cluster::v3 as pb;
use envoy_types::pb::envoy::config::cluster::v3::cluster::LbPolicy as LbPolicyPb;
use envoy_types::pb::envoy::config::cluster::v3::cluster::common_lb_config::LocalityConfigSpecifier;
use envoy_types::pb::envoy::config::core::v3::address::Address;
use envoy_types::pb::envoy::config::core::v3::socket_address::PortSpecifier;
use envoy_types::pb::envoy::config::endpoint::v3::lb_endpoint::HostIdentifier;
use envoy_types::pb::envoy::config::endpoint::v3::{ClusterLoadAssignment, LbEndpoint};
use envoy_types::pb::google::protobuf::Any;
use foldplane::events::event::{LbPolicy, Locality, LocalityWeighting, Protocol, ServiceSpec};
use foldplane::events::{Envelope, PortName, ServiceName};
use foldplane::projection::resources::{Resource, Resources, TypeUrl};
use prost::Message;

use crate::dull::{Health, Life, addresses, cluster, declared, lives, living, locality, spec};
use crate::rules;

/// Every cluster.
pub(crate) type Told = BTreeMap<String, Cluster>;

/// What clients are told of one cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cluster {
    /// How they are to use it, as far as it is not left to them.
    pub(crate) attributes: String,
    /// Whether proxyless gRPC is led to it.
    pub(crate) routed: bool,
    /// Its endpoints, a line each, in the order in which they are sent.
    pub(crate) endpoints: Vec<String>,
}

struct Entry {
    priority: u32,
    locality: Locality,
    address: SocketAddr,
    health: Health,
    weight: Option<u32>,
}

/// What clients must be told after these events.
pub(crate) fn by_the_model(events: &[Envelope]) -> Told {
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
        for (endpoint, address) in registration.endpoints.iter().zip(addresses(registration)) {
            let health = rules::health(&hooks, life, endpoint, life.health(&policy));
            let entry = health.filter(|_| rules::includes(&hooks, life)).map(|health| Entry {
                priority: registration.priority,
                locality: stands(events, life),
                address,
                health,
                weight: life.weight().map(NonZeroU32::get),
            });
            let name = rules::cluster(&hooks, life, own(service, &endpoint.port));
            let place = clusters.entry(name).or_insert_with(|| (service.clone(), BTreeSet::new(), vec![]));
            place.1.insert(endpoint.port.clone());
            place.2.extend(entry);
        }
    }
    let told =
        |(name, (service, ports, entries)): (String, (ServiceName, BTreeSet<PortName>, Vec<Entry>))| {
            let spec = spec(events, &service).cloned().unwrap_or_default();
            let declared = spec.ports.iter().map(|port| &port.name).find(|port| own(&service, port) == name);
            let port = declared.or(ports.first()).and_then(|port| spec.port(port));
            let protocol = port.map(|port| port.protocol).unwrap_or_default();
            let routed = protocol != Protocol::Tcp;
            (name, Cluster { attributes: attributes(&spec, protocol), routed, endpoints: lines(entries) })
        };
    clusters.into_iter().map(told).collect()
}

/// How many hooks give no answer.
pub(crate) fn failures(events: &[Envelope]) -> usize {
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
    entries.sort_by_key(|entry| (entry.priority, entry.locality.clone(), entry.address));
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

/// What clients are told by these resources. Fails where they do not fit together.
#[track_caller]
pub(crate) fn by(resources: &Resources) -> Told {
    let clusters = resources.of(TypeUrl::Cluster);
    let assignments = resources.of(TypeUrl::ClusterLoadAssignment);
    assert_eq!(clusters.len(), assignments.len(), "each cluster has one assignment");
    clusters
        .iter()
        .map(|resource| {
            let cluster: pb::Cluster = message(resource);
            assert_eq!(cluster.name, resource.name.as_str());
            let assignment = assignments.get(&cluster.name).expect("each cluster has an assignment");
            let assignment: ClusterLoadAssignment = message(assignment);
            assert_eq!(assignment.cluster_name, cluster.name);
            let way = [TypeUrl::Listener, TypeUrl::RouteConfiguration]
                .map(|type_url| resources.of(type_url).get(&cluster.name).is_some());
            assert_eq!(way[0], way[1], "a listener and its route come together");
            let (attributes, endpoints) = (attributes_of(&cluster), lines_of(&assignment));
            (cluster.name, Cluster { attributes, routed: way[0], endpoints })
        })
        .collect()
}

fn message<M: Message + Default>(resource: &Resource) -> M {
    let any = Any::decode(resource.any().clone()).expect("an Any");
    M::decode(any.value.as_slice()).expect("the message that its type says")
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
    let Some(Address::SocketAddress(socket)) = endpoint.address.as_ref().and_then(|a| a.address.as_ref())
    else {
        panic!("no socket address")
    };
    let Some(PortSpecifier::PortValue(port)) = socket.port_specifier else { panic!("no port") };
    let address: IpAddr = socket.address.parse().expect("an IP address");
    SocketAddr::new(address, port.try_into().expect("a port")).to_string()
}
