//! Writes messages as records: prompts, answers, results, failures and notices.

use serde_json::{Map, Value, json};

use super::part::{self, Author as PartAuthor};
use super::{Author, Record};
use crate::dialect::line_builder::{self, Fields, Put, fields, message};
use crate::dialect::local::{MARK_FIELD, Mark, TYPED_FIELD, typed_beside};
use crate::model::loss::Lost;
use crate::model::message::Part;
use crate::model::record::{Body, Content, Kind, Outcome, ToolNote, ToolResult, Usage};

/// What a prompt can hold besides parts.
const HELD_BY_PROMPT: [Lost; 5] =
    [Lost::Record(Kind::ToolResult), Lost::RunNotes, Lost::Environment, Lost::Sender, Lost::Error];

/// What an answer can hold besides parts.
const HELD_BY_ANSWER: [Lost; 6] =
    [Lost::Record(Kind::ToolResult), Lost::Model, Lost::Usage, Lost::Environment, Lost::Sender, Lost::Error];

impl Record {
    /// A message to the model: the results first, each a record of its own, then the text.
    pub(super) fn prompt(&mut self, content: &Content, author: Author) {
        self.losses().dropped_besides_parts(content, &HELD_BY_PROMPT);
        self.losses().renamed_if(content.instructs, Lost::Instruction);
        let is_of_none = |note: &ToolNote| content.results.iter().all(|result| result.call_id != note.call_id);
        self.losses().dropped_if(content.notes.iter().any(is_of_none), Lost::RunNotes);
        for result in &content.results {
            let line = self.result(result, &content.notes);
            self.chain.own(line);
        }
        let line = self.message(content, author);
        let is_empty = content.parts.is_empty() && content.results.is_empty();
        self.losses().dropped_if(line.is_none() && is_empty && !has_state(content), Lost::EmptyMessage);
        self.chain.own(line);
    }

    fn message(&mut self, content: &Content, author: Author) -> Option<Fields> {
        let mut parts: Vec<Value> = content
            .parts
            .iter()
            .filter_map(|part| part::from_part(part, PartAuthor::User, self.losses()))
            .collect();
        self.losses().of_sender(content, &mut parts);
        let mut line = fields(match author {
            Author::Person => json!({"type": "user", "provenance": "real_user"}),
            Author::PersonMidTurn => {
                json!({"type": "user", "subtype": "mid_turn_user_message", "provenance": "real_user"})
            }
            Author::Local => {
                let mark = content.display.as_ref().map_or(Mark::Local, Mark::of);
                json!({"type": "user", "subtype": "notification", "provenance": "system", MARK_FIELD: mark.name()})
            }
            Author::Agent => json!({"type": "user", "subtype": "notification", "provenance": "system"}),
        });
        line.put_some(TYPED_FIELD, typed_beside(content));
        let has_parts = !parts.is_empty();
        line.put("message", message("user", "parts", parts.into()));
        has_parts.then_some(line)
    }

    fn result(&mut self, result: &ToolResult, notes: &[ToolNote]) -> Option<Fields> {
        if result.preliminary {
            self.losses().dropped(Lost::PreliminaryResult);
            return None;
        }
        let response = part::function_response(result, self.losses());
        let mut run = fields(json!({"callId": result.call_id}));
        let notes = notes.iter().filter(|note| note.call_id == result.call_id);
        notes.for_each(|note| run.extend(note.about.clone()));
        run.extend(result.about.clone());
        let status = match &result.outcome {
            Outcome::Done => "success",
            Outcome::Failed(_) => "error",
            Outcome::Denied(_) => "cancelled",
        };
        run.put("status", status);
        run.put_some("durationMs", result.duration_ms);
        Some(fields(json!({
            "type": "tool_result",
            "provenance": "tool_result",
            "message": {"role": "user", "parts": [response]},
            "toolCallResult": run,
        })))
    }

