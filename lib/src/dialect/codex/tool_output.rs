//! The output of a tool. Codex records the text that the model sees; how the tool ended is in that text.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::model::json;
use crate::model::lenient::{self, RawObject};
use crate::model::record::{Outcome, ToolResult};

/// The result of a call, from its `output`. We write `success` beside it, where the text does not say how the tool ended.
pub(super) fn result(call_id: String, output: Option<&RawValue>, success: Option<bool>) -> ToolResult {
    let mut output = output.map(lenient::value).unwrap_or_default();
    let mut ended = Ended::default();
    // Older versions record what the model sees and whether the tool succeeded.
    if let Value::Object(fields) = &mut output
        && let Some(content) = fields.get_mut("content").map(Value::take)
    {
        ended.success = fields.get("success").and_then(Value::as_bool);
        output = content;
    }
    ended.success = ended.success.or(success);
    if let Value::String(text) = &output {
        if let Some((text, run)) = unwrap(text).filter(|_| success.is_none()) {
            ended = Ended { success: ended.success, ..run };
            output = text;
        } else {
            ended = Ended { success: ended.success, ..parse_head(text) };
        }
    }
    let outcome = match ended {
        Ended { success: Some(false), .. } => Outcome::Failed(to_text(&output)),
        Ended { success: None, exit_code: Some(code), .. } if code != 0 => {
            let text = to_text(&output);
            let output = text
                .split_once("\nOutput:\n")
                .filter(|_| ended.has_head)
                .map_or(text.as_str(), |(_, output)| output);
            Outcome::Failed(format!("exit code {code}: {}", output.trim()))
        }
        Ended { success: None, exit_code: None, .. } if reports_failure(&output) => Outcome::Failed(to_text(&output)),
        Ended { .. } => Outcome::Done,
    };
    let about = started_session(&output).map(|session| ("session".to_owned(), session.into())).into_iter().collect();
    ToolResult { duration_ms: ended.duration_ms, about, ..ToolResult::new(call_id, output, outcome) }
}

/// The run of a command in an event, unless a person started it with `!`.
pub(super) fn run_of_call(item: &RawValue) -> Option<RawObject<'_>> {
    let run = RawObject::from_raw(item)?;
    let is_run = run.text("type").as_deref() == Some("CommandExecution");
    let is_of_person = run.text("source").as_deref() == Some("user_shell");
    (is_run && !is_of_person && run.parsed::<i64>("exit_code").is_some()).then_some(run)
}

/// How a command ended, from the event that tells it. A command that runs on after a while gets a result before that, and one that
/// was interrupted gets none of its output.
pub(super) fn late_result(text: &str) -> Option<ToolResult> {
    let line: RawObject<'_> = json::from_str(text).ok()?;
    let payload = line.object("payload");
    let run = run_of_call(payload.raw("item")?)?;
    let (code, output) = (run.parsed::<i64>("exit_code")?, run.string("aggregated_output").unwrap_or_default());
    let outcome = match code {
        0 => Outcome::Done,
        code => Outcome::Failed(format!("exit code {code}: {}", output.trim())),
    };
    let span = |key: &str| payload.count(key);
    let duration_ms = span("completed_at_ms").zip(span("started_at_ms")).map(|(end, start)| end.saturating_sub(start));
    Some(ToolResult { duration_ms, ..ToolResult::new(run.string("id")?, output.into(), outcome) })
}

/// How the output of a tool begins that did not do what was asked, where nothing else says so.
const FAILURES: &[&str] = &[
    "aborted by user",
    "apply_patch verification failed",
    "command timed out",
    "exec_command failed",
    "exec command rejected by user",
    "execution error",
    "failed to parse function arguments",
    "Network access was denied",
    "patch rejected",
    "rejected by user",
    "tool call error: tool call failed for",
    "unable to locate image",
    "unable to process image",
    "unable to read image",
    "unable to resolve image",
    "Unknown process id",
    "unsupported call",
    "unsupported custom tool call",
    "write_stdin failed",
    "writing is blocked by",
    "writing outside of the project",
];

/// Whether the text is one of Codex's own about a call that failed.
fn reports_failure(output: &Value) -> bool {
    let text = to_text(output);
    // The duration may stand before it.
    let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let said = if first.starts_with("Wall time: ") { rest } else { &text };
    said.trim() == "aborted" || FAILURES.iter().any(|start| said.trim_start().starts_with(start))
}

/// `{"agent_id":"…","nickname":"…"}`: the call started another agent, whose session has that id.
fn started_session(output: &Value) -> Option<String> {
    let text = output.as_str().filter(|text| text.starts_with('{'))?;
    let Ok(Value::Object(mut fields)) = json::from_str(text) else { return None };
    match (fields.remove("agent_id"), fields.remove("nickname"), fields.is_empty()) {
        (Some(Value::String(session)), Some(Value::String(_) | Value::Null), true) => Some(session),
        _ => None,
    }
}

