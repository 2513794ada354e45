//! What was said, as lines: prompts, answers, results, failures and context.

use serde_json::{Map, Value, json};

use super::super::record_class::{THINKING_MODE, TODO};
use super::block::{self, Speaker};
use super::{NO_MODEL, Record, Voice};
use crate::dialect::line_builder::{self, Fields, fields};
use crate::model::loss::{Losses, Lost};
use crate::model::message::Part;
use crate::model::record::{Body, Content, Kind, Outcome, ToolResult, Usage};

impl Record<'_, '_> {
    /// What is said to the model: the results first, each a line of its own, then the words.
    pub(super) fn prompt(&mut self, said: &Content, voice: Voice) {
        self.losses().of_said(said);
        self.losses().dropped_if(!said.notes.is_empty(), Lost::RunNotes);
        self.losses().dropped_if(said.model.is_some(), Lost::Model);
        self.losses().dropped_if(said.usage.is_some(), Lost::Usage);
        if said.instructs {
            self.losses().renamed(Lost::Instruction);
        }
        let state = state(said, self.losses());
        let mut results: Vec<Fields> = said.results.iter().filter_map(|result| self.result(result)).collect();
        let content = self.content(said);
        let Some(content) = content else {
            match results.last_mut() {
                Some(last) => last.extend(state),
                None => return self.only_state(said, state),
            }
            return results.into_iter().for_each(|line| self.chain.own(line));
        };
        results.into_iter().for_each(|line| self.chain.own(line));
        let mut line = fields(json!({"type": "user", "message": {"role": "user", "content": content}}));
        if voice == Voice::Agent {
            line.insert("isMeta".to_owned(), true.into());
        }
        line.extend(state);
        self.chain.own(line);
    }

    /// A text alone is a string, as the agent writes it.
    pub(super) fn content(&mut self, said: &Content) -> Option<Value> {
        let mut blocks: Vec<Value> =
            said.parts.iter().filter_map(|part| block::of(part, Speaker::User, self.losses())).collect();
        self.losses().of_sender(said, &mut blocks);
        match blocks.as_mut_slice() {
            [] => None,
            [only] if only["type"] == "text" => Some(only["text"].take()),
            _ => Some(blocks.into()),
        }
    }

