//! The agent's machine, driven by hand: no process, no socket, no clock.

mod health;

use std::time::Duration;

use nix::sys::signal::Signal;

use crate::agent::client::{Departure, Notice, Ticket, Wish};
use crate::proto;

use super::ending::Ending;
use super::machine::{Effect, Input, Machine, Timer};
use super::tiding::Tiding;
use super::{Plan, PlannedPlace, PlannedPort, ReadyBy, Restart};

const A: Ticket = Ticket(1);

struct World {
    machine: Machine,
    /// What the agent told the user last.
    said: String,
}

impl World {
    fn new(plan: Plan) -> Self {
        let waits = plan.wait.is_some();
        let mut world = Self { machine: Machine::new(plan, None, 1), said: String::new() };
        world.expect(Input::Started, if waits { "arm Welcome 3s, register 1" } else { "register 1" });
        world.expect(Input::Notice(Notice::Connected), "");
        world
    }

    fn starting(plan: Plan) -> Self {
        let mut world = Self::new(plan);
        world.expect(registered(A, 20_001), "disarm Welcome, test ports 20001");
        world.expect(Input::PortsFree, "spawn");
        world
    }

    fn serving(plan: Plan) -> Self {
        let mut world = Self::starting(plan);
        world.expect(Input::Spawned, "watch, arm ReadySlow 10s, arm Ready 300s");
        world.expect(Input::CanServe, "unwatch, disarm ReadySlow, disarm Ready, arm Forgiven 30s, ready");
        world
    }

    /// Gives an input and compares what comes out, in short.
    #[track_caller]
    fn expect(&mut self, input: Input, expected: &str) {
        let mut effects = Vec::new();
        for effect in self.machine.handle(input) {
            if let Effect::Say(text) = effect {
                self.said = text;
            } else {
                effects.push(short(&effect));
            }
        }
        assert_eq!(effects.join(", "), expected, "after it said {:?}", self.said);
    }

    #[track_caller]
    fn said(&self, expected: &str) {
        assert!(self.said.contains(expected), "{}", self.said);
    }
}

fn short(effect: &Effect) -> String {
    match effect {
        Effect::Add(ticket, _) => format!("register {}", ticket.0),
        Effect::Wish(_, wish) => match wish {
            Wish::Starting => "starting".to_owned(),
            Wish::Ready => "ready".to_owned(),
            Wish::Unready { reason } => format!("unready {reason}"),
            Wish::Draining { drain_ms, .. } => format!("draining {drain_ms} ms"),
            Wish::Gone { exit: None } => "gone".to_owned(),
            Wish::Gone { exit: Some(proto::exit::Status::Code(code)) } => format!("gone code {code}"),
            Wish::Gone { exit: Some(proto::exit::Status::Signal(signal)) } => format!("gone signal {signal}"),
        },
        Effect::ReportBusy(port) => format!("busy {port}"),
        Effect::Judge(_, source, opinion) => {
            let reason = if opinion.reason.is_empty() { "" } else { ": " };
            format!("{source} {:?}{reason}{}", opinion.verdict, opinion.reason)
        }
        Effect::TestPorts(assignment) => {
            let ports = assignment.places().into_iter().map(|place| place.told());
            format!("test ports {}", ports.collect::<Vec<_>>().join(" "))
        }
        Effect::Spawn(_) => "spawn".to_owned(),
        Effect::Watch(_) => "watch".to_owned(),
        Effect::Measure => "measure".to_owned(),
        Effect::Unwatch => "unwatch".to_owned(),
        Effect::Signal(signal) => signal.to_string(),
        Effect::Arm(Timer::Restart, _) => "arm Restart".to_owned(),
        Effect::Arm(timer, after) => format!("arm {timer:?} {}s", after.as_secs()),
        Effect::Disarm(timer) => format!("disarm {timer:?}"),
        Effect::Say(text) => text.clone(),
        Effect::Finish(code) => format!("finish {code}"),
    }
}

fn plan() -> Plan {
    Plan::of(&["server"])
}

fn registered(ticket: Ticket, port: u32) -> Input {
    let port = proto::Port {
        name: "http".to_owned(),
        number: Some(port),
        address: "127.0.0.1".to_owned(),
        path: String::new(),
    };
    let worker = proto::WorkerRef { generation: 7, ..Default::default() };
    Input::Notice(Notice::Registered { ticket, worker, ports: vec![port] })
}

