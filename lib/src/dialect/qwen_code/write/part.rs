//! Writes the parts of a message and the results of calls as parts of the API's `Content`, which `part.rs` reads.

use serde_json::{Map, Value, json};

use crate::dialect::line_builder::{Put, fields};
use crate::model::json;
use crate::model::lenient;
use crate::model::loss::{Losses, Lost};
use crate::model::message::{FilePart, Part, ToolPart};
use crate::model::record::{Outcome, ToolResult};
use crate::model::wire::{data_url, file_words, given, tool_name};

/// The longest name of a tool that the APIs of the agent's models accept.
const NAME_CHARS: usize = 64;

/// Whose message a part is in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Author {
    User,
    Model,
}

pub(super) fn from_part(part: &Part, author: Author, losses: &mut Losses) -> Option<Value> {
    match part {
        Part::Text(content) => {
            losses.dropped_if(content.citations.is_some(), Lost::Citations);
            losses.dropped_if(!content.extra.is_empty(), Lost::PartDetails);
            losses.dropped_if(content.text.is_empty(), Lost::Text);
            let text = (!content.text.is_empty()).then(|| json!({"text": content.text}))?;
            Some(signed(text, content.provider_metadata.as_ref(), losses))
        }
        Part::Reasoning(thought) if author == Author::Model => {
            losses.dropped_if(!thought.extra.is_empty(), Lost::PartDetails);
            let text =
                signed(json!({"text": thought.text, "thought": true}), thought.provider_metadata.as_ref(), losses);
            let is_empty = thought.text.is_empty() && text.get("thoughtSignature").is_none();
            losses.dropped_if(is_empty, Lost::Thinking);
            (!is_empty).then_some(text)
        }
        Part::File(file) => {
            let blob = blob(file, losses);
            Some(signed(blob, file.provider_metadata.as_ref(), losses))
        }
        Part::Tool(call) if author == Author::Model => {
            Some(signed(function_call(call, losses), call.call_provider_metadata.as_ref(), losses))
        }
        // An unknown part of this API: it was read from there.
        Part::Data(data) if data.kind == "part" && json::is_object(&data.data) => Some(data.data.clone()),
        // The model sees the files and reactions of a room.
        Part::Data(data) if author == Author::User && matches!(data.kind.as_str(), "attachment" | "reaction") => {
            losses.renamed(part);
            Some(json!({"text": json::to_string(&data.data)}))
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

/// A part with the signature of its model, the only provider metadata that it can hold.
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
    let name = name(&call.name, losses);
    json!({"functionCall": {"id": call.call_id, "name": name, "args": call.arguments()}})
}

fn name(name: &str, losses: &mut Losses) -> String {
    let plain = tool_name(name, NAME_CHARS);
    losses.renamed_if(plain != name, Lost::ToolName);
    plain.into_owned()
}

/// Whether the agent sends files of this type, as far as its model accepts them. Of any other file the model sees only the
/// type.
fn is_sent(media_type: &str) -> bool {
    let media = ["image", "audio", "video"];
    media_type == "application/pdf" || media.iter().any(|kind| media_type.split('/').next() == Some(*kind))
}

/// A file's content or address; a text for one whose content the agent would not send.
fn blob(file: &FilePart, losses: &mut Losses) -> Value {
    losses.dropped_if(!file.extra.is_empty(), Lost::PartDetails);
    losses.dropped_if(file.provider_reference.is_some(), Lost::ProviderMetadata);
    let (kind, blob) = match data_url(&file.url) {
        Some((media_type, data)) if is_sent(media_type) => {
            losses.renamed_if(media_type != file.media_type, Lost::MediaType);
            ("inlineData", json!({"mimeType": media_type, "data": data}))
        }
        None if is_sent(&file.media_type) && !file.url.starts_with("data:") && !file.url.is_empty() => {
            ("fileData", json!({"mimeType": file.media_type, "fileUri": file.url}))
        }
        Some(_) | None => {
            losses.of_file(file);
            return json!({"text": file_words(file)});
        }
    };
    let mut blob = fields(blob);
    blob.put_some("displayName", file.filename.as_deref());
    json!({kind: blob})
}

/// The part that answers a call. The agent sends its model the text `output`, else the text `error`, else the whole
/// response as JSON.
pub(super) fn function_response(result: &ToolResult, losses: &mut Losses) -> Value {
    let (output, files) = output(result, losses);
    let response = match &result.outcome {
        Outcome::Done => done(output, losses),
        Outcome::Failed(reason) => failed(output, reason, "[the tool failed]", losses),
        Outcome::Denied(reason) => {
            failed(output, reason.as_deref().unwrap_or_default(), "[the call was not allowed]", losses)
        }
    };
    losses.synthesised_if(result.name.is_none(), Lost::ToolName);
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
    let is_number = json::number_text(&output).is_some();
    match output {
        // The whole response is the output if it has no such field.
        Value::Object(fields) if is_plain(&fields) && !is_number => fields.into(),
        other => json!({"output": output_text(other, losses)}),
    }
}

/// If there is an output, the agent sends it instead of the error: an empty one would hide the error.
fn failed(output: Value, reason: &str, otherwise: &str, losses: &mut Losses) -> Value {
    losses.synthesised_if(reason.is_empty(), Lost::FailureReason);
    let mut response = json!({"error": if reason.is_empty() { otherwise } else { reason }});
    if !output.is_null() && output != reason && output != "" {
        response["output"] = output_text(output, losses).into();
    }
    response
}

fn output_text(output: Value, losses: &mut Losses) -> String {
    losses.renamed_if(!output.is_string(), Lost::ToolOutput);
    lenient::to_text(&output)
}

/// The output of a tool: any JSON, or a text and files.
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
    losses.renamed_if(!is_in_order || Value::from(read_back) != result.output, Lost::ToolOutput);
    (texts.join("\n").into(), files)
}
