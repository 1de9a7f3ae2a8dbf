//! MEANING: a pure fold from facts to a state, and from the state to the resources that clients are sent.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

pub mod checkpoint;
pub mod findings;
pub mod hooks;
pub mod resources;
pub mod state;

mod cluster_name;
mod evolve;
mod publication;
mod render;
mod snapshot;

pub use cluster_name::ClusterName;
pub use evolve::{Anomaly, Outcome, evolve};
pub use publication::{HealthStatus, health};
pub use snapshot::{Snapshot, StateDigest};
