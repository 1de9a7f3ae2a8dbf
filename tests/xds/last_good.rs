//! A resource that a client refuses stays as that client took it last, and all others go on (xds-rules 18).

use expect_test::expect;

use crate::script::{delta, sotw};

#[test]
fn rule_18_a_refused_cluster_stays_as_it_was_and_the_others_go_on() {
    let script = "change cds a=1 b=1 \n ask cds \n ack cds \n change cds b=bad \n nack cds no type
        change cds a=2 \n ack cds \n change cds c=1 \n ack cds \n change cds b=2 \n ack cds \n wait 100";
    sotw(
        script,
        expect![[r#"
        change cds a=1 b=1
        ask cds
           → CDS 1 @1 [a=1 b=1]
        ack cds
        change cds b=bad
           → CDS 2 @2 [a=1 b=bad]
        nack cds no type
           rejected: CDS @2 [b] no type
        change cds a=2
           → CDS 3 @3 [a=2 b=1]
        ack cds
        change cds c=1
           → CDS 4 @4 [a=2 b=1 c=1]
        ack cds
        change cds b=2
           → CDS 5 @5 [a=2 b=2 c=1]
        ack cds
        wait 100
    "#]],
    );
    delta(
        script,
        expect![[r#"
        change cds a=1 b=1
        ask cds
           → CDS 1 @1 [a=1 b=1]
        ack cds
        change cds b=bad
           → CDS 2 @2 [b=bad]
        nack cds no type
           rejected: CDS @2 [b] no type
        change cds a=2
           → CDS 3 @3 [a=2]
        ack cds
        change cds c=1
           → CDS 4 @4 [c=1]
        ack cds
        change cds b=2
           → CDS 5 @5 [b=2]
        ack cds
        wait 100
    "#]],
    );
}

#[test]
fn rule_18_a_refused_cluster_that_was_never_taken_is_left_out() {
    sotw(
        "change cds a=1 \n ask cds \n ack cds \n change cds b=bad \n nack cds
        change cds a=2 \n ack cds \n change cds b=2 \n ack cds \n wait 100",
        expect![[r#"
            change cds a=1
            ask cds
               → CDS 1 @1 [a=1]
            ack cds
            change cds b=bad
               → CDS 2 @2 [a=1 b=bad]
            nack cds
               rejected: CDS @2 [b] bad
            change cds a=2
               → CDS 3 @3 [a=2]
            ack cds
            change cds b=2
               → CDS 4 @4 [a=2 b=2]
            ack cds
            wait 100
        "#]],
    );
}

#[test]
fn rule_18_of_several_the_ones_that_the_reason_names_stay_as_they_were() {
    sotw(
        "change cds a=1 b=1 c=1 eds a=x \n ask cds \n ack cds \n ask eds a \n ack eds \n change cds a=2 b=bad c=2
        nack cds Error adding/updating cluster(s) b: no type \n ack cds \n ack eds \n change cds c=3 \n ack cds \n wait 100",
        expect![[r#"
            change cds a=1 b=1 c=1 eds a=x
            ask cds
               → CDS 1 @1 [a=1 b=1 c=1]
            ack cds
            ask eds a
               → EDS 2 @1 [a=x]
            ack eds
            change cds a=2 b=bad c=2
               → CDS 3 @2 [a=2 b=bad c=2]
               → EDS 4 @1 [a=x]
            nack cds Error adding/updating cluster(s) b: no type
               rejected: CDS @2 [b] Error adding/updating cluster(s) b: no type
               → CDS 5 @2 [a=2 b=1 c=2]
            ack cds
            ack eds
               → EDS 6 @1 [a=x]
            change cds c=3
               → CDS 7 @3 [a=2 b=1 c=3]
            ack cds
            wait 100
        "#]],
    );
    delta(
        "change cds a=1 b=1 c=1 \n ask cds \n ack cds \n change cds a=2 b=bad c=2
        nack cds Error adding/updating cluster(s) b: no type \n ack cds \n nack cds no type \n nack cds no type \n ack cds
        change cds c=3 \n ack cds \n wait 100",
        expect![[r#"
            change cds a=1 b=1 c=1
            ask cds
               → CDS 1 @1 [a=1 b=1 c=1]
            ack cds
            change cds a=2 b=bad c=2
               → CDS 2 @2 [a=2 b=bad c=2]
            nack cds Error adding/updating cluster(s) b: no type
               rejected together: CDS @2 [a b c] Error adding/updating cluster(s) b: no type
               → CDS 3 @2 [a=2]
            ack cds
               → CDS 4 @2 [b=bad c=2]
            nack cds no type
               rejected together: CDS @2 [b c] no type
               → CDS 5 @2 [b=bad]
            nack cds no type
               rejected: CDS @2 [b] no type
               → CDS 6 @2 [c=2]
            ack cds
            change cds c=3
               → CDS 7 @3 [c=3]
            ack cds
            wait 100
        "#]],
    );
}

#[test]
fn rule_18_a_reason_that_names_the_wrong_one_is_not_believed_for_long() {
    sotw(
        "change cds a=1 b=1 \n ask cds \n ack cds \n change cds a=2 b=bad \n nack cds it is a
        nack cds it is a \n ack cds \n wait 100",
        expect![[r#"
            change cds a=1 b=1
            ask cds
               → CDS 1 @1 [a=1 b=1]
            ack cds
            change cds a=2 b=bad
               → CDS 2 @2 [a=2 b=bad]
            nack cds it is a
               rejected: CDS @2 [a] it is a
               → CDS 3 @2 [a=1 b=bad]
            nack cds it is a
               rejected: CDS @2 [b] it is a
               → CDS 4 @2 [a=2 b=1]
            ack cds
            wait 100
        "#]],
    );
}

#[test]
fn rule_18_a_client_that_took_nothing_yet_is_left_with_what_it_has() {
    // It may hold clusters from another stream, which the absence of one would delete.
    sotw(
        "change cds a=1 b=bad \n ask cds \n nack cds b is bad \n change cds a=2 \n nack cds b is bad \n wait 100",
        expect![[r#"
            change cds a=1 b=bad
            ask cds
               → CDS 1 @1 [a=1 b=bad]
            nack cds b is bad
               rejected: CDS @1 [b] b is bad
            change cds a=2
               → CDS 2 @2 [a=2 b=bad]
            nack cds b is bad
               rejected: CDS @1 [b] b is bad
            wait 100
        "#]],
    );
}

#[test]
fn rule_18_what_was_refused_is_not_kept_up_while_it_leaves() {
    sotw(
        "change cds a=1 b=1 rds r=1 \n ask cds \n ack cds \n ask rds r \n change cds b=bad \n nack cds
        change cds -b \n ack rds \n ack cds \n wait 100",
        expect![[r#"
            change cds a=1 b=1 rds r=1
            ask cds
               → CDS 1 @1 [a=1 b=1]
            ack cds
            ask rds r
               → RDS 2 @1 [r=1]
            change cds b=bad
               → CDS 3 @2 [a=1 b=bad]
            nack cds
               rejected: CDS @2 [b] bad
            change cds -b
            ack rds
               → CDS 4 @3 [a=1]
            ack cds
            wait 100
        "#]],
    );
}

#[test]
fn rule_18_a_set_that_was_refused_twice_is_not_sent_a_third_time() {
    sotw(
        "change cds a=1 b=1 \n ask cds \n change cds -b \n wait 5 \n nack cds n=1 bad \n nack cds bad \n wait 100",
        expect![[r#"
            change cds a=1 b=1
            ask cds
               → CDS 1 @1 [a=1 b=1]
            change cds -b
            wait 5
               → CDS 2 @2 [a=1]
            nack cds n=1 bad
               rejected: CDS @1 [a b] bad
            nack cds bad
               rejected: CDS @1 [a] bad
            wait 100
        "#]],
    );
}
