//! What tests with real processes stand on: a control plane, an Envoy, workers, and a wire that can be cut.
//!
//! A test binary takes it in with `#[path = "../support/mod.rs"] mod support;`.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    dead_code,
    unreachable_pub,
    reason = "real processes and times; not every binary uses every part"
)]

pub mod disk;
pub mod envoy;
pub mod plane;
pub mod wire;
pub mod worker;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use foldplane::demo::proxy::Proxy;

use plane::Plane;

/// How long anything may take that takes milliseconds: a busy machine gets far more.
pub const SOON: Duration = Duration::from_secs(20);

/// The program under test.
pub fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_foldplane"))
}

/// The words that make a child die with the thread that starts it, so that a test that is killed leaves nothing.
pub fn launcher() -> [String; 4] {
    let program = program().to_string_lossy().into_owned();
    [program, "launch-child".to_owned(), std::process::id().to_string(), "--".to_owned()]
}

/// A control plane and an Envoy that follows it. The Envoy ends first.
pub struct World {
    pub proxy: Proxy,
    pub plane: Plane,
}

impl World {
    /// Starts both.
    pub async fn start() -> Self {
        let plane = Plane::start().await;
        let proxy = envoy::start("edge", plane.xds, plane.folder()).await;
        Self { proxy, plane }
    }
}

/// Waits until `probe` gives something, and fails the test with `what` when it does not.
#[track_caller]
pub fn eventually<T, P>(what: &str, probe: P) -> impl Future<Output = T>
where
    P: AsyncFnMut() -> Result<T, String>,
{
    let caller = std::panic::Location::caller();
    let what = what.to_owned();
    async move {
        let mut probe = probe;
        let start = Instant::now();
        loop {
            match probe().await {
                Ok(found) => return found,
                Err(seen) if start.elapsed() > SOON => {
                    panic!("{caller}: {what} did not happen within {SOON:?}: {seen}")
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    }
}

/// The folder's path as an argument.
pub fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
