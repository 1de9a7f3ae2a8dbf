//! Bytes for `targets::doors::rest_body`.

#![no_main]

#[path = "../targets/mod.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::doors::rest_body(bytes));
