//! What each stream sees of the resources: one copy for all streams that see the same.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::events::ViewName;
use crate::projection::resources::{NodeLabels, NodeViews, Resources, Scope, Shown};
use crate::xds::node::Node;

/// Every scope that a stream has, with what it shows.
#[derive(Debug, Default)]
pub(super) struct Lenses(Mutex<BTreeMap<Scope, Weak<Lens>>>);

/// One scope, and what it shows of the newest resources.
#[derive(Debug)]
struct Lens {
    scope: Scope,
    shown: Mutex<Shown>,
}

impl Lenses {
    /// The lens of a scope, as others have it already. What nobody looks through any more is forgotten.
    fn of(&self, scope: Scope, whole: &Arc<Resources>) -> Arc<Lens> {
        let mut lenses = lock(&self.0);
        if let Some(known) = lenses.get(&scope).and_then(Weak::upgrade) {
            return known;
        }
        lenses.retain(|_, lens| lens.strong_count() > 0);
        let lens = Arc::new(Lens { shown: Mutex::new(scope.show(whole)), scope: scope.clone() });
        lenses.insert(scope, Arc::downgrade(&lens));
        lens
    }
}

impl Lens {
    /// What it shows of these resources, or of newer ones under the same views, which another stream has seen.
    fn look(&self, whole: &Arc<Resources>) -> Arc<Resources> {
        let mut shown = lock(&self.shown);
        let (known, wanted) = (shown.whole().views(), whole.views());
        if shown.whole().offset() <= whole.offset() && !Arc::ptr_eq(shown.whole(), whole) {
            *shown = self.scope.follow(&shown, whole);
        } else if known.changed() != wanted.changed() {
            // Somebody is ahead, under views that do not hold for this one yet.
            return Arc::clone(self.scope.show(whole).resources());
        }
        Arc::clone(shown.resources())
    }
}

/// What one stream sees. Which views are for it is worked out once, and again when the views change.
#[derive(Debug)]
pub(super) struct Sight {
    lenses: Arc<Lenses>,
    node: Node,
    resolved: Option<Resolved>,
}

#[derive(Debug)]
struct Resolved {
    views: Arc<NodeViews>,
    lens: Arc<Lens>,
}

impl Sight {
    /// That of a stream whose node is not known yet.
    pub(super) fn new(lenses: Arc<Lenses>) -> Self {
        Self { lenses, node: Node::default(), resolved: None }
    }

    /// It is known who looks.
    pub(super) fn set_node(&mut self, node: Node) {
        self.node = node;
        self.resolved = None;
    }

    /// What this stream sees of these resources; and the views that are for it, when that may be news.
    pub(super) fn look(&mut self, whole: &Arc<Resources>) -> (Arc<Resources>, Option<Vec<ViewName>>) {
        let views = whole.views();
        if let Some(Resolved { views: known, lens }) = &self.resolved
            && Arc::ptr_eq(known, views)
        {
            return (lens.look(whole), None);
        }
        let labels = self.labels();
        let lens = self.lenses.of(views.scope(labels), whole);
        let (shown, names) = (lens.look(whole), views.of(labels));
        self.resolved = Some(Resolved { views: Arc::clone(views), lens });
        (shown, Some(names))
    }

    fn labels(&self) -> NodeLabels<'_> {
        NodeLabels {
            id: self.node.id(),
            cluster: self.node.cluster(),
            metadata: self.node.metadata(),
            dials: self.node.dials(),
        }
    }
}

/// Whoever panicked left what is shown of some offset whole: it is replaced in one step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
