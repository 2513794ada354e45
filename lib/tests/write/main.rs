//! What changes a store.

mod fork;
mod recording;
mod rotate;
mod trash;
#[path = "../support/mod.rs"]
mod support;
