//! What the child says and what is measured of it, and what the control plane is told of that.

use std::time::Duration;

use crate::agent::client::{Opinion, Wish};
use crate::agent::run::ReadyBy;
use crate::agent::run::ending::Ending;
use crate::agent::run::monitor::{Change, MemoryMax, Sample};
use crate::agent::run::reports::{Fate, REST};
use crate::agent::run::tiding::{Load, Source, Tiding};
use crate::proto::Verdict;

use super::{Effect, Machine, Phase, Timer};

/// How often a status alone is told: a child that counts in it must not fill the log.
const STATUS_EVERY: Duration = Duration::from_secs(10);

/// After how many ends in a row, each before the one before it was forgiven, a child is not at its best: one end may be chance.
const ENDS_DEGRADED: u32 = 2;

/// And after how many it gets no requests, until it has lasted: whoever is sent to it meanwhile is likely to be cut off.
const ENDS_UNHEALTHY: u32 = 5;

/// What the child last said of itself.
#[derive(Debug, Default)]
pub(super) struct Words {
    /// Its opinion, if it has one.
    own: Option<Opinion>,
    status: String,
    status_told: StatusTold,
}

/// Whether the newest status may be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum StatusTold {
    /// At once.
    #[default]
    LongAgo,
    /// Not yet: one was told within [`STATUS_EVERY`].
    Lately,
    /// Not yet, and there is a newer one.
    LatelyAnother,
}

impl Words {
    /// What the worker thinks of itself, where its status stands for a reason while all is well.
    fn opinion(&self) -> Opinion {
        match &self.own {
            Some(own) if own.verdict != Verdict::Healthy => own.clone(),
            Some(_) | None => Opinion { verdict: Verdict::Healthy, reason: self.status.clone() },
        }
    }
}

impl Machine {
    /// What one message says. Opinions come first, so that nobody is ready for a moment who is not well.
    pub(super) fn told_all(&mut self, mut tidings: Vec<Tiding>) {
        tidings.sort_by_key(|tiding| !matches!(tiding, Tiding::Health(..) | Tiding::Load(_)));
        tidings.into_iter().for_each(|tiding| self.told(tiding));
    }

    fn told(&mut self, tiding: Tiding) {
        match (tiding, self.phase) {
            (Tiding::Status(text), _) => self.status(text),
            (Tiding::Unclear(line), _) => {
                self.say(format!("the worker reported what cannot be read: {line:?}"));
            }
            (Tiding::Ready, Phase::Starting) if self.plan.ready == ReadyBy::Telling => self.can_serve(),
            (Tiding::Ready, Phase::Serving) => self.give(Effect::Wish(self.ticket, Wish::Ready)),
            (Tiding::Unready(reason), Phase::Serving) => {
                self.say(format!("the worker cannot serve now: {reason}"));
                self.give(Effect::Wish(self.ticket, Wish::Unready { reason }));
            }
            (Tiding::Stopping, Phase::Serving) => self.drain("the worker is about to end".to_owned()),
            (Tiding::Alive, Phase::Serving) => self.watch_for_life(),
            (Tiding::Stuck, Phase::Starting | Phase::Serving) if self.plan.watchdog.is_some() => {
                self.abort_child();
            }
            (Tiding::Health(source, opinion), Phase::Starting | Phase::Serving) => {
                self.thinks(&source, opinion)
            }
            (Tiding::Load(load), Phase::Starting | Phase::Serving | Phase::Draining) => {
                let change = self.monitors.observe_load(load);
                self.judge(change);
            }
            // Before it can serve and after it was asked to end nothing of this changes anything.
            (
                Tiding::Ready
                | Tiding::Unready(_)
                | Tiding::Stopping
                | Tiding::Alive
                | Tiding::Stuck
                | Tiding::Health(..)
                | Tiding::Load(_),
                _,
            ) => {}
        }
    }

    fn status(&mut self, text: String) {
        self.say(format!("the worker says: {text}"));
        self.words.status = text;
        match self.words.status_told {
            StatusTold::LongAgo => self.tell_status(),
            StatusTold::Lately | StatusTold::LatelyAnother => {
                self.words.status_told = StatusTold::LatelyAnother;
            }
        }
    }

    fn tell_status(&mut self) {
        self.words.status_told = StatusTold::Lately;
        self.give(Effect::Arm(Timer::Status, STATUS_EVERY));
        self.report(&Source::Worker.name(), self.words.opinion());
    }

