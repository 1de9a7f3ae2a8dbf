//! What can be seen of an xDS server from outside, checked rule by rule against any address.
//!
//! ```text
//! xds_conformance                          checks Foldplane's own server
//! xds_conformance URI COMMAND [ARGUMENT]…  checks the server at URI; COMMAND sets its state
//! ```
//!
//! The command is the adapter. It reads lines from its standard input, each of which is a whole state, sets it, and
//! answers with a line `ok`:
//!
//! ```text
//! set web=192.0.2.1:80,192.0.2.2:80 pay=
//! ```
//!
//! Each word is a service: an EDS cluster, and a load assignment of the same name with these endpoints. What is not
//! in the line does not exist. Every node is to be shown everything.
//!
//! Prints a table, and ends with 1 if a rule is broken.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    reason = "a program for the terminal"
)]

mod checks;
mod pushing;
mod state;

use std::process::ExitCode;

use foldplane::xds::protocol::Variant;

use checks::{CHECKS, Check, Target};
use state::State;

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (state, uri) = match arguments.as_slice() {
        [] => State::own().await?,
        [uri, command, rest @ ..] => (State::adapter(command, rest)?, uri.clone()),
        [_] => {
            anyhow::bail!("give the command that sets the server's state, or nothing to check our own server")
        }
    };
    let mut target = Target { uri, state };
    let mut broken = 0;
    println!("{:<5} {:<6} {:<10} what", "rule", "", "");
    for Check { rule, what, variants, run } in CHECKS {
        for variant in *variants {
            let result = run(&mut target, *variant).await;
            let name = match variant {
                Variant::Sotw => "SotW",
                Variant::Delta => "delta",
            };
            let word = if result.is_ok() { "kept" } else { "BROKEN" };
            println!("{rule:<5} {name:<6} {word:<10} {what}");
            if let Err(error) = result {
                println!("{:24}{error:#}", "");
                broken += 1;
            }
        }
    }
    println!("{broken} broken");
    Ok(if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
