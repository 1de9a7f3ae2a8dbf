//! Whatever happened, clients are told nothing that they would refuse (xds-rules 25 to 28).

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use envoy_types::pb::envoy::config::cluster::v3::Cluster;
use envoy_types::pb::envoy::config::core::v3::HealthStatus;
use envoy_types::pb::envoy::config::core::v3::address::Address;
use envoy_types::pb::envoy::config::core::v3::socket_address::PortSpecifier;
use envoy_types::pb::envoy::config::endpoint::v3::lb_endpoint::HostIdentifier;
use envoy_types::pb::envoy::config::endpoint::v3::{ClusterLoadAssignment, LbEndpoint};
use envoy_types::pb::google::protobuf::Any;
use foldplane::events::event::{
    DegradedAs, Endpoint, EndpointAddress, Lease, Locality, Readiness, Registration, RemovalCause,
};
use foldplane::events::{
    Actor, Envelope, Event, Generation, HostName, Offset, PortName, ServiceName, SessionId, Timestamp,
    WorkerId, WorkerKey, WorkerRef,
};
use foldplane::projection::Snapshot;
use foldplane::projection::resources::{Dials, Resource, TypeUrl};
use foldplane::testing::{play, steps};
use proptest::prelude::*;
use prost::Message;

const NAME_BYTES_MAX: usize = 253;

fn decode<M: Message + Default>(resource: &Resource) -> M {
    let any = Any::decode(resource.any().as_ref()).unwrap();
    M::decode(any.value.as_slice()).unwrap()
}

/// As text, where a client that dials so can connect to it.
fn address(endpoint: &LbEndpoint, dials: Dials) -> String {
    let Some(HostIdentifier::Endpoint(inner)) = &endpoint.host_identifier else { panic!("no endpoint") };
    let socket = match inner.address.as_ref().and_then(|a| a.address.as_ref()) {
        Some(Address::SocketAddress(socket)) => socket,
        Some(Address::Pipe(pipe)) => {
            assert_eq!(dials, Dials::Everything, "gRPC refuses the whole assignment");
            assert!(pipe.path.starts_with('/') && pipe.path.len() <= 107, "{}", pipe.path);
            return pipe.path.clone();
        }
        other => panic!("{other:?}"),
    };
    let Some(PortSpecifier::PortValue(port)) = socket.port_specifier else { panic!("no port") };
    let ip: IpAddr = socket.address.parse().expect("an IP literal without brackets");
    assert!(port > 0);
    SocketAddr::new(ip, u16::try_from(port).unwrap()).to_string()
}

/// What Envoy or gRPC would refuse, or take and then ignore.
fn check(snapshot: &Snapshot) {
    for dials in [Dials::Everything, Dials::IpOnly] {
        check_for(snapshot, dials);
    }
}

fn check_for(snapshot: &Snapshot, dials: Dials) {
    let resources = snapshot.resources().dialled(dials);
    for type_url in TypeUrl::ALL {
        for resource in resources.of(type_url).iter() {
            let name = resource.name.as_str();
            assert!(!name.is_empty() && name.len() <= NAME_BYTES_MAX && name != "*");
            assert!(!name.chars().any(char::is_control), "{name:?}");
        }
    }
    for resource in resources.of(TypeUrl::Cluster).iter() {
        let cluster: Cluster = decode(resource);
        // xds-rules 28. An operator's own may hold its endpoints itself.
        match cluster.eds_cluster_config {
            Some(eds) => assert_eq!(eds.service_name, resource.name.as_str()),
            None => assert!(cluster.load_assignment.is_some()),
        }
        assert!(cluster.ignore_health_on_host_removal);
    }
    for resource in resources.of(TypeUrl::ClusterLoadAssignment).iter() {
        let name = resource.name.as_str();
        // One that an operator applied need not be of a cluster.
        let cluster = snapshot.state().clusters().get(name);
        let degraded = cluster.map(|cluster| cluster.policy.degraded).unwrap_or_default();
        check_assignment(&decode(resource), name, degraded, dials);
    }
}

fn check_assignment(assignment: &ClusterLoadAssignment, name: &str, degraded: DegradedAs, dials: Dials) {
    assert_eq!(assignment.cluster_name, name);
    let (mut localities, mut addresses) = (BTreeMap::<u32, BTreeSet<String>>::new(), BTreeSet::new());
    for group in &assignment.endpoints {
        // xds-rules 26
        let locality = format!("{:?}", group.locality.as_ref().expect("a locality"));
        assert!(localities.entry(group.priority).or_default().insert(locality), "a locality comes twice");
        assert!(group.load_balancing_weight.is_some_and(|weight| weight.value >= 1));
        for endpoint in &group.lb_endpoints {
            let address = address(endpoint, dials);
            assert!(addresses.insert(address.clone()), "{address} comes twice");
            assert!(endpoint.load_balancing_weight.is_none_or(|weight| weight.value >= 1));
            // xds-rules 27: unless the policy says so.
            let said = degraded == DegradedAs::Degraded;
            assert!(said || endpoint.health_status() != HealthStatus::Degraded);
        }
    }
    let priorities: Vec<u32> = localities.into_keys().collect();
    let contiguous: Vec<u32> = (0..).take(priorities.len()).collect();
    assert_eq!(priorities, contiguous, "{name}: a gap between priorities");
}

