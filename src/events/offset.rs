//! Places in the log.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A place in the log. The first event is at 1; [`Offset::ZERO`] is the place before it.
///
/// Printed with an at sign, `@42`, and read with or without it.
///
/// ```
/// use foldplane::events::Offset;
/// let offset: Offset = "@42".parse().unwrap();
/// assert_eq!(offset.next().to_string(), "@43");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Offset(u64);

impl Offset {
    /// The place before the first event: the head of an empty log.
    pub const ZERO: Self = Self(0);

    /// The last place a log can have: fifteen digits, so that a version string (offset, dash and
    /// sixteen digits of digest) never exceeds 32 bytes. A million events a second reach it after 31 years.
    pub const MAX: Self = Self(999_999_999_999_999);

    /// The place with this number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The place after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// The place `count` events after this one.
    #[must_use]
    pub const fn plus(self, count: u64) -> Self {
        Self(self.0 + count)
    }

    /// How many events lie between `earlier` and this one; zero when `earlier` is not earlier.
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}", self.0)
    }
}

/// Text that is no offset.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not an offset: write a whole number such as 42 or @42")]
pub struct InvalidOffset {
    text: String,
}

impl FromStr for Offset {
    type Err = InvalidOffset;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.strip_prefix('@')
            .unwrap_or(text)
            .parse()
            .ok()
            .filter(|number| *number <= Self::MAX.0)
            .map(Self)
            .ok_or_else(|| InvalidOffset { text: text.escape_debug().take(40).collect() })
    }
}

/// The fencing token of one registration: the offset at which it was recorded.
///
/// A command that carries an older generation than the worker's is refused, never obeyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Generation(Offset);

impl Generation {
    /// The generation of the registration recorded at `offset`.
    #[must_use]
    pub const fn at(offset: Offset) -> Self {
        Self(offset)
    }

    /// Where the registration was recorded.
    #[must_use]
    pub const fn offset(self) -> Offset {
        self.0
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
