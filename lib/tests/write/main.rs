//! What changes a store.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod file_history;
mod fork;
mod recording;
mod rotate;
mod snapshots;
mod trash;
mod undo;
#[path = "../support/mod.rs"]
mod support;
