//! One worker in a session: what is wished, what the control plane holds, and what to ask next.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::agent::backoff::Backoff;
use crate::proto::{self, attach_request::Request};

use super::{Opinion, Wish};

/// One worker.
#[derive(Debug)]
pub(super) struct Slot {
    register: proto::Register,
    /// What the owner wants.
    pub(super) wish: Wish,
    /// What each source thinks.
    pub(super) opinions: BTreeMap<String, Opinion>,
    held: Option<Held>,
    asked: Option<Ask>,
    /// How long to leave a refused worker alone.
    pub(super) backoff: Backoff,
    /// Until when it is left alone.
    pub(super) resting_until: Option<Duration>,
}

/// What the control plane holds, as far as it has told us.
#[derive(Debug)]
struct Held {
    worker: proto::WorkerRef,
    voice: Voice,
    /// Absent after a report whose answer was lost.
    reported: Option<Wish>,
    /// Of the sources that have said something; absent as above.
    opinions: BTreeMap<String, Option<Opinion>>,
    /// Absent as above.
    weight: Option<Option<u32>>,
}

/// Which session the control plane hears for a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Voice {
    /// The one that is open.
    This,
    /// One that ended.
    Earlier,
}

/// A request whose answer is awaited.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Ask {
    Register,
    Rejoin,
    Report(Wish),
    Judge(String, Opinion),
    Weigh(Option<u32>),
    Leave,
}

impl Slot {
    pub(super) fn new(register: proto::Register, backoff: Backoff) -> Self {
        let wish = first_status(&register);
        Self {
            register,
            wish,
            opinions: BTreeMap::new(),
            held: None,
            asked: None,
            backoff,
            resting_until: None,
        }
    }

    /// The next request, if one is missing and none is under way.
    pub(super) fn ask(&mut self) -> Option<Request> {
        if self.asked.is_some() || self.resting_until.is_some() {
            return None;
        }
        let ask = self.missing()?;
        let request = self.request(&ask)?;
        self.asked = Some(ask);
        Some(request)
    }

    fn missing(&self) -> Option<Ask> {
        let Some(held) = &self.held else {
            return self.wish.outlives_removal().then_some(Ask::Register);
        };
        match (&self.wish, held.voice) {
            (_, Voice::Earlier) => Some(Ask::Rejoin),
            (Wish::Gone { .. }, Voice::This) => Some(Ask::Leave),
            (Wish::Draining { .. }, Voice::This) => self.missing_report(held),
            // Opinions come before the status, so that nobody is ready for a moment who is not well.
            (Wish::Starting | Wish::Ready | Wish::Unready { .. }, Voice::This) => self
                .missing_opinion(held)
                .or_else(|| self.missing_report(held))
                .or_else(|| self.missing_weight(held)),
        }
    }

    fn missing_report(&self, held: &Held) -> Option<Ask> {
        (held.reported.as_ref() != Some(&self.wish)).then(|| Ask::Report(self.wish.clone()))
    }

    fn missing_opinion(&self, held: &Held) -> Option<Ask> {
        let healthy = Some(Opinion::healthy());
        let missing = |(source, opinion): &(&String, &Opinion)| {
            held.opinions.get(*source).unwrap_or(&healthy).as_ref() != Some(*opinion)
        };
        let (source, opinion) = self.opinions.iter().find(missing)?;
        Some(Ask::Judge(source.clone(), opinion.clone()))
    }

    fn missing_weight(&self, held: &Held) -> Option<Ask> {
        (held.weight != Some(self.register.weight)).then_some(Ask::Weigh(self.register.weight))
    }

