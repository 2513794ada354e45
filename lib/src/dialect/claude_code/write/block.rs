//! Writes the parts of a message and the results of calls as content blocks of the API, which `part.rs` reads.

use serde_json::{Value, json};

use crate::dialect::line_builder::{Fields, Put, fields};
use crate::model::json;
use crate::model::loss::{Losses, Lost};
use crate::model::message::{FilePart, Part, ReasoningPart, TextPart, ToolPart};
use crate::model::record::{Outcome, ToolResult};
use crate::model::wire::{IMAGES, data_url, file_words, given, id as plain_id, is_web_address, tool_name};

/// The API sets no limit for ids; those of agents are shorter.
const ID_CHARS: usize = 128;
/// The longest name of a tool that the API accepts.
const NAME_CHARS: usize = 128;

/// Whose message a block is in: the API accepts different blocks from each.
#[derive(Clone, Copy)]
pub(super) enum Author {
    User,
    Model,
}

pub(super) fn from_part(part: &Part, author: Author, losses: &mut Losses) -> Option<Value> {
    match (part, author) {
        (Part::Text(part), _) => text(part, author, losses),
        (Part::Reasoning(part), Author::Model) => thinking(part, losses),
        (Part::Tool(call), Author::Model) => Some(tool_use(call, losses)),
        (Part::File(file), Author::User) => Some(file_block(file, losses)),
        (Part::File(file), Author::Model) => Some(mention(file, losses)),
        // An unknown block of this API: it was read from there.
        (Part::Data(data), _) if data.kind == "block" && data.data["type"].is_string() => Some(data.data.clone()),
        // The model sees the files and reactions of a room.
        (Part::Data(data), Author::User) if matches!(data.kind.as_str(), "attachment" | "reaction") => {
            losses.renamed(part);
            Some(json!({"type": "text", "text": json::to_string(&data.data)}))
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

/// The API rejects an empty text.
fn text(part: &TextPart, author: Author, losses: &mut Losses) -> Option<Value> {
    losses.dropped_if(part.provider_metadata.is_some(), Lost::ProviderMetadata);
    losses.dropped_if(!part.extra.is_empty(), Lost::PartDetails);
    if part.text.is_empty() {
        losses.dropped(Lost::Text);
        return None;
    }
    let mut block = fields(json!({"type": "text", "text": part.text}));
    match author {
        Author::Model => block.put_some("citations", part.citations.clone()),
        Author::User => losses.dropped_if(part.citations.is_some(), Lost::Citations),
    }
    Some(block.into())
}

/// The API rejects thinking without its signature, and the agent sends it, whichever model it is from.
fn thinking(part: &ReasoningPart, losses: &mut Losses) -> Option<Value> {
    let metadata = part.provider_metadata.as_ref();
    let anthropic = metadata.and_then(|metadata| metadata.get("anthropic"));
    let secret = |key: &str| anthropic?.get(key)?.as_str().filter(|secret| !secret.is_empty());
    let has_others = metadata.is_some_and(|metadata| metadata.keys().any(|key| key != "anthropic"));
    losses.dropped_if(has_others, Lost::ProviderMetadata);
    losses.dropped_if(!part.extra.is_empty(), Lost::PartDetails);
    match (secret("signature"), secret("redactedData")) {
        (Some(signature), _) => Some(json!({"type": "thinking", "thinking": part.text, "signature": signature})),
        (None, Some(data)) => {
            losses.dropped_if(!part.text.is_empty(), Lost::Thinking);
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
    let name = tool_name(&call.name, NAME_CHARS);
    losses.renamed_if(name != call.name, Lost::ToolName);
    json!({"type": "tool_use", "id": call_id(&call.call_id, losses), "name": name, "input": call.arguments()})
}

/// The id of a call as the API accepts it: a call and its result get the same one.
fn call_id(id: &str, losses: &mut Losses) -> String {
    let plain = plain_id(id, ID_CHARS);
    losses.renamed_if(plain != id, Lost::CallId);
    plain.into_owned()
}

/// An image or a document: its content, or its web address.
fn file_block(file: &FilePart, losses: &mut Losses) -> Value {
    let is_image = file.media_type.starts_with("image");
    let is_accepted = |media_type: &str| IMAGES.contains(&media_type) || media_type == "application/pdf";
    let (source, media_type) = match data_url(&file.url) {
        Some((media_type, data)) if is_accepted(media_type) => {
            (json!({"type": "base64", "media_type": media_type, "data": data}), media_type)
        }
        None if is_web_address(&file.url) && (is_image || file.media_type == "application/pdf") => {
            (json!({"type": "url", "url": file.url}), if is_image { "image/*" } else { "application/pdf" })
        }
        Some(_) | None => return mention(file, losses),
    };
    losses.renamed_if(media_type != file.media_type, Lost::MediaType);
    let is_at_provider = file.provider_metadata.is_some() || file.provider_reference.is_some();
    losses.dropped_if(is_at_provider, Lost::ProviderMetadata);
    losses.dropped_if(!file.extra.is_empty(), Lost::PartDetails);
    let is_image = media_type.starts_with("image");
    let mut block = fields(json!({"type": if is_image { "image" } else { "document" }, "source": source}));
    match is_image {
        false => block.put_some("title", file.filename.as_deref()),
        true => losses.dropped_if(file.filename.is_some(), Lost::FileName),
    }
    block.into()
}

/// A text in the place of a file that the API does not accept.
fn mention(file: &FilePart, losses: &mut Losses) -> Value {
    losses.of_file(file);
    json!({"type": "text", "text": file_words(file)})
}

/// The block that answers a call.
pub(super) fn tool_result(result: &ToolResult, losses: &mut Losses) -> Value {
    let mut block = Fields::new();
    block.put("type", "tool_result");
    block.put("tool_use_id", call_id(&result.call_id, losses));
    block.put_some("content", content(result, losses));
    block.put_some("is_error", (result.outcome != Outcome::Done).then_some(true));
    block.into()
}

/// The output of a tool, else why it failed: the API needs a text for a failure.
fn content(result: &ToolResult, losses: &mut Losses) -> Option<Value> {
    let reason = match &result.outcome {
        Outcome::Done => None,
        Outcome::Failed(reason) => Some(reason.as_str()),
        Outcome::Denied(reason) => Some(reason.as_deref().unwrap_or_default()),
    };
    let is_empty = result.output.is_null() || result.output == "";
    match reason {
        Some("") if is_empty => losses.synthesised(Lost::FailureReason),
        Some(reason) if !reason.is_empty() && !is_empty && result.output != reason => {
            losses.renamed(Lost::FailureReason);
        }
        Some(_) | None => {}
    }
    if result.outcome == Outcome::Done && is_empty {
        return (!result.output.is_null()).then(|| result.output.clone());
    }
    let parts = given(result);
    if let [Part::Text(text)] = parts.as_slice() {
        losses.renamed_if(!is_empty && !result.output.is_string(), Lost::ToolOutput);
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
                blocks.extend(from_part(other, Author::User, losses));
            }
        }
    }
    losses.renamed_if(!has_files || Value::from(read_back) != result.output, Lost::ToolOutput);
    Some(blocks.into())
}
