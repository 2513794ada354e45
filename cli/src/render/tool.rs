//! A tool call: one line, or all of it with `--full`.

use scrollback::model::json;
use scrollback::model::{ToolPart, ToolState};
use serde_json::Value;

use crate::terminal::paint::Paint;
use crate::terminal::{Look, clean, markdown, width};

/// The arguments that identify a call best, the best first.
const KEY_ARGUMENTS: [&str; 11] =
    ["command", "cmd", "file_path", "path", "pattern", "query", "url", "prompt", "description", "name", "id"];

/// `--full` shows this much of an output; `--json` and `--raw` print all of it.
const OUTPUT_LIMIT_CHARS: usize = 100_000;

/// One line: outcome, tool, input.
pub(crate) fn folded(call: &ToolPart, look: &Look) -> String {
    let (mark, note) = outcome(call);
    let shown = shown_result(call).filter(|_| mark == '✓' && note.is_empty());
    let note = shown.and_then(|shown| shown.lines().find(|line| !line.trim().is_empty())).unwrap_or(&note);
    line(call, mark, note, look) + &child(call, look)
}

/// One line for a call whose result may still come.
pub(crate) fn running(call: &ToolPart, look: &Look) -> String {
    line(call, '…', "", look)
}

fn line(call: &ToolPart, mark: char, note: &str, look: &Look) -> String {
    let paint = Paint { colour: look.colour };
    let name = clean::line(&label(call)).into_owned();
    let note = clean::line(note).into_owned();
    let input = Some(input_summary(call.input())).filter(|input| !input.trim().is_empty());
    let input = input.or_else(|| about(call, "description").map(str::to_owned)).unwrap_or_default();
    let input = clean::line(&input).into_owned();
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
    let mut out = format!("  {} {}", mark_painted(mark, paint), paint.bold(&clean::line(&label(call))));
    out += &format!("  {}\n{}", paint.dim(&call.call_id), child(call, look));
    if let Some(description) = about(call, "description") {
        out += &block(description, paint);
    }
    if let Some(input) = call.input().filter(|input| !input.is_null()) {
        out += &block(&pretty(input), paint);
    }
    match call.output() {
        Some(output) => out + &format!("  {}\n", paint.dim("→")) + &result(call, output, look),
        None if note.is_empty() => out,
        None => out + &block(&format!("→ {note}"), paint),
    }
}

/// The tool's name for people, and its own.
fn label(call: &ToolPart) -> String {
    let title = call
        .title
        .as_deref()
        .filter(|title| !title.trim().is_empty())
        .or_else(|| about(call, "displayName"));
    match title.filter(|title| *title != call.name) {
        Some(title) => format!("{title} ({})", call.name),
        None => call.name.clone(),
    }
}

/// A text that the agent noted about the run of a tool.
fn about<'c>(call: &'c ToolPart, key: &str) -> Option<&'c str> {
    noted(call, key)?.as_str().filter(|text| !text.trim().is_empty())
}

fn noted<'c>(call: &'c ToolPart, key: &str) -> Option<&'c Value> {
    call.call_provider_metadata.as_ref()?.get("scrollback")?.get(key)
}

/// What the agent showed of the result: a text, or the change of a file.
fn shown_result(call: &ToolPart) -> Option<&str> {
    let change = || noted(call, "resultDisplay")?.get("fileDiff")?.as_str();
    about(call, "resultDisplay").or_else(change)
}

/// The result as the agent showed it, else as the tool returned it; as Markdown where the agent asks for it.
fn result(call: &ToolPart, output: &Value, look: &Look) -> String {
    let text = shown_result(call).map_or_else(|| pretty(output), str::to_owned);
    let is_markdown = noted(call, "renderOutputAsMarkdown").and_then(Value::as_bool) == Some(true);
    if is_markdown && text.len() <= OUTPUT_LIMIT_CHARS {
        let narrower = Look { width: look.width.saturating_sub(4).max(1), ..*look };
        return markdown::render(&text, &narrower).lines().map(|line| format!("    {line}\n")).collect();
    }
    block(&text, Paint { colour: look.colour })
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
    let text = json::to_string(value);
    if text == "{}" { String::new() } else { text }
}

