//! What changes a store.

mod file_history;
mod fork;
mod recording;
mod rotate;
mod trash;
#[path = "../support/mod.rs"]
mod support;
