//! In which order types go out, and what follows a cluster (xds-rules 21, 22, 24, 34).

use expect_test::expect;

use crate::script::{delta, sotw};

#[test]
fn rule_21_clusters_first_and_removals_last() {
    // F15: envoyproxy/go-control-plane#526, #59, projectcontour/contour#1178
    let script = "change cds a=1 eds a=1 lds l=1 rds r=to-a
        ask cds \n ack cds \n ask eds a \n ack eds \n ask lds \n ack lds \n ask rds r \n ack rds
        change cds b=1 -a eds b=1 -a rds r=to-b
        ask eds b a \n ack cds \n ack eds \n ack rds \n ask eds b \n ack cds";
    sotw(
        script,
        expect![[r#"
        change cds a=1 eds a=1 lds l=1 rds r=to-a
        ask cds
           → CDS 1 @1 [a=1]
        ack cds
        ask eds a
           → EDS 2 @1 [a=1]
        ack eds
        ask lds
           → LDS 3 @1 [l=1]
        ack lds
        ask rds r
           → RDS 4 @1 [r=to-a]
        ack rds
        change cds b=1 -a eds b=1 -a rds r=to-b
           → CDS 5 @2 [a=1 b=1]
           → RDS 6 @2 [r=to-b]
        ask eds b a
           → EDS 7 @2 [b=1]
        ack cds
        ack eds
        ack rds
           → CDS 8 @2 [b=1]
        ask eds b
        ack cds
    "#]],
    );
    let script = script.replace("ask eds b a", "ask eds +b").replace("ask eds b", "ask eds -a");
    delta(
        &script.replace("eds a \n", "eds +a \n").replace("rds r \n", "rds +r \n"),
        expect![[r#"
        change cds a=1 eds a=1 lds l=1 rds r=to-a
        ask cds
           → CDS 1 @1 [a=1]
        ack cds
        ask eds +a
           → EDS 2 @1 [a=1]
        ack eds
        ask lds
           → LDS 3 @1 [l=1]
        ack lds
        ask rds +r
           → RDS 4 @1 [r=to-a]
        ack rds
        change cds b=1 -a eds b=1 -a rds r=to-b
           → CDS 5 @2 [b=1]
           → RDS 6 @2 [r=to-b]
        ask eds +b
           → EDS 7 @2 [b=1]
        ack cds
        ack eds
        ack rds
           → CDS 8 @2 [] -[a]
        ask eds -a
        ack cds
    "#]],
    );
}

#[test]
fn rule_21_a_removal_waits_no_longer_than_five_seconds() {
    sotw(
        "change cds a=1 rds r=to-a \n ask cds \n ack cds \n ask rds r \n ack rds
        change cds -a rds r=to-b \n wait 4 \n wait 1",
        expect![[r#"
            change cds a=1 rds r=to-a
            ask cds
               → CDS 1 @1 [a=1]
            ack cds
            ask rds r
               → RDS 2 @1 [r=to-a]
            ack rds
            change cds -a rds r=to-b
               → RDS 3 @2 [r=to-b]
            wait 4
            wait 1
               → CDS 4 @2 []
        "#]],
    );
}

#[test]
fn rule_21_routes_are_not_sent_before_clusters_that_have_to_wait() {
    sotw(
        "change cds a=1 rds r=to-a \n ask cds \n ask rds r \n ack rds
        change cds b=1 rds r=to-b \n ack cds",
        expect![[r#"
            change cds a=1 rds r=to-a
            ask cds
               → CDS 1 @1 [a=1]
            ask rds r
               → RDS 2 @1 [r=to-a]
            ack rds
            change cds b=1 rds r=to-b
            ack cds
               → CDS 3 @2 [a=1 b=1]
               → RDS 4 @2 [r=to-b]
        "#]],
    );
}

#[test]
fn rule_22_a_changed_cluster_is_followed_by_its_assignment() {
    // F6: envoyproxy/envoy#22377, kumahq/kuma#331, istio/istio#38709
    let script = "change cds web=1 eds web=a \n ask cds \n ack cds \n ask eds web \n ack eds
        change cds web=2 \n ack cds \n ask eds web n=2 \n ack eds \n wait 100";
    sotw(
        script,
        expect![[r#"
        change cds web=1 eds web=a
        ask cds
           → CDS 1 @1 [web=1]
        ack cds
        ask eds web
           → EDS 2 @1 [web=a]
        ack eds
        change cds web=2
           → CDS 3 @2 [web=2]
           → EDS 4 @1 [web=a]
        ack cds
        ask eds web n=2
        ack eds
        wait 100
    "#]],
    );
    delta(
        &script.replace("ask eds web n=2 \n", "").replace("ask eds web", "ask eds +web"),
        expect![[r#"
        change cds web=1 eds web=a
        ask cds
           → CDS 1 @1 [web=1]
        ack cds
        ask eds +web
           → EDS 2 @1 [web=a]
        ack eds
        change cds web=2
           → CDS 3 @2 [web=2]
           → EDS 4 @1 [web=a]
        ack cds
        ack eds
        wait 100
    "#]],
    );
}

#[test]
fn rule_22_with_reordered_or_fewer_names() {
    sotw(
        "change cds a=1 b=1 c=1 eds a=1 b=1 c=1 \n ask cds \n ack cds \n ask eds a b c \n ack eds
        change cds a=2 -b eds -b \n ask eds c a n=2 \n ack eds \n ack cds \n wait 100",
        expect![[r#"
            change cds a=1 b=1 c=1 eds a=1 b=1 c=1
            ask cds
               → CDS 1 @1 [a=1 b=1 c=1]
            ack cds
            ask eds a b c
               → EDS 2 @1 [a=1 b=1 c=1]
            ack eds
            change cds a=2 -b eds -b
               → CDS 3 @2 [a=2 c=1]
               → EDS 4 @2 [a=1]
            ask eds c a n=2
            ack eds
            ack cds
            wait 100
        "#]],
    );
}

#[test]
fn rule_22_a_cluster_that_shares_an_assignment() {
    delta(
        "change cds web=1 eds web=a \n auto \n ask cds \n ask eds +web \n change cds canary=1>web",
        expect![[r#"
            change cds web=1 eds web=a
            auto
            ask cds
               → CDS 1 @1 [web=1]
            ask eds +web
               → EDS 2 @1 [web=a]
            change cds canary=1>web
               → CDS 3 @2 [canary=1>web]
               → EDS 4 @1 [web=a]
        "#]],
    );
}

#[test]
fn rule_22_where_clusters_come_from_elsewhere_a_repeated_answer_is_a_question() {
    sotw(
        "change eds a=1 b=1 \n ask eds a b \n ack eds \n ask eds b a \n ack eds \n ask eds a \n ack eds",
        expect![[r#"
            change eds a=1 b=1
            ask eds a b
               → EDS 1 @1 [a=1 b=1]
            ack eds
            ask eds b a
               → EDS 2 @1 [a=1 b=1]
            ack eds
            ask eds a
               → EDS 3 @1 [a=1]
            ack eds
        "#]],
    );
}

#[test]
fn rule_24_an_assignment_that_is_gone_is_emptied_first() {
    sotw(
        "change eds web=a \n auto \n ask eds web \n change eds -web \n change eds web=b",
        expect![[r#"
        change eds web=a
        auto
        ask eds web
           → EDS 1 @1 [web=a]
        change eds -web
           → EDS 2 @2 [web=∅]
        change eds web=b
           → EDS 3 @3 [web=b]
    "#]],
    );
    delta(
        "change eds web=a \n ask eds +web \n ack eds \n change eds -web \n ack eds \n ack eds \n change eds web=b",
        expect![[r#"
            change eds web=a
            ask eds +web
               → EDS 1 @1 [web=a]
            ack eds
            change eds -web
               → EDS 2 @2 [web=∅]
            ack eds
               → EDS 3 @2 [] -[web]
            ack eds
            change eds web=b
               → EDS 4 @3 [web=b]
        "#]],
    );
}

#[test]
fn rule_34_on_a_stream_that_starts_with_assignments_all_are_sent() {
    delta(
        "change cds a=1 b=1 eds a=1 b=1 \n ask eds +a +b known a b \n ask cds known a b~ \n ack eds",
        expect![[r#"
            change cds a=1 b=1 eds a=1 b=1
            ask eds +a +b known a b
               → EDS 1 @1 [a=1 b=1]
            ask cds known a b~
               → CDS 2 @1 [b=1]
            ack eds
               → EDS 3 @1 [b=1]
        "#]],
    );
    sotw(
        "change cds a=1 b=1 eds a=1 b=1 \n ask eds a b \n ack eds \n ask cds",
        expect![[r#"
        change cds a=1 b=1 eds a=1 b=1
        ask eds a b
           → EDS 1 @1 [a=1 b=1]
        ack eds
        ask cds
           → CDS 2 @1 [a=1 b=1]
           → EDS 3 @1 [a=1 b=1]
    "#]],
    );
}

#[test]
fn a_removal_that_waits_is_not_forgotten_with_the_name() {
    sotw(
        "change cds c=1 rds r=1 \n ask cds * c \n ack cds \n ask rds r \n change cds -c
        ask cds * \n ack rds \n ack cds",
        expect![[r#"
            change cds c=1 rds r=1
            ask cds * c
               → CDS 1 @1 [c=1]
            ack cds
            ask rds r
               → RDS 2 @1 [r=1]
            change cds -c
            ask cds *
            ack rds
               → CDS 3 @2 []
            ack cds
        "#]],
    );
}
