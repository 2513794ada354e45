//! The messages of a branch, taken apart into facts that can be compared: parts, and what is known of parts and messages.

use std::collections::BTreeMap;

use hashbrown::HashMap;
use serde_json::{Map, Value};
use xxhash_rust::xxh3::xxh3_64;

use crate::model::error::Result;
use crate::model::loss::Lost;
use crate::model::message::{self, Part, Role, ToolState};
use crate::session::{Branch, RecordRef};
use crate::view::conversation::Conversation;

/// Hashes of values by the keys that lead to them, each with the word for its loss.
type Details = BTreeMap<String, (Lost, u64)>;

/// What one side says on a branch.
#[derive(Default)]
pub(super) struct Side {
    pub(super) messages: Vec<Message>,
    pub(super) facts: Vec<Fact>,
}

/// What is compared of a message besides its parts.
pub(super) struct Message {
    pub(super) records: Vec<String>,
    pub(super) role: Role,
    pub(super) metadata: Details,
    pub(super) text: Text,
    /// It has no parts but marks of steps.
    pub(super) is_empty: bool,
    /// Its position in the source.
    pub(super) source: Option<usize>,
    /// The record of the source that it is, or comes after.
    pub(super) near: String,
}

/// One part of a message.
pub(super) struct Fact {
    pub(super) what: Lost,
    /// The part as a whole, without what differs between files that say the same.
    pub(super) hash: u64,
    pub(super) details: Details,
    /// The texts in it, and what identifies it: a part with the same is the same, whatever became of it.
    pub(super) texts: Vec<u64>,
    /// The source's message that it is in.
    pub(super) message: Option<usize>,
    /// It is the first part of its message.
    pub(super) is_first: bool,
    pub(super) role: Role,
    /// The source's record that it is reported of.
    pub(super) record: String,
}

/// All text of a message without spaces, however it is cut into parts.
#[derive(Clone, Copy, Default)]
pub(super) struct Text {
    pub(super) parts: usize,
    hash: u64,
    bytes: u32,
}

impl Side {
    /// Reads the messages of a branch whose first records are asked for.
    pub(super) fn read(branch: &Branch<'_>, is_compared: impl Fn(&RecordRef<'_>) -> bool) -> Result<Side> {
        let conversation = Conversation::new(branch);
        let mut side = Side::default();
        for at in 0..conversation.len() {
            let records: Vec<RecordRef<'_>> = conversation.records(at).collect();
            let Some(first) = records.first().filter(|first| is_compared(first)) else { continue };
            let (near, source) = (first.id().into_owned(), Some(side.messages.len()));
            let records = records.iter().map(|record| record.id().into_owned()).collect();
            let Some(message) = conversation.message(at).transpose()? else { break };
            let facts = message.parts.iter().enumerate().map(|(at, part)| {
                let record = named_record(part).unwrap_or(&near).to_owned();
                Fact { message: source, role: message.role, is_first: at == 0, ..Fact::new(part, record) }
            });
            side.facts.extend(facts);
            side.messages.push(Message {
                records,
                role: message.role,
                text: Text::of(&message),
                is_empty: message.parts.iter().all(|part| *part == Part::StepStart),
                metadata: metadata(message),
                source,
                near,
            });
        }
        Ok(side)
    }

    /// The same, with each message beside the source's message that it was made of. `names` are the source's names of records.
    pub(super) fn aligned(mut self, source: &Side, names: &BTreeMap<String, String>) -> Side {
        let mut by_record: HashMap<&str, usize> = HashMap::new();
        for (at, message) in source.messages.iter().enumerate() {
            message.records.iter().for_each(|record| _ = by_record.entry(record).or_insert(at));
        }
        let name = |record: &String| names.get(record).unwrap_or(record).clone();
        let mut near = source.messages.first().map(|first| first.record().to_owned()).unwrap_or_default();
        for message in &mut self.messages {
            message.source = message.records.iter().find_map(|record| by_record.get(name(record).as_str()).copied());
            if let Some(at) = message.source {
                near.clone_from(&source.messages[at].near);
            }
            message.near.clone_from(&near);
        }
        for fact in &mut self.facts {
            let Some(message) = fact.message.map(|at| &self.messages[at]) else { continue };
            fact.message = message.source;
            let named = name(&fact.record);
            fact.record = if by_record.contains_key(named.as_str()) { named } else { message.near.clone() };
        }
        self
    }
}

