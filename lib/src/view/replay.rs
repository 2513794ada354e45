//! A session played again: for a person, frame by frame, and for an agent, as the model that answered it.
//!
//! ```text
//! frames   branch ─▶ Frame (a message as it was, and the pause before it) ─▶ terminal
//! script   request ─▶ items ─▶ the answer before which the session has the same items ─▶ that answer again
//! ```

mod frames;
mod items;
mod script;

pub use frames::{Frame, LONGEST_PAUSE, UNKNOWN_PAUSE, frames, pause};
pub use items::{Difference, Item, ItemKind};
pub use script::{AnswerId, Comparison, Outcome, RecordedAnswer, Script};
