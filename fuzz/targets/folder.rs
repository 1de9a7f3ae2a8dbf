//! A data folder with altered bytes.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use foldplane::events::log::{EventLog, LogError, LogReader, SledLog, SledOptions};
use foldplane::events::{Actor, Envelope, Event, Offset, ReplicaId, Timestamp};
use tempfile::TempDir;

/// A log of two segments with a saved state, made once.
static SOUND: LazyLock<(TempDir, Vec<Envelope>)> = LazyLock::new(|| {
    let dir = TempDir::new().expect("a folder for temporary files");
    let options = SledOptions { segment_events: 60, reserve_bytes: 0, ..SledOptions::default() };
    let events: Vec<Envelope> = (1..=90).map(envelope).collect();
    let mut log = SledLog::open(dir.path(), options).expect("a new log");
    for batch in events.chunks(15) {
        log.append(batch).expect("the disk works");
    }
    log.checkpoints().save(log.head(), b"a state").expect("the disk works");
    drop(log);
    (dir, events)
});

fn envelope(offset: u64) -> Envelope {
    let replica = ReplicaId::new("r").expect("a letter is a name");
    Envelope {
        offset: Offset::new(offset),
        recorded_at: Timestamp::from_millis(offset),
        actor: Actor::System,
        correlation: None,
        event: Event::ReplicaStarted { replica, version: format!("0.0.{offset}") },
    }
}

/// Alters a sound folder and opens it: nothing is lost or altered without an error. The bytes are edits of nine bytes each: which
/// file, where in four bytes, and four bytes to write there; a file whose number is above 127 is cut there instead.
///
/// # Panics
///
/// When opening or reading does, and when what they give is not what was written.
pub fn open_data_dir(bytes: &[u8]) {
    let (sound, events) = &*SOUND;
    let dir = TempDir::new().expect("a folder for temporary files");
    copy(sound.path(), dir.path());
    let files = files(dir.path());
    for edit in bytes.chunks_exact(9).take(8) {
        alter(&files, edit);
    }
    let Ok(log) = SledLog::open(dir.path(), SledOptions { reserve_bytes: 0, ..SledOptions::default() })
    else {
        return;
    };
    let _saved = log.checkpoints().newest(&log, |bytes| Ok::<_, LogError>(bytes.to_vec()));
    let found: Result<Vec<Envelope>, LogError> = log.read(log.oldest()).and_then(Iterator::collect);
    if let Ok(found) = found {
        assert!(found == *events, "{} of {} events are left, or one is another", found.len(), events.len());
    }
}

fn alter(files: &[PathBuf], edit: &[u8]) {
    let Some((&[which, a, b, c, d], written)) = edit.split_first_chunk() else { return };
    let Some(file) = files.get(usize::from(which % 128) % files.len()) else { return };
    let mut content = fs::read(file).expect("a file that was just copied");
    // sled fills the rest of its file with zeroes: most edits should hit what means something.
    let used = content.iter().rposition(|byte| *byte != 0).map_or(1, |last| last + 1);
    let at = u32::from_be_bytes([a, b, c, d]) as usize % used;
    if which > 127 {
        content.truncate(at);
    } else {
        content.iter_mut().skip(at).zip(written).for_each(|(old, new)| *old = *new);
    }
    fs::write(file, content).expect("the disk works");
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let (mut files, mut folders) = (Vec::new(), vec![dir.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    files
}

fn copy(from: &Path, to: &Path) {
    for file in files(from) {
        let target = to.join(file.strip_prefix(from).expect("it was found there"));
        fs::create_dir_all(target.parent().expect("a file is in a folder")).expect("the disk works");
        fs::copy(file, target).expect("the disk works");
    }
}
