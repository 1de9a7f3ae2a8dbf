//! Workers that renew a lease, and stand still for longer than it lasts.

use nix::sys::signal::{Signal, kill};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::world::{Server, pid};

/// The example worker over REST, whose lease lasts 6 s.
struct Leased(Child);

impl Leased {
    fn start(server: &Server) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/worker.py");
        let mut command = Command::new("python3");
        command.args([script, "web"]).env("FOLDPLANE_SERVER", server.url()).env("FOLDPLANE_HOST", "h");
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    fn name(&self) -> String {
        format!("py-{}", self.0.id())
    }

    fn signal(&self, signal: Signal) {
        kill(pid(self.0.id()), signal).unwrap();
    }
}

impl Drop for Leased {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

// hashicorp/nomad#26424 (F27)
#[test]
fn f27_a_worker_that_stood_still_for_longer_than_its_lease_is_removed_and_registers_again() {
    let server = Server::start();
    let worker = Leased::start(&server);
    server.wait_for(&format!("WorkerReady web/{}@h", worker.name()));
    worker.signal(Signal::SIGSTOP);
    server.wait_for(&format!("WorkerRemoved web/{}@h lease expired", worker.name()));
    worker.signal(Signal::SIGCONT);
    let again = ["WorkerRegistered", "WorkerReady", "WorkerRemoved", "WorkerRegistered", "WorkerReady"];
    server.wait_for_story(&worker.name(), &again);
}

// etcd-io/etcd#15247 (F32): the control plane stands still, not the workers.
#[test]
fn f32_a_control_plane_that_stood_still_hears_its_workers_before_it_ends_their_leases() {
    let server = Server::start();
    let renewing = Leased::start(&server);
    let silent = Leased::start(&server);
    for worker in [&renewing, &silent] {
        server.wait_for(&format!("WorkerReady web/{}@h", worker.name()));
    }
    server.signal(Signal::SIGSTOP);
    silent.signal(Signal::SIGKILL);
    // Two leases and more: each of them would be over.
    sleep(Duration::from_secs(14));
    server.signal(Signal::SIGCONT);
    server.wait_for(&format!("WorkerRemoved web/{}@h lease expired", silent.name()));
    assert_eq!(server.story(&renewing.name()), ["WorkerRegistered", "WorkerReady"]);
}
