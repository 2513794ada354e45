//! A session as people, models and programs see it: messages, model views, streams, lists and the structs that `--json` prints.

pub(crate) mod conversation;
pub(crate) mod page;
pub(crate) mod assemble;
pub mod history;
pub mod stream;
pub mod replay;
pub mod tool_calls;
pub(crate) mod turns;
pub mod counting;
pub mod tool_view;
pub mod dividers;
pub mod reactions;
pub mod surroundings;
pub mod todo_course;
pub mod texts;
pub mod listing;
pub mod origins;
pub mod find;
pub(crate) mod answers;
pub(crate) mod describe;
pub mod files;
pub(crate) mod issues;
pub mod profile;
pub mod secrets;

pub use answers::{
    BranchRow, CallRow, Examination, GapRow, HeadRow, ResultRow, SessionPage, SessionRow, TreeRow, TreeView,
};
pub use conversation::Conversation;
pub use page::Page;
pub use turns::{TurnEnd, TurnKind, TurnRow, Turns};
