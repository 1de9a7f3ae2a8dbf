//! The server's state: our own server's, or another's by way of its adapter.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::Arc;

use foldplane::projection::resources::{Resources, TypeUrl, builders};
use foldplane::{listen, xds};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// What sets the state.
pub(crate) enum State {
    Own { publisher: watch::Sender<Arc<Resources>>, _tasks: JoinSet<()> },
    Adapter(Box<Adapter>),
}

/// A running adapter.
pub(crate) struct Adapter {
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    _process: Child,
}

impl State {
    /// Starts our own server on a free port, and gives its URI.
    pub(crate) async fn own() -> anyhow::Result<(Self, String)> {
        let (publisher, resources) = watch::channel(Arc::new(Resources::default()));
        let (rejections, mut refused) = mpsc::channel(100);
        let shutdown = CancellationToken::new();
        let router = xds::router(resources, xds::Ledger::default(), rejections, shutdown.clone());
        let listener = listen::bind("127.0.0.1:0".parse()?)?;
        let uri = format!("http://{}", listener.local_addr()?);
        let mut tasks = JoinSet::new();
        tasks.spawn(listen::serve(listener, router, shutdown, listen::Limits::default()));
        tasks.spawn(async move { while refused.recv().await.is_some() {} });
        Ok((Self::Own { publisher, _tasks: tasks }, uri))
    }

    pub(crate) fn adapter(command: &str, arguments: &[String]) -> anyhow::Result<Self> {
        let mut process = Command::new(command)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let missing = || anyhow::anyhow!("{command} has no standard input or output");
        let input = process.stdin.take().ok_or_else(missing)?;
        let output = BufReader::new(process.stdout.take().ok_or_else(missing)?).lines();
        Ok(Self::Adapter(Box::new(Adapter { input, output, _process: process })))
    }

    /// Sets the whole state, such as `web=192.0.2.1:80 pay=`.
    pub(crate) async fn set(&mut self, services: &str) -> anyhow::Result<()> {
        match self {
            Self::Own { publisher, .. } => {
                let next = resources(&publisher.borrow(), services)?;
                publisher.send_replace(Arc::new(next));
                Ok(())
            }
            Self::Adapter(adapter) => {
                let Adapter { input, output, .. } = adapter.as_mut();
                input.write_all(format!("set {services}\n").as_bytes()).await?;
                input.flush().await?;
                let answer = output.next_line().await?;
                anyhow::ensure!(answer.as_deref() == Some("ok"), "the adapter answered {answer:?}, not ok");
                Ok(())
            }
        }
    }
}

fn resources(earlier: &Resources, services: &str) -> anyhow::Result<Resources> {
    let mut wanted = BTreeMap::new();
    for word in services.split_whitespace() {
        let (name, addresses) = word.split_once('=').unwrap_or((word, ""));
        let addresses = addresses.split(',').filter(|address| !address.is_empty());
        let endpoints: Result<Vec<_>, _> =
            addresses.map(|address| address.parse().map(builders::endpoint)).collect();
        wanted.insert(name.to_owned(), endpoints?);
    }
    let mut next = earlier.builder(earlier.offset().next());
    for gone in earlier.of(TypeUrl::Cluster).iter().filter(|held| !wanted.contains_key(held.name.as_str())) {
        next.take(TypeUrl::Cluster, gone.name.as_str());
        next.take(TypeUrl::ClusterLoadAssignment, gone.name.as_str());
    }
    for (name, endpoints) in wanted {
        next.put(&name, &builders::cluster(&name));
        next.put(&name, &builders::load_assignment(&name, endpoints));
    }
    Ok(next.build())
}
