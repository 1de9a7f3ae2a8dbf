//! The session as a pure machine: what happens goes in, what to do comes out. It reads no clock and touches no
//! socket.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use crate::agent::backoff::Backoff;
use crate::proto::{self, answer::Result as Outcome, attach_request::Request, order::Order as Demand};

use super::slot::{Ask, Slot};
use super::{Departure, Notice, Opinion, Ticket, Wish};

/// Unanswered requests at one time: enough to fill a group commit, few enough that a lost session repeats little.
pub(super) const IN_FLIGHT_MAX: usize = 256;

/// The first wait after a lost connection: a control plane that restarts is back within a second.
const RECONNECT_FIRST: Duration = Duration::from_millis(50);

/// The longest wait: well below the rejoin grace of 30 s, so that a worker whose control plane restarted is not
/// removed because its agent was asleep. Chance at most doubles it.
const RECONNECT_LONGEST: Duration = Duration::from_secs(5);

/// The first wait before a refused request is repeated.
const ASK_AGAIN_FIRST: Duration = Duration::from_millis(200);

/// The longest wait before a refused request is repeated: ports come out of quarantine after 30 s.
const ASK_AGAIN_LONGEST: Duration = Duration::from_secs(15);

/// What happens to a session.
#[derive(Clone, Debug)]
pub(super) enum Input {
    /// The owner hands over a worker.
    Add(Ticket, proto::Register),
    /// The owner wants something else of a worker.
    Wish(Ticket, Wish),
    /// The owner passes on what a source thinks of a worker.
    Judge(Ticket, String, Opinion),
    /// The owner wants another share of the load for a worker.
    Weigh(Ticket, Option<u32>),
    /// The owner found a stranger on a port.
    Busy(proto::ReportBusyPort),
    /// The stream is open.
    Opened,
    /// The stream ended, or could not be opened.
    Lost(String),
    /// The control plane said something.
    Heard(proto::AttachResponse),
    /// Time passed.
    Woken,
}

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Effect {
    /// Open the stream.
    Open,
    /// Send this; there is room for [`IN_FLIGHT_MAX`].
    Send(proto::AttachRequest),
    /// Drop the stream: the other side does not keep to the protocol.
    Close,
    /// Tell the owner.
    Tell(Notice),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    Down { until: Duration },
    Opening,
    Open,
}

/// What a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About {
    Host,
    Stranger,
    Worker(Ticket),
}

/// All workers of one session.
#[derive(Debug)]
pub(super) struct Machine {
    slots: BTreeMap<Ticket, Slot>,
    /// Who may have something to ask.
    todo: BTreeSet<Ticket>,
    /// Who was refused and asks again at that time.
    later: BTreeSet<(Duration, Ticket)>,
    in_flight: VecDeque<(u64, About)>,
    /// What the owner's host lends; told at the start of each session.
    host: Option<proto::ReportHost>,
    /// Whether it is to be told before anything else is asked.
    host_untold: bool,
    next_request: u64,
    link: Link,
    reconnect: Backoff,
    seed: u64,
    effects: Vec<Effect>,
}

impl Machine {
    /// A session that opens at once. The seed scatters its waits.
    pub(super) fn new(seed: u64, host: Option<proto::ReportHost>) -> Self {
        Self {
            slots: BTreeMap::new(),
            todo: BTreeSet::new(),
            later: BTreeSet::new(),
            in_flight: VecDeque::new(),
            host,
            host_untold: false,
            next_request: 1,
            link: Link::Down { until: Duration::ZERO },
            reconnect: Backoff::new(RECONNECT_FIRST, RECONNECT_LONGEST, seed),
            seed,
            effects: Vec::new(),
        }
    }

    /// One thing happened at `now`, counted from any fixed moment.
    pub(super) fn handle(&mut self, now: Duration, input: Input) -> Vec<Effect> {
        match input {
            Input::Add(ticket, register) => self.add(ticket, register),
            Input::Wish(ticket, wish) => self.change(ticket, |slot| slot.wish = wish),
            Input::Judge(ticket, source, opinion) => {
                self.change(ticket, |slot| drop(slot.opinions.insert(source, opinion)));
            }
            Input::Weigh(ticket, weight) => self.change(ticket, |slot| slot.weigh(weight)),
            Input::Busy(report) => self.busy(report),
            Input::Opened => self.opened(),
            Input::Lost(problem) => self.lost(now, problem),
            Input::Heard(response) => self.heard(now, response),
            Input::Woken => {}
        }
        self.wake(now);
        self.ask();
        std::mem::take(&mut self.effects)
    }

