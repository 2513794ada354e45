//! What people, models and programs see of a session.

mod aisdk;
mod find;
mod history;
mod model_page;
mod model_views;
mod oracle;
mod oracle_codex;
mod oracle_qwen;
mod stream;
mod tool_calls;
#[path = "../support/mod.rs"]
mod support;
