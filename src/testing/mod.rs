//! Generators and checkers for property tests: wishes, logs and events, in a world so small that collisions are common.
//!
//! Behind the feature `testing`. A supervisor or a policy of your own can be driven with them:
//!
//! ```
//! use foldplane::projection::Snapshot;
//! use foldplane::testing::{play, steps};
//! use proptest::prelude::*;
//!
//! proptest!(|(steps in steps(1..40))| {
//!     let log = play(&steps);
//!     let (snapshot, _) = Snapshot::default().fold(&log);
//!     // What must hold whatever happened, such as: no address belongs to the dead.
//!     let state = snapshot.state();
//!     prop_assert!(state.addresses().values().all(|owner| state.workers().contains_key(owner)));
//! });
//! ```
//!
//! What a log means can be asked of the [`model`]; who owns what is checked by [`check_owners`], versions by [`Ledger`] and
//! [`model::Past`], streams by [`Client`], and as text with [`scenario`].

mod client;
mod corpus;
mod events;
pub mod fuzz;
mod ledger;
pub mod model;
mod names;
mod owners;
mod parts;
mod proxy;
mod resources;
pub mod scenario;
mod steps;
mod world;

pub use client::{Answer, Client, Turn, published};
pub use corpus::{CorpusError, corpus, replay};
pub use events::events;
pub use ledger::Ledger;
pub use names::{host, port, service, session, socket_path, view_name, worker};
pub use owners::check_owners;
pub use proxy::Proxy;
pub use steps::{Aim, Step, Wanted, crowd, step, steps};
pub use world::{World, play};