    /// When to call again with [`Input::Woken`], if nothing else happens before.
    pub(super) fn deadline(&self) -> Option<Duration> {
        match self.link {
            Link::Down { until } => Some(until),
            Link::Opening => None,
            Link::Open => self.later.first().map(|(at, _)| *at),
        }
    }

    fn add(&mut self, ticket: Ticket, register: proto::Register) {
        let seed = self.seed.wrapping_add(ticket.0);
        let backoff = Backoff::new(ASK_AGAIN_FIRST, ASK_AGAIN_LONGEST, seed);
        self.slots.insert(ticket, Slot::new(register, backoff));
        self.todo.insert(ticket);
    }

    fn change(&mut self, ticket: Ticket, change: impl FnOnce(&mut Slot)) {
        if let Some(slot) = self.slots.get_mut(&ticket) {
            change(slot);
            if let Some(at) = slot.resting_until.take() {
                self.later.remove(&(at, ticket));
            }
            self.todo.insert(ticket);
            self.forget_if_over(ticket, Departure::Wished);
        }
    }

    /// Sent at once or not at all: later the stranger may be gone. A registration that follows comes after it.
    fn busy(&mut self, report: proto::ReportBusyPort) {
        if self.link == Link::Open && self.in_flight.len() < IN_FLIGHT_MAX {
            self.send(About::Stranger, Request::ReportBusyPort(report));
        }
    }

    fn opened(&mut self) {
        self.link = Link::Open;
        self.todo.extend(self.slots.keys());
        self.tell(Notice::Connected);
        self.host_untold = true;
        self.tell_host();
    }

    /// Before the first registration, which gets its ports and address from what the host lends.
    fn tell_host(&mut self) {
        if std::mem::take(&mut self.host_untold)
            && let Some(report) = self.host.clone()
        {
            self.send(About::Host, Request::ReportHost(report));
        }
    }

    fn lost(&mut self, now: Duration, problem: String) {
        let retry = self.reconnect.next_delay();
        self.link = Link::Down { until: now + retry };
        self.in_flight.clear();
        self.later.clear();
        let tickets: Vec<Ticket> = self.slots.keys().copied().collect();
        for ticket in tickets {
            if let Some(slot) = self.slots.get_mut(&ticket) {
                slot.session_lost();
                slot.resting_until = None;
            }
            self.forget_if_over(ticket, Departure::Wished);
        }
        self.tell(Notice::Disconnected { problem, retry });
    }

    /// The other side broke the protocol; a new session makes a new start.
    fn broken(&mut self, now: Duration, problem: &str) {
        self.effects.push(Effect::Close);
        self.lost(now, format!("the control plane broke the worker protocol: {problem}"));
    }

    fn heard(&mut self, now: Duration, response: proto::AttachResponse) {
        use proto::attach_response::Response;
        match response.response {
            Some(Response::Answer(answer)) => self.answered(now, answer),
            Some(Response::Order(order)) => self.ordered(order),
            // A kind of message that this version does not know.
            None => {}
        }
    }

    fn answered(&mut self, now: Duration, answer: proto::Answer) {
        let Some((request, about)) = self.in_flight.pop_front() else {
            return self.broken(now, "an answer to no request");
        };
        if request != answer.request_id {
            return self.broken(now, "an answer out of order");
        }
        self.reconnect.reset();
        match (about, answer.result) {
            (_, None) => self.broken(now, "an answer without a result"),
            (About::Host | About::Stranger, Some(Outcome::Accepted(_)))
            // Later the stranger may be gone.
            | (About::Stranger, Some(Outcome::Rejected(_))) => {}
            (About::Host, Some(Outcome::Rejected(refusal))) => {
                // Told again with the next registration, which waits for the log as well.
                self.host_untold = refusal.code == "storage_unavailable";
                self.tell(Notice::HostRefused { refusal });
            }
            (About::Worker(ticket), Some(outcome)) => self.answered_worker(now, ticket, outcome),
        }
    }

    fn answered_worker(&mut self, now: Duration, ticket: Ticket, outcome: Outcome) {
        // Absent when the worker is gone meanwhile.
        let Some(ask) = self.slots.get_mut(&ticket).and_then(Slot::take_asked) else { return };
        match outcome {
            Outcome::Accepted(accepted) => self.accepted(now, ticket, ask, accepted),
            Outcome::Rejected(refusal) => self.refused(now, ticket, &ask, refusal),
        }
    }

