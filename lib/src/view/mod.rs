//! A session as people, models and programs see it: messages, model views, streams, lists and the structs that `--json` prints.

pub mod conversation;
pub mod page;
pub(crate) mod assemble;
pub mod history;
pub mod stream;
pub mod tool_calls;
pub mod listing;
pub mod find;
pub mod answers;
pub(crate) mod describe;
pub mod profile;
