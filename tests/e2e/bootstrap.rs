//! What `foldplane bootstrap envoy` prints is what a real Envoy takes.

use std::process::Stdio;

use tokio::process::Command;

use crate::support::envoy::envoy;
use crate::support::plane::foldplane;
use crate::support::text;

#[tokio::test]
async fn envoy_accepts_every_kind_of_bootstrap() {
    accepted(&[]).await;
    accepted(&["--protocol", "sotw", "--admin", "none"]).await;
    accepted(&["--listener", "none", "--xds", "control.example:18000"]).await;
    accepted(&[
        "--xds",
        "[::1]:18000",
        "--listener",
        "[::1]:10000",
        "--route",
        "/pay=pay",
        "--route",
        "/=web",
    ])
    .await;
    accepted(&["--node-id", "a \"quoted\" {id}: # of\u{2028}t\u{e4}sts", "--node-cluster", "*&!%@`"]).await;
}

#[tokio::test]
async fn a_wrong_bootstrap_is_refused_before_anything_is_printed() {
    for wrong in [
        ["--node-id", "a\nadmin: {}"],
        ["--xds", "127.0.0.1"],
        ["--listener", "10000"],
        ["--route", "pay"],
        ["--protocol", "carrier-pigeon"],
    ] {
        let output = foldplane(&[&["bootstrap", "envoy"], &wrong[..]].concat()).await;
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
        assert!(output.stdout.is_empty(), "{wrong:?}");
    }
}

async fn accepted(options: &[&str]) {
    let output = foldplane(&[&["bootstrap", "envoy"], options].concat()).await;
    assert!(output.status.success(), "{options:?}: {}", String::from_utf8_lossy(&output.stderr));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("envoy.yaml");
    std::fs::write(&file, &output.stdout).unwrap();
    let validated = Command::new(&envoy().await.binary)
        .args(["--mode", "validate", "-c", &text(&file)])
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    let said = String::from_utf8_lossy(&validated.stderr).into_owned();
    assert!(validated.status.success(), "{options:?}: {said}");
    assert!(!said.contains("[warning]") && !said.contains("deprecated"), "{options:?}: {said}");
}
