//! Ports for the demo's workers that no other control plane of this machine hands out.

use std::time::{Duration, Instant};

use super::DemoError;
use super::commands::Foldplane;
use super::error::CHANGE_LIMIT;
use crate::agent::client::{Client, Config, Notice};
use crate::proto::ReportHost;

/// The host that the workers are on.
pub(super) const HOST: &str = "demo";

/// How many ports a demo may hand out: each start of a worker takes one, and they are not reused at once.
const PORTS: u32 = 40;

/// The first port of the first block. It lies far above what a control plane hands out first by default.
const FIRST: u32 = 26_000;

/// How many blocks there are below the ports that the kernel uses for outgoing connections.
const BLOCKS: u32 = 150;

/// How often the log is asked for the report.
const POLL: Duration = Duration::from_millis(20);

/// Reports a host with ports of its own. Two control planes that hand out the same ports try them out first, and still
/// can both find one free that both are about to use.
pub(super) async fn lend(cli: &Foldplane) -> Result<(), DemoError> {
    let first = FIRST + PORTS * (std::process::id() % BLOCKS);
    let report = ReportHost {
        host: HOST.to_owned(),
        addresses: vec!["127.0.0.1".to_owned()],
        port_first: first,
        port_last: first + PORTS - 1,
        locality: None,
    };
    let config = Config { server: cli.server().to_owned(), host: Some(report), seed: 0 };
    let mut session = Client::start(&config).map_err(|invalid| DemoError::Command {
        command: "serve".to_owned(),
        outcome: invalid.to_string(),
    })?;
    tokio::select! {
        refused = refusal(&mut session) => Err(late(refused)),
        reported = reported(cli) => reported,
    }
}

async fn refusal(session: &mut Client) -> String {
    loop {
        match session.next().await {
            Some(Notice::HostRefused { refusal }) => return format!(": {}", refusal.message),
            Some(_) => {}
            None => return ": the session ended".to_owned(),
        }
    }
}

async fn reported(cli: &Foldplane) -> Result<(), DemoError> {
    let start = Instant::now();
    while !cli.events(1).await?.iter().any(|event| event.name == "HostReported") {
        if start.elapsed() > CHANGE_LIMIT {
            return Err(late(String::new()));
        }
        tokio::time::sleep(POLL).await;
    }
    Ok(())
}

fn late(detail: String) -> DemoError {
    DemoError::Late { what: "the report of the demo's host".to_owned(), limit: CHANGE_LIMIT, detail }
}
