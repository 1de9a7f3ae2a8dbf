//! Measuring the child and its descendants.

use std::time::Duration;

#[cfg(target_os = "linux")]
use super::kin::{self, Kin};
use super::monitor::Sample;

/// The child and all its descendants at this moment; nothing when it is gone.
#[cfg(target_os = "linux")]
pub(super) fn measure(child: u32, at: Duration) -> Option<Sample> {
    let mut sample = Sample { at, memory_bytes: 0, cpu: Duration::ZERO };
    for Kin { stat, .. } in kin::tree(child) {
        let own = stat.utime + stat.stime;
        let reaped = u64::try_from(stat.cutime + stat.cstime).unwrap_or(0);
        sample.memory_bytes += stat.rss * procfs::page_size();
        sample.cpu += Duration::from_millis((own + reaped) * 1000 / procfs::ticks_per_second().max(1));
    }
    (sample.memory_bytes > 0).then_some(sample)
}

/// Other systems have no `/proc`.
#[cfg(not(target_os = "linux"))]
pub(super) fn measure(_child: u32, _at: Duration) -> Option<Sample> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory_and_a_stranger_has_none() {
        let sample = measure(std::process::id(), Duration::from_secs(3)).unwrap();
        assert!(sample.memory_bytes > 1 << 20, "{sample:?}");
        assert_eq!(sample.at, Duration::from_secs(3));
        assert_eq!(measure(u32::MAX / 4, Duration::ZERO), None);
    }
}
