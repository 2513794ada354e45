//! The body of a Claude Code line.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::line::Line;
use super::part::{self, ToolRun};
use super::{NO_MODEL, local};
use crate::dialect::file_backups;
use crate::dialect::line_builder::Put;
use crate::dialect::local::typed;
use crate::model::json;
use crate::model::lenient::{self, RawObject, parsed};
use crate::model::message::Part;
use crate::model::record::{
    Body, Compaction, Content, Context, Display, Kind, RecordId, Snapshot, Title, TitleSource, Todo,
};

pub(super) fn parse(text: &str) -> Body {
    let (Ok(line), Ok(fields)) = (json::from_str::<Line<'_>>(text), json::from_str(text)) else {
        return Body::Other(text.into());
    };
    let fields: RawObject<'_> = fields;
    match line.record_class().kind {
        Kind::Attachment => {
            let content = content(&fields, &line);
            // The agent sends a picture that was mentioned again; it renders nothing for it.
            let is_picture = matches!(content.parts.as_slice(), [Part::File(_)]);
            let is_shown = is_picture || (line.is_shown_again() && content.parts.iter().any(is_in_reminder));
            let to_model = line.is_meta.0 || line.was_queued() || is_shown;
            let is_attached = line.is_attachment() && !line.was_queued() && !content.instructs;
            Body::Attachment(Content { to_model, is_attached, ..content })
        }
        Kind::System => {
            let content = content(&fields, &line);
            let to_model = content.display.is_some() && line.is_sent_notice();
            Body::System(Content { to_model, ..content })
        }
        Kind::Compaction => Body::Compaction(compaction(&fields, &line)),
        Kind::Snapshot => Body::Snapshot(snapshot(&fields)),
        Kind::Title => {
            let (text, source) = line.title().unwrap_or(("".into(), TitleSource::Id));
            Body::Title(Title { text: text.into_owned(), source })
        }
        kind => Body::from_content_or_json(kind, || content(&fields, &line), text),
    }
}

/// Whether a part is a text in the tags in which the agent shows the model something in the user's name.
fn is_in_reminder(part: &Part) -> bool {
    part.as_text().is_some_and(|text| text.trim_start().starts_with(local::REMINDER_TAG))
}

/// The kind of failure of a turn that a person stopped.
const INTERRUPTED: &str = "interrupted";

/// The prompt of the snapshot that a delta adds to.
pub(super) const SNAPSHOT_MESSAGE: &str = "snapshotMessageId";

fn content(fields: &RawObject<'_>, line: &Line<'_>) -> Content {
    let message = line.message.0.as_ref();
    let blocks = fields.object("message").raw("content").or(fields.raw("content"));
    let attachment = fields.object("attachment");
    let attached_todos = || attachment.parsed("content").filter(|_| line.is_state_only());
    let is_not_empty = |todos: &Vec<Todo>| !todos.is_empty();
    let error = fields.raw("error");
    let mut content = Content {
        model: message.and_then(|message| message.model.clone().owned()).filter(|model| model != NO_MODEL),
        usage: message.and_then(|message| message.usage(&line.usage)).filter(|_| line.is_answer()),
        context: Context {
            cwd: line.cwd.clone().owned(),
            git_branch: line.git_branch.clone().owned(),
            platform: None,
            user_type: line.user_type.clone().owned(),
        },
        // Prompts have an empty list whatever the task list is.
        todos: fields.parsed("todos").filter(is_not_empty).or_else(|| attached_todos().filter(is_not_empty)),
        thinking: fields.parsed("thinkingMetadata"),
        error: line.failure(error),
        display: line.display(),
        // What a person typed while the agent worked is sent in the person's name.
        instructs: fields.text("renderedRole").as_deref() == Some("system") && !line.was_queued(),
        ..blocks.map(|blocks| part::content_from(blocks, &ToolRun::from_line(fields))).unwrap_or_default()
    };
    let written = content.parts.iter().rev().filter_map(part::todos);
    content.todos = written.filter_map(|todos| serde_json::from_value(todos).ok()).next().or(content.todos);
    // An attachment as the model sees it.
    let rendered = fields.objects("rendered").into_iter().filter_map(|rendered| rendered.raw("content"));
    let rendered = rendered.map(lenient::text_or_json);
    // The agent sends what a person typed while it worked without its tags.
    let as_sent = |text: String| {
        if line.was_queued() { local::without_reminder_tags(&text).to_owned() } else { text }
    };
    content.parts.extend(rendered.map(as_sent).map(Part::text));
    let prompt = attachment.raw("prompt").filter(|_| line.was_queued());
    if let Some(prompt) = prompt.filter(|_| !content.parts.is_empty() && line.record_class().kind == Kind::User) {
        // It has an explanation around it.
        content.display = Some(Display::Typed { text: part::content_from(prompt, &ToolRun::default()).text() });
    }
    if content.display.is_none() && line.record_class().kind == Kind::User {
        content.display = typed(fields, &content);
    }
    if content.parts.is_empty() {
        content.parts.extend(part::mentioned_picture(&attachment));
    }
    if content.parts.is_empty() {
        content.parts.extend(part::mentioned_text(&attachment).into_iter().flatten());
    }
    if content.display.is_none() {
        content.display = part::attachment_notice(&attachment).map(|text| Display::Notification { text });
    }
    if let Some(raw) = fields.raw("attachment").filter(|_| content.parts.is_empty()) {
        content.parts = prompt.map(|prompt| part::content_from(prompt, &ToolRun::default()).parts).unwrap_or_default();
        let is_state = line.is_state_only() && (content.todos.is_some() || content.thinking.is_some());
        if content.parts.is_empty() && !is_state {
            content.parts.push(Part::data("attachment", lenient::value(raw)));
        }
    }
    if let Some(error) = error.filter(|_| content.parts.is_empty()) {
        content.parts.push(Part::text(failure_text(error)));
    }
    if line.is_queued_notification() {
        let text = content.text();
        let event = || Display::Notification { text: local::without_reminder_tags(&text).to_owned() };
        content.display = Some(local::display(&text).unwrap_or_else(event));
    }
    content
}

