//! Patches as text: the format of `apply_patch`, and unified diffs.

use super::change::{Builder, FileAction, Sign};

pub(crate) const BEGIN_PATCH: &str = "*** Begin Patch";
const END_PATCH: &str = "*** End Patch";

/// Reads a patch with the names of its files; `None` if the text is none. What stands around an `apply_patch` patch is ignored.
pub(super) fn read<'a>(text: &'a str, out: &mut Builder<'a>) -> Option<()> {
    match text.find(BEGIN_PATCH) {
        Some(begin) => apply_patch(&text[begin..], out),
        None if is_unified(text) => unified(text, out),
        None => {}
    }
    (!out.is_empty()).then_some(())
}

/// Adds the hunks of a unified diff of one file.
pub(super) fn hunks<'a>(text: &'a str, out: &mut Builder<'a>) {
    let in_hunks = text.lines().skip_while(|line| !line.starts_with("@@"));
    in_hunks.for_each(|line| hunk_line(line, out));
}

fn apply_patch<'a>(text: &'a str, out: &mut Builder<'a>) {
    for file in patched_files(text) {
        out.file(file.path, file.action);
        file.moved_to.into_iter().for_each(|path| out.moved_to(path));
        let lines = file.lines.iter().filter(|_| file.action != FileAction::Delete);
        lines.for_each(|line| hunk_line(line, out));
    }
}

/// What a patch in the format of `apply_patch` says about one file.
pub(crate) struct PatchedFile<'a> {
    pub(crate) path: &'a str,
    pub(crate) action: FileAction,
    pub(crate) moved_to: Option<&'a str>,
    /// Its hunks.
    pub(crate) lines: Vec<&'a str>,
}

/// The files of a patch in the format of `apply_patch`, which may stand in other text.
pub(crate) fn patched_files(text: &str) -> Vec<PatchedFile<'_>> {
    let Some(begin) = text.find(BEGIN_PATCH) else { return Vec::new() };
    let mut files: Vec<PatchedFile<'_>> = Vec::new();
    for line in text[begin..].lines().skip(1).take_while(|line| line.trim_end() != END_PATCH) {
        let after = |prefix| line.strip_prefix(prefix).map(str::trim);
        let heading = after("*** Add File: ")
            .map(|path| (path, FileAction::Write))
            .or_else(|| after("*** Update File: ").map(|path| (path, FileAction::Edit)))
            .or_else(|| after("*** Delete File: ").map(|path| (path, FileAction::Delete)));
        match (heading, files.last_mut()) {
            (Some((path, action)), _) => files.push(PatchedFile { path, action, moved_to: None, lines: Vec::new() }),
            (None, Some(file)) => match after("*** Move to: ") {
                Some(path) => file.moved_to = Some(path),
                // Such as the mark of the end of the file.
                None if line.starts_with("*** ") => {}
                None => file.lines.push(line),
            },
            (None, None) => {}
        }
    }
    files
}

/// A line of a hunk, or the line that starts one.
fn hunk_line<'a>(line: &'a str, out: &mut Builder<'a>) {
    if let Some(heading) = line.strip_prefix("@@") {
        let heading = heading.trim().trim_end_matches("@@").trim_end();
        // All of a new file is new: where it stands says nothing.
        out.hunk(Some(heading).filter(|heading| !heading.is_empty() && !heading.starts_with("-0,0 ")));
    } else if let Some(added) = line.strip_prefix('+') {
        out.line(Sign::Added, added);
    } else if let Some(removed) = line.strip_prefix('-') {
        out.line(Sign::Removed, removed);
    } else if !line.starts_with('\\') {
        out.line(Sign::Context, line.strip_prefix(' ').unwrap_or(line));
    }
}

/// Whether a text starts, after some lines of metadata, with the two names of a unified diff.
fn is_unified(text: &str) -> bool {
    const METADATA_LINES: usize = 8;
    let mut lines = text.lines().take(METADATA_LINES).skip_while(|line| !line.starts_with("--- "));
    lines.next().is_some() && lines.next().is_some_and(|line| line.starts_with("+++ "))
}

fn unified<'a>(text: &'a str, out: &mut Builder<'a>) {
    let mut in_hunks = false;
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let new_name = lines.peek().and_then(|next| next.strip_prefix("+++ "));
        if let (Some(old), Some(new)) = (line.strip_prefix("--- "), new_name) {
            lines.next();
            let (old, new) = (path(old), path(new));
            match (old, new) {
                (None, new) => out.file(new.unwrap_or("?"), FileAction::Write),
                (Some(old), None) => out.file(old, FileAction::Delete),
                (Some(_), Some(new)) => out.file(new, FileAction::Edit),
            }
            in_hunks = false;
        } else if in_hunks || line.starts_with("@@") {
            in_hunks = !line.starts_with("diff ");
            if in_hunks {
                hunk_line(line, out);
            }
        }
    }
}

/// The path in the name of a side; `None` for the side of a file that does not exist.
fn path(name: &str) -> Option<&str> {
    let name = name.split('\t').next().unwrap_or(name).trim();
    let name = name.strip_prefix("a/").or_else(|| name.strip_prefix("b/")).unwrap_or(name);
    (name != "/dev/null").then_some(name)
}
