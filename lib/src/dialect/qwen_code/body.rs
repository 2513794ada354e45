//! What a Qwen Code record says.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::line::Line;
use super::part::{self, Read};
use super::run::{self, Run};
use crate::dialect::file_backups;
use crate::dialect::line_builder::fields;
use crate::model::lenient::{self, Count, Flag, List, Object, Text};
use crate::model::message::Part;
use crate::model::record::{
    Body, Compaction, Content, Context, Kind, Rewind, Snapshot, Title, TitleSource, ToolResult,
};

pub(super) fn of(text: &str) -> Body {
    let (Ok(line), Ok(full)) = (serde_json::from_str::<Line<'_>>(text), serde_json::from_str::<Full<'_>>(text)) else {
        return Body::Other(text.into());
    };
    let kind = line.record_class().0.kind;
    match kind {
        Kind::User => Body::User(full.content(&line)),
        Kind::Assistant => Body::Assistant(full.content(&line)),
        Kind::ToolResult => Body::ToolResult(full.tool_result(&line)),
        Kind::Attachment => {
            let to_model = line.name.0.as_deref() == Some("user");
            Body::Attachment(Content { to_model, ..full.content(&line) })
        }
        Kind::System => Body::System(full.content(&line)),
        Kind::Compaction => Body::Compaction(full.payload().compaction()),
        Kind::Rewind => Body::Rewind(full.payload().rewind()),
        Kind::Snapshot => Body::Snapshot(full.payload().snapshot()),
        Kind::Title => {
            let (text, source) = line.title().unwrap_or(("".into(), TitleSource::Id));
            Body::Title(Title { text: text.into_owned(), source })
        }
        Kind::Header | Kind::Other | Kind::Restore => match serde_json::from_str(text) {
            Ok(Value::Object(fields)) if kind == Kind::Header => Body::Header(fields),
            Ok(value) => Body::Other(value),
            Err(_) => Body::Other(text.into()),
        },
    }
}

/// Who is heard in a spoken conversation.
const SPOKEN: &str = "you, aloud";

/// The fields that a body needs besides the link's.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
struct Full<'a> {
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
    // Of a compaction.
    info: Object<Compressed<'a>>,
    compressed_history: Option<&'a RawValue>,
    truncated_count: Count,
    snapshots: Option<&'a RawValue>,
    /// Of what the agent put in: what people were shown of it.
    display_text: Text<'a>,
    // Of commands.
    phase: Text<'a>,
    raw_command: Text<'a>,
    hidden_invocation: Flag,
    output_history_items: List<Shown<'a>>,
    message: Text<'a>,
    /// Of a turn that failed: words, or an object with them.
    error: Option<&'a RawValue>,
}

/// An item that a command showed.
#[derive(Deserialize, Clone, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Shown<'a> {
    text: Text<'a>,
}

#[derive(Deserialize, Clone, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
struct Compressed<'a> {
    original_token_count: Count,
    new_token_count: Count,
    trigger_reason: Text<'a>,
}

impl<'a> Full<'a> {
    fn payload(&self) -> Payload<'a> {
        self.system_payload.0.clone().unwrap_or_default()
    }

    /// The parts of the message: a `GeminiContent`, or the words alone.
    fn message_parts(&self, noted: Option<&str>) -> Vec<Read> {
        let Some(message) = self.message else { return Vec::new() };
        match serde_json::from_str::<GeminiContent<'_>>(message.get()) {
            Ok(content) => content.parts.map(|parts| part::all(parts, noted)).unwrap_or_default(),
            Err(_) => part::all(message, noted),
        }
    }

    fn content(&self, line: &Line<'_>) -> Content {
        let runs = run::all(self.tool_call_result, self.tool_calls_metadata);
        let mut content = self.spoken(line, line.noted_call().as_deref());
        if content.parts.is_empty() && content.results.is_empty() {
            content.parts = self.payload().words().into_iter().map(Part::text).collect();
        }
        content.notes = runs.into_iter().filter_map(Run::note).collect();
        content
    }

    fn spoken(&self, line: &Line<'_>, noted: Option<&str>) -> Content {
        let mut said = Content {
            parts: line.thoughts.map(thoughts).unwrap_or_default(),
            model: line.model.clone().owned(),
            usage: line.usage().filter(|_| line.record_class().0.kind == Kind::Assistant),
            context: Context {
                cwd: line.cwd.clone().owned(),
                git_branch: line.git_branch.clone().owned(),
                ..Context::default()
            },
            // It is beside the conversation with the model, and somebody said it.
            sender: (line.subtype.0.as_deref() == Some("realtime_message")).then(|| SPOKEN.to_owned()),
            error: line.record_class().0.is_failure.then(|| line.subtype.clone().owned()).flatten(),
            ..Content::default()
        };
        for read in self.message_parts(noted) {
            match read {
                Read::Part(part) => said.parts.push(part),
                Read::Result(result) => said.results.push(result),
            }
        }
        said
    }

    /// What tools gave back: the responses, the files beside them, and how the agent says that they ended.
    fn tool_result(&self, line: &Line<'_>) -> Content {
        let mut said = Content::default();
        for read in self.message_parts(line.noted_call().as_deref()) {
            match (read, said.results.last_mut()) {
                (Read::Result(result), _) => said.results.push(result),
                // A picture that a tool read stands behind the tool's own response.
                (Read::Part(file @ Part::File(_)), Some(result)) => part::give_back(result, file),
                (Read::Part(part), _) => said.parts.push(part),
            }
        }
        let runs = run::all(self.tool_call_result, self.tool_calls_metadata);
        if said.results.is_empty() {
            said.results = unanswered(&mut said.parts, &runs);
        }
        for result in &mut said.results {
            let of_it = runs.iter().find(|run| run.call_id.as_deref() == Some(result.call_id.as_str()));
            of_it.into_iter().for_each(|run| run.settle(result));
        }
        let context = self.spoken(line, None).context;
        Content { context, notes: runs.into_iter().filter_map(Run::note).collect(), ..said }
    }
}

