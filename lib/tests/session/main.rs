//! From bytes to a session: damaged files, any graph of links, made-up dialects, growth, the corpus.

mod bad_input;
mod corpus;
mod damage;
mod driver;
mod graph;
mod growth;
mod migration;
mod requests;
#[path = "../support/mod.rs"]
mod support;
