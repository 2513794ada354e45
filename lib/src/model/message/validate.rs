//! Whether a major version of the AI SDK accepts a message unchanged, by the rules of its own `validateUIMessages`.
//!
//! The rules are those of `ai` 5, 6 and 7; `lib/tests/view/aisdk.rs` compares with the real packages. A key that a version does
//! not know is valid, because it is dropped. Which tools and data an application declares is not known here.

use serde_json::{Map, Value};

use super::Sdk;
use crate::model::json;

/// Why this SDK rejects a list of messages: the first reason.
pub fn objection(messages: &[Value], sdk: Sdk) -> Option<String> {
    if messages.is_empty() {
        return Some("a list without messages".to_owned());
    }
    let first = |(at, message)| Some(format!("message {at}: {}", takes(message, sdk).err()?));
    messages.iter().enumerate().find_map(first)
}

/// Whether this SDK accepts a message; the error is the reason why not.
///
/// ```
/// use scrollback::model::{Sdk, takes};
/// use serde_json::json;
///
/// assert_eq!(takes(&json!({"id": "m1", "role": "user", "parts": [{"type": "text", "text": "Hello"}]}), Sdk::V7), Ok(()));
/// let without_parts = takes(&json!({"id": "m1", "role": "user", "parts": []}), Sdk::V7);
/// assert_eq!(without_parts, Err("a user message without parts".to_owned()));
/// ```
pub fn takes(message: &Value, sdk: Sdk) -> Result<(), String> {
    let message = message.as_object().ok_or("not an object")?;
    is(message, "id", Value::is_string, "a text")?;
    let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
    if !matches!(role, "system" | "user" | "assistant") {
        return Err("role is not system, user or assistant".to_owned());
    }
    let parts = message.get("parts").and_then(Value::as_array).ok_or("parts is not a list")?;
    if parts.is_empty() && role != "assistant" {
        return Err(format!("a {role} message without parts"));
    }
    for (at, value) in parts.iter().enumerate() {
        part(value, sdk).map_err(|why| format!("part {at}: {why}"))?;
    }
    Ok(())
}

type Verdict = Result<(), String>;
type Object = Map<String, Value>;

fn part(part: &Value, sdk: Sdk) -> Verdict {
    let part = part.as_object().ok_or("not an object")?;
    let kind = part.get("type").and_then(Value::as_str).ok_or("type is not a text")?;
    let of_sdk_7 = sdk >= Sdk::V7;
    match kind {
        "text" => {
            texts(part, &["text"], &[])?;
            if of_sdk_7 && let Some(citations) = part.get("citations") {
                citations.as_array().ok_or("citations is not a list")?.iter().try_for_each(citation)?;
            }
            stream_state(part)
        }
        "reasoning" => {
            texts(part, &["text"], &["id"])?;
            stream_state(part)
        }
        "custom" if of_sdk_7 => texts(part, &["kind"], &[]),
        "source-url" => texts(part, &["sourceId", "url"], &["title"]),
        "source-document" => texts(part, &["sourceId", "mediaType", "title"], &["filename"]),
        "file" => file(part, sdk),
        "reasoning-file" if of_sdk_7 => texts(part, &["mediaType", "url"], &[]),
        "steering-message" if of_sdk_7 => steering(part),
        "step-start" => Ok(()),
        "dynamic-tool" => {
            text(part, "toolName")?;
            optional(part, "dynamic", |value| *value == false, "false")?;
            tool(part, sdk, sdk >= Sdk::V6)
        }
        kind if kind.starts_with("tool-") => tool(part, sdk, true),
        kind if kind.starts_with("data-") => {
            optional_text(part, "id")?;
            present(part, "data")
        }
        kind => Err(format!("SDK {sdk} has no part type {}", crate::model::issue::quoted(kind))),
    }
}

fn stream_state(part: &Object) -> Verdict {
    optional(part, "state", |state| state == "streaming" || state == "done", "streaming or done")
}

fn file(part: &Object, sdk: Sdk) -> Verdict {
    let are_texts = |ids: &Value| ids.as_object().is_some_and(|ids| ids.values().all(Value::is_string));
    texts(part, &["mediaType", "url"], &["filename"])?;
    if sdk >= Sdk::V7 { optional(part, "providerReference", are_texts, "an object of texts") } else { Ok(()) }
}

fn steering(part: &Object) -> Verdict {
    text(part, "id")?;
    for inner in part.get("parts").and_then(Value::as_array).ok_or("parts is not a list")? {
        let inner = inner.as_object().ok_or("a part in it is not an object")?;
        match inner.get("type").and_then(Value::as_str) {
            Some("text") => texts(inner, &["text"], &[])?,
            Some("file") => file(inner, Sdk::V7)?,
            _ => return Err("a part in it is neither a text nor a file".to_owned()),
        }
    }
    Ok(())
}

