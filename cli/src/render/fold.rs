//! Text that is folded: some lines of it, and the size of what is hidden.

use std::borrow::Cow;

pub(crate) use scrollback::view::tool_view::size_text as size;

use crate::terminal::paint::Paint;
use crate::terminal::{Look, clean, sgr, width, wrap};

/// `--full` shows this much of one text; `--json` and `--raw` print all of it.
const FULL_LIMIT_BYTES: usize = 100_000;

/// Of a folded text, only so much of its start and of its end is looked at: more than the rows of any window that are shown.
const FOLDED_END_BYTES: usize = 64_000;

/// Hiding no more rows than this would save nothing: the note takes one, and reading it a moment.
pub(crate) const HIDDEN_ROWS: usize = 3;

/// A line that must be one row, or a few, is cut: no window is wider than this many bytes.
const CUT_LINE_BYTES: usize = 8_000;

/// What stands under a call is this far in.
pub(crate) const INDENT: &str = "    ";

/// How much of a text is shown.
#[derive(Clone, Copy)]
pub(crate) enum Fold {
    /// All of it.
    Open,
    /// So many rows of its start and its end.
    To { first: usize, last: usize },
}

impl Fold {
    /// Folds to so many rows, or not at all.
    pub(crate) fn unless(full: bool, first: usize, last: usize) -> Fold {
        if full { Fold::Open } else { Fold::To { first, last } }
    }
}

/// Shows lines that a program printed, wrapped.
pub(crate) fn printed(text: &str, fold: Fold, look: &Look, style: impl Fn(&str) -> String) -> String {
    let text = text.trim_end();
    let text = text.strip_prefix("\r\n").or_else(|| text.strip_prefix('\n')).unwrap_or(text);
    if text.is_empty() {
        return String::new();
    }
    let row = |row: &str| match row.trim_end() {
        "" => "\n".to_owned(),
        row => format!("{INDENT}{}\n", style(row)),
    };
    let Fold::To { first, last } = fold else { return open(text, look, row) };
    let columns = room(look);
    let is_large = text.len() > 2 * FOLDED_END_BYTES;
    let (start, end) =
        if is_large { (FOLDED_END_BYTES, text.len() - FOLDED_END_BYTES) } else { (text.len(), text.len()) };
    let (start, end) = (text.floor_char_boundary(start), text.ceil_char_boundary(end));
    let (above, below) = (clean_output(&text[..start]), clean_output(&text[end..]));
    let rows = wrap::output(&above, columns);
    if !is_large && rows.len() <= first + last + HIDDEN_ROWS {
        return rows.into_iter().map(|range| row(&above[range])).collect();
    }
    let (shown, rest) = rows.split_at(first.min(rows.len()));
    let rows_below = if is_large { wrap::output(&below, columns) } else { rest.to_vec() };
    let source: &str = if is_large { &below } else { &above };
    let last_rows = &rows_below[rows_below.len().saturating_sub(last)..];
    let from = shown.last().map_or(0, |range| range.end);
    let until = last_rows.first().map_or(source.len(), |range| range.start);
    let hidden =
        if is_large { [&above[from..], &text[start..end], &below[..until]] } else { [&above[from..until], "", ""] };
    let mut out: String = shown.iter().map(|range| row(&above[range.clone()])).collect();
    out += &hidden_size(hidden, look);
    out.extend(last_rows.iter().map(|range| row(&source[range.clone()])));
    out
}

/// What is hidden between two rows: lines, or a piece of one line.
fn hidden_size(pieces: [&str; 3], look: &Look) -> String {
    let bytes: usize = pieces.iter().map(|piece| piece.len()).sum();
    let ends = pieces.iter().map(|piece| piece.bytes().filter(|byte| *byte == b'\n').count()).sum::<usize>();
    // The row above ends its line.
    let is_whole = pieces[0].starts_with('\n');
    let is_ended = pieces.iter().rfind(|piece| !piece.is_empty()).is_some_and(|piece| piece.ends_with('\n'));
    let lines = ends + usize::from(!is_ended) - usize::from(is_whole);
    if ends == 0 {
        return note(&format!("… {} more; --full shows it", size(bytes)), look);
    }
    more(lines.max(1), bytes - usize::from(is_whole), look)
}

fn open(text: &str, look: &Look, row: impl Fn(&str) -> String) -> String {
    let shown = &text[..text.floor_char_boundary(FULL_LIMIT_BYTES)];
    let clean = clean_output(shown);
    let mut out: String = wrap::output(&clean, room(look)).into_iter().map(|range| row(&clean[range])).collect();
    if shown.len() < text.len() {
        out += &note(&format!("… {} more; --json prints all", size(text.len() - shown.len())), look);
    }
    out
}

