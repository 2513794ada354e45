//! Dividers between messages: gaps, compactions, rewinds, restores and errors.

use scrollback::model::Part;
use serde_json::Value;

use super::plural;
use super::short_ids::ShortIds;
use crate::terminal::paint::Paint;
use crate::terminal::{Look, clean, markdown, width};

/// A line of `─` with a text in it.
pub(crate) fn rule(text: &str, look: &Look) -> String {
    let text = clean::line(text);
    let text = width::fit(&text, width::of(&text).min(look.width.saturating_sub(8)));
    let left = look.width.saturating_sub(width::of(text.trim_end()) + 6);
    let line = format!("── {} {}", text.trim_end(), "─".repeat(left.clamp(2, 40)));
    Paint { colour: look.colour }.dim(&line)
}

/// Whether a part that a message begins with stands before it: it is about the conversation, not about the message.
pub(crate) fn is_before_message(part: &Part) -> bool {
    matches!(part, Part::Data(data) if matches!(data.kind.as_str(), "compaction" | "rewind" | "restore"))
}

/// A `data-*` part as a divider, if it is one.
pub(crate) fn of_part(kind: &str, data: &Value, ids: &ShortIds<'_>, look: &Look) -> Option<String> {
    let text = |key: &str| data.get(key).and_then(Value::as_str).unwrap_or_default();
    let number = |key: &str| data.get(key).and_then(Value::as_u64);
    let paint = Paint { colour: look.colour };
    Some(match kind {
        "compaction" => {
            let tokens = match (number("tokensBefore"), number("tokensAfter")) {
                (Some(before), Some(after)) => format!(": {before} → {after} tokens"),
                (Some(before), None) => format!(": {before} tokens"),
                _ => String::new(),
            };
            let trigger = if text("trigger").is_empty() { String::new() } else { format!(" ({})", text("trigger")) };
            let summary = markdown::render(text("summary"), &Look { width: look.width.saturating_sub(2), ..*look });
            let summary: String = summary.lines().map(|line| format!("  {line}\n")).collect();
            let what = format!("compacted{trigger}{tokens}; the model continues with this summary");
            format!("{}\n{summary}", rule(&what, look))
        }
        "rewind" => {
            let from =
                if text("from").is_empty() { String::new() } else { format!(" from {}", ids.short(text("from"))) };
            let reason = if text("reason").is_empty() { String::new() } else { format!(": {}", text("reason")) };
            let to = if text("to").is_empty() { "the start" } else { ids.short(text("to")) };
            format!("{}\n", rule(&format!("rewound{from} to {to}{reason}"), look))
        }
        "restore" => {
            let files = data.get("files").and_then(Value::as_array).map_or(0, Vec::len);
            let what = format!("{} restored to {}", plural(files as u64, "file"), ids.short(text("target")));
            format!("{}\n", rule(&what, look))
        }
        "error" if text("kind") == "interrupted" => format!("{}\n", rule("interrupted", look)),
        "error" if text("kind") == "api_error" => {
            let attempts = match number("attempts").unwrap_or(1) {
                1 => "1 retry".to_owned(),
                attempts => format!("{attempts} retries"),
            };
            let why = if text("text").is_empty() { String::new() } else { format!(": {}", text("text")) };
            format!("{}\n", paint.red(&format!("✗ {attempts}{why}")))
        }
        "error" => {
            let content = clean::text(text("text")).into_owned();
            content.lines().map(|line| format!("{}\n", paint.red(&format!("✗ {line}")))).collect()
        }
        _ => return None,
    })
}
