//! What people, models and programs see of a session.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod aisdk;
mod find;
mod history;
mod model_page;
mod model_views;
mod oracle;
mod oracle_codex;
mod oracle_qwen;
mod replay;
mod scale;
mod stream;
mod tool_calls;
mod turns;
#[path = "../support/mod.rs"]
mod support;
