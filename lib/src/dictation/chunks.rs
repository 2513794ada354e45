//! Chunks of the AI SDK's UI message stream, as calls of a recorder.
//!
//! ```text
//! start-step · text-delta … · tool-input-available · tool-output-available · finish-step
//!   a step      pieces of it    a part of it           a result beside it       it is whole
//! ```

use hashbrown::{HashMap, HashSet};
use serde_json::{Map, Value};

use super::fields::Fields;
use super::{Heard, Refused, Saying, words};
use crate::issue::quoted;
use crate::message::{Approval, Message, Part, ReasoningPart, TextPart, ToolKind, ToolPart, ToolState};
use crate::record::{Body, Outcome, Said, ToolResult, Usage};
use crate::recorder::Delta;

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

/// How many texts may be open at once: a provider has one or two.
const OPEN_LIMIT: usize = 1_000;

pub(super) fn is_known(kind: &str) -> bool {
    KINDS.contains(&kind) || kind.starts_with("data-")
}

/// What the chunks so far have begun.
#[derive(Default)]
pub(super) struct Stream {
    /// Texts and thoughts that go on; the first is written as it comes, the others wait for it.
    open: Vec<Open>,
    calls: HashMap<String, Call>,
    /// Which call a question is about.
    asked: HashMap<String, String>,
    /// Whole messages that were said.
    messages: HashSet<String>,
    in_step: bool,
    /// What is known about the message, as far as it was told.
    told: Map<String, Value>,
    /// What the message cost, told when it ends.
    usage: Option<Usage>,
}

struct Open {
    id: String,
    is_reasoning: bool,
    /// What waits until the text before it has ended.
    waiting: String,
    /// Some of it was said.
    begun: bool,
    ended: bool,
    about: Option<Map<String, Value>>,
}

/// A call, as far as it was told.
#[derive(Default)]
struct Call {
    name: Option<String>,
    /// Its arguments while they come.
    text: String,
    part: Option<ToolPart>,
    result: Option<ToolResult>,
    /// The answer that it belongs to is being given.
    in_answer: bool,
}

impl Stream {
    pub(super) fn hear(&mut self, chunk: Map<String, Value>, heard: &mut Heard) -> Result<(), Refused> {
        let mut fields = Fields(chunk);
        let kind = fields.needed(&["type"])?;
        self.chunk(&kind, fields, heard).map_err(|Refused(why)| Refused(format!("{kind}: {why}")))
    }

