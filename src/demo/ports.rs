//! Free ports on loopback.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use super::DemoError;

/// The range to choose from: below what workers get (20000 up) and what the kernel uses for outgoing connections
/// (32768 up), so that nothing takes a port while its owner restarts.
const RANGE: std::ops::Range<u32> = 10_200..19_800;

/// A stride that is prime to the length of the range, so that processes with neighbouring ids start far apart.
const STRIDE: u32 = 1_009;

static TAKEN: AtomicU32 = AtomicU32::new(0);

/// An address on 127.0.0.1 that nobody listens on now, different at each call.
///
/// # Errors
///
/// [`DemoError::NoPort`] when all of them are in use.
pub fn free_address() -> Result<SocketAddr, DemoError> {
    let length = RANGE.end - RANGE.start;
    for _ in 0..length {
        let step = process::id().wrapping_mul(STRIDE).wrapping_add(TAKEN.fetch_add(1, Ordering::Relaxed));
        let Ok(port) = u16::try_from(RANGE.start + step % length) else { continue };
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        if TcpListener::bind(address).is_ok() {
            return Ok(address);
        }
    }
    Err(DemoError::NoPort { first: RANGE.start, last: RANGE.end - 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_differ_and_can_be_bound() {
        let first = free_address().unwrap();
        let second = free_address().unwrap();
        assert_ne!(first, second);
        TcpListener::bind(first).unwrap();
        TcpListener::bind(second).unwrap();
    }
}
