//! Patches, and prompts with mentioned files: lines that say which file the next ones belong to.

use std::ops::Range;

use super::edited::Edited;
use super::file_mask::FileMask;

/// What a line says about the next ones.
#[derive(Clone, Copy)]
pub(super) enum Section<'t> {
    /// They belong to a file.
    Of(&'t str),
    /// They belong to this file, and to the one before.
    Moved(&'t str),
    /// They belong to no file.
    End,
}

impl<'t> Section<'t> {
    pub(super) fn of_line(line: &'t str) -> Option<Section<'t>> {
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
}

/// The files that a text has sections of.
pub(super) fn paths(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| match Section::of_line(line) {
        Some(Section::Of(path) | Section::Moved(path)) => Some(path),
        Some(Section::End) | None => None,
    })
}

/// A text without the lines that belong to a sensitive file, if it has some.
pub(super) fn masked(text: &str, mask: FileMask<'_>) -> Option<String> {
    let mut edited = Edited::new(text);
    let mut hide = |lines: Range<usize>| {
        let hidden = &text[lines.clone()];
        if let Some(new) = mask.placeholder(hidden) {
            let end = if hidden.ends_with('\n') { "\n" } else { "" };
            edited.replace(lines, &(new + end));
        }
    };
    // Where the lines of a sensitive file start, and whether the ones that follow are some.
    let (mut from, mut hides, mut at) = (0, false, 0);
    for line in text.split_inclusive('\n') {
        if let Some(section) = Section::of_line(line) {
            if hides {
                hide(from..at);
            }
            hides = match section {
                Section::Of(path) => mask.is_sensitive(path),
                // A patch may move a file away: its lines are the old file's, too.
                Section::Moved(path) => hides || mask.is_sensitive(path),
                Section::End => false,
            };
            from = at + line.len();
        }
        at += line.len();
    }
    if hides {
        hide(from..at);
    }
    edited.finish()
}
