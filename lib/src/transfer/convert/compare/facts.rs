//! The messages of a branch as facts that can be compared: parts, and the details of parts and messages.

use std::collections::BTreeMap;

use hashbrown::HashMap;
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use crate::model::error::Result;
use crate::model::loss::Lost;
use crate::model::message::{self, Part, Role, ToolState};
use crate::model::record::Kind;
use crate::session::{Branch, RecordRef};
use crate::transfer::convert::json::{each_leaf, hash};
use crate::view::conversation::Conversation;

/// Hashes of values by their paths, each with its name in a report.
type Details = BTreeMap<String, (Lost, u64)>;

/// The branch of one session.
#[derive(Default)]
pub(super) struct Side {
    pub(super) messages: Vec<Message>,
    pub(super) facts: Vec<Fact>,
}

/// A message without its parts.
pub(super) struct Message {
    pub(super) records: Vec<String>,
    pub(super) role: Role,
    pub(super) metadata: Details,
    pub(super) text: Text,
    /// It has no parts except step marks.
    pub(super) is_empty: bool,
    /// Its position in the source.
    pub(super) source: Option<usize>,
    /// The source's record that it is reported of: its own first one, or the one before it.
    pub(super) record: String,
}

/// One part of a message.
pub(super) struct Fact {
    pub(super) what: Lost,
    /// The whole part, without what differs between files with the same content.
    pub(super) hash: u64,
    pub(super) details: Details,
    /// What identifies the part, even if it became another kind of part: its texts, or its id or URL.
    pub(super) identity: Vec<u64>,
    /// The source's message that it is in.
    pub(super) message: Option<usize>,
    /// It is the first part of its message.
    pub(super) is_first: bool,
    pub(super) role: Role,
    /// The source's record that it is reported of.
    pub(super) record: String,
}

/// The text of a message without white space, whatever parts it is divided into.
#[derive(Clone, Copy, Default)]
pub(super) struct Text {
    pub(super) parts: usize,
    hash: u64,
    bytes: u32,
}

impl Side {
    /// Reads the messages of a branch whose first record is to be compared.
    pub(super) fn read(branch: &Branch<'_>, is_compared: impl Fn(&RecordRef<'_>) -> bool) -> Result<Side> {
        let conversation = Conversation::new(branch);
        let mut side = Side::default();
        for at in 0..conversation.len() {
            let records: Vec<RecordRef<'_>> = conversation.records(at).collect();
            let Some(first) = records.first().filter(|first| is_compared(first)) else { continue };
            let (record, source) = (first.id().into_owned(), Some(side.messages.len()));
            let Some(message) = conversation.message(at).transpose()? else { break };
            side.facts.extend(message.parts.iter().enumerate().map(|(at, part)| {
                let value = comparable(part);
                Fact {
                    what: part.into(),
                    identity: identity(part, &value),
                    hash: hash(&value),
                    details: details(part, value),
                    message: source,
                    is_first: at == 0,
                    role: message.role,
                    record: named_record(part).unwrap_or(&record).to_owned(),
                }
            }));
            side.messages.push(Message {
                records: records.iter().map(|record| record.id().into_owned()).collect(),
                role: message.role,
                text: Text::of(&message),
                is_empty: message.parts.iter().all(|part| *part == Part::StepStart),
                metadata: metadata(message),
                source,
                record,
            });
        }
        Ok(side)
    }

    /// Finds the source's message of each message. `ids` are the source's ids of records.
    pub(super) fn aligned(mut self, source: &Side, ids: &BTreeMap<String, String>) -> Side {
        let mut by_record: HashMap<&str, usize> = HashMap::new();
        for (at, message) in source.messages.iter().enumerate() {
            message.records.iter().for_each(|record| _ = by_record.entry(record).or_insert(at));
        }
        let source_id = |record: &String| ids.get(record).unwrap_or(record).clone();
        let mut last = source.messages.first().map(|first| first.record.clone()).unwrap_or_default();
        for message in &mut self.messages {
            let mut records = message.records.iter().map(source_id);
            message.source = records.find_map(|record| by_record.get(record.as_str()).copied());
            if let Some(at) = message.source {
                last.clone_from(&source.messages[at].record);
            }
            message.record.clone_from(&last);
        }
        for fact in &mut self.facts {
            let Some(message) = fact.message.map(|at| &self.messages[at]) else { continue };
            fact.message = message.source;
            let id = source_id(&fact.record);
            fact.record = if by_record.contains_key(id.as_str()) { id } else { message.record.clone() };
        }
        self
    }
}

impl Message {
    /// Values that a message may consist of without any part, such as the task list, by their keys.
    pub(super) fn states(&self) -> impl Iterator<Item = (&str, u64)> {
        let is_state = |what: &Lost| matches!(what, Lost::Todos | Lost::ThinkingMode | Lost::Metadata | Lost::Error);
        let states = self.metadata.iter().filter(move |(_, (what, _))| is_state(what));
        states.map(|(key, (_, value))| (key.as_str(), *value))
    }
}

impl Text {
    const BASE: u64 = 0x0100_0000_01b3;

    fn of(message: &message::Message) -> Text {
        let mut all = Text::default();
        for part in &message.parts {
            let Part::Text(text) = part else { continue };
            let bytes = text.text.bytes().filter(|byte| !byte.is_ascii_whitespace());
            all = bytes.fold(all, |all, byte| all.followed_by(Text { parts: 0, hash: byte.into(), bytes: 1 }));
            all.parts += 1;
        }
        all
    }

