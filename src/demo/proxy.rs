//! A real Envoy as a child, and what it says of itself on its admin pages.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use reqwest::Client;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::DemoError;
use super::process::Process;
use crate::bootstrap::EnvoyBootstrap;
use crate::provision::Envoy;

/// How often Envoy is asked when something is waited for: as fine as the times that are measured.
const POLL: Duration = Duration::from_millis(1);

/// How long one admin page may take: Envoy answers between two updates, so this is a dead one.
const ADMIN_LIMIT: Duration = Duration::from_secs(5);

/// How long Envoy may take to start: 0.3 s, or several when its 107 MB come from a cold disk.
const START_LIMIT: Duration = Duration::from_secs(30);

/// A running Envoy.
#[derive(Debug)]
pub struct Proxy {
    /// The process.
    pub process: Process,
    /// Where it takes requests.
    pub listener: SocketAddr,
    /// Where its admin pages are.
    pub admin: SocketAddr,
    client: Client,
}

/// When something was first seen.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// For comparing within this process.
    pub at: Instant,
    /// For comparing with what the log recorded.
    pub wall: SystemTime,
}

/// The hosts of one cluster at IP addresses, and the health that Envoy was told.
pub type Hosts = BTreeMap<SocketAddr, String>;

impl Proxy {
    /// Starts `envoy` with `bootstrap`, and waits until it takes requests.
    ///
    /// `launcher` is what makes it die with this process, see [`Process::start`].
    ///
    /// # Errors
    ///
    /// [`DemoError`] when the bootstrap has no doors, or Envoy ends or does not become ready.
    pub async fn start(
        envoy: &Envoy,
        bootstrap: &EnvoyBootstrap,
        launcher: &[&str],
        folder: &Path,
    ) -> Result<Self, DemoError> {
        let name = format!("envoy-{}", bootstrap.node_id);
        let (Some(listener), Some(admin)) = (bootstrap.listener, bootstrap.admin) else {
            return Err(DemoError::Doors { name });
        };
        let file = folder.join(format!("{name}.yaml"));
        fs::write(&file, bootstrap.to_string())
            .map_err(|source| DemoError::Folder { path: file.clone(), source })?;
        let (binary, file) = (envoy.binary.to_string_lossy(), file.to_string_lossy());
        let options = ["-c", &file, "--concurrency", "1", "--disable-hot-restart", "-l", "warning"];
        let command: Vec<&str> = launcher.iter().copied().chain([&*binary]).chain(options).collect();
        let process = Process::start(&name, &command, folder)?;
        let client = Client::builder()
            .timeout(ADMIN_LIMIT)
            .no_proxy()
            .build()
            .map_err(|source| DemoError::Admin { path: String::new(), source })?;
        let mut proxy = Self { process, listener, admin, client };
        proxy.ready().await?;
        Ok(proxy)
    }

    async fn ready(&mut self) -> Result<(), DemoError> {
        let start = Instant::now();
        while self.text("/ready").await.is_err() {
            self.process.still_runs()?;
            if start.elapsed() > START_LIMIT {
                let detail = self.process.last_lines();
                return Err(late("the start of Envoy", START_LIMIT, detail));
            }
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }

    /// The hosts of a cluster, none where Envoy does not know it.
    ///
    /// # Errors
    ///
    /// [`DemoError::Admin`] when Envoy does not answer.
    pub async fn hosts(&self, cluster: &str) -> Result<Hosts, DemoError> {
        let clusters: Clusters = self.json("/clusters?format=json").await?;
        let wanted = clusters.cluster_statuses.into_iter().filter(|status| status.name == cluster);
        Ok(wanted.flat_map(|status| status.host_statuses).filter_map(Host::entry).collect())
    }

    /// Waits until the hosts of a cluster are as `wanted` says, and tells when.
    ///
    /// # Errors
    ///
    /// [`DemoError::Late`] with the hosts that there are when `limit` is over.
    pub async fn hosts_become(
        &self,
        cluster: &str,
        what: &str,
        limit: Duration,
        wanted: impl Fn(&Hosts) -> bool,
    ) -> Result<Seen, DemoError> {
        let start = Instant::now();
        loop {
            let hosts = self.hosts(cluster).await?;
            let seen = Seen { at: Instant::now(), wall: SystemTime::now() };
            if wanted(&hosts) {
                return Ok(seen);
            }
            if start.elapsed() > limit {
                return Err(late(what, limit, format!(": Envoy has {hosts:?} in {cluster}")));
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Envoy's counters and gauges whose names match a regular expression.
    ///
    /// # Errors
    ///
    /// [`DemoError::Admin`] when Envoy does not answer.
    pub async fn counters(&self, filter: &str) -> Result<BTreeMap<String, u64>, DemoError> {
        let stats: Stats = self.json(&format!("/stats?format=json&filter={filter}")).await?;
        let numbers = stats.stats.into_iter().filter_map(|stat| Some((stat.name?, stat.value?.as_u64()?)));
        Ok(numbers.collect())
    }

    /// The text of an admin page.
    ///
    /// # Errors
    ///
    /// [`DemoError::Admin`] when Envoy does not answer, or answers with an error.
    pub async fn text(&self, path: &str) -> Result<String, DemoError> {
        let failed = |source| DemoError::Admin { path: path.to_owned(), source };
        self.get(path).await.map_err(failed)?.text().await.map_err(failed)
    }

    async fn json<T: DeserializeOwned>(&self, path: &str) -> Result<T, DemoError> {
        let failed = |source| DemoError::Admin { path: path.to_owned(), source };
        self.get(path).await.map_err(failed)?.json().await.map_err(failed)
    }

    async fn get(&self, path: &str) -> Result<reqwest::Response, reqwest::Error> {
        self.client.get(format!("http://{}{path}", self.admin)).send().await?.error_for_status()
    }
}

fn late(what: &str, limit: Duration, detail: String) -> DemoError {
    DemoError::Late { what: what.to_owned(), limit, detail }
}

#[derive(Deserialize)]
struct Clusters {
    #[serde(default)]
    cluster_statuses: Vec<ClusterStatus>,
}

#[derive(Deserialize)]
struct ClusterStatus {
    name: String,
    #[serde(default)]
    host_statuses: Vec<Host>,
}

#[derive(Deserialize)]
struct Host {
    address: Address,
    #[serde(default)]
    health_status: Health,
}

#[derive(Deserialize)]
struct Address {
    /// Absent for a Unix domain socket.
    socket_address: Option<SocketAddress>,
}

#[derive(Deserialize)]
struct SocketAddress {
    address: std::net::IpAddr,
    port_value: u16,
}

#[derive(Default, Deserialize)]
struct Health {
    #[serde(default)]
    eds_health_status: String,
}

impl Host {
    fn entry(self) -> Option<(SocketAddr, String)> {
        let SocketAddress { address, port_value } = self.address.socket_address?;
        Some((SocketAddr::new(address, port_value), self.health_status.eds_health_status))
    }
}

#[derive(Deserialize)]
struct Stats {
    stats: Vec<Stat>,
}

/// A counter or gauge; histograms have neither name nor value here.
#[derive(Deserialize)]
struct Stat {
    name: Option<String>,
    value: Option<serde_json::Value>,
}
