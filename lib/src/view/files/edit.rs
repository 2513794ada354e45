//! What a tool call does to a file, exactly: applied to a content, and taken back from one.
//!
//! An edit is evidence, not a copy: what follows from it is used only where it leads to the bytes that are on disk.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::hunks::{self, Hunk, Places};
use crate::view::tool_view::patch::BEGIN_PATCH;
use crate::view::tool_view::{CONTENTS, NEW_TEXTS, OLD_TEXTS, PATCHES, PATHS, script, text};

/// More occurrences of a new text are not tried one by one.
const MAX_OCCURRENCES: usize = 64;

/// A content that edits make longer than this is not known.
const EDITED_LIMIT_BYTES: usize = 64 * 1024 * 1024;

/// A change of one file, in one or several descriptions: an agent may record the arguments, and the difference that came of them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Edit(pub(crate) Vec<Way>);

/// One description of a change.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Way {
    /// The whole content.
    Write(Arc<str>),
    /// Texts that are replaced, one after the other.
    Replace(Vec<Replacement>),
    /// Lines that are replaced.
    Patch {
        hunks: Vec<Hunk>,
        /// The tool ends the file with a line feed, whether or not it had one.
        ends_with_newline: bool,
    },
    /// The file is deleted.
    Delete,
}

/// A text that is replaced by another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Replacement {
    pub(crate) old: String,
    pub(crate) new: String,
    pub(crate) all: bool,
}

impl Edit {
    /// The content after the edit: `Some(None)` if the file is gone then, `None` if the edit does not fit.
    pub(crate) fn apply(&self, content: Option<&[u8]>) -> Option<Option<Vec<u8>>> {
        self.0.iter().find_map(|way| way.apply(content))
    }

    /// The content after the edit, if it does not depend on the one before.
    pub(crate) fn apply_to_unknown(&self) -> Option<Option<Vec<u8>>> {
        let is_whole = |way: &&Way| matches!(way, Way::Write(_) | Way::Delete);
        self.0.iter().find(is_whole).and_then(|way| way.apply(None))
    }

    /// Whether an edit that writes the whole content also has the difference from this one: then this was there.
    pub(crate) fn is_difference_of(&self, content: &[u8]) -> bool {
        let written = self.apply_to_unknown();
        let differences = self.0.iter().filter(|way| matches!(way, Way::Replace(_) | Way::Patch { .. }));
        differences.into_iter().any(|way| way.apply(Some(content)) == written)
    }

    /// The content before the edit, if exactly one leads to this one.
    pub(crate) fn unapply(&self, content: Option<&[u8]>) -> Option<Vec<u8>> {
        self.0.iter().find_map(|way| way.unapply(content?))
    }
}

impl Way {
    fn apply(&self, content: Option<&[u8]>) -> Option<Option<Vec<u8>>> {
        let text = || std::str::from_utf8(content.unwrap_or_default()).ok();
        match self {
            Way::Write(text) => Some(Some(text.as_bytes().to_vec())),
            Way::Delete => Some(None),
            Way::Replace(replacements) => {
                let with_its_line_ends =
                    |text: &str| replacements.iter().try_fold(text.to_owned(), |text, one| one.apply(&text));
                either_line_end(text()?, with_its_line_ends).map(|text| Some(text.into_bytes()))
            }
            Way::Patch { hunks, ends_with_newline } => {
                let patched = either_line_end(text()?, |text| hunks::apply(hunks, text, Places::First))?;
                Some(Some(ended(patched, *ends_with_newline).into_bytes()))
            }
        }
    }

    fn unapply(&self, content: &[u8]) -> Option<Vec<u8>> {
        let text = std::str::from_utf8(content).ok()?;
        let before = match self {
            Way::Write(_) | Way::Delete => return None,
            Way::Replace(replacements) => either_line_end(text, |text| {
                replacements.iter().rev().try_fold(text.to_owned(), |text, one| one.unapply(&text))
            })?,
            // Where several places fit, nobody knows which one was changed.
            Way::Patch { hunks, .. } => {
                either_line_end(text, |text| hunks::apply(&hunks::inverse(hunks), text, Places::Only))?
            }
        };
        let is_proved = self.apply(Some(before.as_bytes()))?.as_deref() == Some(content);
        // Where nothing is left, nobody knows whether the file was empty or not there.
        (is_proved && !before.is_empty()).then(|| before.into_bytes())
    }
}

