//! What each agent's files say, and what we write for it.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod ai_sdk;
mod claude_code;
mod codex;
mod file_states;
mod fluux;
mod native_format;
mod qwen_code;
mod sage_el;
mod write_ai_sdk;
mod write_claude_code;
mod write_codex;
mod write_fluux;
mod write_native;
mod write_qwen_code;
mod write_sage_el;
#[path = "../support/mod.rs"]
mod support;
