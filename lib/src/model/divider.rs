//! What people see as a line across the page: `data-*` parts for what nobody said.

use serde_json::{Value, json};

use crate::model::message::Part;
use crate::model::record::{Compaction, Content, RecordId, Restore, Rewind};

/// What came before was summed up.
pub(crate) fn compaction(record: &str, compaction: &Compaction) -> Part {
    let data = json!({
        "summary": compaction.summary, "trigger": compaction.trigger,
        "tokensBefore": compaction.tokens_before, "tokensAfter": compaction.tokens_after,
        "preserved": Some(&compaction.preserved).filter(|preserved| !preserved.is_empty()),
    });
    part(record, "compaction", data)
}

/// The compaction that such a part tells of.
pub(crate) fn compaction_of(parts: &[Part]) -> Compaction {
    let data = parts.iter().find_map(|part| if let Part::Data(data) = part { Some(&data.data) } else { None });
    let told = |key: &str| data.and_then(|data| data.get(key));
    let text = |key: &str| told(key).and_then(Value::as_str).map(str::to_owned);
    let preserved = told("preserved").and_then(Value::as_array).into_iter().flatten();
    Compaction {
        summary: text("summary"),
        trigger: text("trigger"),
        tokens_before: told("tokensBefore").and_then(Value::as_u64),
        tokens_after: told("tokensAfter").and_then(Value::as_u64),
        preserved: preserved.filter_map(Value::as_str).map(RecordId::from).collect(),
        cuts: true,
        ..Compaction::default()
    }
}

/// The agent failed.
pub(crate) fn failure(record: &str, content: &Content) -> Part {
    let texts = content
        .parts
        .iter()
        .filter_map(|part| if let Part::Text(text) = part { Some(text.text.as_str()) } else { None });
    let text = texts.collect::<Vec<_>>().join("\n");
    part(record, "error", json!({"kind": content.error, "text": text}))
}

/// What went wrong, where a part tells that.
pub(crate) fn text_of_failure(part: &Part) -> Option<&str> {
    let Part::Data(data) = part else { return None };
    data.data.get("text").and_then(Value::as_str).filter(|_| data.kind == "error")
}

/// The conversation went back, to the record that it goes on from.
pub(crate) fn rewind(record: &str, rewind: &Rewind, to: Option<&str>) -> Part {
    part(record, "rewind", json!({"from": rewind.from, "to": to, "reason": rewind.reason}))
}

/// Files were put back.
pub(crate) fn restore(record: &str, restore: &Restore) -> Part {
    part(record, "restore", json!({"target": restore.target, "from": restore.from, "files": restore.files}))
}

fn part(record: &str, kind: &str, mut data: Value) -> Part {
    if let Value::Object(data) = &mut data {
        data.retain(|_, value| !value.is_null());
        data.insert("record".to_owned(), record.into());
    }
    Part::data(kind, data)
}
