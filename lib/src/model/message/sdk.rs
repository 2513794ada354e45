//! What must change so that a major of the AI SDK takes a message and strips nothing from it.
//!
//! The rule: a part that the major does not know becomes `data-<its type>` with the same content; a key that it does not
//! know moves to `scrollback` in the part's provider metadata. Dropped are only unknown keys of parts without such
//! metadata (data, step-start, steering, and in SDK 5 calls whose input is still streaming).

mod citation;
mod tool;
mod url;

use std::{fmt, mem, str::FromStr};

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{FilePart, Message, Part, ReasoningFilePart, Role, SteeringPart, TextPart};

/// A major version of the AI SDK (the `ai` package).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sdk {
    /// `ai` 5: no approvals, no titles of tools.
    V5,
    /// `ai` 6: no custom parts, no files of reasoning.
    V6,
    /// `ai` 7.
    V7,
}

impl Message {
    /// Changes the message so that this SDK accepts it with nothing stripped.
    ///
    /// What the SDK has no place for stays in our own: `data-*` parts and `scrollback` metadata.
    pub fn for_sdk(mut self, sdk: Sdk) -> Message {
        // The SDK takes any JSON as metadata; what is no object was read into `extra` and stays.
        let foreign_metadata = self.extra.shift_remove("metadata");
        let unknown = mem::take(&mut self.extra);
        match foreign_metadata {
            Some(metadata) => {
                self.extra.insert("metadata".to_owned(), metadata);
            }
            None => self.metadata = with_ours(self.metadata, unknown),
        }
        self.parts = self.parts.into_iter().map(|part| part.for_sdk(sdk)).collect();
        if self.parts.is_empty() && self.role != Role::Assistant {
            self.parts.push(Part::text(""));
        }
        self
    }
}

impl Part {
    fn for_sdk(self, sdk: Sdk) -> Part {
        match self {
            Part::Text(part) => Part::Text(text(part, sdk)),
            Part::Reasoning(mut part) => {
                part.provider_metadata = settled(part.provider_metadata, mem::take(&mut part.extra));
                Part::Reasoning(part)
            }
            Part::File(part) => file(part, sdk),
            Part::ReasoningFile(part) => reasoning_file(part, sdk),
            Part::SourceUrl(mut part) => {
                part.provider_metadata = settled(part.provider_metadata, mem::take(&mut part.extra));
                Part::SourceUrl(part)
            }
            Part::SourceDocument(mut part) => {
                part.provider_metadata = settled(part.provider_metadata, mem::take(&mut part.extra));
                Part::SourceDocument(part)
            }
            Part::Custom(part) if sdk < Sdk::V7 => Part::data("custom", json(&part)),
            Part::Custom(mut part) => {
                part.provider_metadata = settled(part.provider_metadata, mem::take(&mut part.extra));
                Part::Custom(part)
            }
            Part::Steering(part) => steering(part, sdk),
            Part::StepStart => Part::StepStart,
            Part::Tool(part) => tool::for_sdk(*part, sdk).into(),
            Part::Data(mut part) => {
                part.extra.clear();
                Part::Data(part)
            }
            // A step boundary with keys of its own is one all the same.
            Part::Other(part) if part["type"] == "step-start" => Part::StepStart,
            Part::Other(part) => Part::data("unknown", json!({ "part": part })),
        }
    }
}

fn text(mut part: TextPart, sdk: Sdk) -> TextPart {
    let mut kept = mem::take(&mut part.extra);
    let fits = |citations: &Vec<Value>| sdk >= Sdk::V7 && citations.iter().all(citation::fits);
    if let Some(citations) = part.citations.take_if(|citations| !fits(citations)) {
        kept.insert("citations".to_owned(), citations.into());
    }
    part.provider_metadata = settled(part.provider_metadata, kept);
    part
}

