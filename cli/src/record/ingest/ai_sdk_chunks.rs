//! Chunks of the AI SDK's UI message stream, as ops.
//!
//! ```text
//!  start-step  ·  text-delta …  ·  tool-input-available  ·  tool-output-available  ·  finish-step
//!   step begins    deltas           a part                  a result            step is complete
//! ```

mod tool_calls;

use std::collections::{HashMap, HashSet};
use std::hash::RandomState;

use scrollback::model::{Body, Content, Message, Part, ToolPart, ToolState, Usage, quoted};
use scrollback::write::Delta;
use serde_json::{Map, Value};

use super::fields::Fields;
use super::open_texts::Texts;
use super::{Op, Parsed, Refused, content};
use tool_calls::{Call, Calls};

/// The types of chunks, besides `data-*`.
const KINDS: [&str; 29] = [
    "start",
    "start-step",
    "text-start",
    "text-delta",
    "text-end",
    "reasoning-start",
    "reasoning-delta",
    "reasoning-end",
    "tool-input-start",
    "tool-input-delta",
    "tool-input-available",
    "tool-input-error",
    "tool-approval-request",
    "tool-approval-response",
    "tool-output-available",
    "tool-output-error",
    "tool-output-denied",
    "source-url",
    "source-document",
    "file",
    "reasoning-file",
    "custom",
    "steering-message",
    "message-metadata",
    "reset-step",
    "finish-step",
    "finish",
    "abort",
    "error",
];

/// Chunks that may follow `finish-step` and are still about that step, or about all steps.
const OF_STEP_BEFORE: [&str; 7] = [
    "finish-step",
    "message-metadata",
    "finish",
    "reset-step",
    "tool-output-available",
    "tool-output-error",
    "tool-output-denied",
];

pub(super) fn is_known(kind: &str) -> bool {
    KINDS.contains(&kind) || kind.starts_with("data-")
}

/// What the chunks so far have begun and not ended.
#[derive(Default)]
pub(super) struct Stream {
    texts: Texts,
    calls: Calls,
    /// How many calls have begun.
    call_count: u64,
    /// The call of each approval request.
    approvals: HashMap<String, String>,
    /// The ids of whole messages that were recorded.
    messages: HashSet<String>,
    in_step: bool,
    /// The step is complete, but its end is not recorded before the next chunk: token counts may follow.
    is_step_held: bool,
    /// Steps are held: the format writes whole turns, and cannot add token counts to one.
    pub(super) holds_steps: bool,
    /// The metadata of the message so far.
    known_metadata: Map<String, Value>,
    /// The token counts of the message, recorded when it ends.
    usage: Option<Usage>,
    /// Content of earlier chunks waits for later ones.
    has_waiting: bool,
    hasher: RandomState,
    /// What the last line changed.
    before: Before,
}

/// The state before the last line, as far as the line changed it. Calls remember their own changes.
#[derive(Default)]
struct Before {
    approval: Option<String>,
    message: Option<String>,
    flags: Flags,
    metadata: Option<Map<String, Value>>,
    /// All of it: the line started another message.
    stream: Option<Box<Stream>>,
}

/// The small state of a stream.
#[derive(Default, Clone, Copy)]
struct Flags {
    call_count: u64,
    in_step: bool,
    is_step_held: bool,
    has_waiting: bool,
    usage: Option<Usage>,
}

impl Stream {
    /// Forgets what is needed to undo the line before.
    pub(super) fn begin_line(&mut self) {
        self.calls.keep();
        self.texts.begin_line();
        let Stream { call_count, in_step, is_step_held, has_waiting, usage, .. } = *self;
        let flags = Flags { call_count, in_step, is_step_held, has_waiting, usage };
        self.before = Before { flags, ..Before::default() };
    }

    /// Undoes the last line.
    pub(super) fn undo(&mut self) {
        let mut before = std::mem::take(&mut self.before);
        if let Some(stream) = before.stream.take() {
            *self = *stream;
        }
        self.calls.undo();
        self.texts.undo();
        before.approval.into_iter().for_each(|approval| _ = self.approvals.remove(&approval));
        before.message.into_iter().for_each(|message| _ = self.messages.remove(&message));
        self.known_metadata = before.metadata.unwrap_or_else(|| std::mem::take(&mut self.known_metadata));
        let Flags { call_count, in_step, is_step_held, has_waiting, usage } = before.flags;
        (self.call_count, self.in_step, self.is_step_held) = (call_count, in_step, is_step_held);
        (self.has_waiting, self.usage) = (has_waiting, usage);
    }

