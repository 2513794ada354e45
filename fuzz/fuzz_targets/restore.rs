//! Any bytes as what a log says about files.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| scrollback::fuzzing::restore(bytes));
