//! Results and attached files as text for people.

use std::borrow::Cow;

use serde_json::Value;

use crate::model::json;

/// A result as text: a string, the pieces of a list with files named, or else JSON.
pub fn result_text(output: &Value) -> Cow<'_, str> {
    match output {
        Value::String(text) => text.into(),
        Value::Null => "".into(),
        Value::Array(pieces) if !pieces.is_empty() => {
            let pieces: Option<Vec<Cow<'_, str>>> = pieces.iter().map(piece).collect();
            pieces.map_or_else(|| json::to_string_pretty(output).into(), |pieces| pieces.join("\n").into())
        }
        other => json::to_string_pretty(other).into(),
    }
}

/// The number of bytes in a `data:` URL, by its length: nothing is decoded.
pub fn data_url_bytes(url: &str) -> Option<usize> {
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    if !head.ends_with(";base64") {
        return Some(data.len());
    }
    let digits = data.trim_end_matches('=').len();
    Some(digits / 4 * 3 + (digits % 4).saturating_sub(1))
}

fn piece(piece: &Value) -> Option<Cow<'_, str>> {
    let text = |key: &str| piece.get(key).and_then(Value::as_str);
    match text("type")? {
        "text" => text("text").map(Cow::from),
        "file" => {
            let size = data_url_bytes(text("url")?).map(|bytes| format!(", {bytes} bytes"));
            Some(format!("[file: {}{}]", text("mediaType")?, size.unwrap_or_default()).into())
        }
        _ => None,
    }
}
