//! The data folder: its lock, and the file that says what the folder holds.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use super::super::LogError;
use super::super::files::{store, sync_dir, write_atomically};

/// The layout of the folder that is written, and the newest that is opened.
const FORMAT: u32 = 1;
const FORMAT_FILE: &str = "FORMAT";
const FORMAT_TITLE: &str = "foldplane log, format ";
const LOCK_FILE: &str = "LOCK";
const SEGMENTS: &str = "segments";

/// How often a lock that somebody holds is tried again before the folder counts as in use: half a second in all.
const LOCK_RETRIES_MAX: usize = 25;
const LOCK_RETRY: Duration = Duration::from_millis(20);

/// Who else may have the folder open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Nobody.
    Exclusive,
    /// Others that only read.
    Shared,
}

/// The lock on a data folder, held for as long as this lives. The file stays; what counts is the lock on it.
#[derive(Debug)]
pub(super) struct FolderLock {
    _file: File,
}

/// Whether a folder already holds a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contents {
    /// Nothing, or what a start left behind that did not get far.
    Nothing,
    /// A log of a format that this version reads.
    Log,
}

impl FolderLock {
    /// Takes the lock.
    pub(super) fn take(dir: &Path, access: Access) -> Result<Self, LogError> {
        let path = dir.join(LOCK_FILE);
        let mut file = match access {
            Access::Exclusive => {
                OpenOptions::new().create(true).truncate(false).read(true).write(true).open(&path)
            }
            Access::Shared => File::open(&path),
        }
        .map_err(store("open", &path))?;
        match patiently(|| try_lock(&file, access)) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(LogError::InUse { path: dir.to_owned(), holder: holder(&mut file) });
            }
            Err(TryLockError::Error(source)) => return Err(store("lock", &path)(source)),
        }
        if access == Access::Exclusive {
            file.set_len(0)
                .and_then(|()| writeln!(file, "{}", std::process::id()))
                .map_err(store("write", &path))?;
        }
        Ok(Self { _file: file })
    }
}

fn try_lock(file: &File, access: Access) -> Result<(), TryLockError> {
    match access {
        Access::Exclusive => file.try_lock(),
        Access::Shared => file.try_lock_shared(),
    }
}

/// Tries again for a moment: a holder that was just killed, or a child that another thread is about to start, keeps a
/// lock for some milliseconds longer than its owner.
fn patiently(mut lock: impl FnMut() -> Result<(), TryLockError>) -> Result<(), TryLockError> {
    for _ in 0..LOCK_RETRIES_MAX {
        match lock() {
            Err(TryLockError::WouldBlock) => sleep(LOCK_RETRY),
            taken => return taken,
        }
    }
    lock()
}

fn holder(file: &mut File) -> Option<String> {
    const PID_BYTES_MAX: u64 = 20;
    let mut text = String::new();
    file.take(PID_BYTES_MAX).read_to_string(&mut text).ok()?;
    text.trim().parse::<u32>().ok().map(|pid| format!(", process {pid}"))
}

/// What the folder holds.
pub(super) fn contents(dir: &Path) -> Result<Contents, LogError> {
    let path = dir.join(FORMAT_FILE);
    let text = match fs::read(&path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Contents::Nothing),
        Err(error) => return Err(store("read", &path)(error)),
    };
    let format = text.strip_prefix(FORMAT_TITLE).and_then(|rest| rest.strip_suffix('\n')?.parse().ok());
    match format {
        Some(FORMAT) => Ok(Contents::Log),
        Some(found) if found > FORMAT => {
            Err(LogError::Newer { place: path.display().to_string(), found, known: FORMAT })
        }
        _ => Err(LogError::damaged(&path, format_args!("it should say \"{FORMAT_TITLE}{FORMAT}\""))),
    }
}

/// Says that the folder holds a log; the last step of its creation.
pub(super) fn write_format(dir: &Path) -> Result<(), LogError> {
    write_atomically(&dir.join(FORMAT_FILE), format!("{FORMAT_TITLE}{FORMAT}\n").as_bytes())
}

/// Takes back that the folder holds a log, while a copy is made in it.
pub(super) fn remove_format(dir: &Path) -> Result<(), LogError> {
    let path = dir.join(FORMAT_FILE);
    fs::remove_file(&path).map_err(store("remove", &path)).and_then(|()| sync_dir(dir))
}

/// Where the segments are.
pub(super) fn segments(dir: &Path) -> PathBuf {
    dir.join(SEGMENTS)
}
