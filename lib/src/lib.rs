//! AI agents' session histories on disk: any dialect, read whole, live or from the end.
//!
//! In the order in which to read the modules: what a record and a message are, what a dialect says, how a session is read,
//! and what can be asked of it. The library prints nothing and reads neither the environment nor the clock.

// Bodies for properties are written once, for the tests in this crate and for those beside it.
#[cfg(test)]
extern crate self as scrollback;

pub mod model;
pub mod redact;
pub mod dialect;
pub mod session;
pub mod view;
pub(crate) mod disk;
pub mod write;
pub mod transfer;

#[doc(hidden)]
pub mod fuzzing;

/// The examples in Rust on docs/recording.md.
#[cfg(doctest)]
#[doc = include_str!("../../docs/recording.md")]
pub mod recording_page {}
