//! The log, held to its word: what was acknowledged is there, and what is damaged says so.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "helpers of tests, where a panic is the finding"
)]
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "tests measure and wait")]

mod bytes;
mod child;
mod corpus;
mod damage;
mod degrade;
#[path = "../support/disk.rs"]
mod disk;
#[path = "../support/corpus.rs"]
mod inputs;
mod kill;
mod power;
mod replay;
#[path = "../../benches/log/saving.rs"]
mod saving;
mod sled;
mod small;
#[path = "../../fuzz/targets/mod.rs"]
mod targets;
mod tools;
#[path = "../../benches/log/work.rs"]
mod work;
mod world;
