//! Measuring the child and its descendants.

use std::time::Duration;

use super::monitor::Sample;

/// How many processes one look takes in: a worker with more is measured in part rather than slowed down.
const PROCESSES_MAX: usize = 256;

/// The child and all its descendants at this moment; nothing when it is gone.
#[cfg(target_os = "linux")]
pub(super) fn measure(child: u32, at: Duration) -> Option<Sample> {
    let mut sample = Sample { at, memory_bytes: 0, cpu: Duration::ZERO };
    let mut found = vec![child];
    let mut seen = 0;
    while let Some(id) = found.pop().filter(|_| seen < PROCESSES_MAX) {
        seen += 1;
        // One that ended since it was found is left out.
        let Some((process, stat)) = look(id) else { continue };
        let own = stat.utime + stat.stime;
        let reaped = u64::try_from(stat.cutime + stat.cstime).unwrap_or(0);
        sample.memory_bytes += stat.rss * procfs::page_size();
        sample.cpu += Duration::from_millis((own + reaped) * 1000 / procfs::ticks_per_second().max(1));
        let tasks = process.tasks().into_iter().flatten().flatten();
        found.extend(tasks.filter_map(|task| task.children().ok()).flatten());
    }
    (sample.memory_bytes > 0).then_some(sample)
}

#[cfg(target_os = "linux")]
fn look(id: u32) -> Option<(procfs::process::Process, procfs::process::Stat)> {
    let process = procfs::process::Process::new(i32::try_from(id).ok()?).ok()?;
    let stat = process.stat().ok()?;
    Some((process, stat))
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
