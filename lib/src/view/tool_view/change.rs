//! Edits and writes as differences: what the edit tools of all agents have in common.
//!
//! ```text
//! path + old text + new text            an edit; several of them in `edits`
//! path + content                        a whole file is written
//! notebook_path + new_source            a cell
//! *** Begin Patch … or a unified diff   a text with many files, also in a command's heredoc
//! ```

use serde::Serialize;
use serde_json::{Map, Value};

use super::{diff, noted, patch, shell};
use crate::model::message::ToolPart;

/// More lines than anybody reads; all of them are in the call itself.
const MAX_LINES: usize = 10_000;

/// The same for the files of one patch.
const MAX_FILES: usize = 1_000;

/// What a call changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Changes<'a> {
    /// The files, in the order of the call.
    pub files: Vec<FileChange<'a>>,
    /// Changed lines and files that are not listed, because there are too many.
    pub left_out: usize,
}

impl Changes<'_> {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.left_out == 0
    }
}

/// The change of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FileChange<'a> {
    /// The path as the call names it.
    pub path: &'a str,
    /// What happens to the file.
    pub action: FileAction,
    /// Its new path, if it is renamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<&'a str>,
    /// How many lines are added.
    pub added: usize,
    /// How many lines are removed.
    pub removed: usize,
    /// The differences.
    pub hunks: Vec<Hunk<'a>>,
}

/// What happens to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileAction {
    /// Some of it changes.
    Edit,
    /// All of it is written.
    Write,
    /// It is deleted.
    Delete,
}

/// Lines that follow one another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Hunk<'a> {
    /// Where they are, in the words of the patch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heading: Option<&'a str>,
    /// The lines.
    pub lines: Vec<DiffLine<'a>>,
}

/// One line of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct DiffLine<'a> {
    /// Whether it comes, goes or stays.
    pub sign: Sign,
    /// The line without its end.
    pub text: &'a str,
}

/// Whether a line comes, goes or stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sign {
    /// It is new.
    Added,
    /// It is gone.
    Removed,
    /// It is the same before and after.
    Context,
}

// The names of arguments, by what they hold: whoever reads edits reads the same.
pub(crate) const PATHS: &[&str] =
    &["file_path", "path", "filePath", "notebook_path", "filename", "file", "target_file"];
pub(crate) const OLD_TEXTS: &[&str] = &["old_string", "oldString", "old_str", "oldText", "old_text", "old"];
pub(crate) const NEW_TEXTS: &[&str] = &["new_string", "newString", "new_str", "newText", "new_text", "new"];
pub(crate) const CONTENTS: &[&str] = &["content", "contents", "file_text"];
pub(crate) const PATCHES: &[&str] = &["input", "patch", "diff", "patchText"];

/// The changes that a call makes; `None` if its input does not look like one.
pub(super) fn of(call: &ToolPart) -> Option<Changes<'_>> {
    let mut out = Builder::default();
    match call.input()? {
        Value::String(text) => patch::read(text, &mut out)?,
        Value::Object(input) => in_object(call, input, &mut out)?,
        _ => return None,
    }
    Some(out.changes)
}

fn in_object<'a>(call: &'a ToolPart, input: &'a Map<String, Value>, out: &mut Builder<'a>) -> Option<()> {
    let text = |keys: &[&str]| text(input, keys);
    let Some(path) = text(PATHS) else {
        // A command only changes files in one way that can be seen: it feeds a patch to `apply_patch`.
        let patch = match text(PATCHES) {
            Some(patch) => patch,
            None => shell::script(input).filter(|script| script.contains("apply_patch"))?,
        };
        return patch::read(patch, out);
    };
    let edits = input.get("edits").and_then(Value::as_array);
    let edit = |input| Some((self::text(input, OLD_TEXTS), self::text(input, NEW_TEXTS)?));
    if let Some(shown) = noted(call, "resultDisplay").and_then(|shown| shown.get("fileDiff")?.as_str()) {
        // The agent compared the whole files.
        let is_write = text(CONTENTS).is_some();
        out.file(path, if is_write { FileAction::Write } else { FileAction::Edit });
        patch::hunks(shown, out);
    } else if let Some(patch) = noted(call, "structuredPatch").and_then(Value::as_array) {
        out.file(path, if text(CONTENTS).is_some() { FileAction::Write } else { FileAction::Edit });
        patch.iter().for_each(|hunk| noted_hunk(hunk, out));
    } else if let Some(edits) = edits.filter(|edits| !edits.is_empty()) {
        let edits: Option<Vec<_>> = edits.iter().map(|one| edit(one.as_object()?)).collect();
        out.file(path, FileAction::Edit);
        edits?.into_iter().for_each(|(old, new)| diff::compare(old.unwrap_or_default(), new, out));
    } else if let Some((old, new)) = edit(input).filter(|(old, _)| old.is_some() || input.contains_key("insert_line")) {
        out.file(path, FileAction::Edit);
        diff::compare(old.unwrap_or_default(), new, out);
    } else if let Some(source) = text(&["new_source", "insert_text"]) {
        let mode = text(&["edit_mode"]);
        out.file(path, FileAction::Edit);
        out.hunk(mode);
        source.lines().for_each(|line| out.line(Sign::Added, line));
    } else if let Some(content) = text(CONTENTS) {
        out.file(path, FileAction::Write);
        diff::compare("", content, out);
    } else {
        return patch::read(text(PATCHES)?, out);
    }
    Some(())
}

