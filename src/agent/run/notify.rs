//! What the child says by itself: datagrams as `sd_notify` sends them, to the socket that `NOTIFY_SOCKET` names.

use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tokio::net::UnixDatagram;

/// The longest message that is read, in bytes: `sd_notify` sends a few short lines. What is beyond is cut off.
const MESSAGE_BYTES_MAX: usize = 4096;

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
        let folder = tempfile::Builder::new().prefix("foldplane-").tempdir()?;
        let path = folder.path().join("notify");
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

#[cfg(test)]
mod tests {
    use super::*;

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
