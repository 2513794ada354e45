//! What tool calls read from sensitive files, or wrote to them: masked whole, whatever is in it.
//!
//! It is found by the shape of the JSON, as all agents write it: an object that names a file beside its content, a call whose
//! input names a file or a command with one, and the result that has the call's id, often some lines later. Paths and calls stay.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::files::Files;
use super::{Engine, Style, fields};
use crate::model::json;

/// The rule that such content is found by.
pub(super) const RULE: &str = "file";

/// No session has so many calls on sensitive files; what comes after them is judged by its own line only.
const MAX_CALLS: usize = 100_000;

/// A longer string is no path and no command that a person would read.
const MAX_COMMAND_BYTES: usize = 64 * 1024;

/// Of calls and of their results.
const CALL_IDS: &[&str] =
    &["tool_use_id", "call_id", "callId", "toolCallId", "tool_call_id", "toolUseId", "toolUseID", "id"];

/// What a call was made with.
const INPUTS: &[&str] = &["input", "arguments", "args", "parameters", "rawInput", "function", "action", "command"];

/// What came of a call.
#[rustfmt::skip]
const RESULTS: &[&str] = &[
    "output", "content", "result", "response", "stdout", "stderr", "aggregated_output", "formatted_output", "error",
    "errorText", "resultDisplay", "returnDisplay", "responseParts", "llmContent", "rawOutput", "toolUseResult",
    "toolCallResult", "preliminary", "changes",
];

/// Beside a record's message: a copy of the result for people.
const COPIES: &[&str] = &["toolUseResult", "toolCallResult", "resultDisplay"];

/// Words about content, which are none.
#[rustfmt::skip]
const LABELS: &[&str] = &[
    "type", "kind", "name", "tool", "toolName", "status", "state", "mode", "language", "mediaType", "media_type",
    "mimeType", "encoding", "role", "description", "command", "cmd", "cwd", "timestamp", "gitBranch", "userType",
    "platform", "model", "action", "operation", "backupTime", "blob", "originalHash",
];

/// Keys of a record that is no object in a record: only these hold content there.
const CONTENTS: &[&str] = &["content", "text", "output", "data", "url", "originalContent", "newContent", "diff"];

/// Tool calls on sensitive files, so that their results are masked, which come in other lines.
#[derive(Clone, Debug, Default)]
pub struct SensitiveCalls {
    ids: HashSet<String>,
}

/// What replaces strings of a line, by their JSON pointers.
pub(super) type Replaced = HashMap<String, String>;

impl SensitiveCalls {
    /// No call so far.
    pub fn new() -> SensitiveCalls {
        SensitiveCalls::default()
    }

    /// The strings of a line to replace; remembers its calls.
    pub(super) fn find(&mut self, engine: &Engine, style: Style, line: &[u8]) -> Replaced {
        let is_about_one = || self.ids.iter().any(|id| memchr::memmem::find(line, id.as_bytes()).is_some());
        if !engine.files.may_be_named_in(line) && !is_about_one() {
            return Replaced::new();
        }
        let Some(value) = json::parse_bytes(line) else { return Replaced::new() };
        let mut search = Search { engine, style, calls: self, replaced: Replaced::new(), has_result: false };
        search.note_calls(&value);
        search.value(&value, &mut String::new(), 0);
        if let Value::Object(record) = &value {
            let copies = if search.has_result { COPIES } else { &[] };
            // Claude Code keeps what it tells the model of a mentioned file beside it.
            let rendered = record
                .get("attachment")
                .and_then(Value::as_object)
                .filter(|it| search.names_file(it))
                .map(|_| "rendered");
            for key in copies.iter().copied().chain(rendered) {
                record.get(key).into_iter().for_each(|copy| search.hide(copy, &mut format!("/{key}")));
            }
        }
        search.replaced
    }
}

struct Search<'s> {
    engine: &'s Engine,
    style: Style,
    calls: &'s mut SensitiveCalls,
    replaced: Replaced,
    /// Somewhere in the line is a result of a sensitive call.
    has_result: bool,
}