impl Replacement {
    fn apply(&self, text: &str) -> Option<String> {
        if self.old.is_empty() {
            // Agents write a new file so.
            return text.is_empty().then(|| self.new.clone());
        }
        let count = text.matches(&self.old).take(2).count();
        match (count, self.all) {
            (0, _) | (2, false) => None,
            (_, true) => {
                let count = text.matches(&self.old).count();
                let grown = count.checked_mul(self.new.len().saturating_sub(self.old.len()))?;
                // A log may let a text grow without end.
                (text.len().checked_add(grown)? <= EDITED_LIMIT_BYTES).then(|| text.replace(&self.old, &self.new))
            }
            (_, false) => Some(text.replacen(&self.old, &self.new, 1)),
        }
    }

    /// The text before, if only one leads to this text.
    fn unapply(&self, text: &str) -> Option<String> {
        if self.old.is_empty() || self.new.is_empty() {
            return None;
        }
        let leads_here = |before: &String| self.apply(before).is_some_and(|after| after == text);
        // Places may overlap.
        let next = |from: usize| text.get(from..)?.find(&self.new).map(|at| from + at);
        let after = |at: &usize| next(at + text[*at..].chars().next().map_or(1, char::len_utf8));
        let places: Vec<usize> = std::iter::successors(next(0), after).take(MAX_OCCURRENCES + 1).collect();
        // Where all were replaced, any but one of several may have been the new text before.
        if places.len() > if self.all { 1 } else { MAX_OCCURRENCES } {
            return None;
        }
        let before_at = |at: &usize| format!("{}{}{}", &text[..*at], self.old, &text[at + self.new.len()..]);
        let mut found = places.iter().map(before_at).filter(leads_here);
        let first = found.next()?;
        found.all(|other| other == first).then_some(first)
    }
}

/// Changes a text as it is; else without its carriage returns, which come back after it: some agents show a model only line feeds.
fn either_line_end(text: &str, change: impl Fn(&str) -> Option<String>) -> Option<String> {
    change(text).or_else(|| {
        let only_line_feeds = text.replace("\r\n", "\n");
        let is_clean = only_line_feeds.len() < text.len() && only_line_feeds.replace('\n', "\r\n") == text;
        is_clean.then(|| change(&only_line_feeds)).flatten().map(|changed| changed.replace('\n', "\r\n"))
    })
}

fn ended(mut text: String, ends_with_newline: bool) -> String {
    if ends_with_newline && !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// What one call does to one file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FileEdit {
    /// The path as the call names it.
    pub(crate) path: String,
    /// The content before, as the agent noted it: `Some(None)` if the file did not exist.
    pub(crate) before: Option<Option<Arc<str>>>,
    /// The change; without a description if it cannot be applied.
    pub(crate) edit: Edit,
    /// The content after, as the agent noted it.
    pub(crate) after: Option<Arc<str>>,
}

const ALL: &[&str] = &["replace_all", "replaceAll"];

/// The changes that a call makes: from its input, and from what the agent noted of its run.
pub(crate) fn of_call(input: &Value, note: Option<&Map<String, Value>>) -> Vec<FileEdit> {
    let Value::Object(fields) = input else {
        return input.as_str().map(hunks::patched_files).unwrap_or_default();
    };
    let Some(path) = text(fields, PATHS) else {
        let patch = text(fields, PATCHES).filter(|patch| patch.contains(BEGIN_PATCH));
        return patch.or_else(|| command(fields)).map(hunks::patched_files).unwrap_or_default();
    };
    let ways: Vec<Way> = way(fields).into_iter().collect();
    let is_change = !ways.is_empty()
        || ["edits", "new_source", "insert_text", "insert_line"].iter().any(|key| fields.contains_key(*key));
    if !is_change {
        return Vec::new();
    }
    let mut edit = FileEdit { path: path.to_owned(), before: None, edit: Edit(ways), after: None };
    if let Some(note) = note {
        edit.read_note(note);
    }
    vec![edit]
}

