//! Updates as chunks of the AI SDK's UI message stream: JSON objects, each with its `type`.
//!
//! The protocol can only add to the current message of the assistant. So the newest of those is streamed, piece by piece; every
//! other message, and a change that no chunk can express, is sent whole in a transient `data-message`. The ids of messages that
//! leave the branch are sent in a transient `data-removed`.
//!
//! A reader of chunks loses little: a text without a state is `done`, reasoning gets an id, and the name of a file is in
//! `providerMetadata.scrollback`.

use hashbrown::HashSet;
use serde_json::{Map, Value, json};

use super::Update;
use super::call;
use crate::model::message::keys::object;
use crate::model::message::{Message, Part, Role, Sdk, StreamState, own_metadata};

/// Turns updates into chunks.
pub struct Chunks {
    sdk: Sdk,
    streamed: Option<Streamed>,
    /// Every message that was sent and not removed.
    sent: HashSet<String>,
}

/// The message that is being streamed, as far as it was sent.
#[derive(Default)]
struct Streamed {
    id: String,
    metadata: Option<Map<String, Value>>,
    parts: Vec<Part>,
    /// The last part is a text that may continue.
    open: bool,
    in_step: bool,
}

/// No chunk can express it.
pub(super) struct Inexpressible;

impl Chunks {
    /// Creates chunks for a reader of this version.
    pub fn new(sdk: Sdk) -> Chunks {
        Chunks { sdk, streamed: None, sent: HashSet::new() }
    }

    /// The chunks of an update.
    pub fn of(&mut self, update: Update) -> Vec<Value> {
        match update {
            Update::Removed(ids) => {
                let streamed = self.streamed.as_ref().is_some_and(|streamed| ids.contains(&streamed.id));
                let mut chunks = if streamed { self.finish() } else { Vec::new() };
                ids.iter().for_each(|id| _ = self.sent.remove(id));
                chunks.push(transient("removed", json!({ "ids": ids })));
                chunks
            }
            Update::Message(message) => self.message(message.for_sdk(self.sdk)),
        }
    }

    /// Ends the message that is being streamed: nothing more is expected. Later changes of it are sent whole.
    pub fn finish(&mut self) -> Vec<Value> {
        let mut chunks = Vec::new();
        if let Some(streamed) = self.streamed.take() {
            if streamed.open {
                chunks.extend(end(&streamed.parts));
            }
            chunks.extend(streamed.in_step.then(|| kind("finish-step")));
            // The metadata is repeated: a reader shows the last changes only when it receives something.
            chunks.push(object(json!({"type": "finish", "messageMetadata": streamed.metadata})).into());
        }
        chunks
    }

    fn message(&mut self, message: Message) -> Vec<Value> {
        let is_new = self.sent.insert(message.id.clone());
        if self.streamed.as_ref().is_none_or(|streamed| streamed.id != message.id) {
            let mut chunks = self.finish();
            let mut started = if is_new { vec![start(&message)] } else { Vec::new() };
            let before = Streamed { id: message.id.clone(), metadata: message.metadata.clone(), ..Streamed::default() };
            self.streamed = before.advance(&message, self.sdk, &mut started).ok().filter(|_| is_new);
            match self.streamed {
                Some(_) => chunks.append(&mut started),
                None => chunks.push(whole(&message)),
            }
            return chunks;
        }
        let mut chunks = Vec::new();
        match self.streamed.as_ref().map(|streamed| streamed.advance(&message, self.sdk, &mut chunks)) {
            Some(Ok(streamed)) => self.streamed = Some(streamed),
            Some(Err(Inexpressible)) | None => {
                chunks = self.finish();
                chunks.push(whole(&message));
            }
        }
        chunks
    }
}

