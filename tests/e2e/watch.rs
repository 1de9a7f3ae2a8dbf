//! `foldplane watch`: each change that a client is sent, in both variants, across a restart.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use crate::support::plane::{Plane, foldplane};
use crate::support::{SOON, program};

/// A watch that is running.
struct Watch {
    _process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Watch {
    fn start(plane: &Plane, options: &[&str]) -> Self {
        let mut process = Command::new(program())
            .args(["watch", "--xds", &plane.xds.to_string()])
            .args(options)
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { _process: process, lines }
    }

    async fn line(&mut self) -> String {
        timeout(SOON, self.lines.next_line()).await.expect("a line").unwrap().expect("it goes on")
    }

    async fn change(&mut self) -> Value {
        serde_json::from_str(&self.line().await).unwrap()
    }
}

/// Registers a worker that listens at a fixed port.
async fn register(plane: &Plane, service: &str, id: &str, port: u16) {
    let url = format!("{}/v1/services/{service}/workers/{id}", plane.url());
    let body = json!({"host": "h1", "ttl_ms": 60_000, "ports": [{"name": "http", "number": port}]});
    let answer = reqwest::Client::new().put(url).json(&body).send().await.unwrap();
    assert!(answer.status().is_success(), "{}", answer.text().await.unwrap());
}

#[tokio::test]
async fn each_change_is_a_line_in_either_variant() {
    for protocol in ["delta", "sotw"] {
        let mut plane = Plane::start().await;
        register(&plane, "web", "a", 9001).await;
        let mut watch = Watch::start(&plane, &["-o", "jsonl", "--protocol", protocol]);
        let cluster = watch.change().await;
        assert_eq!(
            (&cluster["type"], &cluster["change"], &cluster["name"]),
            (&json!("CDS"), &json!("added"), &json!("web"))
        );
        let endpoints = watch.change().await;
        assert_eq!((&endpoints["type"], &endpoints["name"]), (&json!("EDS"), &json!("web")));
        assert_eq!(endpoints["endpoints"], json!(["127.0.0.1:9001 HEALTHY"]), "{protocol}");

        register(&plane, "web", "b", 9002).await;
        let more = watch.change().await;
        assert_eq!(more["change"], "changed", "{more}");
        assert_eq!(more["endpoints"], json!(["127.0.0.1:9001 HEALTHY", "127.0.0.1:9002 HEALTHY"]));

        plane.kill().await;
        plane.restart().await;
        register(&plane, "web", "c", 9003).await;
        let after = watch.change().await;
        assert_eq!(after["endpoints"].as_array().unwrap().len(), 3, "nothing is told again: {after}");
    }
}

#[tokio::test]
async fn people_get_columns_and_only_the_clusters_that_they_name() {
    let plane = Plane::start().await;
    register(&plane, "pay", "a", 9001).await;
    register(&plane, "web", "a", 9002).await;
    let mut watch = Watch::start(&plane, &["web"]);
    let header = watch.line().await;
    assert_eq!(
        header.split_whitespace().collect::<Vec<_>>(),
        ["TYPE", "CHANGE", "NAME", "VERSION", "ENDPOINTS"]
    );
    assert!(watch.line().await.starts_with("CDS   added    web "));
    assert!(watch.line().await.ends_with(" 127.0.0.1:9002 HEALTHY"));
}

#[tokio::test]
async fn what_cannot_be_followed_is_said() {
    let nobody = foldplane(&["watch", "--xds", "127.0.0.1:1"]).await;
    assert_eq!(nobody.status.code(), Some(5));
    let said = String::from_utf8(nobody.stderr).unwrap();
    assert!(said.contains("cannot be followed") && said.contains("hint: --xds"), "{said}");
    assert!(nobody.stdout.is_empty());
    assert_eq!(foldplane(&["watch", "--protocol", "rest"]).await.status.code(), Some(2));
    assert_eq!(foldplane(&["watch", "--xds", "nowhere"]).await.status.code(), Some(2));
}
