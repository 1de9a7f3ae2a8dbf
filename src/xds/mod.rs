//! THE WIRE: serves [`Resources`](crate::projection::resources::Resources) to Envoy and gRPC over xDS, and knows what every client was sent.
//!
//! One pure machine a stream ([`protocol`]) decides what is answered and when; a thin shell moves messages. The
//! room needs nothing but resources: it knows no workers, no log and no commands, so that a program with
//! resources of its own can serve them with it.

pub mod client;
pub mod ledger;
pub mod node;
pub mod protocol;

mod progress;
mod service;
mod wire;

pub use ledger::Ledger;
pub use node::Node;
pub use progress::{Progress, Standing};
pub use service::{Limits, router, router_with_limits};
