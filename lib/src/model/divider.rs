//! Dividers: `data-*` parts for events between messages, such as a compaction.

use serde_json::{Value, json};

use crate::model::message::keys::object;
use crate::model::message::{DataPart, Part};
use crate::model::record::{Compaction, Content, RecordId, Restore, Rewind};

/// A compaction.
pub(crate) fn compaction(record: &str, compaction: &Compaction) -> Part {
    let data = json!({
        "summary": compaction.summary, "trigger": compaction.trigger, "messages": compaction.messages,
        "tokensBefore": compaction.tokens_before, "tokensAfter": compaction.tokens_after,
        "preserved": Some(&compaction.preserved).filter(|preserved| !preserved.is_empty()),
    });
    part(record, "compaction", data)
}

/// The compaction that such a part describes.
pub(crate) fn compaction_of(parts: &[Part]) -> Compaction {
    let data = parts.iter().find_map(|part| if let Part::Data(data) = part { Some(&data.data) } else { None });
    let field = |key: &str| data.and_then(|data| data.get(key));
    let text = |key: &str| field(key).and_then(Value::as_str).map(str::to_owned);
    let preserved = field("preserved").and_then(Value::as_array).into_iter().flatten();
    Compaction {
        summary: text("summary"),
        trigger: text("trigger"),
        messages: field("messages").and_then(Value::as_u64),
        tokens_before: field("tokensBefore").and_then(Value::as_u64),
        tokens_after: field("tokensAfter").and_then(Value::as_u64),
        preserved: preserved.filter_map(Value::as_str).map(RecordId::from).collect(),
        cuts: true,
        ..Compaction::default()
    }
}

/// A failure of the agent.
pub(crate) fn failure(record: &str, content: &Content) -> Part {
    part(record, "error", json!({"kind": content.error, "text": content.text()}))
}

/// Whether a part describes a failure of the same kind.
pub(crate) fn is_failure_of(part: &DataPart, content: &Content) -> bool {
    part.kind == "error" && part.data["kind"].as_str() == content.error.as_deref()
}

/// Adds a further failed attempt to the part that describes the ones before it.
pub(crate) fn add_retry(part: &mut DataPart, content: &Content) {
    let attempts = part.data["attempts"].as_u64().unwrap_or(1);
    part.data["attempts"] = (attempts + 1).into();
    part.data["text"] = content.text().into();
}

/// Marks failed attempts that an answer follows. Who stops the agent does not ask it to try again.
pub(crate) fn mark_retried(part: &mut DataPart) {
    if part.kind == "error" && part.data["kind"] != "interrupted" {
        part.data["retried"] = true.into();
    }
}

/// The text of a part that describes a failure.
pub(crate) fn text_of_failure(part: &Part) -> Option<&str> {
    let Part::Data(data) = part else { return None };
    data.data.get("text").and_then(Value::as_str).filter(|_| data.kind == "error")
}

/// A rewind; `to` is the record that the conversation continues from.
pub(crate) fn rewind(record: &str, rewind: &Rewind, to: Option<&str>) -> Part {
    part(record, "rewind", json!({"from": rewind.from, "to": to, "reason": rewind.reason}))
}

/// Files were put back.
pub(crate) fn restore(record: &str, restore: &Restore) -> Part {
    let mut data = json!({"target": restore.target, "from": restore.from, "files": restore.files});
    if restore.after_target {
        data["afterTarget"] = true.into();
    }
    if let Some(operation) = &restore.takes_back {
        data["takesBack"] = operation.as_str().into();
    }
    part(record, "restore", data)
}

fn part(record: &str, kind: &str, data: Value) -> Part {
    let mut data = object(data);
    data.insert("record".to_owned(), record.into());
    Part::data(kind, data)
}
