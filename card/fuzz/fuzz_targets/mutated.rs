//! Any bytes as instructions that build a card.
#![no_main]

// A target runs one of the functions.
#[allow(dead_code)]
#[path = "../../tests/any_bytes/mod.rs"]
mod any_bytes;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Err(broken) = any_bytes::mutated(data) {
        panic!("{broken}");
    }
});
