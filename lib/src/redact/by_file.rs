//! What tool calls read from sensitive files, or wrote to them: masked whole, whatever is in it.
//!
//! It is found by the shape of the JSON, as all agents write it: an object that names a file beside its content, a call whose
//! input names a file or a command with one, and the result that has the call's id, often some lines later. Paths and calls stay.

mod keys;
mod parse;
mod calls;
mod texts;
mod patches;
mod shell;
mod edited;
mod file_mask;

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{Engine, Style};
pub use calls::SensitiveCalls;
use edited::Edited;
use file_mask::FileMask;
use keys::{CONTENTS, COPIES, INPUTS, RESULTS, is_about, is_path_key, is_script_key};
use parse::parse;
use patches::Section;

/// The rule that such content is found by.
pub(super) const RULE: &str = "file";

/// JSON in strings of JSON in strings: agents write two levels.
pub(super) const DEEPEST_JSON: usize = 4;

/// A longer string is no path and no command that a person would read.
const MAX_COMMAND_BYTES: usize = 64 * 1024;

/// What replaces strings of a line, by their JSON pointers.
pub(super) type Replaced = HashMap<String, String>;

/// The strings of a line to replace; remembers its calls.
pub(super) fn find(calls: &mut SensitiveCalls, engine: &Engine, style: Style, line: &[u8]) -> Replaced {
    if !engine.files.may_be_named_in(line) && !calls.may_be_in(line) {
        return Replaced::new();
    }
    let Some(value) = parse(line) else { return Replaced::new() };
    let mask = FileMask { engine, style };
    let announced = value.as_object().is_some_and(|record| calls.announce(record));
    let mut search =
        Search { mask, calls, replaced: Replaced::new(), has_result: false, announced, announces: false, nested: 0 };
    search.note_calls(&value);
    search.value(&value, &mut String::new(), 0);
    if let Value::Object(record) = &value {
        if search.announces {
            search.calls.note_announcing(record);
        }
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

/// Looks through one line, or through JSON in one of its strings.
struct Search<'s> {
    mask: FileMask<'s>,
    calls: &'s mut SensitiveCalls,
    replaced: Replaced,
    /// Somewhere in the line is a result of a sensitive call.
    has_result: bool,
    /// What the next texts tell comes from a sensitive file: see [`texts::announces_file`].
    announced: bool,
    /// The line itself announced that.
    announces: bool,
    /// In how many strings of JSON this one is.
    nested: usize,
}

impl Search<'_> {
    /// Remembers calls first: a result may come before its call in a line.
    fn note_calls(&mut self, value: &Value) {
        match value {
            Value::Array(values) => values.iter().for_each(|value| self.note_calls(value)),
            Value::Object(map) => {
                self.calls.note(map, self.mask);
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
                    let of = if text.len() <= MAX_COMMAND_BYTES { Section::of_line(text.trim()) } else { None };
                    is_content = match of {
                        Some(Section::Of(path) | Section::Moved(path)) => self.mask.is_sensitive(path),
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
        let is_result = self.calls.include(map) || calls::is_on_file(map, self.mask);
        for (key, value) in map {
            let is_about = is_about(key, value);
            let is_content = names_file && !is_about && (depth > 0 || CONTENTS.contains(&key.as_str()));
            let is_output = is_result && RESULTS.contains(&key.as_str());
            self.has_result |= is_output;
            let hides = is_content || is_output || !is_about && self.mask.is_sensitive(key) && key.contains('.');
            within(pointer, key, |pointer| match value {
                value if hides => self.hide(value, pointer),
                value if is_script_key(key) => self.command(value, pointer, depth + 1),
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
        map.iter().any(|(key, value)| is_path_key(key) && calls::is_file(value, self.mask))
            || map.get("name").is_some_and(|name| calls::is_file(name, self.mask)) && is_attachment()
    }

    /// Replaces every string of a value that is content.
    fn hide(&mut self, value: &Value, pointer: &mut String) {
        match value {
            Value::String(text) => {
                self.replaced.extend(self.mask.placeholder(text).map(|masked| (pointer.clone(), masked)));
            }
            Value::Array(values) => {
                for (index, value) in values.iter().enumerate() {
                    within(pointer, &index.to_string(), |pointer| self.hide(value, pointer));
                }
            }
            Value::Object(map) => {
                for (key, value) in map.iter().filter(|(key, value)| !is_about(key, value)) {
                    within(pointer, key, |pointer| self.hide(value, pointer));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// A string that is JSON itself, a patch, or a text into which an agent copied a file.
    fn text(&mut self, text: &str) -> Option<String> {
        if let Some(is_file) = texts::announces_file(text, self.mask) {
            (self.announced, self.announces) = (is_file, is_file);
        }
        if self.announced
            && let Some(new) = texts::without_announced(text, self.mask)
        {
            // What announced it may be followed by more of the file.
            return self.text(&new).or(Some(new));
        }
        if !self.mask.may_be_named_in(text) {
            return None;
        }
        if self.nested > DEEPEST_JSON {
            // Nobody writes this but to exhaust whoever reads it.
            return self.mask.placeholder(text);
        }
        if text.starts_with('{')
            && let Some(inner @ Value::Object(_)) = parse(text.as_bytes())
        {
            return self.json(text, &inner);
        }
        let new = texts::masked(text, self.mask);
        self.json_lines(new.as_deref().unwrap_or(text)).or(new)
    }

    fn json(&mut self, text: &str, inner: &Value) -> Option<String> {
        let mut search = Search {
            mask: self.mask,
            calls: &mut *self.calls,
            replaced: Replaced::new(),
            has_result: false,
            announced: false,
            announces: false,
            nested: self.nested + 1,
        };
        search.value(inner, &mut String::new(), 1);
        let replaced = search.replaced;
        (!replaced.is_empty()).then(|| super::json::replace_strings(text, replaced))
    }

    /// Objects of JSON that are lines of a text.
    fn json_lines(&mut self, text: &str) -> Option<String> {
        let (mut edited, mut start) = (Edited::new(text), 0);
        for line in text.split_inclusive('\n') {
            let inner = line.starts_with('{').then(|| parse(line.trim_end().as_bytes())).flatten();
            if let Some(new) = inner.filter(Value::is_object).and_then(|inner| self.json(line, &inner)) {
                edited.replace(start..start + line.len(), &new);
            }
            start += line.len();
        }
        edited.finish()
    }

    /// What commands write into sensitive files: a script, or the words of one, of which the last may be a script.
    fn command(&mut self, command: &Value, pointer: &mut String, depth: usize) {
        match command {
            // A patch or JSON as a word of its own is no script.
            Value::String(script)
                if script.len() <= MAX_COMMAND_BYTES
                    && !["*** ", "--- ", "diff ", "{\""].iter().any(|start| script.starts_with(start)) =>
            {
                if self.mask.may_be_named_in(script)
                    && let Some(masked) = shell::masked(script, self.mask)
                {
                    self.replaced.insert(pointer.clone(), masked);
                }
            }
            Value::Array(words) => {
                for (index, word) in words.iter().enumerate() {
                    within(pointer, &index.to_string(), |pointer| self.command(word, pointer, depth + 1));
                }
                let texts: Option<Vec<&str>> = words.iter().map(Value::as_str).collect();
                for (index, masked) in texts.into_iter().flat_map(|words| shell::masked_words(&words, self.mask)) {
                    within(pointer, &index.to_string(), |pointer| {
                        self.replaced.entry(pointer.clone()).or_insert(masked);
                    });
                }
            }
            other => self.value(other, pointer, depth),
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
