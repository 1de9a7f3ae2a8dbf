//! The processes that belong to the child, as `/proc` shows them. Linux only; elsewhere nothing is found.

#[cfg(target_os = "linux")]
use std::collections::BTreeSet;

/// How many processes one look takes in: a worker with more is seen in part rather than slowed down.
#[cfg(target_os = "linux")]
const PROCESSES_MAX: usize = 256;

/// One process that was there a moment ago.
#[cfg(target_os = "linux")]
pub(super) struct Kin {
    pub(super) process: procfs::process::Process,
    pub(super) stat: procfs::process::Stat,
}

/// The child and its descendants.
#[cfg(target_os = "linux")]
pub(super) fn tree(child: u32) -> Vec<Kin> {
    let mut kin = Vec::new();
    let mut found = vec![child];
    while let Some(id) = found.pop().filter(|_| kin.len() < PROCESSES_MAX) {
        // One that ended since it was found is left out.
        let Some(one) = look(id) else { continue };
        let tasks = one.process.tasks().into_iter().flatten().flatten();
        found.extend(tasks.filter_map(|task| task.children().ok()).flatten());
        kin.push(one);
    }
    kin
}

#[cfg(target_os = "linux")]
fn look(id: u32) -> Option<Kin> {
    let process = procfs::process::Process::new(i32::try_from(id).ok()?).ok()?;
    let stat = process.stat().ok()?;
    Some(Kin { process, stat })
}

/// Those of a process group that still run. One that has ended and waits for its parent to notice counts as gone:
/// in a container nobody may ever notice.
#[cfg(target_os = "linux")]
pub(super) fn group(leader: i32) -> Vec<Kin> {
    let all = procfs::process::all_processes().into_iter().flatten().flatten();
    let kin = all.filter_map(|process| process.stat().ok().map(|stat| Kin { process, stat }));
    kin.filter(|kin| kin.stat.pgrp == leader && kin.stat.state != 'Z').take(PROCESSES_MAX).collect()
}

/// Whether anybody of a group, which the kernel says exists, still runs.
pub(super) fn group_runs(leader: i32) -> bool {
    #[cfg(target_os = "linux")]
    return !group(leader).is_empty();
    #[cfg(not(target_os = "linux"))]
    return leader > 0;
}

/// Whether the sockets that listen on this port are the child's or its group's, as far as can be seen: sockets of other
/// users' processes cannot be.
#[cfg(target_os = "linux")]
pub(super) fn listens(child: u32, port: u16) -> bool {
    // A port of another network, or a system that does not tell: that somebody answers has to be enough.
    let Some(listening) = listening_inodes(port).filter(|_| shares_network(child)) else { return true };
    let owns = |kin: Kin| {
        match kin.process.fd() {
        Ok(files) => files.flatten().any(|file| {
            matches!(file.target, procfs::process::FDTarget::Socket(inode) if listening.contains(&inode))
        }),
        // A program that changed its user hides its files; that it is ours and runs has to be enough.
        Err(procfs::ProcError::PermissionDenied(_)) => true,
        // It has ended since it was found.
        Err(_) => false,
    }
    };
    let leader = i32::try_from(child).unwrap_or_default();
    tree(child).into_iter().any(owns) || group(leader).into_iter().any(owns)
}

/// The kernel's list is no snapshot: it may miss a socket while others come and go, and has it at the next look.
#[cfg(target_os = "linux")]
fn listening_inodes(port: u16) -> Option<BTreeSet<u64>> {
    use procfs::net::{TcpState, tcp, tcp6};
    let entries = tcp().ok()?.into_iter().chain(tcp6().into_iter().flatten());
    let listening =
        entries.filter(|entry| entry.state == TcpState::Listen && entry.local_address.port() == port);
    Some(listening.map(|entry| entry.inode).collect())
}

/// Whether the child sees the network that this process sees. One that has ended is not taken for one elsewhere.
#[cfg(target_os = "linux")]
fn shares_network(child: u32) -> bool {
    let network = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/net"));
    match (network("self"), network(&child.to_string())) {
        (Ok(ours), Ok(theirs)) => ours == theirs,
        (Ok(_), Err(fault)) => fault.kind() != std::io::ErrorKind::PermissionDenied,
        (Err(_), _) => false,
    }
}

/// Other systems do not tell.
#[cfg(not(target_os = "linux"))]
pub(super) fn listens(_child: u32, _port: u16) -> bool {
    true
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_listener_belongs_to_the_process_that_holds_it() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(listens(std::process::id(), port));
        let mut stranger = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        assert!(!listens(stranger.id(), port));
        stranger.kill().unwrap();
        assert!(!listens(stranger.id(), port), "ended, and not yet noticed");
        stranger.wait().unwrap();
        assert!(!listens(stranger.id(), port), "gone");
        drop(listener);
        assert!(!listens(std::process::id(), port));
    }

    #[test]
    fn a_process_that_waits_to_be_noticed_is_not_of_its_group_any_more() {
        use std::os::unix::process::CommandExt;
        let mut child = std::process::Command::new("sleep").arg("60").process_group(0).spawn().unwrap();
        let leader = i32::try_from(child.id()).unwrap();
        assert!(group_runs(leader));
        child.kill().unwrap();
        while group_runs(leader) {
            std::thread::yield_now();
        }
        child.wait().unwrap();
    }
}
