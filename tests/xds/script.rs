//! Scenarios (`foldplane::testing::scenario`) with what must come of them.

use expect_test::Expect;
use foldplane::testing::scenario::play;
use foldplane::xds::protocol::{Served, Variant};

#[track_caller]
pub(crate) fn sotw(script: &str, expected: Expect) {
    check(Variant::Sotw, Served::All, script, expected);
}

#[track_caller]
pub(crate) fn delta(script: &str, expected: Expect) {
    check(Variant::Delta, Served::All, script, expected);
}

#[track_caller]
pub(crate) fn check(variant: Variant, served: Served, script: &str, expected: Expect) {
    expected.assert_eq(&play(variant, served, script).unwrap_or_else(|error| panic!("{error}")));
}
