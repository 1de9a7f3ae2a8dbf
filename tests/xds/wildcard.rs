//! Wildcard is a state of the stream (xds-rules 12, 29, 33).

use expect_test::expect;

use crate::script::{delta, sotw};

#[test]
fn rule_12_state_of_the_world() {
    // F8: envoyproxy/envoy#16861, #16063, cilium/cilium#45288
    sotw(
        "change cds a=1 b=1 \n auto \n ask cds \n ask cds * a \n change cds b=2
        ask cds a \n change cds b=3 \n ask cds \n change cds a=2 \n ask cds *",
        expect![[r#"
            change cds a=1 b=1
            auto
            ask cds
               → CDS 1 @1 [a=1 b=1]
            ask cds * a
               → CDS 2 @1 [a=1 b=1]
            change cds b=2
               → CDS 3 @2 [a=1 b=2]
            ask cds a
            change cds b=3
            ask cds
            change cds a=2
            ask cds *
               → CDS 4 @4 [a=2 b=3]
        "#]],
    );
}

#[test]
fn rule_12_delta() {
    delta(
        "change cds a=1 b=1 \n auto \n ask cds \n ask cds +a \n change cds b=2
        ask cds -* \n change cds b=3 \n ask cds -a \n change cds a=2 \n ask cds +*",
        expect![[r#"
            change cds a=1 b=1
            auto
            ask cds
               → CDS 1 @1 [a=1 b=1]
            ask cds +a
               → CDS 2 @1 [a=1]
            change cds b=2
               → CDS 3 @2 [b=2]
            ask cds -*
            change cds b=3
            ask cds -a
            change cds a=2
            ask cds +*
               → CDS 4 @4 [a=2 b=3]
        "#]],
    );
}

#[test]
fn rule_12_leaving_a_name_under_a_wildcard() {
    delta(
        "change cds a=1 lds edge=1 svc=api \n auto \n ask cds \n ask cds +a +none \n ask cds -a -none
        ask lds \n ask lds +svc \n ask lds -svc",
        expect![[r#"
            change cds a=1 lds edge=1 svc=api
            auto
            ask cds
               → CDS 1 @1 [a=1]
            ask cds +a +none
               → CDS 2 @1 [a=1] -[none]
            ask cds -a -none
               → CDS 3 @1 [a=1] -[none]
            ask lds
               → LDS 4 @1 [edge=1]
            ask lds +svc
               → LDS 5 @1 [svc=api]
            ask lds -svc
               → LDS 6 @1 [] -[svc]
        "#]],
    );
}

#[test]
fn rule_12_an_empty_name_never_exists() {
    sotw(
        "change cds a=1 \n auto \n ask cds \"\" \n ask eds \"\"",
        expect![[r#"
            change cds a=1
            auto
            ask cds ""
               → CDS 1 @1 []
            ask eds ""
               → EDS 2 @0 []
        "#]],
    );
    delta(
        "change cds a=1 \n auto \n ask cds +\"\"",
        expect![[r#"
        change cds a=1
        auto
        ask cds +""
           → CDS 1 @1 [] -[]
    "#]],
    );
}

#[test]
fn rule_12_only_clusters_and_listeners_have_a_wildcard() {
    sotw(
        "change eds a=1 rds r=1 \n auto \n ask eds \n ask rds * \n change eds a=2",
        expect![[r#"
        change eds a=1 rds r=1
        auto
        ask eds
           → EDS 1 @1 []
        ask rds *
        change eds a=2
    "#]],
    );
    delta(
        "change eds a=1 rds r=1 \n auto \n ask eds \n ask rds +* \n change eds a=2",
        expect![[r#"
        change eds a=1 rds r=1
        auto
        ask eds
           → EDS 1 @1 []
        ask rds +*
           → RDS 2 @1 [] -[*]
        change eds a=2
    "#]],
    );
}

#[test]
fn rule_29_api_listeners_are_for_those_that_name_them() {
    sotw(
        "change lds edge=1 svc=api \n auto \n ask lds \n ask lds svc \n change lds edge=2",
        expect![[r#"
        change lds edge=1 svc=api
        auto
        ask lds
           → LDS 1 @1 [edge=1]
        ask lds svc
           → LDS 2 @1 [svc=api]
        change lds edge=2
    "#]],
    );
    delta(
        "change lds edge=1 svc=api \n auto \n ask lds +svc \n change lds edge=2 -svc",
        expect![[r#"
        change lds edge=1 svc=api
        auto
        ask lds +svc
           → LDS 1 @1 [svc=api]
        change lds edge=2 -svc
           → LDS 2 @2 [] -[svc]
    "#]],
    );
}

#[test]
fn rule_33_on_demand_only_is_no_wildcard_and_unknown_names_are_remembered() {
    delta(
        "change cds a=1 b=1 \n auto \n ask cds +a \n ask cds +x \n change cds x=1 \n change cds -x \n change cds x=2
        reconnect \n ask cds +* +a +x known a b x~",
        expect![[r#"
            change cds a=1 b=1
            auto
            ask cds +a
               → CDS 1 @1 [a=1]
            ask cds +x
               → CDS 2 @1 [] -[x]
            change cds x=1
               → CDS 3 @2 [x=1]
            change cds -x
               → CDS 4 @3 [] -[x]
            change cds x=2
               → CDS 5 @4 [x=2]
            reconnect
            ask cds +* +a +x known a b x~
               → CDS 1 @4 [a=1 x=2]
        "#]],
    );
}

#[test]
fn rule_12_a_wildcard_that_comes_back_takes_back_what_is_gone() {
    delta(
        "change cds a=1 \n ask cds \n ask cds -* n= \n change cds -a \n ask cds +* n= \n ack cds",
        expect![[r#"
            change cds a=1
            ask cds
               → CDS 1 @1 [a=1]
            ask cds -* n=
            change cds -a
            ask cds +* n=
            ack cds
               → CDS 2 @2 [] -[a]
        "#]],
    );
}
