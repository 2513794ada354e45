//! Qwen Code: one JSON object a line, a tree by `parentUuid`; records with one `uuid` are pieces of one message.
//!
//! Messages are the Gemini API's `Content`. The facts, documented and shipped: docs/dialects/qwen-code.md.

mod body;
mod content;
mod line;
mod record_class;
mod part;
mod run;
mod write;

use std::borrow::Cow;
use std::path::Path;

use serde_json::Value;

use super::{Dialect, Event, Key, RepeatedId, ResultOrder, SessionFacts, Traits};
use crate::dialect::layout::{Format, Layout};
use crate::dialect::record_class::TreeRecord;
use crate::dialect::writer::Writer;
use crate::model::home::Home;
use crate::model::lenient::Text;
use crate::model::record::{Body, Kind, TitleSource};
use line::{Line, Meta};

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

    fn layouts_in(&self, store: &Path) -> Vec<Layout> {
        let layout = |pattern| Layout {
            root: store.join("projects"),
            pattern,
            companions: &[],
            sidecar: Some("*.meta.json"),
            format: Format::Lines,
        };
        ["*/chats/*.jsonl", "*/chats/archive/*.jsonl", "*/subagents/*/agent-*.jsonl"].map(layout).into()
    }

    fn is_session_file(&self, path: &Path) -> bool {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        stem.starts_with("agent-") || is_session_name(&stem)
    }

    fn traits(&self) -> Traits {
        Traits {
            title_window_bytes: TITLE_WITHIN_BYTES,
            result_order: ResultOrder::FirstRecordThenMissing,
            ..Traits::new(RepeatedId::Join)
        }
    }

    fn link<'a>(&self, text: &'a str, emit: &mut dyn FnMut(Event<'a>)) -> Result<(), serde_json::Error> {
        let line: Line<'a> = serde_json::from_str(text)?;
        line.link(text, emit);
        Ok(())
    }

    fn sidecar<'a>(&self, text: &'a str, emit: &mut dyn FnMut(Event<'a>)) -> Result<(), serde_json::Error> {
        let meta: Meta<'a> = serde_json::from_str(text)?;
        let (parent_session, parent_call) = (meta.parent_session_id.some(), meta.tool_use_id.some());
        emit(Event::Facts(SessionFacts {
            parent_session,
            parent_call,
            model: meta.model.some(),
            ..SessionFacts::default()
        }));
        if let Some(text) = meta.description.some() {
            emit(Event::Title { text, source: TitleSource::Summary });
        }
        Ok(())
    }

    fn recognizes(&self, text: &str) -> bool {
        serde_json::from_str(text).is_ok_and(|line: Line<'_>| line.recognizes())
    }

    fn body(&self, text: &str) -> Body {
        body::of(text)
    }

    fn writer(&self) -> Option<&'static Writer> {
        Some(&write::WRITING)
    }

    fn gemini_contents(&self, text: &str) -> Option<Vec<Value>> {
        Some(content::of(text))
    }
}

/// The agent writes its title again every 32 KiB, and looks for it in a window of this size.
const TITLE_WITHIN_BYTES: u64 = 64 * 1024;

/// Whether the agent itself would take a file of this name for a session: 32 to 36 hexadecimal digits and dashes.
fn is_session_name(stem: &str) -> bool {
    (32..=36).contains(&stem.len()) && stem.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

impl<'a> Line<'a> {
    fn link(self, text: &'a str, emit: &mut dyn FnMut(Event<'a>)) {
        let (class, unknown) = self.record_class();
        let id = self.uuid.clone().some();
        let record = TreeRecord {
            text,
            id: id.clone(),
            parent: self.parent(),
            at: self.timestamp.clone(),
            is_sidechain: self.is_sidechain.0,
            has_type: self.name.0.is_some(),
        };
        if class.emit(record, unknown, emit) && self.has_odd_parent() {
            emit(Event::MissingField("parentUuid that can be read"));
        }
        if let Some(usage) = self.usage().filter(|_| class.kind == Kind::Assistant) {
            // A fork copies answers with their ids: so the same request is known again.
            emit(Event::Usage { request: id, usage, model: self.model.clone().some(), cost: None });
        }
        if let Some((text, source)) = self.title().filter(|_| class.kind == Kind::Title) {
            emit(Event::Title { text, source });
        }
        self.keys(class.kind, emit);
        self.about(emit);
    }

    fn parent(&self) -> Option<Cow<'a, str>> {
        serde_json::from_str::<Text<'a>>(self.parent_uuid?.get()).ok()?.some()
    }

    /// Its parent is neither an id nor nothing.
    fn has_odd_parent(&self) -> bool {
        self.parent_uuid.is_some_and(|told| !told.get().starts_with('"') && told.get() != "null")
    }

    fn title(&self) -> Option<(Cow<'a, str>, TitleSource)> {
        let payload = self.system_payload.0.as_ref()?;
        let source = match payload.title_source.0.as_deref() {
            Some("auto" | "automatic") => TitleSource::Automatic,
            // Older records do not tell; then a person may have typed it.
            _ => TitleSource::Manual,
        };
        payload.custom_title.clone().some().map(|text| (text, source))
    }

    fn keys(&self, kind: Kind, emit: &mut dyn FnMut(Event<'a>)) {
        let noted = self.noted_call();
        let mut answered = false;
        for part in self.parts() {
            if let Some(call) = part.function_call.0.as_ref().filter(|_| kind == Kind::Assistant) {
                call.call(None).into_iter().for_each(|call| emit(Event::Key(Key::Call(call))));
            }
            if let Some(response) = part.function_response.0.as_ref() {
                answered = true;
                response.call(noted.as_ref()).into_iter().for_each(|call| emit(Event::Key(Key::Result(call))));
            }
        }
        if let Some(call) = noted.filter(|_| kind == Kind::ToolResult && !answered) {
            emit(Event::Key(Key::Result(call)));
        }
    }

    fn about(self, emit: &mut dyn FnMut(Event<'a>)) {
        let told = self.session_id.some();
        // A sub-agent's file names its parent on every line, and is called after the agent.
        let (session, of_agent) = if self.agent_id.some().is_some() { (None, told) } else { (told, None) };
        let spawned_by = self.system_payload.0.and_then(|payload| payload.parent_session_id.some());
        emit(Event::Facts(SessionFacts {
            session,
            cwd: self.cwd.some(),
            git_branch: self.git_branch.some(),
            version: self.version.some(),
            model: self.model.some().filter(|_| self.name.0.as_deref() == Some("assistant")),
            parent_session: of_agent.or(spawned_by),
            parent_call: None,
            forked_from: self.forked_from.0.and_then(|origin| origin.session_id.some()),
        }));
    }

    /// The call that a note of a tool's run is about, where there is one note.
    fn noted_call(&self) -> Option<Cow<'a, str>> {
        let notes = self.tool_call_result.0.iter().chain(&self.tool_calls_metadata.0);
        let mut calls = notes.filter_map(|note| note.call());
        calls.next().filter(|_| calls.next().is_none())
    }
}

impl<'a> line::Function<'a> {
    /// What the call is called. The API may leave out ids: then the note beside it tells, else the tool's name pairs them.
    fn call(&self, noted: Option<&Cow<'a, str>>) -> Option<Cow<'a, str>> {
        self.id.clone().some().or_else(|| noted.cloned()).or_else(|| self.name.clone().some())
    }
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
