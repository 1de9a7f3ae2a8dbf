//! Whether ports are free before the child runs, and whether it listens once it does.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::kin::{self, Listener};

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
        until_own(child, address, &Sign::Accepts).await;
    }
}

/// Returns once the child answers `GET path` with success.
pub(super) async fn answering(child: u32, address: SocketAddr, path: String) {
    until_own(child, address, &Sign::Answers(format!("http://{address}{path}"))).await;
}

/// What somebody who can serve does.
enum Sign {
    Accepts,
    /// With success, at this URL.
    Answers(String),
}

/// Returns once there is the sign on the child's own socket. Where it cannot be seen whose the socket is, it takes two looks in a
/// row: while a child becomes the program that it is to run, it hides for a moment.
async fn until_own(child: u32, address: SocketAddr, sign: &Sign) {
    let (mut wait, mut before) = (LOOK_FIRST, Listener::Other);
    loop {
        let there = sign.is_there(address).await;
        let seen = if there { kin::listener(child, address.port()) } else { Listener::Other };
        match (before, seen) {
            (_, Listener::Own) | (Listener::Hidden, Listener::Hidden) => return,
            (_, Listener::Other) | (Listener::Own | Listener::Other, Listener::Hidden) => {}
        }
        before = seen;
        sleep(wait).await;
        wait = (wait * 2).min(LOOK_LONGEST);
    }
}

impl Sign {
    async fn is_there(&self, address: SocketAddr) -> bool {
        match self {
            Self::Accepts => matches!(timeout(LOOK_MAX, TcpStream::connect(address)).await, Ok(Ok(_))),
            Self::Answers(url) => answers(url).await,
        }
    }
}

/// Asked without a proxy, which stands elsewhere; and the child itself has to answer, not another place that it names.
async fn answers(url: &str) -> bool {
    let client = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build();
    // A new connection each time: a server that is starting may close it.
    let Ok(client) = client else { return false };
    let request = client.get(url).send();
    matches!(timeout(LOOK_MAX, request).await, Ok(Ok(response)) if response.status().is_success())
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
