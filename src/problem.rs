//! Errors of the HTTP doors as RFC 9457 problem documents: one place that maps them to status codes.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a shell: it speaks HTTP")]

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

use crate::command::{Rejection, RejectionCode};
use crate::engine::SubmitError;
use crate::events::InvalidName;
use crate::events::log::LogError;

/// What went wrong, for programs (`code`, `status`) and people (`detail`, `hint`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The HTTP status.
    pub status: u16,
    /// Stable, such as `not_found`.
    pub code: String,
    /// What the status means.
    pub title: String,
    /// What was wrong, with which input.
    pub detail: String,
    /// What to do.
    pub hint: String,
}

impl Problem {
    /// A problem with this status and code.
    #[must_use]
    pub fn new(status: StatusCode, code: &str, detail: impl Into<String>, hint: &str) -> Self {
        Self {
            status: status.as_u16(),
            code: code.to_owned(),
            title: status.canonical_reason().unwrap_or("error").to_owned(),
            detail: detail.into(),
            hint: hint.to_owned(),
        }
    }
}

/// A JSON body, whose faults are problems too.
#[derive(Clone, Copy, Debug)]
pub struct JsonBody<T>(pub T);

impl<S, T> FromRequest<S> for JsonBody<T>
where
    S: Send + Sync,
    Json<T>: FromRequest<S, Rejection = JsonRejection>,
{
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        match Json::from_request(request, state).await {
            Ok(Json(body)) => Ok(Self(body)),
            Err(fault) => Err(Problem::new(
                fault.status(),
                "invalid_argument",
                fault.body_text(),
                "send a JSON object with content-type application/json (docs/worker-contract.md)",
            )),
        }
    }
}

/// A query, whose faults are problems too.
#[derive(Clone, Copy, Debug)]
pub struct QueryOf<T>(pub T);

impl<S, T> FromRequestParts<S> for QueryOf<T>
where
    S: Send + Sync,
    Query<T>: FromRequestParts<S, Rejection = QueryRejection>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Query::from_request_parts(parts, state).await {
            Ok(Query(query)) => Ok(Self(query)),
            Err(fault) => Err(Problem::new(
                fault.status(),
                "invalid_argument",
                fault.body_text(),
                "check the names and values after the question mark",
            )),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        (status, [(header::CONTENT_TYPE, "application/problem+json")], Json(self)).into_response()
    }
}

impl From<InvalidName> for Problem {
    fn from(invalid: InvalidName) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_argument", invalid.to_string(), "check the name")
    }
}

impl From<LogError> for Problem {
    fn from(fault: LogError) -> Self {
        let detail = fault.to_string();
        if matches!(fault, LogError::Gone { .. }) {
            return Self::new(StatusCode::GONE, "gone", detail, "start from the oldest that is kept");
        }
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "storage_unavailable", detail, "see the server's log")
    }
}

impl From<Rejection> for Problem {
    fn from(rejection: Rejection) -> Self {
        let status = match rejection.code {
            RejectionCode::InvalidArgument => StatusCode::BAD_REQUEST,
            RejectionCode::UnknownWorker | RejectionCode::UnknownHost => StatusCode::NOT_FOUND,
            RejectionCode::StaleGeneration
            | RejectionCode::Draining
            | RejectionCode::PortTaken
            | RejectionCode::PortsExhausted
            | RejectionCode::AddressTaken
            | RejectionCode::HostDraining
            | RejectionCode::NotDeclared
            | RejectionCode::UnknownReference
            | RejectionCode::ResourceInUse => StatusCode::CONFLICT,
        };
        Self::new(status, rejection.code.as_str(), rejection.message, &rejection.hint)
    }
}

impl From<SubmitError> for Problem {
    fn from(fault: SubmitError) -> Self {
        let (status, code) = match fault {
            SubmitError::Rejected(rejection) => return rejection.into(),
            SubmitError::StorageUnavailable { .. } => {
                (StatusCode::INSUFFICIENT_STORAGE, "storage_unavailable")
            }
            SubmitError::Stopping => (StatusCode::SERVICE_UNAVAILABLE, "stopping"),
        };
        Self::new(status, code, fault.to_string(), "nothing was changed: try again")
    }
}
