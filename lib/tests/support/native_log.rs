//! A native log in a short notation.
//!
//! ```text
//! q                    user:       What is two and two?      a root
//! a < q                assistant !t1 !t2: Let me see.        its parent is q; it makes two calls
//! r < a                result ?t1: four                      answers one of them
//! s < a ~              user:       Count.                    a side conversation
//! a < q                assistant #1: It is four.             a further fragment of a
//! b < gone             user @12:00:07: And three?            its parent is missing; its time
//! ```
//!
//! Kinds are native's types; `result` is short for `tool_result`, `snapshot` for `file_history_snapshot`.

use serde_json::{Map, Value, json};

/// The log that the notation describes.
pub(crate) fn lines(notation: &str) -> String {
    notation
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|line| record(line) + "\n")
        .collect()
}

fn record(line: &str) -> String {
    let (head, text) = line.split_once(": ").or(line.split_once(':')).unwrap_or((line, ""));
    let mut words = head.split_whitespace().peekable();
    let mut value = Map::new();
    let (mut calls, mut results) = (Vec::new(), Vec::new());
    value.insert("uuid".to_owned(), words.next().into());
    if words.next_if_eq(&"<").is_some() {
        value.insert("parentUuid".to_owned(), words.next().into());
    }
    for word in words {
        let (sign, rest) = word.split_at(1);
        match sign {
            "~" => drop(value.insert("isSidechain".to_owned(), true.into())),
            "!" => calls.push(json!({"id": rest, "name": "tool", "arguments": {}})),
            "?" => results.push(json!({"toolCallId": rest, "content": text.trim(), "success": true})),
            "@" => drop(value.insert("timestamp".to_owned(), format!("2026-11-15T{rest}Z").into())),
            "#" => drop(value.insert("fragment".to_owned(), json!({"part": rest.parse::<u64>().unwrap()}))),
            _ => drop(value.insert("type".to_owned(), kind(word).into())),
        }
    }
    let text = text.trim();
    let mut message = json!({"content": text});
    if !calls.is_empty() {
        message["toolCalls"] = Value::Array(calls);
    }
    match value["type"].as_str() {
        Some("compaction" | "summary") => drop(value.insert("summary".to_owned(), text.into())),
        Some("custom_title") => drop(value.insert("title".to_owned(), text.into())),
        Some("tool_result") => drop(value.insert("toolResults".to_owned(), Value::Array(results))),
        _ => drop(value.insert("message".to_owned(), message)),
    }
    Value::Object(value).to_string()
}

fn kind(word: &str) -> &str {
    match word {
        "result" => "tool_result",
        "snapshot" => "file_history_snapshot",
        "title" => "custom_title",
        other => other,
    }
}
