//! Each limit at its last number, and one beyond: what is allowed is taken, and what is refused says how much may be.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use envoy_types::pb::envoy::config::cluster::v3::Cluster;
use prost::Message;

use super::*;
use crate::command::{Applying, References, ResourceChange};
use crate::events::event::{ClusterPolicy, PortSpec, Protocol, ServiceSpec};
use crate::events::view::{NodeSelector, NodeView};
use crate::events::{ResourceKey, ResourceKind, ViewName};
use crate::projection::resources::builders;

/// The greatest that is allowed is taken, and one more is refused with these words.
#[track_caller]
fn limit(last: usize, wish: impl Fn(usize) -> Command, words: &str) {
    let taken = World::default().wish(&wish(last));
    assert!(taken.starts_with("@1 "), "{last}: {taken}");
    let refused = World::default().wish(&wish(last + 1));
    assert!(refused.starts_with("invalid_argument: ") && refused.contains(words), "{refused}");
}

fn plain() -> Registering {
    registering("web/a@h1", &[])
}

fn name(length: usize) -> String {
    "a".repeat(length)
}

#[test]
fn what_a_worker_may_ask_for() {
    let ports = |count: usize| {
        let names: Vec<String> = (0..count).map(|number| format!("p{number}")).collect();
        register("web/a@h1", &names.iter().map(String::as_str).collect::<Vec<_>>())
    };
    limit(64, ports, "65 ports are asked for, at most 64");
    let labels = |count: usize| {
        let metadata = (0..count).map(|number| (format!("k{number}"), String::new())).collect();
        Command::Register(Registering { metadata, ..plain() })
    };
    limit(64, labels, "65 labels are given, at most 64");
    let label = |length: usize| {
        let metadata = BTreeMap::from([("k".to_owned(), name(length))]);
        Command::Register(Registering { metadata, ..plain() })
    };
    limit(1024, label, "1024");
    let key = |length: usize| {
        let metadata = BTreeMap::from([(name(length), String::new())]);
        Command::Register(Registering { metadata, ..plain() })
    };
    limit(253, key, "253");
    let zone = |length: usize| {
        let locality = Some(Locality { zone: name(length), ..Locality::default() });
        Command::Register(Registering { locality, ..plain() })
    };
    limit(253, zone, "253");
    let ttl = |ttl_ms: usize| {
        let lease = Lease::Ttl { ttl_ms: ttl_ms.try_into().unwrap() };
        Command::Register(Registering { lease, ..plain() })
    };
    limit(86_400_000, ttl, "between 1000 and 86400000 ms");
    check(
        &World::default().wish(&ttl(999)),
        expect_test::expect![
            "invalid_argument: a time to live of 999 ms is not between 1000 and 86400000 ms"
        ],
    );
    assert!(World::default().wish(&ttl(1000)).starts_with("@1 "));
    // The name of its cluster is that of the service, a colon and that of the port.
    let cluster = |length: usize| {
        let service = name(length - 2);
        register(&format!("{service}/a@h1"), &["p"])
    };
    limit(253, cluster, "would have 254 bytes, at most 253");
}

#[test]
fn what_may_be_said_of_a_worker() {
    let mut world = World::default();
    world.wish(&register("web/a@h1", &["http"]));
    let worker = world.current("web/a@h1");
    let drain = |drain_ms| Command::Drain { worker: worker.clone(), reason: String::new(), drain_ms };
    check(
        &world.wish(&drain(Some(3_600_001))),
        expect_test::expect!["invalid_argument: a drain of 3600001 ms is longer than 3600000 ms"],
    );
    let says = |number: usize| Command::ReportHealth {
        worker: worker.clone(),
        source: HealthSource::Custom(PortName::new(&format!("s{number}")).unwrap()),
        verdict: Verdict::Unhealthy,
        reason: String::new(),
    };
    for number in 0..16 {
        assert!(world.wish(&says(number)).starts_with('@'), "source {number}");
    }
    check(
        &world.wish(&says(16)),
        expect_test::expect!["invalid_argument: web/a@h1 is watched by 16 sources already"],
    );
    assert!(world.wish(&drain(Some(3_600_000))).contains("for 3600000 ms"));
}