/// How a tool ended.
#[derive(Debug, Default, PartialEq)]
struct Ended {
    success: Option<bool>,
    exit_code: Option<i64>,
    duration_ms: Option<u64>,
    /// The facts are in lines before the output.
    has_head: bool,
}

/// `{"output":"…","metadata":{"exit_code":0,"duration_seconds":0.3}}`: the end of a command in older versions.
fn unwrap(text: &str) -> Option<(Value, Ended)> {
    if !text.starts_with('{') {
        return None;
    }
    let Ok(Value::Object(mut fields)) = json::parse(text) else { return None };
    let metadata = fields.remove("metadata")?;
    let output = fields.remove("output")?;
    let exit_code = metadata.get("exit_code").and_then(Value::as_i64);
    let seconds = metadata.get("duration_seconds").and_then(json::as_f64);
    fields
        .is_empty()
        .then_some((output, Ended { exit_code, duration_ms: seconds.and_then(millis), ..Ended::default() }))
}

/// The maximum number of lines before a command's output.
const HEAD_LINES: usize = 6;

/// Parses the lines before `Output:`, the end of a command in newer versions:
///
/// ```text
/// Chunk ID: 059e2a                     Exit code: 0
/// Wall time: 0.0000 seconds            Wall time: 0 seconds
/// Process exited with code 3           Output:
/// Original token count: 3
/// Output:
/// ```
fn parse_head(text: &str) -> Ended {
    let mut ended = Ended::default();
    if !text.starts_with("Chunk ID: ") && !text.starts_with("Exit code: ") && !text.starts_with("Wall time: ") {
        return ended;
    }
    ended.has_head = true;
    for line in text.lines().take(HEAD_LINES).take_while(|line| *line != "Output:") {
        let after = |prefix| line.strip_prefix(prefix);
        if let Some(code) = after("Exit code: ").or_else(|| after("Process exited with code ")) {
            ended.exit_code = code.parse().ok();
        } else if let Some(seconds) = after("Wall time: ").and_then(|rest| rest.strip_suffix(" seconds")) {
            ended.duration_ms = seconds.parse().ok().and_then(millis);
        }
    }
    ended
}

fn millis(seconds: f64) -> Option<u64> {
    (seconds.is_finite() && seconds >= 0.0).then_some((seconds * 1000.0).round() as u64)
}

fn to_text(output: &Value) -> String {
    match output {
        Value::Array(pieces) => {
            let texts = pieces.iter().filter_map(|piece| piece.get("text").and_then(Value::as_str));
            texts.collect::<Vec<_>>().join("\n")
        }
        other => lenient::to_text(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(output: &str) -> ToolResult {
        let raw: &RawValue = serde_json::from_str(output).unwrap();
        result("c".to_owned(), Some(raw), None)
    }

    #[test]
    fn the_end_of_a_command_is_before_its_output() {
        let failed = read(r#""Chunk ID: 1\nWall time: 0.5000 seconds\nProcess exited with code 3\nOutput:\noh\n""#);
        assert_eq!(failed.outcome, Outcome::Failed("exit code 3: oh".to_owned()));
        assert!(failed.output.as_str().is_some_and(|text| text.starts_with("Chunk ID: 1")));
        assert_eq!(failed.duration_ms, Some(500));
        assert_eq!(read(r#""Exit code: 0\nWall time: 0 seconds\nOutput:\nExit code: 1""#).outcome, Outcome::Done);
        assert_eq!(read(r#""Process exited with code 3""#).outcome, Outcome::Done);
    }

    #[test]
    fn older_outputs_are_unwrapped() {
        let wrapped = read(r#""{\"output\":\"x\",\"metadata\":{\"exit_code\":2,\"duration_seconds\":0.3}}""#);
        assert_eq!((wrapped.output, wrapped.duration_ms), ("x".into(), Some(300)));
        assert_eq!(wrapped.outcome, Outcome::Failed("exit code 2: x".to_owned()));
        let own = r#"{"output":"x","metadata":{},"more":1}"#;
        assert_eq!(read(&Value::from(own).to_string()).output, own);
        let flagged = read(r#"{"content":"no","success":false}"#);
        assert_eq!((flagged.output, flagged.outcome), ("no".into(), Outcome::Failed("no".to_owned())));
    }

    #[test]
    fn pieces_and_nothing_are_kept() {
        let pieces =
            r#"[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"data:image/png;base64,AA"}]"#;
        assert_eq!(read(pieces).output.to_string(), pieces);
        assert_eq!(result("c".to_owned(), None, None).output, Value::Null);
    }
}
