//! What measurements of the child mean: verdicts that change at thresholds, and not back and forth around them.

use std::collections::VecDeque;
use std::time::Duration;

use crate::agent::client::Opinion;
use crate::proto::Verdict;

use super::tiding::Load;

/// Over how long the use of processors is averaged: a burst is no overload.
const CPU_WINDOW: Duration = Duration::from_secs(5);

/// What a value has to fall below to be well again, in percent of its threshold.
const WELL_AGAIN_PERCENT: f64 = 90.0;

/// From where on a worker is no longer well.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Thresholds {
    /// Memory of the child and its descendants: from there on it is unhealthy.
    pub memory: Option<MemoryMax>,
    /// Processors that they keep busy, over 5 s: from there on it is degraded.
    pub cpus: Option<f64>,
    /// Requests at one time, where the child tells: from there on it is degraded.
    pub requests: Option<u64>,
    /// Open connections, where the child tells: from there on it is degraded.
    pub connections: Option<u64>,
}

/// How much memory a worker may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryMax {
    /// Resident memory of all its processes, in bytes.
    Bytes(u64),
    /// Of its control group's limit, in percent: what counts there is what the kernel could not give back.
    PercentOfLimit(u8),
}

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sample {
    /// When, from any fixed moment.
    pub(super) at: Duration,
    /// What is taken, and what there is; nothing where no limit applies.
    pub(super) memory: Option<Memory>,
    /// Processor time that all processes have used so far.
    pub(super) cpu: Duration,
}

/// Memory that is taken, and how much is too much, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Memory {
    pub(super) taken: u64,
    pub(super) max: u64,
}

/// What changed: the source, and what it thinks from now on.
pub(super) type Change = Option<(&'static str, Opinion)>;

/// All monitors of one child.
#[derive(Debug, Default)]
pub(super) struct Monitors {
    thresholds: Thresholds,
    load: Load,
    window: VecDeque<Sample>,
    memory: Gauge,
    cpu: Gauge,
    requests: Gauge,
    connections: Gauge,
}

/// One measured thing: well, or over its threshold and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Gauge {
    #[default]
    Well,
    Over(String),
}

impl Monitors {
    pub(super) fn new(thresholds: Thresholds) -> Self {
        Self { thresholds, ..Self::default() }
    }

    /// Whether there is anything to measure.
    pub(super) fn measures(&self) -> bool {
        self.thresholds.memory.is_some() || self.thresholds.cpus.is_some()
    }

    /// What a measurement says of memory.
    pub(super) fn observe_memory(&mut self, sample: Sample) -> Change {
        let Memory { taken, max } = sample.memory?;
        let reason = || format!("{} MiB of {} MiB", taken >> 20, max >> 20);
        let changed = self.memory.observe(float(taken), float(max), reason);
        changed.then(|| ("memory", opinion(Verdict::Unhealthy, [&self.memory])))
    }

    /// What a measurement says of processors.
    pub(super) fn observe_cpu(&mut self, sample: Sample) -> Change {
        let max = self.thresholds.cpus?;
        self.window.push_back(sample);
        let oldest = *self.window.front()?;
        let span = sample.at.saturating_sub(oldest.at);
        if span < CPU_WINDOW {
            return None;
        }
        self.window.pop_front();
        let cpus = sample.cpu.saturating_sub(oldest.cpu).as_secs_f64() / span.as_secs_f64();
        let changed = self.cpu.observe(cpus, max, || format!("{cpus:.1} processors of {max:.1}"));
        changed.then(|| self.utilization())
    }

    /// What the child says of its load.
    pub(super) fn observe_load(&mut self, newer: Load) -> Change {
        self.load.update(newer);
        let Load { requests_active, connections_active, .. } = self.load;
        let requests = self.requests.count("requests", requests_active, self.thresholds.requests);
        let connections =
            self.connections.count("connections", connections_active, self.thresholds.connections);
        (requests || connections).then(|| self.utilization())
    }

    /// How busy the child said that it is.
    pub(super) const fn load(&self) -> Load {
        self.load
    }

    /// The child is gone; the next one starts well.
    pub(super) fn forget(&mut self) {
        *self = Self::new(self.thresholds);
    }

    fn utilization(&self) -> (&'static str, Opinion) {
        ("utilization", opinion(Verdict::Degraded, [&self.cpu, &self.requests, &self.connections]))
    }
}

impl Gauge {
    /// Whether it is another than before: a change of the value alone is none.
    fn observe(&mut self, value: f64, threshold: f64, reason: impl Fn() -> String) -> bool {
        let next = match self {
            Self::Well if value >= threshold => Self::Over(reason()),
            Self::Over(_) if value < threshold * WELL_AGAIN_PERCENT / 100.0 => Self::Well,
            Self::Well | Self::Over(_) => return false,
        };
        *self = next;
        true
    }

