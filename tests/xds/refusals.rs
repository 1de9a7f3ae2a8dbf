//! What happens after a client refuses a response (xds-rules 4, 18).

use expect_test::expect;

use crate::script::{delta, sotw};

#[test]
fn rule_18_a_refused_response_is_not_sent_again_until_it_changes() {
    // F12, F16: envoyproxy/envoy#14841, envoyproxy/go-control-plane#962
    sotw(
        "change cds a=1 eds a=bad \n ask cds \n ack cds \n ask eds a \n nack eds port 0 \n wait 100
        change cds a=2 \n ack cds \n change eds a=good \n ack eds",
        expect![[r#"
            change cds a=1 eds a=bad
            ask cds
               → CDS 1 @1 [a=1]
            ack cds
            ask eds a
               → EDS 2 @1 [a=bad]
            nack eds port 0
               rejected: EDS @1 [a] port 0
            wait 100
            change cds a=2
               → CDS 3 @2 [a=2]
            ack cds
            change eds a=good
               → EDS 4 @3 [a=good]
            ack eds
        "#]],
    );
    delta(
        "change cds a=bad \n ask cds \n nack cds no type \n wait 100 \n change cds a=2 \n ack cds",
        expect![[r#"
            change cds a=bad
            ask cds
               → CDS 1 @1 [a=bad]
            nack cds no type
               rejected: CDS @1 [a] no type
            wait 100
            change cds a=2
               → CDS 2 @2 [a=2]
            ack cds
        "#]],
    );
    sotw(
        "change eds a=1 b=bad \n ask eds a \n ack eds \n ask eds a b \n nack eds \n change eds b=2",
        expect![[r#"
            change eds a=1 b=bad
            ask eds a
               → EDS 1 @1 [a=1]
            ack eds
            ask eds a b
               → EDS 2 @1 [b=bad]
            nack eds
               rejected: EDS @1 [b] bad
            change eds b=2
               → EDS 3 @2 [b=2]
        "#]],
    );
}

#[test]
fn rule_18_one_bad_resource_does_not_hold_back_the_good() {
    let script = "change eds a=1 b=bad c=1 d=1 \n ask eds a b c d \n nack eds
        nack eds \n ack eds \n nack eds \n ack eds \n wait 100";
    sotw(
        script,
        expect![[r#"
            change eds a=1 b=bad c=1 d=1
            ask eds a b c d
               → EDS 1 @1 [a=1 b=bad c=1 d=1]
            nack eds
               rejected together: EDS @1 [a b c d] bad
               → EDS 2 @1 [a=1 b=bad]
            nack eds
               rejected together: EDS @1 [a b] bad
               → EDS 3 @1 [a=1]
            ack eds
               → EDS 4 @1 [b=bad]
            nack eds
               rejected: EDS @1 [b] bad
               → EDS 5 @1 [c=1 d=1]
            ack eds
            wait 100
        "#]],
    );
    delta(
        &script.replace("a b c d", "+a +b +c +d"),
        expect![[r#"
            change eds a=1 b=bad c=1 d=1
            ask eds +a +b +c +d
               → EDS 1 @1 [a=1 b=bad c=1 d=1]
            nack eds
               rejected together: EDS @1 [a b c d] bad
               → EDS 2 @1 [a=1 b=bad]
            nack eds
               rejected together: EDS @1 [a b] bad
               → EDS 3 @1 [a=1]
            ack eds
               → EDS 4 @1 [b=bad]
            nack eds
               rejected: EDS @1 [b] bad
               → EDS 5 @1 [c=1 d=1]
            ack eds
            wait 100
        "#]],
    );
}

#[test]
fn rule_18_a_client_that_refuses_everything_ends_the_conversation() {
    sotw(
        "change eds a=1 b=1 \n ask eds a b \n nack eds \n nack eds \n nack eds \n nack eds \n wait 100",
        expect![[r#"
            change eds a=1 b=1
            ask eds a b
               → EDS 1 @1 [a=1 b=1]
            nack eds
               rejected together: EDS @1 [a b] bad
               → EDS 2 @1 [a=1]
            nack eds
               rejected: EDS @1 [a] bad
               → EDS 3 @1 [b=1]
            nack eds
               rejected: EDS @1 [b] bad
            nack eds
            wait 100
        "#]],
    );
    sotw(
        "change cds a=1 b=1 \n ask cds \n nack cds \n wait 100 \n change cds b=2 \n nack cds",
        expect![[r#"
            change cds a=1 b=1
            ask cds
               → CDS 1 @1 [a=1 b=1]
            nack cds
               rejected: CDS @1 [a b] bad
            wait 100
            change cds b=2
               → CDS 2 @2 [a=1 b=2]
            nack cds
               rejected: CDS @2 [a b] bad
        "#]],
    );
}

#[test]
fn removals_that_were_refused_along_with_a_bad_resource_are_said_again() {
    delta(
        "change eds a=1 c=1 \n ask eds +a +c \n ack eds \n change eds a=bad -c \n nack eds \n ack eds \n wait 100",
        expect![[r#"
            change eds a=1 c=1
            ask eds +a +c
               → EDS 1 @1 [a=1 c=1]
            ack eds
            change eds a=bad -c
               → EDS 2 @2 [a=bad c=∅]
            nack eds
               rejected together: EDS @2 [a c] bad
               → EDS 3 @2 [c=∅]
            ack eds
               → EDS 4 @2 [] -[c]
            wait 100
               → EDS 5 @2 [a=bad]
        "#]],
    );
    delta(
        "change cds a=1 c=1 \n ask cds \n ack cds \n change cds a=bad -c \n nack cds \n ack cds \n wait 100",
        expect![[r#"
            change cds a=1 c=1
            ask cds
               → CDS 1 @1 [a=1 c=1]
            ack cds
            change cds a=bad -c
               → CDS 2 @2 [a=bad] -[c]
            nack cds
               rejected: CDS @2 [a] bad
               → CDS 3 @2 [] -[c]
            ack cds
            wait 100
        "#]],
    );
}

#[test]
fn a_refused_set_is_sent_again_without_what_is_no_longer_wanted() {
    sotw(
        "change lds a=1 b=bad \n ask lds a b \n nack lds \n ask lds a \n ack lds \n wait 100",
        expect![[r#"
            change lds a=1 b=bad
            ask lds a b
               → LDS 1 @1 [a=1 b=bad]
            nack lds
               rejected: LDS @1 [a b] bad
            ask lds a
               → LDS 2 @1 [a=1]
            ack lds
            wait 100
        "#]],
    );
    sotw(
        "change lds a=1 b=bad \n ask lds * a \n nack lds \n ask lds a \n ack lds \n wait 100",
        expect![[r#"
            change lds a=1 b=bad
            ask lds * a
               → LDS 1 @1 [a=1 b=bad]
            nack lds
               rejected: LDS @1 [a b] bad
            ask lds a
               → LDS 2 @1 [a=1]
            ack lds
            wait 100
        "#]],
    );
}

#[test]
fn an_assignment_that_was_to_be_emptied_is_emptied_by_itself() {
    sotw(
        "change eds a=1 c=1 \n ask eds a c \n ack eds \n change eds a=bad -c \n change eds d=1 \n nack eds \n ack eds
        nack eds \n wait 100",
        expect![[r#"
            change eds a=1 c=1
            ask eds a c
               → EDS 1 @1 [a=1 c=1]
            ack eds
            change eds a=bad -c
               → EDS 2 @2 [a=bad c=∅]
            change eds d=1
            nack eds
               rejected together: EDS @2 [a c] bad
               → EDS 3 @3 [c=∅]
            ack eds
               → EDS 4 @3 [a=bad]
            nack eds
               rejected: EDS @2 [a] bad
            wait 100
        "#]],
    );
}

#[test]
fn a_refused_set_that_still_holds_what_is_leaving_is_not_repeated() {
    sotw(
        "change cds a=bad rds r=1 \n ask rds r \n ask cds \n change cds -a \n nack cds \n nack cds \n ack rds",
        expect![[r#"
            change cds a=bad rds r=1
            ask rds r
               → RDS 1 @1 [r=1]
            ask cds
               → CDS 2 @1 [a=bad]
            change cds -a
            nack cds
               rejected: CDS @1 [a] bad
            nack cds
            ack rds
               → CDS 3 @2 []
        "#]],
    );
}
