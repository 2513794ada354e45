//! The content blocks of Anthropic's API as parts of a message and results of calls.

use std::borrow::Cow;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::dialect::line_builder::Put;
use crate::model::json;
use crate::model::lenient::{self, RawObject, Text};
use crate::model::message::{FilePart, Part, ReasoningPart, TextPart, ToolPart, ToolState, provider_metadata};
use crate::model::record::{Content, ContentItem, Outcome, ToolResult};

/// Reads content blocks of Anthropic's API, or a single one: their parts, and the tool results among them.
pub fn blocks(content: &Value) -> (Vec<Part>, Vec<ToolResult>) {
    let Ok(raw) = serde_json::value::to_raw_value(content) else { return Default::default() };
    let content = content_from(&raw, &ToolRun::default());
    (content.parts, content.results)
}

/// The parts and results in a `content`: a text, or a list of blocks.
pub(super) fn content_from(content: &RawValue, run: &ToolRun<'_>) -> Content {
    blocks_of(content).into_iter().filter_map(|raw| item(raw, run)).collect()
}

/// Whether blocks of this type call a tool: the agent's, the provider's or a server's.
pub(super) fn is_call(kind: &str) -> bool {
    kind.ends_with("tool_use")
}

/// The task list that a call sets, if it sets one.
pub(super) fn todos(part: &Part) -> Option<Value> {
    match part {
        Part::Tool(call) if call.name == "TodoWrite" => call.input()?.get("todos").cloned(),
        _ => None,
    }
}

/// The blocks of a `content`; a string is a single one.
fn blocks_of(content: &RawValue) -> Vec<&RawValue> {
    lenient::elements(content).unwrap_or_else(|| vec![content])
}

fn item(raw: &RawValue, run: &ToolRun<'_>) -> Option<ContentItem> {
    let part = match RawObject::from_raw(raw) {
        Some(block) if block.get::<Text<'_>>("tool_use_id").0.is_some() => {
            return Some(ContentItem::Result(result(&block, run)));
        }
        Some(block) => part(&block, raw),
        None => match lenient::value(raw) {
            Value::Null => return None,
            Value::String(text) if text.is_empty() => return None,
            Value::String(text) => Part::text(text),
            other => Part::data("block", other),
        },
    };
    Some(ContentItem::Part(part))
}

fn part(block: &RawObject<'_>, raw: &RawValue) -> Part {
    let kind = block.text("type").unwrap_or_default();
    match &*kind {
        "text" => Part::Text(TextPart {
            text: block.string("text").unwrap_or_default(),
            citations: block.parsed("citations"),
            ..TextPart::default()
        }),
        "thinking" => reasoning(block, "signature", "signature"),
        "redacted_thinking" => reasoning(block, "redactedData", "data"),
        "image" | "document" => file(block).map_or_else(|| Part::data("block", lenient::value(raw)), Part::File),
        kind if is_call(kind) => {
            let input = block.value("input").unwrap_or_default();
            let name = block.string("name").unwrap_or_else(|| "unknown".to_owned());
            let mut call = ToolPart::dynamic(name, block.string("id").unwrap_or_default(), ToolState::called(input));
            call.provider_executed = (kind != "tool_use").then_some(true);
            call.into()
        }
        _ => Part::data("block", lenient::value(raw)),
    }
}

/// What the agent shows of an attachment: a file that it read along with a prompt, `@README.md`, or after a compaction; a task;
/// what a hook said; instructions and skills that it loaded.
pub(super) fn attachment_notice(attachment: &RawObject<'_>) -> Option<String> {
    match attachment.text("type").as_deref()? {
        "file" | "already_read_file" => read_file(attachment),
        "directory" => Some(format!("Listed directory {}/", attachment.string("displayPath")?.trim_end_matches('/'))),
        "task_status" => {
            let (task, status) = (attachment.string("description")?, attachment.string("status")?);
            Some(format!("Task \"{task}\" {status} in background"))
        }
        "hook_blocking_error" => {
            let error = attachment.object("blockingError").string("blockingError")?;
            Some(format!("{} hook returned blocking error: {}", attachment.string("hookName")?, error.trim_end()))
        }
        "hook_system_message" => {
            Some(format!("{} says: {}", attachment.string("hookName")?, attachment.string("content")?.trim_end()))
        }
        "nested_memory" => Some(format!("Loaded {}", name_of(attachment, "path")?)),
        "invoked_skills" => {
            let skills = attachment.objects("skills");
            let names: Vec<String> = skills.iter().filter_map(|skill| skill.string("name")).collect();
            (!names.is_empty()).then(|| format!("Skills restored ({})", names.join(", ")))
        }
        _ => None,
    }
}

/// The name of a file as the agent shows it, else its path.
fn name_of(attachment: &RawObject<'_>, path: &str) -> Option<String> {
    attachment.string("displayPath").or_else(|| attachment.string(path))
}

