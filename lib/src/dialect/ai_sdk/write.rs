//! How UIMessages are written: one a line, the whole turn of a model in one of them, as SDK 7 takes it.
//!
//! What else is known of a message goes into its `metadata`, under the keys of our own messages, so that reading it gives
//! the message that any other dialect would have given.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::line::Metadata;
use crate::dialect::resolved_turn::{self, Closed};
use crate::dialect::writer::{Beginning, Line, Names, NewRecord, Shape, WriteUnit, Writer, Written, file_name};
use crate::model::divider;
use crate::model::lenient::Moment;
use crate::model::loss::Lost;
use crate::model::message::RESPONSES_PER_MESSAGE;
use crate::model::message::{Message, Part, Role, Sdk, SteeringPart};
use crate::model::record::{Body, Content, Kind, RecordId};
use crate::model::time::{self, Told};
use crate::model::{metadata, settle};

pub(super) static WRITING: Writer = Writer {
    unit: WriteUnit::Turn,
    shape: Shape::Linear,
    tells_session: |_| false,
    takes_any_id: false,
    is_with_somebody: false,
    place,
    header: |_| Vec::new(),
    lines: |draft| resolved_turn::told_of_fork(draft, lines(draft)),
    sidecar: None,
    // A message names neither its session nor another message.
    adopt: Some(|line, _| line),
    ended_path: None,
};

/// The file is called as the session is: nothing in it says so.
fn place(beginning: &Beginning<'_>) -> Result<PathBuf, String> {
    let name = format!("{}.jsonl", beginning.session);
    Ok(["chats", &file_name(name)?].iter().collect())
}

fn lines(draft: &NewRecord<'_>) -> Written {
    let mut writing = Messages { draft, written: Written::default() };
    match draft.body {
        _ if draft.sidechain => return Written::nothing(Lost::Sidechain),
        Body::User(content) => writing.say(Role::User, content),
        Body::Assistant(content) => writing.answer(content),
        Body::ToolResult(content) => writing.results(content),
        Body::System(content) if content.error.is_some() => {
            writing.fail(content);
        }
        Body::System(content) => {
            // One without words tells a state. A system message must have parts; an answer need not, and no model is sent it.
            let role = if content.parts.is_empty() { Role::Assistant } else { Role::System };
            if !content.to_model || role == Role::Assistant {
                writing.written.losses.renamed(Kind::System);
            }
            writing.say(role, content);
        }
        Body::Attachment(content) if content.to_model => {
            writing.written.losses.renamed(Kind::Attachment);
            writing.say(Role::System, content);
        }
        Body::Attachment(_) => return Written::nothing(Kind::Attachment),
        // The SDK sends no data to a model: for it nothing is cut and nothing was taken back.
        Body::Compaction(compaction) => {
            writing.written.losses.renamed(Kind::Compaction);
            writing.written.losses.dropped_if(compaction.cuts, Lost::ReplacedHistory);
            writing.divide(divider::compaction(draft.id.as_str(), compaction), &Content::default());
        }
        Body::Rewind(rewind) => {
            writing.written.losses.renamed(Kind::Rewind);
            let to = draft.parent.map(RecordId::as_str);
            writing.divide(divider::rewind(draft.id.as_str(), rewind, to), &Content::default());
        }
        Body::Restore(restore) => {
            writing.written.losses.renamed(Kind::Restore);
            let content = Content { todos: restore.todos.clone(), ..Content::default() };
            writing.divide(divider::restore(draft.id.as_str(), restore), &content);
        }
        Body::Snapshot(_) | Body::Title(_) | Body::Header(_) | Body::Other(_) => {
            return Written::nothing(draft.body.kind());
        }
    }
    writing.written
}

/// A record on its way to messages.
struct Messages<'a> {
    draft: &'a NewRecord<'a>,
    written: Written,
}

