//! Bytes for `targets::folder::open_data_dir`.

#![no_main]

#[path = "../targets/mod.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::folder::open_data_dir(bytes));
