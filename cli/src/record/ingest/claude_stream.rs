//! The output of `claude -p --output-format stream-json`, as ops.
//!
//! A line has one or more content blocks; those with the same message id are one answer. With `--include-partial-messages` the
//! text comes before its block: it is recorded as it comes, and the block adds only what is new.

use std::collections::VecDeque;

use scrollback::dialect::{ClaudeCode, Dialect};
use scrollback::model::{Body, Compaction, Content, Part, Usage};
use scrollback::write::Delta;
use serde_json::{Map, Value};

use super::fields::Fields;
use super::{Op, Parsed, Refused, native_lines, usage};

/// The types of lines that are recorded; other lines with a `session_id` are noted once.
const KINDS: [&str; 5] = ["system", "assistant", "user", "result", "stream_event"];

/// Types of lines that are not part of the conversation and may lack a `session_id`.
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

/// The model of what the agent itself says, such as an error of the API.
const OWN_MODEL: &str = "<synthetic>";

/// Fields of every line of a session.
const SESSION_FIELDS: [&str; 2] = ["session_id", "uuid"];

#[derive(Default)]
pub(super) struct Stream {
    /// The id of the current message.
    message: Option<String>,
    usage: Option<Usage>,
    /// The token counts of complete answers since the last result.
    turn_usage: Usage,
    /// Blocks whose text came before them; the last may still be open.
    partial: VecDeque<Partial>,
    /// What the agent said itself. If the turn failed, it is the error that the result repeats, and no answer of the model.
    own_words: Option<String>,
    /// The state before the last line.
    before: Before,
}

struct Partial {
    is_reasoning: bool,
    text: String,
    is_open: bool,
}

/// The state before the last line. Texts of the model may be long, and are not copied for each line.
#[derive(Default)]
struct Before {
    message: Option<String>,
    usage: Option<Usage>,
    turn_usage: Usage,
    own_words: Option<String>,
    /// How many partial blocks there were.
    count: usize,
    /// The length of the last one's text, and whether it was open.
    last: Option<(usize, bool)>,
    /// Those that the line removed; they were the first.
    removed: VecDeque<Partial>,
}

impl Stream {
    /// Remembers what is needed to undo the line that follows.
    pub(super) fn begin_line(&mut self) {
        self.before = Before {
            message: self.message.clone(),
            usage: self.usage,
            turn_usage: self.turn_usage,
            own_words: self.own_words.clone(),
            count: self.partial.len(),
            last: self.partial.back().map(|last| (last.text.len(), last.is_open)),
            removed: VecDeque::new(),
        };
    }

    /// Undoes the last line.
    pub(super) fn undo(&mut self) {
        let Before { message, usage, turn_usage, own_words, count, last, removed } = std::mem::take(&mut self.before);
        let after = std::mem::replace(&mut self.partial, removed);
        self.partial.extend(after);
        self.partial.truncate(count);
        if let (Some(partial), Some((length, is_open))) = (self.partial.back_mut(), last) {
            partial.text.truncate(length);
            partial.is_open = is_open;
        }
        (self.message, self.usage, self.turn_usage, self.own_words) = (message, usage, turn_usage, own_words);
        self.begin_line();
    }

    /// Whether a line belongs to this stream.
    pub(super) fn knows(&self, kind: &str, line: &Map<String, Value>) -> bool {
        let has_session = || SESSION_FIELDS.iter().any(|field| line.get(*field).is_some_and(Value::is_string));
        KINDS.contains(&kind) || native_lines::key_of(line).is_none() && (NOTICES.contains(&kind) || has_session())
    }

    pub(super) fn parse(&mut self, mut line: Map<String, Value>, parsed: &mut Parsed) -> Result<(), Refused> {
        let kind = line.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        if line.get("parent_tool_use_id").is_some_and(Value::is_string) {
            parsed.notes.push("Messages of sub-agents are not recorded.".to_owned());
            return Ok(());
        }
        if KINDS.contains(&kind.as_str()) && kind != "result" {
            self.record_own_words(parsed);
        }
        match kind.as_str() {
            "assistant" => self.answer(line, parsed)?,
            "user" => {
                if let Some(run) = line.shift_remove("tool_use_result") {
                    line.insert("toolUseResult".to_owned(), run);
                }
                self.user(&line, parsed)?;
            }
            "stream_event" => {
                let event = Fields(line).object(&["event"])?;
                self.event(event.ok_or_else(|| Refused::because("stream_event: event is missing"))?, parsed);
            }
            "result" => self.result(Fields(line), parsed)?,
            "system" => self.system(Fields(line), parsed)?,
            _ => parsed.notes.push(format!("Lines of type {kind} are not recorded.")),
        }
        Ok(())
    }

