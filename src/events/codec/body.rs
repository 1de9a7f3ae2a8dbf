//! One event as bytes: its envelope without the offset, which its place in the block gives.

use serde::Serialize;

use super::limits::{BodyError, EVENT_BYTES_MAX, SCHEMA_NEWEST};
use super::schema::{self, Newest};
use crate::events::{Actor, CorrelationId, Envelope, Event, Offset, Timestamp};

/// One event as bytes, and the schema version that they follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// Which definitions the bytes follow.
    pub schema: u16,
    /// The encoded envelope without its offset.
    pub bytes: Vec<u8>,
}

#[derive(Serialize)]
struct BodyRef<'a> {
    recorded_at: Timestamp,
    actor: &'a Actor,
    correlation: &'a Option<CorrelationId>,
    event: &'a Event,
}

/// The bytes of an event, in the newest schema.
///
/// # Errors
///
/// [`BodyError::TooLarge`] when there are more than [`EVENT_BYTES_MAX`] of them.
pub fn encode_body(envelope: &Envelope) -> Result<Body, BodyError> {
    let body = BodyRef {
        recorded_at: envelope.recorded_at,
        actor: &envelope.actor,
        correlation: &envelope.correlation,
        event: &envelope.event,
    };
    let bytes = bincode::serde::encode_to_vec(body, bincode::config::standard())
        .map_err(|error| BodyError::Malformed { schema: SCHEMA_NEWEST, detail: error.to_string() })?;
    if bytes.len() > EVENT_BYTES_MAX {
        return Err(BodyError::TooLarge { name: envelope.event.name(), bytes: bytes.len() });
    }
    Ok(Body { schema: SCHEMA_NEWEST, bytes })
}

/// Whether the log would keep this event; to be asked for each wish, so that one large event does not
/// make a whole batch fail.
///
/// # Errors
///
/// As [`encode_body`].
pub fn check_size(envelope: &Envelope) -> Result<(), BodyError> {
    encode_body(envelope).map(|_| ())
}

/// The event that the bytes are, brought to today's definitions.
///
/// # Errors
///
/// [`BodyError::Newer`] for a schema that this version does not know, [`BodyError::Malformed`] for bytes
/// that are no event or that hold more than one.
pub fn decode_body(offset: Offset, schema: u16, bytes: &[u8]) -> Result<Envelope, BodyError> {
    let Newest { recorded_at, actor, correlation, event } = schema::decode(schema, bytes)?;
    Ok(Envelope { offset, recorded_at, actor, correlation, event })
}