    fn request(&self, ask: &Ask) -> Option<Request> {
        if *ask == Ask::Register {
            return Some(Request::Register(self.register.clone()));
        }
        let worker = Some(self.held.as_ref()?.worker.clone());
        let wish = match ask {
            Ask::Register => return None,
            Ask::Rejoin => return Some(Request::Rejoin(proto::Rejoin { worker })),
            Ask::Report(wish) => wish,
            Ask::Judge(source, Opinion { verdict, reason }) => {
                let (source, verdict, reason) = (source.clone(), (*verdict).into(), reason.clone());
                return Some(Request::ReportHealth(proto::ReportHealth { worker, source, verdict, reason }));
            }
            Ask::Weigh(weight) => {
                return Some(Request::Reweight(proto::Reweight { worker, weight: *weight }));
            }
            Ask::Leave => &self.wish,
        };
        Some(match wish.clone() {
            Wish::Starting => Request::Unready(proto::Unready { worker, reason: "starting".to_owned() }),
            Wish::Ready => Request::Ready(proto::Ready { worker }),
            Wish::Unready { reason } => Request::Unready(proto::Unready { worker, reason }),
            Wish::Draining { reason, drain_ms } => {
                Request::Drain(proto::Drain { worker, reason, drain_ms: Some(drain_ms) })
            }
            Wish::Gone { exit } => {
                let exit = exit.map(|status| proto::Exit { status: Some(status) });
                Request::Deregister(proto::Deregister { worker, exit })
            }
        })
    }

    /// The answer to what was asked is there.
    pub(super) fn take_asked(&mut self) -> Option<Ask> {
        self.asked.take()
    }

    /// The control plane admitted the worker. From now on it is asked for the numbers that it has, so that a
    /// registration anew fits the process that listens on them.
    pub(super) fn registered(&mut self, registered: &proto::Registered) -> Option<proto::WorkerRef> {
        let worker = registered.worker.clone()?;
        self.register.id.clone_from(&worker.id);
        self.register.ports.clone_from(&registered.ports);
        self.held = Some(Held {
            worker: worker.clone(),
            voice: Voice::This,
            reported: Some(first_status(&self.register)),
            opinions: BTreeMap::new(),
            weight: Some(self.register.weight),
        });
        Some(worker)
    }

    /// This session speaks for the worker again.
    pub(super) fn rejoined(&mut self) {
        if let Some(held) = &mut self.held {
            held.voice = Voice::This;
        }
    }

    /// A report is durable.
    pub(super) fn reported(&mut self, wish: Wish) {
        if let Some(held) = &mut self.held {
            held.reported = Some(wish);
        }
    }

    /// An opinion is durable.
    pub(super) fn judged(&mut self, source: String, opinion: Opinion) {
        if let Some(held) = &mut self.held {
            held.opinions.insert(source, Some(opinion));
        }
    }

    /// A weight is durable.
    pub(super) fn weighed(&mut self, weight: Option<u32>) {
        if let Some(held) = &mut self.held {
            held.weight = Some(weight);
        }
    }

    /// The owner wants another share of the load.
    pub(super) fn weigh(&mut self, weight: Option<u32>) {
        self.register.weight = weight;
    }

    /// The control plane does not know the worker.
    pub(super) fn forgotten(&mut self) {
        self.held = None;
    }

    /// The session ended; an answer that was awaited never comes, and what it was about is unknown.
    pub(super) fn session_lost(&mut self) {
        let asked = self.asked.take();
        let Some(held) = &mut self.held else { return };
        held.voice = Voice::Earlier;
        match asked {
            Some(Ask::Report(_)) => held.reported = None,
            Some(Ask::Judge(source, _)) => {
                held.opinions.insert(source, None);
            }
            Some(Ask::Weigh(_)) => held.weight = None,
            Some(Ask::Register | Ask::Rejoin | Ask::Leave) | None => {}
        }
    }

    /// Whether nothing is held, asked or wished any more.
    pub(super) fn is_over(&self) -> bool {
        self.held.is_none() && self.asked.is_none() && !self.wish.outlives_removal()
    }

    /// Whether this is the registration that the control plane speaks of.
    pub(super) fn holds(&self, worker: &proto::WorkerRef) -> bool {
        self.held.as_ref().is_some_and(|held| held.worker == *worker)
    }
}

fn first_status(register: &proto::Register) -> Wish {
    match register.readiness() {
        proto::Readiness::Reported => Wish::Starting,
        proto::Readiness::Assumed | proto::Readiness::Unspecified => Wish::Ready,
    }
}
