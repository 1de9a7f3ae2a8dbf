//! Each file says what it is for, and decisions are numbered.

use std::collections::BTreeSet;

use super::Finding;
use super::tree::Source;

/// Rust files that do not open with a sentence on their purpose.
pub(crate) fn purposes(sources: &[Source]) -> Vec<Finding> {
    let rust = sources.iter().filter(|source| source.path.ends_with(".rs"));
    rust.filter(|source| !opens_with_a_sentence(&source.text))
        .map(|source| {
            let message = "the file must open with `//!` and one sentence that says what it is for";
            Finding::new(&source.path, 1, message.to_owned())
        })
        .collect()
}

fn opens_with_a_sentence(text: &str) -> bool {
    let lines = text.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim);
    let paragraph: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
    let words = paragraph.iter().flat_map(|line| line.split_whitespace()).count();
    // Two words and a full stop say nothing that the name of the file does not say.
    words > 2 && paragraph.last().is_some_and(|line| line.ends_with(['.', ':']))
}

/// Folders of `src` without a `mod.rs`, which is where a room states its purpose.
pub(crate) fn folders(sources: &[Source]) -> Vec<Finding> {
    let files: BTreeSet<&str> = sources.iter().map(|source| source.path.as_str()).collect();
    let rust = files.iter().filter(|path| path.starts_with("src/") && path.ends_with(".rs"));
    let folders: BTreeSet<&str> =
        rust.filter_map(|path| path.rsplit_once('/')).map(|(folder, _)| folder).collect();
    let bare = folders.into_iter().filter(|folder| {
        !matches!(*folder, "src" | "src/bin") && !files.contains(format!("{folder}/mod.rs").as_str())
    });
    bare.map(|folder| {
        Finding::new(folder, 1, "this folder has no mod.rs: move the file beside it into it".to_owned())
    })
    .collect()
}

/// Decision files that are not `NNNN-title.md`, numbered without gaps, with context, options and choice.
pub(crate) fn decisions(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut expected = 1;
    for source in sources {
        let Some(name) = source.path.strip_prefix("docs/decisions/") else { continue };
        match number(name) {
            Some(number) if number == expected => expected += 1,
            Some(_) => findings.push(misnumbered(source, expected)),
            None => {
                let message = "a decision is named NNNN-title.md, such as 0007-worker-key.md";
                findings.push(Finding::new(&source.path, 1, message.to_owned()));
            }
        }
        for heading in ["## Context", "## Options", "## Choice"] {
            if !source.text.lines().any(|line| line == heading) {
                findings.push(Finding::new(&source.path, 1, format!("the heading `{heading}` is missing")));
            }
        }
    }
    findings
}

fn misnumbered(source: &Source, expected: u32) -> Finding {
    Finding::new(&source.path, 1, format!("the next free number is {expected:04}: rename the file"))
}

fn number(name: &str) -> Option<u32> {
    let (number, title) = name.strip_suffix(".md")?.split_once('-')?;
    let title_is_plain = title.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    let digits = number.len() == 4 && number.bytes().all(|byte| byte.is_ascii_digit());
    (digits && title_is_plain && !title.is_empty()).then(|| number.parse().ok())?
}

/// Files below `tests/` that are no Rust, and that no test names: neither the file nor its folder.
pub(crate) fn unnamed_test_data(sources: &[Source]) -> Vec<Finding> {
    let rust = sources.iter().filter(|source| source.path.ends_with(".rs"));
    let said: String = rust.map(|source| source.text.as_str()).collect();
    let data =
        sources.iter().filter(|source| source.path.starts_with("tests/") && !source.path.ends_with(".rs"));
    // Seeds of failures, which proptest finds by itself.
    let data = data.filter(|source| !source.path.contains("/proptest-regressions/"));
    data.filter(|source| !is_named(&source.path, &said))
        .map(|source| {
            Finding::new(
                &source.path,
                1,
                "no test names this file or its folder: use it or delete it".to_owned(),
            )
        })
        .collect()
}

fn is_named(path: &str, said: &str) -> bool {
    // The last two parts: deeper folders are cases that a test finds by walking.
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    parts.iter().filter(|part| **part != "testdata").any(|part| said.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_purpose_is_found() {
        let found = |text| purposes(&[Source::new("src/a.rs", text)]).len();
        assert_eq!(found("//! Keeps what was said.\n"), 0);
        assert_eq!(found("//! Keeps what was\n//! said.\n//!\n//! More\n"), 0);
        assert_eq!(found("use std::fmt;\n"), 1);
        assert_eq!(found("//! A file.\n"), 1);
        assert_eq!(found("//! Keeps what was said\n"), 1);
    }

    #[test]
    fn a_folder_without_a_mod_file_is_found() {
        let with = ["src/lib.rs", "src/a/mod.rs", "src/a/b.rs"].map(|path| Source::new(path, ""));
        assert!(folders(&with).is_empty());
        let without = ["src/lib.rs", "src/a.rs", "src/a/b.rs"].map(|path| Source::new(path, ""));
        assert_eq!(folders(&without)[0].file, "src/a");
    }

    const WHOLE: &str = "# T\n\n## Context\n\n## Options\n\n## Choice\n";

    #[track_caller]
    fn decision(files: &[(&str, &str)], expected: &[&str]) {
        let sources: Vec<Source> =
            files.iter().map(|(name, text)| Source::new(&format!("docs/decisions/{name}"), text)).collect();
        let found = decisions(&sources);
        assert_eq!(found.len(), expected.len(), "{found:?}");
        assert!(found.iter().zip(expected).all(|(f, e)| f.message.contains(e)), "{found:?}");
    }

    #[test]
    fn decisions_are_numbered_without_gaps_and_have_three_parts() {
        decision(&[("0001-one.md", WHOLE), ("0002-two.md", WHOLE)], &[]);
        decision(&[("0001-one.md", WHOLE), ("0003-three.md", WHOLE)], &["number is 0002"]);
        decision(&[("0001-one.md", WHOLE), ("0001-uno.md", WHOLE)], &["number is 0002"]);
        decision(&[("one.md", WHOLE)], &["NNNN-title.md"]);
        decision(&[("0001-One_A.md", WHOLE)], &["NNNN-title.md"]);
        decision(&[("0001-one.md", "## Context\n## Choice\n")], &["## Options"]);
    }

    #[test]
    fn test_data_that_no_test_names_is_found() {
        let test = Source::new("tests/a.rs", "fn worlds() { read(\"tests/testdata/worlds\") }");
        let used = Source::new("tests/testdata/worlds/one/log.jsonl", "");
        let lost = Source::new("tests/testdata/old/log.txt", "");
        let found = unnamed_test_data(&[test, used, lost]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].file, "tests/testdata/old/log.txt");
    }
}
