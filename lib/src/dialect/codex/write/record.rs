//! Writes one record as lines: items of the conversation, and events for Codex's interface.

use serde_json::{Map, Value, json};

use super::super::record_class::Item;
use super::super::{id_from_ordinal, ordinal_from_id};
use super::line;
use crate::dialect::line_builder::{Put, fields};
use crate::dialect::writer::{Line, Names, NewRecord, Written};
use crate::model::loss::{Losses, Lost};
use crate::model::message::Part;
use crate::model::record::{Body, Compaction, Content, Kind, RecordId, Title, TitleSource, Usage};

pub(super) fn lines(draft: &NewRecord<'_>) -> Written {
    if draft.sidechain {
        return Written::nothing(Lost::Sidechain);
    }
    let mut record = Record { draft, written: Written::default() };
    record.body(draft.body);
    record.written
}

/// Codex's word for an error of a kind that it does not know.
const FAILURE: &str = "other";

/// A record while its lines are built.
pub(super) struct Record<'d> {
    draft: &'d NewRecord<'d>,
    written: Written,
}

impl Record<'_> {
    fn body(&mut self, body: &Body) {
        const RESULTS: Lost = Lost::Record(Kind::ToolResult);
        match body {
            Body::User(content) => {
                content.results.iter().for_each(|result| self.result(result));
                if !content.parts.is_empty() || content.results.is_empty() {
                    self.prompt(content);
                }
                self.losses().dropped_besides_parts(content, &[RESULTS, Lost::Sender]);
            }
            Body::Assistant(content) => {
                self.answer(content);
                self.losses().dropped_besides_parts(content, &[RESULTS, Lost::Model, Lost::Usage]);
            }
            Body::ToolResult(content) => {
                content.parts.iter().for_each(|part| self.losses().dropped(part));
                content.results.iter().for_each(|result| self.result(result));
                self.losses().dropped_besides_parts(content, &[RESULTS]);
            }
            Body::Attachment(content) => self.context(content),
            Body::System(content) => self.notice(content),
            Body::Title(title) => self.title(title),
            Body::Compaction(compaction) => self.compaction(compaction),
            // A line that was read from a version that wrote it.
            Body::Snapshot(snapshot) if item_is(snapshot.extra.get("type"), Item::Snapshot) => {
                self.push("response_item", snapshot.extra.clone().into(), Names::Side);
            }
            // A rewind would need the number of undone turns, which only the whole session shows.
            Body::Snapshot(_) | Body::Rewind(_) | Body::Restore(_) | Body::Header(_) | Body::Other(_) => {
                self.losses().dropped(body.kind());
            }
        }
    }

    pub(super) fn losses(&mut self) -> &mut Losses {
        &mut self.written.losses
    }

    fn push(&mut self, kind: &str, payload: Value, names: Names) {
        let line = line(self.draft.at, kind, payload, names);
        self.written.lines.push(match self.ordinal() {
            Some(ordinal) => numbered(line, ordinal),
            None => line,
        });
    }

    /// The ordinal of the next line, in a file whose lines have ordinals: Codex does not continue a file whose last line
    /// has none.
    fn ordinal(&self) -> Option<u64> {
        let last = ordinal_from_id(self.draft.last?.as_str())?;
        last.checked_add(1)?.checked_add(self.written.lines.len() as u64)
    }

    /// Adds an item of the conversation.
    pub(super) fn item(&mut self, payload: Value) {
        self.push("response_item", payload, Names::Place);
    }

    /// Adds what Codex's own interface shows.
    pub(super) fn event(&mut self, payload: Value) {
        self.push("event_msg", payload, Names::Side);
    }

    fn answer(&mut self, content: &Content) {
        if let Some(model) = &content.model {
            // With all its fields Codex would conclude that the model has its instructions already.
            let mut facts = fields(json!({"model": model}));
            facts.put_some("cwd", content.context.cwd.as_deref());
            self.push("turn_context", facts.into(), Names::Side);
        } else {
            // The first item of an answer without a model is read as one of the model before it.
            let starts_answer = self.draft.answer == self.draft.id && !content.parts.is_empty();
            let has_model_before = self.draft.model_before.is_some();
            self.losses().synthesised_if(has_model_before && starts_answer, Lost::Model);
        }
        content.parts.iter().for_each(|part| self.answer_part(part));
        content.results.iter().for_each(|result| self.result(result));
        if let Some(usage) = content.usage {
            let (thread, response) = (self.draft.session.as_str(), self.draft.answer.as_str());
            let record = json!({"thread_id": thread, "response_id": response, "usage": tokens(usage)});
            self.push("token_usage_record", record, Names::Side);
        }
    }

    /// Context. Codex generates its own anew, and sends context about the conversation again.
    fn context(&mut self, content: &Content) {
        for part in &content.parts {
            if let Part::Data(data) = part
                && data.kind == "context"
                && item_is(data.data.get("type"), Item::Context)
            {
                return self.item(data.data.clone());
            }
        }
        match content.to_model {
            true => self.message_to_model(content, Kind::Attachment),
            false => self.losses().dropped_context(content),
        }
    }

    /// A notice that is sent to the model again, or an event.
    fn notice(&mut self, content: &Content) {
        match &content.display {
            Some(display) if content.to_model => return self.local(content, display),
            _ if content.to_model => return self.message_to_model(content, Kind::System),
            _ => {}
        }
        self.losses().dropped_besides_parts(content, &[Lost::Error]);
        let (text, failure) = (content.text(), content.error.as_deref());
        if text.is_empty() && failure.is_none() {
            // A task list or a thinking mode without a text is reported as such.
            let has_state = content.todos.is_some() || content.thinking.is_some();
            return self.losses().dropped_if(!has_state, Kind::System);
        }
        let Some(failure) = failure else {
            self.event(json!({"type": "warning", "message": text}));
            return self.losses().renamed(Kind::System);
        };
        // A turn that ended in an error, which Codex does not send.
        let message = if text.is_empty() { failure } else { &text };
        let error = json!({"message": message, "codex_error_info": FAILURE});
        let end =
            json!({"type": "task_complete", "turn_id": self.draft.id, "last_agent_message": null, "error": error});
        self.push("event_msg", end, Names::Place);
        self.losses().renamed_if(failure != FAILURE, Lost::ErrorKind);
    }

    fn title(&mut self, title: &Title) {
        let thread = self.draft.session.as_str();
        self.event(json!({"type": "thread_name_updated", "thread_id": thread, "thread_name": title.text}));
        self.losses().renamed_if(title.source != TitleSource::Manual, Lost::TitleSource);
    }

    /// Codex itself keeps every prompt if there is no replacement.
    fn compaction(&mut self, compaction: &Compaction) {
        let summary = compaction.summary.as_deref().unwrap_or_default();
        let mut items = Record { draft: self.draft, written: Written::default() };
        match &compaction.replacement {
            Some(bodies) => bodies.iter().for_each(|body| items.body(body)),
            None if compaction.keeps_prompts => {}
            None if summary.trim().is_empty() => return self.losses().dropped(Kind::Compaction),
            None => items.prompt(&Content::from([Part::text(summary)])),
        }
        let is_item = |line: &Line| line.value["type"] == "response_item";
        let written = items.written.lines.into_iter().filter(is_item);
        let replacement: Vec<Value> = written.map(|mut line| line.value["payload"].take()).collect();
        let is_replaced = compaction.replacement.is_some() || !replacement.is_empty();
        let mut payload = fields(json!({"message": summary}));
        payload.put_some("replacement_history", is_replaced.then_some(replacement));
        self.push("compacted", payload.into(), Names::Place);
        self.losses().append(&mut items.written.losses);
        let counts = [compaction.messages, compaction.tokens_before, compaction.tokens_after];
        let has_details = compaction.trigger.is_some() || counts.iter().any(Option::is_some);
        self.losses().dropped_if(has_details, Lost::CompactionDetails);
        self.losses().dropped_if(!compaction.preserved.is_empty(), Lost::KeptRecords);
    }
}

