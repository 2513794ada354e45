//! Bytes to records: where a session is, how its files are opened, split into lines and repaired.

pub(crate) mod open;
pub(crate) mod segments;
pub(crate) mod source;
mod own_folders;
pub(crate) mod title_index;
pub(crate) mod files;
pub(crate) mod rows;
pub(crate) mod packed;
pub mod detect;
pub(crate) mod format;
pub mod folder;
pub(crate) mod parser;
pub(crate) mod parallel;
pub(crate) mod recover;
pub mod sanitize;
pub(crate) mod tail;
pub(crate) mod base;
pub(crate) mod checkpoint;
pub(crate) mod hashed;
pub(crate) mod kept;

pub use parser::VALUE_LIMIT_BYTES;
