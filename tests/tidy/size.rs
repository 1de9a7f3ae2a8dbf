//! No file and no function longer than a reader holds in mind.

use super::Finding;
use super::graph::Module;
use super::tree::Source;

/// Longer files hold more than one idea.
const FILE_LINES_MAX: usize = 400;

/// About what fits on a screen.
const FUNCTION_LINES_MAX: usize = 70;

/// Rust files that are too long.
pub(crate) fn files(sources: &[Source]) -> Vec<Finding> {
    let rust = sources.iter().filter(|source| source.path.ends_with(".rs"));
    rust.filter_map(|source| file(source, source.text.lines().count())).collect()
}

fn file(source: &Source, lines: usize) -> Option<Finding> {
    (lines > FILE_LINES_MAX).then(|| {
        let message =
            format!("{lines} lines, at most {FILE_LINES_MAX}: move one of its ideas into a file of its own");
        Finding::new(&source.path, FILE_LINES_MAX + 1, message)
    })
}

/// Functions that are too long.
pub(crate) fn functions(modules: &[Module]) -> Vec<Finding> {
    let all = modules.iter().flat_map(|m| m.facts.functions.iter().map(move |function| (m, function)));
    all.filter(|(_, function)| function.lines > FUNCTION_LINES_MAX)
        .map(|(module, function)| {
            let message = format!(
                "`{}` has {} lines, at most {FUNCTION_LINES_MAX}: keep the control flow, and move the leaves below it",
                function.name, function.lines
            );
            Finding::new(&module.file, function.line, message)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::graph::Graph;
    use super::*;

    #[test]
    fn a_file_may_have_400_lines_and_not_one_more() {
        assert!(files(&[Source::new("src/a.rs", &"\n".repeat(400))]).is_empty());
        let found = files(&[Source::new("src/a.rs", &"\n".repeat(401))]);
        assert_eq!(
            found[0].to_string(),
            "src/a.rs:401: 401 lines, at most 400: move one of its ideas into a file of its own"
        );
    }

    #[track_caller]
    fn function_of(lines: usize) -> Vec<Finding> {
        let text = format!("\nfn long() {{{}}}\n", "\n".repeat(lines - 1));
        functions(&Graph::of(&[Source::new("src/lib.rs", &text)]).modules)
    }

    #[test]
    fn a_function_may_have_70_lines_and_not_one_more() {
        assert!(function_of(70).is_empty());
        let found = function_of(71);
        assert!(found[0].to_string().starts_with("src/lib.rs:2: `long` has 71 lines, at most 70"));
    }
}
