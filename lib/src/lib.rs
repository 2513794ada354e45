//! The session histories of AI agents on disk: read any agent's, record your own so that no crash loses it, branch, convert.
//!
//! ```
//! use scrollback::{Conversation, Store, View};
//! use serde_json::json;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let root = folder.path();
//! let store = Store::native(root)?; // record
//! let mut session = store.create("/home/ada/tides")?;
//! session.user("When is high water?")?;
//! let mut answer = session.answer("model-1")?;
//! answer.text("Let me look.")?;
//! let call = answer.tool_call("read_file", json!({"path": "tides.txt"}))?;
//! answer.finish(None)?;
//! session.tool_result(&call, Ok(json!("04:12")))?;
//! let messages = session.history(View::Anthropic)?; // what to send next
//! session.assistant("At 04:12.")?;
//! session.close()?;
//!
//! for row in store.list(None).rows { // read
//!     let session = store.load(row.id.as_str())?;
//!     let branch = session.branch(session.head().ok_or("it is empty")?);
//!     let conversation = Conversation::new(&branch);
//!     for message in conversation.messages(0..conversation.len()) {
//!         println!("{}", json!(message?));
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A *session* is a tree of *records*, each with its parent; a *branch* is the path from a root to a *head*. People see a branch
//! as *messages*, a model as a [`History`]. A *dialect* is the format of one agent; [`dialect::all`] lists them. A *turn* is a
//! prompt with everything up to the next one; a *compaction* is a summary that replaces earlier turns for the model.
//!
//! [`Recorder`] says what is on disk when, and what to do when a call fails. The library prints nothing and reads neither the
//! environment nor the clock by itself: it is given a [`Home`] and a [`Host`]; [`Host::system`] is this machine.

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

#[doc(inline)]
pub use dialect::Dialect;
#[doc(inline)]
pub use model::{
    Body, Content, Error, Home, Host, Issue, Kind, Message, Outcome, Part, RecordId, Result, Role, SessionId, Severity,
    Thinking, Title, Todo, ToolPart, ToolResult, ToolState, Usage, project,
};
#[doc(inline)]
pub use session::{ReadOptions, RecordRef, Session, Source};
#[doc(inline)]
pub use view::{
    Conversation, SessionRow,
    history::{History, View},
};
#[doc(inline)]
pub use write::{Answer, Delta, Durability, Entry, NewSession, Options, Policy, Recorder, Saved, Store, Warning};

#[doc(hidden)]
pub mod fuzzing;

/// The examples in Rust on docs/recording.md.
#[cfg(doctest)]
#[doc = include_str!("../../docs/recording.md")]
pub mod recording_page {}
