//! Errors as RFC 9457 problem documents.

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

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
