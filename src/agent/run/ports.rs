//! Whether ports are free before the child runs, and whether it listens once it does.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::time::Duration;

use tokio::net::{TcpStream, UnixStream};
use tokio::time::{sleep, timeout};

use super::assignment::Place;
use super::kin::{self, Listener};

/// The first wait between two looks: a small server listens within milliseconds.
const LOOK_FIRST: Duration = Duration::from_millis(5);

/// The longest wait between two looks: a slow start is late by at most this.
const LOOK_LONGEST: Duration = Duration::from_millis(200);

/// How long one look may take: a local connection takes none of it.
const LOOK_MAX: Duration = Duration::from_secs(1);

/// The first of these places on which somebody sits already.
pub(super) async fn first_taken(places: &[Place]) -> Option<Place> {
    for place in places {
        let is_taken = match place {
            Place::Ip(address) => !is_free(*address),
            Place::Path(path) => is_served(path).await,
        };
        if is_taken {
            return Some(place.clone());
        }
    }
    None
}

/// A file that nobody listens on was left behind, and is the program's own to remove.
async fn is_served(path: &Path) -> bool {
    match timeout(LOOK_MAX, UnixStream::connect(path)).await {
        Ok(Ok(_)) => true,
        // So many wait there already that there is no room.
        Ok(Err(fault)) => fault.kind() == io::ErrorKind::WouldBlock,
        Err(_) => true,
    }
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

/// Returns once the child accepts connections at every one of the places. A stranger who took a port after it was
/// tried is not taken for the child.
pub(super) async fn listening(child: u32, places: Vec<Place>) {
    for place in places {
        until_own(child, &place, &Sign::Accepts).await;
    }
}

/// Returns once the child answers `GET path` with success.
pub(super) async fn answering(child: u32, place: Place, path: String) {
    until_own(child, &place, &Sign::Answers(path)).await;
}

/// What somebody who can serve does.
enum Sign {
    Accepts,
    /// A GET of this path, with success.
    Answers(String),
}

/// Returns once there is the sign on the child's own socket. Where it cannot be seen whose the socket is, it takes two looks in a
/// row: while a child becomes the program that it is to run, it hides for a moment.
async fn until_own(child: u32, place: &Place, sign: &Sign) {
    let (mut wait, mut before) = (LOOK_FIRST, Listener::Other);
    loop {
        let there = sign.is_there(place).await;
        let seen = if there { kin::listener(child, place) } else { Listener::Other };
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
    async fn is_there(&self, place: &Place) -> bool {
        match (self, place) {
            (Self::Accepts, Place::Ip(address)) => {
                matches!(timeout(LOOK_MAX, TcpStream::connect(address)).await, Ok(Ok(_)))
            }
            (Self::Accepts, Place::Path(path)) => {
                matches!(timeout(LOOK_MAX, UnixStream::connect(path)).await, Ok(Ok(_)))
            }
            (Self::Answers(path), place) => answers(place, path).await,
        }
    }
}

/// Asked without a proxy, which stands elsewhere; and the child itself has to answer, not another place that it names.
async fn answers(place: &Place, path: &str) -> bool {
    let client = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
    let (client, url) = match place {
        Place::Ip(address) => (client, format!("http://{address}{path}")),
        Place::Path(socket) => (client.unix_socket(socket.as_path()), format!("http://localhost{path}")),
    };
    // A new connection each time: a server that is starting may close it.
    let Ok(client) = client.build() else { return false };
    let request = client.get(url).send();
    matches!(timeout(LOOK_MAX, request).await, Ok(Ok(response)) if response.status().is_success())
}

#[cfg(test)]
mod tests {
    use super::*;

    // hashicorp/nomad#4285: the stranger may sit on another address, or be a connection that goes out.
    #[tokio::test]
    async fn a_port_that_a_stranger_uses_in_any_way_is_taken() {
        let local = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = TcpListener::bind(local).unwrap();
        let listening = Place::Ip(listener.local_addr().unwrap());
        assert_eq!(first_taken(std::slice::from_ref(&listening)).await, Some(listening.clone()));
        let connection = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let held = Place::Ip(connection.local_addr().unwrap());
        assert_eq!(first_taken(std::slice::from_ref(&held)).await, Some(held));
        drop(connection);
        drop(listener);
        assert_eq!(first_taken(&[listening]).await, None);
    }

    #[tokio::test]
    async fn a_socket_that_a_stranger_serves_is_taken_and_a_file_that_was_left_behind_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("web.sock");
        let places = [Place::Path(path.clone())];
        assert_eq!(first_taken(&places).await, None);
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert_eq!(first_taken(&places).await, Some(places[0].clone()));
        drop(listener);
        assert!(path.exists());
        assert_eq!(first_taken(&places).await, None);
    }
}
