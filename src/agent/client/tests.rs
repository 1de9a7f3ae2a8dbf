//! The session's machine, driven by hand: no socket, no clock.

use std::time::Duration;

use crate::proto::{self, answer::Result as Outcome, attach_request::Request, attach_response::Response};

use super::machine::{Effect, IN_FLIGHT_MAX, Input, Machine};
use super::{Departure, Notice, Opinion, Ticket, Wish};

const A: Ticket = Ticket(1);

struct World {
    machine: Machine,
    now: Duration,
    /// Requests that were sent and not answered.
    sent: Vec<proto::AttachRequest>,
    notices: Vec<Notice>,
    opens: u32,
    closes: u32,
}

impl World {
    fn new() -> Self {
        Self::on(None)
    }

    fn on(host: Option<proto::ReportHost>) -> Self {
        let machine = Machine::new(1, host);
        Self { machine, now: Duration::ZERO, sent: Vec::new(), notices: Vec::new(), opens: 0, closes: 0 }
    }

    /// A session that is open and speaks for worker `a`, whose registration is @7.
    fn registered() -> Self {
        let mut world = Self::new();
        world.give(Input::Woken);
        world.give(Input::Add(A, register("a")));
        world.give(Input::Opened);
        world.accept_registration(7);
        world.notices.clear();
        world
    }

    fn give(&mut self, input: Input) {
        for effect in self.machine.handle(self.now, input) {
            match effect {
                Effect::Open => self.opens += 1,
                Effect::Close => self.closes += 1,
                Effect::Send(request) => self.sent.push(request),
                Effect::Tell(notice) => self.notices.push(notice),
            }
        }
    }

    fn hear(&mut self, response: Response) {
        self.give(Input::Heard(proto::AttachResponse { response: Some(response) }));
    }

    fn lose(&mut self) {
        self.sent.clear();
        self.give(Input::Lost("reset".to_owned()));
    }

    fn reopen(&mut self) {
        self.now = self.machine.deadline().unwrap();
        self.give(Input::Woken);
        self.give(Input::Opened);
    }

    fn answer(&mut self, result: Outcome) {
        let request_id = self.sent.remove(0).request_id;
        self.hear(Response::Answer(proto::Answer { request_id, result: Some(result) }));
    }

    fn accept(&mut self, offset: u64) {
        self.answer(Outcome::Accepted(proto::Accepted { offset, registered: None }));
    }

    fn accept_registration(&mut self, generation: u64) {
        let Some(Request::Register(register)) = &self.sent[0].request else { panic!("{:?}", self.sent) };
        let worker = worker(&register.id, generation);
        let number = register.ports[0].number.unwrap_or(20_001);
        let port = proto::Port { number: Some(number), ..register.ports[0].clone() };
        let registered = proto::Registered { worker: Some(worker), ports: vec![port] };
        self.answer(Outcome::Accepted(proto::Accepted { offset: generation, registered: Some(registered) }));
    }

    fn reject(&mut self, code: &str) {
        let refusal = proto::Rejected { code: code.to_owned(), ..Default::default() };
        self.answer(Outcome::Rejected(refusal));
    }

    fn order_stop(&mut self, worker: proto::WorkerRef) {
        let stop = proto::order::Order::Stop(proto::StopOrder { cause: "drained".to_owned() });
        self.hear(Response::Order(proto::Order { worker: Some(worker), order: Some(stop) }));
    }

    /// The one request that waits for an answer, in short.
    #[track_caller]
    fn asks(&self, expected: &str) {
        let asked: Vec<String> = self.sent.iter().map(|sent| short(sent.request.as_ref().unwrap())).collect();
        assert_eq!(asked.join(", "), expected);
    }
}

fn register(id: &str) -> proto::Register {
    proto::Register {
        service: "pay".to_owned(),
        host: "h".to_owned(),
        id: id.to_owned(),
        ports: vec![proto::Port { name: "http".to_owned(), ..proto::Port::default() }],
        readiness: proto::Readiness::Reported.into(),
        ..Default::default()
    }
}

fn worker(id: &str, generation: u64) -> proto::WorkerRef {
    proto::WorkerRef { service: "pay".to_owned(), host: "h".to_owned(), id: id.to_owned(), generation }
}

