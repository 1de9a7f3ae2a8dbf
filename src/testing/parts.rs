//! What events and wishes are made of.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::num::{NonZeroU16, NonZeroU32};

use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::names::port;
use crate::events::PortName;
use crate::events::event::{
    ClusterPolicy, DegradedAs, Delivery, DisconnectCause, ExitStatus, HealthSource, HostReport, LbPolicy,
    Lease, Locality, LocalityWeighting, Policy, PortRange, PortSpec, Protocol, Readiness, RemovalCause,
    ServiceSpec, UnreadyAs, UpdateRejection, Verdict,
};
use crate::events::view::{NodeSelector, NodeView};
use crate::projection::resources::TypeUrl;

pub(super) fn reason() -> impl Strategy<Value = String> {
    select(&["full", "no database"][..]).prop_map(str::to_owned)
}

pub(super) fn health_source() -> impl Strategy<Value = HealthSource> {
    prop_oneof![Just(HealthSource::Worker), Just(HealthSource::Memory), port().prop_map(HealthSource::Custom),]
}

pub(super) fn verdict() -> impl Strategy<Value = Verdict> {
    select(&[Verdict::Healthy, Verdict::Degraded, Verdict::Unhealthy][..])
}

/// One of the few ports that hosts lend.
pub(super) fn busy_port() -> impl Strategy<Value = NonZeroU16> {
    (20_000..20_004_u16).prop_filter_map("never zero", NonZeroU16::new)
}

pub(super) fn disconnect_cause() -> impl Strategy<Value = DisconnectCause> {
    select(&[DisconnectCause::Closed, DisconnectCause::Silent][..])
}

pub(super) fn removal_cause() -> impl Strategy<Value = RemovalCause> {
    select(vec![
        RemovalCause::Deregistered,
        RemovalCause::Exited(ExitStatus::Code(1)),
        RemovalCause::Exited(ExitStatus::Signal(9)),
        RemovalCause::Drained,
        RemovalCause::Operator,
    ])
}

pub(super) fn rejection() -> impl Strategy<Value = UpdateRejection> {
    (select(&["envoy-1", "envoy-2"][..]), select(&["1-a", "2-b"][..])).prop_map(|(node, version)| {
        UpdateRejection {
            node: node.to_owned(),
            type_url: TypeUrl::Cluster.as_str().to_owned(),
            names: vec!["web".to_owned()],
            version: version.to_owned(),
            message: "no such filter".to_owned(),
        }
    })
}

/// Views of few patterns over few nodes and services.
pub(super) fn node_view() -> impl Strategy<Value = NodeView> {
    let globs = |texts: &'static [&'static str]| {
        subsequence(texts, 0..=2)
            .prop_map(|texts| texts.into_iter().map(|text| text.parse().expect("a valid pattern")).collect())
    };
    let ids = subsequence(&["n1", "n?", "*"][..], 1..=2)
        .prop_map(|texts| texts.into_iter().map(|text| text.parse().expect("a valid pattern")).collect());
    (ids, globs(&["edge", "e*"]), globs(&["web", "pay", "p*", "web:admin"])).prop_map(
        |(ids, clusters, services)| NodeView {
            nodes: NodeSelector { ids, clusters, metadata: BTreeMap::new() },
            services,
        },
    )
}

pub(super) fn locality() -> impl Strategy<Value = Locality> {
    select(&["", "zone-a", "zone-b"][..])
        .prop_map(|zone| Locality { zone: zone.to_owned(), ..Locality::default() })
}

/// Ranges of a few ports, so that they run out; addresses are each host's own, or shared by all.
pub(super) fn report() -> impl Strategy<Value = HostReport> {
    let range = (20_000..20_003_u16, 0..3_u16);
    (1..5_u8, range, locality()).prop_map(|(last, (first, more), locality)| HostReport {
        addresses: vec![IpAddr::V4(Ipv4Addr::new(192, 0, 2, last))],
        port_range: PortRange { first, last: first + more },
        locality,
    })
}

pub(super) fn readiness() -> impl Strategy<Value = Readiness> {
    select(&[Readiness::Assumed, Readiness::Reported][..])
}

pub(super) fn lease() -> impl Strategy<Value = Lease> {
    let session = |disconnect_grace_ms| Lease::Session { disconnect_grace_ms };
    let ttl = |ttl_ms| Lease::Ttl { ttl_ms };
    select(vec![session(0), session(5_000), session(0), session(5_000), ttl(1_000), ttl(20_000)])
}

/// Declarations of few ports, whose numbers are those that workers ask for.
pub(super) fn spec() -> impl Strategy<Value = ServiceSpec> {
    let protocol = select(&[Protocol::Http1, Protocol::Http2, Protocol::Tcp][..]);
    let names = subsequence(vec!["http", "admin", "grpc"], 0..=3).prop_shuffle();
    let places = vec((weighted(0.2, busy_port()), protocol), 3);
    let ports = (names, places).prop_map(|(names, places)| {
        let port = |(name, (number, protocol)): (&str, (Option<NonZeroU16>, Protocol))| PortSpec {
            name: PortName::new(name).expect("a valid name"),
            number,
            protocol,
        };
        names.into_iter().zip(places).map(port).collect()
    });
    (ports, policy(), weighted(0.3, 0..10_000_u32)).prop_map(|(ports, cluster, drain_ms)| ServiceSpec {
        ports,
        cluster,
        drain_ms,
    })
}

fn policy() -> impl Strategy<Value = ClusterPolicy> {
    let lb = select(&[LbPolicy::RoundRobin, LbPolicy::LeastRequest][..]);
    let numbers = (weighted(0.2, 1..10_000_u32), weighted(0.2, 0..=100_u8));
    let weighting = select(&[LocalityWeighting::Off, LocalityWeighting::On][..]);
    let degraded = select(&[DegradedAs::Healthy, DegradedAs::Degraded][..]);
    let unready = select(&[UnreadyAs::Unhealthy, UnreadyAs::Absent][..]);
    let delivery = select(&[Delivery::Eds, Delivery::Leds][..]);
    (lb, numbers, weighting, degraded, unready, delivery).prop_map(
        |(lb, (connect_timeout_ms, panic_threshold), locality_weighting, degraded, unready, delivery)| {
            ClusterPolicy {
                lb,
                connect_timeout_ms: connect_timeout_ms.and_then(NonZeroU32::new),
                panic_threshold,
                locality_weighting,
                degraded,
                unready,
                delivery,
            }
        },
    )
}

/// Policies of few rules, some of which fail for some workers; the model of the tests knows what each says.
pub(super) fn rules() -> impl Strategy<Value = Policy> {
    let include = select(&["worker.host != 'h2'", "worker.metadata.track == 'x'", "(("][..]);
    let cluster = select(
        &["worker.id == '1' ? default + ':canary' : default", "worker.service", "'pay'", "default + '::'"][..],
    );
    let health = select(
        &[
            "worker.verdict == 'degraded' ? 'UNHEALTHY' : default",
            "worker.endpoint.port == 'admin' ? 'ABSENT' : default",
            "worker.locality.zone == '' ? 1 : default",
        ][..],
    );
    (weighted(0.3, include), weighted(0.5, cluster), weighted(0.3, health)).prop_map(
        |(include, cluster, health)| Policy {
            include: include.map(str::to_owned),
            cluster: cluster.map(str::to_owned),
            health: health.map(str::to_owned),
        },
    )
}
