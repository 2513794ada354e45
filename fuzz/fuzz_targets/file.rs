//! Any bytes as a whole session file of any dialect.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| scrollback::fuzzing::file(bytes));
