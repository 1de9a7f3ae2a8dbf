//! What `serve` is told: read whole, checked whole, every fault reported at once.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::events::log::Retention;

/// Where the xDS door is unless told otherwise.
pub const XDS_ADDRESS_DEFAULT: &str = "127.0.0.1:18000";

/// Where the door for workers and people is unless told otherwise.
pub const API_ADDRESS_DEFAULT: &str = "127.0.0.1:18080";

/// Everything that a control plane is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where the log is.
    pub data_dir: PathBuf,
    /// Where proxies connect.
    pub xds: SocketAddr,
    /// Where workers, scripts and people connect.
    pub api: SocketAddr,
    /// Whether addresses beyond this machine are allowed.
    pub exposure: Exposure,
    /// How long workers have to come back after our own start, in milliseconds.
    pub rejoin_grace_ms: u64,
    /// Which old events may go.
    pub retention: Retention,
}

/// Whether strangers may connect. Nothing proves who they are yet, so that has to be said aloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposure {
    /// Loopback addresses only.
    Loopback,
    /// Any address, without TLS and authentication.
    Insecure,
}

/// One thing that is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigFault {
    /// An address that others can reach, without `--insecure`.
    #[error(
        "--{flag} {address} can be reached from other machines, and nothing there proves who asks: \
         give a loopback address such as 127.0.0.1:{}, or --insecure if the network is trusted", address.port()
    )]
    Exposed {
        /// Which flag.
        flag: &'static str,
        /// Its address.
        address: SocketAddr,
    },
    /// Two doors at one address.
    #[error("--xds and --api are both {address}: give each its own port")]
    SameAddress {
        /// The address.
        address: SocketAddr,
    },
}

impl Config {
    /// Everything that is wrong with it.
    #[must_use]
    pub fn faults(&self) -> Vec<ConfigFault> {
        let doors = [("xds", self.xds), ("api", self.api)];
        let exposed = doors
            .into_iter()
            .filter(|(_, address)| self.exposure == Exposure::Loopback && !address.ip().is_loopback())
            .map(|(flag, address)| ConfigFault::Exposed { flag, address });
        let same = (self.xds == self.api && self.xds.port() != 0)
            .then_some(ConfigFault::SameAddress { address: self.xds });
        exposed.chain(same).collect()
    }
}

/// The per-user folder for the log: `$XDG_STATE_HOME/foldplane` on Linux, the local data folder elsewhere.
#[must_use]
pub fn default_data_dir() -> Option<PathBuf> {
    dirs::state_dir().or_else(dirs::data_local_dir).map(|folder| folder.join("foldplane"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(xds: &str, api: &str, exposure: Exposure) -> Config {
        Config {
            data_dir: PathBuf::from("data"),
            xds: xds.parse().unwrap(),
            api: api.parse().unwrap(),
            exposure,
            rejoin_grace_ms: 0,
            retention: Retention::default(),
        }
    }

    #[test]
    fn an_address_beyond_loopback_is_refused_unless_it_is_asked_for() {
        let exposed = config("0.0.0.0:18000", "[::]:18080", Exposure::Loopback).faults();
        assert_eq!(exposed.len(), 2, "all faults at once: {exposed:?}");
        assert!(config("0.0.0.0:18000", "[::]:18080", Exposure::Insecure).faults().is_empty());
        assert!(config("127.0.0.2:18000", "[::1]:18080", Exposure::Loopback).faults().is_empty());
    }

    #[test]
    fn two_doors_need_two_addresses() {
        let faults = config("127.0.0.1:1", "127.0.0.1:1", Exposure::Loopback).faults();
        assert_eq!(faults, [ConfigFault::SameAddress { address: "127.0.0.1:1".parse().unwrap() }]);
        assert!(config("127.0.0.1:0", "127.0.0.1:0", Exposure::Loopback).faults().is_empty());
    }
}
