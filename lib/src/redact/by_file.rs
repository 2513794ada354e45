//! What tool calls read from sensitive files, or wrote to them: masked whole, whatever is in it.
//!
//! It is found by the shape of the JSON, as all agents write it: an object that names a file beside its content, a call whose
//! input names a file or a command with one, and the result that has the call's id, often some lines later. Paths and calls stay.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::files::Files;
use super::{Engine, Style, fields, shell};
use crate::model::json;

/// The rule that such content is found by.
pub(super) const RULE: &str = "file";

/// No session has so many calls on sensitive files; what comes after them is judged by its own line only.
const MAX_CALLS: usize = 100_000;

/// JSON in strings of JSON in strings: agents write two levels.
const DEEPEST_JSON: usize = 4;

/// A longer string is no path and no command that a person would read.
const MAX_COMMAND_BYTES: usize = 64 * 1024;

/// Of calls and of their results.
const CALL_IDS: &[&str] = &[
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
const INPUTS: &[&str] =
    &["input", "arguments", "args", "parameters", "rawInput", "function", "action", "command", "cmd"];

/// What came of a call.
#[rustfmt::skip]
const RESULTS: &[&str] = &[
    "output", "content", "result", "response", "stdout", "stderr", "aggregated_output", "formatted_output", "error",
    "errorText", "resultDisplay", "returnDisplay", "responseParts", "llmContent", "rawOutput", "toolUseResult",
    "toolCallResult", "preliminary", "changes", "data",
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
        // A call without an id is known by its name, which may stand after a space.
        let is_in_line = |id: &String| {
            let sought = id.strip_prefix("\"name\":").unwrap_or(id);
            memchr::memmem::find(line, sought.as_bytes()).is_some()
        };
        let is_about_one = || self.ids.iter().any(is_in_line);
        if !engine.files.may_be_named_in(line) && !is_about_one() {
            return Replaced::new();
        }
        let Some(value) = json::parse_bytes(line) else { return Replaced::new() };
        let mut search = Search { engine, style, calls: self, replaced: Replaced::new(), has_result: false, nested: 0 };
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
        let mut replaced = search.replaced;
        // Only a part of a string may be the file's: the other rules judge what is left of it.
        for (pointer, text) in replaced.iter_mut().filter(|(_, text)| !is_masked(text)) {
            let key = pointer.rsplit('/').find(|key| !key.bytes().all(|byte| byte.is_ascii_digit()));
            if let Cow::Owned(new) = engine.value(key, text, style).text {
                *text = new;
            }
        }
        replaced
    }
}

