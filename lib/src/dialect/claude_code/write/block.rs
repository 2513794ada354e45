//! Parts of a message and results of calls as content blocks of the API: `block.rs` reads them back.

use serde_json::{Map, Value, json};

use crate::dialect::line_builder::plain_name;
use crate::model::loss::{Losses, Lost};
use crate::model::message::{FilePart, Part, ReasoningPart, TextPart, ToolPart, ToolState};
use crate::model::record::{Outcome, ToolResult};
use crate::model::wire::{IMAGES, data_url, file_words, given, id as plain_id, is_web_address};

/// The API sets no limit for ids; those of agents are shorter.
const ID_CHARS: usize = 128;
/// Of a tool: what the API takes.
const NAME_CHARS: usize = 128;

/// Who speaks: the API takes different blocks of each.
#[derive(Clone, Copy)]
pub(super) enum Speaker {
    User,
    Model,
}

/// The block that says a part.
pub(super) fn of(part: &Part, speaker: Speaker, losses: &mut Losses) -> Option<Value> {
    match (part, speaker) {
        (Part::Text(content), _) => text(content, speaker, losses),
        (Part::Reasoning(thought), Speaker::Model) => thinking(thought, losses),
        (Part::Tool(call), Speaker::Model) => Some(tool_use(call, losses)),
        (Part::File(file), Speaker::User) => Some(file_block(file, losses)),
        (Part::File(file), Speaker::Model) => Some(mentioned(file, losses)),
        // A block of this API that we do not know; it came from there.
        (Part::Data(data), _) if data.kind == "block" && data.data["type"].is_string() => Some(data.data.clone()),
        // The model is told of a room's files and reactions.
        (Part::Data(data), Speaker::User) if matches!(data.kind.as_str(), "attachment" | "reaction") => {
            losses.renamed(part);
            Some(json!({"type": "text", "text": data.data.to_string()}))
        }
        (Part::StepStart, _) => None,
        (
            Part::Reasoning(_)
            | Part::Tool(_)
            | Part::ReasoningFile(_)
            | Part::SourceUrl(_)
            | Part::SourceDocument(_)
            | Part::Custom(_)
            | Part::Steering(_)
            | Part::Data(_)
            | Part::Other(_),
            _,
        ) => {
            losses.dropped(part);
            None
        }
    }
}

/// The API refuses a text of nothing.
fn text(content: &TextPart, speaker: Speaker, losses: &mut Losses) -> Option<Value> {
    losses.dropped_if(content.provider_metadata.is_some(), Lost::ProviderMetadata);
    losses.dropped_if(!content.extra.is_empty(), Lost::PartDetails);
    if content.text.is_empty() {
        losses.dropped(Lost::Text);
        return None;
    }
    let mut block = json!({"type": "text", "text": content.text});
    match (&content.citations, speaker) {
        (Some(citations), Speaker::Model) => block["citations"] = citations.clone().into(),
        (Some(_), Speaker::User) => losses.dropped(Lost::Citations),
        (None, _) => {}
    }
    Some(block)
}

/// The API refuses thinking without its signature, and the agent sends it, whoever's model thought so.
fn thinking(thought: &ReasoningPart, losses: &mut Losses) -> Option<Value> {
    let metadata = thought.provider_metadata.as_ref();
    let anthropic = metadata.and_then(|metadata| metadata.get("anthropic"));
    let secret = |key: &str| anthropic?.get(key)?.as_str().filter(|secret| !secret.is_empty());
    losses.dropped_if(
        metadata.is_some_and(|metadata| metadata.keys().any(|key| key != "anthropic")),
        Lost::ProviderMetadata,
    );
    losses.dropped_if(!thought.extra.is_empty(), Lost::PartDetails);
    let says_something = !thought.text.is_empty();
    match (secret("signature"), secret("redactedData")) {
        (Some(signature), _) => Some(json!({"type": "thinking", "thinking": thought.text, "signature": signature})),
        (None, Some(data)) => {
            losses.dropped_if(says_something, Lost::Thinking);
            Some(json!({"type": "redacted_thinking", "data": data}))
        }
        (None, None) => {
            losses.dropped(Lost::Thinking);
            None
        }
    }
}

