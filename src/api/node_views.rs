//! Views: which nodes see which services.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use axum::Json;
use axum::extract::{ConnectInfo, Path, State};
use serde::{Deserialize, Serialize};

use super::Sources;
use super::obey::{OffsetBody, obey};
use super::views::Listing;
use crate::command::Command;
use crate::events::view::{NodeSelector, NodeView};
use crate::events::{Glob, ViewName};
use crate::problem::{JsonBody, Problem};
use crate::projection::Snapshot;

/// Who is meant by a view, and what they see.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ViewBody {
    /// Patterns of node ids; none is every id.
    #[serde(default)]
    pub ids: Vec<Glob>,
    /// Patterns of node clusters; none is every cluster.
    #[serde(default)]
    pub clusters: Vec<Glob>,
    /// Values that the node's metadata must have, at its top level.
    #[serde(default)]
    pub metadata: BTreeMap<String, String>,
    /// Patterns of the services that are seen, or of single resources; none is nothing.
    pub services: Vec<Glob>,
}

/// A view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeViewView {
    /// Its name.
    pub view: String,
    /// Patterns of node ids; none is every id.
    pub ids: Vec<Glob>,
    /// Patterns of node clusters; none is every cluster.
    pub clusters: Vec<Glob>,
    /// Values that the node's metadata must have.
    pub metadata: BTreeMap<String, String>,
    /// Patterns of what is seen; none is nothing.
    pub services: Vec<Glob>,
}

/// Every view, by name.
#[must_use]
pub fn views(snapshot: &Snapshot) -> Listing<NodeViewView> {
    let view = |(name, view): (&ViewName, &std::sync::Arc<NodeView>)| {
        let NodeView { nodes: NodeSelector { ids, clusters, metadata }, services } = NodeView::clone(view);
        NodeViewView { view: name.to_string(), ids, clusters, metadata, services }
    };
    Listing { offset: snapshot.offset().get(), items: snapshot.state().views().iter().map(view).collect() }
}

pub(super) async fn list(State(sources): State<Sources>) -> Json<Listing<NodeViewView>> {
    Json(views(&sources.handle.snapshot()))
}

pub(super) async fn set(
    State(sources): State<Sources>,
    Path(name): Path<String>,
    peer: ConnectInfo<SocketAddr>,
    JsonBody(body): JsonBody<ViewBody>,
) -> Result<Json<OffsetBody>, Problem> {
    let ViewBody { ids, clusters, metadata, services } = body;
    let view = NodeView { nodes: NodeSelector { ids, clusters, metadata }, services };
    obey(&sources, peer, Command::SetView { name: ViewName::new(&name)?, view }).await
}

pub(super) async fn remove(
    State(sources): State<Sources>,
    Path(name): Path<String>,
    peer: ConnectInfo<SocketAddr>,
) -> Result<Json<OffsetBody>, Problem> {
    obey(&sources, peer, Command::RemoveView { name: ViewName::new(&name)? }).await
}
