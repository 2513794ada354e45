//! What `claude -p --output-format stream-json` prints, as calls of a recorder.
//!
//! A line has a content block or two; those with one message id are one answer. With `--include-partial-messages` the words come
//! before their block does: they are recorded as they come, and the block then says only what is new.

use std::collections::VecDeque;

use serde_json::{Map, Value};

use super::fields::Fields;
use super::{Heard, Refused, Saying, own, words};
use crate::dialect::{self, claude_code};
use crate::model::message::Part;
use crate::model::record::{Body, Compaction, Content, Usage};
use crate::write::recorder::Delta;

/// The types of lines that are looked into; what else has a `session_id` is named once.
const KINDS: [&str; 5] = ["system", "assistant", "user", "result", "stream_event"];

/// Types of lines that say nothing of the conversation, and have not always a mark of the session.
const NOTICES: [&str; 8] = [
    "rate_limit_event",
    "control_request",
    "control_response",
    "control_cancel_request",
    "keep_alive",
    "tool_progress",
    "tool_use_summary",
    "auth_status",
];

/// What every line of a session has.
const MARKS: [&str; 2] = ["session_id", "uuid"];

#[derive(Default)]
pub(super) struct Stream {
    /// The message that the model is at.
    message: Option<String>,
    usage: Option<Usage>,
    /// What the answers since the last result cost.
    before: Usage,
    /// Blocks whose words came before them; the last may still go on.
    told: VecDeque<Told>,
}

struct Told {
    is_reasoning: bool,
    text: String,
    is_open: bool,
}

impl Stream {
    /// Whether this is a line of the stream.
    pub(super) fn knows(&self, kind: &str, line: &Map<String, Value>) -> bool {
        let is_marked = || MARKS.iter().any(|mark| line.get(*mark).is_some_and(Value::is_string));
        KINDS.contains(&kind) || own::word_in(line).is_none() && (NOTICES.contains(&kind) || is_marked())
    }

    pub(super) fn hear(&mut self, mut line: Map<String, Value>, heard: &mut Heard) -> Result<(), Refused> {
        let kind = line.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        if line.get("parent_tool_use_id").is_some_and(Value::is_string) {
            heard.notes.push("What sub-agents say is not recorded.".to_owned());
            return Ok(());
        }
        match kind.as_str() {
            "assistant" => self.answer(line, heard)?,
            "user" => {
                if let Some(run) = line.shift_remove("tool_use_result") {
                    line.insert("toolUseResult".to_owned(), run);
                }
                self.user(&line, heard)?;
            }
            "stream_event" => {
                let event = Fields(line).object(&["event"])?;
                self.event(event.ok_or_else(|| Refused::because("stream_event: event is missing"))?, heard);
            }
            "result" => self.result(Fields(line), heard)?,
            "system" => self.system(Fields(line), heard)?,
            _ => heard.notes.push(format!("Lines of type {kind} are not recorded.")),
        }
        Ok(())
    }

    fn answer(&mut self, line: Map<String, Value>, heard: &mut Heard) -> Result<(), Refused> {
        let message = spoken("assistant", &line)?;
        let Body::Assistant(content) = body(&line) else {
            return Err(Refused::because("assistant: it has no message"));
        };
        let id = message.get("id").and_then(Value::as_str);
        self.go_to(id, content.model.clone(), heard);
        // Each block repeats what the whole cost, more or less finished.
        if content.usage.map(|usage| usage.output) >= self.usage.map(|usage| usage.output) {
            self.usage = content.usage;
        }
        if content.error.is_some() {
            self.finish(heard);
            heard.body(Body::System(content));
            return Ok(());
        }
        for part in content.parts {
            self.block(part, heard);
        }
        if let Some(todos) = content.todos {
            heard.say(Saying::Delta(Delta::About(Box::new(Content { todos: Some(todos), ..Content::default() }))));
        }
        Ok(())
    }

