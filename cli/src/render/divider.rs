//! Dividers between messages: gaps, compactions, rewinds, restores and errors.

use scrollback::session::RecordRef;
use scrollback::view::dividers;
use serde_json::Value;

use super::fold;
use super::message::Detail;
use super::plural;
use super::short_ids::ShortIds;
use crate::terminal::paint::Paint;
use crate::terminal::{Look, clean, markdown, width, wrap};

/// A summary is folded to this many lines.
const SUMMARY_LINES: usize = 8;

/// What a gap before a record lacks. Other sessions, and the parts of one, are named by their whole ids: those of one minute can begin
/// with the same characters.
pub(crate) fn lacks(record: RecordRef<'_>, missing: &str, ids: &ShortIds<'_>) -> String {
    match (record.has_missing_base(), record.continues_its_session()) {
        (true, true) => format!("an earlier part of this session is missing ({missing})"),
        (true, false) => format!("session {missing} is missing"),
        (false, _) => format!("record {} is missing", ids.short(missing)),
    }
}

/// A line of `─` with a text in it, as wide as prose; a long text takes more lines.
pub(crate) fn rule(text: &str, look: &Look) -> String {
    let paint = Paint { colour: look.colour };
    let text = clean::line(text).into_owned();
    let rows = wrap::prose(&text, look.width.saturating_sub(6).max(1));
    let last = rows.len().saturating_sub(1);
    let rows = rows.into_iter().enumerate().map(|(at, range)| {
        let row = format!("{} {}", if at == 0 { "──" } else { "  " }, &text[range]);
        let left = if at == last { look.width.saturating_sub(width::of(&row) + 1).max(2) } else { 0 };
        paint.dim(format!("{row} {}", "─".repeat(left)).trim_end())
    });
    rows.collect::<Vec<_>>().join("\n")
}

/// A `data-*` part as a divider, if it is one.
pub(crate) fn of_part(kind: &str, data: &Value, ids: &ShortIds<'_>, look: &Look, detail: Detail) -> Option<String> {
    let text = |key: &str| data.get(key).and_then(Value::as_str).unwrap_or_default();
    let number = |key: &str| data.get(key).and_then(Value::as_u64);
    Some(match kind {
        "compaction" => {
            let tokens = match (number("tokensBefore"), number("tokensAfter")) {
                (Some(before), Some(after)) => format!(": {before} → {after} tokens"),
                (Some(before), None) => format!(": {before} tokens"),
                _ => String::new(),
            };
            let messages = number("messages").map(|count| format!(" {}", plural(count, "message"))).unwrap_or_default();
            let trigger = if text("trigger").is_empty() { String::new() } else { format!(" ({})", text("trigger")) };
            // What the agent says around it is for the model.
            let summary = if detail.full { text("summary") } else { dividers::summary(data) };
            let summary = markdown::render(summary, &look.beside(2));
            let lines: Vec<&str> = summary.lines().collect();
            let is_folded = !detail.full && lines.len() > SUMMARY_LINES + fold::HIDDEN_ROWS;
            let shown = if is_folded { SUMMARY_LINES } else { lines.len() };
            let mut summary: String = lines.iter().take(shown).map(|line| format!("  {line}\n")).collect();
            if is_folded {
                summary +=
                    &fold::more(lines.len() - shown, lines[shown..].iter().map(|line| line.len() + 1).sum(), look);
            }
            let kept = data.get("preserved").and_then(Value::as_array).is_some_and(|kept| !kept.is_empty());
            let sees = if kept { "to this summary and what was kept" } else { "to this summary" };
            let what = format!("compacted{messages}{trigger}{tokens}, {sees}");
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
            let is_done = |file: &&Value| file.get("action").and_then(Value::as_str) != Some("none");
            let files = data.get("files").and_then(Value::as_array).into_iter().flatten().filter(is_done).count();
            let files = plural(files as u64, "file");
            let what = match (text("takesBack").is_empty(), data.get("afterTarget") == Some(&Value::Bool(true))) {
                (true, false) => format!("{files} restored to before {}", ids.short(text("target"))),
                (true, true) => format!("{files} restored to after {}", ids.short(text("target"))),
                (false, _) => format!("undo taken back: {files}"),
            };
            format!("{}\n", rule(&what, look))
        }
        "error" if text("kind") == "interrupted" => format!("{}\n", rule("interrupted", look)),
        "error" if data.get("retried").is_some() || text("kind") == "api_error" => {
            let attempts = match number("attempts").unwrap_or(1) {
                1 => "1 retry".to_owned(),
                attempts => format!("{attempts} retries"),
            };
            let why = if text("text").is_empty() { String::new() } else { format!(": {}", text("text")) };
            let is_over = data.get("retried").is_some();
            marked(if is_over { Mark::Retried } else { Mark::Failed }, &format!("{attempts}{why}"), look)
        }
        "error" => marked(Mark::Failed, text("text"), look),
        _ => return None,
    })
}

/// Whether an answer followed an error.
#[derive(Clone, Copy)]
enum Mark {
    Failed,
    Retried,
}

/// An error, wrapped and indented like the rest.
fn marked(mark: Mark, text: &str, look: &Look) -> String {
    let paint = Paint { colour: look.colour };
    let (sign, brush): (_, fn(Paint, &str) -> String) = match mark {
        Mark::Failed => ("✗", Paint::red),
        Mark::Retried => ("↻", Paint::dim),
    };
    let text = clean::text(text).into_owned();
    let rows = wrap::prose(&text, look.width.saturating_sub(4).max(1)).into_iter().enumerate();
    rows.map(|(at, range)| {
        let start = if at == 0 { sign } else { " " };
        format!("  {}\n", brush(paint, &format!("{start} {}", &text[range])))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dividers_have_one_width_and_lose_no_word() {
        let look = Look { width: 40, code: 80, colour: false };
        insta::assert_snapshot!(rule("interrupted", &look), @"── interrupted ─────────────────────────");
        insta::assert_snapshot!(rule("compacted (manual): 1006 → 51 tokens, to this summary", &look), @"
        ── compacted (manual): 1006 → 51
           tokens, to this summary ─────────────
        ");
    }
}
