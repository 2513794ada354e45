//! How strings, files and results look to a model's API: what views and writers share.

use std::borrow::Cow;

use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use crate::model::issue::one_line;
use crate::model::json;
use crate::model::message::{FilePart, Part, ToolPart, ToolState};
use crate::model::record::{Outcome, ToolResult};

/// The end of an address in a room.
pub(crate) const IN_A_ROOM: &str = "@muc";

/// The images that every API accepts.
pub(crate) const IMAGES: &[&str] = &["image/jpeg", "image/png", "image/gif", "image/webp"];

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// An id of at most `max` characters. A call and its result get the same one, and no other call does.
pub(crate) fn id(id: &str, max: usize) -> Cow<'_, str> {
    if id.len() <= max && !id.is_empty() && id.chars().all(is_plain) {
        return Cow::Borrowed(id);
    }
    let hash = format!("_{:016x}", xxh3_64(id.as_bytes()));
    let plain = id.chars().map(|c| if is_plain(c) { c } else { '_' });
    Cow::Owned(plain.take(max - hash.len()).chain(hash.chars()).collect())
}

/// A tool's name of at most `max` characters.
pub(crate) fn tool_name(name: &str, max: usize) -> Cow<'_, str> {
    if (1..=max).contains(&name.len()) && name.chars().all(is_plain) {
        return Cow::Borrowed(name);
    }
    match name.chars().count() {
        0 => Cow::Borrowed("unknown"),
        // Long names of one server have the same beginning.
        count if count > max => Cow::Owned(id(name, max).into_owned()),
        _ => name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect(),
    }
}

/// Puts the sender's name before the first text, if the sender is in a room. True when it did.
pub(crate) fn name_sender(sender: Option<&str>, pieces: &mut [Value]) -> bool {
    let Some(name) = in_a_room(sender) else { return false };
    let first = pieces.iter_mut().find_map(|piece| piece.get_mut("text"));
    if let Some(Value::String(text)) = first {
        text.insert_str(0, &name);
        return true;
    }
    false
}

/// The sender's name before a message in a room.
pub(crate) fn in_a_room(sender: Option<&str>) -> Option<String> {
    sender.filter(|sender| sender.ends_with(IN_A_ROOM)).map(|sender| format!("{}: ", one_line(sender)))
}

/// The output of a tool, as texts and files; the reason of its failure if there is no output.
pub(crate) fn given(result: &ToolResult) -> Vec<Part> {
    let output: Vec<Part> = match &result.output {
        Value::Null => Vec::new(),
        Value::String(text) => vec![Part::text(text.clone())],
        Value::Array(pieces) if !pieces.is_empty() => match pieces.iter().map(piece).collect() {
            Some(parts) => parts,
            None => vec![Part::text(json::to_string(&result.output))],
        },
        other => vec![Part::text(json::to_string(other))],
    };
    let output: Vec<Part> = output.into_iter().filter(|part| part.as_text() != Some("")).collect();
    match &result.outcome {
        Outcome::Failed(why) if output.is_empty() => vec![Part::text(or(why, "[the tool failed]"))],
        Outcome::Denied(why) if output.is_empty() => {
            vec![Part::text(or(why.as_deref().unwrap_or_default(), "[the call was not allowed]"))]
        }
        Outcome::Done | Outcome::Failed(_) | Outcome::Denied(_) => output,
    }
}

/// The text of a document of Anthropic's API that is plain text.
pub(crate) fn document(block: &Value) -> Option<&str> {
    let is_text = block["type"] == "document" && block["source"]["type"] == "text";
    block["source"]["data"].as_str().filter(|text| is_text && !text.trim().is_empty())
}

fn or<'t>(text: &'t str, otherwise: &'t str) -> &'t str {
    if text.is_empty() { otherwise } else { text }
}

/// A piece of an output: ours, an API's, or a tool server's.
fn piece(piece: &Value) -> Option<Part> {
    let text = |key: &str| piece.get(key).and_then(Value::as_str);
    match text("type")? {
        "text" | "input_text" | "output_text" => text("text").map(Part::text),
        "file" => Some(Part::file(text("mediaType")?, text("url")?)),
        "input_image" => {
            let url = text("image_url")?;
            Some(Part::file(data_url(url).map_or("image/*", |(media_type, _)| media_type), url))
        }
        "document" => document(piece).map(Part::text),
        "image" | "audio" => {
            let (media_type, data) = (text("mimeType")?, text("data")?);
            Some(Part::file(media_type, format!("data:{media_type};base64,{data}")))
        }
        _ => None,
    }
}

/// The media type and the Base64 of a `data:` URL.
pub(crate) fn data_url(url: &str) -> Option<(&str, &str)> {
    let (described, data) = url.strip_prefix("data:")?.split_once(',')?;
    let media_type = described.strip_suffix(";base64")?;
    let media_type = media_type.split(';').next().filter(|media_type| media_type.contains('/'))?;
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    (!data.is_empty() && data.bytes().all(is_base64)).then_some((media_type, data))
}

/// The media type that a `data:` URL starts with.
pub(crate) fn media_type_of(url: &str) -> Option<&str> {
    url.strip_prefix("data:")?.split([';', ',']).next()
}

/// Whether an API can fetch a file itself.
pub(crate) fn is_web_address(url: &str) -> bool {
    url.starts_with("https://") || url.starts_with("http://")
}

/// The text that replaces a file that an API does not accept.
pub(crate) fn file_words(file: &FilePart) -> String {
    match &file.filename {
        Some(name) => format!("[file {name} ({})]", file.media_type),
        None => format!("[file ({})]", file.media_type),
    }
}

/// The result that a call itself contains, in a record that is a whole message.
pub(crate) fn own_result(call: &ToolPart, id: &str) -> Option<ToolResult> {
    let (output, outcome, preliminary) = match &call.state {
        ToolState::OutputAvailable { output, preliminary, .. } => {
            (output.clone().unwrap_or_default(), Outcome::Done, preliminary.unwrap_or(false))
        }
        ToolState::OutputError { error_text, .. } => (Value::Null, Outcome::Failed(error_text.clone()), false),
        ToolState::OutputDenied { approval, .. } => (Value::Null, Outcome::Denied(approval.reason.clone()), false),
        ToolState::InputStreaming { .. }
        | ToolState::InputAvailable { .. }
        | ToolState::ApprovalRequested { .. }
        | ToolState::ApprovalResponded { .. } => return None,
    };
    Some(ToolResult { preliminary, ..ToolResult::new(id.to_owned(), output, outcome) })
}
