//! From bytes to a session: damaged files, any graph of links, made-up dialects, growth, the corpus.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod bad_input;
#[cfg(unix)]
mod companions;
mod corpus;
mod damage;
mod driver;
mod graph;
mod growth;
mod migration;
mod requests;
#[path = "../support/mod.rs"]
mod support;
