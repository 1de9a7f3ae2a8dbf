//! What the xDS server costs: memory an idle stream, a change that reaches a thousand clients, readers that stall,
//! clients that come and go.
//!
//! `cargo bench --bench xds` takes some minutes, prints a table, and fails where a limit is passed. The clients are processes of their own, so that the
//! memory is the server's.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_types,
    clippy::disallowed_methods,
    dead_code,
    reason = "a benchmark: a panic is its failure, and it shares its server with the tests"
)]

#[path = "../../tests/xds/server.rs"]
mod server;
mod work;

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use work::{Crowd, Site, resident};

const CLIENTS: usize = 1_000;
const CYCLES: usize = 10_000;
const TURNS: usize = 4;

/// What an idle stream may take, with its connection.
const IDLE_BYTES_MAX: usize = 40_000;

/// How much longer a change may take because one reader in ten takes nothing.
const STALL_DELAY_MAX: f64 = 1.1;

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["crowd", address, reading, stalled] => {
            let crowd = Crowd { reading: reading.parse().unwrap(), stalled: stalled.parse().unwrap() };
            crowd.attend(address.parse().unwrap()).await;
        }
        ["cycle", address, times] => work::cycle(address.parse().unwrap(), times.parse().unwrap()).await,
        _ => table().await,
    }
}

/// Another process of this program.
struct Process(Child);

impl Process {
    fn start(address: SocketAddr, mode: &str, numbers: &[usize]) -> Self {
        let numbers = numbers.iter().map(ToString::to_string);
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg(mode).arg(address.to_string()).args(numbers).stdout(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn table() {
    println!("what                                                      result");
    idle().await;
    pushes().await;
    stalls().await;
    churn().await;
}

async fn idle() {
    let site = Site::start(20).await;
    let before = resident();
    let _crowd = Process::start(site.server.address, "crowd", &[CLIENTS, 0]);
    site.reached(CLIENTS).await;
    // Until what was sent is also forgotten.
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    let each = resident().saturating_sub(before) / CLIENTS;
    println!("memory of an idle stream, of {CLIENTS:<28} {each:>7} bytes");
    assert!(each <= IDLE_BYTES_MAX, "an idle stream takes more than {IDLE_BYTES_MAX} bytes");
}

async fn pushes() {
    let site = Site::start(20).await;
    let _crowd = Process::start(site.server.address, "crowd", &[CLIENTS, 0]);
    site.reached(CLIENTS).await;
    let small = site.median(CLIENTS, Site::change_small).await;
    let large = site.median(CLIENTS, Site::change_large).await;
    println!("one endpoint reaches {CLIENTS:>4} {small:>35.1?}");
    println!("10,000 endpoints reach {CLIENTS:>4} {large:>33.1?}");
    println!("digest {}", site.digest());
}

/// The same readers, alone and beside readers that stall, in turns: of each the shortest span.
async fn stalls() {
    const STALLED: usize = CLIENTS / 10;
    const READING: usize = CLIENTS - STALLED;
    let site = Site::start(20).await;
    let _crowd = Process::start(site.server.address, "crowd", &[READING, 0]);
    site.reached(READING).await;
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        alone.extend(site.spans(READING, Site::change_small).await);
        let stalled = Process::start(site.server.address, "crowd", &[0, STALLED]);
        site.open(READING + STALLED).await;
        // What is unread fills the windows of those that stall.
        for _ in 0..5 {
            site.change_large().await;
            site.reached(READING).await;
        }
        beside.extend(site.spans(READING, Site::change_small).await);
        drop(stalled);
        site.open(READING).await;
    }
    let [alone, beside] = [alone, beside].map(|spans| spans.into_iter().min().unwrap_or_default());
    println!("one endpoint reaches {READING:>4} alone {alone:>29.1?}");
    println!("one endpoint reaches {READING:>4} beside {STALLED} that stall {beside:>13.1?}");
    let delay = beside.as_secs_f64() / alone.as_secs_f64();
    assert!(delay <= STALL_DELAY_MAX, "those that stall delay the others by a factor of {delay:.2}");
}

async fn churn() {
    let site = Site::start(20).await;
    // The first thousand warm up what is kept for reuse.
    let run = async |times: usize| {
        let mut process = Process::start(site.server.address, "cycle", &[times]);
        while process.0.try_wait().unwrap().is_none() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        site.open(0).await;
        resident()
    };
    let before = run(CYCLES / 10).await;
    let after = run(CYCLES).await;
    println!("memory before and after {CYCLES} connections {before:>13} {after:>9} bytes");
    assert!(after <= before + before / 20, "connections that are gone left more than 5 % behind");
}
