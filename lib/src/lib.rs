//! AI agents' session histories on disk: read any dialect, record crash-safe, branch, convert.
//!
//! To read: a [`Source`] opens as a [`Session`], whose branches a [`view::Conversation`] turns into [`Message`]s.
//! To record: a [`Store`] gives a [`Recorder`], and every call that returns is on disk.
//! To go on: [`History`] is what to send to a model next, in the words of its API ([`View`]).
//!
//! The modules are the rooms of the library, in the order in which they build on one another. The library prints nothing and
//! reads neither the environment nor the clock: it is handed a [`Home`] and a [`Host`].

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

pub use dialect::Dialect;
pub use model::error::{Error, Result};
pub use model::home::Home;
pub use model::host::Host;
pub use model::issue::{Issue, Severity};
pub use model::message::{Message, Part, Role, ToolPart, ToolState};
pub use model::record::{Body, Content, Kind, Outcome, RecordId, SessionId, Thinking, Title, Todo, ToolResult, Usage};
pub use session::read::open::ReadOptions;
pub use session::read::source::Source;
pub use session::{RecordRef, Session};
pub use view::history::{History, View};
pub use write::recorder::{Answer, Delta, Durability, Entry, Recorder};
pub use write::store::{Policy, Store};

#[doc(hidden)]
pub mod fuzzing;

/// The examples in Rust on docs/recording.md.
#[cfg(doctest)]
#[doc = include_str!("../../docs/recording.md")]
pub mod recording_page {}
