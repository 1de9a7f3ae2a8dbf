//! Workers: real ones under `foldplane run`, and places that answer within the test itself.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use axum::Router;
use axum::routing::get;
use foldplane::demo::ports::free_address;
use foldplane::demo::process::Process;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::plane::Plane;
use super::{launcher, program, text};

/// A worker under `foldplane run`. Dropping it kills both.
pub struct Worker {
    pub agent: Process,
    pub address: SocketAddr,
}

/// Starts a worker that answers with its id, on a port of its own.
pub fn start(plane: &Plane, service: &str, id: &str) -> Worker {
    start_at(plane, service, id, free_address().unwrap())
}

/// Starts a worker that answers with its id.
pub fn start_at(plane: &Plane, service: &str, id: &str, address: SocketAddr) -> Worker {
    let port = format!("http={}", address.port());
    let agent = run(plane, service, id, &["--port", &port], &[&text(&program()), "demo-worker"]);
    Worker { agent, address }
}

/// Starts `foldplane run` with these options and this command.
pub fn run(plane: &Plane, service: &str, id: &str, options: &[&str], command: &[&str]) -> Process {
    let (program, server) = (text(&program()), plane.url());
    let head = [&program, "run", "--service", service, "--id", id, "--drain", "0.2", "--server", &server];
    let words = head.iter().chain(options).chain(&["--"]).chain(command).map(|word| (*word).to_owned());
    let command: Vec<String> = launcher().into_iter().chain(words).collect();
    Process::start(&format!("worker-{service}-{id}"), &command, plane.folder())
        .unwrap_or_else(|fault| panic!("{fault}"))
}

/// A place that answers, and remembers when it was asked. It lives on when what speaks for it dies.
pub struct Witness {
    asked: Arc<Mutex<Vec<Instant>>>,
    _server: JoinSet<()>,
}

impl Witness {
    /// Answers at `address` from now on.
    pub async fn at(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let note = Arc::clone(&asked);
        let app = Router::new().fallback(get(move || {
            note.lock().unwrap().push(Instant::now());
            async { "witness\n" }
        }));
        let mut server = JoinSet::new();
        server.spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { asked, _server: server }
    }

    /// When it was asked, in order.
    pub fn asked(&self) -> Vec<Instant> {
        self.asked.lock().unwrap().clone()
    }
}
