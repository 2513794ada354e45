//! Writes messages as lines: prompts, answers, results, failures, notices and context.

use serde_json::{Map, Value, json};

use super::super::record_class::{THINKING_MODE, TODO};
use super::super::{NO_MODEL, local};
use super::block::{self, Author as BlockAuthor};
use super::{Author, Record};
use crate::dialect::line_builder::{self, Fields, Put, fields, message};
use crate::dialect::local::{MARK_FIELD, Mark, TYPED_FIELD, typed_beside};
use crate::model::loss::{Losses, Lost};
use crate::model::message::Part;
use crate::model::record::{Body, Content, Kind, Outcome, ToolResult, Usage};

/// What every line can hold besides parts.
const HELD: [Lost; 8] = [
    Lost::Record(Kind::ToolResult),
    Lost::Model,
    Lost::Usage,
    Lost::Environment,
    Lost::Platform,
    Lost::Todos,
    Lost::ThinkingMode,
    Lost::Error,
];

impl Record<'_> {
    /// Drops what no line can hold, and returns the fields for the task list and the thinking mode.
    fn state(&mut self, content: &Content, held: &[Lost]) -> Fields {
        self.losses().dropped_besides_parts(content, &[&HELD[..], held].concat());
        self.losses().dropped_if(content.context.platform.is_some(), Lost::Platform);
        let mut state = Fields::new();
        if let Some(todos) = &content.todos {
            // Every prompt of the agent has an empty list, whatever the list is.
            self.losses().dropped_if(todos.is_empty(), Lost::Todos);
            state.put_some("todos", (!todos.is_empty()).then(|| json!(todos)));
        }
        state.put_some("thinkingMetadata", content.thinking.as_ref().map(|thinking| json!(thinking)));
        state
    }

    /// A message to the model: the results first, each a line of its own, then the text.
    pub(super) fn prompt(&mut self, content: &Content, author: Author) {
        let state = self.state(content, &[Lost::Sender]);
        self.losses().dropped_if(content.model.is_some(), Lost::Model);
        self.losses().dropped_if(content.usage.is_some(), Lost::Usage);
        self.losses().renamed_if(content.instructs, Lost::Instruction);
        let mut lines: Vec<Fields> = content.results.iter().filter_map(|result| self.result(result)).collect();
        let (display, typed) = (content.display.as_ref(), typed_beside(content));
        match self.message_content(content) {
            Some(content) => {
                // A person may type what the agent writes itself.
                let is_ambiguous = content.as_str().is_some_and(|text| local::display(text).is_some());
                let mut line = prompt_line(content);
                let is_typed = is_ambiguous && author == Author::Person;
                line.put_some("origin", is_typed.then(|| json!({"kind": "human"})));
                if let (Author::Local, false, Some(display)) = (author, is_ambiguous, display) {
                    line.put(MARK_FIELD, Mark::of(display).name());
                }
                line.put_some(TYPED_FIELD, typed);
                line.put_some("isMeta", (author == Author::Agent).then_some(true));
                lines.push(line);
            }
            None if lines.is_empty() => return self.only_state(content, state),
            None => {}
        }
        if let Some(line) = lines.last_mut() {
            line.extend(state);
        }
        self.chain.own(lines);
    }

    /// A single text is a string, as the agent writes it.
    pub(super) fn message_content(&mut self, content: &Content) -> Option<Value> {
        let mut blocks: Vec<Value> = content
            .parts
            .iter()
            .filter_map(|part| block::from_part(part, BlockAuthor::User, self.losses()))
            .collect();
        self.losses().of_sender(content, &mut blocks);
        match blocks.as_mut_slice() {
            [] => None,
            [only] if only["type"] == "text" => Some(only["text"].take()),
            _ => Some(blocks.into()),
        }
    }

    fn result(&mut self, result: &ToolResult) -> Option<Fields> {
        if result.preliminary {
            self.losses().dropped(Lost::PreliminaryResult);
            return None;
        }
        let block = block::tool_result(result, self.losses());
        let mut line = fields(json!({"type": "user", "message": {"role": "user", "content": [block]}}));
        let run = run(result);
        match (&result.outcome, run.is_empty()) {
            (Outcome::Denied(_), is_all) => {
                self.losses().dropped_if(!is_all, Lost::RunNotes);
                line.put("toolUseResult", "User rejected tool use");
            }
            (Outcome::Failed(reason), true) => line.put("toolUseResult", format!("Error: {reason}")),
            (Outcome::Done, true) => {}
            (Outcome::Done | Outcome::Failed(_), false) => line.put("toolUseResult", run),
        }
        let is_written = |key: &String| matches!(key.as_str(), "interrupted" | "exitCode" | "session");
        self.losses().dropped_if(!result.about.keys().all(is_written), Lost::RunNotes);
        Some(line)
    }

    /// A message without text: its task list and thinking mode are in an attachment that the agent ignores.
    fn only_state(&mut self, content: &Content, state: Fields) {
        if state.is_empty() {
            self.losses().dropped_if(content.parts.is_empty() && content.results.is_empty(), Lost::EmptyMessage);
            return;
        }
        self.losses().renamed(Lost::EmptyMessage);
        let attachment = match content.todos.as_deref() {
            // An empty list would be read as a list that nobody wrote.
            Some([]) | None => json!({"type": THINKING_MODE}),
            Some(todos) => json!({"type": TODO, "content": todos, "itemCount": todos.len()}),
        };
        self.own_line(json!({"type": "attachment", "attachment": attachment}), state);
    }

    fn own_line(&mut self, line: Value, state: Fields) {
        let mut line = fields(line);
        line.extend(state);
        self.chain.own([line]);
    }

    /// One line for each block. Results that are stored in calls follow the response that made the calls.
    pub(super) fn answer(&mut self, content: &Content) {
        let mut state = self.state(content, &[Lost::Sender]);
        self.losses().of_sender(content, &mut []);
        let mut results = content.results.clone();
        for parts in line_builder::responses(content) {
            self.answers += 1;
            let (mut steering, answer) = (Vec::new(), self.answers);
            for part in parts {
                if let Part::Steering(message) = part {
                    steering.push(Content::from(message.parts.clone()));
                } else if let Some(block) = block::from_part(part, BlockAuthor::Model, self.losses()) {
                    let mut line = self.block(content, vec![block], answer);
                    line.append(&mut state);
                    self.chain.own([line]);
                }
            }
            results.extend(line_builder::stored_results(parts));
            let lines: Vec<Fields> = results.drain(..).filter_map(|result| self.result(&result)).collect();
            self.chain.follows(lines);
            for message in steering {
                self.losses().renamed(Lost::Steering);
                let line = self.message_content(&message).map(prompt_line);
                self.chain.follows(line);
            }
        }
        if self.chain.is_empty() && content.usage.is_some() {
            // The usage of an answer whose blocks are in other records. Alone, the line would be an empty answer.
            if self.draft.answer == self.draft.id {
                self.losses().dropped(Lost::Usage);
            } else {
                let line = self.block(content, Vec::new(), 1);
                self.chain.own([line]);
            }
        }
        let lines: Vec<Fields> = results.iter().filter_map(|result| self.result(result)).collect();
        self.chain.own(lines);
        if !state.is_empty() {
            self.only_state(content, state);
        }
        let is_empty = content.parts.is_empty() && content.usage.is_none() && self.chain.is_empty();
        self.losses().dropped_if(is_empty, Lost::EmptyMessage);
    }

    /// A line of an answer; all lines of an answer have its id and repeat its usage.
    fn block(&mut self, content: &Content, blocks: Vec<Value>, answer: usize) -> Fields {
        let is_answer = matches!(self.draft.body, Body::Assistant(_));
        let id = if is_answer { self.draft.answer } else { self.draft.id };
        let id = if answer > 1 { format!("{id}-{answer}") } else { id.to_string() };
        let mut message =
            fields(json!({"id": format!("msg_{id}"), "type": "message", "role": "assistant", "content": blocks}));
        message.put_some("model", content.model.as_deref());
        message.put_some("usage", content.usage.map(|usage| tokens(usage, self.losses())));
        fields(json!({"type": "assistant", "message": message, "requestId": format!("req_{id}")}))
    }

    /// A failure, as an answer without a model.
    pub(super) fn failure(&mut self, content: &Content) {
        let state = self.state(content, &[Lost::Sender, Lost::RunNotes]);
        self.losses().of_sender(content, &mut []);
        let is_of_model = matches!(self.draft.body, Body::Assistant(_));
        self.losses().dropped_if(is_of_model && content.model.is_some(), Lost::Model);
        self.losses().dropped_if(is_of_model && content.usage.is_some(), Lost::Usage);
        self.losses().dropped_if(!content.results.is_empty() || !content.notes.is_empty(), Kind::ToolResult);
        self.losses().renamed_if(!is_of_model, Kind::System);
        let mut text = line_builder::joined_text(&content.parts, self.losses());
        if text.is_empty() {
            self.losses().synthesised(Lost::Text);
            text = content.error.clone().unwrap_or_default();
        }
        let without_model = Content { model: Some(NO_MODEL.to_owned()), ..Content::default() };
        let mut line = self.block(&without_model, vec![json!({"type": "text", "text": text})], 1);
        line.shift_remove("requestId");
        line.extend(fields(json!({"isApiErrorMessage": true, "error": content.error})));
        self.own_line(line.into(), state);
    }

    pub(super) fn notice(&mut self, content: &Content) {
        let state = self.state(content, &[Lost::Sender, Lost::RunNotes]);
        self.losses().of_sender(content, &mut []);
        let text = line_builder::joined_text(&content.parts, self.losses());
        if text.is_empty() {
            return self.only_state(content, state);
        }
        self.own_line(
            json!({"type": "system", "subtype": "informational", "content": text, "isMeta": false, "level": "info"}),
            state,
        );
    }

    /// Context that the agent generates anew.
    pub(super) fn context(&mut self, content: &Content) {
        let state = self.state(content, &[Lost::Sender, Lost::RunNotes]);
        self.losses().of_sender(content, &mut []);
        let is_attachment = |part: &&Part| matches!(part, Part::Data(data) if data.kind == "attachment");
        let (attachments, shown): (Vec<&Part>, Vec<&Part>) = content.parts.iter().partition(is_attachment);
        let original = attachments.into_iter().find_map(|part| match part {
            Part::Data(data) if data.data["type"].is_string() => Some(data.data.clone()),
            _ => None,
        });
        let text = line_builder::joined_text(&shown.into_iter().cloned().collect::<Vec<_>>(), self.losses());
        let results: Vec<Fields> = content.results.iter().filter_map(|result| self.result(result)).collect();
        self.chain.own(results);
        if text.is_empty() && original.is_none() {
            return self.only_state(content, state);
        }
        // `rendered` would be sent again, although it may no longer be true.
        let attachment = original.unwrap_or_else(|| json!({"type": "context", "content": text}));
        self.losses().renamed(Kind::Attachment);
        self.own_line(json!({"type": "attachment", "attachment": attachment}), state);
    }
}

