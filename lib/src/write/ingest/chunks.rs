//! Chunks of the AI SDK's UI message stream, as calls of a recorder.
//!
//! ```text
//! start-step · text-delta … · tool-input-available · tool-output-available · finish-step
//!   a step      pieces of it    a part of it           a result beside it       it is whole
//! ```

use hashbrown::{HashMap, HashSet};
use serde_json::{Map, Value};
use xxhash_rust::xxh3::xxh3_128;

use super::fields::Fields;
use super::texts::Texts;
use super::{Heard, Refused, Saying, words};
use crate::model::issue::quoted;
use crate::model::message::{Approval, Message, Part, ToolKind, ToolPart, ToolState};
use crate::model::record::{Body, Content, Outcome, ToolResult, Usage};
use crate::write::recorder::Delta;

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

/// What the chunks so far have begun.
#[derive(Default)]
pub(super) struct Stream {
    texts: Texts,
    calls: HashMap<String, Call>,
    /// How many calls have begun.
    begun: u64,
    /// Which call a question is about.
    asked: HashMap<String, String>,
    /// Whole messages that were said.
    messages: HashSet<String>,
    in_step: bool,
    /// What is known about the message, as far as it was told.
    told: Map<String, Value>,
    /// What the message cost, told when it ends.
    usage: Option<Usage>,
    /// Words of earlier chunks wait for later ones.
    holds_back: bool,
}

/// A call, as far as it was told.
#[derive(Default)]
struct Call {
    /// Where it stands among those that have begun.
    number: u64,
    name: Option<String>,
    /// Its arguments while they come.
    text: String,
    part: Option<ToolPart>,
    /// Stands for the result that was told last: a large one is not kept to know it again.
    result: Option<u128>,
    /// The answer that it belongs to is being given.
    in_answer: bool,
}

impl Call {
    /// It has begun, and what it is called with is not whole.
    fn is_unfinished(&self) -> bool {
        self.part.is_none() && self.name.is_some()
    }
}

impl Stream {
    pub(super) fn hear(&mut self, chunk: Map<String, Value>, heard: &mut Heard) -> Result<(), Refused> {
        let mut fields = Fields(chunk);
        let kind = fields.needed(&["type"])?;
        let told = self.chunk(&kind, fields, heard);
        self.release_when_whole(heard);
        told.map_err(|Refused(why)| Refused(format!("{kind}: {why}")))
    }

    /// The stream is over, wherever it was.
    pub(super) fn end(&mut self, heard: &mut Heard) {
        self.end_step(heard);
        if let Some(usage) = self.usage.take() {
            heard.say(Saying::EndStep(Some(usage)));
        }
        self.release_when_whole(heard);
    }

    /// Lines whose words waited are on disk when nothing waits any more, and not before.
    fn release_when_whole(&mut self, heard: &mut Heard) {
        if self.holds_back || heard.waits {
            let waits = self.texts.hold_back() || self.calls.values().any(Call::is_unfinished);
            heard.releases = self.holds_back && !waits;
            self.holds_back = waits;
        }
    }

    fn chunk(&mut self, kind: &str, mut fields: Fields, heard: &mut Heard) -> Result<(), Refused> {
        match kind {
            "start" => {
                self.end_step(heard);
                // Another message's calls are other calls, whatever they are called.
                let (messages, holds_back) = (std::mem::take(&mut self.messages), self.holds_back);
                *self = Stream { messages, holds_back, ..Stream::default() };
                self.metadata(fields.object(&["messageMetadata"])?, heard);
                if fields.any(&["messageId"]).is_some() {
                    heard.lose("messageId");
                }
            }
            "message-metadata" => self.metadata(fields.object(&["messageMetadata"])?, heard),
            "start-step" => {
                self.end_step(heard);
                self.begin_step(heard);
            }
            "finish-step" => self.end_step(heard),
            "finish" => {
                self.metadata(fields.object(&["messageMetadata"])?, heard);
                self.end_step(heard);
                heard.say(Saying::EndStep(self.usage.take()));
            }
            "reset-step" => {
                self.texts = Texts::default();
                self.calls.retain(|_, call| !call.in_answer && !call.is_unfinished());
                heard.say(Saying::Reset);
            }
            "abort" | "error" => {
                self.end_step(heard);
                let text = fields.text(&["errorText", "reason"])?;
                let text = text.unwrap_or_else(|| "The answer was stopped.".to_owned());
                heard.body(Body::System(Content { error: Some(kind.to_owned()), ..Content::from(text) }));
            }
            "text-start" | "reasoning-start" => self.texts.begin(kind == "reasoning-start", fields)?,
            "text-delta" | "reasoning-delta" | "text-end" | "reasoning-end" => self.text(kind, fields, heard)?,
            "tool-input-start" => {
                let (id, name) = (fields.needed(&["toolCallId"])?, fields.needed(&["toolName"])?);
                if self.calls.get(&id).is_none_or(|call| call.part.is_none()) {
                    self.begun += 1;
                    self.calls.insert(id, Call { number: self.begun, name: Some(name), ..Call::default() });
                    heard.waits = true;
                }
            }
            "tool-input-delta" => {
                let (id, delta) = (fields.needed(&["toolCallId"])?, fields.needed(&["inputTextDelta"])?);
                let call = self.calls.get_mut(&id).ok_or_else(|| without_start(&id))?;
                call.text.push_str(&delta);
                heard.waits = true;
            }
            "tool-input-available" | "tool-input-error" => self.called(fields, heard)?,
            "tool-approval-request" => self.ask(fields, heard)?,
            "tool-approval-response" => self.answer(fields, heard)?,
            "tool-output-available" | "tool-output-error" | "tool-output-denied" => self.result(kind, fields, heard)?,
            kind => self.whole(kind, fields, heard)?,
        }
        Ok(())
    }

