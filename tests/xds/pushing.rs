//! What is pushed, and how long it waits (xds-rules 16, 17).

use expect_test::expect;

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
