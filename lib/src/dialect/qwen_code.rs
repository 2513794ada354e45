//! Qwen Code: one JSON object per line, a tree by `parentUuid`; records with one `uuid` are fragments of one message.
//!
//! Messages are the Gemini API's `Content`. The facts, documented and shipped: docs/dialects/qwen-code.md.

mod body;
mod gemini;
mod history_item;
mod line;
mod part;
mod record_class;
mod tool_run;
mod write;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::{Dialect, Event, RepeatedId, ResultOrder, ResumeCommand, SessionFacts, Traits};
use crate::dialect::file_backups;
use crate::dialect::layout::Layout;
use crate::dialect::writer::Writer;
use crate::model::home::Home;
use crate::model::json;
use crate::model::lenient::RawObject;
use crate::model::record::{Body, TitleSource};
use line::Line;

/// How `write_file` and `edit` begin their answer if the file did not exist.
const NEW_FILE: [&str; 2] = ["Successfully created and wrote to new file: ", "Created new file: "];

/// The Qwen Code dialect.
pub struct QwenCode;

impl Dialect for QwenCode {
    fn name(&self) -> &'static str {
        "qwen-code"
    }

    fn layouts(&self, home: &Home) -> Vec<Layout> {
        let is_set = |name: &str| home.vars.get(name).is_some_and(|value| !value.is_empty());
        let variable = if is_set("QWEN_RUNTIME_DIR") { "QWEN_RUNTIME_DIR" } else { "QWEN_HOME" };
        self.layouts_in(&home.var_or(variable, ".qwen"))
    }

    fn store_variable(&self) -> Option<&'static str> {
        Some("QWEN_HOME")
    }

    fn layouts_in(&self, store: &Path) -> Vec<Layout> {
        ["*/chats/*.jsonl", "*/chats/archive/*.jsonl", "*/subagents/*/agent-*.jsonl"]
            .map(|pattern| Layout { sidecar: Some("*.meta.json"), ..Layout::lines(store.join("projects"), pattern) })
            .into()
    }

    fn file_history(&self, store: &Path, log: &Path) -> Option<PathBuf> {
        file_backups::folder(store, log)
    }

    fn file_note(&self, text: &str) -> Option<Map<String, Value>> {
        // It notes an empty content before for a new file, too; only what its tools answer tells them apart.
        let line: Value = json::from_str(text).ok().filter(|_| NEW_FILE.iter().any(|says| text.contains(says)))?;
        let parts = line.pointer("/message/parts")?.as_array()?.iter();
        let mut answers = parts.filter_map(|part| part.pointer("/functionResponse/response/output")?.as_str());
        let is_new = answers.any(|answer| NEW_FILE.iter().any(|says| answer.starts_with(says)));
        is_new.then(|| Map::from_iter([("isNewFile".to_owned(), Value::Bool(true))]))
    }

    fn traits(&self) -> Traits {
        Traits {
            title_mark: Some("custom_title"),
            appends_only: true,
            result_order: ResultOrder::FirstRecordThenMissing,
            ..Traits::new(RepeatedId::Join)
        }
    }

    fn link<'a>(&self, text: &'a str, emit: &mut dyn FnMut(Event<'a>)) -> Result<(), serde_json::Error> {
        let line: Line<'a> = json::from_str(text)?;
        line.link(text, emit);
        Ok(())
    }

    fn body(&self, text: &str) -> Body {
        body::parse(text)
    }

    fn is_typed(&self, text: &str) -> bool {
        json::from_str::<Line<'_>>(text).is_ok_and(|line| line.is_typed())
    }

    fn writer(&self) -> Option<&'static Writer> {
        Some(&write::WRITER)
    }

    fn resume_command(&self) -> Option<ResumeCommand> {
        Some(ResumeCommand {
            agent: "Qwen Code",
            program: "qwen",
            arguments: &["--resume"],
            store_variables: &["QWEN_RUNTIME_DIR", "QWEN_HOME"],
        })
    }

    fn sidecar<'a>(&self, text: &'a str, emit: &mut dyn FnMut(Event<'a>)) -> Result<(), serde_json::Error> {
        // `agent-<id>.meta.json`, beside a sub-agent's file.
        let meta: RawObject<'a> = json::from_str(text)?;
        emit(Event::Facts(SessionFacts {
            parent_session: meta.text("parentSessionId"),
            parent_call: meta.text("toolUseId"),
            model: meta.text("model"),
            ..SessionFacts::default()
        }));
        if let Some(text) = meta.text("description") {
            emit(Event::Title { text, source: TitleSource::Summary });
        }
        Ok(())
    }

    fn recognizes(&self, text: &str) -> bool {
        json::from_str(text).is_ok_and(|line: Line<'_>| line.is_recognized())
    }

    fn is_session_file(&self, path: &Path) -> bool {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        stem.starts_with("agent-") || is_session_name(&stem)
    }

    fn gemini_contents(&self, text: &str) -> Option<Vec<Value>> {
        Some(gemini::contents(text))
    }
}

/// Whether the agent itself takes a file of this name for a session: 32 to 36 hexadecimal digits and dashes.
fn is_session_name(stem: &str) -> bool {
    (32..=36).contains(&stem.len()) && stem.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_named_as_the_agent_names_it() {
        for (name, is_session) in [
            ("8956e7be-69fc-47a5-a8c6-c9bc59497ad1", true),
            ("8956E7BE69FC47A5A8C6C9BC59497AD1", true),
            ("8956e7be-69fc-47a5-a8c6-c9bc59497ad1.worktree", false),
            ("8956e7be", false),
            ("notes", false),
            ("../../../../../../../../etc/passwd-00", false),
        ] {
            assert_eq!(is_session_name(name), is_session, "{name}");
        }
    }
}
