//! Answers questions over all sessions of all agents: list and search, from an index that is only a cache.

pub mod query;
pub(crate) mod words;
