//! The faults, as they are written down, and putting one into the copy.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, ensure};
use serde::Deserialize;

/// Where they are written down, from the root of the repository.
const LIST: &str = "tests/testdata/planted.yaml";

/// One wrong change.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fault {
    /// What goes wrong.
    pub(crate) fault: String,
    /// In which file.
    file: String,
    /// The text that is right, which stands there once.
    old: String,
    /// The text that is wrong.
    new: String,
    /// The arguments of `cargo test`.
    pub(crate) test: String,
    /// How tests are called of which at least one must fail.
    found: Vec<String>,
}

/// Every fault whose name contains this text.
pub(crate) fn read(root: &Path, only: &str) -> anyhow::Result<Vec<Fault>> {
    let text = fs::read_to_string(root.join(LIST)).with_context(|| format!("cannot read {LIST}"))?;
    let all: Vec<Fault> =
        serde_saphyr::from_str(&text).with_context(|| format!("{LIST} is no list of faults"))?;
    let chosen: Vec<Fault> = all.into_iter().filter(|fault| fault.fault.contains(only)).collect();
    ensure!(!chosen.is_empty(), "no fault in {LIST} has {only:?} in its name");
    Ok(chosen)
}

impl Fault {
    /// Does `work` while the fault is in the copy, and takes it out again.
    pub(crate) fn planted<T>(&self, copy: &Path, work: impl FnOnce() -> T) -> anyhow::Result<T> {
        let path = copy.join(&self.file);
        let right = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let places = right.matches(&self.old).count();
        ensure!(places == 1, "{:?} stands {places} times in {}, not once", self.old, self.file);
        fs::write(&path, right.replace(&self.old, &self.new))?;
        let outcome = work();
        fs::write(&path, right)?;
        Ok(outcome)
    }

    /// The tests that failed, of those that must find it.
    pub(crate) fn finders<'a>(&self, failed: &'a [String]) -> Vec<&'a str> {
        let finds = |test: &&String| self.found.iter().any(|name| test.contains(name.as_str()));
        failed.iter().filter(finds).map(String::as_str).collect()
    }
}