fn prompt_line(content: Value) -> Fields {
    let mut line = fields(json!({"type": "user"}));
    line.put("message", message("user", "content", content));
    line
}

/// The facts about a run that the reader understands.
fn run(result: &ToolResult) -> Map<String, Value> {
    let mut run = Map::new();
    run.put_some("durationMs", result.duration_ms);
    for key in ["interrupted", "exitCode"] {
        run.put_some(key, result.about.get(key).cloned());
    }
    let session = result.about.get("session").and_then(Value::as_str);
    run.put_some("agentId", session.and_then(|session| session.strip_prefix("agent-")));
    run
}

/// The tokens of a request. The API always counts input and output.
fn tokens(usage: Usage, losses: &mut Losses) -> Value {
    losses.synthesised_if(usage.input.is_none() || usage.output.is_none(), Lost::Usage);
    let mut tokens = Map::new();
    tokens.put_counts([
        ("input_tokens", Some(usage.input.unwrap_or(0))),
        ("cache_creation_input_tokens", usage.cache_write),
        ("cache_read_input_tokens", usage.cache_read),
        ("output_tokens", Some(usage.output.unwrap_or(0))),
    ]);
    tokens.put_some("output_tokens_details", usage.reasoning.map(|thinking| json!({"thinking_tokens": thinking})));
    tokens.into()
}
