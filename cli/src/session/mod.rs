//! From arguments to a session: which sessions are in scope, which one is named, reading it, and writing to it.

pub(crate) mod archive;
pub(crate) mod keeping;
pub(crate) mod located;
pub(crate) mod name;
pub(crate) mod resume;
pub(crate) mod scope;
pub(crate) mod warnings;
pub(crate) mod writable;
