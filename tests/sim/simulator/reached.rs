//! What a run came by: a property over nothing proves nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;

/// How often each thing happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reached(BTreeMap<&'static str, u64>);

impl Reached {
    pub(crate) fn note(&mut self, what: &'static str) {
        self.add(what, 1);
    }

    pub(crate) fn add(&mut self, what: &'static str, times: u64) {
        *self.0.entry(what).or_default() += times;
    }

    pub(crate) fn times(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or_default()
    }
}

impl AddAssign<&Reached> for Reached {
    fn add_assign(&mut self, other: &Self) {
        other.0.iter().for_each(|(what, times)| self.add(what, *times));
    }
}

impl fmt::Display for Reached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(what, times)| writeln!(f, "{times:>12}  {what}"))
    }
}
