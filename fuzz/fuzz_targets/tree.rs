//! Any bytes as a graph of records: parents, repeats, cycles and gaps.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| scrollback::fuzzing::tree(bytes));
