//! What the child says by itself: datagrams as `sd_notify` sends them, to the socket that `NOTIFY_SOCKET` names.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;
use tokio::net::UnixDatagram;
use tokio::time::{Instant, sleep};

use super::tiding::Tiding;

/// The longest message that is read, in bytes: `sd_notify` sends a few short lines. What is beyond is cut off.
const MESSAGE_BYTES_MAX: usize = 4096;

/// How long one message is paid for: 20 a second are many times what a watchdog, a status and metrics need.
/// A child that says more waits, or loses what it says; the agent has other work.
const MESSAGE_COSTS: Duration = Duration::from_millis(50);

/// How much may be owed: a hundred messages at once, as when a child starts.
const DEBT_MAX: Duration = Duration::from_secs(5);

/// How the folder of a mailbox is called, and the socket in it.
const FOLDER_PREFIX: &str = "foldplane-notify-";
const SOCKET: &str = "notify";

/// The socket, in a folder that only this user can enter.
#[derive(Debug)]
pub(super) struct Mailbox {
    socket: UnixDatagram,
    path: PathBuf,
    /// Until when what was read so far is paid for.
    paid_until: Instant,
    /// Removed with the mailbox.
    _folder: TempDir,
}

impl Mailbox {
    pub(super) fn open() -> io::Result<Self> {
        sweep(&std::env::temp_dir());
        let folder = tempfile::Builder::new().prefix(FOLDER_PREFIX).tempdir()?;
        let path = folder.path().join(SOCKET);
        Ok(Self { socket: UnixDatagram::bind(&path)?, path, paid_until: Instant::now(), _folder: folder })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The next message with something in it. Nothing is lost when this is given up.
    pub(super) async fn next(&mut self) -> Vec<Tiding> {
        let mut buffer = [0; MESSAGE_BYTES_MAX];
        loop {
            let owed = self.paid_until.saturating_duration_since(Instant::now());
            sleep(owed.saturating_sub(DEBT_MAX)).await;
            let received = self.socket.recv(&mut buffer).await;
            self.paid_until = self.paid_until.max(Instant::now()) + MESSAGE_COSTS;
            let tidings = received.ok().and_then(|length| buffer.get(..length)).map(Tiding::read);
            match tidings {
                Some(tidings) if !tidings.is_empty() => return tidings,
                // An empty message, or one about something else.
                Some(_) => {}
                // A datagram socket of our own does not fail; if it does, it has nothing more to say.
                None => return std::future::pending().await,
            }
        }
    }
}

/// Removes what agents left behind that were killed: mailboxes that nobody reads any more. What cannot be removed is
/// somebody else's, and stays.
fn sweep(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_mailbox = name.to_str().is_some_and(|name| name.starts_with(FOLDER_PREFIX));
        if is_mailbox && is_abandoned(&entry.path().join(SOCKET)) {
            let _kept = fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether there is a socket that nobody reads.
fn is_abandoned(socket: &Path) -> bool {
    let tried = std::os::unix::net::UnixDatagram::unbound().and_then(|probe| probe.connect(socket));
    tried.is_err_and(|fault| fault.kind() == io::ErrorKind::ConnectionRefused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_a_killed_agent_left_is_swept_and_what_is_in_use_stays() {
        let place = tempfile::tempdir().unwrap();
        let mailbox = |name: &str| {
            let folder = place.path().join(format!("{FOLDER_PREFIX}{name}"));
            fs::create_dir(&folder).unwrap();
            (UnixDatagram::bind(folder.join(SOCKET)).unwrap(), folder)
        };
        let (left, left_folder) = mailbox("left");
        let (_used, used_folder) = mailbox("used");
        let strange = place.path().join("somebody-else");
        fs::create_dir(&strange).unwrap();
        drop(left);
        sweep(place.path());
        assert!(!left_folder.exists());
        assert!(used_folder.exists() && strange.exists());
    }

    #[tokio::test]
    async fn a_child_that_never_stops_talking_is_heard_twenty_times_a_second() {
        let mut mailbox = Mailbox::open().unwrap();
        let path = mailbox.path().to_owned();
        let child = std::os::unix::net::UnixDatagram::unbound().unwrap();
        // Ends when the mailbox is gone.
        let talking = std::thread::spawn(move || while child.send_to(b"WATCHDOG=1", &path).is_ok() {});
        let begun = Instant::now();
        for _ in 0..130 {
            assert_eq!(mailbox.next().await, [Tiding::Alive]);
        }
        // A hundred at once, then each at its price.
        let took = begun.elapsed();
        assert!(took > MESSAGE_COSTS * 29, "{took:?}");
        drop(mailbox);
        talking.join().unwrap();
    }
}
