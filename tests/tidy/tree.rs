//! The files of the repository, as they are on disk.

use std::fs;
use std::path::Path;

/// One text file.
pub(crate) struct Source {
    /// Its path from the root of the repository, with `/` between its parts.
    pub(crate) path: String,
    /// What it says.
    pub(crate) text: String,
}

impl Source {
    /// A file for a rule's own tests.
    #[cfg(test)]
    pub(crate) fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }
}

/// What is built or fetched, and never committed.
const NOT_OURS: [&str; 6] = [".git", "target", "artifacts", "node_modules", ".venv", "__pycache__"];

/// Every text file of the repository, sorted by path. Files that are not UTF-8 are no text.
pub(crate) fn text_files() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    walk(root, "", &mut files);
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

fn walk(folder: &Path, prefix: &str, files: &mut Vec<Source>) {
    for entry in fs::read_dir(folder).expect("the repository can be read") {
        let entry = entry.expect("the repository can be read");
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        let kind = entry.file_type().expect("a file has a type");
        if NOT_OURS.contains(&name.as_str()) {
            continue;
        }
        if kind.is_dir() {
            walk(&entry.path(), &format!("{path}/"), files);
        } else if kind.is_file()
            && let Ok(text) = fs::read_to_string(entry.path())
        {
            files.push(Source { path, text });
        }
    }
}
