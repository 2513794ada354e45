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
use tool_calls::Call;

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

pub(super) fn is_known(kind: &str) -> bool {
    KINDS.contains(&kind) || kind.starts_with("data-")
}

/// What the chunks so far have begun and not ended.
#[derive(Default)]
pub(super) struct Stream {
    texts: Texts,
    calls: HashMap<String, Call>,
    /// How many calls have begun.
    call_count: u64,
    /// The call of each approval request.
    approvals: HashMap<String, String>,
    /// The ids of whole messages that were recorded.
    messages: HashSet<String>,
    in_step: bool,
    /// The metadata of the message so far.
    known_metadata: Map<String, Value>,
    /// The token counts of the message, recorded when it ends.
    usage: Option<Usage>,
    /// Content of earlier chunks waits for later ones.
    has_waiting: bool,
    hasher: RandomState,
}

impl Stream {
    pub(super) fn parse(&mut self, chunk: Map<String, Value>, parsed: &mut Parsed) -> Result<(), Refused> {
        let mut fields = Fields(chunk);
        let kind = fields.needed(&["type"])?;
        let result = self.chunk(&kind, fields, parsed);
        self.release_when_complete(parsed);
        result.map_err(|Refused(why)| Refused(format!("{kind}: {why}")))
    }

    /// Ends the stream, complete or not.
    pub(super) fn end(&mut self, parsed: &mut Parsed) {
        self.end_step(parsed);
        if let Some(usage) = self.usage.take() {
            parsed.push(Op::EndStep(Some(usage)));
        }
        self.release_when_complete(parsed);
    }

    /// Releases waiting lines once nothing waits any more.
    fn release_when_complete(&mut self, parsed: &mut Parsed) {
        if self.has_waiting || parsed.waits {
            let waits = self.texts.has_waiting() || self.calls.values().any(Call::is_unfinished);
            parsed.releases = self.has_waiting && !waits;
            self.has_waiting = waits;
        }
    }

    fn chunk(&mut self, kind: &str, mut fields: Fields, parsed: &mut Parsed) -> Result<(), Refused> {
        match kind {
            "start" => {
                self.end_step(parsed);
                // A new message has new calls, even under the same ids.
                let (messages, has_waiting) = (std::mem::take(&mut self.messages), self.has_waiting);
                *self = Stream { messages, has_waiting, ..Stream::default() };
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
            "finish-step" => self.end_step(parsed),
            "finish" => {
                self.metadata(fields.object(&["messageMetadata"])?, parsed);
                self.end_step(parsed);
                parsed.push(Op::EndStep(self.usage.take()));
            }
            "reset-step" => {
                self.texts = Texts::default();
                self.calls.retain(|_, call| !call.in_answer && !call.is_unfinished());
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
                    self.calls.insert(id, Call { number: self.call_count, name: Some(name), ..Call::default() });
                    parsed.waits = true;
                }
            }
            "tool-input-delta" => {
                let (id, delta) = (fields.needed(&["toolCallId"])?, fields.needed(&["inputTextDelta"])?);
                let call = self.calls.get_mut(&id).ok_or_else(|| without_start(&id))?;
                call.input_text.push_str(&delta);
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

    fn end_step(&mut self, parsed: &mut Parsed) {
        self.texts.end_all(parsed);
        // Their arguments never became complete.
        let mut unfinished: Vec<_> = self.calls.iter_mut().filter(|(_, call)| call.is_unfinished()).collect();
        unfinished.sort_by_key(|(_, call)| call.number);
        for (id, call) in unfinished {
            let name = call.name.clone().unwrap_or_else(|| "unknown".to_owned());
            let input = Some(call.input_text.as_str()).filter(|text| !text.is_empty()).map(Value::from);
            let part = ToolPart::dynamic(name, id, ToolState::InputStreaming { input });
            parsed.push(Op::Delta(Delta::Part(part.clone().into())));
            call.part = Some(part);
        }
        if std::mem::take(&mut self.in_step) {
            parsed.push(Op::EndStep(None));
        }
        self.calls.values_mut().for_each(|call| call.in_answer = false);
    }

    fn metadata(&mut self, metadata: Option<Map<String, Value>>, parsed: &mut Parsed) {
        let mut new = metadata.unwrap_or_default();
        new.retain(|key, value| self.known_metadata.get(key) != Some(value));
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
