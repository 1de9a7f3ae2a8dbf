//! What fuzzers feed with bytes. Each returns on any input, and fails where something does not hold.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use envoy_types::pb::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use prost::Message;

use super::World;
use crate::command::Command;
use crate::events::codec::{BlockView, SCHEMA_NEWEST, SCHEMA_OLDEST, decode_body, encode_body};
use crate::events::event::Policy;
use crate::events::{Envelope, Offset};
use crate::projection::hooks::{CompiledPolicy, Hook};
use crate::projection::resources::{Resources, TypeUrl};
use crate::projection::state::State;
use crate::projection::{Snapshot, evolve};
use crate::xds::protocol::{Edit, Machine, Names, Request, Served, StreamId, Variant};

/// How many messages of one input are looked at: more find nothing new, and make a fuzzer slow.
const MESSAGES_MAX: usize = 64;

/// A record of the log: whatever decodes is written and read back as the same, and nothing else happens.
///
/// # Panics
///
/// When an event changes on its way through the bytes.
pub fn decode_record(bytes: &[u8]) {
    if let Ok(block) = BlockView::parse(bytes) {
        block.events().flatten().take(MESSAGES_MAX).for_each(|envelope| check_round_trip(&envelope));
    }
    let Some((schema, body)) = bytes.split_first() else { return };
    if let Ok(envelope) = decode_body(Offset::new(1), u16::from(*schema), body) {
        check_round_trip(&envelope);
    }
}

/// The body of an event, as each version might have written it: whatever one of them did is an event of today.
///
/// # Panics
///
/// When an event changes on its way through the bytes.
pub fn upcast(bytes: &[u8]) {
    for schema in SCHEMA_OLDEST..=SCHEMA_NEWEST {
        if let Ok(envelope) = decode_body(Offset::new(1), schema, bytes) {
            check_round_trip(&envelope);
        }
    }
}

fn check_round_trip(envelope: &Envelope) {
    let Ok(body) = encode_body(envelope) else { return };
    let again = decode_body(envelope.offset, body.schema, &body.bytes);
    assert_eq!(again.as_ref(), Ok(envelope), "an event is not what was written");
}

/// The text of an expression, as each of the hooks: what is taken when it is set is what the fold asks; asked twice it says
/// the same; and whatever it says, the worker's endpoint is in a cluster of its own service or in none.
///
/// # Panics
///
/// When it is taken and yet no good, or says two things, or reaches another service.
pub fn cel_policy(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let world = one_worker();
    for hook in Hook::ALL {
        let expression = Some(text.to_owned());
        let policy = match hook {
            Hook::Include => Policy { include: expression, ..Policy::default() },
            Hook::Cluster => Policy { cluster: expression, ..Policy::default() },
            Hook::Health => Policy { health: expression, ..Policy::default() },
        };
        let set = Command::SetPolicy { service: None, policy: policy.clone() };
        let asked = [world.clone(), world.clone()].map(|mut world| (world.command(&set).is_ok(), world));
        let [(taken, once), (_, twice)] = asked;
        assert_eq!(taken, CompiledPolicy::check(&policy).is_ok(), "{hook} {text:?} is taken, or it is not");
        assert_eq!(once.snapshot.state(), twice.snapshot.state(), "{hook} {text:?} says two things");
        for (name, cluster) in once.snapshot.state().clusters() {
            let own = name.as_str() == "web" || name.as_str().starts_with("web:");
            assert!(own || cluster.members.is_empty(), "{hook} {text:?} reaches {name}");
        }
    }
}

