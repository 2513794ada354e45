//! Changes a message so that a major version of the AI SDK accepts it and strips nothing from it.
//!
//! A part that the version does not know becomes `data-<its type>` with the same content; a key that it does not know moves to
//! `scrollback` in the part's provider metadata. Dropped are only unknown keys of parts without such metadata (data,
//! step-start, steering, and in SDK 5 calls whose input is still streaming).

mod tool;
mod url;

use std::{fmt, str::FromStr};

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::keys::put;
use super::{Message, Part, Role, SteeringPart, TextPart, own_metadata, validate};
use crate::model::json::is_object;

named_enum! {
    /// A major version of the AI SDK (the `ai` package).
    Sdk {
        /// `ai` 5: no approvals, no titles of tools.
        V5 = "5",
        /// `ai` 6: no custom parts, no files of reasoning.
        V6 = "6",
        /// `ai` 7.
        V7 = "7",
    }
}

impl Message {
    /// Changes the message so that this SDK accepts it with nothing stripped.
    ///
    /// What the SDK cannot hold moves to `data-*` parts and `scrollback` metadata.
    pub fn for_sdk(mut self, sdk: Sdk) -> Message {
        // The SDK accepts any JSON as metadata: a value that is not an object was read into `extra` and stays there.
        let foreign_metadata = self.extra.shift_remove("metadata");
        let unknown = std::mem::take(&mut self.extra);
        match foreign_metadata {
            Some(metadata) => {
                self.extra.insert("metadata".to_owned(), metadata);
            }
            None => self.metadata = with_own(self.metadata, unknown),
        }
        self.parts = self.parts.into_iter().map(|part| part.for_sdk(sdk)).collect();
        if self.parts.is_empty() && self.role != Role::Assistant {
            self.parts.push(Part::text(""));
        }
        self
    }
}

impl Part {
    fn for_sdk(mut self, sdk: Sdk) -> Part {
        match &mut self {
            Part::Text(part) => {
                let fits = |citations: &Vec<Value>| sdk >= Sdk::V7 && citations.iter().all(is_exact_citation);
                let refused = part.citations.take_if(|citations| !fits(citations));
                put(&mut part.extra, "citations", refused);
            }
            Part::File(part) => {
                let is_reference = |ids: &Map<String, Value>| sdk >= Sdk::V7 && ids.values().all(Value::is_string);
                let refused = part.provider_reference.take_if(|ids| !is_reference(ids));
                put(&mut part.extra, "providerReference", refused);
                if sdk >= Sdk::V7 && part.provider_reference.is_none() && !url::parses(&part.url) {
                    return Part::data("file", json(part));
                }
            }
            Part::ReasoningFile(part) if sdk < Sdk::V7 || !url::parses(&part.url) => {
                return Part::data("reasoning-file", json(part));
            }
            Part::Custom(part) if sdk < Sdk::V7 => return Part::data("custom", json(part)),
            Part::Steering(part) => return steering(std::mem::take(part), sdk),
            Part::Tool(part) => tool::for_sdk(part, sdk),
            Part::Data(part) => part.extra.clear(),
            // A step boundary with keys of its own is still a step boundary.
            Part::Other(part) if part["type"] == "step-start" => return Part::StepStart,
            Part::Other(part) => return Part::data("unknown", json!({ "part": part.take() })),
            Part::ReasoningFile(_)
            | Part::Custom(_)
            | Part::Reasoning(_)
            | Part::SourceUrl(_)
            | Part::SourceDocument(_)
            | Part::StepStart => {}
        }
        if let Some((metadata, extra)) = self.metadata_and_extra() {
            *metadata = one_object_each(metadata.take(), std::mem::take(extra));
        }
        self
    }
}

/// SDK 7 allows only texts (without a state) and files here.
fn steering(mut part: SteeringPart, sdk: Sdk) -> Part {
    let ready: Vec<Part> = part.parts.iter().cloned().map(|inner| inner.for_sdk(sdk)).collect();
    let is_allowed = |inner: &Part| {
        let is_plain = |text: &TextPart| text.state.is_none() && text.citations.is_none();
        matches!(inner, Part::File(_)) || matches!(inner, Part::Text(text) if is_plain(text))
    };
    if sdk < Sdk::V7 || !ready.iter().all(is_allowed) {
        return Part::data("steering-message", json(&part));
    }
    part.extra.clear();
    part.parts = ready;
    Part::Steering(part)
}

/// Whether SDK 7 accepts a citation and strips nothing from it. One key of the wrong type makes it reject the conversation.
fn is_exact_citation(citation: &Value) -> bool {
    let has_only = |object: &Value, keys: &[&str]| {
        object.as_object().is_some_and(|object| object.keys().all(|key| keys.contains(&key.as_str())))
    };
    let source = &citation["source"];
    let keys: &[&str] = match source["sourceType"].as_str() {
        Some("url") => &["type", "sourceType", "id", "url", "title", "providerMetadata"],
        _ => &["type", "sourceType", "id", "mediaType", "title", "filename", "providerMetadata"],
    };
    validate::citation(citation).is_ok()
        && has_only(citation, &["source", "startIndex", "endIndex", "citedText"])
        && has_only(source, keys)
}

/// Provider metadata that every SDK accepts: one object per provider. Anything else, and `extra`, moves to our own.
fn one_object_each(metadata: Option<Map<String, Value>>, mut extra: Map<String, Value>) -> Option<Map<String, Value>> {
    let metadata = metadata.map(|metadata| {
        let (objects, others): (Map<_, _>, Map<_, _>) = metadata.into_iter().partition(|(_, value)| is_object(value));
        extra.extend(others);
        objects
    });
    with_own(metadata, extra)
}

/// Adds these keys to our own metadata, where existing ones have precedence.
fn with_own(mut metadata: Option<Map<String, Value>>, extra: Map<String, Value>) -> Option<Map<String, Value>> {
    if !extra.is_empty()
        && let Some(own) = own_metadata(&mut metadata)
    {
        extra.into_iter().for_each(|(key, value)| _ = own.entry(key).or_insert(value));
    }
    metadata
}

fn json(part: &impl Serialize) -> Value {
    // Our parts are JSON already: text keys only, so this cannot fail.
    serde_json::to_value(part).unwrap_or_default()
}

/// The error for a major version of the AI SDK that we do not know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown AI SDK version \"{0}\"; use 5, 6 or 7")]
pub struct UnknownSdk(String);

impl FromStr for Sdk {
    type Err = UnknownSdk;

    fn from_str(text: &str) -> Result<Sdk, UnknownSdk> {
        let known = [Sdk::V5, Sdk::V6, Sdk::V7].into_iter().find(|sdk| sdk.name() == text);
        known.ok_or_else(|| UnknownSdk(text.to_owned()))
    }
}

impl fmt::Display for Sdk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
