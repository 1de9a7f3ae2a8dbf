//! `foldplane host`: emptying and removing a host.

use clap::{Args, Subcommand};

use super::fetch::Server;
use super::{Failure, block_on, out};
use crate::api::hosts::DrainHostBody;
use crate::api::obey::OffsetBody;
use crate::events::HostName;

/// Empty or remove a host.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  foldplane host drain node-7 --reason 'kernel update'     its workers drain, and no new ones are admitted
  foldplane host remove node-7                             it is gone, with all that lived there
  foldplane get hosts -o wide                              who holds which port

Prints the offset from which it is so; wait for it where you need to.")]
pub(super) struct HostCommand {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    server: Server,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Drain every worker of the host, and admit no new ones
    Drain {
        /// The host's name
        host: HostName,
        /// Why, for the record
        #[arg(long, default_value = "operator")]
        reason: String,
        /// How long requests in flight have, in milliseconds
        #[arg(long, value_name = "MILLISECONDS")]
        drain_ms: Option<u32>,
    },
    /// Forget the host, and remove at once what lives there
    Remove {
        /// The host's name
        host: HostName,
    },
}

impl HostCommand {
    pub(super) fn run(self) -> Result<(), Failure> {
        let done: OffsetBody = block_on(async {
            match self.what {
                What::Drain { host, reason, drain_ms } => {
                    let body = DrainHostBody { reason, drain_ms };
                    self.server.post(&format!("/v1/hosts/{host}/drain"), &body).await
                }
                What::Remove { host } => self.server.delete(&format!("/v1/hosts/{host}")).await,
            }
        })?;
        out::data(&format!("@{}\n", done.offset))
    }
}