    pub(super) fn parse(&mut self, chunk: Map<String, Value>, parsed: &mut Parsed) -> Result<(), Refused> {
        let mut fields = Fields(chunk);
        let kind = fields.needed(&["type"])?;
        let result = self.chunk(&kind, fields, parsed);
        self.release_when_complete(parsed);
        result.map_err(|Refused(why)| Refused(format!("{kind}: {why}")))
    }

    /// Ends the stream, complete or not.
    pub(super) fn end(&mut self, parsed: &mut Parsed) {
        let usage = self.usage.take();
        self.complete_parts(parsed);
        let is_complete = std::mem::take(&mut self.is_step_held);
        if std::mem::take(&mut self.in_step) && !is_complete && usage.is_none() {
            parsed.push(Op::CutOff);
        } else if is_complete || usage.is_some() {
            parsed.push(Op::EndStep(usage));
        }
        self.release_when_complete(parsed);
    }

    /// Releases waiting lines once nothing waits any more.
    fn release_when_complete(&mut self, parsed: &mut Parsed) {
        if self.has_waiting || parsed.waits {
            let waits = self.texts.has_waiting() || self.is_step_held || self.calls.has_unfinished();
            parsed.releases = self.has_waiting && !waits;
            self.has_waiting = waits;
        }
    }

    fn chunk(&mut self, kind: &str, mut fields: Fields, parsed: &mut Parsed) -> Result<(), Refused> {
        if !OF_STEP_BEFORE.contains(&kind) {
            self.end_held_step(parsed);
        }
        match kind {
            "start" => {
                self.end_step(parsed);
                // A new message has new calls, even under the same ids.
                let (messages, has_waiting, holds_steps) = (self.messages.clone(), self.has_waiting, self.holds_steps);
                let before = std::mem::take(&mut self.before);
                let old = std::mem::replace(self, Stream { messages, has_waiting, holds_steps, ..Stream::default() });
                self.before = Before { stream: Some(Box::new(old)), ..before };
                self.metadata(fields.object(&["messageMetadata"])?, parsed);
                if fields.any(&["messageId"]).is_some() {
                    parsed.lose("messageId");
                }
            }
            "message-metadata" => self.metadata(fields.object(&["messageMetadata"])?, parsed),
            "start-step" => {
                self.end_step(parsed);
                self.begin_step(parsed);
            }
            "finish-step" if self.holds_steps && self.in_step => {
                self.complete_parts(parsed);
                (self.is_step_held, parsed.waits) = (true, true);
            }
            "finish-step" => self.end_step(parsed),
            "finish" => {
                self.metadata(fields.object(&["messageMetadata"])?, parsed);
                // The token counts come with the end of the last step, where a format can still add them.
                self.complete_parts(parsed);
                (self.in_step, self.is_step_held) = (false, false);
                self.calls.end_answer();
                parsed.push(Op::EndStep(self.usage.take()));
                parsed.push(Op::EndTurn);
            }
            "reset-step" => {
                self.texts.discard();
                self.calls.remove_unfinished();
                self.is_step_held = false;
                parsed.push(Op::Reset);
            }
            "abort" | "error" => {
                self.end_step(parsed);
                let text = fields.text(&["errorText", "reason"])?;
                let text = text.unwrap_or_else(|| "The answer was stopped.".to_owned());
                parsed.body(Body::System(Content { error: Some(kind.to_owned()), ..Content::from(text) }));
            }
            "text-start" | "reasoning-start" => self.texts.begin(kind == "reasoning-start", fields)?,
            "text-delta" | "reasoning-delta" | "text-end" | "reasoning-end" => self.text(kind, fields, parsed)?,
            "tool-input-start" => {
                let (id, name) = (fields.needed(&["toolCallId"])?, fields.needed(&["toolName"])?);
                if self.calls.get(&id).is_none_or(|call| call.part.is_none()) {
                    self.call_count += 1;
                    *self.calls.change(&id) = Call { number: self.call_count, name: Some(name), ..Call::default() };
                    parsed.waits = true;
                }
            }
            "tool-input-delta" => {
                let (id, delta) = (fields.needed(&["toolCallId"])?, fields.needed(&["inputTextDelta"])?);
                if !self.calls.add_input(&id, &delta) {
                    return Err(without_start(&id));
                }
                parsed.waits = true;
            }
            "tool-input-available" | "tool-input-error" => self.call(fields, parsed)?,
            "tool-approval-request" => self.approval_request(fields, parsed)?,
            "tool-approval-response" => self.approval_response(fields, parsed)?,
            "tool-output-available" | "tool-output-error" | "tool-output-denied" => {
                self.result(kind, fields, parsed)?
            }
            kind => self.whole_part(kind, fields, parsed)?,
        }
        Ok(())
    }

