//! A real Envoy as a client.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use foldplane::bootstrap::{EnvoyBootstrap, XdsVariant};
use foldplane::provision::{self, Envoy, EnvoySearch, Progress};
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::server::PATIENCE;

/// Warming is over when the answer to the clusters arrives, which Envoy withholds until then. What is measured
/// without the pushed assignment is 15 s.
pub(crate) const WARMING_MAX: Duration = Duration::from_secs(1);

/// Envoy, found or installed once for all tests.
async fn binary() -> PathBuf {
    static BINARY: OnceCell<PathBuf> = OnceCell::const_new();
    let locate = || async {
        let search = EnvoySearch {
            named: std::env::var_os("FOLDPLANE_ENVOY").map(PathBuf::from),
            path: std::env::var_os("PATH"),
            cache: provision::default_cache().expect("a home to install Envoy in"),
        };
        Envoy::locate(&search, &Progress::stderr()).await.expect("a real Envoy").binary
    };
    BINARY.get_or_init(locate).await.clone()
}

/// A running Envoy. It ends with the value.
pub(crate) struct Proxy {
    process: Child,
    admin: SocketAddr,
    listener: SocketAddr,
    client: reqwest::Client,
    _folder: tempfile::TempDir,
}

impl Proxy {
    pub(crate) async fn start(control_plane: SocketAddr, variant: XdsVariant) -> Self {
        let (admin, listener) = (free_address(), free_address());
        let bootstrap = EnvoyBootstrap {
            node_id: "proxy-1".parse().unwrap(),
            node_cluster: "edge".parse().unwrap(),
            control_plane: control_plane.to_string().parse().unwrap(),
            variant,
            admin: Some(admin),
            listener: Some(listener),
            routes: Vec::new(),
        };
        Self::start_with(&bootstrap.to_string(), admin, listener).await
    }

    pub(crate) async fn start_with(config: &str, admin: SocketAddr, listener: SocketAddr) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("envoy.yaml");
        std::fs::write(&path, config).unwrap();
        let process = Command::new(binary().await)
            .args(["--concurrency", "1", "--disable-hot-restart", "-l", "warning", "-c"])
            .arg(&path)
            .arg("--log-path")
            .arg(folder.path().join("log"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let client = reqwest::Client::builder().timeout(PATIENCE).build().unwrap();
        let proxy = Self { process, admin, listener, client, _folder: folder };
        proxy.until("live", || async { proxy.admin("/ready").await.trim() == "LIVE" }).await;
        proxy
    }

    /// What the service answers through this proxy: its text, or the status.
    pub(crate) async fn ask(&self, service: &str) -> String {
        ask(&self.client, self.listener, service).await
    }

    /// Waits until the service answers with this.
    pub(crate) async fn answers(&self, service: &str, expected: &str) -> Duration {
        let start = Instant::now();
        self.until(expected, || async { self.ask(service).await == expected }).await;
        start.elapsed()
    }

    /// One of Envoy's own numbers; 0 where it has none.
    pub(crate) async fn statistic(&self, name: &str) -> u64 {
        let text = self.admin(&format!("/stats?filter=^{}$", name.replace('.', "\\."))).await;
        text.trim().rsplit(": ").next().and_then(|number| number.parse().ok()).unwrap_or_default()
    }

    async fn admin(&self, path: &str) -> String {
        let response = self.client.get(format!("http://{}{path}", self.admin)).send().await;
        match response {
            Ok(response) => response.text().await.unwrap_or_default(),
            Err(_) => String::new(),
        }
    }

    async fn until<F: Future<Output = bool>>(&self, what: &str, mut condition: impl FnMut() -> F) {
        let start = Instant::now();
        while !condition().await {
            assert!(start.elapsed() < PATIENCE, "not {what} after {PATIENCE:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Requests to a service without a pause, until it is ended.
    pub(crate) fn load(&self, service: &'static str) -> Load {
        let (stop, sent) = (CancellationToken::new(), Arc::new(AtomicU64::new(0)));
        let (client, listener) = (self.client.clone(), self.listener);
        let (stopped, count) = (stop.clone(), Arc::clone(&sent));
        let task = tokio::spawn(async move {
            let mut failed = Vec::new();
            while !stopped.is_cancelled() {
                let answer = ask(&client, listener, service).await;
                count.fetch_add(1, Ordering::Relaxed);
                if answer.starts_with("status") {
                    failed.push(answer);
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            failed
        });
        Load { stop, sent, task }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Requests that are under way.
pub(crate) struct Load {
    stop: CancellationToken,
    sent: Arc<AtomicU64>,
    task: JoinHandle<Vec<String>>,
}

impl Load {
    /// Waits until so many more requests were answered.
    pub(crate) async fn run(&self, requests: u64) {
        let goal = self.sent.load(Ordering::Relaxed) + requests;
        while self.sent.load(Ordering::Relaxed) < goal {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Ends it, and gives the failures.
    pub(crate) async fn end(self) -> Vec<String> {
        self.stop.cancel();
        self.task.await.unwrap()
    }
}

async fn ask(client: &reqwest::Client, listener: SocketAddr, service: &str) -> String {
    match client.get(format!("http://{listener}/")).header("host", service).send().await {
        Ok(response) if response.status().is_success() => response.text().await.unwrap_or_default(),
        Ok(response) => format!("status {}", response.status().as_u16()),
        Err(error) => format!("status none: {error}"),
    }
}

/// An address that was free a moment ago.
pub(crate) fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}