fn short(request: &Request) -> String {
    let at = |worker: &Option<proto::WorkerRef>| format!("@{}", worker.as_ref().unwrap().generation);
    match request {
        Request::Register(register) => match register.ports[0].number {
            Some(number) => format!("register {} on {number}", register.id),
            None => format!("register {}", register.id),
        },
        Request::Rejoin(rejoin) => format!("rejoin {}", at(&rejoin.worker)),
        Request::Ready(ready) => format!("ready {}", at(&ready.worker)),
        Request::Unready(unready) => format!("unready {} {}", at(&unready.worker), unready.reason),
        Request::Drain(drain) => format!("drain {}", at(&drain.worker)),
        Request::Deregister(leave) => format!("deregister {} {:?}", at(&leave.worker), leave.exit),
        Request::ReportHost(_) => "report host".to_owned(),
        Request::ReportHealth(report) => format!("report {}", at(&report.worker)),
        Request::Reweight(reweight) => format!("reweight {}", at(&reweight.worker)),
        Request::ReportBusyPort(busy) => format!("busy {}", busy.port),
    }
}

#[test]
fn what_is_wished_is_sent_once_and_told_when_durable() {
    let mut world = World::registered();
    world.asks("");
    world.give(Input::Wish(A, Wish::Ready));
    world.asks("ready @7");
    world.accept(9);
    assert_eq!(world.notices, [Notice::Reported { ticket: A, wish: Wish::Ready, offset: 9 }]);
    world.give(Input::Wish(A, Wish::Ready));
    world.asks("");
}

#[test]
fn the_latest_wish_wins_while_an_answer_is_awaited() {
    let mut world = World::registered();
    world.give(Input::Wish(A, Wish::Ready));
    world.give(Input::Wish(A, Wish::Unready { reason: "one".to_owned() }));
    world.give(Input::Wish(A, Wish::Unready { reason: "two".to_owned() }));
    world.accept(9);
    world.asks("unready @7 two");
}

#[test]
fn a_lost_session_rejoins_with_its_generation_and_repeats_only_what_is_in_doubt() {
    let mut world = World::registered();
    world.give(Input::Wish(A, Wish::Ready));
    world.lose();
    world.reopen();
    world.asks("rejoin @7");
    world.accept(10);
    world.asks("ready @7");
    world.accept(11);
    world.lose();
    world.reopen();
    world.asks("rejoin @7");
    world.accept(12);
    world.asks("");
}

// hashicorp/nomad#26424
#[test]
fn a_worker_that_was_removed_meanwhile_registers_anew_on_the_ports_that_it_has() {
    let mut world = World::registered();
    world.give(Input::Wish(A, Wish::Ready));
    world.accept(9);
    world.lose();
    world.reopen();
    world.reject("unknown_worker");
    world.asks("register a on 20001");
    world.accept_registration(40);
    world.asks("ready @40");
}

// kumahq/kuma#1738
#[test]
fn a_worker_that_was_replaced_is_left_alone() {
    let mut world = World::registered();
    world.lose();
    world.reopen();
    world.reject("stale_generation");
    world.asks("");
    assert_eq!(world.notices.last(), Some(&Notice::Gone { ticket: A, cause: Departure::Replaced }));
    world.give(Input::Wish(A, Wish::Ready));
    world.asks("");
}

#[test]
fn what_the_host_lends_is_told_before_the_first_registration_of_each_session() {
    let mut world = World::on(Some(proto::ReportHost::default()));
    world.give(Input::Woken);
    world.give(Input::Add(A, register("a")));
    world.give(Input::Opened);
    world.asks("report host, register a");
    world.reject("invalid_argument");
    assert!(matches!(world.notices.last(), Some(Notice::HostRefused { .. })), "{:?}", world.notices);
    world.accept_registration(7);
    world.lose();
    world.reopen();
    world.asks("report host, rejoin @7");
}

#[test]
fn a_registration_whose_answer_was_lost_is_asked_again() {
    let mut world = World::new();
    world.give(Input::Woken);
    world.give(Input::Add(A, register("a")));
    world.asks("");
    world.give(Input::Opened);
    world.asks("register a");
    world.lose();
    world.reopen();
    world.asks("register a");
}

#[test]
fn a_refused_request_is_asked_again_later_each_time_later() {
    let mut world = World::registered();
    world.give(Input::Wish(A, Wish::Ready));
    let mut waits = Vec::new();
    for _ in 0..3 {
        world.reject("storage_unavailable");
        world.asks("");
        let Some(Notice::Refused { retry, .. }) = world.notices.last() else { panic!("{:?}", world.notices) };
        waits.push(*retry);
        assert_eq!(world.machine.deadline(), Some(world.now + *retry));
        world.now += *retry;
        world.give(Input::Woken);
        world.asks("ready @7");
    }
    assert!(waits[2] > waits[0], "{waits:?}");
}

