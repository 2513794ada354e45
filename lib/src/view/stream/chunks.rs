//! Updates as chunks of the AI SDK's UI message stream.
//!
//! The protocol can only add to the assistant's message that it is at. So the newest of those is streamed, piece by piece;
//! every other message, and a change that no chunk can say, is sent whole in a transient `data-message`. What leaves the
//! branch is named in a transient `data-removed`.
//!
//! A reader of chunks loses little: a text without a state is `done`, a thought gets an id, and a file's name is found in
//! `providerMetadata.scrollback`.

use hashbrown::HashSet;
use serde_json::{Map, Value, json};

use super::Update;
use super::call;
use super::chunk::{Chunk, DataChunk};
use crate::model::message::{Message, Part, Role, Sdk, StreamState};

/// Turns updates into chunks.
pub struct Chunks {
    sdk: Sdk,
    streamed: Option<Streamed>,
    /// Every message that was sent and not removed.
    sent: HashSet<String>,
}

/// The message that is being streamed, as far as it was sent.
struct Streamed {
    id: String,
    metadata: Option<Map<String, Value>>,
    parts: Vec<Part>,
    /// The last part is a text that may continue.
    open: bool,
    in_step: bool,
}

/// What no chunk can say.
pub(super) struct Unsayable;

impl Chunks {
    /// Makes chunks for a reader of this version.
    pub fn new(sdk: Sdk) -> Chunks {
        Chunks { sdk, streamed: None, sent: HashSet::new() }
    }

    /// The chunks of an update.
    pub fn of(&mut self, update: Update) -> Vec<Chunk> {
        match update {
            Update::Removed(ids) => {
                let streamed = self.streamed.as_ref().is_some_and(|streamed| ids.contains(&streamed.id));
                let mut chunks = if streamed { self.finish() } else { Vec::new() };
                ids.iter().for_each(|id| _ = self.sent.remove(id));
                chunks.push(beside("removed", json!({ "ids": ids })));
                chunks
            }
            Update::Message(message) => self.message(message.for_sdk(self.sdk)),
        }
    }

    /// Ends the message that is being streamed: nothing more is expected. What comes for it all the same is sent whole.
    pub fn finish(&mut self) -> Vec<Chunk> {
        let mut chunks = Vec::new();
        if let Some(streamed) = self.streamed.take() {
            if streamed.open {
                chunks.extend(end(&streamed.parts));
            }
            chunks.extend(streamed.in_step.then_some(Chunk::FinishStep));
            // Said again: a reader shows what came last only when it learns something.
            chunks.push(Chunk::Finish { message_metadata: streamed.metadata });
        }
        chunks
    }

    fn message(&mut self, message: Message) -> Vec<Chunk> {
        let is_new = self.sent.insert(message.id.clone());
        if self.streamed.as_ref().is_none_or(|streamed| streamed.id != message.id) {
            let mut chunks = self.finish();
            let mut begun = if is_new { vec![start(&message)] } else { Vec::new() };
            let before = Streamed { id: message.id.clone(), metadata: message.metadata.clone(), ..Streamed::nothing() };
            self.streamed = before.go_on(&message, self.sdk, &mut begun).ok().filter(|_| is_new);
            match self.streamed {
                Some(_) => chunks.append(&mut begun),
                None => chunks.push(whole(&message)),
            }
            return chunks;
        }
        let mut chunks = Vec::new();
        match self.streamed.as_ref().map(|streamed| streamed.go_on(&message, self.sdk, &mut chunks)) {
            Some(Ok(streamed)) => self.streamed = Some(streamed),
            Some(Err(Unsayable)) | None => {
                chunks = self.finish();
                chunks.push(whole(&message));
            }
        }
        chunks
    }
}

impl Streamed {
    fn nothing() -> Streamed {
        Streamed { id: String::new(), metadata: None, parts: Vec::new(), open: false, in_step: false }
    }

