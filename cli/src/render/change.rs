//! Changes of files as coloured differences.

use std::ops::Range;

use scrollback::view::tool_view::{Changes, DiffLine, FileAction, FileChange, Sign};

use super::fold::{self, INDENT};
use super::plural;
use super::tool::CallLook;
use crate::terminal::paint::Paint;
use crate::terminal::{clean, wrap};

/// A folded change has this many lines.
const FOLDED_LINES: usize = 16;

/// A long line of a folded change has this many rows.
const WRAPPED_ROWS: usize = 3;

/// `--full` shows this many lines; `--json` prints all of them.
const FULL_LINES: usize = 5_000;

/// What changes: a path, or the number of files.
pub(crate) fn subject(changes: &Changes<'_>, how: &CallLook<'_>) -> String {
    match changes.files.as_slice() {
        [file] => path(file, how),
        files => plural(files.len() as u64, "file"),
    }
}

/// `+3 −1`
pub(crate) fn counted<'f>(files: impl Iterator<Item = &'f FileChange<'f>>) -> String {
    let (added, removed) = files.fold((0, 0), |(added, removed), file| (added + file.added, removed + file.removed));
    match (added, removed) {
        (0, 0) => String::new(),
        (added, 0) => format!("+{added}"),
        (0, removed) => format!("−{removed}"),
        (added, removed) => format!("+{added} −{removed}"),
    }
}

/// What changed while a command ran: by it, or by anything else.
pub(crate) fn while_running(changes: &Changes<'_>, how: &CallLook<'_>) -> String {
    if changes.is_empty() {
        return String::new();
    }
    let what = format!("{}  {}", subject(changes, how), counted(changes.files.iter()));
    let what = clean::line(what.trim_end()).into_owned();
    format!("{INDENT}{} {}\n", how.paint().dim("changed meanwhile:"), how.paint().bold(&what)) + &lines(changes, how)
}

/// The lines of all files, folded to some.
pub(crate) fn lines(changes: &Changes<'_>, how: &CallLook<'_>) -> String {
    let paint = how.paint();
    let mut rows: Vec<(String, usize)> = Vec::new();
    let limit = if how.full { FULL_LINES } else { FOLDED_LINES };
    let (mut hidden, mut hidden_bytes) = (changes.left_out, 0);
    for file in &changes.files {
        if changes.files.len() > 1 {
            let counts = counted(std::iter::once(file));
            rows.push((paint.bold(format!("{}  {counts}", path(file, how)).trim_end()), 0));
        }
        for (at, hunk) in file.hunks.iter().enumerate() {
            match hunk.heading {
                Some(heading) => rows.push((paint.cyan(&format!("@@ {heading}")), 0)),
                None if at > 0 => rows.push((paint.dim("⋮"), 0)),
                None => {}
            }
            for line in &hunk.lines {
                if rows.len() >= limit + fold::HIDDEN_ROWS {
                    hidden += 1;
                    hidden_bytes += line.text.len() + 1;
                    continue;
                }
                rows.extend(rows_of(line, how));
            }
        }
    }
    if hidden > 0 && rows.len() > limit {
        // Only the first row of a line has its size.
        let cut = rows.drain(limit..).filter(|(_, bytes)| *bytes > 0);
        cut.for_each(|(_, bytes)| (hidden, hidden_bytes) = (hidden + 1, hidden_bytes + bytes));
    }
    let mut out: String = rows.into_iter().map(|(row, _)| format!("{INDENT}{row}\n")).collect();
    if hidden > 0 && how.full {
        out += &format!(
            "{INDENT}{}\n",
            paint.dim(&format!("… {}; --json prints all", plural(hidden as u64, "more line")))
        );
    } else if hidden > 0 {
        out += &fold::more(hidden, hidden_bytes, &how.look);
    }
    out
}

/// The rows of one line, the first with the size of the line; a long one is cut unless everything is shown.
fn rows_of(line: &DiffLine<'_>, how: &CallLook<'_>) -> Vec<(String, usize)> {
    let paint = how.paint();
    let (sign, style): (_, fn(Paint, &str) -> String) = match line.sign {
        Sign::Added => ('+', Paint::green),
        Sign::Removed => ('-', Paint::red),
        Sign::Context => (' ', Paint::dim),
    };
    let seen = if how.full { line.text } else { fold::start(line.text) };
    let text = clean::text(seen).into_owned();
    let pieces = wrap::code(&text, fold::room(&how.look).saturating_sub(2).max(1));
    let shown = if how.full { pieces.len() } else { WRAPPED_ROWS.min(pieces.len()) };
    let row = |(at, range): (usize, &Range<usize>)| {
        let bytes = if at == 0 { line.text.len() + 1 } else { 0 };
        // Each sign is a line of the file.
        let sign = if at == 0 { sign } else { ' ' };
        (style(paint, format!("{sign} {}", &text[range.clone()]).trim_end()), bytes)
    };
    let mut rows: Vec<_> = pieces.iter().take(shown).enumerate().map(row).collect();
    if let Some(rest) = pieces.get(shown) {
        let bytes = text.len() - rest.start + line.text.len() - seen.len();
        rows.push((paint.dim(&format!("  … {} more of this line", fold::size(bytes))), 0));
    }
    rows
}

fn path(file: &FileChange<'_>, how: &CallLook<'_>) -> String {
    let from = how.relative(file.path);
    match (file.moved_to, file.action) {
        (Some(to), _) => format!("{from} → {}", how.relative(to)),
        (None, FileAction::Delete) => format!("{from} (deleted)"),
        (None, FileAction::Edit | FileAction::Write) => from.to_owned(),
    }
}
