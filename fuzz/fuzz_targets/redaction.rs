//! Any bytes as a text and as a line to redact.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| scrollback::fuzzing::redaction(bytes));
