//! `min_offset=N` on any read: an answer that is not older than what the caller has already seen.

use std::time::Duration;

use axum::extract::{Query, Request, State};
use axum::http::uri::PathAndQuery;
use axum::http::{StatusCode, Uri};
use axum::middleware::Next;
use axum::response::Response;
use serde::Deserialize;
use tokio::time::timeout;

use super::Sources;
use crate::events::Offset;
use crate::problem::Problem;

/// How long a read waits for the log to get there. Whoever knows an offset got it from an answer, and an answer follows
/// its snapshot: there is nothing to wait for but another replica that is a moment behind.
const WITHIN: Duration = Duration::from_secs(10);

const NAME: &str = "min_offset";

/// As far as it is looked at here.
#[derive(Debug, Deserialize)]
struct Asked {
    min_offset: Option<String>,
}

/// Holds a read back until the snapshot shows the offset that it names, and takes the name out of the query.
pub(super) async fn wait(
    State(sources): State<Sources>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let asked = Query::<Asked>::try_from_uri(request.uri());
    if let Ok(Query(Asked { min_offset: Some(text) })) = asked {
        let offset = text.parse::<Offset>().map_err(|fault| {
            let detail = format!("{NAME}: {fault}");
            Problem::new(StatusCode::BAD_REQUEST, "invalid_argument", detail, "give the offset of an answer")
        })?;
        reach(&sources, offset).await?;
        *request.uri_mut() = without(request.uri());
    }
    Ok(next.run(request).await)
}

async fn reach(sources: &Sources, offset: Offset) -> Result<(), Problem> {
    let mut snapshots = sources.handle.snapshots();
    let shown = timeout(WITHIN, snapshots.wait_for(|snapshot| snapshot.offset() >= offset)).await;
    if matches!(shown, Ok(Ok(_))) {
        return Ok(());
    }
    let head = sources.handle.snapshot().offset();
    Err(Problem::new(
        StatusCode::GATEWAY_TIMEOUT,
        "offset_not_reached",
        format!("the log is at {head}, and not yet at {offset}"),
        "check the number, or ask again",
    ))
}

/// The same address without our part of the query.
fn without(uri: &Uri) -> Uri {
    let rest = uri.query().unwrap_or_default().split('&').filter(|pair| pair.split('=').next() != Some(NAME));
    let query = rest.collect::<Vec<_>>().join("&");
    let path = if query.is_empty() { uri.path().to_owned() } else { format!("{}?{query}", uri.path()) };
    path.parse::<PathAndQuery>().map_or_else(|_| uri.clone(), Uri::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_the_query_stays() {
        let of = |text: &str| without(&text.parse().unwrap()).to_string();
        assert_eq!(of("/v1/workers?min_offset=4"), "/v1/workers");
        assert_eq!(
            of("/v1/workers?service=a%20b&min_offset=4&ready=true"),
            "/v1/workers?service=a%20b&ready=true"
        );
    }
}