/// The patch that a shell call runs: in its script, or as the argument of `apply_patch`.
fn command(fields: &Map<String, Value>) -> Option<&str> {
    let argument = || match fields.get("command").or_else(|| fields.get("cmd"))?.as_array()?.as_slice() {
        [Value::String(program), Value::String(patch)] if program == "apply_patch" => Some(patch.as_str()),
        _ => None,
    };
    script(fields).filter(|script| script.contains("apply_patch")).or_else(argument)
}

/// The change that a call's own fields describe.
fn way(fields: &Map<String, Value>) -> Option<Way> {
    let replacement = |fields: &Map<String, Value>| {
        let old = text(fields, OLD_TEXTS)?.to_owned();
        let all = ALL.iter().any(|key| fields.get(*key) == Some(&Value::Bool(true)));
        // Some agents expect a number of replacements.
        let is_counted = fields.get("expected_replacements").and_then(Value::as_u64).is_some_and(|count| count > 1);
        Some(Replacement { old, new: text(fields, NEW_TEXTS)?.to_owned(), all: all || is_counted })
    };
    if let Some(edits) = fields.get("edits").and_then(Value::as_array).filter(|edits| !edits.is_empty()) {
        let edits: Option<Vec<_>> = edits.iter().map(|edit| replacement(edit.as_object()?)).collect();
        return edits.map(Way::Replace);
    }
    if let Some(edit) = replacement(fields) {
        return Some(Way::Replace(vec![edit]));
    }
    // A cell or a place in the file: the whole content is not this.
    let is_whole = !["new_source", "insert_text", "insert_line"].iter().any(|key| fields.contains_key(*key));
    text(fields, CONTENTS).filter(|_| is_whole).map(|content| Way::Write(content.into()))
}

impl FileEdit {
    /// Claude Code notes the file before and the difference, Qwen Code and Gemini CLI both files.
    fn read_note(&mut self, note: &Map<String, Value>) {
        let shown = note.get("resultDisplay").and_then(Value::as_object).unwrap_or(note);
        let string = |key: &str| shown.get(key).and_then(Value::as_str);
        let says_new = [shown, note].iter().any(|fields| fields.get("isNewFile") == Some(&Value::Bool(true)));
        let is_new = string("type") == Some("create") || says_new;
        self.before = match (shown.get("originalFile").or_else(|| shown.get("originalContent")), is_new) {
            (Some(Value::String(text)), false) if !(text.is_empty() && shown.contains_key("newContent")) => {
                Some(Some(text.as_str().into()))
            }
            (_, true) => Some(None),
            // Qwen Code notes an empty text for a new file and for an empty one; what its tool says tells which.
            _ => None,
        };
        self.after = string("newContent").map(Into::into);
        let is_changed_by_user = shown.get("userModified") == Some(&Value::Bool(true));
        if is_changed_by_user {
            // What was asked for is not what was done.
            self.edit.0.clear();
            self.after = self.after.take().or_else(|| string("content").map(Into::into));
        }
        let hunks = shown.get("structuredPatch").and_then(hunks::structured);
        let hunks = hunks.or_else(|| string("fileDiff").and_then(hunks::unified));
        if let Some(hunks) = hunks.filter(|hunks| !hunks.is_empty()) {
            self.edit.0.push(Way::Patch { hunks, ends_with_newline: false });
        }
    }
}

