//! A control plane as a child process, on ports and in a folder of its own.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use foldplane::demo::ports::free_address;
use foldplane::demo::process::Process;
use nix::sys::signal::Signal;
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;

use super::{SOON, eventually, launcher, program, text};

/// A control plane. Dropping it kills it and removes its folder.
pub struct Plane {
    pub process: Process,
    pub xds: SocketAddr,
    pub api: SocketAddr,
    options: Vec<String>,
    data: PathBuf,
    folder: TempDir,
}

impl Plane {
    /// Starts one, and waits until it is ready.
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// Starts one with more options.
    pub async fn start_with(options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        Self::start_in(folder, data, options).await
    }

    /// Starts one whose log is in another folder.
    pub async fn start_on(data: PathBuf) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), data, &[]).await
    }

    async fn start_in(folder: TempDir, data: PathBuf, options: &[&str]) -> Self {
        let (xds, api) = (free_address().unwrap(), free_address().unwrap());
        let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
        let process = start(folder.path(), &data, xds, api, &options);
        let mut plane = Self { process, xds, api, options, data, folder };
        plane.ready().await;
        plane
    }

    /// Where its log and the logs of all children are.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The folder of its log, as an argument.
    pub fn data(&self) -> String {
        text(&self.data)
    }

    /// The URL of its API.
    pub fn url(&self) -> String {
        format!("http://{}", self.api)
    }

    async fn ready(&mut self) {
        let url = format!("{}/readyz", self.url());
        let process = &mut self.process;
        eventually("the start of the control plane", async || {
            process.still_runs().unwrap_or_else(|fault| panic!("{fault}"));
            let answer = reqwest::get(&url).await.and_then(reqwest::Response::error_for_status);
            answer.map(drop).map_err(|fault| fault.to_string())
        })
        .await;
    }

    /// Kills it with SIGKILL.
    pub async fn kill(&mut self) {
        self.process.kill(SOON).await.unwrap_or_else(|fault| panic!("{fault}"));
    }

    /// Stops it with SIGTERM, which must end it with exit code 0.
    pub async fn stop(&mut self) {
        self.process.signal(Signal::SIGTERM);
        let status = self.process.ended(SOON).await.unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!(status.code(), Some(0), "{}", self.process.last_lines());
    }

    /// Starts it again with the same ports and folder.
    pub async fn restart(&mut self) {
        self.process = start(self.folder.path(), &self.data, self.xds, self.api, &self.options);
        self.ready().await;
    }

    /// A document of its API.
    pub async fn get(&self, path: &str) -> Value {
        let response = reqwest::get(format!("{}{path}", self.url())).await.unwrap();
        let response = response.error_for_status().unwrap();
        response.json().await.unwrap()
    }

    /// What it says of its fold: offset, digest and every version.
    pub async fn state(&self) -> Value {
        self.get("/v1/state").await
    }

    /// Every event of its log, as JSON.
    pub async fn events(&self) -> Vec<Value> {
        let text = reqwest::get(format!("{}/v1/events", self.url())).await.unwrap().text().await.unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The states of the workers of a service, by id; empty when it has none.
    pub async fn workers(&self, service: &str) -> Vec<(String, String)> {
        let workers = self.get("/v1/workers").await;
        let items = workers["items"].as_array().unwrap().iter();
        let of_service = items.filter(|worker| worker["service"] == service);
        let word = |value: &Value| value.as_str().unwrap().to_owned();
        of_service.map(|worker| (word(&worker["id"]), word(&worker["state"]))).collect()
    }

    /// Waits until every worker of a service is ready, and there are `count`.
    pub async fn workers_are_ready(&self, service: &str, count: usize) {
        eventually(&format!("{count} ready workers of {service}"), async || {
            let workers = self.workers(service).await;
            let ready = workers.len() == count && workers.iter().all(|(_, state)| state == "ready");
            if ready { Ok(()) } else { Err(format!("{workers:?}")) }
        })
        .await;
    }
}

fn start(folder: &Path, data: &Path, xds: SocketAddr, api: SocketAddr, options: &[String]) -> Process {
    let (program, data) = (text(&program()), text(data));
    let (xds, api) = (xds.to_string(), api.to_string());
    let serve = [&program, "serve", "--data-dir", &data, "--xds", &xds, "--api", &api].map(str::to_owned);
    let command: Vec<String> = launcher().into_iter().chain(serve).chain(options.iter().cloned()).collect();
    Process::start("plane", &command, folder).unwrap_or_else(|fault| panic!("{fault}"))
}

/// How long one command may take.
const COMMAND_LIMIT: Duration = Duration::from_secs(60);

/// Runs `foldplane` with these arguments to its end.
pub async fn foldplane(arguments: &[&str]) -> Output {
    let mut command = Command::new(program());
    command
        .args(arguments)
        .env_remove("FOLDPLANE_SERVER")
        .env_remove("FOLDPLANE_DATA_DIR")
        .kill_on_drop(true);
    match tokio::time::timeout(COMMAND_LIMIT, command.output()).await {
        Ok(output) => output.unwrap(),
        Err(_) => panic!("`foldplane {}` did not end within {COMMAND_LIMIT:?}", arguments.join(" ")),
    }
}

/// What a command that must succeed prints, as JSON.
pub async fn foldplane_json(arguments: &[&str]) -> Value {
    let output = foldplane(arguments).await;
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}