    fn text(&mut self, kind: &str, fields: Fields, heard: &mut Heard) -> Result<(), Refused> {
        let mut content = Heard::default();
        match kind {
            "text-delta" | "reasoning-delta" => self.texts.go_on(kind == "reasoning-delta", fields, &mut content)?,
            _ => self.texts.end(kind == "reasoning-end", fields, &mut content)?,
        }
        self.begin_step(heard);
        heard.sayings.append(&mut content.sayings);
        heard.losses.append(&mut content.losses);
        heard.waits = content.waits;
        Ok(())
    }

    fn begin_step(&mut self, heard: &mut Heard) {
        if !self.in_step {
            heard.say(Saying::Step);
        }
        self.in_step = true;
    }

    fn end_step(&mut self, heard: &mut Heard) {
        self.texts.end_all(heard);
        // Arguments that never became whole.
        let mut unfinished: Vec<_> = self.calls.iter_mut().filter(|(_, call)| call.is_unfinished()).collect();
        unfinished.sort_by_key(|(_, call)| call.number);
        for (id, call) in unfinished {
            let name = call.name.clone().unwrap_or_else(|| "unknown".to_owned());
            let input = Some(call.text.as_str()).filter(|text| !text.is_empty()).map(Value::from);
            let part = ToolPart::dynamic(name, id, ToolState::InputStreaming { input });
            heard.say(Saying::Delta(Delta::Part(part.clone().into())));
            call.part = Some(part);
        }
        if std::mem::take(&mut self.in_step) {
            heard.say(Saying::EndStep(None));
        }
        self.calls.values_mut().for_each(|call| call.in_answer = false);
    }

    fn metadata(&mut self, metadata: Option<Map<String, Value>>, heard: &mut Heard) {
        let mut new = metadata.unwrap_or_default();
        new.retain(|key, value| self.told.get(key) != Some(value));
        self.told.extend(new.clone());
        let mut content = Content::default();
        words::about(new, &mut content, heard);
        self.usage = content.usage.take().or(self.usage);
        heard.sayings.extend(content.model.take().map(Delta::Model).map(Saying::Delta));
        if content != Content::default() {
            heard.say(Saying::Delta(Delta::About(Box::new(content))));
        }
    }

    fn called(&mut self, mut fields: Fields, heard: &mut Heard) -> Result<(), Refused> {
        let (id, name) = (fields.needed(&["toolCallId"])?, fields.text(&["toolName"])?);
        let known = self.calls.entry(id.clone()).or_default();
        let name = name.or_else(|| known.name.clone()).ok_or_else(|| Refused::because("toolName is missing"))?;
        let input = fields.any(&["input"]).unwrap_or_default();
        let part = ToolPart {
            kind: if fields.flag(&["dynamic"])? == Some(true) { ToolKind::Dynamic } else { ToolKind::Static },
            title: fields.text(&["title"])?,
            provider_executed: fields.flag(&["providerExecuted"])?,
            call_provider_metadata: fields.object(&["providerMetadata"])?,
            tool_metadata: fields.object(&["toolMetadata"])?,
            ..ToolPart::dynamic(&name, &id, ToolState::called(input))
        };
        known.name = Some(name.clone());
        known.text.clear();
        let is_known = known.part.as_ref().is_some_and(|before| before.input() == part.input());
        if !is_known {
            self.say_call(&id, part, heard);
        }
        if let Some(text) = fields.text(&["errorText"])? {
            let result = result_of(&id, Some(name), text.as_str().into(), Outcome::Failed(text.clone()));
            self.say_result(result, heard);
        }
        Ok(())
    }

    /// Says a call, or what is new about it while its answer is being given.
    fn say_call(&mut self, id: &str, part: ToolPart, heard: &mut Heard) {
        let Some(call) = self.calls.get_mut(id) else { return };
        if call.part.is_some() && !call.in_answer {
            heard.lose("a change of a call whose answer was whole");
            return;
        }
        (call.part, call.in_answer) = (Some(part.clone()), true);
        self.begin_step(heard);
        heard.say(Saying::Delta(Delta::Part(part.into())));
    }

