//! What a Qwen Code record says.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::line::Line;
use super::part;
use super::tool_run::{self, ToolRun};
use crate::dialect::file_backups;
use crate::dialect::line_builder::fields;
use crate::model::lenient::{self, Count, Flag, List, Object, Text};
use crate::model::message::Part;
use crate::model::record::{
    Body, Compaction, Content, ContentItem, Context, Kind, Rewind, Snapshot, Title, TitleSource, ToolResult,
};

pub(super) fn parse(text: &str) -> Body {
    let (Ok(line), Ok(fields)) = (serde_json::from_str(text), serde_json::from_str::<BodyFields<'_>>(text)) else {
        return Body::Other(text.into());
    };
    let line: Line<'_> = line;
    match line.record_class().kind {
        Kind::ToolResult => Body::ToolResult(fields.tool_result(&line)),
        Kind::Attachment => {
            let to_model = line.name.0.as_deref() == Some("user");
            Body::Attachment(Content { to_model, ..fields.content(&line) })
        }
        Kind::Compaction => Body::Compaction(fields.payload().compaction()),
        Kind::Rewind => {
            let items = fields.payload().truncated_count.0;
            Body::Rewind(items.map(|items| Rewind::from_count(items, "item")).unwrap_or_default())
        }
        Kind::Snapshot => Body::Snapshot(fields.payload().snapshot()),
        Kind::Title => {
            let (text, source) = line.title().unwrap_or(("".into(), TitleSource::Id));
            Body::Title(Title { text: text.into_owned(), source })
        }
        kind => Body::from_content_or_json(kind, || fields.content(&line), text),
    }
}

/// The sender of a text that was transcribed from speech.
const VOICE_SENDER: &str = "you, aloud";

/// The fields that a body needs in addition to the link's.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
struct BodyFields<'a> {
    message: Option<&'a RawValue>,
    tool_call_result: Option<&'a RawValue>,
    tool_calls_metadata: Option<&'a RawValue>,
    system_payload: Object<Payload<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct GeminiContent<'a> {
    role: Text<'a>,
    parts: Option<&'a RawValue>,
}

/// `systemPayload`: each subtype has fields of its own.
#[derive(Deserialize, Default, Clone)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
struct Payload<'a> {
    // In a compaction.
    info: Object<CompressionInfo<'a>>,
    compressed_history: Option<&'a RawValue>,
    truncated_count: Count,
    snapshots: Option<&'a RawValue>,
    /// In context that the agent added: what people see of it.
    display_text: Text<'a>,
    // In commands.
    phase: Text<'a>,
    raw_command: Text<'a>,
    hidden_invocation: Flag,
    output_history_items: List<HistoryItem<'a>>,
    message: Text<'a>,
    /// In a turn that failed: a text, or an object with a `message`.
    error: Option<&'a RawValue>,
}

/// An output of a command.
#[derive(Deserialize, Clone, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct HistoryItem<'a> {
    text: Text<'a>,
}

#[derive(Deserialize, Clone, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
struct CompressionInfo<'a> {
    original_token_count: Count,
    new_token_count: Count,
    trigger_reason: Text<'a>,
}

impl<'a> BodyFields<'a> {
    fn payload(&self) -> Payload<'a> {
        self.system_payload.0.clone().unwrap_or_default()
    }

    fn content(&self, line: &Line<'_>) -> Content {
        let class = line.record_class();
        let mut content = Content {
            parts: line.thoughts.map(thoughts).unwrap_or_default(),
            model: line.model.clone().owned(),
            usage: line.usage().filter(|_| class.kind == Kind::Assistant),
            context: line.context(),
            // A voice is no part of the conversation with the model, and a person's all the same.
            sender: (line.subtype.0.as_deref() == Some("realtime_message")).then(|| VOICE_SENDER.to_owned()),
            error: class.is_failure.then(|| line.subtype.clone().owned()).flatten(),
            notes: self.runs().into_iter().filter_map(ToolRun::into_note).collect(),
            ..Content::default()
        };
        content.extend(self.items(line));
        if content.parts.is_empty() && content.results.is_empty() {
            content.parts = self.payload().shown_text().into_iter().map(Part::text).collect();
        }
        content
    }

    /// Results of tools: the responses, the files beside them, and how the runs ended according to the agent's notes.
    fn tool_result(&self, line: &Line<'_>) -> Content {
        let mut content = Content { context: line.context(), ..Content::default() };
        for item in self.items(line) {
            match (item, content.results.last_mut()) {
                // An image that a tool read follows the tool's own response.
                (ContentItem::Part(file @ Part::File(_)), Some(result)) => part::add_file(result, file),
                (item, _) => content.extend([item]),
            }
        }
        let runs = self.runs();
        if content.results.is_empty() {
            content.results = noted_results(&mut content.parts, &runs);
        }
        for result in &mut content.results {
            if let Some(run) = runs.iter().find(|run| run.call_id.as_deref() == Some(result.call_id.as_str())) {
                run.settle(result);
            }
        }
        Content { notes: runs.into_iter().filter_map(ToolRun::into_note).collect(), ..content }
    }

    /// The items of the message: a `Content` of the API, or only its parts.
    fn items(&self, line: &Line<'_>) -> Vec<ContentItem> {
        let Some(message) = self.message else { return Vec::new() };
        let parts = match serde_json::from_str::<GeminiContent<'_>>(message.get()) {
            Ok(content) => content.parts,
            Err(_) => Some(message),
        };
        let noted_call = line.noted_call();
        parts.map(|parts| part::items(parts, noted_call.as_deref()).collect()).unwrap_or_default()
    }

    fn runs(&self) -> Vec<ToolRun> {
        tool_run::all(self.tool_call_result, self.tool_calls_metadata)
    }
}

