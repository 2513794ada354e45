//! What views share: what a part is to a model, what a tool gave back, and what a file holds.

use std::borrow::Cow;

use serde_json::Value;

use crate::model::message::{DataPart, FilePart, Part, ReasoningPart};
use crate::model::record::{Outcome, ToolResult};

/// What a part is to a model.
pub(crate) enum Plain<'p> {
    Text(Cow<'p, str>),
    Reasoning(&'p ReasoningPart),
    File(&'p FilePart),
    /// A piece of one API's content that no other API has.
    Foreign(&'p DataPart),
    /// It is for people; the word for it in a note.
    Aside(&'static str),
}

/// The images that every API takes.
pub(crate) const IMAGES: &[&str] = &["image/jpeg", "image/png", "image/gif", "image/webp"];

pub(crate) fn plain(part: &Part) -> Plain<'_> {
    match part {
        Part::Text(text) => Plain::Text(Cow::Borrowed(&text.text)),
        Part::Reasoning(thought) => Plain::Reasoning(thought),
        Part::File(file) => Plain::File(file),
        // A room's files have no content here, and a reaction is what was said: the model is told of them.
        Part::Data(data) if matches!(data.kind.as_str(), "attachment" | "reaction") => {
            Plain::Text(Cow::Owned(data.data.to_string()))
        }
        Part::Data(data) if data.kind == "block" && document(&data.data).is_some() => {
            Plain::Text(Cow::Borrowed(document(&data.data).unwrap_or_default()))
        }
        Part::Data(data) if matches!(data.kind.as_str(), "block" | "content" | "context" | "part") => {
            Plain::Foreign(data)
        }
        Part::Data(_) => Plain::Aside("data"),
        Part::ReasoningFile(_) => Plain::Aside("a file of the reasoning"),
        Part::SourceUrl(_) | Part::SourceDocument(_) => Plain::Aside("a source"),
        Part::Custom(_) => Plain::Aside("a part of one provider"),
        Part::Steering(_) => Plain::Aside("a message inside another"),
        Part::StepStart => Plain::Aside("a mark"),
        Part::Tool(_) => Plain::Aside("a call"),
        Part::Other(_) => Plain::Aside("a part of unknown type"),
    }
}

/// The words of a document of Anthropic's API that is plain text.
fn document(block: &Value) -> Option<&str> {
    let is_text = block["type"] == "document" && block["source"]["type"] == "text";
    block["source"]["data"].as_str().filter(|words| is_text && !words.trim().is_empty())
}

/// Whether an API may know a piece of its own content that we do not: it has a type, and none of those that we say.
pub(crate) fn is_of_api(piece: &DataPart, kind: &str, content: &[&str]) -> bool {
    let known = piece.data.get("type").and_then(Value::as_str).filter(|name| !name.is_empty());
    piece.kind == kind && known.is_some_and(|name| !content.contains(&name))
}

/// What a tool gave back, as texts and files; why it failed where it gave nothing.
pub(crate) fn given(result: &ToolResult) -> Vec<Part> {
    let output: Vec<Part> = match &result.output {
        Value::Null => Vec::new(),
        Value::String(text) => vec![Part::text(text.clone())],
        Value::Array(pieces) if !pieces.is_empty() => match pieces.iter().map(piece).collect() {
            Some(parts) => parts,
            None => vec![Part::text(result.output.to_string())],
        },
        other => vec![Part::text(other.to_string())],
    };
    let says_something = |part: &Part| !matches!(part, Part::Text(text) if text.text.is_empty());
    let output: Vec<Part> = output.into_iter().filter(says_something).collect();
    match &result.outcome {
        Outcome::Failed(why) if output.is_empty() => vec![Part::text(or(why, "[the tool failed]"))],
        Outcome::Denied(why) if output.is_empty() => {
            vec![Part::text(or(why.as_deref().unwrap_or_default(), "[the call was not allowed]"))]
        }
        Outcome::Done | Outcome::Failed(_) | Outcome::Denied(_) => output,
    }
}

/// Whether a tool did not do what was asked.
pub(crate) fn failed(result: &ToolResult) -> bool {
    result.outcome != Outcome::Done
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

/// Whether an API can fetch a file itself.
pub(crate) fn is_web_address(url: &str) -> bool {
    url.starts_with("https://") || url.starts_with("http://")
}

/// Stands for a file that an API does not take.
pub(crate) fn file_words(file: &FilePart) -> String {
    match &file.filename {
        Some(name) => format!("[file {name} ({})]", file.media_type),
        None => format!("[file ({})]", file.media_type),
    }
}
