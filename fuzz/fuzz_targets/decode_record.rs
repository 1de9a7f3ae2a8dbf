//! Bytes for `foldplane::testing::fuzz::decode_record`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| foldplane::testing::fuzz::decode_record(bytes));
