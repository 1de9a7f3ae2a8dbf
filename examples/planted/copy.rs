//! A copy of the repository to spoil, so that the tree that is worked on stays as it is.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};

/// Brings the copy up to date and gives its place. A file that is the same keeps its time, so that Cargo builds little.
pub(crate) fn of(root: &Path) -> anyhow::Result<PathBuf> {
    let copy = root.join("target/planted/tree");
    for file in files(root)? {
        let wanted = fs::read(root.join(&file)).with_context(|| format!("cannot read {file}"))?;
        let target = copy.join(&file);
        if fs::read(&target).is_ok_and(|present| present == wanted) {
            continue;
        }
        let folder = target.parent().with_context(|| format!("{file} has no folder"))?;
        fs::create_dir_all(folder).and_then(|()| fs::write(&target, wanted))?;
    }
    Ok(copy)
}

/// What git knows, and what is new and not ignored; without what is deleted.
fn files(root: &Path) -> anyhow::Result<Vec<String>> {
    let listed = Command::new("git")
        .current_dir(root)
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
        .output()
        .context("cannot start git, which says which files there are")?;
    ensure!(listed.status.success(), "git: {}", String::from_utf8_lossy(&listed.stderr).trim());
    let names = String::from_utf8(listed.stdout)?;
    let names = names.split_terminator('\0').filter(|name| root.join(name).is_file());
    Ok(names.map(str::to_owned).collect())
}
