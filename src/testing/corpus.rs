//! A real log as a corpus: what happened once is a better case than most that are made up.

use std::sync::Arc;

use super::Ledger;
use crate::events::Envelope;
use crate::projection::resources::{Resources, TypeUrl};
use crate::projection::{Snapshot, StateDigest, checkpoint};

/// Why lines are no log.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {source}")]
pub struct CorpusError {
    /// Which, from 1.
    line: usize,
    /// What is wrong with it.
    source: serde_json::Error,
}

/// The events of a log, from the lines that `foldplane log export --scrub` or `foldplane log dump` printed.
///
/// Nothing here reads files, so that the text comes from `std::fs::read_to_string` or `include_str!`.
///
/// # Errors
///
/// [`CorpusError`] for the first line that is no event, other than the first and last line of an export.
pub fn corpus(lines: &str) -> Result<Vec<Envelope>, CorpusError> {
    let frame = |line: &str| line.starts_with("{\"foldplane_log\"") || line.starts_with("{\"end\"");
    let events = (1..).zip(lines.lines()).filter(|(_, line)| !line.trim().is_empty() && !frame(line));
    let event = |(line, text)| serde_json::from_str(text).map_err(|source| CorpusError { line, source });
    events.map(event).collect()
}

/// Folds every prefix of a log and calls `hold` with what is true and published after it, for properties of your own.
///
/// Checks on the way what always has to hold: no version falls or stands for two contents, and who goes on from a state that
/// was saved in the middle ends at the same state, bytes and versions.
///
/// ```
/// use foldplane::testing::{corpus, replay};
///
/// let log = corpus(r#"{"offset":1,"recorded_at":0,"actor":"System","correlation":null,
///     "event":{"ReplicaStarted":{"replica":"r1","version":"0.1.0"}}}"#.replace('\n', " ").as_str())?;
/// replay(&log, |snapshot| assert!(snapshot.state().workers().is_empty()));
/// # Ok::<(), foldplane::testing::CorpusError>(())
/// ```
///
/// # Panics
///
/// When something does not hold.
pub fn replay(log: &[Envelope], mut hold: impl FnMut(&Snapshot)) {
    let (mut live, mut ledger) = (Snapshot::default(), Ledger::default());
    let mut saved = Vec::new();
    for (count, envelope) in (1..).zip(log) {
        live = live.fold([envelope]).0;
        ledger.check(live.resources());
        hold(&live);
        if count == log.len().div_ceil(2) {
            saved = checkpoint::encode(live.state());
        }
    }
    let Ok(middle) = checkpoint::decode(&saved) else { return };
    let continued = Snapshot::of(middle).fold(log).0;
    assert_eq!(StateDigest::of(continued.state()), StateDigest::of(live.state()), "from a saved state");
    assert_eq!(versions(continued.resources()), versions(live.resources()), "from a saved state");
}

fn versions(resources: &Arc<Resources>) -> Vec<String> {
    let sets = TypeUrl::ALL.map(|type_url| resources.of(type_url));
    let of = |set: &crate::projection::resources::ResourceSet| {
        let members = set.iter().map(|resource| format!("{} {}", resource.name, resource.version));
        members.chain([set.version().to_string()]).collect::<Vec<_>>()
    };
    sets.into_iter().flat_map(of).collect()
}
