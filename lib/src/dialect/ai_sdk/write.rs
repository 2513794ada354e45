//! Writes UIMessages: one per line, the whole turn of a model in one message, as SDK 7 accepts it.
//!
//! Everything else about a message is in its `metadata`, under the keys of our own messages: read back, it is the same
//! message as from any other dialect.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::line::Metadata;
use crate::dialect::line_builder::Put;
use crate::dialect::resolved_turn::{self, ResolvedTurn};
use crate::dialect::writer::{Beginning, Line, Names, NewRecord, Shape, WriteUnit, Writer, Written, file_name};
use crate::model::divider;
use crate::model::json;
use crate::model::lenient::Moment;
use crate::model::loss::{Losses, Lost};
use crate::model::message::{Message, Part, RESPONSES_PER_MESSAGE, Role, Sdk, SteeringPart};
use crate::model::record::{Body, Content, Kind, RecordId, Todo};
use crate::model::time;
use crate::model::{metadata, settle};

pub(super) static WRITER: Writer = Writer {
    states_session_id: |_| false,
    // A message names neither its session nor another message.
    adopt: Some(|line, _| line),
    ..Writer::new(WriteUnit::Turn, Shape::Linear, place, |draft| resolved_turn::without_fork(draft, lines(draft)))
};

/// The name of the file is the id of the session: the messages do not have it.
fn place(beginning: &Beginning<'_>) -> Result<PathBuf, String> {
    let name = format!("{}.jsonl", beginning.session);
    Ok(["chats", &file_name(name)?].iter().collect())
}

fn lines(draft: &NewRecord<'_>) -> Written {
    let mut record = Record { draft, written: Written::default() };
    match draft.body {
        _ if draft.sidechain => return Written::nothing(Lost::Sidechain),
        Body::User(content) => record.message(Role::User, content),
        Body::Assistant(content) => record.answer(content),
        Body::ToolResult(content) => record.results(content),
        Body::System(content) if content.error.is_some() => record.failure(content),
        Body::System(content) => {
            // A system message must have parts. An answer without parts can hold a state, and is not sent to a model.
            let role = if content.parts.is_empty() { Role::Assistant } else { Role::System };
            record.losses().renamed_if(!content.to_model || role == Role::Assistant, Kind::System);
            record.message(role, content);
        }
        Body::Attachment(content) if content.to_model => {
            record.losses().renamed(Kind::Attachment);
            record.message(Role::System, content);
        }
        // The SDK sends no data parts to a model: for the model nothing is cut or taken back.
        Body::Compaction(compaction) => {
            record.divider(divider::compaction(draft.id.as_str(), compaction), None);
            record.losses().dropped_if(compaction.cuts, Lost::ReplacedHistory);
        }
        Body::Rewind(rewind) => {
            let to = draft.parent.map(RecordId::as_str);
            record.divider(divider::rewind(draft.id.as_str(), rewind, to), None);
        }
        Body::Restore(restore) => {
            let todos = restore.todos.clone();
            record.divider(divider::restore(draft.id.as_str(), restore), todos);
        }
        Body::Attachment(_) | Body::Snapshot(_) | Body::Title(_) | Body::Header(_) | Body::Other(_) => {
            return Written::nothing(draft.body.kind());
        }
    }
    record.written
}

/// A record while its messages are built.
struct Record<'a> {
    draft: &'a NewRecord<'a>,
    written: Written,
}

