//! Bytes for `foldplane::testing::fuzz::cel_policy`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| foldplane::testing::fuzz::cel_policy(bytes));
