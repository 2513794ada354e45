//! The body of a Qwen Code record.

use hashbrown::HashMap;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::line::Line;
use super::tool_run::{self, ToolRun};
use super::{history_item, part, record_class};
use crate::dialect::file_backups;
use crate::dialect::line_builder::fields;
use crate::dialect::local;
use crate::model::json;
use crate::model::lenient::{self, RawObject};
use crate::model::message::Part;
use crate::model::record::{
    Body, Compaction, Content, ContentItem, Context, Display, Kind, Rewind, Snapshot, Title, TitleSource, ToolResult,
};

pub(super) fn parse(text: &str) -> Body {
    let (Ok(line), Ok(fields)) = (json::from_str::<Line<'_>>(text), json::from_str(text)) else {
        return Body::Other(text.into());
    };
    let record = Record { line: &line, fields, payload: line.system_payload.0.clone().unwrap_or_default() };
    match line.record_class().kind {
        Kind::ToolResult => Body::ToolResult(record.tool_result()),
        Kind::Attachment if line.subtype.0.as_deref() == Some("at_command") => Body::Attachment(record.mention()),
        Kind::Attachment => {
            let to_model = line.name.0.as_deref() == Some("user");
            Body::Attachment(Content { to_model, ..record.content() })
        }
        Kind::Compaction => Body::Compaction(compaction(&record.payload)),
        Kind::Rewind => {
            let items = record.payload.count("truncatedCount");
            Body::Rewind(items.map(|items| Rewind::from_count(items, "item")).unwrap_or_default())
        }
        Kind::Snapshot => Body::Snapshot(snapshot(&record.payload)),
        Kind::Title => {
            let (text, source) = line.title().unwrap_or(("".into(), TitleSource::Id));
            Body::Title(Title { text: text.into_owned(), source })
        }
        Kind::System if line.mark().is_some() => {
            let content = record.content();
            let display = line.mark().map(|mark| mark.display(&content.text()));
            let error = (display == Some(Display::Interrupted)).then(|| INTERRUPTED.to_owned());
            Body::System(Content { display, error, to_model: true, ..content })
        }
        kind => Body::from_content_or_json(kind, || record.content(), text),
    }
}

/// The kind of failure of a turn that a person stopped.
const INTERRUPTED: &str = "interrupted";

/// The sender of a text that was transcribed from speech.
const VOICE_SENDER: &str = "you, aloud";

/// A record: the fields of its link, and all fields.
struct Record<'l, 'a> {
    line: &'l Line<'a>,
    fields: RawObject<'a>,
    /// `systemPayload`: each subtype has fields of its own.
    payload: RawObject<'a>,
}

impl Record<'_, '_> {
    fn content(&self) -> Content {
        let (line, class) = (self.line, self.line.record_class());
        let mut content = Content {
            parts: line.thoughts.map(thoughts).unwrap_or_default(),
            model: line.model.clone().owned(),
            usage: line.usage().filter(|_| class.kind == Kind::Assistant),
            context: self.context(),
            // It is a person's, but it is not sent to the model.
            sender: (line.subtype.0.as_deref() == Some("realtime_message")).then(|| VOICE_SENDER.to_owned()),
            error: class.is_failure.then(|| self.error_kind()).flatten(),
            notes: self.runs().into_iter().filter_map(ToolRun::into_note).collect(),
            ..Content::default()
        };
        content.extend(self.items());
        if content.parts.is_empty() && content.results.is_empty() {
            content.parts = shown_text(&self.payload).into_iter().map(Part::text).collect();
        }
        let display = if line.subtype.0.as_deref() == Some("slash_command") {
            self.command(&content)
        } else {
            typed(&content)
                .or_else(|| local::typed(&self.fields, &content))
                .filter(|_| class.kind == Kind::User)
        };
        Content { display, ..content }
    }

    /// The files that the agent read because the prompt that follows mentions them.
    fn mention(&self) -> Content {
        let payload = self.fields.value("systemPayload").unwrap_or_default();
        let text = format!("Read {}", record_class::files_read(&self.payload).join(", "));
        Content {
            parts: vec![Part::data("mention", payload)],
            display: Some(Display::Notification { text }),
            context: self.context(),
            ..Content::default()
        }
    }

    /// What failed: the API's name for it, or the kind of the record.
    fn error_kind(&self) -> Option<String> {
        let named = record_class::api_error(&self.payload).and_then(|error| error.string("error_type"));
        named.or_else(|| self.line.subtype.clone().owned())
    }

    /// A command of the agent that a person ran, or what it printed.
    fn command(&self, content: &Content) -> Option<Display> {
        let text = content.text();
        // We write notices as the output of no command.
        let is_command = self.payload.text("rawCommand").is_some();
        match self.payload.text("phase").as_deref() {
            _ if text.is_empty() || !is_command => None,
            Some("result") => Some(Display::Output { text, errors: String::new() }),
            _ => Some(Display::Command { text }),
        }
    }

