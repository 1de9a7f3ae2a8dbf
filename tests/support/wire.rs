//! A wire between a client and a server that can be cut and mended.

use std::net::SocketAddr;

use foldplane::demo::ports::free_address;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// What passes on every connection to `address` while it is whole.
pub struct Wire {
    pub address: SocketAddr,
    whole: watch::Sender<bool>,
    _task: JoinSet<()>,
}

impl Wire {
    /// A whole wire to `target`.
    pub async fn to(target: SocketAddr) -> Self {
        let address = free_address().unwrap();
        let listener = TcpListener::bind(address).await.unwrap();
        let (whole, state) = watch::channel(true);
        let mut task = JoinSet::new();
        task.spawn(relay(listener, target, state));
        Self { address, whole, _task: task }
    }

    /// Closes every connection, and every new one at once, until it is mended.
    pub fn cut(&self) {
        self.whole.send_replace(false);
    }

    /// Lets connections through again.
    pub fn mend(&self) {
        self.whole.send_replace(true);
    }
}

async fn relay(listener: TcpListener, target: SocketAddr, state: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    loop {
        let (client, _) = listener.accept().await.unwrap();
        let mut state = state.clone();
        if *state.borrow_and_update() {
            connections.spawn(async move {
                tokio::select! {
                    () = pass(client, target) => {}
                    _ = state.changed() => {}
                }
            });
        }
    }
}

async fn pass(mut client: TcpStream, target: SocketAddr) {
    if let Ok(mut server) = TcpStream::connect(target).await {
        // Either side may end it in any way: that is what a wire is for.
        let _ended = copy_bidirectional(&mut client, &mut server).await;
    }
}