    pub(super) fn result(&mut self, result: &ToolResult) -> Option<Fields> {
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
                line.insert("toolUseResult".to_owned(), "User rejected tool use".into());
            }
            (Outcome::Failed(why), true) => _ = line.insert("toolUseResult".to_owned(), format!("Error: {why}").into()),
            (Outcome::Done, true) => {}
            (Outcome::Done | Outcome::Failed(_), false) => _ = line.insert("toolUseResult".to_owned(), run.into()),
        }
        let is_told = |key: &String| matches!(key.as_str(), "interrupted" | "exitCode" | "session");
        self.losses().dropped_if(!result.about.keys().all(is_told), Lost::RunNotes);
        Some(line)
    }

    /// A message without a word: an attachment that the agent passes over holds what stands beside it.
    pub(super) fn only_state(&mut self, content: &Content, state: Fields) {
        if state.is_empty() {
            self.losses().dropped_if(content.parts.is_empty() && content.results.is_empty(), Lost::EmptyMessage);
            return;
        }
        self.losses().renamed(Lost::EmptyMessage);
        let attachment = match content.todos.as_deref() {
            // An empty list would be one that nobody said.
            Some([]) | None => json!({"type": THINKING_MODE}),
            Some(todos) => json!({"type": TODO, "content": todos, "itemCount": todos.len()}),
        };
        let mut line = fields(json!({"type": "attachment", "attachment": attachment}));
        line.extend(state);
        self.chain.own(line);
    }

    /// One line for each block. Results that calls carry stand behind the response that made them.
    pub(super) fn answer(&mut self, said: &Content) {
        self.losses().of_said(said);
        self.losses().of_sender(said, &mut []);
        self.losses().dropped_if(!said.notes.is_empty(), Lost::RunNotes);
        let mut state = state(said, self.losses());
        let mut results = said.results.clone();
        for parts in line_builder::responses(said) {
            self.answers += 1;
            let (mut spoken, answer) = (Vec::new(), self.answers);
            for part in parts {
                if let Part::Steering(steering) = part {
                    spoken.push(&steering.parts);
                } else if let Some(block) = block::of(part, Speaker::Model, self.losses()) {
                    let mut line = self.block(said, vec![block], answer);
                    line.append(&mut state);
                    self.chain.own(line);
                }
            }
            results.extend(line_builder::carried(parts));
            let lines: Vec<Fields> = results.drain(..).filter_map(|result| self.result(&result)).collect();
            lines.into_iter().for_each(|line| self.chain.follows(line));
            for parts in spoken {
                self.losses().renamed(Lost::Steering);
                let spoken = Content { parts: parts.clone(), ..Content::default() };
                if let Some(content) = self.content(&spoken) {
                    let line = json!({"type": "user", "message": {"role": "user", "content": content}});
                    self.chain.follows(fields(line));
                }
            }
        }
        if self.chain.is_empty() && said.usage.is_some() {
            // A line of an answer that says something elsewhere; alone, it would be an answer of nothing.
            if self.draft.answer == self.draft.id {
                self.losses().dropped(Lost::Usage);
            } else {
                let line = self.block(said, Vec::new(), 1);
                self.chain.own(line);
            }
        }
        let lines: Vec<Fields> = results.iter().filter_map(|result| self.result(result)).collect();
        lines.into_iter().for_each(|line| self.chain.own(line));
        if !state.is_empty() {
            self.only_state(said, state);
        }
        let is_mute = said.parts.is_empty() && said.usage.is_none() && self.chain.is_empty();
        self.losses().dropped_if(is_mute, Lost::EmptyMessage);
    }

    /// A line of an answer; all lines of the same have its name, and repeat what it cost.
    pub(super) fn block(&mut self, said: &Content, content: Vec<Value>, answer: usize) -> Fields {
        let is_answer = matches!(self.draft.body, Body::Assistant(_));
        let name = if is_answer { self.draft.answer } else { self.draft.id };
        let name = if answer > 1 { format!("{name}-{answer}") } else { name.to_string() };
        let mut message =
            fields(json!({"id": format!("msg_{name}"), "type": "message", "role": "assistant", "content": content}));
        if let Some(model) = &said.model {
            message.insert("model".to_owned(), model.as_str().into());
        }
        if let Some(usage) = said.usage {
            message.insert("usage".to_owned(), tokens(usage, self.losses()));
        }
        fields(json!({"type": "assistant", "message": message, "requestId": format!("req_{name}")}))
    }

    /// What went wrong, as an answer that no model gave.
    pub(super) fn failure(&mut self, content: &Content) {
        self.losses().of_said(content);
        self.losses().of_sender(content, &mut []);
        let is_of_model = matches!(self.draft.body, Body::Assistant(_));
        self.losses().dropped_if(is_of_model && content.model.is_some(), Lost::Model);
        self.losses().dropped_if(is_of_model && content.usage.is_some(), Lost::Usage);
        self.losses().dropped_if(!content.results.is_empty() || !content.notes.is_empty(), Kind::ToolResult);
        if matches!(self.draft.body, Body::System(_)) {
            self.losses().renamed(Kind::System);
        }
        let state = state(content, self.losses());
        let mut words = line_builder::words(&content.parts, self.losses());
        if words.is_empty() {
            self.losses().synthesised(Lost::Text);
            words = content.error.clone().unwrap_or_default();
        }
        let nobody = Content { model: Some(NO_MODEL.to_owned()), ..Content::default() };
        let mut line = self.block(&nobody, vec![json!({"type": "text", "text": words})], 1);
        line.shift_remove("requestId");
        line.extend(fields(json!({"isApiErrorMessage": true, "error": content.error})));
        line.extend(state);
        self.chain.own(line);
    }

    /// Context that the agent itself makes anew.
    pub(super) fn context(&mut self, content: &Content) {
        self.losses().of_said(content);
        self.losses().of_sender(content, &mut []);
        let mut state = state(content, self.losses());
        let kept = content.parts.iter().find_map(|part| match part {
            Part::Data(data) if data.kind == "attachment" && data.data["type"].is_string() => Some(data.data.clone()),
            _ => None,
        });
        let shown = content.parts.iter().filter(|part| !matches!(part, Part::Data(data) if data.kind == "attachment"));
        let shown: Vec<Part> = shown.cloned().collect();
        let words = line_builder::words(&shown, self.losses());
        let results: Vec<Fields> = content.results.iter().filter_map(|result| self.result(result)).collect();
        results.into_iter().for_each(|line| self.chain.own(line));
        if words.is_empty() && kept.is_none() {
            return self.only_state(content, state);
        }
        // `rendered` would be sent again, as if it were still so.
        let attachment = kept.unwrap_or_else(|| json!({"type": "context", "content": words}));
        self.losses().renamed(Kind::Attachment);
        let mut line = fields(json!({"type": "attachment", "attachment": attachment}));
        line.append(&mut state);
        self.chain.own(line);
    }
}

/// The task list and the thinking mode, beside what is said.
pub(super) fn state(content: &Content, losses: &mut Losses) -> Fields {
    let mut state = Fields::new();
    if let Some(todos) = &content.todos {
        // Every prompt of the agent has an empty list, whatever the list is.
        losses.dropped_if(todos.is_empty(), Lost::Todos);
        state.extend((!todos.is_empty()).then(|| ("todos".to_owned(), json!(todos))));
    }
    if let Some(thinking) = &content.thinking {
        state.insert("thinkingMetadata".to_owned(), json!(thinking));
    }
    state
}

/// What is known of a run, as the reader knows it again.
fn run(result: &ToolResult) -> Map<String, Value> {
    let mut run = Map::new();
    if let Some(duration) = result.duration_ms {
        run.insert("durationMs".to_owned(), duration.into());
    }
    for key in ["interrupted", "exitCode"] {
        run.extend(result.about.get(key).map(|value| (key.to_owned(), value.clone())));
    }
    let agent = result
        .about
        .get("session")
        .and_then(Value::as_str)
        .and_then(|session| session.strip_prefix("agent-"));
    run.extend(agent.map(|agent| ("agentId".to_owned(), agent.into())));
    run
}

/// The tokens of a request. The API always tells what was sent and received.
fn tokens(usage: Usage, losses: &mut Losses) -> Value {
    if usage.input.is_none() || usage.output.is_none() {
        losses.synthesised(Lost::Usage);
    }
    let mut tokens = fields(json!({"input_tokens": usage.input.unwrap_or(0)}));
    for (key, count) in [
        ("cache_creation_input_tokens", usage.cache_write),
        ("cache_read_input_tokens", usage.cache_read),
        ("output_tokens", Some(usage.output.unwrap_or(0))),
    ] {
        tokens.extend(count.map(|count| (key.to_owned(), count.into())));
    }
    if let Some(thinking) = usage.reasoning {
        tokens.insert("output_tokens_details".to_owned(), json!({"thinking_tokens": thinking}));
    }
    tokens.into()
}
