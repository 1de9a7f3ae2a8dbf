//! What is answered, and when (xds-rules 3 to 15).

use expect_test::expect;
use foldplane::projection::resources::TypeUrl;
use foldplane::xds::protocol::{Served, Variant};

use crate::script::{check, delta, sotw};

#[test]
fn rule_6_the_first_request_is_always_answered() {
    sotw(
        "ask cds \n ask eds \n ask lds \n ask rds",
        expect![[r#"
        ask cds
           → CDS 1 @0 []
        ask eds
           → EDS 2 @0 []
        ask lds
           → LDS 3 @0 []
        ask rds
           → RDS 4 @0 []
    "#]],
    );
    delta(
        "ask cds \n ask eds \n ask lds \n ask rds",
        expect![[r#"
        ask cds
           → CDS 1 @0 []
        ask eds
           → EDS 2 @0 []
        ask lds
           → LDS 3 @0 []
        ask rds
           → RDS 4 @0 []
    "#]],
    );
}

#[test]
fn rule_6_also_when_the_client_is_up_to_date() {
    // F1, F9: envoyproxy/envoy#13072
    sotw(
        "change cds web=1 eds web=a \n auto \n ask cds \n ask eds web \n reconnect \n ask cds \n ask eds web",
        expect![[r#"
            change cds web=1 eds web=a
            auto
            ask cds
               → CDS 1 @1 [web=1]
            ask eds web
               → EDS 2 @1 [web=a]
            reconnect
            ask cds
               → CDS 1 @1 [web=1]
            ask eds web
               → EDS 2 @1 [web=a]
        "#]],
    );
    // F10: envoyproxy/envoy#22418: what is named is sent; what a wildcard covers may be left out.
    delta(
        "change cds web=1 eds web=a \n auto \n ask cds known web \n ask eds +web known web",
        expect![[r#"
        change cds web=1 eds web=a
        auto
        ask cds known web
           → CDS 1 @1 []
        ask eds +web known web
           → EDS 2 @1 [web=a]
    "#]],
    );
}

#[test]
fn rule_7_a_name_that_enters_is_answered() {
    // F2: envoyproxy/go-control-plane#399, #463
    sotw(
        "change eds a=1 b=1 \n auto \n ask eds a \n ask eds a b \n ask eds a b",
        expect![[r#"
        change eds a=1 b=1
        auto
        ask eds a
           → EDS 1 @1 [a=1]
        ask eds a b
           → EDS 2 @1 [b=1]
        ask eds a b
           → EDS 3 @1 [a=1 b=1]
    "#]],
    );
    // grpc: gc, then nothing, then gc again
    sotw(
        "change cds gc=1 eds gc=1 \n auto \n ask cds gc \n ask eds gc \n ask eds \n ask eds gc",
        expect![[r#"
            change cds gc=1 eds gc=1
            auto
            ask cds gc
               → CDS 1 @1 [gc=1]
            ask eds gc
               → EDS 2 @1 [gc=1]
            ask eds
            ask eds gc
               → EDS 3 @1 [gc=1]
        "#]],
    );
}

#[test]
fn rule_7_a_stale_nonce_never_drops_an_edit() {
    // F7: envoyproxy/envoy#10363
    sotw(
        "change eds a=1 b=1 \n ask eds a \n ack eds \n change eds a=2 \n ask eds a b n=1 \n ack eds",
        expect![[r#"
            change eds a=1 b=1
            ask eds a
               → EDS 1 @1 [a=1]
            ack eds
            change eds a=2
               → EDS 2 @2 [a=2]
            ask eds a b n=1
            ack eds
               → EDS 3 @2 [b=1]
        "#]],
    );
    delta(
        "change eds a=1 b=1 \n ask eds +a \n ask eds +b n=77 \n ack eds",
        expect![[r#"
        change eds a=1 b=1
        ask eds +a
           → EDS 1 @1 [a=1]
        ask eds +b n=77
        ack eds
           → EDS 2 @1 [b=1]
    "#]],
    );
}

#[test]
fn rule_8_every_subscribed_name_is_answered() {
    delta(
        "change eds a=1 \n auto \n ask eds +a \n ask eds +a \n ask eds -nobody",
        expect![[r#"
        change eds a=1
        auto
        ask eds +a
           → EDS 1 @1 [a=1]
        ask eds +a
           → EDS 2 @1 [a=1]
        ask eds -nobody
    "#]],
    );
}

#[test]
fn rule_9_what_differs_is_sent_and_what_is_gone_is_removed() {
    delta(
        "change cds a=1 b=1 c=1 \n ask cds known a b~ old",
        expect![[r#"
        change cds a=1 b=1 c=1
        ask cds known a b~ old
           → CDS 1 @1 [b=1 c=1] -[old]
    "#]],
    );
    // The set of a client that named things: what it no longer names is not sent, what is gone is removed.
    delta(
        "change cds a=1 b=1 c=1 \n ask cds +b known a b old",
        expect![[r#"
        change cds a=1 b=1 c=1
        ask cds +b known a b old
           → CDS 1 @1 [b=1] -[old]
    "#]],
    );
}

#[test]
fn rule_10_missing_names() {
    // F3, F5: envoyproxy/go-control-plane#1318, envoyproxy/envoy#9934, envoyproxy/java-control-plane#127
    sotw(
        "change eds foo=1 \n auto \n ask eds foo bar \n change eds bar=1",
        expect![[r#"
        change eds foo=1
        auto
        ask eds foo bar
           → EDS 1 @1 [bar=∅ foo=1]
        change eds bar=1
           → EDS 2 @2 [bar=1]
    "#]],
    );
    delta(
        "change eds foo=1 \n auto \n ask eds +foo +bar \n change eds bar=1",
        expect![[r#"
        change eds foo=1
        auto
        ask eds +foo +bar
           → EDS 1 @1 [foo=1] -[bar]
        change eds bar=1
           → EDS 2 @2 [bar=1]
    "#]],
    );
    sotw(
        "change cds a=1 \n auto \n ask cds a b \n change cds b=1",
        expect![[r#"
        change cds a=1
        auto
        ask cds a b
           → CDS 1 @1 [a=1]
        change cds b=1
           → CDS 2 @2 [a=1 b=1]
    "#]],
    );
    sotw(
        "auto \n ask rds r \n change rds r=1",
        expect![[r#"
        auto
        ask rds r
        change rds r=1
           → RDS 1 @1 [r=1]
    "#]],
    );
    delta(
        "auto \n ask rds +r \n change rds r=1",
        expect![[r#"
        auto
        ask rds +r
           → RDS 1 @0 [] -[r]
        change rds r=1
           → RDS 2 @1 [r=1]
    "#]],
    );
}

#[test]
fn rule_10_a_subset_is_answered_without_the_rest() {
    // F4: envoyproxy/go-control-plane#426, #119, #63, kumahq/kuma#12098
    sotw(
        "change eds a=1 b=1 c=1 \n ask eds a",
        expect![[r#"
        change eds a=1 b=1 c=1
        ask eds a
           → EDS 1 @1 [a=1]
    "#]],
    );
    // More exists by now than the client knows of.
    sotw(
        "change cds a=1 b=1 eds a=1 b=1 \n ask cds \n change cds c=1 eds c=1 \n ask eds a b",
        expect![[r#"
        change cds a=1 b=1 eds a=1 b=1
        ask cds
           → CDS 1 @1 [a=1 b=1]
        change cds c=1 eds c=1
        ask eds a b
           → EDS 2 @2 [a=1 b=1]
    "#]],
    );
}

#[test]
fn rule_11_full_sets_and_parts() {
    // F14: envoyproxy/go-control-plane#606, #540
    let script = "change cds a=1 b=1 c=1 eds a=1 b=1 c=1 lds l=1 rds r=1 q=1 \n auto
        ask cds \n ask eds a b c \n ask lds \n ask rds r q
        change cds b=2 eds b=2 lds m=1 rds q=2
        change cds -b eds -b";
    sotw(
        script,
        expect![[r#"
        change cds a=1 b=1 c=1 eds a=1 b=1 c=1 lds l=1 rds r=1 q=1
        auto
        ask cds
           → CDS 1 @1 [a=1 b=1 c=1]
        ask eds a b c
           → EDS 2 @1 [a=1 b=1 c=1]
        ask lds
           → LDS 3 @1 [l=1]
        ask rds r q
           → RDS 4 @1 [q=1 r=1]
        change cds b=2 eds b=2 lds m=1 rds q=2
           → CDS 5 @2 [a=1 b=2 c=1]
           → EDS 6 @2 [b=2]
           → LDS 7 @2 [l=1 m=1]
           → RDS 8 @2 [q=2]
        change cds -b eds -b
           → CDS 9 @3 [a=1 c=1]
           → EDS 10 @3 [b=∅]
    "#]],
    );
    delta(
        &script.replace("ask eds a b c", "ask eds +a +b +c").replace("ask rds r q", "ask rds +r +q"),
        expect![[r#"
            change cds a=1 b=1 c=1 eds a=1 b=1 c=1 lds l=1 rds r=1 q=1
            auto
            ask cds
               → CDS 1 @1 [a=1 b=1 c=1]
            ask eds +a +b +c
               → EDS 2 @1 [a=1 b=1 c=1]
            ask lds
               → LDS 3 @1 [l=1]
            ask rds +r +q
               → RDS 4 @1 [q=1 r=1]
            change cds b=2 eds b=2 lds m=1 rds q=2
               → CDS 5 @2 [b=2]
               → EDS 6 @2 [b=2]
               → LDS 7 @2 [m=1]
               → RDS 8 @2 [q=2]
            change cds -b eds -b
               → CDS 9 @3 [] -[b]
               → EDS 10 @3 [b=∅]
               → EDS 11 @3 [] -[b]
        "#]],
    );
}

#[test]
fn rule_13_a_type_that_is_not_served_is_answered_with_nothing() {
    let url = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret";
    sotw(
        &format!("ask {url} a \n ack {url} \n ask {url} a b"),
        expect![[r#"
        ask type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret a
           noted: type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret is not served
           → type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret 1 @0 []
        ack type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret
        ask type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret a b
    "#]],
    );
    delta(
        &format!("ask {url} +a \n ack {url} \n ask {url} +b"),
        expect![[r#"
        ask type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret +a
           noted: type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret is not served
           → type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret 1 @0 [] -[a]
        ack type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret
        ask type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret +b
           → type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret 2 @0 [] -[b]
    "#]],
    );
}

#[test]
fn rule_13_a_malformed_type_ends_the_stream() {
    sotw(
        "ask nonsense \n ask type.googleapis.com/",
        expect![[r#"
        ask nonsense
           closed: "nonsense" is not a type URL: expected something like type.googleapis.com/envoy.config.cluster.v3.Cluster
        ask type.googleapis.com/
           closed: "type.googleapis.com/" is not a type URL: expected something like type.googleapis.com/envoy.config.cluster.v3.Cluster
    "#]],
    );
    check(
        Variant::Delta,
        Served::Only(TypeUrl::Cluster),
        "ask \"\" \n ask cds \n ask eds +a",
        expect![[r#"
        ask ""
           closed: this service serves type.googleapis.com/envoy.config.cluster.v3.Cluster, not "\"\"": ask for that type, or use the aggregated service
        ask cds
           → CDS 1 @0 []
        ask eds +a
           closed: this service serves type.googleapis.com/envoy.config.cluster.v3.Cluster, not "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment": ask for that type, or use the aggregated service
    "#]],
    );
}

#[test]
fn rule_15_an_idle_server_is_silent() {
    sotw(
        "change cds a=1 eds a=1 \n auto \n ask cds \n ask eds a \n wait 1000 \n change \n ack cds \n ack eds",
        expect![[r#"
            change cds a=1 eds a=1
            auto
            ask cds
               → CDS 1 @1 [a=1]
            ask eds a
               → EDS 2 @1 [a=1]
            wait 1000
            change
            ack cds
            ack eds
        "#]],
    );
    delta(
        "change cds a=1 eds a=1 \n auto \n ask cds \n ask eds +a \n wait 1000 \n change \n ack cds",
        expect![[r#"
            change cds a=1 eds a=1
            auto
            ask cds
               → CDS 1 @1 [a=1]
            ask eds +a
               → EDS 2 @1 [a=1]
            wait 1000
            change
            ack cds
        "#]],
    );
}
