//! Which node sees what.

use std::sync::Arc;

use imbl::OrdMap;
use serde_json::Value;

use super::{Dials, Scope, Visible};
use crate::events::view::{NodeSelector, NodeView};
use crate::events::{Glob, Offset, ViewName};

/// The views of all nodes. Cheap to clone.
///
/// A node sees what the views that are for it show, together. One for which there is none sees everything: a view
/// narrows what its own nodes see, and nothing else changes.
#[derive(Clone, Debug, Default)]
pub struct NodeViews {
    changed: Offset,
    by_name: OrdMap<ViewName, Arc<NodeView>>,
}

/// What a node says of itself.
#[derive(Clone, Copy, Debug)]
pub struct NodeLabels<'a> {
    /// Its id.
    pub id: &'a str,
    /// The cluster of proxies that it belongs to.
    pub cluster: &'a str,
    /// A JSON object, or `null`.
    pub metadata: &'a Value,
    /// To what it can connect.
    pub dials: Dials,
}

impl NodeViews {
    /// These views, as they are since the event at `changed`.
    #[must_use]
    pub const fn new(changed: Offset, by_name: OrdMap<ViewName, Arc<NodeView>>) -> Self {
        Self { changed, by_name }
    }

    /// The last event that changed a view.
    #[must_use]
    pub const fn changed(&self) -> Offset {
        self.changed
    }

    /// The names of the views that are for this node, sorted.
    #[must_use]
    pub fn of(&self, node: NodeLabels<'_>) -> Vec<ViewName> {
        self.meant(node).map(|(name, _)| name.clone()).collect()
    }

    /// What this node sees.
    #[must_use]
    pub fn scope(&self, node: NodeLabels<'_>) -> Scope {
        let mut views = self.meant(node).peekable();
        let visible = if views.peek().is_none() {
            Visible::Everything
        } else {
            Visible::Only(views.flat_map(|(_, view)| view.services.iter().cloned()).collect())
        };
        Scope { visible, dials: node.dials }
    }

    fn meant(&self, node: NodeLabels<'_>) -> impl Iterator<Item = (&ViewName, &Arc<NodeView>)> {
        self.by_name.iter().filter(move |(_, view)| is_meant(&view.nodes, node))
    }
}

fn is_meant(nodes: &NodeSelector, node: NodeLabels<'_>) -> bool {
    let like = |globs: &[Glob], text| globs.is_empty() || globs.iter().any(|glob| glob.matches(text));
    like(&nodes.ids, node.id)
        && like(&nodes.clusters, node.cluster)
        && nodes.metadata.iter().all(|(key, value)| says(node.metadata.get(key), value))
}

/// Whether a value of the metadata is this. On the wire every number is a floating-point one: 3 is 3.0.
fn says(found: Option<&Value>, wanted: &str) -> bool {
    match found {
        Some(Value::String(text)) => text == wanted,
        Some(Value::Number(number)) => number.as_f64().is_some_and(|number| wanted.parse() == Ok(number)),
        Some(Value::Bool(flag)) => wanted.parse() == Ok(*flag),
        Some(Value::Null | Value::Array(_) | Value::Object(_)) | None => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn globs(texts: &[&str]) -> Vec<Glob> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn view(ids: &[&str], clusters: &[&str], metadata: &[(&str, &str)], services: &[&str]) -> Arc<NodeView> {
        let metadata = metadata.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let nodes = NodeSelector { ids: globs(ids), clusters: globs(clusters), metadata };
        Arc::new(NodeView { nodes, services: globs(services) })
    }

    #[track_caller]
    fn check(views: &[Arc<NodeView>], id: &str, cluster: &str, metadata: &Value, expected: &str) {
        let named =
            (1..).zip(views).map(|(n, view)| (ViewName::new(&format!("v{n}")).unwrap(), view.clone()));
        let views = NodeViews::new(Offset::new(1), named.collect());
        let labels = NodeLabels { id, cluster, metadata, dials: Dials::Everything };
        let found = match views.scope(labels).visible {
            Visible::Everything => "everything".to_owned(),
            Visible::Only(globs) => globs.iter().map(Glob::as_str).collect::<Vec<_>>().join(" "),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn every_part_of_a_selector_must_hold_and_any_pattern_of_a_part() {
        let edge = [view(&["e-*", "f-*"], &["edge"], &[("zone", "a")], &["web"])];
        let all = json!({"zone": "a", "weight": 3.0, "canary": true});
        check(&edge, "f-1", "edge", &all, "web");
        check(&edge, "g-1", "edge", &all, "everything");
        check(&edge, "e-1", "inner", &all, "everything");
        check(&edge, "e-1", "edge", &json!({"zone": "b"}), "everything");
        check(&edge, "e-1", "edge", &Value::Null, "everything");
        check(&[view(&[], &[], &[("weight", "3"), ("canary", "true")], &["web"])], "x", "", &all, "web");
    }

    #[test]
    fn several_views_show_together_and_a_view_of_nothing_adds_nothing() {
        let (edge, rest) = (view(&["e-*"], &[], &[], &["web", "pay"]), view(&["*"], &[], &[], &[]));
        let also = view(&["e-1"], &[], &[], &["admin"]);
        let views = [edge, rest, also];
        check(&views, "e-1", "", &Value::Null, "admin pay web");
        check(&views, "e-2", "", &Value::Null, "pay web");
        check(&views, "other", "", &Value::Null, "");
        check(&[], "other", "", &Value::Null, "everything");
    }
}
