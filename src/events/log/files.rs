//! The file operations that survive a power cut.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use super::LogError;

/// Creates the folder and those above it where they are missing, so that they outlive a power cut.
pub(super) fn create_dirs(dir: &Path) -> Result<(), LogError> {
    if dir.is_dir() {
        return Ok(());
    }
    let parent = parent(dir);
    create_dirs(parent)?;
    fs::create_dir(dir).map_err(store("create the folder", dir))?;
    sync_dir(parent)
}

/// Writes the whole file or leaves the old one: a new file, synced, then renamed over it.
pub(super) fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), LogError> {
    let new = path.with_extension("new");
    let write = || {
        let mut file = File::create(&new)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().map_err(store("write", &new))?;
    fs::rename(&new, path).map_err(store("rename to", path))?;
    sync_dir(parent(path))
}

/// Makes the names in a folder durable.
pub(super) fn sync_dir(dir: &Path) -> Result<(), LogError> {
    File::open(dir).and_then(|folder| folder.sync_all()).map_err(store("sync the folder", dir))
}

/// The folder that a path is in; `.` for a bare name.
pub(super) fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// For `map_err`: what was being done, to which file.
pub(super) fn store(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> LogError + use<> {
    let path = path.to_owned();
    move |source| LogError::Store { action, path, source }
}
