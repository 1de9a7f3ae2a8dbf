//! Python's grpcio as a client, over `xds:///service`, and as the servers that it is led to.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use foldplane::provision::{self, GrpcPython, GrpcSearch, Progress};
use tokio::sync::OnceCell;

use crate::server::PATIENCE;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/xds/grpc_peer.py");

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

/// A Python process that speaks in lines. It ends with the value.
pub(crate) struct Peer {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Peer {
    async fn start(arguments: &[&str], bootstrap: Option<String>) -> Self {
        let mut command = Command::new(python().await);
        command.arg(SCRIPT).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
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
        let mut peer = Self::start(&[&["serve"], names].concat(), None).await;
        let addresses = names.iter().map(|_| format!("127.0.0.1:{}", peer.line()).parse().unwrap()).collect();
        (peer, addresses)
    }

    /// A client of the control plane.
    pub(crate) async fn client(control_plane: SocketAddr) -> Self {
        let bootstrap = format!(
            r#"{{"xds_servers": [{{"server_uri": "{control_plane}", "channel_creds": [{{"type": "insecure"}}],
            "server_features": ["xds_v3"]}}], "node": {{"id": "grpc-1", "cluster": "test"}}}}"#
        );
        Self::start(&["ask"], Some(bootstrap)).await
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
