//! What a node does not see does not exist for it (xds-rules 32).

use expect_test::expect;

use crate::script::{delta, sotw};

const SETUP: &str =
    "change cds web=1 pay=1 eds web=a pay=a lds web=api pay=api rds web=1 pay=1 \n auto \n view web";

#[test]
fn rule_32_a_wildcard_gets_its_view_and_other_names_do_not_exist() {
    delta(
        &format!("{SETUP} \n ask cds \n ask cds +pay \n ask eds +web +pay \n change cds pay=2 eds pay=b"),
        expect![[r#"
            change cds web=1 pay=1 eds web=a pay=a lds web=api pay=api rds web=1 pay=1
            auto
            view web
            ask cds
               → CDS 1 @2 [web=1]
            ask cds +pay
               → CDS 2 @2 [] -[pay]
            ask eds +web +pay
               → EDS 3 @2 [web=a] -[pay]
            change cds pay=2 eds pay=b
        "#]],
    );
    sotw(
        &format!("{SETUP} \n ask cds \n ask eds web pay \n ask lds pay web \n change cds pay=2 eds pay=b"),
        expect![[r#"
            change cds web=1 pay=1 eds web=a pay=a lds web=api pay=api rds web=1 pay=1
            auto
            view web
            ask cds
               → CDS 1 @2 [web=1]
            ask eds web pay
               → EDS 2 @2 [pay=∅ web=a]
            ask lds pay web
               → LDS 3 @2 [web=api]
            change cds pay=2 eds pay=b
        "#]],
    );
}

#[test]
fn rule_21_a_wider_view_comes_make_before_break_and_a_narrower_one_the_other_way_round() {
    let script = "ask cds \n ask eds {web} {pay} \n ask lds {web} {pay} \n ask rds {web} {pay}
        view web pay \n view pay \n view";
    delta(
        &format!("{SETUP} \n {}", script.replace("{web}", "+web").replace("{pay}", "+pay")),
        expect![[r#"
        change cds web=1 pay=1 eds web=a pay=a lds web=api pay=api rds web=1 pay=1
        auto
        view web
        ask cds
           → CDS 1 @2 [web=1]
        ask eds +web +pay
           → EDS 2 @2 [web=a] -[pay]
        ask lds +web +pay
           → LDS 3 @2 [web=api] -[pay]
        ask rds +web +pay
           → RDS 4 @2 [web=1] -[pay]
        view web pay
           → CDS 5 @3 [pay=1]
           → EDS 6 @3 [pay=a]
           → LDS 7 @3 [pay=api]
           → RDS 8 @3 [pay=1]
        view pay
           → RDS 9 @4 [] -[web]
           → LDS 10 @4 [] -[web]
           → CDS 11 @4 [] -[web]
           → EDS 12 @4 [web=∅]
           → EDS 13 @4 [] -[web]
        view
           → CDS 14 @5 [web=1]
           → EDS 15 @5 [web=a]
           → LDS 16 @5 [web=api]
           → RDS 17 @5 [web=1]
    "#]],
    );
    sotw(
        &format!("{SETUP} \n {}", script.replace("{web}", "web").replace("{pay}", "pay")),
        expect![[r#"
        change cds web=1 pay=1 eds web=a pay=a lds web=api pay=api rds web=1 pay=1
        auto
        view web
        ask cds
           → CDS 1 @2 [web=1]
        ask eds web pay
           → EDS 2 @2 [pay=∅ web=a]
        ask lds web pay
           → LDS 3 @2 [web=api]
        ask rds web pay
           → RDS 4 @2 [web=1]
        view web pay
           → CDS 5 @3 [pay=1 web=1]
           → EDS 6 @3 [pay=a]
           → LDS 7 @3 [pay=api web=api]
           → RDS 8 @3 [pay=1]
        view pay
           → LDS 9 @4 [pay=api]
           → CDS 10 @4 [pay=1]
           → EDS 11 @4 [web=∅]
        view
           → CDS 12 @5 [pay=1 web=1]
           → EDS 13 @5 [web=a]
           → LDS 14 @5 [pay=api web=api]
           → RDS 15 @5 [web=1]
    "#]],
    );
}

#[test]
fn rule_9_19_a_client_that_comes_back_into_another_view_is_told_what_is_gone() {
    delta(
        &format!("{SETUP} \n ask cds \n reconnect \n view pay \n ask cds known web"),
        expect![[r#"
            change cds web=1 pay=1 eds web=a pay=a lds web=api pay=api rds web=1 pay=1
            auto
            view web
            ask cds
               → CDS 1 @2 [web=1]
            reconnect
            view pay
            ask cds known web
               → CDS 1 @3 [pay=1] -[web]
        "#]],
    );
}
