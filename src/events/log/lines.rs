//! A log as JSON lines: one event a line, between a line that says where it begins and one that says where it ends.

use std::io::{self, BufRead, Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::sled::{LogCopy, SledOptions};
use super::{Head, LogError, LogReader, Scrubber};
use crate::events::codec::{SCHEMA_NEWEST, encode_body};
use crate::events::{Envelope, Offset};

/// The layout of the lines.
pub const LINES_FORMAT: u32 = 1;

/// The longest line, in bytes: several times the largest event, whose texts may grow by their escapes.
const LINE_BYTES_MAX: u64 = 1 << 20;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct First {
    foldplane_log: u32,
    schema: u16,
    after: Place,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Last {
    end: Place,
}

/// A head, with its hash as text.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Place {
    offset: Offset,
    chain: String,
}

impl From<Head> for Place {
    fn from(head: Head) -> Self {
        Self { offset: head.offset, chain: head.chain.to_string() }
    }
}

/// Why lines could not be written, or are no log.
#[derive(Debug, thiserror::Error)]
pub enum LinesError {
    /// The log said no.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The lines could not be read or written.
    #[error("cannot read or write the lines")]
    Io(#[from] io::Error),
    /// A line is not what belongs there.
    #[error("line {line}: {detail}")]
    Line {
        /// Which, from 1.
        line: u64,
        /// What is wrong.
        detail: String,
    },
    /// The events are not those that were exported.
    #[error(
        "the lines end in {found}, the exported log ended in {expected}: a line was changed, added or removed"
    )]
    Altered {
        /// What the last line says.
        expected: String,
        /// What follows from the lines.
        found: String,
    },
}

/// What is written of names, addresses, labels and sentences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Texts {
    /// They are what they are, and the lines give the same chain back.
    #[default]
    Kept,
    /// Each is replaced, always by the same; the lines give a log of their own.
    Scrubbed,
}

/// Writes the log as lines. `progress` is told each event. Gives the head of the log that the lines are.
///
/// # Errors
///
/// [`LinesError`]; the lines end where it happened, without a last line.
pub fn export(
    log: &dyn LogReader,
    out: &mut dyn Write,
    texts: Texts,
    mut progress: impl FnMut(&Envelope),
) -> Result<Head, LinesError> {
    let oldest = log.oldest();
    let after = log.head_at(Offset::new(oldest.get().saturating_sub(1)))?;
    write_line(out, &First { foldplane_log: LINES_FORMAT, schema: SCHEMA_NEWEST, after: after.into() })?;
    let (mut scrubber, mut scrubbed) = (Scrubber::default(), after);
    for envelope in log.read(oldest)? {
        let mut envelope = envelope?;
        if texts == Texts::Scrubbed {
            envelope = scrubber.scrub(&envelope).map_err(io::Error::from)?;
            let body = encode_body(&envelope).map_err(LogError::from)?;
            scrubbed = scrubbed.link(body.schema, &body.bytes);
        }
        write_line(out, &envelope)?;
        progress(&envelope);
    }
    let head = if texts == Texts::Scrubbed { scrubbed } else { log.head() };
    write_line(out, &Last { end: head.into() })?;
    out.flush()?;
    Ok(head)
}

fn write_line(out: &mut dyn Write, line: &impl Serialize) -> Result<(), LinesError> {
    serde_json::to_writer(&mut *out, line).map_err(io::Error::from)?;
    Ok(out.write_all(b"\n")?)
}

/// Makes a log in the new folder `dir` of lines, and checks that its chain is that of the exported log.
///
/// # Errors
///
/// [`LinesError`]; then the new folder is no log that should be used.
pub fn import(
    lines: &mut dyn BufRead,
    dir: &Path,
    options: SledOptions,
    mut progress: impl FnMut(&Envelope),
) -> Result<Head, LinesError> {
    let mut number = 0;
    let mut next = || -> Result<Option<(u64, String)>, LinesError> {
        let mut line = String::new();
        number += 1;
        let read = (&mut *lines).take(LINE_BYTES_MAX).read_line(&mut line)?;
        if read as u64 == LINE_BYTES_MAX {
            return Err(LinesError::Line {
                line: number,
                detail: format!("it is longer than {LINE_BYTES_MAX} bytes"),
            });
        }
        Ok((read > 0).then_some((number, line)))
    };
    let missing =
        |line, what: &str| LinesError::Line { line, detail: format!("the line with {what} is missing") };
    let (number, line) = next()?.ok_or_else(|| missing(1, "where the log begins"))?;
    let before = begin(number, &line)?;
    let mut copy = LogCopy::create(dir, before, options)?;
    let mut head = before;
    loop {
        let (number, line) = next()?.ok_or_else(|| missing(head.offset.get() + 2, "where the log ends"))?;
        if let Ok(Last { end }) = serde_json::from_str(&line) {
            return finish(copy, head, &end);
        }
        let envelope: Envelope = parse(number, &line)?;
        if envelope.offset != head.offset.next() {
            let detail = format!("the event is at {}, expected is {}", envelope.offset, head.offset.next());
            return Err(LinesError::Line { line: number, detail });
        }
        let body = encode_body(&envelope).map_err(LogError::from)?;
        head = head.link(body.schema, &body.bytes);
        copy.push(body.schema, &body.bytes)?;
        progress(&envelope);
    }
}

fn begin(number: u64, line: &str) -> Result<Head, LinesError> {
    let First { foldplane_log, schema, after } = parse(number, line)?;
    let wrong = |detail: String| LinesError::Line { line: number, detail };
    if (foldplane_log, schema) != (LINES_FORMAT, SCHEMA_NEWEST) {
        let detail = format!(
            "the lines have format {foldplane_log} and schema {schema}, this version reads {LINES_FORMAT} and {SCHEMA_NEWEST}"
        );
        return Err(wrong(detail));
    }
    let chain = after.chain.parse().map_err(|_| wrong("the chain is no hash".to_owned()))?;
    Ok(Head { offset: after.offset, chain })
}

fn finish(copy: LogCopy, head: Head, end: &Place) -> Result<Head, LinesError> {
    if (head.offset, &head.chain.to_string()) == (end.offset, &end.chain) {
        return Ok(copy.finish()?);
    }
    let expected = format!("{} (chain {})", end.offset, end.chain);
    Err(LinesError::Altered { expected, found: head.to_string() })
}

fn parse<'a, T: Deserialize<'a>>(number: u64, line: &'a str) -> Result<T, LinesError> {
    serde_json::from_str(line).map_err(|error| LinesError::Line { line: number, detail: error.to_string() })
}
