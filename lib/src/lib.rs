//! AI agents' session histories on disk: any dialect, read whole, live or from the end.
//!
//! In the order in which to read the modules: what a record and a message are, what a dialect says, how a session is read,
//! and what can be asked of it. The library prints nothing and reads neither the environment nor the clock.

// Bodies for properties are written once, for the tests in this crate and for those beside it.
#[cfg(test)]
extern crate self as scrollback;

pub mod issue;
pub mod message;
pub mod record;

pub mod dialect;
pub mod writing;
pub mod home;
pub mod layout;
mod lenient;
mod nature;
mod chain;

mod format;
pub mod detect;
pub mod error;
pub mod project;
mod rows;
pub mod packed;
pub mod source;
mod open;
pub mod folder;

pub mod session;
mod pieces;
mod record_ref;
mod request;
pub mod reading;
mod tail;
mod base;
mod intake;
mod recover;
mod mend;
mod skeleton;
mod facts;
mod ids;
mod time;
mod derived;
mod tree;
mod fold;
mod gaps;
mod branch;
mod keys;
mod join;

pub mod conversation;
mod assemble;
mod closed;
mod divider;
pub mod history;
pub mod stream;
pub mod tool_calls;

pub mod host;
mod git;
mod disk;
mod append;
mod replace;
mod sidecar;
mod redact;
pub mod thinking;
pub mod recorder;
pub mod store;
pub mod archive;
pub mod dictation;
pub mod fork;
pub mod convert;
pub mod import;
mod in_use;
mod inside;
pub mod trash;

pub mod profile;
pub mod listing;
pub mod query;
mod view;

#[doc(hidden)]
pub mod fuzzing;

/// The examples in Rust on docs/recording.md.
#[cfg(doctest)]
#[doc = include_str!("../../docs/recording.md")]
pub mod recording_page {}
