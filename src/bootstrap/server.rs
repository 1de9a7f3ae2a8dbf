//! Where a control plane listens, as an operator names it.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// The longest host name that DNS knows, in bytes.
const HOST_BYTES_MAX: usize = 253;

/// `HOST:PORT`, where the host is an IP literal or a name for DNS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerAddress {
    /// Such as `127.0.0.1:18000` or `[2001:db8::1]:18000`.
    Ip(SocketAddr),
    /// Such as `control.example:18000`.
    Name {
        /// What DNS is asked for.
        host: String,
        /// The port.
        port: u16,
    },
}

/// Text that is no address of a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{shown}` is not an address of a server: write HOST:PORT, such as 127.0.0.1:18000 or [::1]:18000")]
pub struct InvalidServer {
    shown: String,
}

impl ServerAddress {
    /// The host without brackets, as Envoy's `socket_address` wants it.
    #[must_use]
    pub fn host(&self) -> String {
        match self {
            Self::Ip(address) => address.ip().to_string(),
            Self::Name { host, .. } => host.clone(),
        }
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> u16 {
        match self {
            Self::Ip(address) => address.port(),
            Self::Name { port, .. } => *port,
        }
    }
}

impl FromStr for ServerAddress {
    type Err = InvalidServer;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidServer { shown: text.escape_debug().take(80).collect() };
        let address = match text.parse::<SocketAddr>() {
            Ok(address) => Self::Ip(address),
            Err(_) => {
                let (host, port) = text.rsplit_once(':').ok_or_else(invalid)?;
                let port = port.parse().map_err(|_| invalid())?;
                Self::Name { host: host_name(host).ok_or_else(invalid)?.to_owned(), port }
            }
        };
        if address.port() == 0 { Err(invalid()) } else { Ok(address) }
    }
}

/// The text, if DNS could know it. Digits and dots alone are a mistyped address, not a name.
fn host_name(text: &str) -> Option<&str> {
    let known = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let sized = !text.is_empty() && text.len() <= HOST_BYTES_MAX;
    let named = text.chars().any(|c| c.is_ascii_alphabetic()) && text.parse::<IpAddr>().is_err();
    (sized && named && text.chars().all(known) && !text.starts_with(['-', '.'])).then_some(text)
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => address.fmt(f),
            Self::Name { host, port } => write!(f, "{host}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_names_are_read_and_printed_alike() {
        for text in ["127.0.0.1:18000", "[::1]:18000", "control.example:18000", "localhost:1"] {
            let address: ServerAddress = text.parse().unwrap();
            assert_eq!(address.to_string(), text);
        }
        assert_eq!("[2001:db8::1]:5".parse::<ServerAddress>().unwrap().host(), "2001:db8::1");
    }

    #[test]
    fn what_is_no_address_is_refused() {
        let long = format!("{}:1", "a".repeat(254));
        let wrong = ["", "x", ":1", "x:0", "x:65536", "1.2.3:1", "::1:1", "a\"b:1", "a b:1", "127.0.0.1:0"];
        for text in wrong.into_iter().chain([long.as_str()]) {
            let message = text.parse::<ServerAddress>().unwrap_err().to_string();
            assert!(message.contains("write HOST:PORT"), "{text}: {message}");
        }
    }
}
