//! Who this process is, so that a reused number is not mistaken for it (jdx/pitchfork#878).

use crate::proto;

/// This process, where the operating system tells.
#[cfg(target_os = "linux")]
pub(super) fn this() -> Option<proto::Process> {
    let stat = procfs::process::Process::myself().and_then(|myself| myself.stat()).ok()?;
    let boot_id = procfs::sys::kernel::random::boot_id().ok()?;
    Some(proto::Process { pid: std::process::id(), start_ticks: stat.starttime, boot_id })
}

/// Other systems tell the number alone, which is not enough.
#[cfg(not(target_os = "linux"))]
pub(super) fn this() -> Option<proto::Process> {
    None
}