    /// One record for each response of the model, and after it the results that are stored in its calls.
    pub(super) fn answer(&mut self, content: &Content) {
        self.losses().dropped_besides_parts(content, &HELD_BY_ANSWER);
        self.losses().of_sender(content, &mut []);
        let mut results = content.results.clone();
        for parts in line_builder::responses(content) {
            let own = parts.iter().filter(|part| !matches!(part, Part::Steering(_)));
            let own: Vec<Value> =
                own.filter_map(|part| part::from_part(part, PartAuthor::Model, self.losses())).collect();
            if !own.is_empty() {
                let line = self.response(content, own);
                self.chain.own([line]);
            }
            results.extend(line_builder::stored_results(parts));
            for result in results.drain(..) {
                let line = self.result(&result, &[]);
                self.chain.follows(line);
            }
            for part in parts {
                let Part::Steering(steering) = part else { continue };
                self.losses().renamed(Lost::Steering);
                let line = self.message(&Content::from(steering.parts.clone()), Author::PersonMidTurn);
                self.chain.follows(line);
            }
        }
        if self.chain.is_empty() && content.usage.is_some() {
            let line = self.response(content, Vec::new());
            self.chain.own([line]);
        }
        for result in results {
            let line = self.result(&result, &[]);
            self.chain.own(line);
        }
        let is_empty = self.chain.is_empty() && content.parts.is_empty() && !has_state(content);
        self.losses().dropped_if(is_empty, Lost::EmptyMessage);
    }

    fn response(&mut self, content: &Content, parts: Vec<Value>) -> Fields {
        let mut line = fields(json!({"type": "assistant", "provenance": "assistant_output"}));
        line.put_some("model", content.model.as_deref());
        line.put("message", message("model", "parts", parts.into()));
        let has_cache_write = content.usage.is_some_and(|usage| usage.cache_write.is_some());
        self.losses().dropped_if(has_cache_write, Lost::CacheTokens);
        line.put_some("usageMetadata", content.usage.map(tokens));
        line
    }

    /// A failure, as the end of a turn.
    pub(super) fn failure(&mut self, content: &Content, body: &Body) {
        self.losses().dropped_besides_parts(content, &HELD_BY_PROMPT);
        self.losses().of_sender(content, &mut []);
        self.losses().dropped_if(!content.results.is_empty() || !content.notes.is_empty(), Kind::ToolResult);
        self.losses().renamed_if(matches!(body, Body::Assistant(_)), Lost::Error);
        self.losses().renamed_if(content.error.as_deref() != Some("turn_result"), Lost::ErrorKind);
        let text = line_builder::joined_text(&content.parts, self.losses());
        let error = json!({"message": text, "code": content.error});
        self.system("turn_result", json!({"state": "error", "error": error}));
    }

    /// The agent shows people the outputs of commands, and no other notice of its own.
    pub(super) fn notice(&mut self, content: &Content) {
        self.losses().dropped_besides_parts(content, &[&HELD_BY_PROMPT[..], &HELD_BY_ANSWER].concat());
        self.losses().of_sender(content, &mut []);
        let text = line_builder::joined_text(&content.parts, self.losses());
        if text.is_empty() {
            let is_empty = content.parts.is_empty() && content.todos.is_none();
            return self.losses().dropped_if(is_empty, Lost::EmptyMessage);
        }
        let shown = json!([{"type": "info", "text": text}]);
        self.system("slash_command", json!({"phase": "result", "rawCommand": "", "outputHistoryItems": shown}));
    }
}

/// Whether a message has a task list or a thinking mode.
fn has_state(content: &Content) -> bool {
    content.todos.is_some() || content.thinking.is_some()
}

/// The tokens of a request: the prompt includes cached tokens.
fn tokens(usage: Usage) -> Value {
    let prompt = match (usage.input, usage.cache_read) {
        (None, None) => None,
        (input, cached) => Some(input.unwrap_or(0).saturating_add(cached.unwrap_or(0))),
    };
    let total = prompt.unwrap_or(0).checked_add(usage.output.unwrap_or(0));
    let mut tokens = Map::new();
    tokens.put_counts([
        ("promptTokenCount", prompt),
        ("candidatesTokenCount", usage.output),
        ("thoughtsTokenCount", usage.reasoning),
        ("totalTokenCount", total.filter(|_| prompt.is_some() || usage.output.is_some())),
        ("cachedContentTokenCount", usage.cache_read),
    ]);
    tokens.into()
}
