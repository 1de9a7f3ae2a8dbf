//! What of the resources a group of nodes sees, kept in step with the whole.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::builders::COLLECTIONS;
use super::{Change, Dials, ResourceName, ResourceSet, Resources, TypeUrl};
use crate::events::{Glob, Offset};

/// What is seen of the resources.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scope {
    /// Which of them there are.
    pub visible: Visible,
    /// To what those can connect who see them.
    pub dials: Dials,
}

/// Which resources there are.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Visible {
    /// All of them.
    #[default]
    Everything,
    /// Those whose name, or whose service's name, is like one of these. No other exists.
    Only(BTreeSet<Glob>),
}

/// The resources at one offset, and what a [`Scope`] shows of them. Cheap to clone.
///
/// The resources themselves are those of the whole, bytes and versions, or those that it has for clients that dial IP
/// addresses only; which of them there are differs. A type's version is that of what is shown.
#[derive(Clone, Debug)]
pub struct Shown {
    whole: Arc<Resources>,
    resources: Arc<Resources>,
}

impl Scope {
    /// What it shows. Costs as much as there is; [`Scope::follow`] costs what changed.
    #[must_use]
    pub fn show(&self, whole: &Arc<Resources>) -> Shown {
        let nothing = Arc::default();
        self.follow(&Shown { whole: Arc::clone(&nothing), resources: nothing }, whole)
    }

    /// What it shows of later resources. The same scope must have shown `earlier`.
    #[must_use]
    pub fn follow(&self, earlier: &Shown, whole: &Arc<Resources>) -> Shown {
        let views_changed = whole.views().changed();
        let (was, is) = (earlier.whole.dialled(self.dials), whole.dialled(self.dials));
        if self.visible == Visible::Everything && views_changed == Offset::ZERO {
            return Shown { whole: Arc::clone(whole), resources: is };
        }
        let mut next = match self.visible {
            Visible::Everything => is.builder(is.offset()),
            Visible::Only(_) => earlier.resources.builder(is.offset()),
        };
        for type_url in TypeUrl::ALL {
            let (before, now, shown) = (was.of(type_url), is.of(type_url), next.of(type_url));
            if let Visible::Only(globs) = &self.visible {
                follow(globs, (before, now), shown);
                shown.depart_as(now);
            }
            // A stream never goes back, whichever scope it had before (xds-rules 19).
            shown.changed_at(now.version().offset.max(views_changed));
        }
        next.vary_as(&is);
        Shown { whole: Arc::clone(whole), resources: Arc::new(next.build()) }
    }
}

fn follow(globs: &BTreeSet<Glob>, (before, now): (&ResourceSet, &ResourceSet), shown: &mut ResourceSet) {
    for change in now.changes_since(before) {
        match change {
            Change::Upsert(resource) if shows(globs, &resource.name) => shown.put(resource),
            Change::Upsert(_) => {}
            Change::Removed(name) => shown.remove(&name, now.version().offset),
        }
    }
}

/// A resource belongs to the service before the first colon of its name: `web:admin` is a port of `web`. An endpoint by
/// itself belongs to the cluster that its name begins with.
fn shows(globs: &BTreeSet<Glob>, name: &ResourceName) -> bool {
    let name = name.as_str();
    let name = name.strip_prefix(COLLECTIONS).and_then(|rest| rest.split('/').next()).unwrap_or(name);
    let service = name.split(':').next().unwrap_or(name);
    globs.iter().any(|glob| glob.matches(name) || glob.matches(service))
}

impl Shown {
    /// The resources that it is made from.
    #[must_use]
    pub const fn whole(&self) -> &Arc<Resources> {
        &self.whole
    }

    /// What is seen of them.
    #[must_use]
    pub const fn resources(&self) -> &Arc<Resources> {
        &self.resources
    }
}

#[cfg(test)]
mod tests {
    use super::super::Resource;
    use super::*;

    fn change(whole: &Arc<Resources>, put: &[&str], take: &[&str]) -> Arc<Resources> {
        let offset = whole.offset().next();
        let mut next = whole.builder(offset);
        for name in put {
            let bytes = offset.get().to_be_bytes();
            next.of(TypeUrl::Cluster).insert(Resource::new(TypeUrl::Cluster, (*name).into(), offset, &bytes));
        }
        take.iter().for_each(|name| next.take(TypeUrl::Cluster, name));
        Arc::new(next.build())
    }

    #[test]
    fn following_step_by_step_shows_the_same_as_looking_once() {
        let visible = Visible::Only(["web".parse().unwrap(), "pay-*".parse().unwrap()].into());
        let scope = Scope { visible, dials: Dials::Everything };
        let names = |shown: &Shown| {
            let set = shown.resources().of(TypeUrl::Cluster);
            (set.iter().map(|found| found.name.to_string()).collect::<Vec<_>>().join(" "), set.version())
        };
        let mut whole = Arc::new(Resources::default());
        let mut shown = scope.show(&whole);
        let steps: [(&[&str], &[&str], &str); 4] = [
            (&["web", "web:admin", "webs", "pay"], &[], "web web:admin"),
            (&["pay-1", "other"], &["web:admin"], "pay-1 web"),
            (&["web"], &["other"], "pay-1 web"),
            (&[], &["web", "pay-1"], ""),
        ];
        for (put, take, expected) in steps {
            whole = change(&whole, put, take);
            shown = scope.follow(&shown, &whole);
            assert_eq!(names(&shown).0, expected);
            assert_eq!(names(&shown), names(&scope.show(&whole)));
            for resource in shown.resources().of(TypeUrl::Cluster).iter() {
                assert!(Arc::ptr_eq(
                    resource,
                    whole.of(TypeUrl::Cluster).get(resource.name.as_str()).unwrap()
                ));
            }
        }
        assert_eq!(Scope::default().show(&whole).resources().offset(), Offset::new(4));
    }
}