    /// The answer of this message goes on, or begins.
    fn go_to(&mut self, id: Option<&str>, model: Option<String>, heard: &mut Heard) {
        if id.is_some() && self.message.as_deref() == id {
            return;
        }
        self.finish(heard);
        self.message = id.map(str::to_owned);
        heard.sayings.extend(model.map(Delta::Model).map(Saying::Delta));
    }

    /// A whole block, of which the words may have been said.
    fn block(&mut self, part: Part, heard: &mut Heard) {
        let words = match &part {
            Part::Text(text) => Some((false, text.text.as_str(), text.provider_metadata.clone())),
            Part::Reasoning(text) => Some((true, text.text.as_str(), text.provider_metadata.clone())),
            _ => None,
        };
        if let (Some((is_reasoning, text, about)), Some(told)) = (words, self.told.front())
            && told.is_reasoning == is_reasoning
            && let Some(rest) = text.strip_prefix(told.text.as_str())
        {
            if told.is_open {
                heard.sayings.extend(words_of(is_reasoning, rest));
                heard.say(Saying::Delta(Delta::End(about)));
            }
            self.told.pop_front();
            return;
        }
        self.end_told(heard);
        heard.say(Saying::Delta(Delta::Part(part)));
    }

    fn user(&mut self, line: &Map<String, Value>, heard: &mut Heard) -> Result<(), Refused> {
        match spoken("user", line)?.get("content") {
            Some(Value::String(text)) if text.is_empty() => return Err(Refused::because("user: nothing is said")),
            Some(Value::Array(blocks)) if blocks.is_empty() => return Err(Refused::because("user: nothing is said")),
            _ => {}
        }
        match body(line) {
            // The model may go on with the same answer while its tools run.
            Body::ToolResult(content) => {
                let (parts, results) = (content.parts, content.results);
                results.into_iter().for_each(|result| heard.say(Saying::Result(Box::new(result))));
                if !parts.is_empty() {
                    heard.body(Body::User(Content::from(parts)));
                }
            }
            body @ (Body::User(_)
            | Body::Assistant(_)
            | Body::Attachment(_)
            | Body::System(_)
            | Body::Snapshot(_)
            | Body::Title(_)
            | Body::Compaction(_)
            | Body::Rewind(_)
            | Body::Restore(_)
            | Body::Header(_)
            | Body::Other(_)) => {
                self.finish(heard);
                heard.body(body);
            }
        }
        Ok(())
    }

    /// A piece of what the API itself sends.
    fn event(&mut self, event: Map<String, Value>, heard: &mut Heard) {
        let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let empty = Value::Null;
        match event.get("type").and_then(Value::as_str) {
            Some("message_start") => {
                let message = event.get("message").unwrap_or(&empty);
                let id = text(message, "id");
                self.go_to(id.as_deref(), text(message, "model"), heard);
                self.know(message.get("usage"));
            }
            Some("content_block_start") => {
                let block = event.get("content_block").unwrap_or(&empty);
                self.end_told(heard);
                let is_reasoning = match text(block, "type").as_deref() {
                    Some("text") => false,
                    Some("thinking") => true,
                    _ => return,
                };
                self.told.push_back(Told { is_reasoning, text: String::new(), is_open: true });
            }
            Some("content_block_delta") => {
                let delta = event.get("delta").unwrap_or(&empty);
                let more = text(delta, "text").or_else(|| text(delta, "thinking"));
                let open = self.told.back_mut().filter(|told| told.is_open);
                if let (Some(more), Some(open)) = (more, open) {
                    open.text.push_str(&more);
                    heard.sayings.extend(words_of(open.is_reasoning, &more));
                }
            }
            Some("message_delta") => self.know(event.get("usage")),
            // What ends is told by the block itself, and what it costs by the message.
            _ => {}
        }
    }

