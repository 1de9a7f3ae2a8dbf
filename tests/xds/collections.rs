//! Endpoints one by one (xds-rules 35).

use expect_test::expect;

use crate::script::{delta, sotw};

const SETUP: &str =
    "change cds web=1 eds web=1 leds web/1/a=1 web/1/b=1 web/12/x=1 \n ask cds \n ask eds +web
    ack eds \n ack cds \n ask leds +web/1/* \n ack leds";

#[test]
fn rule_35_a_change_of_an_endpoint_sends_that_one() {
    delta(
        &format!(
            "{SETUP} \n auto \n change leds web/1/b=2 web/12/x=2 \n change leds -web/1/a web/1/deep/er=1"
        ),
        expect![[r#"
            change cds web=1 eds web=1 leds web/1/a=1 web/1/b=1 web/12/x=1
            ask cds
               → CDS 1 @1 [web=1]
            ask eds +web
               → EDS 2 @1 [web=1]
            ack eds
            ack cds
            ask leds +web/1/*
               → LEDS 3 @1 [web/1/a=1 web/1/b=1]
            ack leds
            auto
            change leds web/1/b=2 web/12/x=2
               → LEDS 4 @2 [web/1/b=2]
            change leds -web/1/a web/1/deep/er=1
               → LEDS 5 @3 [] -[web/1/a]
        "#]],
    );
}

#[test]
fn rule_35_an_empty_collection_is_answered_by_removing_its_name_and_comes_when_it_is_there() {
    delta(
        "auto \n ask leds +web/1/* \n change leds web/1/a=1 \n ask leds -web/1/* \n change leds web/1/a=2",
        expect![[r#"
            auto
            ask leds +web/1/*
               → LEDS 1 @0 [] -[web/1/*]
            change leds web/1/a=1
               → LEDS 2 @1 [web/1/a=1]
            ask leds -web/1/*
            change leds web/1/a=2
        "#]],
    );
}

#[test]
fn rule_35_a_collection_that_is_replaced_serves_until_the_next_one_is_asked_for() {
    delta(
        &format!(
            "{SETUP} \n change eds web=2 leds -web/1/a -web/1/b web/2/a=1 \n ask leds +web/2/* -web/1/* \n ack eds \n ack leds"
        ),
        expect![[r#"
            change cds web=1 eds web=1 leds web/1/a=1 web/1/b=1 web/12/x=1
            ask cds
               → CDS 1 @1 [web=1]
            ask eds +web
               → EDS 2 @1 [web=1]
            ack eds
            ack cds
            ask leds +web/1/*
               → LEDS 3 @1 [web/1/a=1 web/1/b=1]
            ack leds
            change eds web=2 leds -web/1/a -web/1/b web/2/a=1
               → EDS 4 @2 [web=2]
            ask leds +web/2/* -web/1/*
               → LEDS 5 @2 [web/2/a=1]
            ack eds
            ack leds
        "#]],
    );
    // A client that holds on to the old one is told in the end.
    delta(
        &format!("{SETUP} \n change eds web=2 leds -web/1/a -web/1/b \n ack eds \n ack leds"),
        expect![[r#"
            change cds web=1 eds web=1 leds web/1/a=1 web/1/b=1 web/12/x=1
            ask cds
               → CDS 1 @1 [web=1]
            ask eds +web
               → EDS 2 @1 [web=1]
            ack eds
            ack cds
            ask leds +web/1/*
               → LEDS 3 @1 [web/1/a=1 web/1/b=1]
            ack leds
            change eds web=2 leds -web/1/a -web/1/b
               → EDS 4 @2 [web=2]
            ack eds
               → LEDS 5 @2 [] -[web/1/a web/1/b]
            ack leds
        "#]],
    );
}

#[test]
fn rule_35_it_is_delta_only() {
    sotw(
        "change leds web/1/a=1 \n ask leds web/1/*",
        expect![[r#"
        change leds web/1/a=1
        ask leds web/1/*
           noted: type.googleapis.com/envoy.config.endpoint.v3.LbEndpoint is not served
           → type.googleapis.com/envoy.config.endpoint.v3.LbEndpoint 1 @0 []
    "#]],
    );
}
