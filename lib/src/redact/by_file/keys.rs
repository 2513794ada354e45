//! What the keys of agents' JSON say about their values: paths, labels, contents, inputs and results of calls.

use serde_json::Value;

use crate::redact::fields;

/// Of calls and of their results.
pub(super) const CALL_IDS: &[&str] = &[
    "tool_use_id",
    "call_id",
    "callId",
    "toolCallId",
    "tool_call_id",
    "toolUseId",
    "toolUseID",
    "id",
    "parentToolUseID",
];

/// What a call was made with.
pub(super) const INPUTS: &[&str] =
    &["input", "arguments", "args", "parameters", "rawInput", "function", "action", "command", "cmd"];

/// What came of a call.
#[rustfmt::skip]
pub(super) const RESULTS: &[&str] = &[
    "output", "content", "result", "response", "stdout", "stderr", "aggregated_output", "formatted_output", "error",
    "errorText", "resultDisplay", "returnDisplay", "responseParts", "llmContent", "rawOutput", "toolUseResult",
    "toolCallResult", "preliminary", "changes", "data",
];

/// Beside a record's message: a copy of the result for people.
pub(super) const COPIES: &[&str] = &["toolUseResult", "toolCallResult", "resultDisplay"];

/// Keys of a record that is no object in a record: only these hold content there.
pub(super) const CONTENTS: &[&str] =
    &["content", "text", "output", "data", "url", "originalContent", "newContent", "diff"];

/// Words about content, which are none.
#[rustfmt::skip]
const LABELS: &[&str] = &[
    "type", "kind", "name", "tool", "toolName", "status", "state", "mode", "language", "mediaType", "media_type",
    "mimeType", "encoding", "role", "description", "command", "cmd", "cwd", "timestamp", "gitBranch", "userType",
    "platform", "model", "action", "operation", "backupTime", "blob", "originalHash", "reason",
];

/// `file_path`, `notebookPath`, `filename`: but `originalFile` is a file's content.
pub(super) fn is_path_key(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    let has_end = |ends: &[&str]| ends.iter().any(|end| key.ends_with(end));
    has_end(&["path", "paths", "filename", "file_name", "filenames", "uri"])
        || matches!(key.as_str(), "file" | "files" | "target_file" | "targetfile" | "trackedfiles")
}

/// Which files a search looks into: beside it is no content, but the result is some.
pub(super) fn is_choice_key(key: &str) -> bool {
    matches!(key, "glob" | "include" | "includes" | "target" | "targets")
}

/// Whether this is a path, or several; an object under such a key has a path and more.
fn is_path(key: &str, value: &Value) -> bool {
    is_path_key(key) && !value.is_object()
}

pub(super) fn is_patch_key(key: &str) -> bool {
    matches!(key, "patch" | "diff" | "text" | "content")
}

/// What a shell or an interpreter runs.
pub(super) fn is_script_key(key: &str) -> bool {
    matches!(key, "command" | "cmd" | "script" | "commands" | "argv")
}

/// Whether a value beside a file's path says something about the file, and is none of its content.
pub(super) fn is_about(key: &str, value: &Value) -> bool {
    LABELS.contains(&key) || fields::is_reference(key) || is_path(key, value) || key == "hashes" && is_hashes(value)
}

/// `{"before": "0f3a…", "after": null}`: names of contents, by which a restore is taken back.
fn is_hashes(value: &Value) -> bool {
    let is_hash = |value: &Value| value.as_str().map_or(value.is_null(), fields::is_content_hash);
    value.as_object().is_some_and(|sides| sides.values().all(is_hash))
}
