//! A tool call: one line, or all of it with `--full`.

use scrollback::model::{ToolPart, ToolState};
use serde_json::Value;

use crate::terminal::paint::Paint;
use crate::terminal::{Look, clean, width};

/// The arguments that identify a call best, the best first.
const KEY_ARGUMENTS: [&str; 11] =
    ["command", "cmd", "file_path", "path", "pattern", "query", "url", "prompt", "description", "name", "id"];

/// `--full` shows this much of an output; `--json` and `--raw` print all of it.
const OUTPUT_LIMIT_CHARS: usize = 100_000;

/// One line: outcome, tool, input.
pub(crate) fn folded(call: &ToolPart, look: &Look) -> String {
    let (mark, note) = outcome(call);
    line(call, mark, &note, look) + &child(call, look)
}

/// One line for a call whose result may still come.
pub(crate) fn running(call: &ToolPart, look: &Look) -> String {
    line(call, '…', "", look)
}

fn line(call: &ToolPart, mark: char, note: &str, look: &Look) -> String {
    let paint = Paint { colour: look.colour };
    let name = clean::line(&call.name).into_owned();
    let note = clean::line(note).into_owned();
    let input = clean::line(&input_summary(call.input())).into_owned();
    let for_note = width::of(&note).min(look.width / 3);
    let room = look.width.saturating_sub(4 + width::of(&name) + 2 + if note.is_empty() { 0 } else { for_note + 3 });
    let input = width::fit(&input, room.min(width::of(&input)));
    let mut line = format!("  {} {}", mark_painted(mark, paint), paint.bold(&name));
    if !input.trim().is_empty() {
        line += &format!("  {}", input.trim_end());
    }
    if !note.is_empty() {
        line += &paint.dim(&format!(" → {}", width::fit(&note, for_note).trim_end()));
    }
    line + "\n"
}

/// All of it: input and output.
pub(crate) fn open(call: &ToolPart, look: &Look) -> String {
    let paint = Paint { colour: look.colour };
    let (mark, note) = outcome(call);
    let mut out = format!("  {} {}", mark_painted(mark, paint), paint.bold(&call.name));
    out += &format!("  {}\n{}", paint.dim(&call.call_id), child(call, look));
    if let Some(input) = call.input().filter(|input| !input.is_null()) {
        out += &block(&pretty(input), paint);
    }
    match call.output() {
        Some(output) => out + &format!("  {}\n", paint.dim("→")) + &block(&pretty(output), paint),
        None if note.is_empty() => out,
        None => out + &block(&format!("→ {note}"), paint),
    }
}

/// The session that a call started.
fn child(call: &ToolPart, look: &Look) -> String {
    let ours = call.call_provider_metadata.as_ref().and_then(|metadata| metadata.get("scrollback"));
    match ours.and_then(|ours| ours.get("session")?.as_str()) {
        Some(session) => {
            let line = Paint { colour: look.colour }.dim(&format!("└ sub-agent session {session}"));
            format!("    {line}\n")
        }
        None => String::new(),
    }
}

fn outcome(call: &ToolPart) -> (char, String) {
    match &call.state {
        ToolState::InputStreaming { .. } => ('…', "incomplete input".to_owned()),
        ToolState::InputAvailable { .. } => ('…', "no result".to_owned()),
        ToolState::ApprovalRequested { .. } => ('?', "waiting for approval".to_owned()),
        ToolState::ApprovalResponded { approval, .. } => {
            ('?', if approval.approved == Some(false) { "refused".to_owned() } else { "approved, not run".to_owned() })
        }
        ToolState::OutputAvailable { preliminary: Some(true), .. } => ('…', "not finished".to_owned()),
        ToolState::OutputAvailable { .. } => ('✓', String::new()),
        ToolState::OutputError { error_text, .. } => ('✗', error_text.clone()),
        ToolState::OutputDenied { approval, .. } => {
            ('⊘', approval.reason.as_ref().map_or_else(|| "refused".to_owned(), |why| format!("refused: {why}")))
        }
    }
}

fn mark_painted(mark: char, paint: Paint) -> String {
    let mark = mark.to_string();
    match mark.as_str() {
        "✓" => paint.green(&mark),
        "✗" | "⊘" => paint.red(&mark),
        _ => paint.yellow(&mark),
    }
}

/// The most important argument of a call, or all of them, as one line.
pub(crate) fn input_summary(input: Option<&Value>) -> String {
    match input {
        Some(Value::Object(input)) => {
            let key_argument = KEY_ARGUMENTS.iter().find_map(|key| input.get(*key)).and_then(Value::as_str);
            key_argument.map_or_else(|| compact(&Value::Object(input.clone())), str::to_owned)
        }
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => String::new(),
        Some(other) => compact(other),
    }
}

fn compact(value: &Value) -> String {
    let text = value.to_string();
    if text == "{}" { String::new() } else { text }
}

fn pretty(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).unwrap_or_else(|_| other.to_string()),
    }
}

fn block(text: &str, paint: Paint) -> String {
    let shown: String = text.chars().take(OUTPUT_LIMIT_CHARS).collect();
    let cut = if shown.len() < text.len() {
        format!("    … {} more bytes\n", text.len() - shown.len())
    } else {
        String::new()
    };
    let lines = clean::text(&shown).lines().map(|line| format!("    {}\n", paint.dim(line))).collect::<String>();
    lines + &paint.dim(cut.trim_end_matches('\n')) + if cut.is_empty() { "" } else { "\n" }
}
