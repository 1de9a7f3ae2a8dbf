//! What must not stand in a committed file: unfinished code, and places that exist on one machine only.

use super::Finding;
use super::graph::Module;
use super::tree::Source;

/// Macros that mean "not yet", or that were forgotten.
const UNFINISHED: [&str; 3] = ["todo", "unimplemented", "dbg"];

/// Unfinished code.
pub(crate) fn unfinished(modules: &[Module]) -> Vec<Finding> {
    let all = modules.iter().flat_map(|m| m.facts.macros.iter().map(move |called| (m, called)));
    all.filter(|(_, (name, _))| UNFINISHED.contains(&name.as_str()))
        .map(|(module, (name, place))| {
            Finding::new(
                &module.file,
                place.line,
                format!("`{name}!` is left over: finish the code or remove it"),
            )
        })
        .collect()
}

/// Folders of one machine, and hosts of package registries: the one does not exist elsewhere, the other is the
/// choice of whoever builds. Written in two halves, so that this file does not find itself.
const LOCAL: [(&str, &str); 9] = [
    ("/work", "/"),
    ("/root", "/"),
    ("/home", "/"),
    ("/tmp/", "warm"),
    ("pypi", ".org"),
    ("files.python", "hosted.org"),
    ("registry.", "npmjs.org"),
    ("index.crates", ".io"),
    ("deb.debian", ".org"),
];

/// Text that holds on one machine only.
pub(crate) fn local_places(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources {
        for (index, line) in source.text.lines().enumerate() {
            let hits = LOCAL.iter().map(|(a, b)| format!("{a}{b}")).filter(|place| mentions(line, place));
            findings.extend(hits.map(|place| {
                let message =
                    format!("`{place}` exists on one machine only: use a relative path or a setting");
                Finding::new(&source.path, index + 1, message)
            }));
        }
    }
    findings
}

/// A path counts where it starts, not as the end of another (`docs/work/`); a host counts anywhere.
fn mentions(line: &str, place: &str) -> bool {
    line.match_indices(place).any(|(at, _)| {
        let before = line.get(..at).and_then(|text| text.chars().next_back());
        !place.starts_with('/') || !before.is_some_and(|c| c.is_alphanumeric() || "-_.~}/".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::super::graph::Graph;
    use super::*;

    #[test]
    fn unfinished_code_is_found() {
        let found = |text| unfinished(&Graph::of(&[Source::new("src/lib.rs", text)]).modules);
        assert_eq!(found("fn f() {\n    todo!()\n}")[0].line, 2);
        assert_eq!(found("fn f() { dbg!(1); }").len(), 1);
        assert!(found("// todo!\nfn f() { println!() }").is_empty());
    }

    #[track_caller]
    fn places(line: &str) -> Vec<usize> {
        local_places(&[Source::new("README.md", line)]).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn places_of_one_machine_are_found() {
        for (a, b) in LOCAL {
            assert_eq!(places(&format!("ok\nsee {a}{b}x")), [2], "{a}{b}");
        }
    }

    #[test]
    fn the_same_letters_inside_another_path_are_not() {
        assert_eq!(places("docs/work/ and ~/work/"), [] as [usize; 0]);
    }
}
