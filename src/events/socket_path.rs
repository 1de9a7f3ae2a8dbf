//! The path of a Unix domain socket, checked once where it enters.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The longest path that a socket can have on Linux, in bytes: `sun_path` of `struct sockaddr_un` without its closing NUL
/// (unix(7)). Envoy refuses a longer one, and with it everything else in the response.
pub const SOCKET_PATH_BYTES_MAX: usize = 107;

/// Where a Unix domain socket lies: an absolute path.
///
/// ```
/// use foldplane::events::SocketPath;
/// let path: SocketPath = "/run/web.sock".parse().unwrap();
/// assert_eq!(path.as_str(), "/run/web.sock");
/// assert!("run/web.sock".parse::<SocketPath>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketPath(Arc<str>);

/// A path that was refused, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSocketPath {
    /// It depends on where somebody stands.
    #[error("a socket's path must begin with '/'")]
    Relative,
    /// No socket can have it.
    #[error("a socket's path has at most {SOCKET_PATH_BYTES_MAX} bytes, this one {0}")]
    TooLong(usize),
    /// It would break a line, or end early.
    #[error("a socket's path must not hold the control character {0:?}")]
    Control(char),
}

impl SocketPath {
    /// The checked path.
    ///
    /// # Errors
    ///
    /// [`InvalidSocketPath`] when it is relative, too long, or holds a control character.
    pub fn new(text: &str) -> Result<Self, InvalidSocketPath> {
        if !text.starts_with('/') {
            return Err(InvalidSocketPath::Relative);
        }
        if text.len() > SOCKET_PATH_BYTES_MAX {
            return Err(InvalidSocketPath::TooLong(text.len()));
        }
        match text.chars().find(|c| c.is_control()) {
            Some(control) => Err(InvalidSocketPath::Control(control)),
            None => Ok(Self(text.into())),
        }
    }

    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SocketPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for SocketPath {
    type Err = InvalidSocketPath;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::new(text)
    }
}

impl Serialize for SocketPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for SocketPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'_, str>>::deserialize(deserializer)?;
        Self::new(&text).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_proxy_could_open_is_refused() {
        let refused = |text: &str| SocketPath::new(text).unwrap_err();
        assert_eq!(refused(""), InvalidSocketPath::Relative);
        assert_eq!(refused("@abstract"), InvalidSocketPath::Relative);
        assert_eq!(refused(&format!("/{}", "a".repeat(107))), InvalidSocketPath::TooLong(108));
        assert_eq!(refused("/run/a\0b"), InvalidSocketPath::Control('\0'));
        assert!(SocketPath::new(&format!("/{}", "a".repeat(106))).is_ok());
        assert!(SocketPath::new("/run/with space/ü.sock").is_ok());
    }
}