    fn accepted(&mut self, now: Duration, ticket: Ticket, ask: Ask, accepted: proto::Accepted) {
        let Some(slot) = self.slots.get_mut(&ticket) else { return };
        slot.backoff.reset();
        self.todo.insert(ticket);
        match ask {
            Ask::Register => {
                let registered = accepted.registered.unwrap_or_default();
                match slot.registered(&registered) {
                    Some(worker) => self.tell(Notice::Registered { ticket, worker, ports: registered.ports }),
                    None => self.broken(now, "a registration without a worker"),
                }
            }
            Ask::Rejoin => slot.rejoined(),
            Ask::Report(wish) => {
                slot.reported(wish.clone());
                self.tell(Notice::Reported { ticket, wish, offset: accepted.offset });
            }
            Ask::Judge(source, opinion) => slot.judged(source, opinion),
            Ask::Weigh(weight) => slot.weighed(weight),
            Ask::Leave => self.forget(ticket, Departure::Wished),
        }
    }

    fn refused(&mut self, now: Duration, ticket: Ticket, ask: &Ask, refusal: proto::Rejected) {
        let Some(slot) = self.slots.get_mut(&ticket) else { return };
        let known = *ask != Ask::Register;
        match refusal.code.as_str() {
            // kumahq/kuma#1738: whoever holds the name now is left alone.
            "stale_generation" if known => self.forget(ticket, Departure::Replaced),
            // hashicorp/nomad#26424: removed while nobody was listening, so it registers anew.
            "unknown_worker" if known => {
                slot.forgotten();
                self.todo.insert(ticket);
                self.forget_if_over(ticket, Departure::Wished);
            }
            _ => {
                let retry = slot.backoff.next_delay();
                slot.resting_until = Some(now + retry);
                self.later.insert((now + retry, ticket));
                self.tell(Notice::Refused { ticket, refusal, retry });
            }
        }
    }

    fn ordered(&mut self, order: proto::Order) {
        let Some(worker) = order.worker else { return };
        // An order for an earlier registration of the same worker concerns nobody.
        let Some(ticket) =
            self.slots.iter().find_map(|(ticket, slot)| slot.holds(&worker).then_some(*ticket))
        else {
            return;
        };
        match order.order {
            Some(Demand::Drain(drain)) => self.tell(Notice::Draining { ticket, drain_ms: drain.drain_ms }),
            Some(Demand::Stop(stop)) => self.stopped(ticket, stop.cause),
            // A kind of order that this version does not know.
            None => {}
        }
    }

    fn stopped(&mut self, ticket: Ticket, cause: String) {
        let wished = self.slots.get(&ticket).is_some_and(|slot| matches!(slot.wish, Wish::Gone { .. }));
        self.forget(ticket, if wished { Departure::Wished } else { Departure::Stopped { cause } });
    }

    fn forget_if_over(&mut self, ticket: Ticket, cause: Departure) {
        if self.slots.get(&ticket).is_some_and(Slot::is_over) {
            self.forget(ticket, cause);
        }
    }

    fn forget(&mut self, ticket: Ticket, cause: Departure) {
        let slot = self.slots.remove(&ticket);
        self.todo.remove(&ticket);
        if let Some(at) = slot.and_then(|slot| slot.resting_until) {
            self.later.remove(&(at, ticket));
        }
        self.tell(Notice::Gone { ticket, cause });
    }

    fn wake(&mut self, now: Duration) {
        match self.link {
            Link::Down { until } if until <= now => {
                self.link = Link::Opening;
                self.effects.push(Effect::Open);
            }
            Link::Down { .. } | Link::Opening => {}
            Link::Open => {
                while self.later.first().is_some_and(|(at, _)| *at <= now) {
                    let Some((_, ticket)) = self.later.pop_first() else { return };
                    if let Some(slot) = self.slots.get_mut(&ticket) {
                        slot.resting_until = None;
                        self.todo.insert(ticket);
                    }
                }
            }
        }
    }

    fn ask(&mut self) {
        if self.link != Link::Open {
            return;
        }
        while self.in_flight.len() < IN_FLIGHT_MAX {
            let Some(ticket) = self.todo.pop_first() else { return };
            self.tell_host();
            if let Some(request) = self.slots.get_mut(&ticket).and_then(Slot::ask) {
                self.send(About::Worker(ticket), request);
            }
        }
    }

    fn send(&mut self, about: About, request: Request) {
        let request_id = self.next_request;
        self.next_request += 1;
        self.in_flight.push_back((request_id, about));
        self.effects.push(Effect::Send(proto::AttachRequest { request_id, request: Some(request) }));
    }

    fn tell(&mut self, notice: Notice) {
        self.effects.push(Effect::Tell(notice));
    }
}