fn tool_use(call: &ToolPart, losses: &mut Losses) -> Value {
    losses.of_call(call);
    losses.dropped_if(call.call_provider_metadata.is_some(), Lost::ProviderMetadata);
    if call.provider_executed == Some(true) {
        losses.renamed(Lost::ProviderCall);
    }
    let raw = if let ToolState::OutputError { raw_input, .. } = &call.state { raw_input.as_ref() } else { None };
    if call.input().or(raw).is_some_and(|input| !input.is_object() && !input.is_null()) {
        losses.renamed(Lost::ToolInput);
    }
    let name = plain_name(&call.name, NAME_CHARS);
    if name != call.name {
        losses.renamed(Lost::ToolName);
    }
    json!({"type": "tool_use", "id": call_id(&call.call_id, losses), "name": name, "input": call.arguments()})
}

/// The id of a call as the API takes it: a call and its result get the same one.
fn call_id(id: &str, losses: &mut Losses) -> String {
    let plain = plain_id(id, ID_CHARS);
    if plain != id {
        losses.renamed(Lost::CallId);
    }
    plain.into_owned()
}

/// An image or a document: in the block, or where it is on the web.
fn file_block(file: &FilePart, losses: &mut Losses) -> Value {
    let is_image = file.media_type.starts_with("image");
    let is_taken = |media_type: &str| IMAGES.contains(&media_type) || media_type == "application/pdf";
    let (source, media_type) = match data_url(&file.url) {
        Some((media_type, data)) if is_taken(media_type) => {
            (json!({"type": "base64", "media_type": media_type, "data": data}), media_type)
        }
        None if is_web_address(&file.url) && (is_image || file.media_type == "application/pdf") => {
            (json!({"type": "url", "url": file.url}), if is_image { "image/*" } else { "application/pdf" })
        }
        Some(_) | None => return mentioned(file, losses),
    };
    if media_type != file.media_type {
        losses.renamed(Lost::MediaType);
    }
    let elsewhere = file.provider_metadata.is_some() || file.provider_reference.is_some();
    losses.dropped_if(elsewhere, Lost::ProviderMetadata);
    losses.dropped_if(!file.extra.is_empty(), Lost::PartDetails);
    let is_image = media_type.starts_with("image");
    let mut block = json!({"type": if is_image { "image" } else { "document" }, "source": source});
    match &file.filename {
        Some(name) if !is_image => block["title"] = name.as_str().into(),
        Some(_) => losses.dropped(Lost::FileName),
        None => {}
    }
    block
}

/// Words that stand for a file that the API does not take.
fn mentioned(file: &FilePart, losses: &mut Losses) -> Value {
    losses.dropped(if file.media_type.starts_with("image") { Lost::Image } else { Lost::File });
    json!({"type": "text", "text": file_words(file)})
}

/// The block that answers a call.
pub(super) fn tool_result(result: &ToolResult, losses: &mut Losses) -> Value {
    let mut block = Map::new();
    block.insert("type".to_owned(), "tool_result".into());
    block.insert("tool_use_id".to_owned(), call_id(&result.call_id, losses).into());
    if let Some(content) = content(result, losses) {
        block.insert("content".to_owned(), content);
    }
    if result.outcome != Outcome::Done {
        block.insert("is_error".to_owned(), true.into());
    }
    block.into()
}

/// What a tool gave back, else why it did not: the API asks for words where it failed.
fn content(result: &ToolResult, losses: &mut Losses) -> Option<Value> {
    let why = match &result.outcome {
        Outcome::Done => None,
        Outcome::Failed(why) => Some(why.as_str()),
        Outcome::Denied(why) => Some(why.as_deref().unwrap_or_default()),
    };
    let says_nothing = result.output.is_null() || result.output == "";
    match why {
        Some("") if says_nothing => losses.synthesised(Lost::FailureReason),
        Some(why) if !why.is_empty() && !says_nothing && result.output != why => losses.renamed(Lost::FailureReason),
        Some(_) | None => {}
    }
    if result.outcome == Outcome::Done && says_nothing {
        return (!result.output.is_null()).then(|| result.output.clone());
    }
    let parts = given(result);
    if let [Part::Text(text)] = parts.as_slice() {
        let is_as_it_was = says_nothing || result.output.is_string();
        if !is_as_it_was {
            losses.renamed(Lost::ToolOutput);
        }
        return Some(text.text.clone().into());
    }
    let (mut blocks, mut read_back, mut has_files) = (Vec::new(), Vec::new(), false);
    for part in &parts {
        match part {
            Part::File(file) => {
                has_files = true;
                read_back.push(json!({"type": "file", "mediaType": file.media_type, "url": file.url}));
                blocks.push(file_block(file, losses));
            }
            other => {
                read_back.extend(serde_json::to_value(other));
                blocks.extend(of(other, Speaker::User, losses));
            }
        }
    }
    if !has_files || Value::from(read_back) != result.output {
        losses.renamed(Lost::ToolOutput);
    }
    Some(blocks.into())
}