    fn chunk(&mut self, kind: &str, mut fields: Fields, heard: &mut Heard) -> Result<(), Refused> {
        match kind {
            "start" => {
                self.end_step(heard);
                // Another message's calls are other calls, whatever they are called.
                *self = Stream { messages: std::mem::take(&mut self.messages), ..Stream::default() };
                self.metadata(fields.object(&["messageMetadata"])?, heard);
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
                self.open.clear();
                self.calls.retain(|_, call| !call.in_answer);
                heard.say(Saying::Reset);
            }
            "abort" | "error" => {
                self.end_step(heard);
                let text = fields.text(&["errorText", "reason"])?;
                let text = text.unwrap_or_else(|| "The answer was stopped.".to_owned());
                heard.body(Body::System(Said { error: Some(kind.to_owned()), ..Said::from(text) }));
            }
            "text-start" | "reasoning-start" => self.begin(kind == "reasoning-start", fields)?,
            "text-delta" | "reasoning-delta" => self.go_on(kind == "reasoning-delta", fields, heard)?,
            "text-end" | "reasoning-end" => self.end(kind == "reasoning-end", fields, heard)?,
            "tool-input-start" => {
                let (id, name) = (fields.needed(&["toolCallId"])?, fields.needed(&["toolName"])?);
                if self.calls.get(&id).is_none_or(|call| call.part.is_none()) {
                    self.calls.insert(id, Call { name: Some(name), ..Call::default() });
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

    fn begin_step(&mut self, heard: &mut Heard) {
        if !self.in_step {
            heard.say(Saying::Step);
        }
        self.in_step = true;
    }

    fn end_step(&mut self, heard: &mut Heard) {
        let open = std::mem::take(&mut self.open);
        for (at, text) in open.into_iter().enumerate() {
            heard.releases |= at > 0;
            text.write(heard);
        }
        // Arguments that never became whole.
        for (id, call) in self.calls.iter_mut().filter(|(_, call)| call.part.is_none()) {
            let name = call.name.clone().unwrap_or_else(|| "unknown".to_owned());
            let input = Some(call.text.as_str()).filter(|text| !text.is_empty()).map(Value::from);
            let part = ToolPart::dynamic(name, id, ToolState::InputStreaming { input });
            heard.say(Saying::Delta(Delta::Part(part.clone().into())));
            heard.releases = true;
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
        let mut said = Said::default();
        words::about(new, &mut said);
        self.usage = said.usage.take().or(self.usage);
        heard.sayings.extend(said.model.take().map(Delta::Model).map(Saying::Delta));
        if said != Said::default() {
            heard.say(Saying::Delta(Delta::About(Box::new(said))));
        }
    }

    fn begin(&mut self, is_reasoning: bool, mut fields: Fields) -> Result<(), Refused> {
        let id = fields.needed(&["id"])?;
        if self.open.len() >= OPEN_LIMIT {
            return Err(Refused(format!("{OPEN_LIMIT} texts are open already")));
        }
        // A text of this id that never ended ends here.
        if let Some(open) = self.open.iter_mut().find(|open| open.is(is_reasoning, &id)) {
            open.ended = true;
        }
        let about = fields.object(&["providerMetadata"])?;
        self.open.push(Open { id, is_reasoning, waiting: String::new(), begun: false, ended: false, about });
        Ok(())
    }

    fn go_on(&mut self, is_reasoning: bool, mut fields: Fields, heard: &mut Heard) -> Result<(), Refused> {
        let (id, delta) = (fields.needed(&["id"])?, fields.needed(&["delta"])?);
        let about = fields.object(&["providerMetadata"])?;
        self.let_ended_ones_go(heard);
        let at = self.open.iter().position(|open| open.is(is_reasoning, &id)).ok_or_else(|| without_start(&id))?;
        let Some(open) = self.open.get_mut(at) else { return Err(without_start(&id)) };
        open.about = about.or(open.about.take());
        if at > 0 {
            open.waiting.push_str(&delta);
            heard.waits = true;
            return Ok(());
        }
        open.begun |= !delta.is_empty();
        self.begin_step(heard);
        if !delta.is_empty() {
            heard.say(piece(is_reasoning, delta));
        }
        Ok(())
    }

    fn end(&mut self, is_reasoning: bool, mut fields: Fields, heard: &mut Heard) -> Result<(), Refused> {
        let id = fields.needed(&["id"])?;
        let about = fields.object(&["providerMetadata"])?;
        let open = self.open.iter_mut().find(|open| open.is(is_reasoning, &id)).ok_or_else(|| without_start(&id))?;
        open.about = about.or(open.about.take());
        open.ended = true;
        if fields.any(&["citations"]).is_some() {
            heard.lose("citations");
        }
        self.begin_step(heard);
        self.let_ended_ones_go(heard);
        Ok(())
    }

    /// Writes texts that have ended, and what waited for them.
    fn let_ended_ones_go(&mut self, heard: &mut Heard) {
        while self.open.first().is_some_and(|open| open.ended) {
            self.open.remove(0).write(heard);
            if let Some(next) = self.open.first_mut().filter(|next| !next.waiting.is_empty()) {
                next.begun = true;
                heard.say(piece(next.is_reasoning, std::mem::take(&mut next.waiting)));
                heard.releases = true;
            }
        }
    }

    fn called(&mut self, mut fields: Fields, heard: &mut Heard) -> Result<(), Refused> {
        let (id, name) = (fields.needed(&["toolCallId"])?, fields.text(&["toolName"])?);
        let known = self.calls.entry(id.clone()).or_default();
        let name = name.or(known.name.take()).ok_or_else(|| Refused::because("toolName is missing"))?;
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
        heard.releases = !std::mem::take(&mut known.text).is_empty() || known.part.is_none();
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
        if call.result.as_ref() == Some(&result) {
            return;
        }
        call.result = Some(result.clone());
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

impl Open {
    fn is(&self, is_reasoning: bool, id: &str) -> bool {
        !self.ended && self.is_reasoning == is_reasoning && self.id == id
    }

    /// Writes what waits of a text, and its end.
    fn write(self, heard: &mut Heard) {
        if self.begun || !self.waiting.is_empty() {
            heard.sayings.extend((!self.waiting.is_empty()).then(|| piece(self.is_reasoning, self.waiting)));
            heard.say(Saying::Delta(Delta::End(self.about)));
        } else if self.about.is_some() {
            // A thought that a provider hides has no words.
            let (text, provider_metadata) = (String::new(), self.about);
            heard.say(Saying::Delta(Delta::Part(if self.is_reasoning {
                Part::Reasoning(ReasoningPart { text, provider_metadata, ..ReasoningPart::default() })
            } else {
                Part::Text(TextPart { text, provider_metadata, ..TextPart::default() })
            })));
        }
    }
}

fn piece(is_reasoning: bool, text: String) -> Saying {
    Saying::Delta(if is_reasoning { Delta::Reasoning(text) } else { Delta::Text(text) })
}

fn message_in(kind: &str, data: Value) -> Option<Message> {
    if kind == "data-message" { serde_json::from_value(data).ok() } else { None }
}

fn result_of(id: &str, name: Option<String>, output: Value, outcome: Outcome) -> ToolResult {
    let about = Map::new();
    ToolResult { call_id: id.to_owned(), name, output, outcome, preliminary: false, duration_ms: None, about }
}

fn without_start(id: &str) -> Refused {
    Refused(format!("nothing of the id {} has begun", quoted(id)))
}