    pub(super) fn status_may_be_told(&mut self) {
        match self.words.status_told {
            StatusTold::LongAgo | StatusTold::Lately => self.words.status_told = StatusTold::LongAgo,
            StatusTold::LatelyAnother => self.tell_status(),
        }
    }

    fn thinks(&mut self, source: &Source, opinion: Opinion) {
        let opinion = match source {
            Source::Worker => {
                self.words.own = Some(opinion);
                self.words.opinion()
            }
            Source::Custom(_) => opinion,
        };
        self.report(&source.name(), opinion);
    }

    pub(super) fn watch_for_life(&mut self) {
        if let Some(every) = self.plan.watchdog {
            self.give(Effect::Arm(Timer::Watchdog, every));
        }
    }

    pub(super) fn measured(&mut self, sample: Sample) {
        match self.phase {
            Phase::Starting | Phase::Serving | Phase::Draining => {
                self.miss_limit(sample);
                let (memory, cpu) = (self.monitors.observe_memory(sample), self.monitors.observe_cpu(sample));
                self.judge(memory);
                self.judge(cpu);
            }
            Phase::Registering | Phase::Stopping | Phase::Resting | Phase::Leaving => {}
        }
    }

    /// Says once that a share of nothing is never exceeded.
    fn miss_limit(&mut self, sample: Sample) {
        let wanted = matches!(self.plan.thresholds.memory, Some(MemoryMax::PercentOfLimit(_)));
        if wanted && sample.memory.is_none() && !self.limit_missed {
            self.limit_missed = true;
            self.say("no memory limit applies to the worker, so that a share of it cannot be watched; give a size to --memory-max");
        }
    }

    fn judge(&mut self, change: Change) {
        if let Some((source, opinion)) = change {
            self.report(source, opinion);
        }
    }

    /// The child ended, and is started again: `ends` times in a row so far.
    pub(super) fn ended_again(&mut self, ending: &Ending) {
        self.ends += 1;
        let verdict = match self.ends {
            ..ENDS_DEGRADED => return,
            ENDS_DEGRADED..ENDS_UNHEALTHY => Verdict::Degraded,
            ENDS_UNHEALTHY.. => Verdict::Unhealthy,
        };
        let reason = format!("ended {} times in a row, at last it {ending}", self.ends);
        self.report("process", Opinion { verdict, reason });
    }

    /// The child has lasted: what was before is forgiven.
    pub(super) fn lasted(&mut self) {
        self.restart.reset();
        self.ends = 0;
        self.report("process", Opinion::healthy());
    }

    /// The next child starts well, whatever was said by and of the one that ended.
    pub(super) fn forget_opinions(&mut self) {
        self.monitors.forget();
        self.words.own = None;
        self.words.status.clear();
        for source in self.reports.outlived("process") {
            self.report(&source, Opinion::healthy());
        }
    }

    /// How much the child served, where it counted.
    pub(super) fn say_farewell(&mut self) {
        let Load { requests_total, connections_total, .. } = self.monitors.load();
        let counted = [(requests_total, "requests"), (connections_total, "connections")];
        let counted = counted.iter().filter_map(|(count, what)| Some(format!("{} {what}", (*count)?)));
        let counted: Vec<String> = counted.collect();
        if !counted.is_empty() {
            self.say(format!("the worker served {}", counted.join(" on ")));
        }
    }

    fn report(&mut self, source: &str, opinion: Opinion) {
        match self.reports.take(source, &opinion) {
            Fate::Told => {
                self.give(Effect::Arm(Timer::Reports, REST));
                self.tell(source.to_owned(), opinion);
            }
            Fate::Waits | Fate::Known => {}
            Fate::Dropped => self.say(format!("{source} is one source too many, and is not reported")),
        }
    }

    pub(super) fn reports_rested(&mut self) {
        for (source, opinion) in self.reports.rested() {
            self.tell(source, opinion);
        }
        if self.reports.rest() {
            self.give(Effect::Arm(Timer::Reports, REST));
        }
    }

    fn tell(&mut self, source: String, opinion: Opinion) {
        let Opinion { verdict, reason } = &opinion;
        // A status was shown when it was said.
        if *verdict != Verdict::Healthy || reason.is_empty() {
            let colon = if reason.is_empty() { "" } else { ": " };
            self.say(format!("{source} is {}{colon}{reason}", word(*verdict)));
        }
        self.give(Effect::Judge(self.ticket, source, opinion));
    }
}

const fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Healthy | Verdict::Unspecified => "healthy",
        Verdict::Degraded => "degraded",
        Verdict::Unhealthy => "unhealthy",
    }
}
