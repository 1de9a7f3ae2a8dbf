//! Versions, sizes and counts that no client can push beyond (xds-rules 1, 2, 3, 19, 23, 33).

use std::sync::Arc;
use std::time::Duration;

use foldplane::events::Offset;
use foldplane::projection::resources::{Resource, ResourceName, Resources, TypeUrl, builders};
use foldplane::xds::protocol::{
    Edit, Machine, NAME_BYTES_MAX, Names, RESPONSE_BYTES_MAX, Request, Response, Served, StreamId,
    UNKNOWN_NAMES_MAX, Variant,
};

const NOW: Duration = Duration::from_secs(100);

fn ask(type_url: TypeUrl, variant: Variant, names: Vec<String>) -> Request {
    let names = match variant {
        Variant::Sotw => Names::Whole(names),
        Variant::Delta => Names::Edit(Edit { subscribe: names, ..Edit::default() }),
    };
    Request { type_url: type_url.as_str().into(), names, ..Request::default() }
}

/// Everything that is sent to a client that accepts all of it.
fn converse(variant: Variant, resources: &Arc<Resources>, request: &Request) -> Vec<Arc<Response>> {
    let mut machine = Machine::new(StreamId(7), variant, Served::All, resources);
    machine.on_request(request, resources, NOW).unwrap();
    let mut responses = Vec::new();
    while let Some(response) = machine.next(resources, NOW) {
        let names = match (&request.names, variant) {
            (names, Variant::Sotw) => names.clone(),
            (_, Variant::Delta) => Names::Edit(Edit::default()),
        };
        let nonce = response.nonce.clone();
        machine.on_request(&Request { nonce, names, ..request.clone() }, resources, NOW).unwrap();
        responses.push(response);
    }
    responses
}

fn large(count: usize, bytes: usize) -> Arc<Resources> {
    let mut next = Resources::default().builder(Offset::new(1));
    for number in 0..count {
        let name = ResourceName::new(&format!("web-{number}"));
        for type_url in [TypeUrl::Cluster, TypeUrl::ClusterLoadAssignment] {
            next.of(type_url).insert(Resource::new(type_url, name.clone(), Offset::new(1), &vec![0; bytes]));
        }
    }
    Arc::new(next.build())
}

#[test]
fn rule_23_responses_are_split_below_four_mebibytes() {
    // F43: grpc/grpc-go#5790, mosn/mosn#1384, envoyproxy/envoy#36169, cncf/xds#99
    let resources = large(2_000, 5_000);
    let names: Vec<_> = (0..2_000).map(|number| format!("web-{number}")).collect();
    for (variant, type_url, names) in [
        (Variant::Delta, TypeUrl::Cluster, Vec::new()),
        (Variant::Delta, TypeUrl::ClusterLoadAssignment, names.clone()),
        (Variant::Sotw, TypeUrl::ClusterLoadAssignment, names),
    ] {
        let responses = converse(variant, &resources, &ask(type_url, variant, names));
        assert!(responses.iter().all(|response| response.content_bytes() <= RESPONSE_BYTES_MAX));
        assert_eq!(responses.len(), 3, "{variant:?} {type_url}");
        let sent: usize = responses.iter().map(|response| response.resources.len()).sum();
        assert_eq!(sent, 2_000);
    }
}

#[test]
fn rule_23_what_cannot_be_split_is_sent() {
    let resources = large(2, 5_000_000);
    let responses = converse(Variant::Delta, &resources, &ask(TypeUrl::Cluster, Variant::Delta, Vec::new()));
    assert_eq!(responses.iter().map(|response| response.resources.len()).collect::<Vec<_>>(), [1, 1]);
    let whole = converse(Variant::Sotw, &resources, &ask(TypeUrl::Cluster, Variant::Sotw, Vec::new()));
    assert_eq!(whole.len(), 1);
    assert!(whole[0].content_bytes() > RESPONSE_BYTES_MAX);
}

#[test]
fn rule_23_a_hundred_thousand_removed_names_are_split_too() {
    let resources = Arc::new(Resources::default());
    let names: Vec<_> = (0..100_000).map(|number| format!("{number:0>100}")).collect();
    let responses = converse(Variant::Delta, &resources, &ask(TypeUrl::Cluster, Variant::Delta, names));
    assert!(responses.iter().all(|response| response.content_bytes() <= RESPONSE_BYTES_MAX));
    assert_eq!(responses.iter().map(|response| response.removed.len()).sum::<usize>(), 100_000);
}

