//! No input can panic a stream, or make it speak without end (xds-rules 37).

use std::collections::BTreeMap;
use std::time::Duration;

use foldplane::projection::resources::TypeUrl;
use foldplane::xds::protocol::{Edit, Machine, Names, Request, Served, StreamId, Variant};
use proptest::prelude::*;
use proptest::sample::select;

use foldplane::testing::scenario::Stock;

/// More responses than this to one message, each of which is accepted, are a loop.
const RESPONSES_MAX: usize = 50;

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        select(&["a", "b", "*", "", "1.1", "1.2", "xdstp://x/y/*"]).prop_map(str::to_owned),
        ".{0,40}",
        Just("x".repeat(100_000)),
    ]
}

fn url() -> impl Strategy<Value = String> {
    let served = select(&TypeUrl::ALL).prop_map(|type_url| type_url.as_str().to_owned());
    prop_oneof![6 => served, 1 => text(), 1 => "type\\.googleapis\\.com/[a-z.]{0,20}"]
}

fn names() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(text(), 0..6)
}

fn request(variant: Variant) -> BoxedStrategy<Request> {
    let known = prop::collection::btree_map(text(), text(), 0..4);
    let names = match variant {
        Variant::Sotw => names().prop_map(Names::Whole).boxed(),
        Variant::Delta => (names(), names(), known)
            .prop_map(|(subscribe, unsubscribe, known): (_, _, BTreeMap<_, _>)| {
                Names::Edit(Edit { subscribe, unsubscribe, known })
            })
            .boxed(),
    };
    (url(), text(), prop::option::of(text()), names)
        .prop_map(|(type_url, nonce, error, names)| Request { type_url, nonce, error, names })
        .boxed()
}

/// Plays messages, with a change of the world before each.
fn play(variant: Variant, requests: &[Request]) {
    let mut world = Stock::default();
    let mut machine = Machine::new(StreamId(1), variant, Served::All, &world.resources);
    let now = Duration::from_secs(100);
    for (number, request) in requests.iter().enumerate() {
        let edits = ["cds a=1 eds a=1 lds a=api", "cds a=2 -b rds a=1", "cds b=1 -a eds -a lds -a"];
        world.change(edits[number % 3]).unwrap();
        if machine.on_request(request, &world.resources, now).is_err() {
            return;
        }
        let mut responses = 0;
        while let Some(response) = machine.next(&world.resources, now) {
            responses += 1;
            assert!(responses <= RESPONSES_MAX, "{request:?} is answered without end");
            let nonce = response.nonce.clone();
            let names = match variant {
                Variant::Sotw => request.names.clone(),
                Variant::Delta => Names::Edit(Edit::default()),
            };
            let type_url = response.type_url.as_str().to_owned();
            let answer = Request { type_url, nonce, error: None, names };
            machine.on_request(&answer, &world.resources, now).unwrap();
        }
    }
}

proptest! {
    #[test]
    fn rule_37_any_messages_are_answered_and_come_to_an_end(
        sotw in prop::collection::vec(request(Variant::Sotw), 1..12),
        delta in prop::collection::vec(request(Variant::Delta), 1..12),
    ) {
        play(Variant::Sotw, &sotw);
        play(Variant::Delta, &delta);
    }
}
