//! Which file is which module of which crate, by following `mod` from each crate's root.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use super::facts::{Declaration, Facts};
use super::tree::Source;

/// A Rust file and its place in its crate.
pub(crate) struct Module {
    pub(crate) file: String,
    /// Its path in its crate, without the crate's name; empty for a root.
    pub(crate) path: Vec<String>,
    /// Whether it is built for tests only.
    pub(crate) test: bool,
    pub(crate) facts: Facts,
}

/// Every Rust file that a crate's root leads to, and those that none leads to.
pub(crate) struct Graph {
    pub(crate) modules: Vec<Module>,
    pub(crate) findings: Vec<Finding>,
}

impl Graph {
    /// Follows every `mod` of these files.
    pub(crate) fn of(sources: &[Source]) -> Self {
        let mut findings = Vec::new();
        let mut unread: BTreeMap<&str, Facts> = BTreeMap::new();
        for source in sources.iter().filter(|source| source.path.ends_with(".rs")) {
            match Facts::of(&source.text) {
                Ok(facts) => {
                    unread.insert(&source.path, facts);
                }
                Err(error) => findings.push(Finding::new(&source.path, 1, format!("no Rust: {error}"))),
            }
        }
        let mut modules = Vec::new();
        let roots: Vec<String> =
            unread.keys().filter(|path| is_root(path)).map(|p| (*p).to_owned()).collect();
        for root in roots {
            follow(&root, Vec::new(), false, &mut unread, &mut modules);
        }
        findings.extend(unread.keys().map(|path| unreached(path)));
        Self { modules, findings }
    }

    /// The modules of the library, which the rules on rooms are about.
    pub(crate) fn library(&self) -> impl Iterator<Item = &Module> {
        self.modules.iter().filter(|m| m.file.starts_with("src/") && !is_program(&m.file))
    }

    /// The path of every module of the library, inline ones too.
    pub(crate) fn library_paths(&self) -> BTreeSet<Vec<String>> {
        let inline = |m: &Module| -> Vec<Vec<String>> {
            m.facts.inline_modules.iter().map(|scope| [m.path.clone(), scope.clone()].concat()).collect()
        };
        self.library().flat_map(|module| [vec![module.path.clone()], inline(module)].concat()).collect()
    }
}

fn is_program(file: &str) -> bool {
    file == "src/main.rs" || file.starts_with("src/bin/")
}

/// Where Cargo looks for crate roots.
fn is_root(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    matches!(
        parts.as_slice(),
        ["build.rs"]
            | ["src", "lib.rs" | "main.rs"]
            | ["src", "bin", _]
            | ["src", "bin", _, "main.rs"]
            | ["tests" | "benches" | "examples", _]
            | ["tests" | "benches" | "examples", _, "main.rs"]
            | ["fuzz", "build.rs"]
            | ["fuzz", "fuzz_targets", _]
    )
}

fn follow(
    file: &str,
    path: Vec<String>,
    test: bool,
    unread: &mut BTreeMap<&str, Facts>,
    modules: &mut Vec<Module>,
) {
    let Some(facts) = unread.remove(file) else { return };
    let declarations = facts.declarations.clone();
    modules.push(Module { file: file.to_owned(), path: path.clone(), test, facts });
    for declaration in declarations {
        let inner = [path.clone(), declaration.place.scope.clone(), vec![declaration.name.clone()]].concat();
        for candidate in candidates(file, &declaration) {
            follow(&candidate, inner.clone(), test || declaration.place.test, unread, modules);
        }
    }
}

/// The files that a `mod name;` in `file` may mean.
fn candidates(file: &str, declaration: &Declaration) -> Vec<String> {
    let (folder, name) = file.rsplit_once('/').unwrap_or((".", file));
    if let Some(path) = &declaration.path {
        return vec![normal(&format!("{folder}/{path}"))];
    }
    let owns_folder = is_root(file) || name == "mod.rs";
    let mut inside =
        if owns_folder { folder.to_owned() } else { format!("{folder}/{}", name.trim_end_matches(".rs")) };
    for scope in &declaration.place.scope {
        inside = format!("{inside}/{scope}");
    }
    let name = &declaration.name;
    vec![format!("{inside}/{name}.rs"), format!("{inside}/{name}/mod.rs")]
}

/// The path without `.` and `..`.
fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

fn unreached(path: &str) -> Finding {
    let message =
        "no `mod` leads to this file, so that it is neither built nor tested: declare it or delete it";
    Finding::new(path, 1, message.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn reached(files: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
        let sources: Vec<Source> = files.iter().map(|(path, text)| Source::new(path, text)).collect();
        let graph = Graph::of(&sources);
        let modules = graph.modules.iter().map(|m| format!("{} {}", m.file, m.path.join("::"))).collect();
        (modules, graph.findings.iter().map(|finding| finding.file.clone()).collect())
    }

    #[test]
    fn modules_get_their_path_from_the_root() {
        let (modules, findings) = reached(&[
            ("src/lib.rs", "pub mod a;"),
            ("src/a/mod.rs", "mod b;"),
            ("src/a/b.rs", "mod c;"),
            ("src/a/b/c.rs", ""),
        ]);
        assert_eq!(modules, ["src/lib.rs ", "src/a/mod.rs a", "src/a/b.rs a::b", "src/a/b/c.rs a::b::c"]);
        assert!(findings.is_empty());
    }

    #[test]
    fn a_file_that_nothing_declares_is_found() {
        let (_, findings) = reached(&[("tests/a.rs", "mod x {}"), ("tests/a/lost.rs", "fn f() {}")]);
        assert_eq!(findings, ["tests/a/lost.rs"]);
    }

    #[test]
    fn a_path_attribute_is_followed() {
        let (modules, findings) =
            reached(&[("tests/a.rs", "#[path = \"a/mod.rs\"]\nmod x;"), ("tests/a/mod.rs", "")]);
        assert_eq!(modules, ["tests/a.rs ", "tests/a/mod.rs x"]);
        assert!(findings.is_empty());
    }

    #[test]
    fn a_file_that_is_no_rust_is_found() {
        assert_eq!(reached(&[("src/lib.rs", "fn {")]).1, ["src/lib.rs"]);
    }
}