    fn answer(&mut self, line: Map<String, Value>, parsed: &mut Parsed) -> Result<(), Refused> {
        let message = message_of("assistant", &line)?;
        let Body::Assistant(content) = body(&line) else {
            return Err(Refused::because("assistant: message is missing"));
        };
        if let Some(words) = own_words(message, &content) {
            self.finish(parsed);
            self.own_words = Some(words);
            return Ok(());
        }
        let id = message.get("id").and_then(Value::as_str);
        self.continue_message(id, content.model.clone(), parsed);
        // Each block repeats the token counts of the message so far.
        if content.usage.map(|usage| usage.output) >= self.usage.map(|usage| usage.output) {
            self.usage = content.usage;
        }
        if content.error.is_some() {
            self.finish(parsed);
            parsed.body(Body::System(content));
            return Ok(());
        }
        for part in content.parts {
            self.block(part, parsed);
        }
        if let Some(todos) = content.todos {
            parsed.push(Op::Delta(Delta::About(Box::new(Content { todos: Some(todos), ..Content::default() }))));
        }
        Ok(())
    }

    /// Continues the answer with this id, or begins it.
    fn continue_message(&mut self, id: Option<&str>, model: Option<String>, parsed: &mut Parsed) {
        if id.is_some() && self.message.as_deref() == id {
            return;
        }
        self.finish(parsed);
        self.message = id.map(str::to_owned);
        parsed.ops.extend(model.map(Delta::Model).map(Op::Delta));
    }

    /// A complete block, whose text may be recorded already.
    fn block(&mut self, part: Part, parsed: &mut Parsed) {
        let text = match &part {
            Part::Text(text) => Some((false, text.text.as_str(), text.provider_metadata.clone())),
            Part::Reasoning(text) => Some((true, text.text.as_str(), text.provider_metadata.clone())),
            _ => None,
        };
        if let (Some((is_reasoning, text, about)), Some(partial)) = (text, self.partial.front())
            && partial.is_reasoning == is_reasoning
            && let Some(rest) = text.strip_prefix(partial.text.as_str())
        {
            if partial.is_open {
                parsed.ops.extend(text_op(is_reasoning, rest));
                parsed.push(Op::Delta(Delta::End(about)));
            }
            self.before.removed.extend(self.partial.pop_front());
            return;
        }
        self.end_partial(parsed);
        parsed.push(Op::Delta(Delta::Part(part)));
    }

    fn user(&mut self, line: &Map<String, Value>, parsed: &mut Parsed) -> Result<(), Refused> {
        match message_of("user", line)?.get("content") {
            Some(Value::String(text)) if text.is_empty() => return Err(Refused::because("user: content is empty")),
            Some(Value::Array(blocks)) if blocks.is_empty() => return Err(Refused::because("user: content is empty")),
            _ => {}
        }
        match body(line) {
            // The model may continue the same answer while its tools run.
            Body::ToolResult(content) => {
                let (parts, results) = (content.parts, content.results);
                results.into_iter().for_each(|result| parsed.push(Op::Result(Box::new(result))));
                if !parts.is_empty() {
                    parsed.body(Body::User(Content::from(parts)));
                }
            }
            body => {
                self.finish(parsed);
                parsed.body(body);
            }
        }
        Ok(())
    }

    /// An event of the model's API.
    fn event(&mut self, event: Map<String, Value>, parsed: &mut Parsed) {
        let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let empty = Value::Null;
        match event.get("type").and_then(Value::as_str) {
            Some("message_start") => {
                let message = event.get("message").unwrap_or(&empty);
                let id = text(message, "id");
                self.continue_message(id.as_deref(), text(message, "model"), parsed);
                self.add_usage(message.get("usage"));
            }
            Some("content_block_start") => {
                let block = event.get("content_block").unwrap_or(&empty);
                self.end_partial(parsed);
                let is_reasoning = match text(block, "type").as_deref() {
                    Some("text") => false,
                    Some("thinking") => true,
                    _ => return,
                };
                self.partial.push_back(Partial { is_reasoning, text: String::new(), is_open: true });
            }
            Some("content_block_delta") => {
                let delta = event.get("delta").unwrap_or(&empty);
                let more = text(delta, "text").or_else(|| text(delta, "thinking"));
                let open = self.partial.back_mut().filter(|partial| partial.is_open);
                if let (Some(more), Some(open)) = (more, open) {
                    open.text.push_str(&more);
                    parsed.ops.extend(text_op(open.is_reasoning, &more));
                }
            }
            Some("message_delta") => self.add_usage(event.get("usage")),
            // The complete block or message follows.
            _ => {}
        }
    }

    fn add_usage(&mut self, usage: Option<&Value>) {
        let usage = usage.and_then(|usage| usage::usage(usage.clone(), &mut Parsed::default()).ok());
        let Some(usage) = usage else { return };
        let known = self.usage.unwrap_or_default();
        self.usage = Some(Usage {
            input: usage.input.or(known.input),
            output: usage.output.max(known.output),
            cache_read: usage.cache_read.or(known.cache_read),
            cache_write: usage.cache_write.or(known.cache_write),
            reasoning: usage.reasoning.or(known.reasoning),
        });
    }