impl Streamed {
    /// Adds what is new in a message.
    fn advance(&self, message: &Message, sdk: Sdk, out: &mut Vec<Value>) -> Result<Streamed, Inexpressible> {
        let is_answer = message.role == Role::Assistant && message.extra.is_empty();
        let expressible =
            is_answer && message.parts.iter().all(|part| has_chunks(part, sdk)) && !repeats_an_id(&message.parts);
        if !expressible || message.parts.len() < self.parts.len() {
            return Err(Inexpressible);
        }
        if self.metadata != message.metadata {
            let metadata = message.metadata.clone().ok_or(Inexpressible)?;
            if !self.metadata.as_ref().is_none_or(|before| becomes(before, &metadata)) {
                return Err(Inexpressible);
            }
            out.push(json!({"type": "message-metadata", "messageMetadata": metadata}));
        }
        for (at, before) in self.parts.iter().enumerate().filter(|(at, before)| **before != message.parts[*at]) {
            self.change(at, before, &message.parts[at], out)?;
        }
        let (mut open, mut in_step) = (self.open, self.in_step);
        for at in self.parts.len()..message.parts.len() {
            if std::mem::take(&mut open) {
                out.extend(end(&message.parts[..at]));
            }
            match &message.parts[at] {
                Part::StepStart => {
                    out.extend(std::mem::replace(&mut in_step, true).then(|| kind("finish-step")));
                    out.push(kind("start-step"));
                }
                part => open = send(at, part, out)?,
            }
        }
        Ok(Streamed {
            id: message.id.clone(),
            metadata: message.metadata.clone(),
            parts: message.parts.clone(),
            open,
            in_step,
        })
    }

    fn change(&self, at: usize, before: &Part, now: &Part, out: &mut Vec<Value>) -> Result<(), Inexpressible> {
        match (before, now) {
            (Part::Text(_), Part::Text(_)) | (Part::Reasoning(_), Part::Reasoning(_)) => {
                let (before, now) = (streamed_text(at, before), streamed_text(at, now));
                let (Some(before), Some(now)) = (before, now) else { return Err(Inexpressible) };
                if !self.open || at + 1 != self.parts.len() || before.id != now.id {
                    return Err(Inexpressible);
                }
                out.extend(now.delta(now.text.strip_prefix(before.text).ok_or(Inexpressible)?));
            }
            (Part::Tool(before), Part::Tool(now)) => {
                let in_this_step = !self.parts[at..].contains(&Part::StepStart);
                call::change(before, now, in_this_step, out)?;
            }
            (Part::Data(before), Part::Data(data))
                if data.id.is_some() && before.id == data.id && before.kind == data.kind =>
            {
                send(at, now, out)?;
            }
            _ => return Err(Inexpressible),
        }
        Ok(())
    }
}

fn kind(kind: &str) -> Value {
    json!({ "type": kind })
}

fn start(message: &Message) -> Value {
    object(json!({"type": "start", "messageId": message.id, "messageMetadata": message.metadata})).into()
}

fn whole(message: &Message) -> Value {
    transient("message", serde_json::to_value(message).unwrap_or_default())
}

/// Data beside the messages.
fn transient(kind: &str, data: Value) -> Value {
    json!({"type": format!("data-{kind}"), "data": data, "transient": true})
}

/// A part that is sent piece by piece.
struct StreamedText<'p> {
    /// `text` or `reasoning`.
    kind: &'static str,
    id: String,
    text: &'p str,
    /// More of it may come.
    is_streaming: bool,
    provider_metadata: Option<&'p Map<String, Value>>,
    citations: Option<&'p Vec<Value>>,
}

fn streamed_text(at: usize, part: &Part) -> Option<StreamedText<'_>> {
    let (kind, id, text, state, provider_metadata, citations) = match part {
        Part::Text(part) => {
            ("text", None, &part.text, part.state, part.provider_metadata.as_ref(), part.citations.as_ref())
        }
        Part::Reasoning(part) => {
            ("reasoning", part.id.clone(), &part.text, part.state, part.provider_metadata.as_ref(), None)
        }
        _ => return None,
    };
    let id = id.unwrap_or_else(|| format!("{kind}-{at}"));
    let is_streaming = state == Some(StreamState::Streaming);
    Some(StreamedText { kind, id, text, is_streaming, provider_metadata, citations })
}

