//! Whether ports are free before the child runs, and whether it listens once it does.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::kin;

/// The first wait between two looks: a small server listens within milliseconds.
const LOOK_FIRST: Duration = Duration::from_millis(5);

/// The longest wait between two looks: a slow start is late by at most this.
const LOOK_LONGEST: Duration = Duration::from_millis(200);

/// How long one look may take: a local connection takes none of it.
const LOOK_MAX: Duration = Duration::from_secs(1);

/// The first of these addresses on which somebody sits already.
pub(super) fn first_taken(addresses: &[SocketAddr]) -> Option<u16> {
    let taken = |address: &&SocketAddr| !is_free(**address);
    addresses.iter().find(taken).map(SocketAddr::port)
}

/// A server may bind the address or all addresses, so both must be possible (hashicorp/nomad#4285).
fn is_free(address: SocketAddr) -> bool {
    let everywhere = match address.ip() {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    [address.ip(), everywhere].into_iter().all(|ip| match TcpListener::bind((ip, address.port())) {
        Ok(_) => true,
        // Not every published address is one of this machine's own: behind NAT it is not.
        Err(error) => error.kind() != io::ErrorKind::AddrInUse,
    })
}

/// Returns once the child accepts connections on every one of the addresses. A stranger who took a port after it was
/// tried is not taken for the child.
pub(super) async fn listening(child: u32, addresses: Vec<SocketAddr>) {
    for address in addresses {
        let mut wait = LOOK_FIRST;
        while !(accepts(address).await && kin::listens(child, address.port())) {
            sleep(wait).await;
            wait = (wait * 2).min(LOOK_LONGEST);
        }
    }
}

/// Returns once `GET path` is answered with success.
pub(super) async fn answering(address: SocketAddr, path: String) {
    let mut wait = LOOK_FIRST;
    while !answers(address, &path).await {
        sleep(wait).await;
        wait = (wait * 2).min(LOOK_LONGEST);
    }
}

async fn answers(address: SocketAddr, path: &str) -> bool {
    // A new connection each time: a server that is starting may close it.
    let request = reqwest::get(format!("http://{address}{path}"));
    matches!(timeout(LOOK_MAX, request).await, Ok(Ok(response)) if response.status().is_success())
}

async fn accepts(address: SocketAddr) -> bool {
    matches!(timeout(LOOK_MAX, TcpStream::connect(address)).await, Ok(Ok(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    // hashicorp/nomad#4285: the stranger may sit on another address, or be a connection that goes out.
    #[test]
    fn a_port_that_a_stranger_uses_in_any_way_is_taken() {
        let local = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = TcpListener::bind(local).unwrap();
        let listening = listener.local_addr().unwrap();
        assert_eq!(first_taken(&[listening]), Some(listening.port()));
        let connection = std::net::TcpStream::connect(listening).unwrap();
        let held = connection.local_addr().unwrap();
        assert_eq!(first_taken(&[held]), Some(held.port()));
        drop(connection);
        drop(listener);
        assert_eq!(first_taken(&[listening]), None);
    }
}
