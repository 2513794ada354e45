//! One record as lines: items of the conversation, events for Codex's interface, and what neither can tell.

use serde_json::{Map, Value, json};

use super::super::record_class::Item;
use super::super::{id_from_ordinal, ordinal_from_id};
use super::line;
use crate::dialect::line_builder::fields;
use crate::dialect::writer::{Line, Names, NewRecord, Written};
use crate::model::loss::Lost;
use crate::model::message::Part;
use crate::model::record::{Body, Compaction, Content, Kind, RecordId, Title, TitleSource, Usage};

/// The lines of one record, as far as they are written.
pub(super) struct Script<'d> {
    draft: &'d NewRecord<'d>,
    written: Written,
}

impl Script<'_> {
    pub(super) fn of(draft: &NewRecord<'_>) -> Written {
        let mut script = Script { draft, written: Written::default() };
        script.body(draft.body);
        script.written
    }

    fn body(&mut self, body: &Body) {
        match body {
            Body::User(content) => {
                content.results.iter().for_each(|result| self.result(result));
                if !content.parts.is_empty() || content.results.is_empty() {
                    self.prompt(&content.parts, content.sender.as_deref());
                }
                let rest = Content { results: Vec::new(), sender: None, ..content.clone() };
                self.lose_the_rest(&rest);
            }
            Body::Assistant(content) => self.answer(content),
            Body::ToolResult(content) => {
                content.parts.iter().for_each(|part| self.drop(part));
                content.results.iter().for_each(|result| self.result(result));
                let rest = Content { results: Vec::new(), ..content.clone() };
                self.lose_the_rest(&rest);
            }
            Body::Attachment(content) => self.context(content),
            Body::System(content) => self.notice(content),
            Body::Title(title) => self.title(title),
            Body::Compaction(compaction) => self.compaction(compaction),
            // Taken back with the files of a version that wrote them.
            Body::Snapshot(snapshot) if item_is(snapshot.extra.get("type"), Item::Snapshot) => {
                self.push("response_item", snapshot.extra.clone().into(), Names::Side);
            }
            // Of a rewind: a line cannot state the number of undone turns without seeing them.
            Body::Snapshot(_) | Body::Rewind(_) | Body::Restore(_) | Body::Header(_) | Body::Other(_) => {
                self.drop(body.kind());
            }
        }
    }

    fn push(&mut self, kind: &str, payload: Value, names: Names) {
        let line = line(self.draft.at, kind, payload, names);
        self.written.lines.push(match self.ordinal() {
            Some(ordinal) => numbered(line, ordinal),
            None => line,
        });
    }

    /// The number of the next line, in a file whose lines are numbered: Codex does not go on with one whose last line is not.
    fn ordinal(&self) -> Option<u64> {
        let last = ordinal_from_id(self.draft.last?.as_str())?;
        last.checked_add(1)?.checked_add(self.written.lines.len() as u64)
    }

    /// A piece of the conversation.
    pub(super) fn item(&mut self, payload: Value) {
        self.push("response_item", payload, Names::Place);
    }

    /// What Codex's own interface shows.
    pub(super) fn event(&mut self, payload: Value) {
        self.push("event_msg", payload, Names::Side);
    }

    pub(super) fn drop(&mut self, what: impl Into<Lost>) {
        self.written.losses.dropped(what);
    }

    pub(super) fn rename(&mut self, what: impl Into<Lost>) {
        self.written.losses.renamed(what);
    }

    pub(super) fn make_up(&mut self, what: impl Into<Lost>) {
        self.written.losses.synthesised(what);
    }

    fn answer(&mut self, content: &Content) {
        if let Some(model) = &content.model {
            // With all its fields Codex would take it for the sign that the model knows its instructions already.
            let mut facts = json!({"model": model});
            if let Some(cwd) = &content.context.cwd {
                facts["cwd"] = cwd.as_str().into();
            }
            self.push("turn_context", facts, Names::Side);
        } else if self.draft.model_before.is_some() && self.begins_answer(content) {
            // It is read as an answer of the model before it.
            self.make_up(Lost::Model);
        }
        content.parts.iter().for_each(|part| self.said_by_model(part));
        content.results.iter().for_each(|result| self.result(result));
        if let Some(usage) = content.usage {
            let (thread, response) = (self.draft.session.as_str(), self.draft.answer.as_str());
            let told = json!({"thread_id": thread, "response_id": response, "usage": tokens(usage)});
            self.push("token_usage_record", told, Names::Side);
        }
        let rest = Content { results: Vec::new(), model: None, usage: None, ..content.clone() };
        self.lose_the_rest(&rest);
    }

    /// Whether it is the first that the model says: what follows is the same model's.
    fn begins_answer(&self, content: &Content) -> bool {
        self.draft.answer == self.draft.id && !content.parts.is_empty()
    }

    /// What the agent put before the model. Codex makes its own anew; what tells of the conversation it sends again.
    fn context(&mut self, content: &Content) {
        for part in &content.parts {
            if let Part::Data(data) = part
                && data.kind == "context"
                && item_is(data.data.get("type"), Item::Context)
            {
                return self.item(data.data.clone());
            }
        }
        if !content.to_model {
            return self.drop(Kind::Attachment);
        }
        self.told(content, Kind::Attachment);
    }

    /// A notice that the model is told again, or an event.
    fn notice(&mut self, content: &Content) {
        if content.to_model {
            return self.told(content, Kind::System);
        }
        let texts = content
            .parts
            .iter()
            .filter_map(|part| if let Part::Text(text) = part { Some(&*text.text) } else { None });
        let words = texts.collect::<Vec<_>>().join("\n");
        self.lose_the_rest(&Content { error: None, ..content.clone() });
        let failure = content.error.as_deref();
        if words.is_empty() && failure.is_none() {
            // A task list or a thinking mode without words is told as what it is.
            if content.todos.is_none() && content.thinking.is_none() {
                self.drop(Kind::System);
            }
            return;
        }
        let message = if words.is_empty() { failure.unwrap_or_default() } else { &words };
        self.event(json!({"type": if failure.is_some() { "error" } else { "warning" }, "message": message}));
        self.rename(if failure.is_some() { Lost::Error } else { Kind::System.into() });
    }

    fn title(&mut self, title: &Title) {
        let thread = self.draft.session.as_str();
        self.event(json!({"type": "thread_name_updated", "thread_id": thread, "thread_name": title.text}));
        match title.source {
            TitleSource::Manual => {}
            TitleSource::Id | TitleSource::Prompt | TitleSource::Summary | TitleSource::Automatic => {
                self.rename(Lost::TitleSource);
            }
        }
    }

    /// Codex itself keeps every prompt where no replacement is written down.
    fn compaction(&mut self, compaction: &Compaction) {
        let summary = compaction.summary.as_deref().unwrap_or_default();
        let mut payload = json!({"message": summary});
        let mut items = Script { draft: self.draft, written: Written::default() };
        match &compaction.replacement {
            Some(bodies) => bodies.iter().for_each(|body| items.body(body)),
            None if compaction.keeps_prompts => {}
            None if summary.trim().is_empty() => return self.drop(Kind::Compaction),
            None => items.prompt(&[Part::text(summary)], None),
        }
        let is_item = |line: &Line| line.value["type"] == "response_item";
        let items_written = items.written.lines.into_iter().filter(is_item);
        let replacement: Vec<Value> = items_written.map(|mut line| line.value["payload"].take()).collect();
        if compaction.replacement.is_some() || !replacement.is_empty() {
            payload["replacement_history"] = replacement.into();
        }
        self.push("compacted", payload, Names::Place);
        self.written.losses.append(&mut items.written.losses);
        let told =
            compaction.trigger.is_some() || compaction.tokens_before.is_some() || compaction.tokens_after.is_some();
        let lost = [(told, Lost::CompactionDetails), (!compaction.preserved.is_empty(), Lost::KeptRecords)];
        lost.into_iter().filter(|(is, _)| *is).for_each(|(_, what)| self.drop(what));
    }

    /// What a message has beside its parts and has no place here.
    pub(super) fn lose_the_rest(&mut self, content: &Content) {
        let lost = [
            (!content.results.is_empty(), Lost::Record(Kind::ToolResult)),
            (!content.notes.is_empty(), Lost::RunNotes),
            (content.model.is_some(), Lost::Model),
            (content.usage.is_some(), Lost::Usage),
            (content.context.cwd.is_some() || content.context.git_branch.is_some(), Lost::Environment),
            (content.context.platform.is_some() || content.context.user_type.is_some(), Lost::Platform),
            (content.todos.is_some(), Lost::Todos),
            (content.thinking.is_some(), Lost::ThinkingMode),
            (content.sender.is_some(), Lost::Sender),
            (content.error.is_some(), Lost::Error),
            (!content.metadata.is_empty(), Lost::Metadata),
        ];
        lost.into_iter().filter(|(is, _)| *is).for_each(|(_, what)| self.drop(what));
    }
}