fn read_file(attachment: &RawObject<'_>) -> Option<String> {
    let name = name_of(attachment, "filename")?;
    let lines = attachment.object("content").object("file").count("numLines")?;
    Some(format!("Read {name} ({lines} {})", if lines == 1 { "line" } else { "lines" }))
}

/// The picture of an attachment that a person mentioned, `@red.png`.
pub(super) fn mentioned_picture(attachment: &RawObject<'_>) -> Option<Part> {
    let content = attachment.object("content");
    let file = content.object("file");
    if content.text("type").as_deref() != Some("image") {
        return None;
    }
    let (media_type, data) = (file.string("type")?, file.text("base64").filter(|data| !data.is_empty())?);
    let url = format!("data:{media_type};base64,{data}");
    let filename = attachment.string("displayPath").or_else(|| attachment.string("filename"));
    Some(Part::File(FilePart { media_type, url, filename, ..FilePart::default() }))
}

/// What the agent sends of a text file that a person mentioned, where the line has only the file, as in older versions.
pub(super) fn mentioned_text(attachment: &RawObject<'_>) -> Option<[Part; 2]> {
    let content = attachment.object("content");
    if attachment.text("type").as_deref() != Some("file") || content.text("type").as_deref() != Some("text") {
        return None;
    }
    let file = content.object("file");
    let (path, text) = (file.string("filePath").or_else(|| attachment.string("filename"))?, file.string("content")?);
    let first = file.count("startLine").unwrap_or(1);
    let lines: String = (first..).zip(text.split('\n')).map(|(number, line)| format!("{number}\t{line}\n")).collect();
    let called = format!("Called the Read tool with the following input: {}", json!({"file_path": path}));
    let reminder = |text: String| Part::text(format!("<system-reminder>\n{text}\n</system-reminder>"));
    Some([reminder(called), reminder(format!("Result of calling the Read tool:\n{}", lines.trim_end_matches('\n')))])
}

/// The image or document in a block.
fn file(block: &RawObject<'_>) -> Option<FilePart> {
    let source = block.object("source");
    let is_base64 = source.text("type").as_deref() == Some("base64");
    let (media_type, url) = match (source.string("media_type"), source.text("data"), source.string("url")) {
        (Some(media_type), Some(data), _) if is_base64 => {
            let url = format!("data:{media_type};base64,{data}");
            (media_type, url)
        }
        (media_type, None, Some(url)) => {
            let any = if block.text("type").as_deref() == Some("image") { "image/*" } else { "application/pdf" };
            (media_type.unwrap_or_else(|| any.to_owned()), url)
        }
        _ => return None,
    };
    Some(FilePart { media_type, url, filename: block.string("title"), ..FilePart::default() })
}

fn result(block: &RawObject<'_>, run: &ToolRun<'_>) -> ToolResult {
    let output = block.raw("content").map(output).unwrap_or_default();
    let text = output_text(&output);
    let outcome = match (block.flag("is_error"), run.was_refused() || is_denial(&text)) {
        (false, _) => Outcome::Done,
        (true, true) => Outcome::Denied(Some(text).filter(|text| !text.is_empty())),
        (true, false) => Outcome::Failed(text),
    };
    let call_id = block.string("tool_use_id").unwrap_or_default();
    let (duration_ms, about) = (run.duration_ms(), run.about());
    ToolResult { duration_ms, about, ..ToolResult::new(call_id, output, outcome) }
}

/// Whether the agent's own rules forbade the call, or a person did and said why:
/// `Permission to use Bash with command … has been denied.`, `The user doesn't want to proceed with this tool use. …`
fn is_denial(text: &str) -> bool {
    let (first, _) = text.split_once('\n').unwrap_or((text, ""));
    text.starts_with("Permission to use ") && first.contains(" has been denied")
        || text.starts_with("The user doesn't want to proceed with this tool use.")
}

fn reasoning(block: &RawObject<'_>, key: &str, field: &str) -> Part {
    let facts = block.text(field).map(|secret| (key.to_owned(), Value::from(secret)));
    let provider_metadata = provider_metadata("anthropic", facts.into_iter().collect());
    let text = block.string("thinking").unwrap_or_default();
    Part::Reasoning(ReasoningPart { text, provider_metadata, ..ReasoningPart::default() })
}

/// The output of a tool: its text, or the list of its blocks with files as file parts. A single text needs no list.
fn output(content: &RawValue) -> Value {
    let blocks: Vec<Value> = match lenient::value(content) {
        Value::Array(blocks) => blocks,
        other => return other,
    };
    match blocks.as_slice() {
        [] => "".into(),
        [only] if block_text(only).is_some() => only["text"].clone(),
        _ => blocks_of(content).into_iter().map(output_piece).collect(),
    }
}

fn block_text(block: &Value) -> Option<&str> {
    block["text"].as_str().filter(|_| block["type"] == "text")
}

