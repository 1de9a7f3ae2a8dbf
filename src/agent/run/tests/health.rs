//! What the child says of itself, what is measured of it, and what of that becomes an event.

use std::time::Duration;

use super::*;
use crate::agent::client::Opinion;
use crate::agent::run::monitor::{Memory, Sample};
use crate::agent::run::tiding::{Load, Source};
use crate::agent::run::{MemoryMax, Thresholds};
use crate::proto::Verdict;

fn told(tiding: Tiding) -> Input {
    Input::Told(vec![tiding])
}

fn status(text: &str) -> Input {
    told(Tiding::Status(text.to_owned()))
}

fn thinks(source: Source, verdict: Verdict, reason: &str) -> Input {
    told(Tiding::Health(source, Opinion { verdict, reason: reason.to_owned() }))
}

fn db() -> Source {
    Source::Custom("db".to_owned())
}

#[test]
fn a_child_that_takes_too_much_memory_is_unhealthy_until_it_gives_it_back() {
    let thresholds = Thresholds { memory: Some(MemoryMax::Bytes(100)), ..Thresholds::default() };
    let mut world = World::starting(Plan { thresholds, ready: ReadyBy::Now, ..plan() });
    world.expect(Input::Spawned, &format!("arm Measure 1s, {QUIET}, arm Forgiven 30s, ready"));
    world.expect(Input::Rang(Timer::Measure), "measure, arm Measure 1s");
    let measured = |taken| {
        let memory = Some(Memory { taken, max: 100 });
        Input::Measured(Sample { at: Duration::ZERO, memory, cpu: Duration::ZERO })
    };
    world.expect(measured(100), "arm Reports 1s, memory Unhealthy: 0 MiB of 0 MiB");
    world.expect(measured(120), "");
    world.expect(Input::Rang(Timer::Reports), "");
    world.expect(measured(80), "arm Reports 1s, memory Healthy");
}

#[test]
fn a_share_of_no_limit_is_said_once_and_is_no_verdict() {
    let thresholds = Thresholds { memory: Some(MemoryMax::PercentOfLimit(80)), ..Thresholds::default() };
    let mut world = World::starting(Plan { thresholds, ready: ReadyBy::Now, ..plan() });
    world.machine.handle(Input::Spawned);
    let unlimited = || Input::Measured(Sample { at: Duration::ZERO, memory: None, cpu: Duration::ZERO });
    world.expect(unlimited(), "");
    world.said("no memory limit applies");
    world.said.clear();
    world.expect(unlimited(), "");
    assert_eq!(world.said, "");
}

#[test]
fn a_part_of_the_child_that_is_not_well_is_told_by_its_name() {
    let mut world = World::serving(plan());
    let ill = thinks(db(), Verdict::Unhealthy, "no answer");
    world.expect(ill.clone(), "arm Reports 1s, custom:db Unhealthy: no answer");
    world.said("custom:db is unhealthy: no answer");
    world.expect(ill, "");
    world.expect(Input::Rang(Timer::Reports), "");
    world.expect(thinks(db(), Verdict::Healthy, ""), "arm Reports 1s, custom:db Healthy");
}

#[test]
fn a_child_that_changes_its_mind_all_the_time_is_told_of_once_a_second() {
    let mut world = World::serving(plan());
    world.machine.handle(thinks(db(), Verdict::Unhealthy, "0"));
    for number in 1..100 {
        world.expect(thinks(db(), Verdict::Unhealthy, &number.to_string()), "");
    }
    world.expect(Input::Rang(Timer::Reports), "custom:db Unhealthy: 99, arm Reports 1s");
    world.expect(Input::Rang(Timer::Reports), "");
}

#[test]
fn a_status_is_told_while_all_is_well_and_at_most_every_ten_seconds() {
    let mut world = World::serving(plan());
    world.expect(status("warming up"), "arm Status 10s, arm Reports 1s, worker Healthy: warming up");
    world.said("the worker says: warming up");
    world.expect(Input::Rang(Timer::Reports), "");
    world.expect(status("warm"), "");
    world.expect(status("hot"), "");
    world.expect(Input::Rang(Timer::Status), "arm Status 10s, arm Reports 1s, worker Healthy: hot");
    world.expect(Input::Rang(Timer::Status), "");
    world.machine.handle(Input::Rang(Timer::Reports));
    let ill = thinks(Source::Worker, Verdict::Degraded, "cache is cold");
    world.expect(ill, "arm Reports 1s, worker Degraded: cache is cold");
    world.machine.handle(Input::Rang(Timer::Reports));
    world.expect(status("still cold"), "arm Status 10s");
    world.expect(thinks(Source::Worker, Verdict::Healthy, ""), "arm Reports 1s, worker Healthy: still cold");
}