/// The first of some rows, and the size of the others.
pub(crate) fn rows(text: &str, most: usize, look: &Look) -> String {
    let rows: Vec<&str> = text.split_inclusive('\n').collect();
    if rows.len() <= most + HIDDEN_ROWS {
        return text.to_owned();
    }
    let (shown, hidden) = rows.split_at(most);
    // Our own colours are no part of what is hidden.
    shown.concat() + &more(hidden.len(), hidden.iter().map(|row| sgr::strip(row).len()).sum(), look)
}

/// What is hidden, and how to see it.
pub(crate) fn more(lines: usize, bytes: usize, look: &Look) -> String {
    let plural = super::plural(lines as u64, "more line");
    note(&format!("… {plural} ({}); --full shows them", size(bytes)), look)
}

fn note(text: &str, look: &Look) -> String {
    format!("{INDENT}{}\n", Paint { colour: look.colour }.dim(text))
}

/// As much of a line as may be seen.
pub(crate) fn start(line: &str) -> &str {
    &line[..line.floor_char_boundary(CUT_LINE_BYTES)]
}

/// One line of an output in so many columns.
pub(crate) fn cut(line: &str, columns: usize) -> String {
    let line = clean_output(start(line));
    width::fit(&line, columns.min(width::of(&line))).trim_end().to_owned()
}

/// The columns under a call.
pub(crate) fn room(look: &Look) -> usize {
    look.code.saturating_sub(INDENT.len()).max(1)
}

/// Output without colours and harmless.
fn clean_output(text: &str) -> Cow<'_, str> {
    if is_overwritten(text) {
        return clean::text(&sgr::strip(&overwritten(text))).into_owned().into();
    }
    match sgr::strip(text) {
        Cow::Borrowed(text) => clean::text(text),
        Cow::Owned(text) => clean::text(&text).into_owned().into(),
    }
}

/// Whether a line is written over another one, as progress is: `10 %\r20 %`.
fn is_overwritten(text: &str) -> bool {
    text.as_bytes().windows(2).any(|pair| pair[0] == b'\r' && pair[1] != b'\n' && pair[1] != b'\r')
}

/// What a terminal shows then.
fn overwritten(text: &str) -> String {
    let last = |line: &str| match line.trim_end_matches(['\r', '\n']).rfind('\r') {
        Some(at) => line[at + 1..].to_owned(),
        None => line.to_owned(),
    };
    text.split_inclusive('\n').map(last).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOK: Look = Look { width: 40, code: 40, colour: false };

    fn shown(text: &str, fold: Fold) -> String {
        printed(text, fold, &LOOK, str::to_owned)
    }

    #[test]
    fn the_middle_is_hidden_with_its_size() {
        let text: String = (1..=9).map(|n| format!("line {n}\n")).collect();
        insta::assert_snapshot!(shown(&text, Fold::unless(false, 2, 1)), @"
            line 1
            line 2
            … 6 more lines (42 B); --full shows them
            line 9
        ");
        assert_eq!(shown(&text, Fold::unless(false, 5, 3)).lines().count(), 9, "one line is not worth hiding");
        assert_eq!(shown(&text, Fold::unless(true, 1, 1)).lines().count(), 9);
        assert_eq!(shown(" \n\n", Fold::Open), "");
    }

    #[test]
    fn long_lines_are_wrapped_and_colours_go() {
        let text = format!("\u{1b}[31m{}\u{1b}[0m\u{1b}[2J", "x".repeat(60));
        let wrapped = format!("    {}\n    {}␛[2J\n", "x".repeat(36), "x".repeat(24));
        assert_eq!(shown(&text, Fold::unless(false, 3, 3)), wrapped);
        assert_eq!(shown(&text, Fold::Open), wrapped);
    }

    #[test]
    fn a_long_line_is_folded_as_many_lines_are() {
        insta::assert_snapshot!(shown(&"word ".repeat(100), Fold::unless(false, 1, 1)), @"
            word word word word word word word
            … 455 B more; --full shows it
            word word
        ");
        insta::assert_snapshot!(shown(&format!("{}\nb\nc", "word ".repeat(20)), Fold::unless(false, 1, 0)), @"
            word word word word word word word
            … 3 more lines (69 B); --full shows them
        ");
        let (above, below) = ("x".repeat(36), "x".repeat(28));
        let huge = format!("    {above}\n    … 200 KB more; --full shows it\n    {below}\n");
        assert_eq!(shown(&"x".repeat(200_000), Fold::unless(false, 1, 1)), huge);
    }

    #[test]
    fn progress_is_what_is_left_of_it() {
        assert_eq!(shown("get\r\n 10 %\r 99 %\r100 %\r\ndone\r\n", Fold::Open), "    get\n    100 %\n    done\n");
    }

    #[test]
    fn a_large_text_costs_what_is_shown() {
        let text = "\u{1b}[1mline\n".repeat(1 << 20);
        assert!(shown(&text, Fold::unless(false, 4, 4)).ends_with("    line\n"));
        assert!(shown(&text, Fold::Open).ends_with("MB more; --json prints all\n"));
    }
}
