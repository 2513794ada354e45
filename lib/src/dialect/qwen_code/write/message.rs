//! What was said, as records: prompts, answers, results, failures and notices.

use serde_json::{Value, json};

use super::part::{self, Speaker};
use super::{Record, Voice};
use crate::dialect::line_builder::{self, Fields, fields};
use crate::model::loss::Lost;
use crate::model::message::Part;
use crate::model::record::{Body, Content, Kind, Outcome, ToolNote, ToolResult, Usage};

impl Record<'_> {
    /// What was said, and has no place here.
    fn leave(&mut self, content: &Content) {
        self.losses().of_said(content);
        self.losses().dropped_if(content.context.user_type.is_some(), Lost::Platform);
        self.losses().dropped_if(content.todos.is_some(), Lost::Todos);
        self.losses().dropped_if(content.thinking.is_some(), Lost::ThinkingMode);
    }

    /// What is said to the model: the results first, each a record of its own, then the words.
    pub(super) fn prompt(&mut self, content: &Content, voice: Voice) {
        self.leave(content);
        self.losses().dropped_if(content.model.is_some(), Lost::Model);
        self.losses().dropped_if(content.usage.is_some(), Lost::Usage);
        if content.instructs {
            self.losses().renamed(Lost::Instruction);
        }
        let is_of_none = |note: &ToolNote| content.results.iter().all(|result| result.call_id != note.call_id);
        self.losses().dropped_if(content.notes.iter().any(is_of_none), Lost::RunNotes);
        for result in &content.results {
            let line = self.result(result, &content.notes);
            line.into_iter().for_each(|line| self.chain.own(line));
        }
        match self.spoken(content, voice) {
            Some(line) => self.chain.own(line),
            None => {
                let is_mute = content.parts.is_empty() && content.results.is_empty() && content.todos.is_none();
                self.losses().dropped_if(is_mute && content.thinking.is_none(), Lost::EmptyMessage);
            }
        }
    }

    fn spoken(&mut self, content: &Content, voice: Voice) -> Option<Fields> {
        let mut parts: Vec<Value> =
            content.parts.iter().filter_map(|part| part::of(part, Speaker::User, self.losses())).collect();
        self.losses().of_sender(content, &mut parts);
        let about = match voice {
            Voice::Person => json!({"type": "user", "provenance": "real_user"}),
            Voice::MidTurn => json!({"type": "user", "subtype": "mid_turn_user_message", "provenance": "real_user"}),
            Voice::Agent => json!({"type": "user", "subtype": "notification", "provenance": "system"}),
        };
        let mut line = fields(about);
        line.insert("message".to_owned(), json!({"role": "user", "parts": parts}));
        (!parts.is_empty()).then_some(line)
    }

    fn result(&mut self, result: &ToolResult, notes: &[ToolNote]) -> Option<Fields> {
        if result.preliminary {
            self.losses().dropped(Lost::PreliminaryResult);
            return None;
        }
        let response = part::function_response(result, self.losses());
        let mut run = fields(json!({"callId": result.call_id}));
        let noted = notes.iter().filter(|note| note.call_id == result.call_id);
        noted.for_each(|note| run.extend(note.about.clone()));
        run.extend(result.about.clone());
        let status = match &result.outcome {
            Outcome::Done => "success",
            Outcome::Failed(_) => "error",
            Outcome::Denied(_) => "cancelled",
        };
        run.insert("status".to_owned(), status.into());
        run.extend(result.duration_ms.map(|duration| ("durationMs".to_owned(), duration.into())));
        Some(fields(json!({
            "type": "tool_result",
            "provenance": "tool_result",
            "message": {"role": "user", "parts": [response]},
            "toolCallResult": run,
        })))
    }

    /// One record for each response of the model, behind it the results that its calls carry.
    pub(super) fn answer(&mut self, content: &Content) {
        self.leave(content);
        self.losses().of_sender(content, &mut []);
        self.losses().dropped_if(!content.notes.is_empty(), Lost::RunNotes);
        let mut results = content.results.clone();
        for parts in line_builder::responses(content) {
            let spoken = parts.iter().filter(|part| !matches!(part, Part::Steering(_)));
            let said_parts: Vec<Value> =
                spoken.filter_map(|part| part::of(part, Speaker::Model, self.losses())).collect();
            if !said_parts.is_empty() {
                let line = self.response(content, said_parts);
                self.chain.own(line);
            }
            results.extend(line_builder::carried(parts));
            for result in results.drain(..) {
                let line = self.result(&result, &[]);
                line.into_iter().for_each(|line| self.chain.follows(line));
            }
            for part in parts {
                let Part::Steering(steering) = part else { continue };
                self.losses().renamed(Lost::Steering);
                let spoken = Content { parts: steering.parts.clone(), ..Content::default() };
                let line = self.spoken(&spoken, Voice::MidTurn);
                line.into_iter().for_each(|line| self.chain.follows(line));
            }
        }
        if self.chain.is_empty() && content.usage.is_some() {
            let line = self.response(content, Vec::new());
            self.chain.own(line);
        }
        for result in results {
            let line = self.result(&result, &[]);
            line.into_iter().for_each(|line| self.chain.own(line));
        }
        let says_more = !content.parts.is_empty() || content.todos.is_some() || content.thinking.is_some();
        let is_mute = self.chain.is_empty() && !says_more;
        self.losses().dropped_if(is_mute, Lost::EmptyMessage);
    }

    fn response(&mut self, content: &Content, parts: Vec<Value>) -> Fields {
        let mut line = fields(json!({"type": "assistant", "provenance": "assistant_output"}));
        line.extend(content.model.as_deref().map(|model| ("model".to_owned(), model.into())));
        line.insert("message".to_owned(), json!({"role": "model", "parts": parts}));
        if let Some(usage) = content.usage {
            self.losses().dropped_if(usage.cache_write.is_some(), Lost::CacheTokens);
            line.insert("usageMetadata".to_owned(), tokens(usage));
        }
        line
    }

    /// What went wrong, as the end of a turn.
    pub(super) fn failure(&mut self, content: &Content, body: &Body) {
        self.leave(content);
        self.losses().of_sender(content, &mut []);
        self.losses().dropped_if(!content.results.is_empty() || !content.notes.is_empty(), Kind::ToolResult);
        self.losses().dropped_if(content.model.is_some(), Lost::Model);
        self.losses().dropped_if(content.usage.is_some(), Lost::Usage);
        if matches!(body, Body::Assistant(_)) {
            self.losses().renamed(Lost::Error);
        }
        if content.error.as_deref() != Some("turn_result") {
            self.losses().renamed(Lost::ErrorKind);
        }
        let words = line_builder::words(&content.parts, self.losses());
        let error = json!({"message": words, "code": content.error});
        self.notices("turn_result", json!({"state": "error", "error": error}));
    }

    /// The agent shows what a command showed; nothing else of its own is for people.
    pub(super) fn notice(&mut self, content: &Content) {
        self.leave(content);
        self.losses().of_sender(content, &mut []);
        let words = line_builder::words(&content.parts, self.losses());
        if words.is_empty() {
            self.losses().dropped_if(content.parts.is_empty() && content.todos.is_none(), Lost::EmptyMessage);
            return;
        }
        let shown = json!([{"type": "info", "text": words}]);
        self.notices("slash_command", json!({"phase": "result", "rawCommand": "", "outputHistoryItems": shown}));
    }
}

/// The tokens of a request: what was sent includes what a cache held.
fn tokens(usage: Usage) -> Value {
    let sent = match (usage.input, usage.cache_read) {
        (None, None) => None,
        (input, cached) => Some(input.unwrap_or(0).saturating_add(cached.unwrap_or(0))),
    };
    let total = sent.unwrap_or(0).checked_add(usage.output.unwrap_or(0));
    let mut tokens = Fields::new();
    for (key, count) in [
        ("promptTokenCount", sent),
        ("candidatesTokenCount", usage.output),
        ("thoughtsTokenCount", usage.reasoning),
        ("totalTokenCount", total.filter(|_| sent.is_some() || usage.output.is_some())),
        ("cachedContentTokenCount", usage.cache_read),
    ] {
        tokens.extend(count.map(|count| (key.to_owned(), count.into())));
    }
    tokens.into()
}
