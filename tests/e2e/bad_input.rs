//! Wrong commands: one clear error with a hint, the exit code of the table, and nothing on stdout.

use std::net::TcpListener;

use foldplane::demo::ports::free_address;

use crate::support::plane::{Plane, foldplane};
use crate::support::text;

#[tokio::test]
async fn wrong_words_are_usage() {
    refused(&["frobnicate"], 2, "unrecognized subcommand 'frobnicate'", "--help").await;
    refused(&["serve", "--frobnicate"], 2, "unexpected argument '--frobnicate'", "--help").await;
    refused(&["serve", "--xds", "nowhere"], 2, "invalid value 'nowhere' for '--xds", "--help").await;
    refused(&["serve", "--xds", "127.0.0.1:99999"], 2, "invalid value '127.0.0.1:99999'", "--help").await;
    refused(&["get", "services", "--server", "not a url"], 2, "--server not a url", "hint: ").await;
    refused(&["replay", "--until", "yesterday"], 2, "`yesterday` is not an offset", "write a whole number")
        .await;
}

#[tokio::test]
async fn wrong_workers_are_usage() {
    let long = "a".repeat(254);
    let run = |service: &'static str, options: &[&'static str]| {
        [&["run", "--service", service], options, &["--", "true"]].concat()
    };
    refused(&run("", &[]), 2, "a name must not be empty", "--help").await;
    refused(&["run", "--service", &long, "--", "true"], 2, "254 bytes, at most 253", "--help").await;
    refused(&run("a\u{7}b", &[]), 2, "is not allowed", "--help").await;
    refused(&run("web", &["--port", "http=0"]), 2, "no port number from 1 to 65535", "--help").await;
    refused(&run("web", &["--address", "localhost"]), 2, "invalid value 'localhost'", "--help").await;
}

#[tokio::test]
async fn strangers_are_not_let_in_by_accident() {
    let folder = tempfile::tempdir().unwrap();
    let data = text(&folder.path().join("data"));
    let open = ["serve", "--data-dir", &data, "--xds", "0.0.0.0:0", "--api", "127.0.0.1:0"];
    refused(&open, 2, "can be reached from other machines", "--insecure").await;
    assert!(!folder.path().join("data").exists(), "refused, and yet it has written");
}

#[tokio::test]
async fn what_is_taken_or_closed_is_a_fault() {
    let folder = tempfile::tempdir().unwrap();
    let data = text(&folder.path().join("data"));
    let holder = TcpListener::bind(free_address().unwrap()).unwrap();
    let taken = holder.local_addr().unwrap().to_string();
    let serve = ["serve", "--data-dir", &data, "--xds", &taken, "--api", "127.0.0.1:0"];
    refused(&serve, 1, &format!("cannot listen on --xds {taken}"), "hint: another program listens there")
        .await;

    // Privileged users may write anywhere, except below a file.
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let below = text(&file.join("data"));
    let serve = ["serve", "--data-dir", &below, "--xds", "127.0.0.1:0", "--api", "127.0.0.1:0"];
    refused(&serve, 1, &text(&file), "hint: check that the folder can be written").await;
}

#[tokio::test]
async fn a_folder_has_one_owner_and_the_owner_goes_on() {
    let plane = Plane::start().await;
    let second = ["serve", "--data-dir", &plane.data(), "--xds", "127.0.0.1:0", "--api", "127.0.0.1:0"];
    refused(&second, 1, "is in use by another process", "hint: stop that process").await;
    refused(&["replay", &plane.data()], 1, "is in use by another process", "hint: ").await;
    assert_eq!(plane.state().await["offset"], 1, "the owner goes on");
}

#[tokio::test]
async fn what_is_not_there_is_not_found_or_unreachable() {
    let nobody = format!("http://{}", free_address().unwrap());
    refused(
        &["get", "services", "--server", &nobody],
        5,
        &format!("cannot reach the control plane at {nobody}"),
        "hint: start one",
    )
    .await;
    let plane = Plane::start().await;
    let url = plane.url();
    refused(&["get", "endpoints", "nothing", "--server", &url], 3, "no service nothing", "hint: ").await;
    refused(&["get", "endpoints", "--ready", "--server", &url], 3, "no endpoint is ready", "hint: ").await;
    let folder = tempfile::tempdir().unwrap();
    let empty = text(&folder.path().join("nothing"));
    refused(&["log", "dump", &empty], 3, &empty, "hint: ").await;
}

/// The command fails with this exit code; its error has these words and this way out.
async fn refused(arguments: &[&str], code: i32, words: &str, way_out: &str) {
    let output = foldplane(arguments).await;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {errors}");
    assert!(output.stdout.is_empty(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(errors.matches("error: ").count(), 1, "{arguments:?}: one error, not {errors}");
    assert!(errors.contains(words), "{arguments:?}: {errors}");
    assert!(errors.contains(way_out), "{arguments:?}: {errors}");
    assert!(!errors.contains('\u{7}'), "control characters reach the terminal: {errors:?}");
    assert!(!errors.contains("panicked"), "{errors}");
}
