//! Changes of files as coloured differences.

use scrollback::view::tool_view::{Changes, FileAction, FileChange, Sign};

use super::fold::{self, INDENT};
use super::plural;
use super::tool::CallLook;
use crate::terminal::{clean, wrap};

/// A folded change has this many lines.
const FOLDED_LINES: usize = 16;

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
                if rows.len() > limit {
                    hidden += 1;
                    hidden_bytes += line.text.len() + 1;
                    continue;
                }
                let (sign, style): (_, fn(_, &str) -> String) = match line.sign {
                    Sign::Added => ('+', crate::terminal::paint::Paint::green),
                    Sign::Removed => ('-', crate::terminal::paint::Paint::red),
                    Sign::Context => (' ', crate::terminal::paint::Paint::dim),
                };
                let room = fold::room(&how.look).saturating_sub(2).max(1);
                if how.full {
                    let text = clean::text(line.text).into_owned();
                    let pieces = wrap::code(&text, room);
                    rows.extend(pieces.into_iter().map(|range| (style(paint, &format!("{sign} {}", &text[range])), 0)));
                } else {
                    rows.push((
                        style(paint, format!("{sign} {}", fold::cut(line.text, room)).trim_end()),
                        line.text.len() + 1,
                    ));
                }
            }
        }
    }
    // Room for one more than the limit: hiding a single line would save nothing.
    if hidden > 0 && rows.len() > limit {
        hidden += rows.len() - limit;
        hidden_bytes += rows.drain(limit..).map(|(_, bytes)| bytes).sum::<usize>();
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

fn path(file: &FileChange<'_>, how: &CallLook<'_>) -> String {
    let from = how.relative(file.path);
    match (file.moved_to, file.action) {
        (Some(to), _) => format!("{from} → {}", how.relative(to)),
        (None, FileAction::Delete) => format!("{from} (deleted)"),
        (None, FileAction::Edit | FileAction::Write) => from.to_owned(),
    }
}
