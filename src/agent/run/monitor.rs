//! What measurements of the child mean: verdicts that change at thresholds, and not back and forth around them.

use std::collections::VecDeque;
use std::time::Duration;

use crate::agent::client::Opinion;
use crate::proto::Verdict;

/// Over how long the use of processors is averaged: a burst is no overload.
const CPU_WINDOW: Duration = Duration::from_secs(5);

/// What a value has to fall below to be well again, in percent of its threshold.
const WELL_AGAIN_PERCENT: f64 = 90.0;

/// From where on a worker is no longer well.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Thresholds {
    /// Resident memory of the child and its descendants, in bytes: from there on it is unhealthy.
    pub memory_bytes: Option<u64>,
    /// Processors that they keep busy, over 5 s: from there on it is degraded.
    pub cpus: Option<f64>,
}

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sample {
    /// When, from any fixed moment.
    pub(super) at: Duration,
    /// Resident memory of all processes, in bytes.
    pub(super) memory_bytes: u64,
    /// Processor time that all of them have used so far.
    pub(super) cpu: Duration,
}

/// All monitors of one child.
#[derive(Debug, Default)]
pub(super) struct Monitors {
    thresholds: Thresholds,
    memory: State,
    cpu: State,
    window: VecDeque<Sample>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Well,
    Over,
}

impl Monitors {
    pub(super) fn new(thresholds: Thresholds) -> Self {
        Self { thresholds, ..Self::default() }
    }

    /// Whether there is anything to measure.
    pub(super) fn are_wanted(&self) -> bool {
        self.thresholds != Thresholds::default()
    }

    /// What a measurement changes: the source, and what it thinks from now on.
    pub(super) fn observe(&mut self, sample: Sample) -> Vec<(&'static str, Opinion)> {
        let memory = self.observe_memory(sample).map(|opinion| ("memory", opinion));
        let cpu = self.observe_cpu(sample).map(|opinion| ("utilization", opinion));
        memory.into_iter().chain(cpu).collect()
    }

    /// The child is gone; the next one starts well.
    pub(super) fn forget(&mut self) -> Vec<(&'static str, Opinion)> {
        let sources = [("memory", self.memory), ("utilization", self.cpu)];
        *self = Self::new(self.thresholds);
        let over = sources.into_iter().filter(|(_, state)| *state == State::Over);
        over.map(|(source, _)| (source, Opinion::healthy())).collect()
    }

    #[allow(clippy::cast_precision_loss, reason = "a threshold needs no more than 52 bits of a size")]
    fn observe_memory(&mut self, sample: Sample) -> Option<Opinion> {
        let max = self.thresholds.memory_bytes?;
        let changed = self.memory.observe(sample.memory_bytes as f64, max as f64)?;
        let reason = format!("{} MiB of {} MiB", sample.memory_bytes >> 20, max >> 20);
        Some(changed.opinion(Verdict::Unhealthy, reason))
    }

    fn observe_cpu(&mut self, sample: Sample) -> Option<Opinion> {
        let max = self.thresholds.cpus?;
        self.window.push_back(sample);
        let oldest = *self.window.front()?;
        let span = sample.at.saturating_sub(oldest.at);
        if span < CPU_WINDOW {
            return None;
        }
        self.window.pop_front();
        let cpus = sample.cpu.saturating_sub(oldest.cpu).as_secs_f64() / span.as_secs_f64();
        let changed = self.cpu.observe(cpus, max)?;
        Some(changed.opinion(Verdict::Degraded, format!("{cpus:.1} processors of {max:.1}")))
    }
}

impl State {
    /// The new state, if it is new.
    fn observe(&mut self, value: f64, threshold: f64) -> Option<Self> {
        let next = match self {
            Self::Well if value >= threshold => Self::Over,
            Self::Over if value < threshold * WELL_AGAIN_PERCENT / 100.0 => Self::Well,
            Self::Well | Self::Over => return None,
        };
        *self = next;
        Some(next)
    }

    fn opinion(self, verdict: Verdict, reason: String) -> Opinion {
        match self {
            Self::Well => Opinion::healthy(),
            Self::Over => Opinion { verdict, reason },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(second: u64, memory_mib: u64, cpu_ms: u64) -> Sample {
        let (at, cpu) = (Duration::from_secs(second), Duration::from_millis(cpu_ms));
        Sample { at, memory_bytes: memory_mib << 20, cpu }
    }

    /// What each second's measurement changes, in short.
    fn changes(thresholds: Thresholds, samples: impl IntoIterator<Item = (u64, u64)>) -> Vec<String> {
        let mut monitors = Monitors::new(thresholds);
        let all = samples.into_iter().zip(0..).flat_map(|((memory, cpu), second)| {
            let changed = monitors.observe(sample(second, memory, cpu));
            changed.into_iter().map(move |(source, opinion)| {
                format!("{second} {source} {:?} {}", opinion.verdict, opinion.reason)
            })
        });
        all.collect()
    }

    #[test]
    fn memory_at_its_threshold_is_one_change_and_so_is_its_way_back() {
        let thresholds = Thresholds { memory_bytes: Some(100 << 20), cpus: None };
        let memory = [50, 99, 100, 98, 101, 95, 90, 89, 95, 99];
        assert_eq!(
            changes(thresholds, memory.map(|mib| (mib, 0))),
            ["2 memory Unhealthy 100 MiB of 100 MiB", "7 memory Healthy "]
        );
    }

    #[test]
    fn a_burst_is_no_overload_and_five_busy_seconds_are() {
        let thresholds = Thresholds { memory_bytes: None, cpus: Some(1.0) };
        let burst = [0, 2000, 2000, 2000, 2000, 2000, 2000, 2000];
        assert_eq!(changes(thresholds, burst.map(|cpu| (0, cpu))), [""; 0]);
        let busy = (0..8).map(|second| (0, second * 1500)).chain((8..16).map(|_| (0, 10_500)));
        assert_eq!(
            changes(thresholds, busy),
            ["5 utilization Degraded 1.5 processors of 1.0", "10 utilization Healthy "]
        );
    }

    #[test]
    fn the_next_child_starts_well() {
        let mut monitors = Monitors::new(Thresholds { memory_bytes: Some(1), cpus: None });
        monitors.observe(sample(0, 5, 0));
        assert_eq!(monitors.forget(), [("memory", Opinion::healthy())]);
        assert_eq!(monitors.forget(), []);
    }
}