impl Line<'_> {
    fn context(&self) -> Context {
        let (cwd, git_branch) = (self.cwd.clone().owned(), self.git_branch.clone().owned());
        Context { cwd, git_branch, ..Context::default() }
    }
}

/// Results of a record without responses: those in its notes, else its text is the result of the only noted run.
fn noted_results(parts: &mut Vec<Part>, runs: &[ToolRun]) -> Vec<ToolResult> {
    let noted: Vec<ToolResult> = runs.iter().filter_map(ToolRun::result).collect();
    match (runs, parts.as_slice()) {
        ([run], [Part::Text(output)]) if noted.is_empty() && run.call_id.is_some() => {
            let result = run.result_with(output.text.clone().into());
            parts.clear();
            vec![result]
        }
        _ => noted,
    }
}

/// Thoughts beside the message: texts, or objects with a subject and a description.
fn thoughts(raw: &RawValue) -> Vec<Part> {
    let thoughts = match lenient::value(raw) {
        Value::Array(thoughts) => thoughts,
        Value::Null => Vec::new(),
        single => vec![single],
    };
    let text = |thought: &Value| {
        let texts = ["subject", "description", "text"].iter().filter_map(|key| thought.get(*key)?.as_str());
        let texts: Vec<&str> = texts.filter(|text| !text.is_empty()).collect();
        if texts.is_empty() { lenient::to_text(thought) } else { texts.join("\n\n") }
    };
    thoughts.iter().map(|thought| Part::reasoning(text(thought))).collect()
}

impl GeminiContent<'_> {
    fn content(&self) -> Content {
        self.parts.into_iter().flat_map(|parts| part::items(parts, None)).collect()
    }
}

/// A `Content` in the place of the compressed history.
fn replacement(raw: &RawValue) -> Body {
    let Ok(replacement) = serde_json::from_str::<GeminiContent<'_>>(raw.get()) else {
        return Body::Other(lenient::value(raw));
    };
    let content = replacement.content();
    match replacement.role.0.as_deref() {
        Some("model") => Body::Assistant(content),
        _ if content.parts.is_empty() && !content.results.is_empty() => Body::ToolResult(content),
        _ => Body::User(content),
    }
}

impl Payload<'_> {
    /// The text that people see.
    fn shown_text(self) -> Option<String> {
        let outputs: Vec<String> =
            self.output_history_items.0.into_iter().filter_map(|item| item.text.owned()).collect();
        if !outputs.is_empty() {
            return Some(outputs.join("\n"));
        }
        // A command without an output was shown when it was typed.
        if self.phase.0.as_deref() == Some("result") {
            return None;
        }
        let command = || self.raw_command.clone().owned().filter(|_| !self.hidden_invocation.0);
        let failure = || match lenient::value(self.error?) {
            Value::Object(fields) => Some(lenient::to_text(fields.get("message")?)),
            other => Some(lenient::to_text(&other)),
        };
        self.display_text.owned().or_else(command).or(self.message.owned()).or_else(failure)
    }

    /// One snapshot for each prompt, in one list.
    fn snapshot(self) -> Snapshot {
        let of_prompt = |states: Value| {
            let mut extra = fields(states);
            Snapshot { files: file_backups::take(&mut extra), extra, ..Snapshot::default() }
        };
        match self.snapshots.map(lenient::value).unwrap_or_default() {
            Value::Null => Snapshot::default(),
            Value::Array(all) if all.iter().all(Value::is_object) => {
                let mut all = all.into_iter().map(of_prompt);
                let first = all.next().unwrap_or_default();
                Snapshot { more: all.collect(), ..first }
            }
            unread => Snapshot { extra: Map::from_iter([("snapshots".to_owned(), unread)]), ..Snapshot::default() },
        }
    }

    /// The record itself has all that the model sees instead.
    fn compaction(self) -> Compaction {
        let history = self.compressed_history.and_then(|raw| serde_json::from_str::<Vec<&RawValue>>(raw.get()).ok());
        let summary = history.iter().flatten().find_map(|raw| {
            let text = serde_json::from_str::<GeminiContent<'_>>(raw.get()).ok()?.content().text();
            Some(text).filter(|text| !text.is_empty())
        });
        let info = self.info.0.unwrap_or_default();
        Compaction {
            summary,
            trigger: info.trigger_reason.owned(),
            tokens_before: info.original_token_count.0,
            tokens_after: info.new_token_count.0,
            cuts: history.is_some(),
            replacement: history.map(|history| history.into_iter().map(replacement).collect()),
            ..Compaction::default()
        }
    }
}
