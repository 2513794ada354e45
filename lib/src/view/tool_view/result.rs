//! Results and attached files as text for people.

use std::borrow::Cow;

use serde_json::Value;

use crate::model::json;
use crate::model::message::Part;

/// A result as text: a string, the pieces of a list with files named, or else JSON.
pub fn result_text(output: &Value) -> Cow<'_, str> {
    match output {
        Value::String(text) => without_persisted_tags(text).into(),
        Value::Null => "".into(),
        Value::Array(pieces) if !pieces.is_empty() => {
            let pieces: Option<Vec<Cow<'_, str>>> = pieces.iter().map(piece).collect();
            pieces.map_or_else(|| json::to_string_pretty(output).into(), |pieces| pieces.join("\n").into())
        }
        other => json::to_string_pretty(other).into(),
    }
}

/// A text that Claude Code cut and saved elsewhere, which it says in the text, without the tags around it.
fn without_persisted_tags(text: &str) -> &str {
    let inside = text
        .trim()
        .strip_prefix("<persisted-output>")
        .and_then(|text| text.strip_suffix("</persisted-output>"));
    inside.map_or(text, str::trim)
}

/// A failure of a call without the tags that Claude Code puts around its own.
pub fn without_error_tags(error: &str) -> &str {
    let inside = error.trim().strip_prefix("<tool_use_error>").and_then(|why| why.strip_suffix("</tool_use_error>"));
    inside.unwrap_or(error)
}

/// How Claude Code tells the model that a person refused a call.
const REFUSALS: &[&str] =
    &["The user doesn't want to proceed with this tool use", "The user doesn't want to take this action"];

/// What a person said to a refusal, without what the agent tells the model about it.
pub fn refusal_words(reason: &str) -> &str {
    if !REFUSALS.iter().any(|refusal| reason.trim_start().starts_with(refusal)) {
        return reason;
    }
    let said = reason.split_once("the user said:").map(|(_, said)| said.trim());
    said.unwrap_or_default()
}

/// The name of an attached file among the parts of its message: its own, the one in the tag before it, or what it is.
pub fn attached_name(parts: &[Part], at: usize) -> &str {
    let Some(Part::File(file)) = parts.get(at) else { return "file" };
    let name = file.filename.as_deref().or_else(|| tagged_name(parts, at)).filter(|name| !name.is_empty());
    name.unwrap_or(if file.media_type.starts_with("image/") { "image" } else { "file" })
}

/// The name in the tag that Codex puts before a picture: `<image name=[Image #1] path="/w/red.png">`.
pub(crate) fn tagged_name(parts: &[Part], at: usize) -> Option<&str> {
    let tag = parts.get(at.checked_sub(1)?)?.as_text()?.trim();
    let (_, path) = tag.strip_prefix("<image name=")?.strip_suffix("\">")?.split_once("path=\"")?;
    path.rsplit(['/', '\\']).next().filter(|name| !name.is_empty())
}

/// The number of bytes in a `data:` URL, by its length: nothing is decoded.
pub fn data_url_bytes(url: &str) -> Option<usize> {
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    if !head.ends_with(";base64") {
        return Some(data.len());
    }
    Some(base64_bytes(data))
}

fn base64_bytes(data: &str) -> usize {
    let digits = data.trim_end_matches('=').len();
    digits / 4 * 3 + (digits % 4).saturating_sub(1)
}

/// A number of bytes for people.
pub fn size_text(bytes: usize) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.0} KB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

fn piece(piece: &Value) -> Option<Cow<'_, str>> {
    let text = |key: &str| piece.get(key).and_then(Value::as_str);
    match text("type")? {
        "text" | "input_text" | "output_text" => text("text").map(Cow::from),
        "file" => Some(file(text("mediaType")?, data_url_bytes(text("url")?)).into()),
        // The image blocks of the Responses API, of MCP and of the Messages API.
        "input_image" => Some(file("image/", data_url_bytes(text("image_url")?)).into()),
        "image" => {
            let data = text("data").or_else(|| piece.get("source")?.get("data")?.as_str())?;
            Some(file("image/", Some(base64_bytes(data))).into())
        }
        _ => None,
    }
}

/// `[image, 75 B]`
fn file(media_type: &str, bytes: Option<usize>) -> String {
    let what = if media_type.starts_with("image/") { "image" } else { media_type };
    let size = bytes.map(|bytes| format!(", {}", size_text(bytes)));
    format!("[{what}{}]", size.unwrap_or_default())
}
