//! A supervisor that reports ten workers over one session: the shape of an integration with a supervisor of your own.
//!
//! Its workers are small HTTP servers in this process. Run `foldplane serve`, then this, then `foldplane get endpoints pool`.
//! Ctrl-C drains them all.

#![allow(clippy::print_stdout, reason = "a program to read and to run in a terminal")]

use std::collections::BTreeMap;
use std::error::Error;
use std::net::{IpAddr, SocketAddr};

use axum::Router;
use axum::routing::get;
use foldplane::agent::client::{Client, Config, Notice, Opinion, Ticket, Wish};
use foldplane::proto::{self, Verdict};
use tokio::net::TcpListener;
use tokio::task::{AbortHandle, JoinSet};

const WORKERS: u64 = 10;

/// How long requests in flight have at the end.
const DRAIN_MS: u32 = 1_000;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let server = arguments.next().unwrap_or_else(|| "http://127.0.0.1:18080".to_owned());
    let host = arguments.next().unwrap_or_else(|| "supervised".to_owned());
    let stop = async {
        // Without a way to hear of Ctrl-C, the kernel's own way of ending us remains.
        let _heard = tokio::signal::ctrl_c().await;
    };
    supervise(server, &host, stop).await
}

/// Runs ten workers until `stop`, drains them, and returns when all are gone.
pub async fn supervise(
    server: String,
    host: &str,
    stop: impl Future<Output = ()>,
) -> Result<(), Box<dyn Error>> {
    let mut session = Client::start(&Config { server, host: None, seed: std::process::id().into() })?;
    for number in 0..WORKERS {
        session.add(Ticket(number), register(host, number)).await;
    }
    let mut workers = Workers { host: host.to_owned(), tasks: JoinSet::new(), running: BTreeMap::new() };
    let mut stop = std::pin::pin!(stop);
    let mut stopping = false;
    let mut left = WORKERS;
    while left > 0 {
        tokio::select! {
            () = &mut stop, if !stopping => {
                stopping = true;
                for number in 0..WORKERS {
                    session.wish(Ticket(number), drained()).await;
                }
            }
            Some(notice) = session.next() => match notice {
                Notice::Registered { ticket, ports, .. } => workers.start(&session, ticket, &ports).await?,
                Notice::Gone { ticket, cause } => {
                    println!("worker {} is gone: {cause:?}", ticket.0);
                    workers.stop(ticket);
                    left -= 1;
                }
                Notice::Refused { refusal, .. } => println!("refused: {}; {}", refusal.message, refusal.hint),
                Notice::Disconnected { problem, .. } => println!("no control plane: {problem}"),
                Notice::Connected | Notice::Reported { .. } | Notice::HostRefused { .. } | Notice::Draining { .. } => {}
            },
        }
    }
    Ok(())
}

fn register(host: &str, number: u64) -> proto::Register {
    proto::Register {
        service: "pool".to_owned(),
        host: host.to_owned(),
        // Chosen here, so that a registration whose answer was lost replaces itself.
        id: format!("w{number}"),
        ports: vec![proto::Port { name: "http".to_owned(), ..proto::Port::default() }],
        readiness: proto::Readiness::Reported.into(),
        ..Default::default()
    }
}

fn drained() -> Wish {
    Wish::Draining { reason: "the supervisor is stopping".to_owned(), drain_ms: DRAIN_MS }
}

struct Workers {
    host: String,
    tasks: JoinSet<()>,
    running: BTreeMap<Ticket, AbortHandle>,
}

impl Workers {
    async fn start(
        &mut self,
        session: &Client,
        ticket: Ticket,
        ports: &[proto::Port],
    ) -> Result<(), Box<dyn Error>> {
        // Registered anew after the control plane had lost it: it runs on, where it is.
        if self.running.contains_key(&ticket) {
            return Ok(());
        }
        let port = ports.first().ok_or("a worker without a port")?;
        let number = u16::try_from(port.number.unwrap_or_default())?;
        let address = SocketAddr::new(port.address.parse::<IpAddr>()?, number);
        let Ok(listener) = TcpListener::bind(address).await else {
            // A stranger sits there: a real supervisor asks for another port.
            session.report_busy_port(&self.host, number).await;
            session.wish(ticket, Wish::Gone { exit: None }).await;
            return Ok(());
        };
        let router = Router::new().route("/", get(move || async move { format!("worker {}\n", ticket.0) }));
        let serve = async move {
            if let Err(error) = axum::serve(listener, router).await {
                println!("worker {} failed: {error}", ticket.0);
            }
        };
        self.running.insert(ticket, self.tasks.spawn(serve));
        println!("worker {} listens on {address}", ticket.0);
        // What a monitor sees goes along; only changes are sent.
        session.judge(ticket, "memory", Opinion { verdict: Verdict::Healthy, reason: String::new() }).await;
        session.wish(ticket, Wish::Ready).await;
        Ok(())
    }

    fn stop(&mut self, ticket: Ticket) {
        if let Some(task) = self.running.remove(&ticket) {
            task.abort();
        }
    }
}