/// Checks that what is taken back leads forward to the same content.
pub(crate) fn taken_back(input: &Value, content: &str) {
    for file in of_call(input, None) {
        if let Some(before) = file.edit.unapply(Some(content.as_bytes())) {
            let again = file.edit.apply(Some(&before)).flatten();
            assert_eq!(again.as_deref(), Some(content.as_bytes()), "{input}");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The content after the call, and the one that is found again from there.
    fn check(input: Value, note: Value, before: &str) -> (Option<String>, Option<String>) {
        let edits = of_call(&input, note.as_object());
        let [file] = edits.as_slice() else { panic!("{edits:?}") };
        let after = file.edit.apply(Some(before.as_bytes())).flatten();
        let again = after.as_deref().and_then(|after| file.edit.unapply(Some(after)));
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (after.map(text), again.map(text))
    }

    fn both(after: &str, again: Option<&str>) -> (Option<String>, Option<String>) {
        (Some(after.to_owned()), again.map(str::to_owned))
    }

    #[test]
    fn a_replacement_is_taken_back_where_only_one_text_leads_there() {
        let edit = |old: &str, new: &str| json!({"file_path": "a", "old_string": old, "new_string": new});
        assert_eq!(check(edit("hi", "hello"), json!({}), "say hi\n"), both("say hello\n", Some("say hi\n")));
        // Seven blanks come of four that begin anywhere among them.
        assert_eq!(check(edit("\t", "    "), json!({}), "   \tfoo"), both("       foo", None));
        // The new text stood elsewhere already: two texts lead here.
        assert_eq!(check(edit("b", "a"), json!({}), "a b"), both("a a", None));
        // Nothing says where the deleted text stood.
        assert_eq!(check(edit(" hi", ""), json!({}), "say hi\n"), both("say\n", None));
        // An old text that stands twice is refused by the agents, too.
        assert_eq!(check(edit("a", "b"), json!({}), "a a"), (None, None));
        let all = json!({"path": "a", "old_str": "x", "new_str": "y", "replace_all": true});
        assert_eq!(check(all.clone(), json!({}), "x."), both("y.", Some("x.")));
        assert_eq!(check(all, json!({}), "x.x"), both("y.y", None));
    }

    #[test]
    fn line_ends_of_the_file_are_kept() {
        let edit = json!({"file_path": "a", "old_string": "one\ntwo", "new_string": "1\n2"});
        assert_eq!(check(edit, json!({}), "one\r\ntwo\r\n"), both("1\r\n2\r\n", Some("one\r\ntwo\r\n")));
    }

    #[test]
    fn a_difference_that_the_agent_noted_says_where_lines_were_deleted() {
        let edit = json!({"file_path": "a", "old_string": "two\n", "new_string": ""});
        let note = json!({"structuredPatch": [{"oldStart": 1, "oldLines": 3, "newStart": 1, "newLines": 2,
            "lines": [" one", "-two", " three"]}]});
        assert_eq!(check(edit, note, "one\ntwo\nthree\n"), both("one\nthree\n", Some("one\ntwo\nthree\n")));
    }

    #[test]
    fn a_difference_from_nothing_does_not_tell_an_empty_file_from_none() {
        let write = json!({"file_path": "a", "content": "one\n"});
        let note = json!({"resultDisplay": {"originalContent": "", "newContent": "one\n",
            "fileDiff": "--- a\tOriginal\n+++ a\tWritten\n@@ -0,0 +1,1 @@\n+one\n"}});
        assert_eq!(check(write.clone(), note.clone(), ""), both("one\n", None));
        let mut noted = note;
        for (is_new, before) in [(None, None), (Some(true), Some(None))] {
            noted["isNewFile"] = is_new.into();
            assert_eq!(of_call(&write, noted.as_object())[0].before, before, "{is_new:?}");
        }
    }

    #[test]
    fn several_edits_follow_one_another() {
        let edits = json!({"file_path": "a", "edits": [{"old_string": "1", "new_string": "2"}, {"old_string": "2", "new_string": "3"}]});
        assert_eq!(check(edits, json!({}), "1"), both("3", Some("1")));
    }

    #[test]
    fn what_the_user_changed_is_not_what_the_call_says() {
        let write = json!({"file_path": "a", "content": "asked"});
        let note = json!({"userModified": true, "content": "done", "originalFile": "before", "structuredPatch": []});
        let edits = of_call(&write, note.as_object());
        assert_eq!((edits[0].edit.0.len(), edits[0].after.as_deref()), (0, Some("done")));
    }

    #[test]
    fn reading_a_file_is_no_change() {
        assert_eq!(of_call(&json!({"file_path": "a", "limit": 3}), None), []);
        assert_eq!(of_call(&json!({"command": "cat a"}), None), []);
        assert_eq!(of_call(&json!("text"), None), []);
    }
}