    /// Results of tools: the responses, the files beside them, and how the runs ended according to the agent's notes.
    fn tool_result(&self) -> Content {
        let mut content = Content { context: self.context(), ..Content::default() };
        for item in self.items() {
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
        // Of several runs of a call, the first counts.
        let run_of: HashMap<&str, &ToolRun> =
            runs.iter().rev().filter_map(|run| Some((run.call_id.as_deref()?, run))).collect();
        for result in &mut content.results {
            if let Some(run) = run_of.get(result.call_id.as_str()) {
                run.settle(result);
            }
        }
        drop(run_of);
        Content { notes: runs.into_iter().filter_map(ToolRun::into_note).collect(), ..content }
    }

    /// The items of the message: a `Content` of the API, or only its parts.
    fn items(&self) -> Vec<ContentItem> {
        let Some(message) = self.fields.raw("message") else { return Vec::new() };
        let parts = RawObject::from_raw(message).map_or(Some(message), |content| content.raw("parts"));
        let noted_call = self.line.noted_call();
        parts.map(|parts| part::items(parts, noted_call.as_deref()).collect()).unwrap_or_default()
    }

    fn runs(&self) -> Vec<ToolRun> {
        tool_run::all(self.fields.raw("toolCallResult"), self.fields.raw("toolCallsMetadata"))
    }

    fn context(&self) -> Context {
        let (cwd, git_branch) = (self.line.cwd.clone().owned(), self.line.git_branch.clone().owned());
        Context { cwd, git_branch, ..Context::default() }
    }
}

/// What the agent puts between the text that a person typed and the files that it mentions.
const MENTIONED_FILES: &str = "--- Content from referenced files ---";

/// What a person typed, if the agent added the files that it mentions.
fn typed(content: &Content) -> Option<Display> {
    let mut texts = content.parts.iter().map_while(Part::as_text);
    let (first, second) = (texts.next()?, texts.next()?);
    (second.trim() == MENTIONED_FILES).then(|| Display::Typed { text: first.to_owned() })
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

/// The content of a `Content`.
fn content_from(content: &RawObject<'_>) -> Content {
    content.raw("parts").into_iter().flat_map(|parts| part::items(parts, None)).collect()
}

/// A `Content` in the place of the compressed history.
fn replacement(raw: &RawValue) -> Body {
    let Some(replacement) = RawObject::from_raw(raw) else { return Body::Other(lenient::value(raw)) };
    let content = content_from(&replacement);
    match replacement.text("role").as_deref() {
        Some("model") => Body::Assistant(content),
        _ if content.parts.is_empty() && !content.results.is_empty() => Body::ToolResult(content),
        _ => Body::User(content),
    }
}

/// The text that people see.
fn shown_text(payload: &RawObject<'_>) -> Option<String> {
    let outputs = payload.value("outputHistoryItems");
    let outputs = outputs.as_ref().and_then(Value::as_array).into_iter().flatten();
    let outputs: Vec<String> = outputs.filter_map(history_item::text).collect();
    if !outputs.is_empty() {
        return Some(outputs.join("\n"));
    }
    // A command without an output was shown when it was typed.
    if payload.text("phase").as_deref() == Some("result") {
        return None;
    }
    // Also one that the agent did not show: what it printed must not look like the output of the command before.
    let command = || payload.string("rawCommand");
    let message = || payload.string("message");
    let failure = || match payload.value("error")? {
        Value::Object(fields) => Some(lenient::to_text(fields.get("message")?)),
        other => Some(lenient::to_text(&other)),
    };
    let telemetry = || record_class::api_error(payload)?.string("error_message");
    payload.string("displayText").or_else(command).or_else(message).or_else(failure).or_else(telemetry)
}

/// One snapshot for each prompt, in one list.
fn snapshot(payload: &RawObject<'_>) -> Snapshot {
    let of_prompt = |states: Value| {
        let mut extra = fields(states);
        Snapshot { files: file_backups::take(&mut extra), extra, ..Snapshot::default() }
    };
    match payload.value("snapshots").unwrap_or_default() {
        Value::Null => Snapshot::default(),
        Value::Array(all) if all.iter().all(json::is_object) => {
            let mut all = all.into_iter().map(of_prompt);
            let first = all.next().unwrap_or_default();
            Snapshot { more: all.collect(), ..first }
        }
        unread => Snapshot { extra: Map::from_iter([("snapshots".to_owned(), unread)]), ..Snapshot::default() },
    }
}

/// The record itself has all that the model sees instead.
fn compaction(payload: &RawObject<'_>) -> Compaction {
    let history = payload.raw("compressedHistory");
    let history = history.and_then(lenient::elements);
    let summary = history.iter().flatten().find_map(|raw| {
        let text = content_from(&RawObject::from_raw(raw)?).text();
        Some(text).filter(|text| !text.is_empty())
    });
    let info = payload.object("info");
    Compaction {
        summary,
        trigger: info.string("triggerReason"),
        tokens_before: info.count("originalTokenCount"),
        tokens_after: info.count("newTokenCount"),
        cuts: history.is_some(),
        replacement: history.map(|history| history.into_iter().map(replacement).collect()),
        ..Compaction::default()
    }
}