#[test]
fn what_a_host_and_a_service_may_be() {
    let addresses = |count: usize| {
        let addresses = (0..count).map(|last| format!("192.0.2.{last}").parse().unwrap()).collect();
        let (port_range, locality) = (PortRange::default(), Locality::default());
        let report = HostReport { addresses, port_range, locality };
        Command::ReportHost { host: HostName::new("h1").unwrap(), report }
    };
    limit(64, addresses, "1 to 64 addresses, not 65");
    assert!(World::default().wish(&addresses(0)).contains("1 to 64 addresses, not 0"));
    assert!(World::default().wish(&addresses(1)).starts_with("@1 "));
    let declare = |ports: Vec<PortSpec>, cluster| Command::DeclareService {
        service: ServiceName::new("web").unwrap(),
        spec: ServiceSpec { ports, cluster, ..ServiceSpec::default() },
    };
    let port = |number: usize| PortSpec {
        name: PortName::new(&format!("p{number}")).unwrap(),
        number: NonZeroU16::new((1000 + number).try_into().unwrap()),
        protocol: Protocol::default(),
    };
    let ports = |count: usize| declare((0..count).map(port).collect(), ClusterPolicy::default());
    limit(64, ports, "65 ports are declared, at most 64");
    let timeout = |ms: usize| {
        let connect_timeout_ms = NonZeroU32::new(ms.try_into().unwrap());
        declare(Vec::new(), ClusterPolicy { connect_timeout_ms, ..ClusterPolicy::default() })
    };
    limit(60_000, timeout, "60001 is more than 60000");
    let panic = |percent: usize| {
        let panic_threshold = Some(percent.try_into().unwrap());
        declare(Vec::new(), ClusterPolicy { panic_threshold, ..ClusterPolicy::default() })
    };
    limit(100, panic, "101 is not a percentage");
}

#[test]
fn what_a_view_may_be_and_how_many_there_may_be() {
    let globs = |count: usize| (0..count).map(|number| format!("n{number}").parse().unwrap()).collect();
    let set = |name: String, nodes: NodeSelector, services| Command::SetView {
        name: ViewName::new(&name).unwrap(),
        view: NodeView { nodes, services },
    };
    let ids =
        |count| set("v".to_owned(), NodeSelector { ids: globs(count), ..NodeSelector::default() }, vec![]);
    limit(256, ids, "ids has 257 patterns, at most 256");
    let of_one = || NodeSelector { ids: globs(1), ..NodeSelector::default() };
    limit(256, |count| set("v".to_owned(), of_one(), globs(count)), "services has 257 patterns");
    let mut world = World::default();
    for number in 0..1024 {
        assert!(world.wish(&set(format!("v{number}"), of_one(), vec![])).starts_with('@'), "view {number}");
    }
    check(
        &world.wish(&set("one-more".to_owned(), of_one(), vec![])),
        expect_test::expect!["invalid_argument: there are 1024 views already"],
    );
    check(&world.wish(&set("v7".to_owned(), of_one(), vec![])), expect_test::expect![""]);
}

/// A cluster of so many bytes.
fn applying(name: String, bytes: usize) -> Applying {
    let cluster = |alt_stat_name| Cluster { alt_stat_name, ..builders::cluster(&name) };
    let bare = cluster(String::new()).encoded_len();
    // The field's number, and its length in two bytes or three.
    let padding = bytes.saturating_sub(bare + if bytes < 16_384 { 4 } else { 5 });
    let message = cluster(self::name(padding)).encode_to_vec();
    Applying { key: ResourceKey { kind: ResourceKind::Cluster, name }, message: message.into() }
}

fn change(apply: Vec<Applying>) -> Command {
    Command::ChangeResources(ResourceChange {
        apply,
        references: References::Unchecked,
        ..ResourceChange::default()
    })
}

#[test]
fn what_may_be_applied() {
    let of_bytes = |bytes: usize| {
        let resource = applying("web".to_owned(), bytes);
        assert_eq!(resource.message.as_slice().len(), bytes);
        change(vec![resource])
    };
    limit(22 * 1024, of_bytes, "has 22529 bytes, at most 22528");
    let many = |count: usize| change((0..count).map(|number| applying(format!("c{number}"), 0)).collect());
    limit(256, many, "257 resources are given, at most 256");
    let mut world = World::default();
    for batch in 0..16 {
        let apply = (0..256).map(|number| applying(format!("c{batch}-{number}"), 0)).collect();
        assert!(world.wish(&change(apply)).starts_with('@'), "batch {batch}");
    }
    check(
        &world.wish(&change(vec![applying("one-more".to_owned(), 0)])),
        expect_test::expect!["invalid_argument: more than 4096 resources would be applied"],
    );
    let again = applying("c0-0".to_owned(), 100);
    assert!(world.wish(&change(vec![again])).starts_with('@'), "one that is there may change");
}