/// Results for a record without responses: from its notes, else its words are the result of the one that it notes.
fn unanswered(parts: &mut Vec<Part>, runs: &[Run]) -> Vec<ToolResult> {
    let noted: Vec<ToolResult> = runs.iter().filter_map(Run::result).collect();
    match (runs, parts.as_slice()) {
        ([run], [Part::Text(words)]) if noted.is_empty() && run.call_id.is_some() => {
            let result = run.of_words(words.text.clone().into());
            parts.clear();
            vec![result]
        }
        _ => noted,
    }
}

/// A `GeminiContent` that stands for what was compressed.
fn replacing(content: &RawValue) -> Body {
    let Ok(content) = serde_json::from_str::<GeminiContent<'_>>(content.get()) else {
        return Body::Other(lenient::value(content));
    };
    let mut said = Content::default();
    for read in content.parts.map(|parts| part::all(parts, None)).unwrap_or_default() {
        match read {
            Read::Part(part) => said.parts.push(part),
            Read::Result(result) => said.results.push(result),
        }
    }
    match content.role.0.as_deref() {
        Some("model") => Body::Assistant(said),
        _ if said.parts.is_empty() && !said.results.is_empty() => Body::ToolResult(said),
        _ => Body::User(said),
    }
}

/// Thoughts beside the message: texts, or a subject and what is thought about it.
fn thoughts(raw: &RawValue) -> Vec<Part> {
    let thoughts = match lenient::value(raw) {
        Value::Array(thoughts) => thoughts,
        Value::Null => Vec::new(),
        single => vec![single],
    };
    let text = |thought: &Value| match thought {
        Value::Object(fields) => {
            let told = ["subject", "description", "text"].iter().filter_map(|key| fields.get(*key)?.as_str());
            let told: Vec<&str> = told.filter(|text| !text.is_empty()).collect();
            if told.is_empty() { thought.to_string() } else { told.join("\n\n") }
        }
        other => part::text_of(other),
    };
    thoughts.iter().map(|thought| Part::reasoning(text(thought))).collect()
}

impl Payload<'_> {
    /// What people were shown.
    fn words(self) -> Option<String> {
        let shown = self.output_history_items.0.into_iter().filter_map(|item| item.text.owned());
        let shown: Vec<String> = shown.collect();
        let command = || self.raw_command.clone().owned().filter(|_| !self.hidden_invocation.0);
        let is_result = self.phase.0.as_deref() == Some("result");
        match (shown.is_empty(), is_result) {
            (false, _) => return Some(shown.join("\n")),
            // A command without an output was shown when it was typed.
            (true, true) => return None,
            (true, false) => {}
        }
        let failure = || match lenient::value(self.error?) {
            Value::Object(fields) => Some(part::text_of(fields.get("message")?)),
            other => Some(part::text_of(&other)),
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

    /// What the model sees instead is in the record itself, whole.
    fn compaction(self) -> Compaction {
        let history = self.compressed_history.and_then(|raw| serde_json::from_str::<Vec<&RawValue>>(raw.get()).ok());
        let first = history.iter().flatten().find_map(|content| {
            let content = serde_json::from_str::<GeminiContent<'_>>(content.get()).ok()?;
            Some(part::words(content.parts?)).filter(|words| !words.is_empty())
        });
        let mut compaction = Compaction {
            summary: first,
            cuts: history.is_some(),
            replacement: history.map(|history| history.into_iter().map(replacing).collect()),
            ..Compaction::default()
        };
        if let Some(info) = self.info.0 {
            compaction.trigger = info.trigger_reason.owned();
            (compaction.tokens_before, compaction.tokens_after) = (info.original_token_count.0, info.new_token_count.0);
        }
        compaction
    }

    fn rewind(self) -> Rewind {
        let reason = self.truncated_count.0.map(|count| {
            let plural = if count == 1 { "" } else { "s" };
            format!("{count} item{plural} taken back")
        });
        Rewind { from: None, reason }
    }
}
