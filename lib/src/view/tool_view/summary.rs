//! The input of a call in one line.

use serde_json::Value;

use crate::model::json;

/// The arguments that identify a call best, the best first.
const KEY_ARGUMENTS: [&str; 12] = [
    "command",
    "cmd",
    "file_path",
    "path",
    "pattern",
    "query",
    "url",
    "prompt",
    "description",
    "message",
    "name",
    "id",
];

/// What is searched for; the key argument beside it says where.
const SEARCHED: [&str; 4] = ["pattern", "query", "regex", "q"];
const WHERE: [&str; 4] = ["path", "file_path", "dir_path", "glob"];

/// In a summary, a longer text beside the key argument is left out.
const MAX_SIDE_COLUMNS: usize = 30;

/// A summary is one line: more of it is never seen.
const MAX_SUMMARY_BYTES: usize = 2_000;

/// More fields are left out.
const MAX_FIELDS: usize = 200;

/// What is nested deeper is left out.
const MAX_DEPTH: usize = 6;

/// The most important arguments of a call, or all of them, as one line; `None` if there are none.
pub fn summary(input: Option<&Value>, relative: impl for<'p> Fn(&'p str) -> &'p str) -> Option<String> {
    let mut out = String::new();
    match input? {
        whole @ Value::Object(input) if json::is_object(whole) => {
            let text = |key: &&'static str| Some((*key, input.get(*key)?.as_str().filter(|text| !text.is_empty())?));
            let first = |keys: &[&'static str]| keys.iter().find_map(text);
            let (key, place) = match (first(&SEARCHED), first(&WHERE)) {
                (Some(searched), Some(place)) => (Some(searched), Some(place)),
                _ => (first(&KEY_ARGUMENTS), None),
            };
            let Some(key) = key else {
                brief(&mut out, whole, 0);
                let fields = out.strip_prefix('{').and_then(|out| out.strip_suffix('}')).unwrap_or(&out);
                return Some(fields.to_owned()).filter(|fields| !fields.trim().is_empty());
            };
            out += relative(key.1);
            out.extend(place.map(|place| format!(" in {}", relative(place.1))));
            let is_shown = |name: &str| key.0 == name || place.is_some_and(|place| place.0 == name);
            let beside = input.iter().filter(|(name, value)| !is_shown(name) && is_short(value)).take(MAX_FIELDS);
            let beside: Vec<String> = beside.map(|(name, value)| format!("{name}: {}", scalar_text(value))).collect();
            if !beside.is_empty() {
                out += &format!(" ({})", beside.join(", "));
            }
        }
        other => brief(&mut out, other, 0),
    }
    Some(out).filter(|summary| !summary.trim().is_empty())
}

/// A value beside the key argument that says much in few characters.
fn is_short(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.is_empty() && text.len() <= MAX_SIDE_COLUMNS && !text.contains('\n'),
        Value::Number(_) | Value::Bool(_) => true,
        Value::Object(_) => json::number_text(value).is_some(),
        Value::Null | Value::Array(_) => false,
    }
}

/// A value as one line without quotes and escapes: `{name: x, tags: [a, b]}`.
pub fn brief(out: &mut String, value: &Value, depth: usize) {
    let is_cut = depth > MAX_DEPTH || out.len() > MAX_SUMMARY_BYTES;
    match value {
        Value::Array(_) if is_cut => out.push('…'),
        Value::Object(_) if is_cut && json::is_object(value) => out.push('…'),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().take(MAX_FIELDS).enumerate() {
                out.push_str(if at == 0 { "" } else { ", " });
                brief(out, item, depth + 1);
            }
            out.push(']');
        }
        Value::Object(fields) if json::is_object(value) => {
            out.push('{');
            for (at, (name, item)) in fields.iter().take(MAX_FIELDS).enumerate() {
                out.push_str(if at == 0 { "" } else { ", " });
                out.push_str(&format!("{name}: "));
                brief(out, item, depth + 1);
            }
            out.push('}');
        }
        scalar => {
            let text = scalar_text(scalar);
            out.push_str(&text[..text.floor_char_boundary(MAX_SUMMARY_BYTES)]);
        }
    }
}

/// A string as it is, anything else as JSON.
pub fn scalar_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(fields) if fields.is_empty() => String::new(),
        other => json::to_string(other),
    }
}
