//! Any bytes as instructions that build a card.
#![no_main]

use a2a_card::fuzzing;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Err(broken) = fuzzing::mutated(data) {
        panic!("{broken}");
    }
});