pub(super) fn citation(citation: &Value) -> Verdict {
    let citation = citation.as_object().ok_or("a citation is not an object")?;
    let source = citation.get("source").and_then(Value::as_object).ok_or("a citation without its source")?;
    is(source, "type", |kind| kind == "source", "source")?;
    match source.get("sourceType").and_then(Value::as_str) {
        Some("url") => texts(source, &["id", "url"], &["title"])?,
        Some("document") => texts(source, &["id", "mediaType", "title"], &["filename"])?,
        _ => return Err("a citation's source is neither url nor document".to_owned()),
    }
    // JavaScript has one type of number: 3.0 is an integer, and so is a number that is too large for our integers.
    let integer = |number: &Value| number.as_f64().is_some_and(|number| number >= 0.0 && number.fract() == 0.0);
    optional(citation, "startIndex", integer, "a whole number")?;
    optional(citation, "endIndex", integer, "a whole number")?;
    optional_text(citation, "citedText")
}

/// `approvals`: whether this SDK knows approvals for tools of this kind.
fn tool(part: &Object, sdk: Sdk, approvals: bool) -> Verdict {
    text(part, "toolCallId")?;
    optional(part, "providerExecuted", Value::is_boolean, "true or false")?;
    if sdk >= Sdk::V7 {
        optional_text(part, "title")?;
    }
    if sdk >= Sdk::V6 {
        optional(part, "toolMetadata", json::is_object, "an object")?;
    }
    let state = part.get("state").and_then(Value::as_str).ok_or("state is not a text")?;
    let has_result = matches!(state, "output-available" | "output-error");
    if sdk >= Sdk::V6 || state != "input-streaming" {
        provider_metadata(part, "callProviderMetadata")?;
    }
    if sdk >= Sdk::V6 && has_result {
        provider_metadata(part, "resultProviderMetadata")?;
    }
    match state {
        "input-streaming" => {
            optional_text(part, "rawInput")?;
            if sdk >= Sdk::V6 {
                optional(part, "inputEncoding", |value| value == "json" || value == "text", "json or text")?;
            }
        }
        "output-error" => text(part, "errorText")?,
        "output-available" => {
            present(part, "input")?;
            present(part, "output")?;
            optional(part, "preliminary", Value::is_boolean, "true or false")?;
        }
        "input-available" => present(part, "input")?,
        "approval-requested" | "approval-responded" | "output-denied" if approvals => present(part, "input")?,
        state => return Err(format!("no tool of SDK {sdk} has the state {}", crate::model::issue::quoted(state))),
    }
    if state != "output-available" {
        never(part, "output", state)?;
    }
    if state != "output-error" {
        never(part, "errorText", state)?;
    }
    if approvals { approval(part, state, sdk) } else { Ok(()) }
}

/// Checks the answer that each state needs.
fn approval(part: &Object, state: &str, sdk: Sdk) -> Verdict {
    let stated = part.get("approval");
    let answer: &[Value] = match state {
        "approval-requested" => &[],
        "approval-responded" => &[Value::Bool(true), Value::Bool(false)],
        "output-denied" => &[Value::Bool(false)],
        "output-available" | "output-error" if stated.is_none() => return Ok(()),
        "output-available" | "output-error" => &[Value::Bool(true)],
        state => return never(part, "approval", state),
    };
    let approval = stated.and_then(Value::as_object).ok_or_else(|| format!("{state} without an approval"))?;
    text(approval, "id")?;
    if answer.is_empty() {
        never(approval, "approved", state)?;
        never(approval, "reason", state)?;
    } else {
        is(approval, "approved", |value| answer.contains(value), "the answer that its state needs")?;
        optional_text(approval, "reason")?;
    }
    if sdk >= Sdk::V6 {
        optional_text(approval, "signature")?;
    }
    if sdk >= Sdk::V7 {
        optional_text(approval, "requestReason")?;
        optional(approval, "isAutomatic", Value::is_boolean, "true or false")?;
    }
    Ok(())
}

fn provider_metadata(part: &Object, key: &str) -> Verdict {
    let one_each = |value: &Value| value.as_object().is_some_and(|all| all.values().all(json::is_object));
    optional(part, key, one_each, "one object per provider")
}

/// Checks the texts that a part must have and those that it can have, and its provider metadata.
fn texts(part: &Object, required: &[&str], optional: &[&str]) -> Verdict {
    required.iter().try_for_each(|key| text(part, key))?;
    optional.iter().try_for_each(|key| optional_text(part, key))?;
    provider_metadata(part, "providerMetadata")
}

fn text(part: &Object, key: &str) -> Verdict {
    is(part, key, Value::is_string, "a text")
}

fn optional_text(part: &Object, key: &str) -> Verdict {
    optional(part, key, Value::is_string, "a text")
}

fn is(part: &Object, key: &str, fits: impl Fn(&Value) -> bool, what: &str) -> Verdict {
    present(part, key)?;
    optional(part, key, fits, what)
}

fn optional(part: &Object, key: &str, fits: impl Fn(&Value) -> bool, what: &str) -> Verdict {
    if part.get(key).is_none_or(fits) { Ok(()) } else { Err(format!("{key} is not {what}")) }
}

fn present(part: &Object, key: &str) -> Verdict {
    if part.contains_key(key) { Ok(()) } else { Err(format!("{key} is missing")) }
}

fn never(part: &Object, key: &str, state: &str) -> Verdict {
    if part.contains_key(key) { Err(format!("{key} is not allowed with {state}")) } else { Ok(()) }
}