impl StreamedText<'_> {
    /// What is known only at the end is sent with the end; a text that never ends has only its start.
    fn start(&self) -> Value {
        let metadata = self.provider_metadata.filter(|_| self.is_streaming);
        object(json!({"type": format!("{}-start", self.kind), "id": self.id, "providerMetadata": metadata})).into()
    }

    fn delta(&self, more: &str) -> Option<Value> {
        let delta = || json!({"type": format!("{}-delta", self.kind), "id": self.id, "delta": more});
        (!more.is_empty()).then(delta)
    }

    fn end(&self) -> Option<Value> {
        let end = || {
            object(json!({"type": format!("{}-end", self.kind), "id": self.id, "citations": self.citations,
                          "providerMetadata": self.provider_metadata}))
        };
        (!self.is_streaming).then(|| end().into())
    }
}

/// Sends a new part, and returns whether it may continue. Steps are the message's own.
fn send(at: usize, part: &Part, out: &mut Vec<Value>) -> Result<bool, Inexpressible> {
    match part {
        Part::Text(_) | Part::Reasoning(_) => {
            let text = streamed_text(at, part).ok_or(Inexpressible)?;
            out.push(text.start());
            out.extend(text.delta(text.text));
            return Ok(true);
        }
        Part::File(file) => {
            let mut file = file.clone();
            // The chunk has no field for these two.
            let name = file.filename.take().map(|name| ("filename", Value::from(name)));
            let reference = file.provider_reference.take().map(|ids| ("providerReference", Value::from(ids)));
            for (key, value) in name.into_iter().chain(reference) {
                if let Some(own) = own_metadata(&mut file.provider_metadata) {
                    own.entry(key).or_insert(value);
                }
            }
            out.push(serde_json::to_value(Part::File(file)).unwrap_or_default());
        }
        Part::Tool(tool) => call::send(tool, out)?,
        Part::Data(data) => {
            let chunk = json!({"type": format!("data-{}", data.kind), "id": data.id});
            let mut chunk = object(chunk);
            chunk.insert("data".to_owned(), data.data.clone());
            out.push(chunk.into());
        }
        Part::ReasoningFile(_) | Part::SourceUrl(_) | Part::SourceDocument(_) | Part::Custom(_) | Part::Steering(_) => {
            out.push(serde_json::to_value(part).unwrap_or_default())
        }
        Part::StepStart | Part::Other(_) => return Err(Inexpressible),
    }
    Ok(false)
}

/// Ends the text that these parts end with.
fn end(parts: &[Part]) -> Option<Value> {
    streamed_text(parts.len().checked_sub(1)?, parts.last()?)?.end()
}

/// Whether this version has the chunks that a part may need: before 7, permissions and notes on results have none.
fn has_chunks(part: &Part, sdk: Sdk) -> bool {
    match part {
        Part::Tool(tool) => sdk >= Sdk::V7 || (tool.approval().is_none() && tool.result_provider_metadata.is_none()),
        _ => true,
    }
}

/// Whether a reader would confuse two parts: it finds calls, permissions and data by their ids.
fn repeats_an_id(parts: &[Part]) -> bool {
    let mut seen = HashSet::new();
    parts.iter().any(|part| match part {
        Part::Tool(tool) => {
            let asked = tool.approval().is_some_and(|asked| !seen.insert(("approval", asked.id.as_str())));
            !seen.insert(("call", tool.call_id.as_str())) || asked
        }
        Part::Data(data) => data.id.as_ref().is_some_and(|id| !seen.insert((data.kind.as_str(), id.as_str()))),
        _ => false,
    })
}

/// Whether merging the second into the first gives the second. The depth is limited by the JSON parser.
fn becomes(before: &Map<String, Value>, now: &Map<String, Value>) -> bool {
    before.iter().all(|(key, before)| match (before, now.get(key)) {
        (_, None) => false,
        (Value::Object(before), Some(Value::Object(now))) => becomes(before, now),
        _ => true,
    })
}
