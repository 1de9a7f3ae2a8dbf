//! Views: which nodes see which services.

use super::{Event, Rejection, State, check, unless};
use crate::events::ViewName;
use crate::events::view::NodeView;

/// How many views there may be: each is matched against every node that connects.
const VIEWS_MAX: usize = 1024;

/// How many patterns a part of a view may have: each is matched against every resource that changes.
const GLOBS_MAX: usize = 256;

pub(super) fn set(state: &State, name: &ViewName, view: &NodeView) -> Result<Vec<Event>, Rejection> {
    check_view(view)?;
    let known = state.views().get(name);
    if known.is_none() && state.views().len() >= VIEWS_MAX {
        return Err(Rejection::invalid(
            format!("there are {VIEWS_MAX} views already"),
            "let one view serve several groups of nodes: it takes several patterns",
        ));
    }
    let already = known.is_some_and(|known| **known == *view);
    Ok(unless(already, || Event::NodeViewSet { name: name.clone(), view: view.clone() }))
}

pub(super) fn remove(state: &State, name: &ViewName) -> Vec<Event> {
    unless(!state.views().contains_key(name), || Event::NodeViewRemoved { name: name.clone() })
}

fn check_view(view: &NodeView) -> Result<(), Rejection> {
    if view.nodes.is_empty() {
        return Err(Rejection::invalid(
            "the view does not say for which nodes it is",
            "give patterns of ids or clusters, or metadata; the id `*` is every node",
        ));
    }
    for (part, globs) in
        [("ids", &view.nodes.ids), ("clusters", &view.nodes.clusters), ("services", &view.services)]
    {
        if globs.len() > GLOBS_MAX {
            return Err(Rejection::invalid(
                format!("{part} has {} patterns, at most {GLOBS_MAX} are allowed", globs.len()),
                "use wider patterns, or several views",
            ));
        }
    }
    check::metadata(&view.nodes.metadata)
}
