//! The accept loop of both listeners: HTTP/1 and HTTP/2 on one port, with limits, keepalive and a drain that ends.
//!
//! A connection is served by `serve_connection` whatever it runs over, which is where encryption goes in.

use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

/// How many connections the kernel may hold for us: a fleet that comes back all at once must not meet refusals.
const BACKLOG: u32 = 4096;

/// How long to rest after an accept that failed for want of file descriptors or memory, which at once fails again.
const ACCEPT_REST: Duration = Duration::from_millis(100);

/// What one connection and all of them together may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Open connections; the next ones wait in the backlog.
    pub connections_max: usize,
    /// Streams open at once on one connection. Envoy opens one for each cluster when assignments are not aggregated.
    pub streams_max: u32,
    /// All headers of one request, in bytes.
    pub header_bytes_max: u32,
    /// Streams that were reset before they were looked at; beyond it the connection is told to calm down and closed
    /// (hyperium/hyper#2877, hyperium/h2#668).
    pub pending_resets_max: usize,
    /// How long a new connection may say nothing, and how long the headers of an HTTP/1 request may take.
    pub opening: Duration,
    /// How often a silent HTTP/2 peer is pinged.
    pub ping_interval: Duration,
    /// How long it has to answer a ping.
    pub ping_timeout: Duration,
    /// How long connections have to end after a shutdown began.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 20_000,
            streams_max: 10_000,
            header_bytes_max: 16 << 10,
            pending_resets_max: 200,
            opening: Duration::from_secs(30),
            ping_interval: Duration::from_secs(30),
            ping_timeout: Duration::from_secs(10),
            drain: Duration::from_secs(5),
        }
    }
}

/// How a connection ended, for whoever was served on it: known before its streams end. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Ending(Arc<AtomicBool>);

impl Ending {
    /// Whether the peer fell silent or was out of reach. It neither closed the connection nor reset it, and may well live.
    #[must_use]
    pub fn is_silence(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    fn note(&self, fault: &(dyn Error + 'static)) {
        if is_silence(fault) {
            self.0.store(true, Ordering::Release);
        }
    }
}

/// A ping without an answer, or what the network says of a peer that it cannot find.
fn is_silence(fault: &(dyn Error + 'static)) -> bool {
    let of_kernel = |fault: &io::Error| {
        matches!(
            fault.kind(),
            io::ErrorKind::TimedOut
                | io::ErrorKind::HostUnreachable
                | io::ErrorKind::NetworkUnreachable
                | io::ErrorKind::NetworkDown
        )
    };
    fault.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_timeout)
        || fault.downcast_ref::<io::Error>().is_some_and(of_kernel)
        || fault.source().is_some_and(is_silence)
}

/// Binds `address`, ready for many connections at once. To be called within a tokio runtime.
///
/// # Errors
///
/// When the address cannot be used, such as because another program listens there.
pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A restart must not wait for connections of the process before it.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Serves `router` on `listener` until `shutdown`, then lets connections end and closes what is left after
/// [`Limits::drain`]. Handlers find the peer's address as [`ConnectInfo`], and in the request's extensions a
/// [`CancellationToken`] that closes the connection, and its [`Ending`].
pub async fn serve(listener: TcpListener, router: Router, shutdown: CancellationToken, limits: Limits) {
    let room = Arc::new(Semaphore::new(limits.connections_max));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let accepted = tokio::select! {
            biased;
            () = shutdown.cancelled() => break,
            accepted = accept(&listener, &room) => accepted,
        };
        let (stream, peer, permit) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                sleep(ACCEPT_REST).await;
                continue;
            }
        };
        let (router, shutdown) = (router.clone(), shutdown.clone());
        connections.spawn(async move {
            let _permit = permit;
            open(stream, peer, router, shutdown, limits).await;
        });
    }
    drop(listener);
    let drained = timeout(limits.drain, async { while connections.join_next().await.is_some() {} });
    if drained.await.is_err() {
        tracing::warn!(connections = connections.len(), "connections did not end in time and are closed");
        connections.shutdown().await;
    }
}

type Permit = tokio::sync::OwnedSemaphorePermit;

async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> io::Result<(TcpStream, SocketAddr, Permit)> {
    let permit = Arc::clone(room).acquire_owned().await.map_err(io::Error::other)?;
    let (stream, peer) = listener.accept().await?;
    Ok((stream, peer, permit))
}

async fn open(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    shutdown: CancellationToken,
    limits: Limits,
) {
    // Responses are small and urgent.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%peer, %error, "the connection ended before it began");
        return;
    }
    let spoke = tokio::select! {
        () = shutdown.cancelled() => return,
        spoke = timeout(limits.opening, stream.readable()) => spoke,
    };
    if !matches!(spoke, Ok(Ok(()))) {
        tracing::debug!(%peer, "a connection that said nothing is closed");
        return;
    }
    serve_connection(stream, peer, router, shutdown, limits).await;
}

/// Serves one connection, whatever carries it.
async fn serve_connection<IO>(
    io: IO,
    peer: SocketAddr,
    router: Router,
    shutdown: CancellationToken,
    limits: Limits,
) where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let close = CancellationToken::new();
    let (closer, ending) = (close.clone(), Ending::default());
    let of_requests = ending.clone();
    let service = service_fn(move |mut request: http::Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer));
        request.extensions_mut().insert(closer.clone());
        request.extensions_mut().insert(of_requests.clone());
        let router = router.clone();
        async move { Ok::<_, Infallible>(router.oneshot(request.map(Body::new)).await.unwrap_or_else(never)) }
    });
    let builder = builder(limits);
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(io), service));
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = close.cancelled() => return,
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        // Before the connection is dropped, by which its streams learn of it.
        ending.note(error.as_ref());
        // A peer that resets or breaks off is everyday life.
        tracing::debug!(%peer, %error, "a connection ended with an error");
    }
}

fn never<T>(error: Infallible) -> T {
    match error {}
}

fn builder(limits: Limits) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(limits.opening);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(limits.ping_interval)
        .keep_alive_timeout(limits.ping_timeout)
        .max_concurrent_streams(limits.streams_max)
        .max_header_list_size(limits.header_bytes_max)
        .max_pending_accept_reset_streams(limits.pending_resets_max);
    builder
}
