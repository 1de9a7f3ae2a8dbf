//! The rules of the house, each a pure function from what the files say to what is wrong with them.

pub(crate) mod facts;
pub(crate) mod graph;
pub(crate) mod imports;
pub(crate) mod layout;
pub(crate) mod map;
pub(crate) mod planted;
pub(crate) mod purity;
pub(crate) mod rooms;
pub(crate) mod shown;
pub(crate) mod size;
pub(crate) mod text;
pub(crate) mod tree;

use std::fmt;

/// A place where a rule is broken.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// The file, from the root of the repository.
    pub(crate) file: String,
    /// The line, from 1.
    pub(crate) line: usize,
    /// What is broken, and how to mend it.
    pub(crate) message: String,
}

impl Finding {
    /// A finding at a line of a file.
    pub(crate) fn new(file: &str, line: usize, message: String) -> Self {
        Self { file: file.to_owned(), line, message }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)
    }
}

/// Fails with every finding on a line of its own.
#[track_caller]
pub(crate) fn hold(mut findings: Vec<Finding>) {
    findings.sort();
    let lines: Vec<String> = findings.iter().map(Finding::to_string).collect();
    assert!(findings.is_empty(), "\n\n{}\n", lines.join("\n"));
}
