//! Bytes for `foldplane::testing::fuzz::upcast`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| foldplane::testing::fuzz::upcast(bytes));
