//! The `scrollback` binary.
fn main() {}
