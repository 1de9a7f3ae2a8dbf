//! Bytes for `foldplane::testing::fuzz::ads_stream`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| foldplane::testing::fuzz::ads_stream(bytes));