/// The texts of an output, one per line; its JSON if it is something else.
fn output_text(output: &Value) -> String {
    let texts = output.as_array().and_then(|blocks| blocks.iter().map(block_text).collect::<Option<Vec<&str>>>());
    texts.map_or_else(|| lenient::to_text(output), |texts| texts.join("\n"))
}

fn output_piece(raw: &RawValue) -> Value {
    let is_file = |block: &RawObject<'_>| matches!(block.text("type").as_deref(), Some("image" | "document"));
    match RawObject::from_raw(raw).filter(is_file).as_ref().and_then(file) {
        Some(file) => json!({"type": "file", "mediaType": file.media_type, "url": file.url}),
        None => lenient::value(raw),
    }
}

/// What the agent noted of a change of a file.
pub(super) fn file_note(text: &str) -> Option<Map<String, Value>> {
    let line: RawObject<'_> = json::from_str(text).ok()?;
    let run = line.object("toolUseResult");
    run.raw("filePath")?;
    let keys = ["type", "originalFile", "structuredPatch", "userModified", "content"];
    Some(keys.into_iter().filter_map(|key| Some((key.to_owned(), run.value(key)?))).collect())
}

/// `toolUseResult`: what the agent noted about the run of a tool, an object that differs from tool to tool, or the text of
/// a failure.
#[derive(Default)]
pub(super) struct ToolRun<'a> {
    facts: RawObject<'a>,
    failure: Option<Cow<'a, str>>,
    /// The line says who did not allow it: a person, a rule or a hook.
    is_denied: bool,
}

impl<'a> ToolRun<'a> {
    pub(super) fn from_line(line: &RawObject<'a>) -> ToolRun<'a> {
        let is_denied = line.text("toolDenialKind").is_some();
        ToolRun { facts: line.object("toolUseResult"), failure: line.text("toolUseResult"), is_denied }
    }

    fn was_refused(&self) -> bool {
        let failure = self.failure.as_deref().unwrap_or_default();
        self.is_denied || failure.trim_start_matches("Error: ") == "User rejected tool use"
    }

    fn duration_ms(&self) -> Option<u64> {
        self.facts.count("durationMs").or(self.facts.count("totalDurationMs"))
    }

    /// How the run ended, how it changed files, and the session of the sub-agent that it started.
    fn about(&self) -> Map<String, Value> {
        let mut about = Map::new();
        about.put_some("interrupted", self.facts.flag("interrupted").then_some(true));
        about.put_some("exitCode", self.facts.count("exitCode"));
        let patch = self.facts.value("structuredPatch");
        about
            .put_some("structuredPatch", patch.filter(|patch| patch.as_array().is_some_and(|hunks| !hunks.is_empty())));
        let changed = self.facts.object("bashEditDiff").value("files");
        about.put_some("changedFiles", changed.filter(|files| files.as_array().is_some_and(|files| !files.is_empty())));
        about.put_some("session", self.facts.get::<Text<'_>>("agentId").0.map(|agent| format!("agent-{agent}")));
        about
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attachments_are_told_as_on_the_screen() {
        for (attachment, expected) in [
            (
                r#"{"type": "already_read_file", "displayPath": "cart.py", "content": {"file": {"numLines": 7}}}"#,
                Some("Read cart.py (7 lines)"),
            ),
            (
                r#"{"type": "file", "filename": "a.txt", "content": {"file": {"numLines": 1}}}"#,
                Some("Read a.txt (1 line)"),
            ),
            (
                r#"{"type": "task_status", "description": "sub task", "status": "completed"}"#,
                Some("Task \"sub task\" completed in background"),
            ),
            (r#"{"type": "task_status", "status": "completed"}"#, None),
            (r#"{"type": "directory", "displayPath": "src"}"#, Some("Listed directory src/")),
            (
                r#"{"type": "hook_blocking_error", "hookName": "PostToolUse:Read", "blockingError": {"blockingError": "no\n"}}"#,
                Some("PostToolUse:Read hook returned blocking error: no"),
            ),
            (
                r#"{"type": "hook_system_message", "hookName": "UserPromptSubmit", "content": "hello"}"#,
                Some("UserPromptSubmit says: hello"),
            ),
            (r#"{"type": "hook_success", "hookName": "UserPromptSubmit", "content": "hello"}"#, None),
            (r#"{"type": "nested_memory", "path": "/x/lib/A.md"}"#, Some("Loaded /x/lib/A.md")),
            (r#"{"type": "invoked_skills", "skills": [{"name": "a"}, {"name": "b"}]}"#, Some("Skills restored (a, b)")),
            (r#"{"type": "invoked_skills", "skills": []}"#, None),
            (r#"{"type": "skill_listing"}"#, None),
        ] {
            let attachment: RawObject<'_> = serde_json::from_str(attachment).unwrap();
            assert_eq!(attachment_notice(&attachment).as_deref(), expected);
        }
    }
}
