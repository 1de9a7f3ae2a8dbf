//! Text of strangers inside YAML.

use std::fmt;
use std::str::FromStr;

/// The longest label, in bytes: as long as the longest name.
const LABEL_BYTES_MAX: usize = 253;

/// A node id or cluster label: text in one line, of a length that logs and tables can show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label(String);

/// Text that cannot be a label.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidLabel {
    /// There is none.
    #[error("it must not be empty")]
    Empty,
    /// It is too long.
    #[error("it has {0} bytes, at most {LABEL_BYTES_MAX} are allowed")]
    TooLong(usize),
    /// It would break lines or hide itself.
    #[error("the control character {0:?} is not allowed")]
    Control(char),
}

impl FromStr for Label {
    type Err = InvalidLabel;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() {
            return Err(InvalidLabel::Empty);
        }
        if text.len() > LABEL_BYTES_MAX {
            return Err(InvalidLabel::TooLong(text.len()));
        }
        match text.chars().find(|c| c.is_control()) {
            Some(control) => Err(InvalidLabel::Control(control)),
            None => Ok(Self(text.to_owned())),
        }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A YAML scalar in double quotes, which no text can leave: everything but printable ASCII is escaped.
pub(super) fn quoted(text: impl fmt::Display) -> String {
    let mut scalar = String::from('"');
    for c in text.to_string().chars() {
        match c {
            '"' | '\\' => scalar.extend(['\\', c]),
            ' '..='~' => scalar.push(c),
            other => scalar.push_str(&format!("\\U{:08x}", u32::from(other))),
        }
    }
    scalar.push('"');
    scalar
}
