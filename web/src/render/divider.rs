//! Dividers between messages: gaps, compactions, rewinds, restores, errors, and pauses.

use jiff::Timestamp;
use maud::{Markup, html};
use scrollback::session::{Gap, RecordRef};
use serde_json::Value;

use super::icon::icon;
use super::words::{grouped, plural};
use super::{Look, text, thought};

/// A longer pause between two messages is worth a line.
const PAUSE_SECONDS: i64 = 30 * 60;

/// A `data-*` part as a divider or a notice, if it is one.
pub fn of_part(kind: &str, data: &Value, look: &Look<'_>) -> Option<Markup> {
    let field = |key: &str| data.get(key).and_then(Value::as_str).unwrap_or_default();
    Some(match kind {
        "compaction" => compaction(data, look),
        "rewind" => {
            let to = if field("to").is_empty() {
                html! { "to the start" }
            } else {
                html! { "to " (record(field("to"))) }
            };
            html! {
                (line("back", "Went back", html! { span { (to) } @if !field("reason").is_empty() { span dir="auto" { (text::brief(field("reason"), 300)) } } }))
            }
        }
        "restore" => restore(data),
        "error" if field("kind") == "interrupted" => line("ban", "Stopped by a person", html! {}),
        "error" => error(data),
        _ => return None,
    })
}

fn compaction(data: &Value, look: &Look<'_>) -> Markup {
    let field = |key: &str| data.get(key).and_then(Value::as_str).unwrap_or_default();
    let (before, after) =
        (data.get("tokensBefore").and_then(Value::as_u64), data.get("tokensAfter").and_then(Value::as_u64));
    let how = match field("trigger") {
        "auto" => "Compacted automatically".to_owned(),
        "manual" => "Compacted on request".to_owned(),
        "" => "Compacted".to_owned(),
        other => format!("Compacted ({})", text::brief(other, 40)),
    };
    let facts = html! {
        @if let Some(count) = data.get("messages").and_then(Value::as_u64) { span { (plural(count, "message")) } }
        @match (before, after) {
            (Some(before), Some(after)) => {
                span.num { (grouped(before)) " → " (grouped(after)) " tokens" }
                @let share = 120.0 * after.min(before) as f64 / before.max(1) as f64;
                svg.shrink viewBox="0 0 120 8" aria-hidden="true" {
                    rect.shrink-was width="120" height="8" rx="2" {}
                    rect.shrink-is width=(format!("{:.1}", share.max(1.0))) height="8" rx="1" {}
                }
            },
            (Some(before), None) => span.num { (grouped(before)) " tokens before" },
            _ => {},
        }
    };
    let kept = data.get("preserved").and_then(Value::as_array).is_some_and(|kept| !kept.is_empty());
    let label = if kept {
        "What the model sees from here on, beside what was kept"
    } else {
        "What the model sees from here on"
    };
    html! {
        div.divider id=[anchor(data)] {
            div.divider-line { (icon("fold")) b { (how) } (facts) }
            @if !field("summary").trim().is_empty() { (thought::fold(label, field("summary"), None, look)) }
        }
    }
}

fn restore(data: &Value) -> Markup {
    let field = |key: &str| data.get(key).and_then(Value::as_str).unwrap_or_default();
    let is_done = |file: &&Value| file.get("action").and_then(Value::as_str) != Some("none");
    let files = data.get("files").and_then(Value::as_array).into_iter().flatten().filter(is_done).count();
    let files = plural(files, "file");
    let side = if data.get("afterTarget") == Some(&Value::Bool(true)) { "after" } else { "before" };
    match field("takesBack").is_empty() {
        true => line(
            "back",
            &format!("{files} put back"),
            html! { span { "to what they were " (side) " " (record(field("target"))) } },
        ),
        false => line("back", "Undo taken back", html! { span { (files) } }),
    }
}

fn error(data: &Value) -> Markup {
    let field = |key: &str| data.get(key).and_then(Value::as_str).unwrap_or_default();
    let attempts = data.get("attempts").and_then(Value::as_u64).unwrap_or(1);
    let went_on = data.get("retried").is_some();
    let kind = field("kind");
    // Some agents name the kind in the text, too.
    let said = field("text").strip_prefix(&format!("[{kind}]")).unwrap_or(field("text")).trim();
    let stop = if said.ends_with(['.', '!', '?']) { "" } else { "." };
    html! {
        p class=(if went_on { "notice notice-warn" } else { "notice" }) {
            (icon("warn"))
            span dir="auto" {
                @if !matches!(kind, "" | "error" | "api_error") { code { (text::brief(kind, 60)) } " " }
                (text::brief(said, 2_000))
                @if attempts > 1 { " (" (attempts) " attempts)" }
                @if went_on { (stop) " The agent went on after it." }
            }
        }
    }
}

/// A missing record on the branch.
///
/// `before` is the newest record of what is left of the time before it.
pub fn gap(gap: &Gap<'_>, before: Option<RecordRef<'_>>, look: &Look<'_>) -> Markup {
    let missing = gap.missing_parent.as_str();
    let what = html! {
        @if gap.child.continues_its_session() && gap.child.is_in_a_cycle() { span { "the parts of this session continue each other in a circle" } }
        @else if gap.child.continues_its_session() && gap.child.has_missing_base() { span { "an earlier part of this session is missing, nothing is guessed" } }
        @else if gap.child.is_in_a_cycle() { span { "the session starts in " (record(missing)) ", which starts in this one" } }
        @else if gap.bridged_to.is_some() { span { "the record " (record(missing)) " is missing; it goes on from the record before, as the agent does" } }
        @else { span { "the record " (record(missing)) " is missing, nothing is guessed" } }
        @if let super::Medium::Page(session) = look.medium {
            @match before {
                Some(before) => a.link href={ (session) "?head=" (text::path_segment(&before.id())) } { "read what is left of before" },
                None => a.link href={ (session) "/tree" } { "see every branch" },
            }
        }
    };
    html! {
        div class="divider divider-gap" id={ "gap-" (text::anchor(missing)) } {
            div.divider-line { (icon("gap")) b { "Gap" } (what) }
        }
    }
}

/// A pause, or a new day, between two messages.
pub fn pause(before: Timestamp, after: Timestamp, look: &Look<'_>) -> Option<Markup> {
    let seconds = after.as_second() - before.as_second();
    let (before, after) = (before.to_zoned(look.zone.clone()), after.to_zoned(look.zone.clone()));
    let what = if after.date() > before.date() {
        after.strftime("%A, %-d %B").to_string()
    } else if seconds >= PAUSE_SECONDS {
        match seconds / 60 {
            minutes @ ..90 => format!("{minutes} minutes later"),
            minutes => format!("{} hours later", (minutes + 30) / 60),
        }
    } else {
        return None;
    };
    Some(html! { div class="divider divider-time" { div.divider-line { span { (what) } } } })
}

fn line(shape: &'static str, what: &str, more: Markup) -> Markup {
    html! { div.divider { div.divider-line { (icon(shape)) b { (what) } (more) } } }
}

fn record(id: &str) -> Markup {
    html! { code title=(text::shown(id)) { (text::short_id(id)) } }
}

fn anchor(data: &Value) -> Option<String> {
    Some(format!("r-{}", text::anchor(data.get("record")?.as_str()?)))
}
