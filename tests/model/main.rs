//! The fold beside a dull model of it, which keeps every event and works everything out with loops.
//!
//! The model is written from the design, not from the code that it is compared with. A failure prints the shortest
//! list of steps that proptest found, and keeps its seed for the next run.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of this is a test, though most of it stands outside of the test functions"
)]
#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "the model looks for what it knows of; the fold itself breaks when there is a new event"
)]

mod collections;
mod content;
mod corpus;
mod hooks;
#[path = "../support/corpus.rs"]
mod inputs;
mod lifecycle;
mod machine;
mod order;
mod published;
mod reach;
mod replay;
mod silence;
mod streams;
mod totality;
mod views;
mod worlds;
