//! Any bytes as one line of any dialect.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| scrollback::fuzzing::line(bytes));
