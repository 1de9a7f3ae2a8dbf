//! What everybody thinks of the child, told as it changes and not faster than people and logs can follow.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::agent::client::Opinion;
use crate::proto::Verdict;

/// How long a source that was told of is left alone: each report is an event that everybody keeps. The first is told at
/// once, and what changed meanwhile afterwards.
pub(super) const REST: Duration = Duration::from_secs(1);

/// How many sources one child may have: the control plane takes sixteen, and our own monitors are among them.
const SOURCES_MAX: usize = 12;

/// The newest opinion of each source.
#[derive(Debug, Default)]
pub(super) struct Reports {
    newest: BTreeMap<String, Opinion>,
    /// Who was told of within the last [`REST`].
    resting: BTreeSet<String>,
    /// Whose newest is not told yet.
    waiting: BTreeSet<String>,
}

/// What becomes of an opinion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is to be told now.
    Told,
    /// It is told when its source has rested.
    Waits,
    /// It is known.
    Known,
    /// It is dropped: there are too many sources.
    Dropped,
}

impl Reports {
    /// Takes in an opinion.
    pub(super) fn take(&mut self, source: &str, opinion: &Opinion) -> Fate {
        let newest = self.newest.get(source);
        if newest == Some(opinion) || (newest.is_none() && *opinion == Opinion::healthy()) {
            return Fate::Known;
        }
        if newest.is_none() && self.newest.len() >= SOURCES_MAX {
            return Fate::Dropped;
        }
        self.newest.insert(source.to_owned(), opinion.clone());
        if self.resting.insert(source.to_owned()) {
            return Fate::Told;
        }
        self.waiting.insert(source.to_owned());
        Fate::Waits
    }

    /// [`REST`] is over: what is to be told now. Those are the next to rest.
    pub(super) fn rested(&mut self) -> Vec<(String, Opinion)> {
        self.resting = std::mem::take(&mut self.waiting);
        let newest = |source: &String| Some((source.clone(), self.newest.get(source)?.clone()));
        self.resting.iter().filter_map(newest).collect()
    }

    /// Whether anybody rests.
    pub(super) fn rest(&self) -> bool {
        !self.resting.is_empty()
    }

    /// Everybody but `kept` who thinks something that the next child starts without.
    pub(super) fn outlived(&self, kept: &str) -> Vec<String> {
        let says = |opinion: &Opinion| opinion.verdict != Verdict::Healthy || !opinion.reason.is_empty();
        let outlived = self.newest.iter().filter(|(source, opinion)| *source != kept && says(opinion));
        outlived.map(|(source, _)| source.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ill(reason: &str) -> Opinion {
        Opinion { verdict: Verdict::Unhealthy, reason: reason.to_owned() }
    }

    #[test]
    fn the_first_is_told_at_once_and_then_the_newest_once_a_rest() {
        let mut reports = Reports::default();
        assert_eq!(reports.take("memory", &Opinion::healthy()), Fate::Known, "all are well at first");
        assert_eq!(reports.take("memory", &ill("a")), Fate::Told);
        assert_eq!(reports.take("memory", &ill("a")), Fate::Known);
        assert_eq!(reports.take("memory", &ill("b")), Fate::Waits);
        assert_eq!(reports.take("memory", &ill("c")), Fate::Waits);
        assert_eq!(reports.take("process", &ill("d")), Fate::Told, "each has its own rest");
        assert_eq!(reports.rested(), [("memory".to_owned(), ill("c"))]);
        assert!(reports.rest());
        assert_eq!(reports.rested(), []);
        assert!(!reports.rest());
        assert_eq!(reports.take("memory", &ill("e")), Fate::Told);
    }

    #[test]
    fn a_child_that_invents_sources_is_stopped_at_twelve() {
        let mut reports = Reports::default();
        let fates: Vec<Fate> = (0..20).map(|n| reports.take(&format!("custom:{n}"), &ill(""))).collect();
        assert_eq!(fates[..12], [Fate::Told; 12]);
        assert_eq!(fates[12..], [Fate::Dropped; 8]);
        assert_eq!(reports.take("custom:0", &ill("again")), Fate::Waits);
    }
}