#[test]
fn a_new_wish_does_not_wait_for_the_retry_of_the_old_one() {
    let mut world = World::registered();
    world.give(Input::Wish(A, Wish::Ready));
    world.reject("storage_unavailable");
    world.give(Input::Wish(A, Wish::Gone { exit: None }));
    world.asks("deregister @7 None");
    world.accept(9);
    assert_eq!(world.notices.last(), Some(&Notice::Gone { ticket: A, cause: Departure::Wished }));
    assert_eq!(world.machine.deadline(), None);
}

#[test]
fn goodbye_is_said_also_when_the_session_was_away() {
    let mut world = World::registered();
    world.lose();
    let exit = Some(proto::exit::Status::Signal(9));
    world.give(Input::Wish(A, Wish::Gone { exit }));
    world.reopen();
    world.asks("rejoin @7");
    world.accept(12);
    world.asks("deregister @7 Some(Exit { status: Some(Signal(9)) })");
}

#[test]
fn a_worker_that_is_draining_or_gone_is_not_registered_anew() {
    let drain = Wish::Draining { reason: "x".to_owned(), drain_ms: 5 };
    for wish in [drain, Wish::Gone { exit: None }] {
        let mut world = World::registered();
        world.give(Input::Wish(A, wish));
        world.reject("unknown_worker");
        world.asks("");
        assert_eq!(world.notices, [Notice::Gone { ticket: A, cause: Departure::Wished }]);
    }
}

fn unhealthy(reason: &str) -> Opinion {
    Opinion { verdict: proto::Verdict::Unhealthy, reason: reason.to_owned() }
}

#[test]
fn opinions_and_weight_are_sent_when_they_change_and_again_to_who_lost_them() {
    let mut world = World::registered();
    let judge = |opinion| Input::Judge(A, "memory".to_owned(), opinion);
    world.give(judge(Opinion::healthy()));
    world.asks("");
    world.give(judge(unhealthy("full")));
    world.give(Input::Weigh(A, Some(3)));
    world.asks("report @7");
    world.accept(9);
    world.asks("reweight @7");
    world.lose();
    world.reopen();
    world.accept(10);
    world.asks("reweight @7");
    world.accept(11);
    world.give(judge(unhealthy("full")));
    world.asks("");
    world.lose();
    world.reopen();
    world.reject("unknown_worker");
    world.accept_registration(20);
    world.asks("report @20");
    world.accept(21);
    world.give(judge(Opinion::healthy()));
    world.asks("report @20");
}

#[test]
fn a_strangers_port_is_told_before_another_is_asked_for() {
    let mut world = World::registered();
    world.give(Input::Busy(proto::ReportBusyPort { host: "h".to_owned(), port: 20_001 }));
    world.give(Input::Wish(A, Wish::Gone { exit: None }));
    world.give(Input::Add(Ticket(2), register("a")));
    world.asks("busy 20001, deregister @7 None, register a");
}

#[test]
fn an_order_for_an_earlier_registration_is_not_obeyed() {
    let mut world = World::registered();
    world.order_stop(worker("a", 6));
    assert_eq!(world.notices, []);
    world.order_stop(worker("a", 7));
    let cause = Departure::Stopped { cause: "drained".to_owned() };
    assert_eq!(world.notices, [Notice::Gone { ticket: A, cause }]);
}

#[test]
fn answers_out_of_order_end_the_session_and_start_another() {
    let mut world = World::registered();
    world.give(Input::Wish(A, Wish::Ready));
    world.hear(Response::Answer(proto::Answer { request_id: 99, result: None }));
    assert_eq!(world.closes, 1);
    world.reopen();
    world.sent.remove(0);
    world.asks("rejoin @7");
}

#[test]
fn a_supervisor_of_many_never_has_more_unanswered_than_the_queue_holds() {
    let mut world = World::new();
    world.give(Input::Woken);
    for number in 0..1000 {
        world.give(Input::Add(Ticket(number), register(&format!("w{number}"))));
    }
    world.give(Input::Opened);
    for generation in 1..=1000 {
        assert!(world.sent.len() <= IN_FLIGHT_MAX);
        world.accept_registration(generation);
    }
    world.asks("");
    let registered =
        world.notices.iter().filter(|notice| matches!(notice, Notice::Registered { .. })).count();
    assert_eq!(registered, 1000);
}

#[test]
fn a_control_plane_that_is_away_is_tried_again_and_each_wait_is_bounded() {
    let mut world = World::new();
    world.give(Input::Woken);
    for _ in 0..50 {
        world.lose();
        let wait = world.machine.deadline().unwrap() - world.now;
        assert!(wait <= Duration::from_secs(10), "{wait:?}");
        world.now += wait;
        world.give(Input::Woken);
    }
    assert_eq!(world.opens, 51);
}