impl Record<'_> {
    fn losses(&mut self) -> &mut Losses {
        &mut self.written.losses
    }

    /// A prompt or a notice. Its results are those of calls in other records: they precede it, as an answer.
    fn message(&mut self, role: Role, content: &Content) {
        let turn = self.resolve(content);
        if !turn.unmatched.is_empty() {
            let (id, metadata) = ((self.draft.new_id)(), self.metadata(&Content::default()));
            self.push(id, Role::Assistant, turn.unmatched, metadata);
        }
        self.push_own(role, turn.parts, content);
    }

    /// A turn. One with very many responses continues in a further message; the last message has the usage of all.
    fn answer(&mut self, content: &Content) {
        let turn = self.resolve(content);
        let mut pages = pages(with_first_step(turn.parts.into_iter().map(settle::done).collect()));
        if let Some(last) = pages.last_mut() {
            last.extend(turn.unmatched);
        }
        let (count, mut continues) = (pages.len(), None);
        for (at, parts) in pages.into_iter().enumerate() {
            let id = if at == 0 { self.draft.id.0.clone() } else { (self.draft.new_id)() };
            let mut metadata = self.metadata(content);
            if at + 1 < count {
                metadata.retain(|key, _| !matches!(key.as_str(), "usage" | "totalUsage"));
            }
            metadata.put_some("continues", continues.replace(id.clone()));
            self.push(id, Role::Assistant, parts, metadata);
        }
    }

    /// Results of calls in other records, and a message of a person while the tools ran.
    fn results(&mut self, content: &Content) {
        let turn = self.resolve(content);
        let mut parts = turn.parts;
        if !parts.is_empty() && !turn.unmatched.is_empty() {
            let steering = SteeringPart { id: self.draft.id.0.clone(), parts, ..SteeringPart::default() };
            parts = vec![Part::Steering(steering)];
        }
        parts.extend(turn.unmatched);
        self.push_own(Role::Assistant, parts, content);
    }

    fn resolve(&mut self, content: &Content) -> ResolvedTurn {
        self.losses().dropped_if(content.error.is_some(), Lost::ErrorKind);
        let turn = resolved_turn::resolve(content, self.losses());
        self.losses().renamed_if(!turn.unmatched.is_empty(), Kind::ToolResult);
        turn
    }

    /// Only the text of a failure is kept.
    fn failure(&mut self, content: &Content) {
        self.losses().renamed(Lost::Error);
        for part in content.parts.iter().filter(|part| !matches!(part, Part::Text(_))) {
            self.losses().dropped(part);
        }
        self.losses().dropped_if(!content.results.is_empty() || !content.notes.is_empty(), Kind::ToolResult);
        self.push_own(Role::Assistant, vec![divider::failure(self.draft.id.as_str(), content)], content);
    }

    /// What people see as a line across the page is an answer of its own.
    fn divider(&mut self, part: Part, todos: Option<Vec<Todo>>) {
        let kind = self.draft.body.kind();
        self.losses().renamed(kind);
        self.push_own(Role::Assistant, vec![part], &Content { todos, ..Content::default() });
    }

    fn push_own(&mut self, role: Role, parts: Vec<Part>, content: &Content) {
        let metadata = self.metadata(content);
        self.push(self.draft.id.0.clone(), role, parts, metadata);
    }

    /// Writes a message as SDK 7 accepts it. A part that had to change is reported.
    fn push(&mut self, id: String, role: Role, parts: Vec<Part>, metadata: Map<String, Value>) {
        let original = parts.clone();
        let message = Message { metadata: Some(metadata), ..Message::new(id.clone(), role, parts) }.for_sdk(Sdk::V7);
        self.losses().synthesised_if(message.parts.len() > original.len(), Lost::Text);
        for (now, before) in message.parts.iter().zip(&original) {
            self.losses().renamed_if(now != before && without_null(now) != without_null(before), before);
        }
        // Our messages are JSON already: text keys only, so this cannot fail.
        let value = serde_json::to_value(&message).unwrap_or_default();
        self.written.lines.push(Line { value, names: Names::Link(RecordId(id)) });
    }

    /// The metadata of a message. The agent's own keys come first, unless the reader would read another time, model or
    /// usage from them than those of the record.
    fn metadata(&mut self, content: &Content) -> Map<String, Value> {
        let has_platform = content.context.platform.is_some() || content.context.user_type.is_some();
        self.losses().dropped_if(has_platform, Lost::Platform);
        let own = json::plain(Value::Object(content.metadata.clone()));
        let read = Metadata::deserialize(&own).ok();
        let at = read.as_ref().map_or(Moment::Absent, Metadata::at);
        let (model, usage) = read.map_or((None, None), |read| (read.model.clone().owned(), read.usage()));
        let is_now = time::read(&at, self.draft.at) == Ok(Some(self.draft.at.as_microsecond()));
        let keys = [
            (is_now, &["createdAt", "timestamp"][..]),
            (content.model.is_none() || content.model == model, &["model"]),
            (content.usage.is_none() || content.usage == usage, &["usage", "totalUsage"]),
        ];
        let mut content = Content { parts: Vec::new(), results: Vec::new(), notes: Vec::new(), ..content.clone() };
        for key in keys.into_iter().filter(|(is_true, _)| !is_true).flat_map(|(_, keys)| keys) {
            let is_removed = content.metadata.shift_remove(*key).is_some();
            self.losses().dropped_if(is_removed, Lost::Metadata);
        }
        metadata::metadata(self.draft.at, content)
    }
}

/// A response starts with a `step-start` part; the first response may lack it.
fn with_first_step(mut parts: Vec<Part>) -> Vec<Part> {
    let first = parts.iter().position(|part| !matches!(part, Part::Steering(_) | Part::Data(_)));
    if let Some(first) = first.filter(|first| parts[*first] != Part::StepStart) {
        parts.insert(first, Part::StepStart);
    }
    parts
}

/// The messages of a turn, each with a limited number of responses.
fn pages(parts: Vec<Part>) -> Vec<Vec<Part>> {
    let mut pages = vec![Vec::new()];
    let mut responses = 0;
    for part in parts {
        if part == Part::StepStart {
            responses += 1;
        }
        if responses > RESPONSES_PER_MESSAGE {
            pages.push(Vec::new());
            responses = 1;
        }
        if let Some(page) = pages.last_mut() {
            page.push(part);
        }
    }
    pages
}

/// A part as JSON: an output that is null and one that is absent are the same.
fn without_null(part: &Part) -> Value {
    let mut value = serde_json::to_value(part).unwrap_or_default();
    if value.get("output").is_some_and(Value::is_null) {
        value.as_object_mut().map(|part| part.shift_remove("output"));
    }
    value
}