fn file(mut part: FilePart, sdk: Sdk) -> Part {
    let is_reference = |ids: &Map<String, Value>| sdk >= Sdk::V7 && ids.values().all(Value::is_string);
    let refused = part.provider_reference.take_if(|ids| !is_reference(ids));
    if sdk >= Sdk::V7 && part.provider_reference.is_none() && !url::parses(&part.url) {
        part.provider_reference = refused;
        return Part::data("file", json(&part));
    }
    let mut kept = mem::take(&mut part.extra);
    if let Some(reference) = refused {
        kept.insert("providerReference".to_owned(), reference.into());
    }
    part.provider_metadata = settled(part.provider_metadata, kept);
    Part::File(part)
}

fn reasoning_file(mut part: ReasoningFilePart, sdk: Sdk) -> Part {
    if sdk < Sdk::V7 || !url::parses(&part.url) {
        return Part::data("reasoning-file", json(&part));
    }
    part.provider_metadata = settled(part.provider_metadata, mem::take(&mut part.extra));
    Part::ReasoningFile(part)
}

/// SDK 7 takes only texts (without a state) and files in here.
fn steering(mut part: SteeringPart, sdk: Sdk) -> Part {
    let ready: Vec<Part> = part.parts.iter().cloned().map(|inner| inner.for_sdk(sdk)).collect();
    let belongs = |inner: &Part| match inner {
        Part::Text(text) => text.state.is_none() && text.citations.is_none(),
        Part::File(_) => true,
        Part::Reasoning(_)
        | Part::ReasoningFile(_)
        | Part::SourceUrl(_)
        | Part::SourceDocument(_)
        | Part::Custom(_)
        | Part::Steering(_)
        | Part::StepStart
        | Part::Tool(_)
        | Part::Data(_)
        | Part::Other(_) => false,
    };
    if sdk < Sdk::V7 || !ready.iter().all(belongs) {
        return Part::data("steering-message", json(&part));
    }
    part.extra.clear();
    part.parts = ready;
    Part::Steering(part)
}

/// Makes provider metadata that every SDK takes: one object per provider. What is no object moves to ours.
fn settled(metadata: Option<Map<String, Value>>, mut kept: Map<String, Value>) -> Option<Map<String, Value>> {
    let metadata = metadata.map(|metadata| {
        let (objects, others): (Map<_, _>, Map<_, _>) = metadata.into_iter().partition(|(_, value)| value.is_object());
        kept.extend(others);
        objects
    });
    with_ours(metadata, kept)
}

/// Puts these under `scrollback`, where what we wrote ourselves goes first.
fn with_ours(metadata: Option<Map<String, Value>>, kept: Map<String, Value>) -> Option<Map<String, Value>> {
    if kept.is_empty() {
        return metadata;
    }
    let mut metadata = metadata.unwrap_or_default();
    let ours = metadata.entry("scrollback").or_insert_with(|| Map::new().into());
    if let Value::Object(ours) = ours {
        for (key, value) in kept {
            ours.entry(key).or_insert(value);
        }
    }
    Some(metadata)
}

fn json(part: &impl Serialize) -> Value {
    // Our parts are JSON already: text keys only, so this cannot fail.
    serde_json::to_value(part).unwrap_or_default()
}

/// The error for a major version of the AI SDK that we do not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownSdk(String);

impl fmt::Display for UnknownSdk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no AI SDK \"{}\" (5, 6 and 7 are known)", self.0)
    }
}

impl std::error::Error for UnknownSdk {}

impl FromStr for Sdk {
    type Err = UnknownSdk;

    fn from_str(text: &str) -> Result<Sdk, UnknownSdk> {
        match text {
            "5" => Ok(Sdk::V5),
            "6" => Ok(Sdk::V6),
            "7" => Ok(Sdk::V7),
            _ => Err(UnknownSdk(text.to_owned())),
        }
    }
}

impl fmt::Display for Sdk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Sdk::V5 => "5",
            Sdk::V6 => "6",
            Sdk::V7 => "7",
        })
    }
}
