//! Endpoints one by one are the same endpoints: whoever follows the collections that its assignments name ends with what
//! the whole assignments hold (xds-rules 35).

use std::collections::{BTreeMap, BTreeSet};

use envoy_types::pb::envoy::config::endpoint::v3::locality_lb_endpoints::LbConfig;
use envoy_types::pb::envoy::config::endpoint::v3::{ClusterLoadAssignment, LbEndpoint};
use envoy_types::pb::google::protobuf::Any;
use foldplane::events::Offset;
use foldplane::projection::Snapshot;
use foldplane::projection::resources::{Resource, Resources, TypeUrl, Version};
use foldplane::testing::{play, steps};
use proptest::prelude::*;
use prost::Message;

fn decode<M: Message + Default>(resource: &Resource) -> M {
    let any = Any::decode(resource.any().as_ref()).unwrap();
    M::decode(any.value.as_slice()).unwrap()
}

/// Priority, locality, address and health of every endpoint, as text.
type Told = BTreeSet<String>;

fn line(priority: u32, locality: &impl std::fmt::Debug, endpoint: &LbEndpoint) -> String {
    format!("P{priority} {locality:?} {:?} {:?}", endpoint.host_identifier, endpoint.health_status())
}

/// The endpoints of an assignment, those of its collections among them.
fn told(assignment: &ClusterLoadAssignment, resources: &Resources) -> Told {
    let mut told = Told::new();
    for group in &assignment.endpoints {
        let mut tell =
            |endpoint: &LbEndpoint| assert!(told.insert(line(group.priority, &group.locality, endpoint)));
        group.lb_endpoints.iter().for_each(&mut tell);
        if let Some(LbConfig::LedsClusterLocalityConfig(config)) = &group.lb_config {
            let name = config.leds_collection_name.as_str().into();
            let members = resources.of(TypeUrl::LbEndpoint).collection(&name);
            members.for_each(|member| tell(&decode(member)));
        }
    }
    told
}

fn versions(resources: &Resources) -> BTreeMap<(TypeUrl, String), Version> {
    let types = [TypeUrl::ClusterLoadAssignment, TypeUrl::LbEndpoint];
    let of = |type_url| {
        let set = resources.delta_of(type_url);
        let members = set.iter().map(move |found| ((type_url, found.name.to_string()), found.version));
        members.chain([((type_url, "*".to_owned()), set.version())])
    };
    types.into_iter().flat_map(of).collect()
}

#[track_caller]
fn check(snapshot: &Snapshot, known: &mut BTreeMap<(TypeUrl, String), Offset>) -> usize {
    let resources = snapshot.resources();
    let (whole, delta) =
        (resources.of(TypeUrl::ClusterLoadAssignment), resources.delta_of(TypeUrl::ClusterLoadAssignment));
    assert_eq!(whole.len(), delta.len());
    let mut endpoints = 0;
    for assignment in whole.iter() {
        let expected = told(&decode(assignment), resources);
        let collected: ClusterLoadAssignment = decode(delta.get(assignment.name.as_str()).unwrap());
        assert_eq!(told(&collected, resources), expected, "{}", assignment.name);
        let by_itself = collected.endpoints.iter().all(|group| group.lb_endpoints.is_empty());
        endpoints += if by_itself { expected.len() } else { 0 };
    }
    assert_eq!(
        resources.of(TypeUrl::LbEndpoint).len(),
        endpoints,
        "nothing is in a collection that nobody names"
    );
    let versions = versions(resources);
    assert_eq!(
        versions,
        self::versions(Snapshot::of(snapshot.state().clone()).resources()),
        "rendered from nothing"
    );
    for (key, version) in versions.into_iter().filter(|((_, name), _)| name == "*") {
        let before = known.insert(key.clone(), version.offset);
        assert!(before <= Some(version.offset), "{key:?} fell");
    }
    endpoints
}

proptest! {
    #[test]
    fn rule_35_collections_hold_what_whole_assignments_hold(steps in steps(1..60)) {
        let (mut snapshot, mut known) = (Snapshot::default(), BTreeMap::new());
        for envelope in play(&steps) {
            snapshot = snapshot.fold([&envelope]).0;
            check(&snapshot, &mut known);
        }
    }
}

#[test]
fn the_generator_leads_to_collections() {
    use proptest::strategy::{Strategy, ValueTree};
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let seen = (0..100).any(|_| {
        let steps = steps(40..60).new_tree(&mut runner).unwrap().current();
        let mut snapshot = Snapshot::default();
        play(&steps).iter().any(|envelope| {
            snapshot = snapshot.fold([envelope]).0;
            check(&snapshot, &mut BTreeMap::new()) > 0
        })
    });
    assert!(seen, "no run had an endpoint in a collection: the property proves nothing");
}
