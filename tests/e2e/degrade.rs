//! A disk that fails under a running control plane: writes are refused, everything else goes on, and writes come back
//! by themselves. The disks are made by the tests, which need root for it.

use std::net::SocketAddr;
use std::path::PathBuf;

use reqwest::{Client, StatusCode};
use serde_json::{Value, json};

use crate::support::disk::Mount;
use crate::support::plane::Plane;
use crate::support::{envoy, eventually};

/// Registers a worker that is not there: nobody asks it anything here.
async fn register(plane: &Plane, id: &str, labels: &Value) -> (StatusCode, Value) {
    let url = format!("{}/v1/services/web/workers/{id}", plane.url());
    let body = json!({"host": "h1", "ttl_ms": 600_000, "ports": [{"name": "http"}], "metadata": labels});
    let response = Client::new().put(url).json(&body).send().await.unwrap();
    (response.status(), response.json().await.unwrap())
}

/// Registers workers until one is refused, and says how many were not.
async fn register_until_refused(plane: &Plane) -> (usize, StatusCode, Value) {
    let labels = (0..20).map(|label| (format!("label-{label}"), "x".repeat(1_000).into()));
    let large = Value::Object(labels.collect());
    for registered in 0..2_000 {
        let (status, answer) = register(plane, &format!("more-{registered}"), &large).await;
        if status != StatusCode::CREATED {
            return (registered, status, answer);
        }
    }
    panic!("the disk took everything");
}

/// What must hold from when `fail` makes the disk fail with `reason` until `mend` makes it work again, and after.
async fn check(data: PathBuf, reason: &str, fail: impl FnOnce(), mend: impl FnOnce()) {
    let plane = Plane::start_on(data).await;
    let (_, first) = register(&plane, "first", &json!({})).await;
    let address: SocketAddr = first["ports"]["http"].as_str().unwrap().parse().unwrap();
    let follower = envoy::start("follower", plane.xds, plane.folder()).await;
    envoy::hosts_become(&follower, "web", &[address]).await;

    fail();
    let (more, status, problem) = register_until_refused(&plane).await;
    assert_eq!((status, &problem["code"]), (StatusCode::INSUFFICIENT_STORAGE, &json!("storage_unavailable")));
    assert!(problem["detail"].as_str().unwrap().contains(reason), "{problem}");
    let ready = reqwest::get(format!("{}/readyz", plane.url())).await.unwrap();
    assert_eq!(ready.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(plane.workers("web").await.len(), more + 1);
    let newcomer = envoy::start("newcomer", plane.xds, plane.folder()).await;
    for proxy in [&follower, &newcomer] {
        let seen = |hosts: &foldplane::demo::proxy::Hosts| hosts.len() == more + 1;
        proxy.hosts_become("web", "all that were registered", crate::support::SOON, seen).await.unwrap();
    }

    mend();
    eventually("a registration once there is space", async || {
        let (status, answer) = register(&plane, "last", &json!({})).await;
        if status == StatusCode::CREATED { Ok(()) } else { Err(answer.to_string()) }
    })
    .await;
    let mut plane = plane;
    let offsets: Vec<Value> = plane.events().await.into_iter().map(|event| event["offset"].clone()).collect();
    assert!(offsets.iter().zip(1_u64..).all(|(offset, expected)| *offset == expected), "{offsets:?}");
    plane.kill().await;
    plane.restart().await;
    assert_eq!(plane.workers("web").await.len(), more + 2, "what was acknowledged is there");
}

// apache/couchdb#3576, strongloop/strong-pm#368, openvstorage/alba#573 (F53)
#[tokio::test]
async fn f53_a_full_disk_stops_writes_and_nothing_else() {
    let disk = Mount::tmpfs(32);
    let ballast = disk.path().join("ballast");
    let mend = || std::fs::remove_file(&ballast).unwrap();
    check(disk.path().join("log"), "No space left on device", || disk.fill(&ballast), mend).await;
}

/// These need loop devices too. Where there are none they fail and say so, and are left out by the name of this module.
mod power {
    use super::check;
    use crate::support::disk::Disk;

    #[tokio::test]
    async fn a_disk_that_returns_errors_stops_writes_and_nothing_else() {
        let images = tempfile::tempdir().unwrap();
        let image = images.path().join("disk");
        // Without a journal, whose errors would make the file system read-only for good.
        Disk::format(&image, "^has_journal");
        let disk = Disk::mount(&image);
        check(disk.log(), "Input/output error", || disk.break_down(), || disk.mend()).await;
    }
}