/// A world with one worker that is published: labels, a locality and an opinion are there to be asked for.
fn one_worker() -> World {
    let registered = r#"{"offset":1,"recorded_at":1767225600000,"actor":"System","correlation":null,"event":
        {"WorkerRegistered":{"worker":{"service":"web","host":"h1","id":"a"},"registration":{"process":null,
        "endpoints":[{"port":"http","address":{"Ip":"192.0.2.1:9001"}}],"readiness":"Assumed","weight":null,"priority":0,
        "locality":{"region":"eu","zone":"zone-a","sub_zone":""},"metadata":{"track":"canary","version":"2"},
        "session":"s1","lease":{"Session":{"disconnect_grace_ms":0}}}}}}"#;
    let reported = r#"{"offset":2,"recorded_at":1767225600000,"actor":"System","correlation":null,"event":
        {"WorkerHealthReported":{"worker":{"key":{"service":"web","host":"h1","id":"a"},"generation":1},
        "source":"Memory","verdict":"Degraded","reason":"full"}}}"#;
    let mut world = World::default();
    for line in [registered, reported] {
        let envelope: Envelope = serde_json::from_str(line).expect("an event as it is printed");
        world.snapshot = world.snapshot.fold([&envelope]).0;
        world.log.push(envelope);
    }
    world
}

/// Lines of a printed log: whatever can be read can be folded, and renders to something.
///
/// # Panics
///
/// When the fold or the rendering does.
pub fn import_jsonl(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mut state = State::default();
    for envelope in text.lines().filter_map(|line| serde_json::from_str(line).ok()).take(MESSAGES_MAX) {
        evolve(&mut state, &envelope);
    }
    let _rendered = Snapshot::of(state);
}

/// A stream: the first byte chooses the variant, then messages follow, each after its length in two bytes.
///
/// # Panics
///
/// When a nonce is used twice, or the stream does not come to rest.
pub fn ads_stream(bytes: &[u8]) {
    let Some((choice, mut rest)) = bytes.split_first() else { return };
    let variant = if choice % 2 == 0 { Variant::Sotw } else { Variant::Delta };
    let resources = resources();
    let mut machine = Machine::new(StreamId(1), variant, Served::All, &resources);
    let mut nonces = BTreeSet::new();
    for step in 0..MESSAGES_MAX {
        let Some((message, after)) = split_message(rest) else { return };
        rest = after;
        let now = Duration::from_secs(step as u64);
        let Some(request) = request(variant, message) else { continue };
        if machine.on_request(&request, &resources, now).is_err() {
            return;
        }
        let mut left = 2 * request_size(&request) + MESSAGES_MAX;
        while let Some(response) = machine.next(&resources, now) {
            assert!(nonces.insert(response.nonce.clone()), "the nonce {} is used twice", response.nonce);
            left = left.checked_sub(1).expect("a stream comes to rest");
        }
    }
}

/// A few resources of each type.
fn resources() -> Arc<Resources> {
    let mut builder = Resources::default().builder(Offset::new(9));
    for type_url in TypeUrl::ALL {
        for name in ["pay", "web", "web:admin"] {
            let message =
                prost::bytes::Bytes::from([&[10, 3], name.get(..3).unwrap_or(name).as_bytes()].concat());
            let resource =
                crate::projection::resources::Resource::new(type_url, name.into(), Offset::new(9), &message);
            builder.of(type_url).insert(resource);
        }
    }
    Arc::new(builder.build())
}

fn split_message(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))
}

fn request(variant: Variant, bytes: &[u8]) -> Option<Request> {
    Some(match variant {
        Variant::Sotw => {
            let message = DiscoveryRequest::decode(bytes).ok()?;
            Request {
                type_url: message.type_url,
                nonce: message.response_nonce,
                error: message.error_detail.map(|status| status.message),
                names: Names::Whole(message.resource_names),
            }
        }
        Variant::Delta => {
            let message = DeltaDiscoveryRequest::decode(bytes).ok()?;
            Request {
                type_url: message.type_url,
                nonce: message.response_nonce,
                error: message.error_detail.map(|status| status.message),
                names: Names::Edit(Edit {
                    subscribe: message.resource_names_subscribe,
                    unsubscribe: message.resource_names_unsubscribe,
                    known: message.initial_resource_versions.into_iter().collect(),
                }),
            }
        }
    })
}

fn request_size(request: &Request) -> usize {
    match &request.names {
        Names::Whole(names) => names.len(),
        Names::Edit(edit) => edit.subscribe.len() + edit.unsubscribe.len() + edit.known.len(),
    }
}
