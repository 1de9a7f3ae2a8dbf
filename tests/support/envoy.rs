//! A real Envoy: found or installed as the demo does it.

use std::net::SocketAddr;
use std::path::Path;

use foldplane::bootstrap::{EnvoyBootstrap, ServerAddress, XdsVariant};
use foldplane::demo::ports::free_address;
use foldplane::demo::proxy::{Hosts, Proxy};
use foldplane::provision::{Envoy, EnvoySearch, Progress, default_cache};
use tokio::sync::OnceCell;

use super::{SOON, launcher};

/// The Envoy of this machine, looked for once.
pub async fn envoy() -> &'static Envoy {
    static FOUND: OnceCell<Envoy> = OnceCell::const_new();
    FOUND.get_or_init(find).await
}

async fn find() -> Envoy {
    let search = EnvoySearch {
        named: std::env::var_os("FOLDPLANE_ENVOY").map(Into::into),
        path: std::env::var_os("PATH"),
        cache: default_cache().unwrap(),
    };
    match Envoy::locate(&search, &Progress::stderr()).await {
        Ok(envoy) => envoy,
        Err(fault) => panic!("these tests need a real Envoy: {fault}\nhint: {}", fault.hint()),
    }
}

/// The bootstrap of a node that follows the control plane at `xds`.
pub fn bootstrap(node: &str, xds: SocketAddr) -> EnvoyBootstrap {
    EnvoyBootstrap {
        node_id: node.parse().unwrap(),
        node_cluster: "test".parse().unwrap(),
        control_plane: ServerAddress::Ip(xds),
        variant: XdsVariant::Delta,
        admin: Some(free_address().unwrap()),
        listener: Some(free_address().unwrap()),
        routes: Vec::new(),
    }
}

/// Starts an Envoy that follows the control plane at `xds`.
pub async fn start(node: &str, xds: SocketAddr, folder: &Path) -> Proxy {
    start_with(&bootstrap(node, xds), folder).await
}

/// Starts an Envoy with this bootstrap.
pub async fn start_with(bootstrap: &EnvoyBootstrap, folder: &Path) -> Proxy {
    let launcher = launcher();
    let words = launcher.each_ref().map(String::as_str);
    Proxy::start(envoy().await, bootstrap, &words, folder).await.unwrap_or_else(|fault| panic!("{fault}"))
}

/// Waits until the healthy hosts of a cluster are exactly these.
pub async fn hosts_become(proxy: &Proxy, cluster: &str, wanted: &[SocketAddr]) {
    let what = format!("{cluster} at {wanted:?}");
    let exactly =
        |hosts: &Hosts| hosts.len() == wanted.len() && wanted.iter().all(|host| healthy(hosts, *host));
    let seen = proxy.hosts_become(cluster, &what, SOON, exactly).await;
    seen.unwrap_or_else(|fault| panic!("{fault}"));
}

/// Whether Envoy sends requests to this host.
pub fn healthy(hosts: &Hosts, host: SocketAddr) -> bool {
    hosts.get(&host).is_some_and(|health| health == "HEALTHY")
}

/// One request for a service: status and text.
pub async fn ask(proxy: &Proxy, service: &str) -> (u16, String) {
    let client = reqwest::Client::builder().no_proxy().timeout(SOON).build().unwrap();
    let request = client.get(format!("http://{}/", proxy.listener)).header("host", service);
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap().trim().to_owned())
}