    /// The same for what the child counts, where it does and there is a threshold.
    fn count(&mut self, what: &str, value: Option<u64>, threshold: Option<u64>) -> bool {
        value.zip(threshold).is_some_and(|(value, max)| {
            self.observe(float(value), float(max), || format!("{value} {what} of {max}"))
        })
    }

    fn reason(&self) -> Option<&str> {
        match self {
            Self::Well => None,
            Self::Over(reason) => Some(reason),
        }
    }
}

/// What gauges make of a worker together.
fn opinion<const GAUGES: usize>(verdict: Verdict, gauges: [&Gauge; GAUGES]) -> Opinion {
    let reasons: Vec<&str> = gauges.into_iter().filter_map(Gauge::reason).collect();
    if reasons.is_empty() { Opinion::healthy() } else { Opinion { verdict, reason: reasons.join(", ") } }
}

#[allow(clippy::cast_precision_loss, reason = "a threshold needs no more than 52 bits of a size")]
const fn float(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(second: u64, memory_mib: u64, cpu_ms: u64) -> Sample {
        let (at, cpu) = (Duration::from_secs(second), Duration::from_millis(cpu_ms));
        Sample { at, memory: Some(Memory { taken: memory_mib << 20, max: 100 << 20 }), cpu }
    }

    fn shown(second: u64, change: Change) -> Option<String> {
        change.map(|(source, opinion)| format!("{second} {source} {:?} {}", opinion.verdict, opinion.reason))
    }

    #[test]
    fn memory_at_its_threshold_is_one_change_and_so_is_its_way_back() {
        let mut monitors = Monitors::default();
        let memory = [50, 99, 100, 98, 101, 95, 90, 89, 95, 99];
        let changes = memory
            .into_iter()
            .zip(0..)
            .filter_map(|(memory, second)| shown(second, monitors.observe_memory(sample(second, memory, 0))));
        let expected = ["2 memory Unhealthy 100 MiB of 100 MiB", "7 memory Healthy "];
        assert_eq!(changes.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn without_a_limit_there_is_no_verdict_on_memory() {
        let unlimited = Sample { memory: None, ..sample(0, 0, 0) };
        assert_eq!(Monitors::default().observe_memory(unlimited), None);
    }

    /// What each second's use of processors changes, in milliseconds of processor time so far.
    fn changes_by_cpu(used: impl IntoIterator<Item = u64>) -> Vec<String> {
        let mut monitors = Monitors::new(Thresholds { cpus: Some(1.0), ..Thresholds::default() });
        let all = used.into_iter().zip(0..);
        all.filter_map(|(cpu, second)| shown(second, monitors.observe_cpu(sample(second, 0, cpu)))).collect()
    }

    #[test]
    fn a_burst_is_no_overload_and_five_busy_seconds_are() {
        assert_eq!(changes_by_cpu([0, 2000, 2000, 2000, 2000, 2000, 2000, 2000]), [""; 0]);
        let busy = (0..8).map(|second| second * 1500).chain((8..16).map(|_| 10_500));
        assert_eq!(
            changes_by_cpu(busy),
            ["5 utilization Degraded 1.5 processors of 1.0", "10 utilization Healthy "]
        );
    }

    #[test]
    fn what_the_child_counts_is_one_opinion_with_every_reason() {
        let thresholds = Thresholds { requests: Some(10), connections: Some(100), ..Thresholds::default() };
        let mut monitors = Monitors::new(thresholds);
        let steps = [(9, 0), (10, 0), (12, 100), (9, 99), (8, 95), (8, 89), (8, 99)];
        let changes = steps.into_iter().zip(0..).filter_map(|((requests, connections), second)| {
            let (requests, connections) = (Some(requests), Some(connections));
            let load = Load { requests_active: requests, connections_active: connections, ..Load::default() };
            shown(second, monitors.observe_load(load))
        });
        let expected = [
            "1 utilization Degraded 10 requests of 10",
            "2 utilization Degraded 10 requests of 10, 100 connections of 100",
            "4 utilization Degraded 100 connections of 100",
            "5 utilization Healthy ",
        ];
        assert_eq!(changes.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_next_child_starts_well() {
        let mut monitors = Monitors::new(Thresholds { requests: Some(1), ..Thresholds::default() });
        let busy = Load { requests_active: Some(5), ..Load::default() };
        assert!(monitors.observe_load(busy).is_some());
        monitors.forget();
        assert_eq!(monitors.load(), Load::default());
        assert!(monitors.observe_load(busy).is_some());
    }
}