#[test]
fn a_busy_child_is_degraded_and_says_what_it_served_at_its_end() {
    let thresholds = Thresholds { requests: Some(10), ..Thresholds::default() };
    let mut world = World::serving(Plan { thresholds, ..plan() });
    let load = |active, total| {
        let (requests_active, requests_total) = (Some(active), Some(total));
        told(Tiding::Load(Load { requests_active, requests_total, ..Load::default() }))
    };
    world.expect(load(9, 100), "");
    world.expect(load(10, 200), "arm Reports 1s, utilization Degraded: 10 requests of 10");
    world.machine.handle(Input::Rang(Timer::Reports));
    world.expect(load(8, 300), "arm Reports 1s, utilization Healthy");
    let effects = world.machine.handle(Input::Exited(Ending::Exited(0)));
    assert!(effects.contains(&Effect::Say("the worker served 300 requests".to_owned())), "{effects:?}");
}

#[test]
fn a_child_that_ends_again_and_again_is_degraded_then_unhealthy_until_it_has_lasted() {
    let mut world = World::serving(Plan { restart: Restart::OnFailure, ..plan() });
    let mut seen = Vec::new();
    for _ in 0..6 {
        let effects = world.machine.handle(Input::Exited(Ending::Exited(3)));
        let judged = effects.iter().find(|effect| matches!(effect, Effect::Judge(..))).map(short);
        seen.push(judged.unwrap_or_default());
        world.machine.handle(Input::Rang(Timer::Reports));
        world.machine.handle(Input::Rang(Timer::Restart));
        world.machine.handle(Input::Spawned);
        world.machine.handle(Input::CanServe);
    }
    let degraded =
        |ends: u32| format!("process Degraded: ended {ends} times in a row, at last it exited with code 3");
    let unhealthy =
        |ends: u32| format!("process Unhealthy: ended {ends} times in a row, at last it exited with code 3");
    assert_eq!(seen, [String::new(), degraded(2), degraded(3), degraded(4), unhealthy(5), unhealthy(6)]);
    world.expect(Input::Rang(Timer::Forgiven), "arm Reports 1s, process Healthy");
    let effects = world.machine.handle(Input::Exited(Ending::Exited(3)));
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Judge(..))), "{effects:?}");
}

#[test]
fn the_next_child_starts_without_the_words_of_the_one_before() {
    let mut world = World::serving(Plan { restart: Restart::Always, ..plan() });
    world.machine.handle(thinks(db(), Verdict::Unhealthy, "no answer"));
    world.machine.handle(status("busy"));
    world.machine.handle(Input::Rang(Timer::Reports));
    let effects = world.machine.handle(Input::Exited(Ending::Exited(0)));
    let told: Vec<String> = effects.iter().map(short).filter(|effect| effect.contains("Healthy")).collect();
    assert_eq!(told, ["custom:db Healthy", "worker Healthy"]);
}

#[test]
fn a_child_that_knows_that_it_is_stuck_is_aborted_where_there_is_a_watchdog() {
    World::serving(plan()).expect(told(Tiding::Stuck), "");
    let watchdog = Some(Duration::from_secs(4));
    let mut world = World::starting(Plan { watchdog, ready: ReadyBy::Now, ..plan() });
    world.machine.handle(Input::Spawned);
    let aborted = "unready no sign of life within its watchdog's time, SIGABRT, arm Stop 10s";
    world.expect(told(Tiding::Stuck), aborted);
}

#[test]
fn who_says_in_one_message_that_it_can_serve_and_is_not_well_is_not_well_first() {
    let mut world = World::starting(Plan { ready: ReadyBy::Telling, ..plan() });
    world.machine.handle(Input::Spawned);
    let Input::Told(ill) = thinks(db(), Verdict::Unhealthy, "") else { panic!("no message") };
    let message = Input::Told([vec![Tiding::Ready], ill].concat());
    let expected = format!("arm Reports 1s, custom:db Unhealthy, {QUIET}, arm Forgiven 30s, ready");
    world.expect(message, &expected);
}

#[test]
fn what_cannot_be_read_is_shown_to_the_user() {
    let mut world = World::serving(plan());
    world.expect(told(Tiding::Unclear("X_FOLDPLANE_HEALTH=ill".to_owned())), "");
    world.said("X_FOLDPLANE_HEALTH=ill");
}
