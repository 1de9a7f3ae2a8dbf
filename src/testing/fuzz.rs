//! What fuzzers feed with bytes. Each returns on any input, and fails where something does not hold.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use envoy_types::pb::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use prost::Message;

use crate::events::codec::{BlockView, SCHEMA_NEWEST, SCHEMA_OLDEST, decode_body, encode_body};
use crate::events::{Envelope, Offset};
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
