//! Patterns over names.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use wildmatch::WildMatch;

/// The longest pattern, in bytes: that of a name.
const GLOB_BYTES_MAX: usize = super::id::NAME_BYTES_MAX;

/// A pattern over a whole name: `*` stands for any text, `?` for any one character, everything else for itself.
///
/// ```
/// use foldplane::events::Glob;
/// let glob: Glob = "edge-*".parse().unwrap();
/// assert!(glob.matches("edge-7") && !glob.matches("the-edge-7"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Glob(Arc<str>);

/// Text that is no pattern, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidGlob {
    /// It is empty, which matches nothing.
    #[error("a pattern must not be empty: `*` matches everything")]
    Empty,
    /// It is too long.
    #[error("the pattern has {length} bytes, at most {GLOB_BYTES_MAX} are allowed")]
    TooLong {
        /// How long.
        length: usize,
    },
    /// It holds something that is special elsewhere, or that no name has.
    #[error("{character:?} is not allowed in the pattern {shown:?}: only `*` and `?` are special")]
    Character {
        /// What.
        character: char,
        /// The pattern, as far as an error may show it.
        shown: String,
    },
}

impl Glob {
    /// This text as a pattern.
    ///
    /// # Errors
    ///
    /// [`InvalidGlob`]. Sets and alternatives of other pattern languages (`[a-c]`, `{a,b}`) are refused rather than
    /// taken literally.
    pub fn new(text: &str) -> Result<Self, InvalidGlob> {
        if text.is_empty() {
            return Err(InvalidGlob::Empty);
        }
        if text.len() > GLOB_BYTES_MAX {
            return Err(InvalidGlob::TooLong { length: text.len() });
        }
        let refused = |c: &char| c.is_control() || c.is_whitespace() || "[]{}\\,".contains(*c);
        match text.chars().find(refused) {
            None => Ok(Self(text.into())),
            Some(character) => {
                Err(InvalidGlob::Character { character, shown: text.chars().take(40).collect() })
            }
        }
    }

    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it stands for this whole text.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        WildMatch::new(&self.0).matches(text)
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for Glob {
    type Err = InvalidGlob;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::new(text)
    }
}

impl TryFrom<String> for Glob {
    type Error = InvalidGlob;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::new(&text)
    }
}

impl From<Glob> for String {
    fn from(glob: Glob) -> Self {
        glob.0.as_ref().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(text: &str, reason: &str) {
        let message = Glob::new(text).unwrap_err().to_string();
        assert!(message.contains(reason), "{message}");
    }

    #[test]
    fn a_pattern_stands_for_whole_names() {
        let glob = |text| Glob::new(text).unwrap();
        assert!(glob("*").matches("") && glob("*").matches("web:admin"));
        assert!(glob("we?").matches("web") && !glob("we?").matches("we"));
        assert!(glob("web").matches("web") && !glob("web").matches("web2"));
    }

    #[test]
    fn what_other_pattern_languages_know_is_refused() {
        refused("", "must not be empty");
        refused("web-[ab]", "'[' is not allowed in the pattern \"web-[ab]\"");
        refused("{a,b}", "only `*` and `?` are special");
        refused("a b", "' ' is not allowed");
        refused(&"a".repeat(254), "254 bytes");
    }
}
