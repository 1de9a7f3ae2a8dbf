//! Bytes for `foldplane::testing::fuzz::import_jsonl`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| foldplane::testing::fuzz::import_jsonl(bytes));
