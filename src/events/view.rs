//! Which nodes see which services.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Glob;

/// What a group of nodes sees of everything that is published.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeView {
    /// Whom it is for.
    pub nodes: NodeSelector,
    /// The services that they see: by the name of the service, or of a single resource. None means nothing at all.
    pub services: Vec<Glob>,
}

/// Which nodes are meant: those for which every part holds. A part that is empty holds for everybody.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeSelector {
    /// The node's id is like one of these.
    pub ids: Vec<Glob>,
    /// The node's cluster is like one of these.
    pub clusters: Vec<Glob>,
    /// The node's metadata has each of these values, at its top level.
    pub metadata: BTreeMap<String, String>,
}

impl NodeSelector {
    /// Whether it says nothing, which would mean everybody.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty() && self.clusters.is_empty() && self.metadata.is_empty()
    }
}