    /// Says what is new in a message.
    fn go_on(&self, message: &Message, sdk: Sdk, out: &mut Vec<Chunk>) -> Result<Streamed, Unsayable> {
        let is_answer = message.role == Role::Assistant && message.extra.is_empty();
        let sayable =
            is_answer && message.parts.iter().all(|part| has_chunks(part, sdk)) && !repeats_an_id(&message.parts);
        if !sayable || message.parts.len() < self.parts.len() {
            return Err(Unsayable);
        }
        if self.metadata != message.metadata {
            let metadata = message.metadata.clone().ok_or(Unsayable)?;
            if !self.metadata.as_ref().is_none_or(|before| becomes(before, &metadata)) {
                return Err(Unsayable);
            }
            out.push(Chunk::MessageMetadata { message_metadata: metadata });
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
                    out.extend(std::mem::replace(&mut in_step, true).then_some(Chunk::FinishStep));
                    out.push(Chunk::StartStep);
                }
                part => open = say(at, part, out)?,
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

    fn change(&self, at: usize, before: &Part, now: &Part, out: &mut Vec<Chunk>) -> Result<(), Unsayable> {
        let is_open = self.open && at + 1 == self.parts.len();
        match (before, now) {
            (Part::Text(before), Part::Text(now)) if is_open => {
                let delta = now.text.strip_prefix(&before.text).ok_or(Unsayable)?.to_owned();
                out.extend((!delta.is_empty()).then(|| Chunk::TextDelta { id: text_id(at), delta }));
            }
            (Part::Reasoning(before), Part::Reasoning(now)) if is_open && before.id == now.id => {
                let delta = now.text.strip_prefix(&before.text).ok_or(Unsayable)?.to_owned();
                let id = thought_id(at, now.id.as_ref());
                out.extend((!delta.is_empty()).then(|| Chunk::ReasoningDelta { id, delta }));
            }
            (Part::Tool(before), Part::Tool(now)) => {
                let in_this_step = !self.parts[at..].contains(&Part::StepStart);
                call::change(before, now, in_this_step, out)?;
            }
            (Part::Data(before), Part::Data(now))
                if now.id.is_some() && before.id == now.id && before.kind == now.kind =>
            {
                say(at, &Part::Data(now.clone()), out)?;
            }
            _ => return Err(Unsayable),
        }
        Ok(())
    }
}

fn start(message: &Message) -> Chunk {
    Chunk::Start { message_id: message.id.clone(), message_metadata: message.metadata.clone() }
}

fn whole(message: &Message) -> Chunk {
    beside("message", serde_json::to_value(message).unwrap_or_default())
}

/// Something of ours beside the messages.
fn beside(kind: &str, data: Value) -> Chunk {
    Chunk::Data(DataChunk { kind: kind.to_owned(), id: None, data, transient: true })
}

/// Sends a new part, and returns whether it may continue. Steps are the message's own.
fn say(at: usize, part: &Part, out: &mut Vec<Chunk>) -> Result<bool, Unsayable> {
    match part {
        Part::Text(text) => {
            let id = text_id(at);
            // What is known only at the end is sent with the end; a text that never ends has only its start.
            let provider_metadata =
                text.provider_metadata.clone().filter(|_| text.state == Some(StreamState::Streaming));
            out.push(Chunk::TextStart { id: id.clone(), provider_metadata });
            let delta = text.text.clone();
            out.extend((!delta.is_empty()).then_some(Chunk::TextDelta { id, delta }));
            return Ok(true);
        }
        Part::Reasoning(thought) => {
            let id = thought_id(at, thought.id.as_ref());
            let provider_metadata =
                thought.provider_metadata.clone().filter(|_| thought.state == Some(StreamState::Streaming));
            out.push(Chunk::ReasoningStart { id: id.clone(), provider_metadata });
            let delta = thought.text.clone();
            out.extend((!delta.is_empty()).then_some(Chunk::ReasoningDelta { id, delta }));
            return Ok(true);
        }
        Part::File(file) => {
            let mut file = file.clone();
            // The chunk has no field for these two.
            let name = file.filename.take().map(|name| ("filename", Value::from(name)));
            let reference = file.provider_reference.take().map(|ids| ("providerReference", Value::from(ids)));
            for (key, value) in name.into_iter().chain(reference) {
                let ours = file.provider_metadata.get_or_insert_default().entry("scrollback");
                if let Value::Object(ours) = ours.or_insert_with(|| Map::new().into()) {
                    ours.entry(key).or_insert(value);
                }
            }
            out.push(Chunk::Whole(Part::File(file)));
        }
        Part::Tool(tool) => call::say(tool, out)?,
        Part::Data(data) => {
            let (kind, id, data) = (data.kind.clone(), data.id.clone(), data.data.clone());
            out.push(Chunk::Data(DataChunk { kind, id, data, transient: false }));
        }
        Part::ReasoningFile(_) | Part::SourceUrl(_) | Part::SourceDocument(_) | Part::Custom(_) | Part::Steering(_) => {
            out.push(Chunk::Whole(part.clone()))
        }
        Part::StepStart | Part::Other(_) => return Err(Unsayable),
    }
    Ok(false)
}

/// Ends the text that these parts end with.
fn end(parts: &[Part]) -> Option<Chunk> {
    let at = parts.len().checked_sub(1)?;
    match parts.last()? {
        Part::Text(text) if text.state != Some(StreamState::Streaming) => Some(Chunk::TextEnd {
            id: text_id(at),
            citations: text.citations.clone(),
            provider_metadata: text.provider_metadata.clone(),
        }),
        Part::Reasoning(thought) if thought.state != Some(StreamState::Streaming) => Some(Chunk::ReasoningEnd {
            id: thought_id(at, thought.id.as_ref()),
            provider_metadata: thought.provider_metadata.clone(),
        }),
        _ => None,
    }
}

fn text_id(at: usize) -> String {
    format!("text-{at}")
}

fn thought_id(at: usize, own: Option<&String>) -> String {
    own.cloned().unwrap_or_else(|| format!("reasoning-{at}"))
}

/// Whether this version has the chunks that a part may need: before 7, permissions and notes on results have none.
fn has_chunks(part: &Part, sdk: Sdk) -> bool {
    match part {
        Part::Tool(tool) => sdk >= Sdk::V7 || (tool.approval().is_none() && tool.result_provider_metadata.is_none()),
        _ => true,
    }
}

/// Whether a reader would take one part for another: it finds calls, permissions and data by their ids.
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

/// Whether a reader who merges the second into the first has the second. Both are as deep as JSON that was read can be.
fn becomes(before: &Map<String, Value>, now: &Map<String, Value>) -> bool {
    before.iter().all(|(key, before)| match (before, now.get(key)) {
        (_, None) => false,
        (Value::Object(before), Some(Value::Object(now))) => becomes(before, now),
        _ => true,
    })
}
