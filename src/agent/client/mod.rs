//! A worker session: one `Attach` stream that speaks for one worker or for many, and comes back when it is lost.
//!
//! The owner says what it wants to be true of each worker ([`Wish`]); the session sends what is missing, keeps
//! order and generations, rejoins after a lost connection and registers anew what the control plane has removed
//! meanwhile. What happens comes back as [`Notice`]s.

mod link;
mod machine;
mod slot;
mod types;

pub use link::{Client, Config, InvalidServer};
pub use types::{Departure, Notice, Opinion, Ticket, Wish};

#[cfg(test)]
mod tests;