fn refused(code: &str) -> Input {
    let refusal = proto::Rejected { code: code.to_owned(), ..Default::default() };
    Input::Notice(Notice::Refused { ticket: A, refusal, retry: Duration::from_secs(1) })
}

fn gone(cause: Departure) -> Input {
    Input::Notice(Notice::Gone { ticket: A, cause })
}

fn lost() -> Input {
    Input::Notice(Notice::Disconnected { problem: "reset".to_owned(), retry: Duration::from_secs(1) })
}

const QUIET: &str = "unwatch, disarm ReadySlow, disarm Ready";
const END: &str = "disarm Forgiven, disarm Watchdog, disarm Measure, disarm Stop";
const HALT: &str = "disarm Drain, disarm Watchdog";
const LEAVE: &str = "disarm Welcome, disarm Drain, disarm Stop, disarm Restart";
const FAREWELL: &str = "arm Farewell 2s";

#[test]
fn the_end_of_the_child_is_told_with_its_exit_code_which_becomes_the_agents() {
    for (ending, told, code) in [
        (Ending::Exited(0), "gone code 0", 0),
        (Ending::Exited(3), "gone code 3", 3),
        (Ending::Killed(9), "gone signal 9", 137),
    ] {
        let mut world = World::serving(plan());
        let expected = format!("SIGTERM, {QUIET}, {END}, {LEAVE}, {told}, {FAREWELL}");
        world.expect(Input::Exited(ending), &expected);
        world.expect(gone(Departure::Wished), &format!("finish {code}"));
    }
}

#[test]
fn a_goodbye_that_nobody_answers_does_not_hold_the_agent() {
    let mut world = World::serving(plan());
    world.machine.handle(Input::Exited(Ending::Exited(3)));
    world.expect(Input::Rang(Timer::Farewell), "finish 3");
}

#[test]
fn a_port_that_a_stranger_uses_is_given_back_for_another() {
    let mut world = World::new(plan());
    world.machine.handle(registered(A, 20_001));
    world.expect(Input::PortTaken(20_001), "busy 20001, gone, register 2");
    world.said("port 20001 is in use");
    world.expect(gone(Departure::Wished), "");
    world.expect(registered(Ticket(2), 20_002), "disarm Welcome, test ports 20002");
}

#[test]
fn a_port_that_was_asked_for_by_number_and_is_in_use_ends_the_agent() {
    let fixed = PlannedPort { name: "http".to_owned(), place: PlannedPlace::Port(8080) };
    let mut world = World::new(Plan { ports: vec![fixed], ..plan() });
    world.machine.handle(registered(A, 8080));
    world.expect(Input::PortTaken(8080), &format!("{LEAVE}, gone, {FAREWELL}"));
    world.said("port 8080 is in use by another program");
    world.expect(gone(Departure::Wished), "finish 1");
}

#[test]
fn strangers_on_every_port_do_not_keep_the_agent_for_ever() {
    let mut world = World::new(plan());
    for attempt in 1..16 {
        world.machine.handle(registered(Ticket(attempt), 20_001));
        world.expect(Input::PortTaken(20_001), &format!("busy 20001, gone, register {}", attempt + 1));
    }
    world.machine.handle(registered(Ticket(16), 20_001));
    world.expect(Input::PortTaken(20_001), &format!("{LEAVE}, gone, {FAREWELL}"));
}

#[test]
fn a_refused_registration_ends_the_agent_with_the_reason() {
    for (code, exit) in [("invalid_argument", 1), ("ports_exhausted", 1), ("permission_denied", 4)] {
        World::new(plan()).expect(refused(code), &format!("{LEAVE}, finish {exit}"));
    }
    World::new(plan()).expect(refused("storage_unavailable"), "");
}

#[test]
fn a_control_plane_that_never_answers_is_given_up_after_the_bound() {
    let mut world = World::new(Plan { wait: Some(Duration::from_secs(3)), ..plan() });
    world.expect(Input::Rang(Timer::Welcome), &format!("{LEAVE}, gone, {FAREWELL}"));
    world.expect(gone(Departure::Wished), "finish 5");
}

