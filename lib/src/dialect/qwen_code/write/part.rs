//! Parts of a message and results of calls as parts of the API's `Content`: `part.rs` reads them back.

use serde_json::{Map, Value, json};

use crate::dialect::line_builder::plain_name;
use crate::model::loss::{Losses, Lost};
use crate::model::message::{FilePart, Part, ToolPart, ToolState};
use crate::model::record::{Outcome, ToolResult};
use crate::model::wire::{data_url, file_words, given};

/// Of a tool: what the APIs take that the agent speaks to.
const NAME_CHARS: usize = 64;

/// Who speaks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    User,
    Model,
}

/// The part of a `Content` that says a part of a message.
pub(super) fn of(part: &Part, speaker: Speaker, losses: &mut Losses) -> Option<Value> {
    match part {
        Part::Text(content) => {
            losses.dropped_if(content.citations.is_some(), Lost::Citations);
            losses.dropped_if(!content.extra.is_empty(), Lost::PartDetails);
            losses.dropped_if(content.text.is_empty(), Lost::Text);
            let text = (!content.text.is_empty()).then(|| json!({"text": content.text}))?;
            Some(signed(text, content.provider_metadata.as_ref(), losses))
        }
        Part::Reasoning(thought) if speaker == Speaker::Model => {
            losses.dropped_if(!thought.extra.is_empty(), Lost::PartDetails);
            let text =
                signed(json!({"text": thought.text, "thought": true}), thought.provider_metadata.as_ref(), losses);
            let says_something = !thought.text.is_empty() || text.get("thoughtSignature").is_some();
            losses.dropped_if(!says_something, Lost::Thinking);
            says_something.then_some(text)
        }
        Part::File(file) => {
            let found = blob(file, losses);
            Some(signed(found, file.provider_metadata.as_ref(), losses))
        }
        Part::Tool(call) if speaker == Speaker::Model => {
            Some(signed(function_call(call, losses), call.call_provider_metadata.as_ref(), losses))
        }
        // A part of this API that we do not know; it came from there.
        Part::Data(data) if data.kind == "part" && data.data.is_object() => Some(data.data.clone()),
        // The model is told of a room's files and reactions.
        Part::Data(data) if speaker == Speaker::User && matches!(data.kind.as_str(), "attachment" | "reaction") => {
            losses.renamed(part);
            Some(json!({"text": data.data.to_string()}))
        }
        Part::StepStart => None,
        Part::Reasoning(_)
        | Part::Tool(_)
        | Part::ReasoningFile(_)
        | Part::SourceUrl(_)
        | Part::SourceDocument(_)
        | Part::Custom(_)
        | Part::Steering(_)
        | Part::Data(_)
        | Part::Other(_) => {
            losses.dropped(part);
            None
        }
    }
}

/// A part with the signature of its model, which is all that it holds of a provider's own words.
fn signed(mut part: Value, metadata: Option<&Map<String, Value>>, losses: &mut Losses) -> Value {
    let Some(metadata) = metadata else { return part };
    let google = metadata.get("google").and_then(Value::as_object);
    let signature = google.and_then(|google| google.get("thoughtSignature")).and_then(Value::as_str);
    let is_all = metadata.len() == 1 && google.is_some_and(|google| google.len() == 1) && signature.is_some();
    losses.dropped_if(!is_all, Lost::ProviderMetadata);
    if let Some(signature) = signature {
        part["thoughtSignature"] = signature.into();
    }
    part
}

fn function_call(call: &ToolPart, losses: &mut Losses) -> Value {
    losses.of_call(call);
    if call.provider_executed == Some(true) {
        losses.renamed(Lost::ProviderCall);
    }
    let raw = if let ToolState::OutputError { raw_input, .. } = &call.state { raw_input.as_ref() } else { None };
    if call.input().or(raw).is_some_and(|input| !input.is_object() && !input.is_null()) {
        losses.renamed(Lost::ToolInput);
    }
    let name = name(&call.name, losses);
    json!({"functionCall": {"id": call.call_id, "name": name, "args": call.arguments()}})
}

fn name(name: &str, losses: &mut Losses) -> String {
    let plain = plain_name(name, NAME_CHARS);
    if plain != name {
        losses.renamed(Lost::ToolName);
    }
    plain
}

/// The kinds of files that the agent sends, as far as its model takes them. Of any other it tells the model no more than the type.
fn is_sent(media_type: &str) -> bool {
    let media = ["image", "audio", "video"];
    media_type == "application/pdf" || media.iter().any(|kind| media_type.split('/').next() == Some(*kind))
}

