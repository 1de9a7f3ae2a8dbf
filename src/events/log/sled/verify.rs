//! Reads a whole log and says everything that is wrong with it.

use std::path::Path;

use super::super::LogError;
use super::offline;
use super::walk::{self, Step};
use super::witness;
use crate::events::codec::{Mark, decode_body};
use crate::events::{Envelope, Head, Offset};

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Where, and what.
    pub message: String,
}

/// What a log holds, and what is wrong with it.
#[derive(Clone, Debug, Default)]
pub struct Verification {
    /// The head before the first event that is kept.
    pub before: Head,
    /// The end of the events that are whole, from the first one on.
    pub good: Head,
    /// The end that was acknowledged, where the witness can be read.
    pub acknowledged: Option<Head>,
    /// How many segments there are.
    pub segments: usize,
    /// What is wrong, in the order of the log; empty in a sound one.
    pub findings: Vec<Finding>,
}

impl Verification {
    fn found(&mut self, error: &LogError) {
        self.findings.push(Finding { message: error.to_string() });
    }

    /// What would be lost if the log were cut after its last whole event: the first and the last offset.
    #[must_use]
    pub fn lost(&self) -> Option<(Offset, Offset)> {
        let last = self.acknowledged?.offset;
        (last > self.good.offset).then(|| (self.good.offset.next(), last))
    }
}

/// Reads everything in `dir`: frames, chain, contiguity, witness. Each event that is whole, with all before it, is
/// handed to `visit` with the head of the log there. Damage does not stop it: what comes after is looked at too.
///
/// # Errors
///
/// What keeps it from looking at all: no log, a server that has it open, a newer format.
pub fn verify(dir: &Path, mut visit: impl FnMut(Envelope, Head)) -> Result<Verification, LogError> {
    let _lock = offline::lock(dir)?;
    let mut found = Verification::default();
    let mark = match witness::read(dir) {
        Ok((_, mark)) => {
            found.acknowledged = Some(mark.head);
            Some(mark)
        }
        Err(error @ LogError::Newer { .. }) => return Err(error),
        Err(error) => {
            found.found(&error);
            None
        }
    };
    let (row, error) = walk::row(dir, mark.unwrap_or_default());
    if let (Some(error), Some(_)) = (error, mark) {
        found.found(&error);
    }
    found.segments = row.segments.len();
    found.before = row.segments.first().map_or(Head::default(), |header| header.before);
    found.good = found.before;
    let mut whole = true;
    let mut at_mark = (mark.map(|mark| mark.head) == Some(found.before)).then_some(found.before);
    for header in row.segments {
        if header.before != found.good && whole {
            whole = false;
            let detail = format_args!(
                "it goes on after {}, but the events before it end at {}",
                header.before, found.good
            );
            found.found(&LogError::damaged(&dir.join(header.folder()), detail));
        }
        let mut undecodable = None;
        let mut end = header.before;
        let result: Result<Head, LogError> = walk::walk(dir, header, |step| {
            end = step.head;
            if !whole || undecodable.is_some() {
                return Ok(());
            }
            match decode(step) {
                Ok(envelope) => visit(envelope, step.head),
                Err(error) => {
                    undecodable = Some(error);
                    return Ok(());
                }
            }
            found.good = step.head;
            if mark.is_some_and(|mark| mark.head.offset == step.head.offset) {
                at_mark = Some(step.head);
            }
            Ok(())
        });
        for error in undecodable.into_iter().chain(result.err()) {
            whole = false;
            found.found(&error);
        }
    }
    check_witness(&mut found, dir, mark, at_mark);
    Ok(found)
}

fn check_witness(found: &mut Verification, dir: &Path, mark: Option<Mark>, at_mark: Option<Head>) {
    let Some(Mark { head: acknowledged, .. }) = mark else { return };
    let place = dir.join(witness::WITNESS_FILE);
    match at_mark {
        Some(head) if head == acknowledged => {}
        Some(head) => {
            let detail = format_args!("{acknowledged} was acknowledged, but the log has {head}");
            found.found(&LogError::damaged(&place, detail));
        }
        None => {
            let detail = format_args!(
                "events up to {} were acknowledged, whole are those up to {}",
                acknowledged.offset, found.good.offset
            );
            found.found(&LogError::damaged(&place, detail));
        }
    }
}

fn decode(step: Step<'_>) -> Result<Envelope, LogError> {
    let offset = step.head.offset;
    decode_body(offset, step.schema, step.body)
        .map_err(|error| LogError::Damaged { place: offset.to_string(), detail: error.to_string() })
}