#[test]
fn a_child_that_may_serve_at_once_is_ready_at_once() {
    let mut world = World::starting(Plan { ready: ReadyBy::Now, ..plan() });
    world.expect(Input::Spawned, &format!("{QUIET}, arm Forgiven 30s, ready"));
}

#[test]
fn a_child_that_is_never_ready_is_stopped_and_that_is_a_fault() {
    let mut world = World::starting(plan());
    world.machine.handle(Input::Spawned);
    world.expect(Input::Rang(Timer::ReadySlow), "");
    world.said("once it listens on all its ports");
    let stopping = format!("{QUIET}, {HALT}, SIGTERM, arm Stop 10s");
    world.expect(Input::Rang(Timer::Ready), &stopping);
    world.machine.handle(Input::Exited(Ending::Killed(15)));
    world.expect(gone(Departure::Wished), "finish 1");
}

#[test]
fn a_child_that_tells_is_ready_when_it_says_so_and_unready_when_it_says_so() {
    let mut world = World::starting(Plan { ready: ReadyBy::Telling, ..plan() });
    world.expect(Input::Spawned, "arm ReadySlow 10s, arm Ready 300s");
    world.expect(Input::Told(vec![Tiding::Unready("early".to_owned()), Tiding::Alive]), "");
    world.expect(Input::Told(vec![Tiding::Ready]), &format!("{QUIET}, arm Forgiven 30s, ready"));
    world.expect(Input::Told(vec![Tiding::Unready("db".to_owned())]), "unready db");
    world.expect(Input::Told(vec![Tiding::Ready]), "ready");
    world.expect(Input::Told(vec![Tiding::Stopping]), &format!("draining 5000 ms, {QUIET}, arm Drain 5s"));
    world.expect(Input::Told(vec![Tiding::Ready]), "");
}

#[test]
fn a_child_that_listens_is_not_ready_because_it_says_so() {
    let mut world = World::starting(plan());
    world.machine.handle(Input::Spawned);
    world.expect(Input::Told(vec![Tiding::Ready]), "");
}

#[test]
fn a_child_that_shows_no_sign_of_life_is_unready_then_aborted_then_killed() {
    let watchdog = Some(Duration::from_secs(4));
    let mut world =
        World::starting(Plan { watchdog, ready: ReadyBy::Now, restart: Restart::OnFailure, ..plan() });
    world.expect(Input::Spawned, &format!("{QUIET}, arm Forgiven 30s, ready, arm Watchdog 4s"));
    world.expect(Input::Told(vec![Tiding::Alive]), "arm Watchdog 4s");
    let aborted = "unready no sign of life within its watchdog's time, SIGABRT, arm Stop 10s";
    world.expect(Input::Rang(Timer::Watchdog), aborted);
    world.expect(Input::Rang(Timer::Stop), "SIGKILL");
    let restarted =
        format!("SIGTERM, {QUIET}, {END}, unready was killed by SIGKILL; restarting, arm Restart");
    world.expect(Input::Exited(Ending::Killed(9)), &restarted);
}

#[test]
fn asked_to_stop_it_drains_then_asks_then_kills() {
    let mut world = World::serving(plan());
    world.expect(Input::Stop(Signal::SIGTERM), &format!("draining 5000 ms, {QUIET}, arm Drain 5s"));
    world.expect(Input::Rang(Timer::Drain), &format!("{QUIET}, {HALT}, SIGTERM, arm Stop 10s"));
    world.expect(Input::Rang(Timer::Stop), "SIGKILL");
    world.machine.handle(Input::Exited(Ending::Killed(9)));
    world.expect(gone(Departure::Wished), "finish 137");
}

#[test]
fn each_further_signal_shortens_the_stop() {
    let mut world = World::serving(plan());
    world.machine.handle(Input::Stop(Signal::SIGINT));
    world.expect(Input::Stop(Signal::SIGINT), &format!("{QUIET}, {HALT}, SIGINT, arm Stop 10s"));
    world.expect(Input::Stop(Signal::SIGINT), "SIGKILL");
}