impl Message {
    /// Values that can be a message's only content, by their keys: the task list and the like.
    pub(super) fn states(&self) -> impl Iterator<Item = (&str, u64)> {
        let is_state = |what: &Lost| matches!(what, Lost::Todos | Lost::ThinkingMode | Lost::Metadata | Lost::Error);
        let states = self.metadata.iter().filter(move |(_, (what, _))| is_state(what));
        states.map(|(key, (_, value))| (key.as_str(), *value))
    }

    /// The record that it is reported of.
    pub(super) fn record(&self) -> &str {
        &self.near
    }
}

impl Text {
    const BASE: u64 = 0x0100_0000_01b3;

    fn of(message: &message::Message) -> Text {
        let texts = message.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.text.as_str()),
            _ => None,
        });
        texts.fold(Text::default(), |all, text| {
            let bytes = text.bytes().filter(|byte| !byte.is_ascii_whitespace());
            let one = Text { parts: 1, ..Text::default() };
            all.followed_by(bytes.fold(one, |text, byte| Text {
                hash: text.hash.wrapping_mul(Text::BASE).wrapping_add(byte.into()),
                bytes: text.bytes.wrapping_add(1),
                ..text
            }))
        })
    }

    pub(super) fn followed_by(self, next: Text) -> Text {
        Text {
            parts: self.parts + next.parts,
            hash: self.hash.wrapping_mul(Text::BASE.wrapping_pow(next.bytes)).wrapping_add(next.hash),
            bytes: self.bytes.wrapping_add(next.bytes),
        }
    }

    pub(super) fn is_same(self, other: Text) -> bool {
        (self.hash, self.bytes) == (other.hash, other.bytes)
    }
}

impl Fact {
    fn new(part: &Part, record: String) -> Fact {
        let value = comparable(part);
        let mut texts = Vec::new();
        match part {
            Part::Tool(call) => texts.push(xxh3_64(call.call_id.as_bytes())),
            Part::File(file) => texts.push(xxh3_64(file.url.as_bytes())),
            _ => leaves(&Value::Object(value.clone()), &mut |text| texts.push(xxh3_64(text.trim().as_bytes()))),
        }
        let hash = hash(&Value::Object(value.clone()));
        let details = details(part, value);
        Fact { what: part.into(), hash, details, texts, message: None, is_first: false, role: Role::User, record }
    }

    /// How many details both have.
    pub(super) fn same_details(&self, other: &Fact) -> usize {
        self.details.iter().filter(|(key, detail)| other.details.get(*key) == Some(detail)).count()
    }
}

/// The record that a part names as its own.
fn named_record(part: &Part) -> Option<&str> {
    match part {
        Part::Data(data) => data.data.get("record").and_then(Value::as_str),
        Part::Steering(steering) => Some(&steering.id),
        _ => None,
    }
}

/// A part as JSON, without names of records and without what may be written or not.
fn comparable(part: &Part) -> Map<String, Value> {
    let Value::Object(mut value) = serde_json::to_value(part).unwrap_or_default() else { return Map::new() };
    match part {
        // Text in a file is complete, whether that is written or not.
        Part::Text(_) | Part::Reasoning(_) => _ = value.shift_remove("state"),
        Part::Steering(_) => _ = value.shift_remove("id"),
        Part::Data(_) => {
            if let Some(Value::Object(data)) = value.get_mut("data") {
                data.retain(|key, _| !matches!(key.as_str(), "record" | "from" | "to" | "target" | "preserved"));
            }
        }
        Part::Tool(call) => {
            value.insert("toolName".to_owned(), call.name.as_str().into());
        }
        _ => {}
    }
    value.retain(|_, value| !value.is_null());
    value
}

