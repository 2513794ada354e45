//! Whether SDK 7 takes a citation. It rejects a whole conversation for one key of the wrong type, and strips keys that it
//! does not know, so the check is exact.

use serde_json::{Map, Value};

pub(super) fn fits(citation: &Value) -> bool {
    only(citation, |key, value| match key {
        "source" => is_source(value),
        "startIndex" | "endIndex" => value.is_u64(),
        "citedText" => value.is_string(),
        _ => false,
    }) && citation.get("source").is_some()
}

fn is_source(source: &Value) -> bool {
    let (kind, needed): (&str, &[&str]) = match source.get("sourceType").and_then(Value::as_str) {
        Some("url") => ("url", &["type", "id", "url"]),
        Some("document") => ("document", &["type", "id", "mediaType", "title"]),
        _ => return false,
    };
    needed.iter().all(|key| source.get(key).is_some())
        && only(source, |key, value| match key {
            "type" => value == "source",
            "sourceType" | "id" | "title" => value.is_string(),
            "url" => kind == "url" && value.is_string(),
            "mediaType" | "filename" => kind == "document" && value.is_string(),
            "providerMetadata" => only(value, |_, provider| provider.is_object()),
            _ => false,
        })
}

fn only(value: &Value, fits: impl Fn(&str, &Value) -> bool) -> bool {
    value
        .as_object()
        .is_some_and(|object: &Map<_, _>| object.iter().all(|(key, value)| fits(key, value)))
}