impl Search<'_> {
    fn files(&self) -> &Files {
        &self.engine.files
    }

    /// Remembers calls first: a result may come before its call in a line.
    fn note_calls(&mut self, value: &Value) {
        match value {
            Value::Array(values) => values.iter().for_each(|value| self.note_calls(value)),
            Value::Object(map) => {
                if let Some(id) = call_id(map)
                    && self.calls.ids.len() < MAX_CALLS
                    && self.is_call_on_file(map)
                {
                    self.calls.ids.insert(id);
                }
                map.values().for_each(|value| self.note_calls(value));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn value(&mut self, value: &Value, pointer: &mut String, depth: usize) {
        match value {
            Value::Array(values) => {
                // Qwen Code writes a mentioned file as several texts: its name, its content, an end.
                let mut is_content = false;
                for (index, value) in values.iter().enumerate() {
                    let text = value.as_str().or_else(|| value.get("text")?.as_str()).unwrap_or_default();
                    let of = if text.len() <= MAX_COMMAND_BYTES { section(text.trim()) } else { None };
                    is_content = match of {
                        Some(Section::Of(path)) => self.files().is_sensitive(path),
                        Some(Section::End) => false,
                        None => is_content,
                    };
                    let hides = is_content && of.is_none();
                    within(pointer, &index.to_string(), |pointer| match hides {
                        true => self.hide(value, pointer),
                        false => self.value(value, pointer, depth + 1),
                    });
                }
            }
            Value::Object(map) => self.object(map, pointer, depth),
            Value::String(text) => {
                if let Some(new) = self.text(text) {
                    self.replaced.insert(pointer.clone(), new);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn object(&mut self, map: &Map<String, Value>, pointer: &mut String, depth: usize) {
        let names_file = self.names_file(map);
        let is_result = call_id(map).is_some_and(|id| self.calls.ids.contains(&id)) || self.is_call_on_file(map);
        for (key, value) in map {
            let is_label = is_label(key) || is_path(key, value);
            let is_content = names_file && !is_label && (depth > 0 || CONTENTS.contains(&key.as_str()));
            let is_output = is_result && RESULTS.contains(&key.as_str());
            self.has_result |= is_output;
            let hides = is_content || is_output || !is_label && self.files().is_sensitive(key) && key.contains('.');
            within(pointer, key, |pointer| match value {
                value if hides => self.hide(value, pointer),
                Value::String(command) if is_result && matches!(key.as_str(), "command" | "cmd") => {
                    self.command(command, pointer);
                }
                value => self.value(value, pointer, depth + 1),
            });
        }
    }

    fn names_file(&self, map: &Map<String, Value>) -> bool {
        map.iter().any(|(key, value)| is_path_key(key) && self.is_file(value))
    }

    /// Replaces every string of a value that is content.
    fn hide(&mut self, value: &Value, pointer: &mut String) {
        match value {
            Value::String(text) if text.is_empty() || is_masked(text) => {}
            Value::String(text) => {
                let mut masked = String::new();
                self.engine.write_placeholder(&mut masked, RULE, Some(text), self.style);
                self.replaced.insert(pointer.clone(), masked);
            }
            Value::Array(values) => {
                for (index, value) in values.iter().enumerate() {
                    within(pointer, &index.to_string(), |pointer| self.hide(value, pointer));
                }
            }
            Value::Object(map) => {
                for (key, value) in map.iter().filter(|(key, value)| !is_label(key) && !is_path(key, value)) {
                    within(pointer, key, |pointer| self.hide(value, pointer));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// A string that is JSON itself, a patch, or a text into which an agent copied a file.
    fn text(&mut self, text: &str) -> Option<String> {
        if !self.files().may_be_named_in(text.as_bytes()) {
            return None;
        }
        if text.starts_with('{')
            && let Some(inner @ Value::Object(_)) = json::parse_bytes(text.as_bytes())
        {
            let mut search = Search {
                engine: self.engine,
                style: self.style,
                calls: &mut *self.calls,
                replaced: Replaced::new(),
                has_result: false,
            };
            search.value(&inner, &mut String::new(), 1);
            let replaced = search.replaced;
            return (!replaced.is_empty()).then(|| super::json::replace_strings(text, &replaced));
        }
        self.sections(text)
    }

    /// The text of a patch, or of a prompt with mentioned files, without the lines that belong to a sensitive file.
    fn sections(&self, text: &str) -> Option<String> {
        let (mut out, mut hidden, mut hides, mut has_hidden) = (String::new(), String::new(), false, false);
        let mut close = |out: &mut String, hidden: &mut String| {
            if !hidden.trim().is_empty() && !is_masked(hidden.trim()) {
                let end = if hidden.ends_with('\n') { "\n" } else { "" };
                self.engine.write_placeholder(out, RULE, Some(hidden), self.style);
                out.push_str(end);
                has_hidden = true;
            } else {
                out.push_str(hidden);
            }
            hidden.clear();
        };
        for line in text.split_inclusive('\n') {
            match section(line) {
                Some(Section::Of(path)) => {
                    close(&mut out, &mut hidden);
                    hides = self.files().is_sensitive(path);
                    out.push_str(line);
                }
                Some(Section::End) => {
                    close(&mut out, &mut hidden);
                    hides = false;
                    out.push_str(line);
                }
                None if hides => hidden.push_str(line),
                None => out.push_str(line),
            }
        }
        close(&mut out, &mut hidden);
        has_hidden.then_some(out)
    }

    /// What a command writes into a sensitive file: its here-documents and quoted texts.
    fn command(&mut self, command: &str, pointer: &str) {
        let Some(target) = command.find('>').filter(|_| command.len() <= MAX_COMMAND_BYTES) else { return };
        let mut masked = String::with_capacity(command.len());
        let mut rest = command;
        if let Some(at) = command.find("<<") {
            // A here-document: its lines up to its mark.
            let start = command[at..].find('\n').map_or(command.len(), |end| at + end + 1);
            let mark: String = command[at + 2..start]
                .trim_start_matches('-')
                .trim()
                .chars()
                .filter(|c| c.is_alphanumeric() || *c == '_')
                .collect();
            let end = command[start..]
                .lines()
                .scan(start, |at, line| {
                    let here = *at;
                    *at += line.len() + 1;
                    Some((here, line.trim() == mark))
                })
                .find(|(_, is_end)| *is_end)
                .map_or(command.len(), |(at, _)| at);
            let body = &command[start..end];
            if !body.trim().is_empty() && !is_masked(body.trim()) {
                masked.push_str(&command[..start]);
                self.engine.write_placeholder(&mut masked, RULE, Some(body), self.style);
                masked.push('\n');
                rest = &command[end..];
            }
        } else if let Some(quote) = command[..target].find(['"', '\'']) {
            let sign = &command[quote..=quote];
            let inside = quote + 1;
            if let Some(end) = command[inside..target].rfind(sign).map(|end| inside + end)
                && !is_masked(&command[inside..end])
                && end > inside
            {
                masked.push_str(&command[..inside]);
                self.engine.write_placeholder(&mut masked, RULE, Some(&command[inside..end]), self.style);
                rest = &command[end..];
            }
        }
        if !masked.is_empty() {
            self.replaced.insert(pointer.to_owned(), masked + rest);
        }
    }

    /// Whether a call reads or writes a sensitive file.
    fn is_call_on_file(&self, map: &Map<String, Value>) -> bool {
        INPUTS
            .iter()
            .filter_map(|key| Some((*key, map.get(*key)?)))
            .any(|(key, input)| self.touches(key, input, 0))
    }

    fn touches(&self, key: &str, input: &Value, depth: usize) -> bool {
        const DEEPEST: usize = 8;
        let is_command = matches!(key, "command" | "cmd" | "script" | "argv" | "commands" | "code");
        match input {
            Value::String(text) if text.len() > MAX_COMMAND_BYTES && !is_command => {
                section_paths(text).any(|path| self.files().is_sensitive(path))
            }
            Value::String(text) if is_command => words(text).any(|word| self.files().is_sensitive(word)),
            Value::String(text) if is_path_key(key) => self.files().is_sensitive(text),
            Value::String(text) if INPUTS.contains(&key) || is_patch_key(key) => {
                let inner = text.starts_with('{').then(|| json::parse_bytes(text.as_bytes())).flatten();
                inner.is_some_and(|inner| self.touches("", &inner, depth + 1))
                    || section_paths(text).any(|path| self.files().is_sensitive(path))
            }
            Value::Array(values) => values.iter().any(|value| self.touches(key, value, depth + 1)),
            Value::Object(map) if depth < DEEPEST => map
                .iter()
                .any(|(key, value)| self.touches(key, value, depth + 1) || is_path_key(key) && self.is_file(value)),
            Value::Object(_) | Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    fn is_file(&self, value: &Value) -> bool {
        match value {
            Value::String(path) => self.files().is_sensitive(path),
            Value::Array(paths) => {
                paths.iter().any(|path| path.as_str().is_some_and(|path| self.files().is_sensitive(path)))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
        }
    }
}

/// Runs with a longer pointer.
fn within(pointer: &mut String, key: &str, run: impl FnOnce(&mut String)) {
    let length = pointer.len();
    super::json::push_key(pointer, key);
    run(pointer);
    pointer.truncate(length);
}

/// The id of a call or of its result. A call of Gemini has none: then its name is all that they share.
fn call_id(map: &Map<String, Value>) -> Option<String> {
    let id = CALL_IDS.iter().find_map(|key| map.get(*key)?.as_str()).filter(|id| !id.is_empty());
    let name = || {
        let is_nameless = map.contains_key("args") || map.contains_key("response");
        map.get("name")?.as_str().filter(|_| is_nameless)
    };
    id.map(str::to_owned).or_else(|| name().map(|name| format!("\"name\":\"{name}\"")))
}

/// `file_path`, `notebookPath`, `filename`: but `originalFile` is a file's content.
fn is_path_key(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    let has_end = |ends: &[&str]| ends.iter().any(|end| key.ends_with(end));
    has_end(&["path", "paths", "filename", "file_name", "filenames", "uri"])
        || matches!(key.as_str(), "file" | "files" | "target_file" | "targetfile" | "trackedfiles")
}

/// Whether this is a path, or several; an object under such a key has a path and more.
fn is_path(key: &str, value: &Value) -> bool {
    is_path_key(key) && !value.is_object()
}

fn is_patch_key(key: &str) -> bool {
    matches!(key, "patch" | "diff" | "text" | "content")
}

fn is_label(key: &str) -> bool {
    LABELS.contains(&key) || fields::is_reference(key)
}

fn is_masked(text: &str) -> bool {
    text.starts_with("[REDACTED") && text.ends_with(']') && text.len() < 64
}

/// The words of a command, without quotes, operators and the names before `=`.
fn words(command: &str) -> impl Iterator<Item = &str> {
    let is_between = |c: char| {
        c.is_whitespace() || matches!(c, '"' | '\'' | '`' | ';' | '|' | '&' | '<' | '>' | '(' | ')' | '=' | ',' | '@')
    };
    command
        .split(is_between)
        .map(|word| word.trim_end_matches(['*', ':']))
        .filter(|word| word.contains(['.', '/', '_']))
}

/// What a line says about the next ones.
#[derive(Clone, Copy)]
enum Section<'t> {
    /// They belong to a file.
    Of(&'t str),
    /// They belong to no file.
    End,
}

fn section(line: &str) -> Option<Section<'_>> {
    let line = line.trim_end();
    let of = |prefix: &str| line.strip_prefix(prefix);
    if let Some(path) = of("*** Add File: ")
        .or_else(|| of("*** Update File: "))
        .or_else(|| of("*** Delete File: "))
        .or_else(|| of("+++ b/"))
        .or_else(|| of("+++ "))
        .or_else(|| of("Content from ").and_then(|path| path.strip_suffix(':')))
    {
        return Some(Section::Of(path));
    }
    let is_end = [
        "*** End Patch",
        "*** Move to: ",
        "diff --git ",
        "--- a/",
        "--- End of content",
        "--- /dev/null",
        "</system-reminder>",
    ]
    .iter()
    .any(|prefix| line.starts_with(prefix));
    if is_end {
        return Some(Section::End);
    }
    // Claude Code tells the model of a mentioned file in words.
    let named = line.strip_prefix("Called the Read tool with the following input: ")?;
    let path = named.split("\"file_path\":\"").nth(1)?.split('"').next()?;
    Some(Section::Of(path))
}

fn section_paths(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| match section(line) {
        Some(Section::Of(path)) => Some(path),
        Some(Section::End) | None => None,
    })
}