/// Errors of the API are objects in objects.
const NESTED_ERRORS: usize = 4;

/// The text of an error: its innermost message, else the code of the connection's failure, else the whole.
fn failure_text(error: &RawValue) -> String {
    let (mut object, mut text, mut code) = (RawObject::from_raw(error), None, None);
    for _ in 0..NESTED_ERRORS {
        let Some(level) = object else { break };
        text = level.string("message").or(text);
        code = level.string("code").or(code);
        object = level.raw("error").or(level.raw("cause")).and_then(RawObject::from_raw);
    }
    let connection = || {
        let code = code?;
        let words = CONNECTION_FAILURES.iter().find(|(known, _)| *known == code);
        Some(words.map_or(code.clone(), |(_, words)| format!("{words} ({code})")))
    };
    text.or_else(connection).unwrap_or_else(|| lenient::text_or_json(error))
}

/// The codes of failures before the API answered, and what they mean.
const CONNECTION_FAILURES: &[(&str, &str)] = &[
    ("ECONNREFUSED", "connection refused"),
    ("ECONNRESET", "connection reset"),
    ("ENOTFOUND", "unknown host"),
    ("EPIPE", "connection closed"),
    ("ETIMEDOUT", "connection timed out"),
];

/// The boundary cuts what the model sees; the summary is in the line after it.
fn compaction(fields: &RawObject<'_>, line: &Line<'_>) -> Compaction {
    let cuts = !line.is_compact_summary.0;
    let summary = fields.object("message").raw("content").filter(|_| !cuts);
    let summary = summary.map(|summary| part::content_from(summary, &ToolRun::default()).text());
    let metadata = fields.raw("compactMetadata").and_then(RawObject::from_raw);
    let is_described = metadata.is_some();
    let metadata = metadata.unwrap_or_default();
    let listed: Option<Vec<String>> = metadata.object("preservedMessages").parsed("uuids");
    let preserves_between = is_described && listed.is_none();
    let ends = metadata.object("preservedSegment");
    // The preserved records follow the record that is named as their anchor.
    let anchor = metadata.object("preservedMessages").string("anchorUuid").or_else(|| ends.string("anchorUuid"));
    let preserved_first = anchor.is_some() && anchor == line.uuid.clone().owned();
    let ends = || ["headUuid", "tailUuid"].into_iter().filter_map(|end| ends.string(end)).collect();
    Compaction {
        summary,
        trigger: metadata.string("trigger"),
        messages: metadata.count("messagesSummarized"),
        tokens_before: metadata.count("preTokens"),
        tokens_after: metadata.count("postTokens"),
        preserved: listed.unwrap_or_else(ends).into_iter().map(RecordId).collect(),
        preserves_between,
        preserved_first,
        cuts,
        ..Compaction::default()
    }
}

/// A snapshot has the files of a prompt; a delta adds one file to the snapshot that it names.
fn snapshot(fields: &RawObject<'_>) -> Snapshot {
    let (path, backup) = (fields.string("trackingPath"), fields.value("backup"));
    let is_delta = fields.raw("snapshot").is_none() && backup.is_some();
    let mut extra = match fields.value("snapshot") {
        Some(Value::Object(fields)) => fields,
        Some(other) => Map::from_iter([("snapshot".to_owned(), other)]),
        None => Map::new(),
    };
    let mut files = file_backups::take(&mut extra);
    match (path, backup) {
        (Some(path), Some(Value::Object(backup))) if is_delta => files.push(file_backups::read(path, backup)),
        (path, backup) => {
            extra.put_some("trackingPath", path);
            extra.put_some("backup", backup);
        }
    }
    extra.put_some(SNAPSHOT_MESSAGE, fields.string(SNAPSHOT_MESSAGE));
    let update = is_delta || fields.flag("isSnapshotUpdate");
    Snapshot { message: fields.string("messageId").map(RecordId), update, files, extra, ..Snapshot::default() }
}

impl Line<'_> {
    fn is_answer(&self) -> bool {
        self.record_class().kind == Kind::Assistant
    }

    /// The kind of failure that it reports; an answer of the agent's own may name it in `error`.
    fn failure(&self, error: Option<&RawValue>) -> Option<String> {
        let in_answer = || parsed::<String>(error.filter(|_| self.is_answer())?).filter(|name| !name.is_empty());
        let interrupted = || (self.display() == Some(Display::Interrupted)).then(|| INTERRUPTED.to_owned());
        let name = || self.subtype.clone().owned().or_else(in_answer).or_else(interrupted);
        let name = || name().unwrap_or_else(|| "api_error".to_owned());
        self.record_class().is_failure.then(name)
    }
}
