//! What operators ask for: a command in, the offset from which it holds out.

use std::net::SocketAddr;

use axum::Json;
use axum::extract::ConnectInfo;
use serde::{Deserialize, Serialize};

use super::Sources;
use crate::command::Command;
use crate::events::Actor;
use crate::problem::Problem;

/// Where what was asked holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OffsetBody {
    /// The log offset.
    pub offset: u64,
}

/// Submits the command for whoever is at `peer`.
pub(super) async fn obey(
    sources: &Sources,
    peer: ConnectInfo<SocketAddr>,
    command: Command,
) -> Result<Json<OffsetBody>, Problem> {
    let actor = Actor::Anonymous { peer: peer.0.to_string() };
    let accepted = sources.handle.submit(actor, command).await?;
    Ok(Json(OffsetBody { offset: accepted.offset.get() }))
}