#[test]
fn nobody_drains_who_gets_no_requests_or_whose_proxies_cannot_hear_of_it() {
    let stopping = format!("{QUIET}, {HALT}, SIGTERM, arm Stop 10s");
    let mut world = World::starting(plan());
    world.machine.handle(Input::Spawned);
    world.expect(Input::Stop(Signal::SIGTERM), &stopping);
    let mut world = World::serving(plan());
    world.machine.handle(lost());
    world.expect(Input::Stop(Signal::SIGTERM), &stopping);
}

#[test]
fn stopped_before_there_is_a_child_it_ends_as_if_killed_by_the_signal() {
    let mut world = World::new(plan());
    world.expect(Input::Stop(Signal::SIGTERM), &format!("{LEAVE}, gone, {FAREWELL}"));
    world.expect(gone(Departure::Wished), "finish 143");
}

#[test]
fn orders_of_the_control_plane_are_obeyed() {
    let mut world = World::serving(plan());
    let order = Notice::Draining { ticket: A, drain_ms: 700 };
    world.expect(Input::Notice(order), &format!("{QUIET}, arm Drain 0s"));
    let stopping = format!("{QUIET}, {HALT}, SIGTERM, arm Stop 10s");
    world.expect(gone(Departure::Stopped { cause: "drained".to_owned() }), &stopping);
    world.said("drained");
    let expected = format!("SIGTERM, {QUIET}, {END}, {LEAVE}, finish 0");
    world.expect(Input::Exited(Ending::Exited(0)), &expected);
}

#[test]
fn a_worker_that_was_replaced_stops() {
    let mut world = World::serving(plan());
    world.expect(gone(Departure::Replaced), &format!("{QUIET}, {HALT}, SIGTERM, arm Stop 10s"));
    world.said("another worker registered under its name");
}

#[test]
fn the_child_runs_on_while_the_control_plane_is_away() {
    let mut world = World::serving(plan());
    world.expect(lost(), "");
    world.said("the worker runs on");
    world.expect(Input::Notice(Notice::Connected), "");
    world.said("reached the control plane");
    world.expect(registered(A, 20_001), "disarm Welcome");
    world.said("registered anew");
}

#[test]
fn a_child_that_fails_is_started_again_on_the_same_ports_each_time_later() {
    let mut world = World::serving(Plan { restart: Restart::OnFailure, ..plan() });
    let mut waits = Vec::new();
    for _ in 0..6 {
        let effects = world.machine.handle(Input::Exited(Ending::Exited(3)));
        assert!(
            effects.iter().any(|effect| short(effect) == "unready exited with code 3; restarting"),
            "{effects:?}"
        );
        let wait = |effect: &Effect| {
            if let Effect::Arm(Timer::Restart, wait) = effect { Some(*wait) } else { None }
        };
        waits.push(effects.iter().find_map(wait).unwrap());
        world.expect(Input::Rang(Timer::Restart), "SIGKILL, spawn");
        world.machine.handle(Input::Spawned);
        world.machine.handle(Input::CanServe);
    }
    assert!(waits[5] > waits[0] * 4, "{waits:?}");
    let expected = format!("SIGTERM, {QUIET}, {END}, {LEAVE}, gone code 0, {FAREWELL}");
    world.expect(Input::Exited(Ending::Exited(0)), &expected);
}

#[test]
fn asked_to_stop_between_two_children_it_starts_no_third() {
    let mut world = World::serving(Plan { restart: Restart::Always, ..plan() });
    world.machine.handle(Input::Exited(Ending::Exited(0)));
    world.expect(Input::Stop(Signal::SIGTERM), &format!("{LEAVE}, gone, {FAREWELL}"));
}

#[test]
fn signals_that_are_the_childs_business_reach_its_group() {
    World::serving(plan()).expect(Input::Pass(Signal::SIGHUP), "SIGHUP");
}

#[test]
fn a_program_that_does_not_exist_ends_the_agent_as_a_shell_would() {
    let missing = Ending::not_run("nowhere", &std::io::ErrorKind::NotFound.into());
    let mut world = World::starting(plan());
    let expected = format!("SIGTERM, {QUIET}, {END}, {LEAVE}, gone code 127, {FAREWELL}");
    world.expect(Input::NotSpawned(missing), &expected);
}
