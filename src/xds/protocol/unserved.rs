//! Types that are not served: their clients get an empty answer instead of a long wait (xds-rules 13).

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use super::request::Names;
use super::response::{RESPONSE_BYTES_MAX, name_bytes};
use crate::projection::resources::ResourceName;

/// How many types that are not served a stream may ask for. Envoy knows about a dozen types.
const TYPES_MAX: usize = 32;

/// How many answers may wait. More are dropped: nobody depends on them.
const ANSWERS_MAX: usize = 32;

/// The longest type URL that is looked at.
const URL_BYTES_MAX: usize = 255;

#[derive(Clone, Debug, Default)]
pub(super) struct Unserved {
    urls: BTreeSet<Arc<str>>,
    answers: VecDeque<Answer>,
}

#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) url: Arc<str>,
    pub(super) removed: Vec<ResourceName>,
}

impl Unserved {
    /// Takes in a message about a type that is not served. Gives its URL when it is the first.
    pub(super) fn ask(&mut self, url: &str, names: &Names) -> Option<Arc<str>> {
        let known = self.urls.get(url).cloned();
        let first = known.is_none().then(|| Arc::from(url));
        let url = known.or_else(|| first.clone())?;
        let removed = match names {
            Names::Whole(_) => Vec::new(),
            Names::Edit(edit) => removed(&edit.subscribe),
        };
        let due = first.is_some() || !removed.is_empty();
        if due && self.urls.len() < TYPES_MAX && self.answers.len() < ANSWERS_MAX {
            self.urls.insert(Arc::clone(&url));
            self.answers.push_back(Answer { url, removed });
        }
        first
    }

    pub(super) fn pop(&mut self) -> Option<Answer> {
        self.answers.pop_front()
    }
}

fn removed(names: &[String]) -> Vec<ResourceName> {
    let mut bytes = 0;
    let names = names.iter().map(|name| ResourceName::new(name));
    names
        .take_while(|name| {
            bytes += name_bytes(name);
            bytes <= RESPONSE_BYTES_MAX
        })
        .collect()
}

/// Whether this is the URL of a type at all: `host/full.name`.
pub(super) fn is_well_formed(url: &str) -> bool {
    let part = |text: &str| {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        !text.is_empty() && text.chars().all(allowed)
    };
    url.len() <= URL_BYTES_MAX && url.split_once('/').is_some_and(|(host, name)| part(host) && part(name))
}
