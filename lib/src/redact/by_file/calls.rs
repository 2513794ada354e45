//! Tool calls on sensitive files: which they are, and what belongs to them.

use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::MAX_COMMAND_BYTES;
use super::file_mask::FileMask;
use super::keys::{CALL_IDS, INPUTS, is_choice_key, is_patch_key, is_path_key, is_script_key};
use super::parse::parse;
use super::patches;
use crate::redact::files;

/// No session has so many calls on sensitive files; what comes after them is judged by its own line only.
const MAX_CALLS: usize = 100_000;

/// Ends the id of a result that has one of its own.
const RESULT_SUFFIX: &str = "-result";

/// Tool calls on sensitive files, so that their results are masked, which come in other lines.
///
/// A copy is cheap.
#[derive(Clone, Debug, Default)]
pub struct SensitiveCalls {
    known: Arc<Known>,
}

#[derive(Clone, Debug, Default)]
struct Known {
    ids: HashSet<String>,
    /// Of calls without an id.
    names: HashSet<String>,
    /// How long they are: most strings of a line are shorter or longer.
    lengths: Option<RangeInclusive<usize>>,
}

/// What a call and its result share.
enum CallKey<'c> {
    Id(&'c str),
    /// A call of Gemini has no id: then its name is all.
    Name(&'c str),
}

impl<'c> CallKey<'c> {
    fn of(map: &'c Map<String, Value>) -> Option<CallKey<'c>> {
        let id = CALL_IDS.iter().find_map(|key| map.get(*key)?.as_str()).filter(|id| !id.is_empty());
        let name = || {
            let is_nameless = map.contains_key("args") || map.contains_key("response");
            map.get("name")?.as_str().filter(|name| is_nameless && !name.is_empty())
        };
        id.map(CallKey::Id).or_else(|| name().map(CallKey::Name))
    }
}

impl Serialize for SensitiveCalls {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Known { ids, names, .. } = &*self.known;
        (ids.iter().collect::<Vec<_>>(), names.iter().collect::<Vec<_>>()).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SensitiveCalls {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SensitiveCalls, D::Error> {
        let (ids, names) = <(Vec<String>, Vec<String>)>::deserialize(deserializer)?;
        let mut calls = SensitiveCalls::new();
        ids.iter().for_each(|id| calls.remember(&CallKey::Id(id)));
        names.iter().for_each(|name| calls.remember(&CallKey::Name(name)));
        Ok(calls)
    }
}

impl SensitiveCalls {
    /// No call so far.
    pub fn new() -> SensitiveCalls {
        SensitiveCalls::default()
    }

    /// What they are known by.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.known.ids.iter().chain(&self.known.names).map(String::as_str)
    }

    /// Whether a line could be about one of them: each short string of it is looked up, also those of JSON in strings.
    pub(super) fn may_be_in(&self, line: &[u8]) -> bool {
        let Known { names, lengths, .. } = &*self.known;
        let Some(lengths) = lengths else { return false };
        let longest = lengths.end() + RESULT_SUFFIX.len();
        let mut start = 0;
        memchr::memchr_iter(b'"', line).any(|quote| {
            let text = &line[start..quote];
            start = quote + 1;
            // With the backslashes of a quote in a string.
            let text = &text[..text.len() - text.iter().rev().take_while(|byte| **byte == b'\\').count()];
            (*lengths.start()..=longest).contains(&text.len())
                && std::str::from_utf8(text).is_ok_and(|text| self.has_id(text) || names.contains(text))
        })
    }

    /// Remembers an object, if it is a call on a sensitive file.
    pub(super) fn note(&mut self, map: &Map<String, Value>, mask: FileMask<'_>) {
        let Some(key) = CallKey::of(map) else { return };
        if self.has(&key) || self.known.ids.len() + self.known.names.len() >= MAX_CALLS || !is_on_file(map, mask) {
            return;
        }
        self.remember(&key);
    }

    fn remember(&mut self, key: &CallKey<'_>) {
        let known = Arc::make_mut(&mut self.known);
        let (CallKey::Id(text) | CallKey::Name(text)) = key;
        let (shortest, longest) = known.lengths.take().unwrap_or(text.len()..=text.len()).into_inner();
        known.lengths = Some(text.len().min(shortest)..=text.len().max(longest));
        let texts = if let CallKey::Id(_) = key { &mut known.ids } else { &mut known.names };
        texts.insert((*text).to_owned());
    }

    /// Remembers a record that announces what is in a sensitive file: the record after it has that.
    pub(super) fn note_announcing(&mut self, record: &Map<String, Value>) {
        let id = record.get("uuid").and_then(Value::as_str).filter(|id| !id.is_empty());
        if let Some(id) = id.filter(|_| self.known.ids.len() < MAX_CALLS) {
            self.remember(&CallKey::Id(id));
        }
    }

    /// Whether a record comes after one that announces what is in it.
    pub(super) fn announce(&self, record: &Map<String, Value>) -> bool {
        record.get("parentUuid").and_then(Value::as_str).is_some_and(|id| self.known.ids.contains(id))
    }

    /// Whether an object belongs to one of them: progress has an id of its own beside the call's.
    pub(super) fn include(&self, map: &Map<String, Value>) -> bool {
        if self.known.lengths.is_none() {
            return false;
        }
        let has_id = |key: &&str| map.get(*key).and_then(Value::as_str).is_some_and(|id| self.has_id(id));
        CALL_IDS.iter().any(has_id) || CallKey::of(map).is_some_and(|key| self.has(&key))
    }

    fn has(&self, key: &CallKey<'_>) -> bool {
        match key {
            CallKey::Id(id) => self.known.ids.contains(*id),
            CallKey::Name(name) => self.known.names.contains(*name),
        }
    }

    fn has_id(&self, id: &str) -> bool {
        let ids = &self.known.ids;
        ids.contains(id) || id.strip_suffix(RESULT_SUFFIX).is_some_and(|id| ids.contains(id))
    }
}

/// Whether an object is a call that reads or writes a sensitive file.
pub(super) fn is_on_file(map: &Map<String, Value>, mask: FileMask<'_>) -> bool {
    INPUTS
        .iter()
        .filter_map(|key| Some((*key, map.get(*key)?)))
        .any(|(key, input)| touches(key, input, 0, mask))
}

fn touches(key: &str, input: &Value, depth: usize, mask: FileMask<'_>) -> bool {
    const DEEPEST: usize = 8;
    // `chars` is what is typed into a shell that runs.
    let is_command = is_script_key(key) || matches!(key, "code" | "chars");
    let has_section = |text: &str| patches::paths(text).any(|path| mask.is_sensitive(path));
    match input {
        Value::String(text) if text.len() > MAX_COMMAND_BYTES && !is_command => has_section(text),
        Value::String(text) if is_command => is_command_on_file(text, mask),
        Value::String(text) if is_path_key(key) || is_choice_key(key) => mask.is_sensitive(text.trim_end_matches('*')),
        Value::String(text) if INPUTS.contains(&key) || is_patch_key(key) => {
            let inner = text.starts_with('{').then(|| parse(text.as_bytes())).flatten();
            // The input of a tool that takes any text is code, if it is no patch.
            let is_code = inner.is_none() && key == "input" && !text.contains("*** Begin Patch");
            inner.is_some_and(|inner| touches("", &inner, depth + 1, mask))
                || has_section(text)
                || is_code && is_command_on_file(text, mask)
        }
        Value::Array(values) => values.iter().any(|value| touches(key, value, depth + 1, mask)),
        Value::Object(map) if depth < DEEPEST => map
            .iter()
            .any(|(key, value)| touches(key, value, depth + 1, mask) || is_path_key(key) && is_file(value, mask)),
        Value::Object(_) | Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether a command has the path of a sensitive file in it.
pub(super) fn is_command_on_file(command: &str, mask: FileMask<'_>) -> bool {
    // `cat .en""v`
    let is_joined =
        files::has_quotes_in_word(command.as_bytes()) && names_file(&command.replace(['"', '\'', '\\'], ""), mask);
    is_joined || names_file(command, mask)
}

/// Print files whose names they are given.
const PRINTERS: &[&str] =
    &["cat", "less", "more", "head", "tail", "bat", "grep", "rg", "awk", "sed", "jq", "base64", "xxd", "strings"];

/// A longer word is no name of a file or a folder.
const MAX_WORD_BYTES: usize = 256;

fn names_file(command: &str, mask: FileMask<'_>) -> bool {
    let lists_ssh = command.contains(".ssh/*");
    // `cd ~/.ssh && cat id_work`, `cd ~/.aws && cat credentials`
    let (mut is_in_ssh, mut folder, mut before, mut prints) = (false, "", "", false);
    let mut path = String::new();
    words(command).any(|word| {
        let before = std::mem::replace(&mut before, word);
        prints |= PRINTERS.contains(&word);
        is_in_ssh |= word.trim_end_matches('/').ends_with(".ssh");
        if matches!(before, "cd" | "pushd") && word.len() <= MAX_WORD_BYTES {
            folder = word.trim_end_matches('/');
        }
        let is_path = word.contains(['.', '/', '_']) || word == "kubeconfig";
        if is_path && (mask.is_sensitive(word) || is_in_ssh && word.starts_with("id_") && !word.ends_with(".pub")) {
            return true;
        }
        if is_path && word.contains(['{', '}']) && mask.is_sensitive(&word.replace(['{', '}'], "")) {
            return true;
        }
        if !prints || folder.is_empty() || word.len() > MAX_WORD_BYTES {
            return lists_ssh && word.ends_with(".ssh/");
        }
        path.clear();
        path.extend([folder, "/", word]);
        mask.is_sensitive(&path)
    }) || patches::paths(command).any(|path| mask.is_sensitive(path))
}

/// Whether a value is the path of a sensitive file, or a list with one.
pub(super) fn is_file(value: &Value, mask: FileMask<'_>) -> bool {
    match value {
        Value::String(path) => mask.is_sensitive(path),
        Value::Array(paths) => paths.iter().any(|path| path.as_str().is_some_and(|path| mask.is_sensitive(path))),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    }
}

/// The words of a command, without quotes, operators and the names before `=`.
fn words(command: &str) -> impl Iterator<Item = &str> {
    let is_between = |c: char| {
        c.is_whitespace() || matches!(c, '"' | '\'' | '`' | ';' | '|' | '&' | '<' | '>' | '(' | ')' | '=' | ',' | '@')
    };
    command
        .split(is_between)
        .map(|word| word.trim_end_matches(['*', ':', '{']))
        .filter(|word| !word.is_empty())
}