    fn ask(&mut self, mut fields: Fields, heard: &mut Heard) -> Result<(), Refused> {
        let (question, id) = (fields.needed(&["approvalId"])?, fields.needed(&["toolCallId"])?);
        let approval = Approval {
            id: question.clone(),
            is_automatic: fields.flag(&["isAutomatic"])?,
            request_reason: fields.text(&["reason"])?,
            signature: fields.text(&["signature"])?,
            descriptor: fields.any(&["approvalDescriptor"]),
            input_schema_input: fields.any(&["inputSchemaInput"]),
            ..Approval::default()
        };
        self.asked.insert(question, id.clone());
        let mut part = self.part(&id)?;
        let input = part.input().cloned().unwrap_or_default();
        part.state = ToolState::ApprovalRequested { input, approval };
        self.say_call(&id, part, heard);
        Ok(())
    }

    fn answer(&mut self, mut fields: Fields, heard: &mut Heard) -> Result<(), Refused> {
        let question = fields.needed(&["approvalId"])?;
        let approved = fields.flag(&["approved"])?.ok_or_else(|| Refused::because("approved is missing"))?;
        let reason = fields.text(&["reason"])?;
        let Some(id) = self.asked.get(&question).cloned() else { return Err(without_start(&question)) };
        let mut part = self.part(&id)?;
        let input = part.input().cloned().unwrap_or_default();
        let asked = part.approval().cloned().unwrap_or_default();
        let approval = Approval { id: question, approved: Some(approved), reason, ..asked };
        part.state = ToolState::ApprovalResponded { input, approval };
        self.say_call(&id, part, heard);
        Ok(())
    }

    fn part(&self, id: &str) -> Result<ToolPart, Refused> {
        self.calls.get(id).and_then(|call| call.part.clone()).ok_or_else(|| without_start(id))
    }

    fn result(&mut self, kind: &str, mut fields: Fields, heard: &mut Heard) -> Result<(), Refused> {
        let id = fields.needed(&["toolCallId"])?;
        let call = self.calls.get(&id);
        let name = call.and_then(|call| call.name.clone());
        let (output, outcome) = match kind {
            "tool-output-available" => (fields.any(&["output"]).unwrap_or_default(), Outcome::Done),
            "tool-output-error" => {
                let text = fields.needed(&["errorText"])?;
                (text.as_str().into(), Outcome::Failed(text))
            }
            _ => {
                let asked = call.and_then(|call| call.part.as_ref()).and_then(ToolPart::approval);
                (Value::Null, Outcome::Denied(asked.and_then(|asked| asked.reason.clone())))
            }
        };
        let preliminary = fields.flag(&["preliminary"])? == Some(true);
        self.say_result(ToolResult { preliminary, ..result_of(&id, name, output, outcome) }, heard);
        Ok(())
    }

    fn say_result(&mut self, result: ToolResult, heard: &mut Heard) {
        let call = self.calls.entry(result.call_id.clone()).or_default();
        // A stream that is told again says the same again.
        let told = Some(xxh3_128(format!("{result:?}").as_bytes()));
        if call.result == told {
            return;
        }
        call.result = told;
        heard.say(Saying::Result(Box::new(result)));
    }

    /// A part that comes whole.
    fn whole(&mut self, kind: &str, mut fields: Fields, heard: &mut Heard) -> Result<(), Refused> {
        if fields.any(&["transient"]) == Some(Value::Bool(true)) {
            // What we print of a session beside the answer that is streamed; a stranger's own is not stored.
            let data = fields.any(&["data"]).unwrap_or_default();
            let Some(message) = message_in(kind, data) else { return Ok(()) };
            if self.messages.insert(message.id.clone()) {
                self.end_step(heard);
                words::message(message, heard);
            } else {
                heard.lose("a change of a message that was whole");
            }
            return Ok(());
        }
        fields.0.insert("type".to_owned(), kind.into());
        let part = match Part::from(Value::Object(fields.0)) {
            Part::Other(_) | Part::StepStart => return Err(Refused::because("it is incomplete")),
            Part::File(mut file) => {
                // Where our own chunks have what the protocol has no field for.
                let ours = file.provider_metadata.as_ref().and_then(|about| about.get("scrollback"));
                let name = ours.and_then(|ours| ours.get("filename")).and_then(Value::as_str).map(str::to_owned);
                file.filename = file.filename.or(name);
                Part::File(file)
            }
            part => part,
        };
        self.begin_step(heard);
        heard.say(Saying::Delta(Delta::Part(part)));
        Ok(())
    }
}

fn message_in(kind: &str, data: Value) -> Option<Message> {
    if kind == "data-message" { serde_json::from_value(data).ok() } else { None }
}

fn result_of(id: &str, name: Option<String>, output: Value, outcome: Outcome) -> ToolResult {
    let about = Map::new();
    ToolResult { call_id: id.to_owned(), name, output, outcome, preliminary: false, duration_ms: None, about }
}

pub(super) fn without_start(id: &str) -> Refused {
    Refused(format!("nothing of the id {} has begun", quoted(id)))
}