/// The files that changed while a command ran, as Claude Code noted them: `{"filePath": …, "created": true, "hunks": […]}`.
pub(super) fn while_running(call: &ToolPart) -> Changes<'_> {
    let mut out = Builder::default();
    for file in noted(call, "changedFiles").and_then(Value::as_array).into_iter().flatten() {
        let Some(path) = file.get("filePath").and_then(Value::as_str) else { continue };
        let is = |key: &str| file.get(key).and_then(Value::as_bool) == Some(true);
        let action = match (is("created"), is("deleted")) {
            (true, _) => FileAction::Write,
            (false, true) => FileAction::Delete,
            (false, false) => FileAction::Edit,
        };
        out.file(path, action);
        file.get("hunks")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .for_each(|hunk| noted_hunk(hunk, &mut out));
    }
    out.changes
}

/// A piece of the difference that Claude Code noted, with the lines around it: `{"lines": [" a", "-b", "+c"]}`.
fn noted_hunk<'a>(hunk: &'a Value, out: &mut Builder<'a>) {
    out.hunk(None);
    for line in hunk.get("lines").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
        let (sign, text) = match line.as_bytes().first() {
            Some(b'+') => (Sign::Added, &line[1..]),
            Some(b'-') => (Sign::Removed, &line[1..]),
            Some(b' ') => (Sign::Context, &line[1..]),
            // `\ No newline at end of file`
            Some(b'\\') => continue,
            _ => (Sign::Context, line),
        };
        out.line(sign, text);
    }
}

/// The first of these arguments that is a text.
pub(crate) fn text<'a>(input: &'a Map<String, Value>, keys: &[&str]) -> Option<&'a str> {
    keys.iter().find_map(|key| input.get(*key)?.as_str())
}

/// Collects changes up to the limits.
#[derive(Default)]
pub(super) struct Builder<'a> {
    changes: Changes<'a>,
    lines: usize,
    /// The next line starts a hunk with this heading.
    next_hunk: Option<Option<&'a str>>,
}

impl<'a> Builder<'a> {
    /// Starts the next file.
    pub(super) fn file(&mut self, path: &'a str, action: FileAction) {
        if self.changes.files.len() == MAX_FILES {
            self.changes.left_out += 1;
            return;
        }
        let file = FileChange { path, action, moved_to: None, added: 0, removed: 0, hunks: Vec::new() };
        self.changes.files.push(file);
        self.next_hunk = Some(None);
    }

    /// The last file is renamed.
    pub(super) fn moved_to(&mut self, path: &'a str) {
        if let Some(file) = self.changes.files.last_mut() {
            file.moved_to = Some(path);
        }
    }

    /// Starts a hunk with the next line.
    pub(super) fn hunk(&mut self, heading: Option<&'a str>) {
        self.next_hunk = Some(heading);
    }

    /// Adds a line to the last hunk.
    pub(super) fn line(&mut self, sign: Sign, text: &'a str) {
        let Some(file) = self.changes.files.last_mut() else { return };
        match sign {
            Sign::Added => file.added += 1,
            Sign::Removed => file.removed += 1,
            Sign::Context => {}
        }
        if self.lines == MAX_LINES {
            self.changes.left_out += usize::from(sign != Sign::Context);
            return;
        }
        self.lines += 1;
        let next_hunk = self.next_hunk.take();
        if next_hunk.is_some() || file.hunks.is_empty() {
            file.hunks.push(Hunk { heading: next_hunk.flatten(), lines: Vec::new() });
        }
        if let Some(hunk) = file.hunks.last_mut() {
            hunk.lines.push(DiffLine { sign, text });
        }
    }

    /// Whether no file was found.
    pub(super) fn is_empty(&self) -> bool {
        self.changes.files.is_empty()
    }
}
