//! The hidden subcommand that the demo's workers are: a small HTTP server.

use std::net::{IpAddr, SocketAddr};

use clap::Args;

use super::{Failure, block_on};
use crate::demo::worker;

/// A worker for the demo: an HTTP server that answers with its name.
#[derive(Debug, Args)]
pub(super) struct DemoWorker {
    /// Where to listen
    #[arg(long, env = "HOST")]
    host: IpAddr,
    /// Where to listen
    #[arg(long, env = "PORT")]
    port: u16,
    /// What to answer
    #[arg(long, env = "FOLDPLANE_WORKER")]
    name: String,
}

impl DemoWorker {
    pub(super) fn run(self) -> Result<(), Failure> {
        let address = SocketAddr::new(self.host, self.port);
        block_on(async {
            let served = worker::serve(address, self.name).await;
            served.map_err(|fault| Failure::fault(fault.to_string()))
        })
    }
}
