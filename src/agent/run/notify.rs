//! What the child says by itself: datagrams as `sd_notify` sends them, to the socket that `NOTIFY_SOCKET` names.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tokio::net::UnixDatagram;

/// The longest message that is read, in bytes: `sd_notify` sends a few short lines. What is beyond is cut off.
const MESSAGE_BYTES_MAX: usize = 4096;

/// How the folder of a mailbox is called, and the socket in it.
const FOLDER_PREFIX: &str = "foldplane-notify-";
const SOCKET: &str = "notify";

/// One thing that the child said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Tiding {
    /// `READY=1`: it can serve, for the first time or again.
    Ready,
    /// `X_FOLDPLANE_UNREADY=reason`: it cannot serve now.
    Unready(String),
    /// `STOPPING=1`: it is about to end.
    Stopping,
    /// `STATUS=text`: for people.
    Status(String),
    /// `WATCHDOG=1`: it is alive.
    Alive,
}

impl Tiding {
    /// What a message says. Lines of other meaning are left out, as the protocol wants.
    pub(super) fn read(message: &[u8]) -> Vec<Self> {
        String::from_utf8_lossy(message).lines().filter_map(Self::of_line).collect()
    }

    fn of_line(line: &str) -> Option<Self> {
        match line.split_once('=')? {
            ("READY", "1") => Some(Self::Ready),
            ("STOPPING", "1") => Some(Self::Stopping),
            ("WATCHDOG", "1") => Some(Self::Alive),
            ("STATUS", text) => Some(Self::Status(text.to_owned())),
            ("X_FOLDPLANE_UNREADY", reason) => Some(Self::Unready(reason.to_owned())),
            _ => None,
        }
    }
}

/// The socket, in a folder that only this user can enter.
#[derive(Debug)]
pub(super) struct Mailbox {
    socket: UnixDatagram,
    path: PathBuf,
    /// Removed with the mailbox.
    _folder: TempDir,
}

impl Mailbox {
    pub(super) fn open() -> io::Result<Self> {
        sweep(&std::env::temp_dir());
        let folder = tempfile::Builder::new().prefix(FOLDER_PREFIX).tempdir()?;
        let path = folder.path().join(SOCKET);
        Ok(Self { socket: UnixDatagram::bind(&path)?, path, _folder: folder })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The next message with something in it.
    pub(super) async fn next(&self) -> Vec<Tiding> {
        let mut buffer = [0; MESSAGE_BYTES_MAX];
        loop {
            let received = self.socket.recv(&mut buffer).await;
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

    #[test]
    fn a_message_says_what_its_lines_say() {
        let message =
            b"READY=1\nMAINPID=7\nSTATUS=all=well\nX_FOLDPLANE_UNREADY=db\nWATCHDOG=1\nSTOPPING=1\n";
        let expected = [
            Tiding::Ready,
            Tiding::Status("all=well".to_owned()),
            Tiding::Unready("db".to_owned()),
            Tiding::Alive,
            Tiding::Stopping,
        ];
        assert_eq!(Tiding::read(message), expected);
    }

    #[test]
    fn nonsense_says_nothing() {
        for message in [&b""[..], b"READY=0", b"READY", b"\xff\xfe=1", b"=\n=1\n", b"ready=1"] {
            assert_eq!(Tiding::read(message), [], "{message:?}");
        }
    }
}
