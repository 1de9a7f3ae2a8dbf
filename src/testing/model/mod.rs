//! THE MODEL: a dull second opinion on what a log means.
//!
//! It keeps every event and works everything out with loops, each time somebody asks, so that it is easy to believe and slow. It
//! is written from the design, not from the code that it is compared with. What it knows of policies is what the generators of
//! this room say ([`steps`](super::steps) and [`events`](super::events)); of others it takes the default.
//!
//! ```
//! use foldplane::projection::Snapshot;
//! use foldplane::projection::resources::Dials;
//! use foldplane::testing::{model, play, steps};
//! use proptest::prelude::*;
//!
//! proptest!(ProptestConfig::with_cases(16), |(steps in steps(1..20))| {
//!     let log = play(&steps);
//!     let (snapshot, _) = Snapshot::default().fold(&log);
//!     for dials in [Dials::Everything, Dials::IpOnly] {
//!         prop_assert_eq!(model::told_by(snapshot.resources(), dials), model::told(&log, dials));
//!     }
//! });
//! ```
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a checker: what does not hold is a panic of the test that asks"
)]
#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "the model looks for what it knows of; the fold itself breaks when there is a new event"
)]

mod admission;
mod answers;
mod applied;
mod brought;
mod lives;
mod rules;
mod services;
mod silence;
mod told;
mod verdict;
mod versions;

pub use brought::is_hidden;
pub use lives::{Health, Life, lives, living, views};
pub use told::{Told, failures, told, told_by};
pub use verdict::check_decision;
pub use versions::Past;