fn pretty(value: &Value) -> String {
    let text = |piece: &Value| piece.get("text")?.as_str().filter(|_| piece["type"] == "text").map(str::to_owned);
    match value {
        Value::String(text) => text.clone(),
        // Several texts of one result.
        Value::Array(pieces) if !pieces.is_empty() && pieces.iter().all(|piece| text(piece).is_some()) => {
            pieces.iter().filter_map(text).collect::<Vec<_>>().join("\n")
        }
        other => json::to_string_pretty(other),
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const LOOK: Look = Look { width: 80, colour: false };

    fn call(note: Value) -> ToolPart {
        let state = ToolState::done(json!({"path": "a.rs"}), json!("raw"));
        let mut call = ToolPart::dynamic("read_file", "c1", state);
        call.call_provider_metadata = json!({"scrollback": note}).as_object().cloned();
        call
    }

    #[test]
    fn a_tool_has_its_name_for_people_and_its_own() {
        assert_eq!(folded(&call(json!({})), &LOOK), "  ✓ read_file  a.rs\n");
        assert_eq!(folded(&call(json!({"displayName": "ReadFile"})), &LOOK), "  ✓ ReadFile (read_file)  a.rs\n");
        let titled = ToolPart { title: Some("Read a file".to_owned()), ..call(json!({"displayName": "ReadFile"})) };
        assert_eq!(folded(&titled, &LOOK), "  ✓ Read a file (read_file)  a.rs\n");
        assert!(open(&titled, &LOOK).starts_with("  ✓ Read a file (read_file)  c1\n"));
        let hostile = ToolPart { title: Some("a\u{1b}[2Jb".to_owned()), ..call(json!({})) };
        assert!(!folded(&hostile, &LOOK).contains('\u{1b}') && !open(&hostile, &LOOK).contains('\u{1b}'));
    }

    #[test]
    fn a_result_is_shown_as_the_agent_showed_it() {
        let noted = call(json!({"description": "Reads a file", "resultDisplay": "\n3 lines\nmore"}));
        assert_eq!(folded(&noted, &LOOK), "  ✓ read_file  a.rs → 3 lines\n");
        let shown = open(&noted, &LOOK);
        assert!(
            shown.contains("    Reads a file\n") && shown.contains("    3 lines\n") && !shown.contains("raw"),
            "{shown}"
        );
        let change = call(json!({"resultDisplay": {"fileDiff": "-old\n+new", "fileName": "a.rs"}}));
        assert!(open(&change, &LOOK).contains("    +new\n"));
        let other = call(json!({"resultDisplay": {"todos": []}}));
        assert!(open(&other, &LOOK).contains("    raw\n"));
        let plain = call(json!({"resultDisplay": "# Title\n\n- **one**"}));
        assert!(open(&plain, &LOOK).contains("- **one**"));
        let markdown = call(json!({"resultDisplay": "# Title\n\n- **one**", "renderOutputAsMarkdown": true}));
        assert!(!open(&markdown, &LOOK).contains("**"), "{}", open(&markdown, &LOOK));
        let mut without_input = call(json!({"description": "Lists files"}));
        without_input.state = ToolState::done(json!({}), json!("raw"));
        assert_eq!(folded(&without_input, &LOOK), "  ✓ read_file  Lists files\n");
    }

    #[test]
    fn several_texts_of_a_result_are_lines() {
        let mut texts = call(json!({}));
        texts.state = ToolState::done(json!({}), json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]));
        assert!(open(&texts, &LOOK).ends_with("    a\n    b\n"), "{}", open(&texts, &LOOK));
    }
}
