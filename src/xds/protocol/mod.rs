//! The xDS protocol as pure state machines: no sockets, no clock, no hash order.
//!
//! A [`Machine`] is one stream. It is told what the client asked and which resources there are, and says what to
//! send next. Time comes in as the span since any fixed moment.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

mod draft;
mod in_flight;
mod last_good;
mod machine;
mod owed;
mod poll;
mod request;
mod response;
mod status;
mod subscription;
mod type_state;
mod unserved;
mod variant;

pub use in_flight::{ACK_WAIT_MAX, Rejection};
pub use machine::{Handled, Machine, Refused, Served, StreamId};
pub use poll::{Polled, poll};
pub use request::{Edit, Names, Request};
pub use response::{RESPONSE_BYTES_MAX, Response, ResponseType};
pub use status::{TypeStatus, Verdict};
pub use subscription::{NAME_BYTES_MAX, Subscription, UNKNOWN_NAMES_MAX};
pub use variant::Variant;
