//! One child process behind every proxy: it gets its ports, is published when it can serve, and is gone for
//! everybody within milliseconds of its end.

mod assignment;
#[cfg(target_os = "linux")]
mod cgroup;
mod child;
mod ending;
mod kin;
mod launch;
mod machine;
mod measure;
mod monitor;
mod notify;
mod plan;
mod ports;
mod process;
mod reports;
mod shell;
mod signals;
mod tiding;

pub use child::Launcher;
pub use launch::launch;
pub use monitor::{MemoryMax, Thresholds};
pub use plan::{Lends, Plan, PlannedPlace, PlannedPort, ReadyBy, Restart};
pub use shell::{RunError, Say, run};

#[cfg(test)]
mod tests;
