//! Answers questions over all sessions of all agents: list and search, from an index that is only a cache.

#[allow(dead_code, unused_imports, reason = "the index and the scan call the rest")]
pub mod query;
#[allow(dead_code, reason = "the index and the scan call it")]
pub(crate) mod snippet;
#[allow(dead_code, reason = "the index and the scan call it")]
pub(crate) mod words;

pub use snippet::Piece;