impl Messages<'_> {
    /// A prompt or a notice. Results that came with it belong to calls elsewhere: they go before it, as an answer.
    fn say(&mut self, role: Role, content: &Content) {
        let closed = self.closed(content);
        if !closed.strays.is_empty() {
            let (id, about) = ((self.draft.new_id)(), self.metadata(&Content::default()));
            self.message(id, Role::Assistant, closed.strays, about);
        }
        let about = self.metadata(content);
        self.message(self.draft.id.0.clone(), role, closed.parts, about);
    }

    /// A turn; one of very many responses goes on in a further message, and the last one tells what all of them cost.
    fn answer(&mut self, content: &Content) {
        let closed = self.closed(content);
        let responses = with_first_step(closed.parts.into_iter().map(settle::done).collect());
        let mut pages = pages(responses);
        if let Some(last) = pages.last_mut() {
            last.extend(closed.strays);
        }
        let (count, mut continues) = (pages.len(), None);
        for (at, parts) in pages.into_iter().enumerate() {
            let id = if at == 0 { self.draft.id.0.clone() } else { (self.draft.new_id)() };
            let mut about = self.metadata(content);
            if at + 1 < count {
                about.retain(|key, _| !matches!(key.as_str(), "usage" | "totalUsage"));
            }
            if let Some(before) = continues.replace(id.clone()) {
                about.insert("continues".to_owned(), before.into());
            }
            self.message(id, Role::Assistant, parts, about);
        }
    }

    /// Results of calls that stand elsewhere, and what somebody said while the tools ran.
    fn results(&mut self, content: &Content) {
        let closed = self.closed(content);
        let mut parts = closed.parts;
        if !parts.is_empty() && !closed.strays.is_empty() {
            let steering = SteeringPart { id: self.draft.id.0.clone(), parts, ..SteeringPart::default() };
            parts = vec![Part::Steering(steering)];
        }
        parts.extend(closed.strays);
        let about = self.metadata(content);
        self.message(self.draft.id.0.clone(), Role::Assistant, parts, about);
    }

    /// The parts of a record that tells of no failure, or only that there was one.
    fn closed(&mut self, content: &Content) -> Closed {
        if content.error.is_some() {
            self.written.losses.dropped(Lost::ErrorKind);
        }
        let closed = resolved_turn::closed(content, &mut self.written);
        if !closed.strays.is_empty() {
            self.written.losses.renamed(Kind::ToolResult);
        }
        closed
    }

    /// Only the words of a failure are kept.
    fn fail(&mut self, content: &Content) {
        self.written.losses.renamed(Lost::Error);
        for part in content.parts.iter().filter(|part| !matches!(part, Part::Text(_))) {
            self.written.losses.dropped(part);
        }
        if !content.results.is_empty() || !content.notes.is_empty() {
            self.written.losses.dropped(Kind::ToolResult);
        }
        self.divide(divider::failure(self.draft.id.as_str(), content), content);
    }

    /// What people see as a line across the page is an answer of its own.
    fn divide(&mut self, part: Part, content: &Content) {
        let about = self.metadata(content);
        self.message(self.draft.id.0.clone(), Role::Assistant, vec![part], about);
    }

    /// Writes a message as SDK 7 takes it. A part that had to change for that is noted.
    fn message(&mut self, id: String, role: Role, parts: Vec<Part>, about: Map<String, Value>) {
        let told = parts.clone();
        let message = Message { metadata: Some(about), ..Message::new(id.clone(), role, parts) }.for_sdk(Sdk::V7);
        if message.parts.len() > told.len() {
            self.written.losses.synthesised(Lost::Text);
        }
        for (_, before) in
            message.parts.iter().zip(&told).filter(|(now, before)| now != before && says(now) != says(before))
        {
            self.written.losses.renamed(before);
        }
        // Our messages are JSON already: text keys only, so this cannot fail.
        let value = serde_json::to_value(&message).unwrap_or_default();
        self.written.lines.push(Line { value, names: Names::Link(RecordId(id)) });
    }

    /// What is known of a message. What the agent itself says goes first, unless the reader would take it for something
    /// else than what we were told.
    fn metadata(&mut self, content: &Content) -> Map<String, Value> {
        resolved_turn::lose_surroundings(content, &mut self.written);
        let own = Value::Object(content.metadata.clone());
        let told = Metadata::deserialize(&own).ok();
        let at = told.as_ref().map_or(Moment::Absent, Metadata::at);
        let (model, usage) = told.map_or((None, None), |told| (told.model.clone().owned(), told.usage()));
        let is_now = matches!(time::read(&at, self.draft.at), Told::At(at) if at == self.draft.at.as_microsecond());
        let true_keys = [
            (is_now, &["createdAt", "timestamp"][..]),
            (content.model.is_none() || content.model == model, &["model"]),
            (content.usage.is_none() || content.usage == usage, &["usage", "totalUsage"]),
        ];
        let mut content = Content { parts: Vec::new(), results: Vec::new(), notes: Vec::new(), ..content.clone() };
        for key in true_keys.into_iter().filter(|(is_true, _)| !is_true).flat_map(|(_, keys)| keys) {
            if content.metadata.shift_remove(*key).is_some() {
                self.written.losses.dropped(Lost::Metadata);
            }
        }
        metadata::metadata(self.draft.at, content)
    }
}

/// A response begins with a mark; of the first one it may be missing.
fn with_first_step(mut parts: Vec<Part>) -> Vec<Part> {
    let is_response = |part: &Part| match part {
        Part::Text(_)
        | Part::Reasoning(_)
        | Part::File(_)
        | Part::ReasoningFile(_)
        | Part::SourceUrl(_)
        | Part::SourceDocument(_)
        | Part::Custom(_)
        | Part::StepStart
        | Part::Tool(_)
        | Part::Other(_) => true,
        Part::Steering(_) | Part::Data(_) => false,
    };
    if let Some(first) = parts.iter().position(is_response)
        && parts[first] != Part::StepStart
    {
        parts.insert(first, Part::StepStart);
    }
    parts
}

/// The messages of a turn: never more responses in one than a page holds.
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

/// What a part says: a tool that gave nothing back is said to have done so, or not.
fn says(part: &Part) -> Value {
    let mut value = serde_json::to_value(part).unwrap_or_default();
    if value.get("output").is_some_and(Value::is_null) {
        value.as_object_mut().map(|part| part.shift_remove("output"));
    }
    value
}