/// A line with its number, which is then its name.
fn numbered(line: Line, ordinal: u64) -> Line {
    let (mut fields, id) = (fields(line.value), RecordId(id_from_ordinal(ordinal)));
    let names = match line.names {
        Names::Link(_) | Names::Place => Names::Link(id),
        Names::Aside(_) | Names::Side => Names::Aside(id),
    };
    let mut value = Map::new();
    value.extend(fields.shift_remove_entry("timestamp"));
    value.insert("ordinal".to_owned(), ordinal.into());
    value.extend(fields);
    Line { value: value.into(), names }
}

/// Whether the `type` of a value names this item.
fn item_is(kind: Option<&Value>, item: Item) -> bool {
    kind.and_then(Value::as_str).and_then(Item::from_type) == Some(item)
}

/// Tokens as OpenAI counts them: the cached ones are part of the input. What is not known is not there.
fn tokens(usage: Usage) -> Value {
    let sum = |known: &[Option<u64>]| known.iter().flatten().fold(0_u64, |sum, more| sum.saturating_add(*more));
    let input = usage.input.map(|_| sum(&[usage.input, usage.cache_read, usage.cache_write]));
    let total = input.zip(usage.output).map(|(input, output)| input.saturating_add(output));
    let told = [
        ("input_tokens", input),
        ("cached_input_tokens", usage.cache_read),
        ("cache_write_input_tokens", usage.cache_write),
        ("output_tokens", usage.output),
        ("reasoning_output_tokens", usage.reasoning),
        ("total_tokens", total),
    ];
    let told = told.into_iter().filter_map(|(key, count)| Some((key.to_owned(), count?.into())));
    Value::Object(told.collect::<Map<_, _>>())
}
