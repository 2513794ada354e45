//! Answers questions over all sessions of all agents: list and search, from an index that is only a cache.

pub mod query;
#[allow(dead_code, reason = "the index and the scan are its callers")]
pub(crate) mod words;