    pub(super) fn followed_by(self, next: Text) -> Text {
        Text {
            parts: self.parts + next.parts,
            hash: self.hash.wrapping_mul(Text::BASE.wrapping_pow(next.bytes)).wrapping_add(next.hash),
            bytes: self.bytes.wrapping_add(next.bytes),
        }
    }

    /// Whether both are the same text in other parts.
    pub(super) fn is_divided_differently(self, other: Text) -> bool {
        self.parts != other.parts && (self.hash, self.bytes) == (other.hash, other.bytes)
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

fn identity(part: &Part, value: &Value) -> Vec<u64> {
    let mut identity = Vec::new();
    match part {
        Part::Tool(call) => identity.push(xxh3_64(call.call_id.as_bytes())),
        Part::File(file) => identity.push(xxh3_64(file.url.as_bytes())),
        _ => each_leaf(value, &mut |_, key, leaf| {
            let text = leaf.as_str().map(str::trim).filter(|text| key != "type" && !text.is_empty());
            identity.extend(text.map(|text| xxh3_64(text.as_bytes())));
        }),
    }
    identity
}

/// A part as JSON, without ids of records and without fields that a file need not contain.
fn comparable(part: &Part) -> Value {
    let Value::Object(mut value) = serde_json::to_value(part).unwrap_or_default() else { return Value::Null };
    match part {
        // Text in a file is complete, whether its state is written or not.
        Part::Text(_) | Part::Reasoning(_) => _ = value.shift_remove("state"),
        Part::Steering(_) => _ = value.shift_remove("id"),
        Part::Data(_) => {
            if let Some(Value::Object(data)) = value.get_mut("data") {
                data.retain(|key, _| !matches!(key.as_str(), "record" | "from" | "to" | "target" | "preserved"));
            }
        }
        Part::Tool(call) => _ = value.insert("toolName".to_owned(), call.name.as_str().into()),
        _ => {}
    }
    value.retain(|_, value| !value.is_null());
    Value::Object(value)
}

/// The values of a part.
fn details(part: &Part, value: Value) -> Details {
    let mut details = Details::new();
    let mut next = vec![(String::new(), value)];
    while let Some((path, value)) = next.pop() {
        match (part, path.as_str(), value) {
            (_, "", Value::Object(fields)) => next.extend(fields),
            (Part::Data(_), "data", Value::Object(fields))
            | (Part::Tool(_), "callProviderMetadata" | "callProviderMetadata.scrollback", Value::Object(fields)) => {
                next.extend(fields.into_iter().map(|(key, value)| (format!("{path}.{key}"), value)));
            }
            (part, _, value) => _ = details.insert(path.clone(), (lost_detail(part, &path), hash(&value))),
        }
    }
    details
}

/// The name of a part's detail in a report.
fn lost_detail(part: &Part, path: &str) -> Lost {
    match (part, path) {
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
        (Part::Tool(_), "callProviderMetadata.scrollback.durationMs") => Lost::Duration,
        (Part::Tool(_), "callProviderMetadata.scrollback.exitCode") => Lost::ExitCode,
        (Part::Tool(_), path) if path.starts_with("callProviderMetadata.scrollback.") => Lost::RunNotes,
        (Part::Tool(_), path) if path.starts_with("callProviderMetadata.") => Lost::ProviderMetadata,
        (Part::Tool(_), _) => Lost::CallDetails,
        (Part::Text(_) | Part::Reasoning(_), "text") | (Part::File(_), "url") => part.into(),
        (Part::Text(_), "citations") => Lost::Citations,
        (Part::File(_), "mediaType") => Lost::MediaType,
        (Part::File(_), "filename") => Lost::FileName,
        (_, "providerMetadata" | "providerReference") => Lost::ProviderMetadata,
        (Part::Text(_) | Part::Reasoning(_) | Part::File(_), _) => Lost::PartDetails,
        _ => match (Lost::from(part), path) {
            (Lost::Record(Kind::Compaction), path) if path.starts_with("data.") && path != "data.summary" => {
                Lost::CompactionDetails
            }
            (Lost::Record(Kind::Rewind), "data.reason") => Lost::RewindReason,
            (Lost::Error, "data.kind") => Lost::ErrorKind,
            (part, _) => part,
        },
    }
}

/// The metadata of a message, the numbers of tokens one by one.
fn metadata(message: message::Message) -> Details {
    let mut details = Details::new();
    let mut add = |path: String, what, value| _ = details.insert(path, (what, hash(value)));
    for (key, value) in message.metadata.iter().flatten() {
        match (Lost::from_metadata_key(key), value) {
            (Some(Lost::Usage), Value::Object(tokens)) => {
                for (key, value) in tokens.iter().filter(|(_, value)| value.as_u64() != Some(0)) {
                    let what = match key.as_str() {
                        "cacheRead" | "cacheWrite" => Lost::CacheTokens,
                        "reasoning" => Lost::ReasoningTokens,
                        _ => Lost::Usage,
                    };
                    add(format!("usage.{key}"), what, value);
                }
            }
            (Some(what), value) => add(key.clone(), what, value),
            (None, _) => {}
        }
    }
    message.extra.iter().for_each(|(key, value)| add(format!("extra.{key}"), Lost::Metadata, value));
    details
}
