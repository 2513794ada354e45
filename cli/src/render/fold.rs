//! Text that is folded: some lines of it, and the size of what is hidden.

use std::borrow::Cow;

use crate::terminal::paint::Paint;
use crate::terminal::{Look, clean, sgr, width, wrap};

/// `--full` shows this much of one text; `--json` and `--raw` print all of it.
const FULL_LIMIT_BYTES: usize = 100_000;

/// A folded line is cut at the edge: no window is wider than this many bytes.
const CUT_LINE_BYTES: usize = 8_000;

/// What stands under a call is this far in.
pub(crate) const INDENT: &str = "    ";

/// How much of a text is shown.
#[derive(Clone, Copy)]
pub(crate) enum Fold {
    /// All of it, with long lines wrapped.
    Open,
    /// So many lines of its start and its end, each cut at the edge.
    To { first: usize, last: usize },
}

impl Fold {
    /// Folds to so many lines, or not at all.
    pub(crate) fn unless(full: bool, first: usize, last: usize) -> Fold {
        if full { Fold::Open } else { Fold::To { first, last } }
    }
}

/// Shows lines that a program printed.
pub(crate) fn printed(text: &str, fold: Fold, look: &Look, style: impl Fn(&str) -> String) -> String {
    let text = text.trim_end();
    let text = text.strip_prefix("\r\n").or_else(|| text.strip_prefix('\n')).unwrap_or(text);
    if text.is_empty() {
        return String::new();
    }
    let row = |row: &str| if row.is_empty() { "\n".to_owned() } else { format!("{INDENT}{}\n", style(row)) };
    let lines = text.lines().count();
    let (first, last) = match fold {
        Fold::Open => return open(text, look, row),
        // Hiding one line would save nothing.
        Fold::To { first, last } if lines <= first + last + 1 => (lines, 0),
        Fold::To { first, last } => (first, last),
    };
    let cut = |line: &str| row(&cut(line, room(look)));
    let mut out: String = text.lines().take(first).map(cut).collect();
    let hidden = lines - first - last;
    if hidden > 0 {
        let bytes = text.lines().skip(first).take(hidden).map(|line| line.len() + 1).sum();
        out += &more(hidden, bytes, look);
    }
    out.extend(text.lines().skip(lines - last).map(cut));
    out
}

fn open(text: &str, look: &Look, row: impl Fn(&str) -> String) -> String {
    let shown = &text[..text.floor_char_boundary(FULL_LIMIT_BYTES)];
    let clean = clean_output(shown);
    let mut out: String = wrap::code(&clean, room(look)).into_iter().map(|range| row(&clean[range])).collect();
    if shown.len() < text.len() {
        out += &note(&format!("… {} more; --json prints all", size(text.len() - shown.len())), look);
    }
    out
}

/// What is hidden, and how to see it.
pub(crate) fn more(lines: usize, bytes: usize, look: &Look) -> String {
    let plural = super::plural(lines as u64, "more line");
    note(&format!("… {plural} ({}); --full shows them", size(bytes)), look)
}

fn note(text: &str, look: &Look) -> String {
    format!("{INDENT}{}\n", Paint { colour: look.colour }.dim(text))
}

/// One line of an output in so many columns.
pub(crate) fn cut(line: &str, columns: usize) -> String {
    let line = clean_output(&line[..line.floor_char_boundary(CUT_LINE_BYTES)]);
    width::fit(&line, columns.min(width::of(&line))).trim_end().to_owned()
}

/// The columns under a call.
pub(crate) fn room(look: &Look) -> usize {
    look.code.saturating_sub(INDENT.len()).max(1)
}

/// A size for people.
pub(crate) fn size(bytes: usize) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.0} KB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

/// Output without colours and harmless.
fn clean_output(text: &str) -> Cow<'_, str> {
    match sgr::strip(text) {
        Cow::Borrowed(text) => clean::text(text),
        Cow::Owned(text) => clean::text(&text).into_owned().into(),
    }
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
    fn long_lines_are_cut_or_wrapped_and_colours_go() {
        let text = format!("\u{1b}[31m{}\u{1b}[0m\u{1b}[2J", "x".repeat(60));
        assert_eq!(shown(&text, Fold::unless(false, 3, 3)), format!("    {}…\n", "x".repeat(35)));
        assert_eq!(shown(&text, Fold::Open), format!("    {}\n    {}␛[2J\n", "x".repeat(36), "x".repeat(24)));
    }

    #[test]
    fn a_large_text_costs_what_is_shown() {
        let text = "\u{1b}[1mline\n".repeat(1 << 20);
        assert!(shown(&text, Fold::unless(false, 4, 4)).ends_with("    line\n"));
        assert!(shown(&text, Fold::Open).ends_with("MB more; --json prints all\n"));
    }
}
