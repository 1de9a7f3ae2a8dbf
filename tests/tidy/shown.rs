//! Each rule of the xDS server, and each report of others, is shown by a test that says so.

use std::collections::BTreeMap;

use super::Finding;
use super::tree::Source;

/// Where the table stands.
const TABLE: &str = "docs/xds-rules-shown.md";

/// The rules, and the reports on xDS, on endpoints, on workers, leases and ports, on transport and on churn.
fn expected() -> Vec<String> {
    let rules = (1..=37).map(|rule| rule.to_string());
    let reports = (1..=36).chain(40..=44).map(|report| format!("F{report}"));
    rules.chain(reports).collect()
}

/// Where real clients are started.
fn is_with_real_clients(path: &str) -> bool {
    path.starts_with("tests/xds/with_") || path.starts_with("tests/e2e/")
}

/// A test function: where it is, and its name and comments.
struct Test<'a> {
    path: &'a str,
    text: String,
}

/// One line of the table.
struct Row<'a> {
    line: usize,
    number: &'a str,
    needs_real_client: bool,
    shown_by: &'a str,
}

/// Rows that are missing, and rows whose tests do not exist or do not say what they show.
pub(crate) fn findings(sources: &[Source]) -> Vec<Finding> {
    let Some(table) = sources.iter().find(|source| source.path == TABLE) else {
        return vec![Finding::new(TABLE, 1, "the table of the rules and their tests is missing".to_owned())];
    };
    let rows = rows(&table.text);
    let mut findings = Vec::new();
    let numbers: Vec<_> = rows.iter().map(|row| row.number.to_owned()).collect();
    if numbers != expected() {
        let message = format!("the rows must be {}, each once and in order", expected().join(" "));
        findings.push(Finding::new(TABLE, 1, message));
    }
    let tests = tests(sources);
    for row in &rows {
        findings
            .extend(row_findings(row, &tests).into_iter().map(|text| Finding::new(TABLE, row.line, text)));
    }
    findings
}

fn rows(text: &str) -> Vec<Row<'_>> {
    let lines = text.lines().enumerate();
    lines
        .filter_map(|(index, line)| {
            let mut cells = line.strip_prefix("| ")?.split(" | ");
            let first = cells.next()?;
            let number = first.trim_end_matches(" ⚡");
            let is_number = number.trim_start_matches('F').parse::<u32>().is_ok();
            let shown_by = cells.nth(1)?.trim_end_matches(" |");
            let needs_real_client = number != first;
            is_number.then_some(Row { line: index + 1, number, needs_real_client, shown_by })
        })
        .collect()
}

fn row_findings(row: &Row<'_>, tests: &BTreeMap<&str, Test<'_>>) -> Vec<String> {
    if row.shown_by.starts_with("not yet: ") {
        return Vec::new();
    }
    let names: Vec<_> = row.shown_by.split('`').skip(1).step_by(2).collect();
    let mut findings = Vec::new();
    for name in &names {
        match tests.get(name) {
            None => findings.push(format!("there is no test `{name}`")),
            Some(test) if !says(name, &test.text, row.number) => {
                findings.push(format!("`{name}` does not say that it shows {}", row.number));
            }
            Some(_) => {}
        }
    }
    let is_real = |name: &&str| tests.get(*name).is_some_and(|test| is_with_real_clients(test.path));
    if row.needs_real_client && !names.iter().any(is_real) {
        findings.push(format!("{} needs a test with a real client", row.number));
    }
    if names.is_empty() {
        findings.push(format!("nothing shows {}", row.number));
    }
    findings
}

/// Whether a test names this rule or report: a rule in its name or after `xds-rules`, a report in a comment.
fn says(name: &str, comments: &str, number: &str) -> bool {
    let words =
        |text: &str| text.split(|c: char| !c.is_ascii_alphanumeric()).map(str::to_owned).collect::<Vec<_>>();
    let named = name.strip_prefix("rule_").is_some_and(|rest| {
        let numbers = rest.split('_').take_while(|word| word.parse::<u32>().is_ok());
        numbers.into_iter().any(|word| word == number)
    });
    let mut commented = comments.lines().filter(|line| number.starts_with('F') || line.contains("xds-rules"));
    named || commented.any(|line| words(line).iter().any(|word| word == number))
}

/// Every test function by its name, with the comments above and in it.
fn tests(sources: &[Source]) -> BTreeMap<&str, Test<'_>> {
    let mut tests = BTreeMap::new();
    let ours = |source: &&Source| source.path.starts_with("tests/") || source.path.starts_with("src/");
    for source in sources.iter().filter(ours).filter(|source| source.path.ends_with(".rs")) {
        let lines: Vec<&str> = source.text.lines().collect();
        for (index, line) in lines.iter().enumerate().filter(|(_, line)| is_test_attribute(line)) {
            let indent = line.len() - line.trim_start().len();
            let above = lines.iter().take(index).rev().take_while(|line| line.trim_start().starts_with("//"));
            let ends = |line: &&str| line.trim() == "}" && line.len() - line.trim_start().len() == indent;
            let body: Vec<&str> = lines.iter().skip(index).copied().take_while(|line| !ends(line)).collect();
            let Some(name) = body.iter().find_map(|line| function(line)) else { continue };
            let comments = body.iter().filter_map(|line| line.find("//").map(|at| &line[at..]));
            let text: Vec<&str> = above.copied().chain(comments).collect();
            tests.insert(name, Test { path: &source.path, text: text.join("\n") });
        }
    }
    tests
}

fn is_test_attribute(line: &str) -> bool {
    let line = line.trim_start();
    line == "#[test]" || line.starts_with("#[tokio::test")
}

fn function(line: &str) -> Option<&str> {
    let rest = line.trim_start().trim_start_matches("async ").strip_prefix("fn ")?;
    rest.split('(').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST: &str =
        "    // F7: a report\n    #[test]\n    fn rule_3_14_it_holds() {\n        // xds-rules 9\n    }\n";

    #[track_caller]
    fn of_row(path: &str, row: &str) -> Vec<String> {
        let sources = [Source::new(path, TEST)];
        let rows = rows(row);
        row_findings(&rows[0], &super::tests(&sources))
    }

    #[test]
    fn a_row_is_shown_by_a_test_that_says_so() {
        for number in ["3", "14", "9", "F7"] {
            let row = format!("| {number} | text | `rule_3_14_it_holds` |");
            assert_eq!(of_row("tests/xds/a.rs", &row), Vec::<String>::new());
        }
        let other = of_row("tests/xds/a.rs", "| 4 | text | `rule_3_14_it_holds` |");
        assert_eq!(other, ["`rule_3_14_it_holds` does not say that it shows 4"]);
        assert_eq!(of_row("tests/xds/a.rs", "| 3 | text | `rule_3_it` |"), ["there is no test `rule_3_it`"]);
        assert_eq!(of_row("tests/xds/a.rs", "| 3 | text | nothing |"), ["nothing shows 3"]);
    }

    #[test]
    fn some_rules_need_a_real_client() {
        let row = "| 3 ⚡ | text | `rule_3_14_it_holds` |";
        assert_eq!(of_row("tests/xds/a.rs", row), ["3 needs a test with a real client"]);
        assert_eq!(of_row("tests/xds/with_envoy.rs", row), Vec::<String>::new());
    }
}
