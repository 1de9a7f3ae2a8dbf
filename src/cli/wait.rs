//! `foldplane wait`: until every client has it.

use std::time::{Duration, Instant};

use clap::Args;

use super::fetch::Server;
use super::out::{self, Format};
use super::quantity::time_ms;
use super::{Exit, Failure, block_on, lists};
use crate::api::wait::{Target, WaitView};
use crate::events::Glob;

/// How long one request to the server waits: below the time after which a silent peer counts as dead.
const ASK_FOR: Duration = Duration::from_secs(5);

/// Wait until every proxy and gRPC client has accepted what there was at an offset.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  foldplane wait                                   everything that is known now has arrived everywhere
  foldplane wait --offset @42 --timeout 30s        what offset 42 changed has
  foldplane wait --node 'edge-*' && ./next-step    only those nodes count, and there must be one

A stream that an offset does not concern counts as having it. When the time is over, and when a client refuses what it
should have, those that lack something are listed: node, type, the version that it holds and the one that it should.

Exit codes: 0 every stream has it, 1 some refused it, 2 usage, 3 the time is over, 5 unreachable.")]
pub(super) struct Wait {
    /// Which offset, such as @42, or `latest`: what the log is at now
    #[arg(long, value_name = "OFFSET", default_value = "latest")]
    offset: String,
    /// Only nodes whose id is like this; `*` stands for any text, `?` for a character
    #[arg(long, value_name = "GLOB")]
    node: Option<Glob>,
    /// How long, such as 30s or 500ms
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time_ms)]
    timeout: u64,
    #[command(flatten)]
    server: Server,
    /// How to print
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

impl Wait {
    pub(super) fn run(self) -> Result<(), Failure> {
        let target: Target =
            self.offset.parse().map_err(|fault| Failure::usage(format!("--offset: {fault}")))?;
        let view = block_on(self.ask(target))?;
        out::data(&lists::wait(&view, self.output)?)?;
        let lack = |what: &str| {
            format!("{} of {} streams {what} @{}", view.behind, view.behind + view.reached, view.offset)
        };
        match view.outcome.as_str() {
            "reached" => Ok(()),
            "rejected" => Err(Failure::fault(lack("refused what there was at"))),
            _ if view.head < view.offset => {
                Err(timed_out(format!("the log is at @{}, and not yet at @{}", view.head, view.offset)))
            }
            _ if view.behind == 0 => Err(timed_out("no such node is connected".to_owned())),
            _ => Err(timed_out(lack("have not accepted what there was at"))),
        }
    }

    /// Asks until it is settled or the time is over, for the same offset.
    async fn ask(&self, target: Target) -> Result<WaitView, Failure> {
        let end = Instant::now() + Duration::from_millis(self.timeout);
        let mut offset = match target {
            Target::Latest => "latest".to_owned(),
            Target::At(offset) => offset.get().to_string(),
        };
        loop {
            let rest = end.saturating_duration_since(Instant::now()).min(ASK_FOR);
            let mut query = vec![("offset", offset), ("timeout_ms", rest.as_millis().to_string())];
            query.extend(self.node.as_ref().map(|node| ("node", node.to_string())));
            let view: WaitView = self.server.get("/v1/wait", &query).await?;
            if view.outcome != "waiting" || Instant::now() >= end {
                return Ok(view);
            }
            offset = view.offset.to_string();
        }
    }
}

fn timed_out(what: String) -> Failure {
    Failure::new(Exit::NotFound, what)
        .hint("`foldplane get proxies -o wide` shows how each stands; --timeout waits longer")
}
