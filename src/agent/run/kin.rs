//! The processes that belong to the child, as `/proc` shows them. Linux only; elsewhere nothing is found.

#[cfg(target_os = "linux")]
use std::collections::BTreeSet;

use super::assignment::Place;

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

/// Whose the sockets are that listen somewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listener {
    /// The child's or its group's.
    Own,
    /// Somebody else's, or nobody's.
    Other,
    /// It cannot be seen: a process that changed its user hides its files, another network its sockets. While a process
    /// becomes another program it hides them too, for a moment.
    Hidden,
}

/// Whose the sockets are that listen there.
#[cfg(target_os = "linux")]
pub(super) fn listener(child: u32, place: &Place) -> Listener {
    let listening = match place {
        Place::Ip(address) => listening_inodes(address.port()).filter(|_| shares_network(child)),
        // The list has the text with which a path was bound, which may be another for the same file.
        Place::Path(path) => listening_at(path).filter(|inodes| !inodes.is_empty()),
    };
    let Some(listening) = listening else {
        return Listener::Hidden;
    };
    let leader = i32::try_from(child).unwrap_or_default();
    let kin = tree(child).into_iter().chain(group(leader));
    let seen: Vec<Listener> = kin.map(|kin| listener_of(&kin, &listening)).collect();
    [Listener::Own, Listener::Hidden].into_iter().find(|one| seen.contains(one)).unwrap_or(Listener::Other)
}

#[cfg(target_os = "linux")]
fn listener_of(kin: &Kin, listening: &BTreeSet<u64>) -> Listener {
    use procfs::process::FDTarget;
    match kin.process.fd() {
        Ok(files) => {
            let is_listening =
                |target: &FDTarget| matches!(target, FDTarget::Socket(inode) if listening.contains(inode));
            let owns = files.flatten().any(|file| is_listening(&file.target));
            if owns { Listener::Own } else { Listener::Other }
        }
        Err(procfs::ProcError::PermissionDenied(_)) => Listener::Hidden,
        // It has ended since it was found.
        Err(_) => Listener::Other,
    }
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

#[cfg(target_os = "linux")]
fn listening_at(path: &std::path::Path) -> Option<BTreeSet<u64>> {
    use procfs::net::{UnixState, unix};
    // Accepted connections bear the path of their listener, and are connected.
    let is_there = |entry: &procfs::net::UnixNetEntry| {
        entry.state == UnixState::UNCONNECTED && entry.path.as_deref() == Some(path)
    };
    Some(unix().ok()?.into_iter().filter(is_there).map(|entry| entry.inode).collect())
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
pub(super) fn listener(_child: u32, _place: &Place) -> Listener {
    Listener::Hidden
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_listener_belongs_to_the_process_that_holds_it() {
        let listening = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = &Place::Ip(listening.local_addr().unwrap());
        assert_eq!(listener(std::process::id(), port), Listener::Own);
        let mut stranger = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        assert_eq!(listener(stranger.id(), port), Listener::Other);
        stranger.kill().unwrap();
        assert_eq!(listener(stranger.id(), port), Listener::Other, "ended, and not yet noticed");
        stranger.wait().unwrap();
        assert_eq!(listener(stranger.id(), port), Listener::Other, "gone");
        drop(listening);
        assert_eq!(listener(std::process::id(), port), Listener::Other);
    }

    #[test]
    fn a_socket_with_a_path_belongs_to_the_process_that_holds_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("web.sock");
        let _listening = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let place = &Place::Path(path);
        assert_eq!(listener(std::process::id(), place), Listener::Own);
        let mut stranger = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        assert_eq!(listener(stranger.id(), place), Listener::Other);
        stranger.kill().unwrap();
        stranger.wait().unwrap();
        let unknown = &Place::Path(folder.path().join("other.sock"));
        assert_eq!(listener(std::process::id(), unknown), Listener::Hidden);
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