    fn know(&mut self, usage: Option<&Value>) {
        let told = usage.and_then(|usage| words::usage(usage.clone(), &mut Heard::default()).ok());
        let Some(told) = told else { return };
        let known = self.usage.unwrap_or_default();
        self.usage = Some(Usage {
            input: told.input.or(known.input),
            output: told.output.max(known.output),
            cache_read: told.cache_read.or(known.cache_read),
            cache_write: told.cache_write.or(known.cache_write),
            reasoning: told.reasoning.or(known.reasoning),
        });
    }

    /// The turn is over: what it cost in all, and whether it failed.
    fn result(&mut self, mut fields: Fields, heard: &mut Heard) -> Result<(), Refused> {
        let usage = fields.any(&["usage"]).and_then(|usage| words::usage(usage, &mut Heard::default()).ok());
        // Blocks tell what an answer had cost when they were made; all together is known now.
        if let Some(last) = usage.and_then(|usage| usage.since(self.before)).filter(|_| self.message.is_some()) {
            self.usage = Some(last);
        }
        self.finish(heard);
        self.before = Usage::default();
        if fields.flag(&["is_error"])? == Some(true) {
            let kind = fields.text(&["subtype"])?.filter(|kind| kind != "success");
            let text = fields.text(&["result", "error"])?.unwrap_or_else(|| "The turn failed.".to_owned());
            let error = Some(kind.unwrap_or_else(|| "error".to_owned()));
            heard.body(Body::System(Content { error, ..Content::from(text) }));
        }
        Ok(())
    }

    fn system(&mut self, mut fields: Fields, heard: &mut Heard) -> Result<(), Refused> {
        match fields.text(&["subtype"])?.as_deref() {
            Some("init") => self.finish(heard),
            Some("compact_boundary") => {
                self.finish(heard);
                let mut about = Fields(fields.object(&["compact_metadata", "compactMetadata"])?.unwrap_or_default());
                heard.body(Body::Compaction(Compaction {
                    trigger: about.text(&["trigger"])?,
                    tokens_before: about.count(&["pre_tokens", "preTokens"])?,
                    cuts: true,
                    ..Compaction::default()
                }));
            }
            other => {
                let kind = other.unwrap_or("system");
                heard.notes.push(format!("Notices of type {kind} are not recorded."));
            }
        }
        Ok(())
    }

    /// A block whose words came and that goes on no more.
    fn end_told(&mut self, heard: &mut Heard) {
        if let Some(last) = self.told.back_mut().filter(|told| told.is_open) {
            last.is_open = false;
            if !last.text.is_empty() {
                heard.say(Saying::Delta(Delta::End(None)));
            }
        }
    }

    /// The stream is over, wherever it was.
    pub(super) fn end(&mut self, heard: &mut Heard) {
        self.finish(heard);
    }

    fn finish(&mut self, heard: &mut Heard) {
        self.end_told(heard);
        self.told.clear();
        let usage = self.usage.take();
        if self.message.take().is_some() {
            self.before.add(usage.unwrap_or_default());
            heard.say(Saying::EndStep(usage));
        }
    }
}

fn words_of(is_reasoning: bool, text: &str) -> Option<Saying> {
    let delta = if is_reasoning { Delta::Reasoning(text.to_owned()) } else { Delta::Text(text.to_owned()) };
    (!text.is_empty()).then_some(Saying::Delta(delta))
}

/// The message of a line, which has a content.
fn spoken<'l>(kind: &str, line: &'l Map<String, Value>) -> Result<&'l Value, Refused> {
    let message = line.get("message").filter(|message| message.is_object());
    let message = message.ok_or_else(|| Refused(format!("{kind}: it has no message")))?;
    match message.get("content") {
        Some(Value::String(_) | Value::Array(_)) => Ok(message),
        _ => Err(Refused(format!("{kind}: its message has no content"))),
    }
}

/// What a line says: it is what Claude Code also writes to its log.
fn body(line: &Map<String, Value>) -> Body {
    dialect::Dialect::body(&claude_code::ClaudeCode, &Value::Object(line.clone()).to_string())
}