/// A file, in the part or where it is; words for one whose content the agent would not send.
fn blob(file: &FilePart, losses: &mut Losses) -> Value {
    losses.dropped_if(!file.extra.is_empty(), Lost::PartDetails);
    losses.dropped_if(file.provider_reference.is_some(), Lost::ProviderMetadata);
    let mut blob = Map::new();
    let kind = match data_url(&file.url) {
        Some((media_type, data)) if is_sent(media_type) => {
            if media_type != file.media_type {
                losses.renamed(Lost::MediaType);
            }
            blob.insert("mimeType".to_owned(), media_type.into());
            blob.insert("data".to_owned(), data.into());
            "inlineData"
        }
        None if is_sent(&file.media_type) && !file.url.starts_with("data:") && !file.url.is_empty() => {
            blob.insert("mimeType".to_owned(), file.media_type.as_str().into());
            blob.insert("fileUri".to_owned(), file.url.as_str().into());
            "fileData"
        }
        Some(_) | None => {
            losses.dropped(if file.media_type.starts_with("image") { Lost::Image } else { Lost::File });
            return json!({"text": file_words(file)});
        }
    };
    blob.extend(file.filename.as_deref().map(|name| ("displayName".to_owned(), name.into())));
    json!({kind: blob})
}

/// The part that answers a call. The agent tells its model the text `output`, else the text `error`, else the whole response as JSON.
pub(super) fn function_response(result: &ToolResult, losses: &mut Losses) -> Value {
    let (output, files) = output(result, losses);
    let response = match &result.outcome {
        Outcome::Done => done(output, losses),
        Outcome::Failed(why) => failed(output, why, "[the tool failed]", losses),
        Outcome::Denied(why) => {
            failed(output, why.as_deref().unwrap_or_default(), "[the call was not allowed]", losses)
        }
    };
    if result.name.is_none() {
        losses.synthesised(Lost::ToolName);
    }
    let name = name(result.name.as_deref().unwrap_or("unknown"), losses);
    let mut function = json!({"id": result.call_id, "name": name, "response": response});
    if !files.is_empty() {
        function["parts"] = files.into();
    }
    json!({"functionResponse": function})
}

fn done(output: Value, losses: &mut Losses) -> Value {
    let is_plain = |fields: &Map<String, Value>| {
        !["output", "error"].iter().any(|key| fields.contains_key(*key)) && !fields.values().all(Value::is_null)
    };
    match output {
        Value::String(_) => json!({"output": output}),
        // The whole response is the output where it names none.
        Value::Object(fields) if is_plain(&fields) => fields.into(),
        other => json!({"output": words(other, losses)}),
    }
}

/// Where there is an output, the agent sends that and not the error: an empty one would hide it.
fn failed(output: Value, why: &str, otherwise: &str, losses: &mut Losses) -> Value {
    if why.is_empty() {
        losses.synthesised(Lost::FailureReason);
    }
    let mut response = json!({"error": if why.is_empty() { otherwise } else { why }});
    if !output.is_null() && output != why && output != "" {
        response["output"] = words(output, losses).into();
    }
    response
}

/// What a tool gave back that is no text, as one.
fn words(output: Value, losses: &mut Losses) -> String {
    match output {
        Value::String(text) => text,
        // The model is told that nothing came back.
        other => {
            losses.renamed(Lost::ToolOutput);
            if other.is_null() { String::new() } else { other.to_string() }
        }
    }
}

/// What a tool gave back: any JSON, or a text and files.
fn output(result: &ToolResult, losses: &mut Losses) -> (Value, Vec<Value>) {
    if !result.output.is_array() {
        return (result.output.clone(), Vec::new());
    }
    let (parts, mut texts, mut files, mut read_back) = (given(result), Vec::new(), Vec::new(), Vec::new());
    for part in &parts {
        read_back.extend(serde_json::to_value(part));
        match part {
            Part::File(file) => files.push(blob(file, losses)),
            Part::Text(text) => texts.push(text.text.as_str()),
            other => losses.dropped(other),
        }
    }
    let is_in_order = matches!(parts.first(), Some(Part::Text(_))) && texts.len() == 1 && !files.is_empty();
    if !is_in_order || Value::from(read_back) != result.output {
        losses.renamed(Lost::ToolOutput);
    }
    (texts.join("\n").into(), files)
}
