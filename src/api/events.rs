//! The log as JSON lines.

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Deserialize;

use super::Sources;
use crate::events::log::LogError;
use crate::events::{Envelope, Offset};
use crate::problem::{Problem, QueryOf};

/// How many events one piece of the answer holds: the log is read in steps, so that a slow reader holds nothing.
const EVENTS_PER_CHUNK: usize = 512;

/// Which events.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Range {
    from: Option<Offset>,
    until: Option<Offset>,
}

/// Every event from `from` to `until` or the end, one JSON object a line.
pub(super) async fn events(
    State(sources): State<Sources>,
    QueryOf(range): QueryOf<Range>,
) -> Result<Response, Problem> {
    let from = range.from.unwrap_or_else(|| sources.handle.log().oldest());
    let last = sources.handle.log().head().offset;
    let until = range.until.map_or(last, |until| until.min(last));
    // The first piece is read at once, so that a range that is gone is an answer and not a broken body.
    let (first, next) = chunk(&sources, from, until).await?;
    let rest = stream::try_unfold((sources, next), move |(sources, next)| async move {
        match next {
            None => Ok(None),
            Some(from) => {
                let (bytes, next) = chunk(&sources, from, until).await?;
                Ok::<_, LogError>(Some((bytes, (sources, next))))
            }
        }
    });
    let body = futures_util::StreamExt::chain(stream::iter([Ok(first)]), rest);
    Ok(([(header::CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(body)).into_response())
}

/// The lines of the next events, and where to go on.
async fn chunk(sources: &Sources, from: Offset, until: Offset) -> Result<(Bytes, Option<Offset>), LogError> {
    let log = std::sync::Arc::clone(sources.handle.log());
    let read = move || {
        let mut lines = Vec::new();
        let mut next = None;
        if from <= until {
            for envelope in log.read(from)?.take(EVENTS_PER_CHUNK) {
                let envelope = envelope?;
                if envelope.offset > until {
                    return Ok((lines.into(), None));
                }
                next = Some(envelope.offset.next()).filter(|next| *next <= until);
                line(&mut lines, &envelope);
            }
        }
        Ok((lines.into(), next))
    };
    tokio::task::spawn_blocking(read).await.unwrap_or_else(|panicked| {
        Err(LogError::Damaged { place: from.to_string(), detail: panicked.to_string() })
    })
}

fn line(lines: &mut Vec<u8>, envelope: &Envelope) {
    serde_json::to_writer(&mut *lines, envelope).expect("an envelope has no map with keys other than text");
    lines.push(b'\n');
}
