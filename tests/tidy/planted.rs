//! Each fault of the list can still be planted, and docs/testing.md says who finds it.

use serde::Deserialize;

use super::Finding;
use super::tree::Source;

/// The faults, which `examples/planted` puts in one at a time.
const LIST: &str = "tests/testdata/planted.yaml";

/// Where people read of them.
const TABLE: &str = "docs/testing.md";

#[derive(Deserialize)]
struct Fault {
    fault: String,
    file: String,
    old: String,
}

/// Faults whose place is gone or not the only one, and faults that the table does not tell of.
pub(crate) fn findings(sources: &[Source]) -> Vec<Finding> {
    let text =
        |path: &str| sources.iter().find(|source| source.path == path).map(|source| source.text.as_str());
    let faults = match serde_saphyr::from_str::<Vec<Fault>>(text(LIST).unwrap_or_default()) {
        Ok(faults) => faults,
        Err(error) => return vec![Finding::new(LIST, 1, format!("it is no list of faults: {error}"))],
    };
    let table = text(TABLE).unwrap_or_default();
    let told = |fault: &Fault| table.lines().any(|line| line.starts_with(&format!("| {} |", fault.fault)));
    let misplaced = faults.iter().filter_map(|fault| {
        let places = text(&fault.file).unwrap_or_default().matches(&fault.old).count();
        let message = || {
            format!(
                "`{}`: its `old` stands {places} times in {}, and must stand once",
                fault.fault, fault.file
            )
        };
        (places != 1).then(|| Finding::new(LIST, 1, message()))
    });
    let untold = faults.iter().filter(|fault| !told(fault)).map(|fault| {
        Finding::new(TABLE, 1, format!("no row of the table begins with `{}`, which is planted", fault.fault))
    });
    misplaced.chain(untold).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn found(code: &str, table: &str, expected: &[&str]) {
        let list = "- {fault: no answer, file: src/a.rs, old: 'answer()'}\n";
        let sources = [(LIST, list), (TABLE, table), ("src/a.rs", code)];
        let found = findings(&sources.map(|(path, text)| Source::new(path, text)));
        assert_eq!(found.len(), expected.len(), "{found:?}");
        assert!(found.iter().zip(expected).all(|(f, e)| f.message.contains(e)), "{found:?}");
    }

    #[test]
    fn a_fault_without_its_place_or_its_row_is_found() {
        found("answer();", "| no answer | `a` |", &[]);
        found("reply();", "| no answer | `a` |", &["stands 0 times"]);
        found("answer(); answer();", "| no answer | `a` |", &["stands 2 times"]);
        found("answer();", "no answer", &["no row"]);
    }
}