struct Search<'s> {
    engine: &'s Engine,
    style: Style,
    calls: &'s mut SensitiveCalls,
    replaced: Replaced,
    /// Somewhere in the line is a result of a sensitive call.
    has_result: bool,
    /// In how many strings of JSON this one is.
    nested: usize,
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
                        Some(Section::Of(path) | Section::Moved(path)) => self.files().is_sensitive(path),
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
        let is_result = self.is_of_call(map) || self.is_call_on_file(map);
        for (key, value) in map {
            let is_label = is_label(key) || is_path(key, value);
            let is_content = names_file && !is_label && (depth > 0 || CONTENTS.contains(&key.as_str()));
            let is_output = is_result && RESULTS.contains(&key.as_str());
            self.has_result |= is_output;
            let hides = is_content || is_output || !is_label && self.files().is_sensitive(key) && key.contains('.');
            within(pointer, key, |pointer| match value {
                value if hides => self.hide(value, pointer),
                value if matches!(key.as_str(), "command" | "cmd" | "script" | "commands") => {
                    self.command(value, pointer, depth + 1);
                }
                value => self.value(value, pointer, depth + 1),
            });
        }
    }

    fn names_file(&self, map: &Map<String, Value>) -> bool {
        // An attachment has a name beside its content; a call's name is its tool's.
        let is_attachment = || {
            ["content", "data", "url"].iter().any(|key| map.contains_key(*key))
                && !INPUTS.iter().any(|key| map.contains_key(*key))
        };
        map.iter().any(|(key, value)| is_path_key(key) && self.is_file(value))
            || map.get("name").is_some_and(|name| self.is_file(name)) && is_attachment()
    }

    /// Whether one of an object's ids is a sensitive call's: progress has an id of its own beside it.
    fn is_of_call(&self, map: &Map<String, Value>) -> bool {
        let ids = &self.calls.ids;
        let is_its = |id: &str| ids.contains(id) || id.strip_suffix("-result").is_some_and(|id| ids.contains(id));
        !ids.is_empty()
            && (CALL_IDS.iter().any(|key| map.get(*key).and_then(Value::as_str).is_some_and(is_its))
                || call_id(map).is_some_and(|id| ids.contains(&id)))
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
        if self.nested > DEEPEST_JSON {
            // Nobody writes this but to exhaust whoever reads it.
            return shell::Judge::mask(self, text);
        }
        if text.starts_with('{')
            && let Some(inner @ Value::Object(_)) = json::parse_bytes(text.as_bytes())
        {
            return self.json(text, &inner);
        }
        let mut new = None;
        for step in [Self::sections, Self::tags, Self::found_lines] {
            new = step(self, new.as_deref().unwrap_or(text)).or(new);
        }
        self.json_lines(new.as_deref().unwrap_or(text)).or(new)
    }

    fn json(&mut self, text: &str, inner: &Value) -> Option<String> {
        let mut search = Search {
            engine: self.engine,
            style: self.style,
            calls: &mut *self.calls,
            replaced: Replaced::new(),
            has_result: false,
            nested: self.nested + 1,
        };
        search.value(inner, &mut String::new(), 1);
        let replaced = search.replaced;
        (!replaced.is_empty()).then(|| super::json::replace_strings(text, &replaced))
    }

    /// Objects of JSON that are lines of a text.
    fn json_lines(&mut self, text: &str) -> Option<String> {
        let (mut out, mut has_hidden) = (String::new(), false);
        if !text.contains("\n{") && !text.starts_with('{') {
            return None;
        }
        for line in text.split_inclusive('\n') {
            let inner = line.starts_with('{').then(|| json::parse_bytes(line.trim_end().as_bytes())).flatten();
            let new = inner.filter(Value::is_object).and_then(|inner| self.json(line, &inner));
            has_hidden |= new.is_some();
            out.push_str(new.as_deref().unwrap_or(line));
        }
        has_hidden.then_some(out)
    }

    /// `<file path=".env">…</file>`, as prompts have it.
    fn tags(&self, text: &str) -> Option<String> {
        const MAX_TAG_BYTES: usize = 4096;
        let (mut out, mut at, mut from) = (String::new(), 0, 0);
        while let Some(start) = text[from..].find('<').map(|start| from + start) {
            from = start + 1;
            let tag = ["file", "document"].iter().find(|tag| text[from..].starts_with(**tag));
            let Some(tag) = tag else { continue };
            let mut start = text.as_bytes()[from..].iter().take(MAX_TAG_BYTES);
            let Some(end) = start.position(|byte| matches!(byte, b'>' | b'\n')) else { continue };
            let inside = from + end + 1;
            let is_ours =
                text[from..inside].split(['"', '\'']).skip(1).step_by(2).any(|it| self.files().is_sensitive(it));
            if !is_ours || !text[..inside].ends_with('>') {
                continue;
            }
            let close = text[inside..].find(&format!("</{tag}")).map_or(text.len(), |end| inside + end);
            if let Some(masked) = shell::Judge::mask(self, text[inside..close].trim_matches('\n')) {
                let line_end = if text[inside..close].starts_with('\n') { "\n" } else { "" };
                out.extend([&text[at..inside], line_end, &masked, line_end]);
                at = close;
            }
            from = close;
        }
        (at > 0).then(|| out + &text[at..])
    }

    /// Lines that a search found in such a file: `.env:1:…`, or `.env-1-…` for those around them.
    fn found_lines(&self, text: &str) -> Option<String> {
        let (mut out, mut has_hidden) = (String::new(), false);
        for line in text.split_inclusive('\n') {
            let (start, content) = match self.found_at(line) {
                Some(at) => (&line[..at], line[at..].trim_end_matches('\n')),
                None => (line, ""),
            };
            out.push_str(start);
            match shell::Judge::mask(self, content) {
                Some(masked) => {
                    has_hidden = true;
                    out.push_str(&masked);
                }
                None => out.push_str(content),
            }
            out.push_str(&line[start.len() + content.len()..]);
        }
        has_hidden.then_some(out)
    }

    fn found_at(&self, line: &str) -> Option<usize> {
        const MOST_SIGNS: usize = 16;
        line.match_indices([':', '-']).take(MOST_SIGNS).find_map(|(at, sign)| {
            let rest = &line[at + 1..];
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let is_found = digits > 0 && rest[digits..].starts_with(sign) && self.files().is_sensitive(&line[..at]);
            (is_found && !line[..at].contains(' ')).then_some(at + 1 + digits + 1)
        })
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
                // A patch may move a file away: its lines are the old file's, too.
                Some(Section::Moved(path)) => {
                    close(&mut out, &mut hidden);
                    hides |= self.files().is_sensitive(path);
                    out.push_str(line);
                }
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

    /// What commands write into sensitive files: a script, or the words of one, of which the last is a script.
    fn command(&mut self, command: &Value, pointer: &mut String, depth: usize) {
        match command {
            // A patch or JSON as a word of its own is no script.
            Value::String(script)
                if script.len() <= MAX_COMMAND_BYTES
                    && !["*** ", "--- ", "diff ", "{\""].iter().any(|start| script.starts_with(start)) =>
            {
                if self.files().may_be_named_in(script.as_bytes())
                    && let Some(masked) = shell::masked(script, self)
                {
                    self.replaced.insert(pointer.clone(), masked);
                }
            }
            Value::Array(words) => {
                for (index, word) in words.iter().enumerate() {
                    within(pointer, &index.to_string(), |pointer| self.command(word, pointer, depth + 1));
                }
            }
            other => self.value(other, pointer, depth),
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
            Value::String(text) if is_command => self.is_command_on_file(text),
            Value::String(text) if is_path_key(key) || is_choice_key(key) => {
                self.files().is_sensitive(text.trim_end_matches('*'))
            }
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

    fn is_command_on_file(&self, command: &str) -> bool {
        // `cd ~/.ssh && cat id_work`
        let mut is_in_ssh = false;
        words(command).any(|word| {
            is_in_ssh |= word.trim_end_matches('/').ends_with(".ssh");
            self.files().is_sensitive(word) || is_in_ssh && word.starts_with("id_") && !word.ends_with(".pub")
        }) || section_paths(command).any(|path| self.files().is_sensitive(path))
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

impl shell::Judge for Search<'_> {
    fn is_sensitive(&self, path: &str) -> bool {
        self.files().is_sensitive(path)
    }

    fn mask(&self, text: &str) -> Option<String> {
        if text.trim().is_empty() || is_masked(text.trim()) {
            return None;
        }
        let mut masked = String::new();
        self.engine.write_placeholder(&mut masked, RULE, Some(text), self.style);
        Some(masked)
    }

    fn patch(&self, text: &str) -> Option<String> {
        self.sections(text)
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

/// Which files a search looks into: beside it is no content, but the result is some.
fn is_choice_key(key: &str) -> bool {
    matches!(key, "glob" | "include" | "includes" | "target" | "targets")
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
        .map(|word| word.trim_end_matches(['*', ':', '{']))
        .filter(|word| word.contains(['.', '/', '_']))
}

/// What a line says about the next ones.
#[derive(Clone, Copy)]
enum Section<'t> {
    /// They belong to a file.
    Of(&'t str),
    /// They belong to this file, and to the one before.
    Moved(&'t str),
    /// They belong to no file.
    End,
}

fn section(line: &str) -> Option<Section<'_>> {
    let line = line.trim_end();
    // `diff` writes the time after the path.
    let of = |prefix: &str| line.strip_prefix(prefix).map(|path| path.split('\t').next().unwrap_or(path));
    if let Some(path) = of("*** Add File: ")
        .or_else(|| of("*** Update File: "))
        .or_else(|| of("*** Delete File: "))
        .or_else(|| of("--- a/"))
        .or_else(|| of("Content from ").and_then(|path| path.strip_suffix(':')))
    {
        return Some(Section::Of(path));
    }
    if let Some(path) = of("*** Move to: ").or_else(|| of("+++ b/")).or_else(|| of("+++ ")) {
        return Some(Section::Moved(path));
    }
    let is_end = ["*** End Patch", "diff --git ", "--- End of content", "--- /dev/null", "</system-reminder>"]
        .iter()
        .any(|prefix| line.starts_with(prefix));
    if is_end {
        return Some(Section::End);
    }
    // Claude Code tells the model of a mentioned file in words, and of a file that changed.
    let told = line.strip_prefix("<system-reminder>").unwrap_or(line).strip_prefix("Note: ");
    if let Some((path, _)) = told.and_then(|told| told.split_once(" was modified")) {
        return Some(Section::Of(path));
    }
    let named = line.strip_prefix("Called the Read tool with the following input: ")?;
    let path = named.split("\"file_path\":\"").nth(1)?.split('"').next()?;
    Some(Section::Of(path))
}

fn section_paths(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| match section(line) {
        Some(Section::Of(path) | Section::Moved(path)) => Some(path),
        Some(Section::End) | None => None,
    })
}
