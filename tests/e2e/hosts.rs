//! Hosts are emptied and removed from the command line.

use crate::support::plane::{Plane, foldplane, foldplane_json};
use crate::support::{eventually, worker};

#[tokio::test]
async fn a_host_is_emptied_from_the_command_line() {
    let plane = Plane::start().await;
    let url = plane.url();
    let _worker = worker::start(&plane, "web", "a");
    plane.workers_are_ready("web", 1).await;
    let hosts = foldplane_json(&["get", "hosts", "-o", "json", "--server", &url]).await;
    let host = hosts["items"][0]["host"].as_str().unwrap().to_owned();
    assert_eq!(hosts["items"][0]["ports"].as_array().unwrap().len(), 1, "{hosts}");

    let drained =
        foldplane(&["host", "drain", &host, "--reason", "kernel", "--drain-ms", "100", "--server", &url])
            .await;
    assert!(drained.status.success(), "{drained:?}");
    let emptied = async || {
        let hosts = plane.get("/v1/hosts").await;
        let first = hosts["items"][0].clone();
        let done = first["state"] == "draining" && first["workers"].as_array().unwrap().is_empty();
        if done { Ok(()) } else { Err(first.to_string()) }
    };
    eventually("the host to be empty", emptied).await;

    let removed = foldplane(&["host", "remove", &host, "--server", &url]).await;
    assert!(removed.status.success(), "{removed:?}");
    assert_eq!(plane.get("/v1/hosts").await["items"].as_array().unwrap().len(), 0);
    let unknown = foldplane(&["host", "drain", "nobody", "--server", &url]).await;
    assert_eq!(unknown.status.code(), Some(3), "{unknown:?}");
    assert!(unknown.stdout.is_empty());
}
