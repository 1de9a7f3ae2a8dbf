//! What needs files or a runtime to be fed with bytes; the rest is in `foldplane::testing::fuzz`. The tests replay its corpora.
#![allow(dead_code, unreachable_pub, reason = "each fuzzer, and each test binary, uses some of them")]

pub mod doors;
pub mod folder;