/// A line with its ordinal, from which the reader makes its id.
fn numbered(line: Line, ordinal: u64) -> Line {
    let (mut fields, id) = (fields(line.value), RecordId(id_from_ordinal(ordinal)));
    let names = match line.names {
        Names::Link(_) | Names::Place => Names::Link(id),
        Names::Aside(_) | Names::Side => Names::Aside(id),
    };
    fields.shift_insert(1, "ordinal".to_owned(), ordinal.into());
    Line { value: fields.into(), names }
}

/// Whether the `type` of a value is that of such an item.
fn item_is(kind: Option<&Value>, item: Item) -> bool {
    kind.and_then(Value::as_str).and_then(Item::from_type) == Some(item)
}

/// Tokens as OpenAI counts them: cached tokens are included in the input. Unknown numbers are left out.
fn tokens(usage: Usage) -> Value {
    let sum = |known: &[Option<u64>]| known.iter().flatten().fold(0_u64, |sum, more| sum.saturating_add(*more));
    let input = usage.input.map(|_| sum(&[usage.input, usage.cache_read, usage.cache_write]));
    let mut tokens = Map::new();
    tokens.put_counts([
        ("input_tokens", input),
        ("cached_input_tokens", usage.cache_read),
        ("cache_write_input_tokens", usage.cache_write),
        ("output_tokens", usage.output),
        ("reasoning_output_tokens", usage.reasoning),
        ("total_tokens", input.zip(usage.output).map(|(input, output)| input.saturating_add(output))),
    ]);
    tokens.into()
}
