//! What the xDS server costs: memory an idle stream, a change that reaches a thousand clients, readers that stall,
//! clients that come and go.
//!
//! `cargo bench --bench xds` takes a minute and prints a table. The clients are processes of their own, so that the
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
    for stalled in [0, CLIENTS / 10] {
        pushes(stalled).await;
    }
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
}

async fn pushes(stalled: usize) {
    let site = Site::start(20).await;
    let reading = CLIENTS - stalled;
    let _crowd = Process::start(site.server.address, "crowd", &[reading, stalled]);
    site.reached(reading).await;
    // What is unread fills the windows of those that stall.
    for _ in 0..5 {
        site.change_large().await;
        site.reached(reading).await;
    }
    let small = site.median(reading, Site::change_small).await;
    let large = site.median(reading, Site::change_large).await;
    println!("one endpoint reaches {reading:>4}, while {stalled:>3} stall {:>17.1?}", small);
    println!("10,000 endpoints reach {reading:>4}, while {stalled:>3} stall {:>15.1?}", large);
    println!("digest {}", site.digest());
}

async fn churn() {
    let site = Site::start(20).await;
    // The first thousand warm up what is kept for reuse.
    let run = async |times: usize| {
        let mut process = Process::start(site.server.address, "cycle", &[times]);
        while process.0.try_wait().unwrap().is_none() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        site.empty().await;
        resident()
    };
    let before = run(CYCLES / 10).await;
    let after = run(CYCLES).await;
    println!("memory before and after {CYCLES} connections {:>13} {:>9} bytes", before, after);
}
