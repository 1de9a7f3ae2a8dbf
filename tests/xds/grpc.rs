//! gRPC in two implementations as clients, over `xds:///service`: the C-core with its Python face, and the one for
//! Node.js. The servers that they are led to are Python's.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use foldplane::provision::{self, GrpcNode, GrpcPython, GrpcSearch, Progress};
use tokio::sync::OnceCell;

use crate::server::PATIENCE;

const PYTHON_SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/xds/grpc_peer.py");
const NODE_SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/xds/grpc_peer.cjs");

/// Which implementation of gRPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Implementation {
    /// The C-core, in Python.
    Python,
    /// The one in JavaScript.
    Node,
}

impl Implementation {
    pub(crate) const ALL: [Self; 2] = [Self::Python, Self::Node];

    /// The id with which its client presents itself.
    pub(crate) const fn node_id(self) -> &'static str {
        match self {
            Self::Python => "grpc-python",
            Self::Node => "grpc-node",
        }
    }

    async fn command(self) -> Command {
        match self {
            Self::Python => {
                let mut command = Command::new(python().await);
                command.arg(PYTHON_SCRIPT);
                command
            }
            Self::Node => {
                let found = node().await;
                let mut command = Command::new(found.node);
                command.env("NODE_PATH", found.modules).arg(NODE_SCRIPT);
                command
            }
        }
    }
}

/// A Python with grpcio, installed once for all tests.
async fn python() -> PathBuf {
    static PYTHON: OnceCell<PathBuf> = OnceCell::const_new();
    let locate = || async {
        let cache = provision::default_cache().expect("a home to install grpcio in");
        let search = GrpcSearch { cache };
        GrpcPython::locate(&search, &Progress::stderr()).await.expect("a real grpcio").python
    };
    PYTHON.get_or_init(locate).await.clone()
}

/// A Node.js with grpc-js, installed once for all tests.
async fn node() -> GrpcNode {
    static NODE: OnceCell<GrpcNode> = OnceCell::const_new();
    let locate = || async {
        let cache = provision::default_cache().expect("a home to install Node.js in");
        GrpcNode::locate(&cache, &Progress::stderr()).await.expect("a real grpc-js")
    };
    NODE.get_or_init(locate).await.clone()
}

/// A process that speaks in lines. It ends with the value.
pub(crate) struct Peer {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Peer {
    async fn start(mut command: Command, arguments: &[&str], bootstrap: Option<String>) -> Self {
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        if let Some(bootstrap) = bootstrap {
            command.env("GRPC_XDS_BOOTSTRAP_CONFIG", bootstrap);
        }
        let mut process = command.spawn().unwrap();
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        Self { process, input, output }
    }

    /// Servers that answer with their names.
    pub(crate) async fn servers(names: &[&str]) -> (Self, Vec<SocketAddr>) {
        let python = Implementation::Python.command().await;
        let mut peer = Self::start(python, &[&["serve"], names].concat(), None).await;
        let addresses = names.iter().map(|_| format!("127.0.0.1:{}", peer.line()).parse().unwrap()).collect();
        (peer, addresses)
    }

    /// A client of the control plane.
    pub(crate) async fn client(implementation: Implementation, control_plane: SocketAddr) -> Self {
        let bootstrap = format!(
            r#"{{"xds_servers": [{{"server_uri": "{control_plane}", "channel_creds": [{{"type": "insecure"}}],
            "server_features": ["xds_v3"]}}], "node": {{"id": "{}", "cluster": "test", "locality": {{}}}}}}"#,
            implementation.node_id()
        );
        Self::start(implementation.command().await, &["ask"], Some(bootstrap)).await
    }

    /// One call to a service: the answer, or the error.
    pub(crate) fn ask(&mut self, service: &str) -> String {
        writeln!(self.input, "{service}").unwrap();
        self.line()
    }

    /// Calls until the service answers like this.
    pub(crate) fn answers(&mut self, service: &str, expected: &str) {
        let start = Instant::now();
        loop {
            let answer = self.ask(service);
            if answer.starts_with(expected) {
                return;
            }
            assert!(start.elapsed() < PATIENCE, "{service} answers {answer:?}, not {expected:?}");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
