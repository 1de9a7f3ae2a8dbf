//! The one place that writes to stdout and stderr.

use std::io::Write;

use clap::ValueEnum;
use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;

use super::Failure;

/// How data is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For people
    #[default]
    Table,
    /// For people, with every column
    Wide,
    /// For scripts: one JSON document
    Json,
    /// The same as YAML
    Yaml,
    /// For scripts: one name or address a line
    Text,
}

/// Whether anybody reads stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reader {
    There,
    Gone,
}

/// Writes data to stdout. A reader that has gone away ends the output quietly, as for any filter.
pub(super) fn data(text: &str) -> Result<(), Failure> {
    piece(text).map(drop)
}

/// Writes a piece of something that goes on for as long as it is read.
pub(super) fn piece(text: &str) -> Result<Reader, Failure> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(Reader::There),
        Err(fault) if fault.kind() == std::io::ErrorKind::BrokenPipe => Ok(Reader::Gone),
        Err(fault) => Err(Failure::fault("cannot write to stdout").because(fault)),
    }
}

/// Writes a line to stderr.
pub(super) fn note(text: &str) {
    // There is nowhere left to say that stderr is closed.
    let _closed = writeln!(std::io::stderr().lock(), "{text}");
}

/// A JSON document, indented, with a line end.
pub(super) fn json<T: Serialize>(value: &T) -> Result<String, Failure> {
    let mut text = serde_json::to_string_pretty(value)
        .map_err(|fault| Failure::fault("cannot write JSON").because(fault))?;
    text.push('\n');
    Ok(text)
}

/// A YAML document.
pub(super) fn yaml<T: Serialize>(value: &T) -> Result<String, Failure> {
    serde_saphyr::to_string(value).map_err(|fault| Failure::fault("cannot write YAML").because(fault))
}

/// A document in the language that was asked for: JSON, unless that is YAML.
pub(super) fn document<T: Serialize>(value: &T, format: Format) -> Result<String, Failure> {
    match format {
        Format::Yaml => yaml(value),
        Format::Json | Format::Table | Format::Wide | Format::Text => json(value),
    }
}

/// A table without lines: columns that align, and that `awk` can split.
pub(super) fn table<const COLUMNS: usize>(
    header: [&str; COLUMNS],
    rows: impl IntoIterator<Item = [String; COLUMNS]>,
) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header);
    for row in rows {
        table.add_row(row.map(|cell| if cell.is_empty() { "-".to_owned() } else { cell }));
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.lines().fold(String::new(), |text, line| text + line.trim_end() + "\n")
}

/// One item a line.
pub(super) fn lines<T: AsRef<str>>(items: impl IntoIterator<Item = T>) -> String {
    items.into_iter().fold(String::new(), |text, item| text + item.as_ref() + "\n")
}
