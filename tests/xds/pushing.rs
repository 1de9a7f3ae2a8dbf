//! What is pushed, and how long it waits (xds-rules 16, 17).

use std::sync::Arc;
use std::time::{Duration, Instant};

use expect_test::expect;
use foldplane::projection::resources::{Resources, TypeUrl, builders};
use foldplane::xds::protocol::{Edit, Machine, Names, Request, Served, StreamId, Variant};

use crate::script::{delta, sotw};

#[test]
fn rule_16_a_change_reaches_only_those_it_concerns() {
    sotw(
        "change cds a=1 b=1 eds a=1 b=1 \n auto \n ask cds a \n ask eds a \n change eds b=2 \n change cds b=2",
        expect![[r#"
            change cds a=1 b=1 eds a=1 b=1
            auto
            ask cds a
               → CDS 1 @1 [a=1]
            ask eds a
               → EDS 2 @1 [a=1]
            change eds b=2
            change cds b=2
        "#]],
    );
}

/// The shortest time in which a stream that wants so many assignments is told of one change.
fn time_of_a_change(names: u32) -> Duration {
    const NOW: Duration = Duration::from_secs(100);
    let type_url = TypeUrl::ClusterLoadAssignment;
    let mut next = Resources::default().builder(foldplane::events::Offset::new(1));
    let list: Vec<_> = (0..names).map(|number| format!("service-{number}")).collect();
    for name in &list {
        next.put(name, &builders::load_assignment(name, Vec::new()));
    }
    let mut resources = Arc::new(next.build());
    let mut machine = Machine::new(StreamId(1), Variant::Delta, Served::All, &resources);
    let say = |nonce: &str, subscribe: Vec<String>| Request {
        type_url: type_url.as_str().to_owned(),
        nonce: nonce.to_owned(),
        names: Names::Edit(Edit { subscribe, ..Edit::default() }),
        ..Request::default()
    };
    machine.on_request(&say("", list), &resources, NOW).unwrap();
    while let Some(response) = machine.next(&resources, NOW) {
        machine.on_request(&say(&response.nonce, Vec::new()), &resources, NOW).unwrap();
    }
    let spans = (0..40_u8).map(|turn| {
        let mut next = resources.builder(resources.offset().next());
        let address = std::net::SocketAddr::from(([192, 0, 2, turn + 1], 80));
        next.put("service-7", &builders::load_assignment("service-7", vec![builders::endpoint(address)]));
        resources = Arc::new(next.build());
        let start = Instant::now();
        let response = machine.next(&resources, NOW).unwrap();
        let took = start.elapsed();
        assert_eq!(response.resources.len(), 1);
        machine.on_request(&say(&response.nonce, Vec::new()), &resources, NOW).unwrap();
        took
    });
    spans.min().unwrap()
}

#[test]
fn rule_16_a_change_costs_what_changed_and_not_what_there_is() {
    let (few, many) = (time_of_a_change(200), time_of_a_change(20_000));
    // A hundred times as many resources: a walk over them would show.
    assert!(many < few * 10, "{few:?} among 200 resources, {many:?} among 20,000");
}

#[test]
fn rule_17_one_unanswered_response_a_type_and_the_latest_wins() {
    sotw(
        "change cds a=1 eds a=1 \n ask cds \n ask eds a \n ack eds
        change eds a=2 \n change eds a=3 \n change eds a=4 \n ack eds",
        expect![[r#"
            change cds a=1 eds a=1
            ask cds
               → CDS 1 @1 [a=1]
            ask eds a
               → EDS 2 @1 [a=1]
            ack eds
            change eds a=2
               → EDS 3 @2 [a=2]
            change eds a=3
            change eds a=4
            ack eds
               → EDS 4 @4 [a=4]
        "#]],
    );
    delta(
        "change eds a=1 b=1 \n ask eds +a +b \n change eds a=2 \n change eds b=2 -a \n ack eds \n ack eds \n ack eds",
        expect![[r#"
            change eds a=1 b=1
            ask eds +a +b
               → EDS 1 @1 [a=1 b=1]
            change eds a=2
            change eds b=2 -a
            ack eds
               → EDS 2 @3 [b=2 a=∅]
            ack eds
               → EDS 3 @3 [] -[a]
            ack eds
        "#]],
    );
}

#[test]
fn rule_17_the_wait_ends_after_five_seconds() {
    sotw(
        "change cds a=1 \n ask cds \n change cds a=2 \n wait 4 \n wait 1 \n wait 100",
        expect![[r#"
        change cds a=1
        ask cds
           → CDS 1 @1 [a=1]
        change cds a=2
        wait 4
        wait 1
           → CDS 2 @2 [a=2]
        wait 100
    "#]],
    );
}
