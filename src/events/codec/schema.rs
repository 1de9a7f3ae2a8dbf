//! The versions of an event's definitions, and the steps that bring old ones to today's (docs/FORMAT.md).
//!
//! Each version has definitions of its own, which never change once they are released, and one pure step to the next
//! version. The steps are chained: what version 1 wrote becomes version 2, and that becomes version 3.

use serde::Deserialize;

use super::limits::{BodyError, EVENT_BYTES_MAX, SCHEMA_NEWEST, SCHEMA_OLDEST};
use crate::events::{Actor, CorrelationId, Event, Timestamp};

/// How each version is read, from [`SCHEMA_OLDEST`] to [`SCHEMA_NEWEST`].
const READERS: [Reader; (SCHEMA_NEWEST + 1 - SCHEMA_OLDEST) as usize] = [read::<BodyV1>];

/// An event without its place, as the newest version defines it.
pub(super) type Newest = BodyV1;

/// Reads what one version wrote, and brings it to the newest.
type Reader = fn(&[u8]) -> Result<Newest, String>;

/// An event without its place, as one version defines it.
trait Versioned: for<'de> Deserialize<'de> {
    /// The same as the newest version says it. The newest is it already; each other one becomes the next, and asks that.
    fn newest(self) -> Newest;
}

/// What version 1 writes: today's definitions.
#[derive(Deserialize)]
pub(super) struct BodyV1 {
    pub(super) recorded_at: Timestamp,
    pub(super) actor: Actor,
    pub(super) correlation: Option<CorrelationId>,
    pub(super) event: Event,
}

impl Versioned for BodyV1 {
    fn newest(self) -> Newest {
        self
    }
}

/// What these bytes say, which version `schema` wrote.
pub(super) fn decode(schema: u16, bytes: &[u8]) -> Result<Newest, BodyError> {
    decode_with(&READERS, schema, bytes)
}

fn decode_with(readers: &[Reader], schema: u16, bytes: &[u8]) -> Result<Newest, BodyError> {
    let malformed = |detail: String| BodyError::Malformed { schema, detail };
    let index = schema.checked_sub(SCHEMA_OLDEST).ok_or_else(|| malformed("no such schema".to_owned()))?;
    let read = readers.get(usize::from(index)).ok_or(BodyError::Newer { found: schema })?;
    read(bytes).map_err(malformed)
}

fn read<V: Versioned>(bytes: &[u8]) -> Result<Newest, String> {
    // Variable-length integers, least significant byte first; claimed lengths are checked against the limit before
    // anything is allocated.
    let config = bincode::config::standard().with_limit::<EVENT_BYTES_MAX>();
    match bincode::serde::borrow_decode_from_slice::<V, _>(bytes, config) {
        Ok((body, used)) if used == bytes.len() => Ok(body.newest()),
        Ok((_, used)) => Err(format!("{} bytes are left over", bytes.len() - used)),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde::Serialize;

    use super::*;
    use crate::events::HostName;

    /// A past that never was, to show the chain at work: a first version that knew one event and counted seconds, and a
    /// second one with an actor. Today's definitions are the third.
    #[derive(Serialize, Deserialize)]
    struct First {
        recorded_at_s: u64,
        removed_host: String,
    }

    #[derive(Serialize, Deserialize)]
    struct Second {
        recorded_at_ms: u64,
        actor: String,
        removed_host: HostName,
    }

    impl Versioned for First {
        fn newest(self) -> Newest {
            let removed_host = HostName::new(&self.removed_host.replace(' ', "-")).unwrap();
            let (recorded_at_ms, actor) = (self.recorded_at_s * 1_000, "nobody knows".to_owned());
            Second { recorded_at_ms, actor, removed_host }.newest()
        }
    }

    impl Versioned for Second {
        fn newest(self) -> Newest {
            let third = BodyV1 {
                recorded_at: Timestamp::from_millis(self.recorded_at_ms),
                actor: Actor::Principal { name: self.actor },
                correlation: None,
                event: Event::HostRemoved { host: self.removed_host },
            };
            third.newest()
        }
    }

    #[track_caller]
    fn check(schema: u16, written: impl Serialize, expected: (u64, &str, &str)) {
        const READERS: [Reader; 3] = [read::<First>, read::<Second>, read::<BodyV1>];
        let bytes = bincode::serde::encode_to_vec(written, bincode::config::standard()).unwrap();
        let found = decode_with(&READERS, schema, &bytes).unwrap();
        let Event::HostRemoved { host } = &found.event else { panic!("{:?}", found.event) };
        assert_eq!((found.recorded_at.as_millis(), &*found.actor.to_string(), host.as_str()), expected);
    }

    #[test]
    fn what_an_old_version_wrote_goes_through_every_version_since() {
        check(1, First { recorded_at_s: 7, removed_host: "h 1".to_owned() }, (7_000, "nobody knows", "h-1"));
        let host = HostName::new("h1").unwrap();
        check(
            2,
            Second { recorded_at_ms: 7, actor: "eve".to_owned(), removed_host: host.clone() },
            (7, "eve", "h1"),
        );
        let today = (Timestamp::from_millis(7), Actor::System, None::<u8>, Event::HostRemoved { host });
        check(3, today, (7, "system", "h1"));
    }

    #[test]
    fn versions_that_are_not_known_are_refused() {
        assert!(matches!(decode(SCHEMA_NEWEST + 1, &[]), Err(BodyError::Newer { .. })));
        assert!(matches!(decode(SCHEMA_OLDEST - 1, &[]), Err(BodyError::Malformed { .. })));
    }
}