    fn text(&mut self, kind: &str, fields: Fields, parsed: &mut Parsed) -> Result<(), Refused> {
        let mut text = Parsed::default();
        match kind {
            "text-delta" | "reasoning-delta" => self.texts.add(kind == "reasoning-delta", fields, &mut text)?,
            _ => self.texts.end(kind == "reasoning-end", fields, &mut text)?,
        }
        self.begin_step(parsed);
        parsed.ops.append(&mut text.ops);
        parsed.losses.append(&mut text.losses);
        parsed.waits = text.waits;
        Ok(())
    }

    fn begin_step(&mut self, parsed: &mut Parsed) {
        if !self.in_step {
            parsed.push(Op::Step);
        }
        self.in_step = true;
    }

    /// Ends a step that is held: no token counts follow it.
    pub(super) fn end_held_step(&mut self, parsed: &mut Parsed) {
        if self.is_step_held {
            self.end_step(parsed);
            self.release_when_complete(parsed);
        }
    }

    fn end_step(&mut self, parsed: &mut Parsed) {
        self.complete_parts(parsed);
        self.is_step_held = false;
        if std::mem::take(&mut self.in_step) {
            parsed.push(Op::EndStep(None));
        }
        self.calls.end_answer();
    }

    /// Completes the texts and calls of a step.
    fn complete_parts(&mut self, parsed: &mut Parsed) {
        self.texts.end_all(parsed);
        // Their arguments never became complete.
        for id in self.calls.unfinished() {
            let call = self.calls.change(&id);
            let name = call.name.clone().unwrap_or_else(|| "unknown".to_owned());
            let input = Some(call.input_text.as_str()).filter(|text| !text.is_empty()).map(Value::from);
            let part = ToolPart::dynamic(name, &id, ToolState::InputStreaming { input });
            parsed.push(Op::Delta(Delta::Part(part.clone().into())));
            call.part = Some(part);
        }
    }

    fn metadata(&mut self, metadata: Option<Map<String, Value>>, parsed: &mut Parsed) {
        let mut new = metadata.unwrap_or_default();
        new.retain(|key, value| self.known_metadata.get(key) != Some(value));
        self.before.metadata.get_or_insert_with(|| self.known_metadata.clone());
        self.known_metadata.extend(new.clone());
        let mut content = Content::default();
        content::add_metadata(new, &mut content, parsed);
        self.usage = content.usage.take().or(self.usage);
        parsed.ops.extend(content.model.take().map(Delta::Model).map(Op::Delta));
        if content != Content::default() {
            parsed.push(Op::Delta(Delta::About(Box::new(content))));
        }
    }

    /// A part in a single chunk.
    fn whole_part(&mut self, kind: &str, mut fields: Fields, parsed: &mut Parsed) -> Result<(), Refused> {
        if fields.any(&["transient"]) == Some(Value::Bool(true)) {
            // We print whole messages of a session so; other transient data is not for storage.
            let data = fields.any(&["data"]).unwrap_or_default();
            let Some(message) = message_in(kind, data) else { return Ok(()) };
            if self.messages.insert(message.id.clone()) {
                self.before.message = Some(message.id.clone());
                self.end_step(parsed);
                content::message(message, parsed);
            } else {
                parsed.lose("a change of a complete message");
            }
            return Ok(());
        }
        fields.0.insert("type".to_owned(), kind.into());
        let part = match Part::from(Value::Object(fields.0)) {
            Part::Other(_) | Part::StepStart => return Err(Refused::because("incomplete")),
            Part::File(mut file) => {
                // Our own chunks have the name here, as the protocol has no field for it.
                let ours = file.provider_metadata.as_ref().and_then(|about| about.get("scrollback"));
                let name = ours.and_then(|ours| ours.get("filename")).and_then(Value::as_str).map(str::to_owned);
                file.filename = file.filename.or(name);
                Part::File(file)
            }
            part => part,
        };
        self.begin_step(parsed);
        parsed.push(Op::Delta(Delta::Part(part)));
        Ok(())
    }
}

fn message_in(kind: &str, data: Value) -> Option<Message> {
    if kind == "data-message" { serde_json::from_value(data).ok() } else { None }
}

pub(super) fn without_start(id: &str) -> Refused {
    Refused(format!("nothing with the id {} has begun", quoted(id)))
}