    /// The end of a turn: its token counts, and whether it failed.
    fn result(&mut self, mut fields: Fields, parsed: &mut Parsed) -> Result<(), Refused> {
        let usage = fields.any(&["usage"]).and_then(|usage| usage::usage(usage, &mut Parsed::default()).ok());
        // Blocks have the token counts at their own time; the result has the final sum.
        if let Some(last) = usage.and_then(|usage| usage.since(self.turn_usage)).filter(|_| self.message.is_some()) {
            self.usage = Some(last);
        }
        self.finish(parsed);
        self.turn_usage = Usage::default();
        let has_failed = fields.flag(&["is_error"])? == Some(true);
        let error = if has_failed { fields.text(&["result", "error"])? } else { None };
        self.own_words.take_if(|own| error.as_ref().is_some_and(|error| own.ends_with(error)));
        self.record_own_words(parsed);
        if has_failed {
            let kind = fields.text(&["subtype"])?.filter(|kind| kind != "success");
            let text = error.unwrap_or_else(|| "The turn failed.".to_owned());
            let error = Some(kind.unwrap_or_else(|| "error".to_owned()));
            parsed.body(Body::System(Content { error, ..Content::from(text) }));
        }
        Ok(())
    }

    fn system(&mut self, mut fields: Fields, parsed: &mut Parsed) -> Result<(), Refused> {
        match fields.text(&["subtype"])?.as_deref() {
            Some("init") => self.finish(parsed),
            Some("compact_boundary") => {
                self.finish(parsed);
                let mut about = Fields(fields.object(&["compact_metadata", "compactMetadata"])?.unwrap_or_default());
                parsed.body(Body::Compaction(Compaction {
                    trigger: about.text(&["trigger"])?,
                    tokens_before: about.count(&["pre_tokens", "preTokens"])?,
                    cuts: true,
                    ..Compaction::default()
                }));
            }
            other => {
                let kind = other.unwrap_or("system");
                parsed.notes.push(format!("Notices of type {kind} are not recorded."));
            }
        }
        Ok(())
    }

    /// Ends the open partial block.
    fn end_partial(&mut self, parsed: &mut Parsed) {
        if let Some(last) = self.partial.back_mut().filter(|partial| partial.is_open) {
            last.is_open = false;
            if !last.text.is_empty() {
                parsed.push(Op::Delta(Delta::End(None)));
            }
        }
    }

    /// Ends the stream, complete or not.
    pub(super) fn end(&mut self, parsed: &mut Parsed) {
        self.record_own_words(parsed);
        self.finish(parsed);
    }

    /// Records what the agent said itself as an answer: nobody says that it is an error.
    fn record_own_words(&mut self, parsed: &mut Parsed) {
        if let Some(text) = self.own_words.take() {
            parsed.push(Op::Delta(Delta::Part(Part::text(text))));
            parsed.push(Op::EndStep(None));
        }
    }

    fn finish(&mut self, parsed: &mut Parsed) {
        self.end_partial(parsed);
        self.before.removed.append(&mut self.partial);
        let usage = self.usage.take();
        if self.message.take().is_some() {
            self.turn_usage.add(usage.unwrap_or_default());
            parsed.push(Op::EndStep(usage));
        }
    }
}

/// What the agent says itself in an answer that is not marked as an error.
fn own_words(message: &Value, content: &Content) -> Option<String> {
    if message.get("model").and_then(Value::as_str) != Some(OWN_MODEL) || content.error.is_some() {
        return None;
    }
    let text = |part: &Part| if let Part::Text(text) = part { Some(text.text.to_string()) } else { None };
    let texts: Vec<String> = content.parts.iter().map(text).collect::<Option<_>>()?;
    (!texts.is_empty()).then(|| texts.join("\n"))
}

fn text_op(is_reasoning: bool, text: &str) -> Option<Op> {
    let delta = if is_reasoning { Delta::Reasoning(text.to_owned()) } else { Delta::Text(text.to_owned()) };
    (!text.is_empty()).then_some(Op::Delta(delta))
}

/// The message of a line; it must have content.
fn message_of<'l>(kind: &str, line: &'l Map<String, Value>) -> Result<&'l Value, Refused> {
    let message = line.get("message").filter(|message| message.is_object());
    let message = message.ok_or_else(|| Refused(format!("{kind}: message is missing")))?;
    match message.get("content") {
        Some(Value::String(_) | Value::Array(_)) => Ok(message),
        _ => Err(Refused(format!("{kind}: message.content is missing"))),
    }
}

/// The body of a line: Claude Code writes the same to its log.
fn body(line: &Map<String, Value>) -> Body {
    ClaudeCode.body(&Value::Object(line.clone()).to_string())
}
