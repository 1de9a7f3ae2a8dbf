//! Measuring the child and its descendants.

use std::time::Duration;

#[cfg(target_os = "linux")]
use super::cgroup;
#[cfg(target_os = "linux")]
use super::kin::{self, Kin};
use super::monitor::{MemoryMax, Sample};

/// The child and all its descendants at this moment; nothing when it is gone.
#[cfg(target_os = "linux")]
pub(super) fn measure(child: u32, at: Duration, memory_max: Option<MemoryMax>) -> Option<Sample> {
    use super::monitor::Memory;
    let (mut resident, mut cpu) = (0, Duration::ZERO);
    for Kin { stat, .. } in kin::tree(child) {
        let own = stat.utime + stat.stime;
        let reaped = u64::try_from(stat.cutime + stat.cstime).unwrap_or(0);
        resident += stat.rss * procfs::page_size();
        cpu += Duration::from_millis((own + reaped) * 1000 / procfs::ticks_per_second().max(1));
    }
    let memory = match memory_max {
        None => None,
        Some(MemoryMax::Bytes(max)) => Some(Memory { taken: resident, max }),
        Some(MemoryMax::PercentOfLimit(percent)) => cgroup::memory(child)
            .map(|Memory { taken, max }| Memory { taken, max: max / 100 * u64::from(percent) }),
    };
    (resident > 0).then_some(Sample { at, memory, cpu })
}

/// Other systems have no `/proc`.
#[cfg(not(target_os = "linux"))]
pub(super) fn measure(_child: u32, _at: Duration, _memory_max: Option<MemoryMax>) -> Option<Sample> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory_and_a_stranger_has_none() {
        let at = Duration::from_secs(3);
        let sample = measure(std::process::id(), at, Some(MemoryMax::Bytes(7))).unwrap();
        let memory = sample.memory.unwrap();
        assert!(memory.taken > 1 << 20 && memory.max == 7, "{sample:?}");
        assert_eq!(sample.at, at);
        assert_eq!(measure(u32::MAX / 4, at, None), None);
    }
}