proptest! {
    #[test]
    fn rule_25_26_27_28_nothing_is_published_that_a_client_would_refuse(steps in steps(1..60)) {
        // F18: grpc/grpc-go#5710; F19: grpc/grpc-go#5560; F20: envoyproxy/envoy#8088; F21: envoyproxy/gateway#2832
        let mut snapshot = Snapshot::default();
        for envelope in play(&steps) {
            snapshot = snapshot.fold([&envelope]).0;
            check(&snapshot);
        }
    }
}

fn key(id: &str) -> WorkerKey {
    WorkerKey {
        service: ServiceName::new("web").unwrap(),
        host: HostName::new("h1").unwrap(),
        id: WorkerId::new(id).unwrap(),
    }
}

fn registration(address: &str) -> Registration {
    let address = EndpointAddress::Ip(address.parse().unwrap());
    Registration {
        process: None,
        endpoints: vec![Endpoint { port: PortName::new("http").unwrap(), address }],
        readiness: Readiness::Reported,
        weight: None,
        priority: 0,
        locality: None,
        metadata: BTreeMap::new(),
        session: SessionId::new("s").unwrap(),
        lease: Lease::Session { disconnect_grace_ms: 0 },
    }
}

fn next(snapshot: &Snapshot, event: Event) -> Snapshot {
    let offset = snapshot.offset().next();
    let recorded_at = Timestamp::from_millis(1_767_225_600_000);
    let envelope = Envelope { offset, recorded_at, actor: Actor::System, correlation: None, event };
    snapshot.fold([&envelope]).0
}

/// The endpoints of the service, as `address HEALTH`.
fn told(snapshot: &Snapshot) -> Vec<String> {
    let set = snapshot.resources().of(TypeUrl::ClusterLoadAssignment);
    let assignment: ClusterLoadAssignment = set.get("web").map(|found| decode(found)).unwrap_or_default();
    let groups = assignment.endpoints.iter().flat_map(|group| &group.lb_endpoints);
    groups
        .map(|endpoint| {
            format!("{} {}", address(endpoint, Dials::Everything), endpoint.health_status().as_str_name())
        })
        .collect()
}

/// A worker that is ready.
fn ready() -> (Snapshot, WorkerRef) {
    let worker = WorkerRef { key: key("a"), generation: Generation::at(Offset::new(1)) };
    let registered =
        Event::WorkerRegistered { worker: key("a"), registration: registration("192.0.2.1:9001") };
    let snapshot = next(&Snapshot::default(), registered);
    assert_eq!(told(&snapshot), Vec::<String>::new(), "not before it is ready");
    (next(&snapshot, Event::WorkerReady { worker: worker.clone() }), worker)
}

#[test]
fn an_endpoint_drains_before_it_goes() {
    // F22: envoyproxy/envoy#6714, #11527, envoyproxy/gateway#4564, kgateway-dev/kgateway#8215
    let (healthy, worker) = ready();
    assert_eq!(told(&healthy), ["192.0.2.1:9001 HEALTHY"]);
    let drains = Event::WorkerDraining { worker: worker.clone(), reason: "deploy".into(), drain_ms: 5_000 };
    let draining = next(&healthy, drains);
    assert_eq!(told(&draining), ["192.0.2.1:9001 DRAINING"]);
    let gone = next(&draining, Event::WorkerRemoved { worker, cause: RemovalCause::Drained });
    assert_eq!(told(&gone), Vec::<String>::new());
    check(&gone);
}

#[test]
fn a_change_of_any_field_that_is_served_is_a_new_version_and_no_change_is_none() {
    // F23: deckhouse/deckhouse#22686
    let (start, worker) = ready();
    let version = |snapshot: &Snapshot| {
        snapshot.resources().of(TypeUrl::ClusterLoadAssignment).get("web").unwrap().version
    };
    let again = |edit: fn(&mut Registration)| {
        let mut registration = registration("192.0.2.1:9001");
        registration.readiness = Readiness::Assumed;
        edit(&mut registration);
        let replaced =
            next(&start, Event::WorkerRemoved { worker: worker.clone(), cause: RemovalCause::Replaced });
        next(&replaced, Event::WorkerRegistered { worker: key("a"), registration })
    };
    let zone = |registration: &mut Registration| {
        registration.locality = Some(Locality { zone: "b".into(), ..Locality::default() });
    };
    let port = |registration: &mut Registration| {
        registration.endpoints[0].address = EndpointAddress::Ip("192.0.2.1:9002".parse().unwrap());
    };
    let changed = [
        ("health", next(&start, Event::WorkerUnready { worker: worker.clone(), reason: "warm".into() })),
        (
            "weight",
            next(&start, Event::WorkerReweighted { worker: worker.clone(), weight: 7.try_into().ok() }),
        ),
        ("zone", again(zone)),
        ("port", again(port)),
        ("priority and weight", again(|registration| registration.weight = 3.try_into().ok())),
    ];
    for (field, snapshot) in &changed {
        assert_ne!(version(snapshot).digest, version(&start).digest, "{field}");
        assert_eq!(version(snapshot).offset, snapshot.offset(), "{field}");
    }
    let same = next(&start, Event::WorkerReady { worker: worker.clone() });
    assert_eq!(version(&same), version(&start));
}