/// The values of a part, each with the word for its loss.
fn details(part: &Part, value: Map<String, Value>) -> Details {
    let mut details = Details::new();
    let own = Lost::from(part);
    for (key, value) in value {
        match (part, key.as_str(), value) {
            (Part::Data(_), "data", Value::Object(data)) => {
                details.extend(data.iter().map(|(key, value)| (key.clone(), (data_word(&own, key), hash(value)))));
            }
            (Part::Tool(_), "callProviderMetadata", Value::Object(providers)) => {
                for (provider, value) in providers {
                    match value {
                        Value::Object(notes) if provider == "scrollback" => details.extend(
                            notes.iter().map(|(key, value)| (format!("run.{key}"), (run_word(key), hash(value)))),
                        ),
                        value => {
                            _ = details.insert(format!("provider.{provider}"), (Lost::ProviderMetadata, hash(&value)))
                        }
                    }
                }
            }
            (part, key, value) => _ = details.insert(key.to_owned(), (word(part, key), hash(&value))),
        }
    }
    details
}

fn word(part: &Part, key: &str) -> Lost {
    match (part, key) {
        (Part::Tool(call), "state") if matches!(call.state, ToolState::OutputDenied { .. }) => Lost::Denial,
        (Part::Tool(_), "toolName") => Lost::ToolName,
        (Part::Tool(_), "toolCallId") => Lost::CallId,
        (Part::Tool(_), "input" | "rawInput") => Lost::ToolInput,
        (Part::Tool(_), "output") => Lost::ToolOutput,
        (Part::Tool(_), "errorText") => Lost::FailureReason,
        (Part::Tool(_), "state") => Lost::CallState,
        (Part::Tool(_), "approval") => Lost::Approval,
        (Part::Tool(_), "preliminary") => Lost::PreliminaryResult,
        (Part::Tool(_), "providerExecuted") => Lost::ProviderCall,
        (Part::Tool(_), _) => Lost::CallDetails,
        (Part::Text(_) | Part::Reasoning(_), "text") | (Part::File(_), "url") => part.into(),
        (Part::Text(_), "citations") => Lost::Citations,
        (Part::File(_), "mediaType") => Lost::MediaType,
        (Part::File(_), "filename") => Lost::FileName,
        (_, "providerMetadata" | "providerReference") => Lost::ProviderMetadata,
        (Part::Text(_) | Part::Reasoning(_) | Part::File(_), _) => Lost::PartDetails,
        _ => part.into(),
    }
}

fn data_word(part: &Lost, key: &str) -> Lost {
    match (part.name(), key) {
        ("compaction", "summary") => part.clone(),
        ("compaction", _) => Lost::CompactionDetails,
        ("rewind", "reason") => Lost::RewindReason,
        ("error", "kind") => Lost::ErrorKind,
        _ => part.clone(),
    }
}

fn run_word(key: &str) -> Lost {
    match key {
        "durationMs" => Lost::Duration,
        "exitCode" => Lost::ExitCode,
        _ => Lost::RunNotes,
    }
}

/// What is known of a message; its tokens by what they are called.
fn metadata(message: message::Message) -> Details {
    let mut details = Details::new();
    for (key, value) in message.metadata.unwrap_or_default() {
        let Some(what) = Lost::from_metadata_key(&key) else { continue };
        let (Lost::Usage, Value::Object(tokens)) = (&what, &value) else {
            details.insert(key, (what, hash(&value)));
            continue;
        };
        for (key, value) in tokens.iter().filter(|(_, value)| value.as_u64() != Some(0)) {
            let what = match key.as_str() {
                "cacheRead" | "cacheWrite" => Lost::CacheTokens,
                "reasoning" => Lost::ReasoningTokens,
                _ => Lost::Usage,
            };
            details.insert(format!("usage.{key}"), (what, hash(value)));
        }
    }
    for (key, value) in message.extra {
        details.insert(format!("extra.{key}"), (Lost::Metadata, hash(&value)));
    }
    details
}

fn leaves(value: &Value, each: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) if !text.trim().is_empty() => each(text),
        Value::Array(items) => items.iter().for_each(|item| leaves(item, each)),
        Value::Object(object) => {
            object.iter().filter(|(key, _)| *key != "type").for_each(|(_, value)| leaves(value, each));
        }
        _ => {}
    }
}

fn hash(value: &Value) -> u64 {
    xxh3_64(value.to_string().as_bytes())
}