#[test]
fn rule_33_unknown_names_are_limited_and_never_block_known_ones() {
    let resources = large(1, 10);
    for variant in [Variant::Sotw, Variant::Delta] {
        let mut machine = Machine::new(StreamId(7), variant, Served::All, &resources);
        let mut names: Vec<_> = (0..UNKNOWN_NAMES_MAX + 5).map(|number| format!("none-{number}")).collect();
        names.push("x".repeat(NAME_BYTES_MAX + 1));
        names.push("web-0".into());
        machine.on_request(&ask(TypeUrl::Cluster, variant, names), &resources, NOW).unwrap();
        let first = machine.next(&resources, NOW).unwrap();
        assert_eq!(first.resources.len(), 1, "{variant:?}");
        let held = machine.status(TypeUrl::Cluster).unwrap().subscription;
        assert_eq!(held.names().len(), UNKNOWN_NAMES_MAX + 1, "{variant:?}");
    }
}

#[test]
fn rule_33_a_name_that_is_not_remembered_is_not_answered_in_a_loop() {
    let resources = Arc::new(Resources::default());
    let names = vec!["x".repeat(NAME_BYTES_MAX + 1), "web".into()];
    let request = ask(TypeUrl::ClusterLoadAssignment, Variant::Sotw, names);
    // After the answer is accepted once, a repeated one is a question; so the conversation must be one exchange.
    let mut machine = Machine::new(StreamId(7), Variant::Sotw, Served::All, &resources);
    machine.on_request(&request, &resources, NOW).unwrap();
    let response = machine.next(&resources, NOW).unwrap();
    let answer = Request { nonce: response.nonce.clone(), ..request };
    machine.on_request(&answer, &resources, NOW).unwrap();
    assert_eq!(machine.next(&resources, NOW), None);
}

#[test]
fn rule_1_2_a_version_is_short_and_names_one_content() {
    let mut first = Resources::default().builder(Offset::MAX);
    first.put("web", &builders::cluster("web"));
    let first = first.build();
    let version = first.of(TypeUrl::Cluster).version();
    assert!(version.to_string().len() <= 32);

    // The same bytes again: neither the resource nor the type has another version (F44: kumahq/kuma#17166).
    let mut second = first.builder(Offset::MAX);
    second.put("web", &builders::cluster("web"));
    assert_eq!(second.build().of(TypeUrl::Cluster).version(), version);

    // Another content at the same offset, as after a restored backup (F11: envoyproxy/envoy#20699).
    let mut other = Resources::default().builder(Offset::MAX);
    other.put("web", &builders::cluster("other"));
    assert_ne!(other.build().of(TypeUrl::Cluster).version(), version);
}

#[test]
fn rule_19_older_resources_are_ignored() {
    let (old, new) = (large(1, 10), {
        let mut next = Resources::default().builder(Offset::new(9));
        next.put("web", &builders::cluster("web"));
        Arc::new(next.build())
    });
    let mut machine = Machine::new(StreamId(7), Variant::Sotw, Served::All, &new);
    machine.on_request(&ask(TypeUrl::Cluster, Variant::Sotw, Vec::new()), &new, NOW).unwrap();
    machine.next(&new, NOW).unwrap();
    assert_eq!(machine.next(&old, NOW + Duration::from_secs(60)), None);
}

#[test]
fn rule_18_the_reason_is_cut() {
    let resources = large(1, 10);
    let mut machine = Machine::new(StreamId(7), Variant::Sotw, Served::All, &resources);
    let request = ask(TypeUrl::Cluster, Variant::Sotw, Vec::new());
    machine.on_request(&request, &resources, NOW).unwrap();
    let nonce = machine.next(&resources, NOW).unwrap().nonce.clone();
    let error = Some("é".repeat(1_000_000));
    machine.on_request(&Request { nonce, error, ..request }, &resources, NOW).unwrap();
    let rejection = machine.status(TypeUrl::Cluster).unwrap().rejection.unwrap();
    assert_eq!(rejection.message.len(), 2048);
}
