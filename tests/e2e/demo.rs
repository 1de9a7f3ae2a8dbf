//! The demo, as a newcomer starts it.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::support::envoy::envoy;
use crate::support::program;

/// How long the demo may take to its end: 15 s, and far more on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);

#[tokio::test]
async fn the_demo_shows_everything_and_everything_holds() {
    let output =
        tokio::time::timeout(LIMIT, start(&["--once"]).await.wait_with_output()).await.unwrap().unwrap();
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    eprintln!("{said}");
    assert_eq!(output.status.code(), Some(0), "{said}\n{errors}");
    assert!(said.contains("everything held") && !said.contains('✗'), "{said}");
    assert!(said.contains("failed                 0"), "{said}");
    assert!(!said.contains('\u{1b}'), "colours without a terminal: {said:?}");
    let folder = nothing_is_left(&said);
    assert!(!Path::new(&folder).exists(), "{folder} is still there");
}

/// Ctrl-C in the middle leaves nothing behind, and SIGKILL no process.
#[tokio::test]
async fn an_interrupted_demo_leaves_nothing_behind() {
    for (signal, code) in [(Signal::SIGINT, Some(1)), (Signal::SIGKILL, None)] {
        let mut demo = start(&[]).await;
        let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines();
        let mut said = String::new();
        while !said.contains("Requests go through Envoy") {
            let line = tokio::time::timeout(LIMIT, lines.next_line()).await.unwrap().unwrap();
            said.push_str(&line.unwrap_or_else(|| panic!("the demo ended early: {said}")));
            said.push('\n');
        }
        kill(Pid::from_raw(demo.id().unwrap().cast_signed()), signal).unwrap();
        let status = tokio::time::timeout(LIMIT, demo.wait()).await.unwrap().unwrap();
        assert_eq!(status.code(), code, "after {signal}");
        let folder = nothing_is_left(&said);
        if signal == Signal::SIGKILL {
            std::fs::remove_dir_all(folder).unwrap();
        } else {
            assert!(!Path::new(&folder).exists(), "{folder} is still there");
        }
    }
}

async fn start(options: &[&str]) -> Child {
    Command::new(program())
        .arg("demo")
        .args(options)
        .env("FOLDPLANE_ENVOY", &envoy().await.binary)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

/// Waits until no process of the demo is left: each has its folder or its control plane among its arguments. Gives the folder.
fn nothing_is_left(said: &str) -> String {
    let word = |name: &str| {
        let line = said.lines().find(|line| line.trim_start().starts_with(name)).unwrap();
        line.split_whitespace().last().unwrap().to_owned()
    };
    let (folder, server) = (word("folder"), word("control plane"));
    let start = Instant::now();
    loop {
        let left: Vec<String> = commands()
            .into_iter()
            .filter(|command| command.contains(&folder) || command.contains(&server))
            .collect();
        if left.is_empty() {
            return folder;
        }
        assert!(start.elapsed() < Duration::from_secs(10), "still there: {left:#?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn commands() -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " ")).collect()
}
