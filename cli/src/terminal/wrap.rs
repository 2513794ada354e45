//! Line breaking: between words for prose, outputs and what a person typed, at the edge for code.
//!
//! All take linear time; most return byte ranges of the text. A character wider than the room gets its own line.

use std::ops::Range;

use super::width;

/// Lines of prose: broken at spaces and between ideographs, words longer than a line at the edge.
pub(crate) fn prose(text: &str, columns: usize) -> Vec<Range<usize>> {
    let mut lines = Vec::new();
    let mut line = Line::starting_at(0);
    let mut position = 0;
    let mut before = "";
    for (atom, wide) in width::atoms(text) {
        let next = position + atom.len();
        if atom == "\n" {
            lines.push(line.start..line.text_end(position));
            line = Line::starting_at(next);
        } else if atom == " " {
            line.note_space(position);
        } else {
            if may_break(before, atom) {
                line.gap = Some(Gap { end: position, next: position, columns: line.columns });
            }
            while line.columns + wide > columns && line.start < position {
                let gap = line.gap.unwrap_or(Gap { end: position, next: position, columns: line.columns });
                if gap.end > line.start {
                    lines.push(line.start..gap.end);
                }
                line = Line { start: gap.next, columns: line.columns - gap.columns, gap: None };
            }
            line.columns += wide;
        }
        position = next;
        before = atom;
    }
    if line.start < position {
        lines.push(line.start..line.text_end(position));
    }
    lines
}

/// Lines of code: every line of the text, cut at the edge where it is too long.
pub(crate) fn code(text: &str, columns: usize) -> Vec<Range<usize>> {
    let mut lines = Vec::new();
    let mut start = 0;
    for line in text.split('\n') {
        let mut position = start;
        let mut used = 0;
        for (atom, wide) in width::atoms(line) {
            if used + wide > columns && start < position {
                lines.push(start..position);
                start = position;
                used = 0;
            }
            used += wide;
            position += atom.len();
        }
        lines.push(start..position);
        start = position + 1;
    }
    lines
}

/// Lines of an output: every line of the text, broken after a space where it is too long, or at the edge of a long word.
pub(crate) fn output(text: &str, columns: usize) -> Vec<Range<usize>> {
    let mut lines = Vec::new();
    let mut start = 0;
    for line in text.split('\n') {
        let mut position = start;
        let mut used = 0;
        // Where the next row may start, and what is used up to there.
        let mut gap = (start, 0);
        for (atom, wide) in width::atoms(line) {
            if atom != " " && used + wide > columns && start < position {
                // A row that is nearly empty is harder to read than a broken word.
                let (end, before) = if gap.1 * 2 > columns { gap } else { (position, used) };
                lines.push(start..end);
                start = end;
                used -= before;
                gap = (start, 0);
            }
            used += wide;
            position += atom.len();
            if atom == " " {
                gap = (position, used);
            }
        }
        lines.push(start..position);
        start = position + 1;
    }
    lines
}

/// Lines of a note or an error: broken only at spaces, so that paths and ids can be copied; what is between `` ` `` stays whole.
pub(crate) fn words(text: &str, columns: usize) -> Vec<Range<usize>> {
    let (mut lines, mut line, mut in_command) = (Vec::new(), 0..0, false);
    let mut word = 0;
    for (at, letter) in text.char_indices().chain([(text.len(), ' ')]) {
        in_command ^= letter == '`';
        if letter != ' ' || (in_command && at < text.len()) {
            continue;
        }
        if word < at {
            if !line.is_empty() && width::of(&text[line.start..at]) > columns {
                lines.push(line);
                line = word..word;
            }
            line.end = at;
        }
        word = at + 1;
    }
    lines.push(line);
    lines
}

/// Lines as they were typed: every line of the text with its own indentation, broken between words where it is too long.
pub(crate) fn typed(text: &str, columns: usize) -> Vec<String> {
    let mut rows = Vec::new();
    for line in text.split('\n') {
        let words = line.trim_start_matches(' ');
        // A deeper indentation would leave no room for the words.
        let indent = " ".repeat((line.len() - words.len()).min(columns / 2));
        if words.is_empty() {
            rows.push(String::new());
        }
        let ranges = prose(words, columns.saturating_sub(indent.len()).max(1));
        rows.extend(ranges.into_iter().map(|range| format!("{indent}{}", &words[range])));
    }
    rows
}

struct Line {
    start: usize,
    columns: usize,
    gap: Option<Gap>,
}

/// The last place to break: the line ends at `end`, the next starts at `next`, `columns` after the start.
#[derive(Clone, Copy)]
struct Gap {
    end: usize,
    next: usize,
    columns: usize,
}

impl Line {
    fn starting_at(start: usize) -> Self {
        Self { start, columns: 0, gap: None }
    }

    /// Spaces may exceed the edge; a run of them is one gap.
    fn note_space(&mut self, position: usize) {
        self.columns += 1;
        let end = self.gap.filter(|gap| gap.next == position).map_or(position, |gap| gap.end);
        self.gap = Some(Gap { end, next: position + 1, columns: self.columns });
    }

    fn text_end(&self, position: usize) -> usize {
        self.gap.filter(|gap| gap.next == position).map_or(position, |gap| gap.end)
    }
}

/// Whether a line may end between two characters without a space, as between ideographs.
fn may_break(before: &str, after: &str) -> bool {
    const NEVER_LAST: &str = "（「『【《〈〔［｛";
    const NEVER_FIRST: &str = "）」』】》〉〕］｝、。，．！？：；…ーぁぃぅぇぉっゃゅょァィゥェォッャュョ々";
    let is_ideograph = |atom: &str| {
        atom.starts_with(|c| matches!(c, '\u{2e80}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ff60}' | '\u{20000}'..='\u{3ffff}'))
    };
    !matches!(before, "" | " " | "\n")
        && (is_ideograph(before) || is_ideograph(after))
        && !before.starts_with(|c: char| NEVER_LAST.contains(c))
        && !after.starts_with(|c: char| NEVER_FIRST.contains(c) || c.is_ascii_punctuation())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(text: &str, lines: Vec<Range<usize>>) -> String {
        lines.into_iter().map(|line| format!("[{}]\n", &text[line])).collect()
    }

    fn prose_at(columns: usize, text: &str) -> String {
        show(text, prose(text, columns))
    }

    #[test]
    fn prose_breaks_at_spaces_and_drops_them() {
        insta::assert_snapshot!(prose_at(9, "one two  three   four\nfive "), @"
        [one two]
        [three]
        [four]
        [five]
        ");
    }

    #[test]
    fn long_words_break_at_the_edge() {
        insta::assert_snapshot!(prose_at(4, "a abcdefghij k"), @"
        [a]
        [abcd]
        [efgh]
        [ij k]
        ");
    }

    #[test]
    fn a_note_keeps_its_paths_and_commands_whole() {
        let text =
            "scrollback: /home/ada/tide-tables/notes.jsonl: no such file; run `scrollback list --all` to see every id";
        insta::assert_snapshot!(show(text, words(text, 28)), @"
        [scrollback:]
        [/home/ada/tide-tables/notes.jsonl:]
        [no such file; run]
        [`scrollback list --all` to]
        [see every id]
        ");
        for (text, lines) in [
            ("", "[]\n"),
            ("  a  b ", "[  a  b]\n"),
            ("an ` open mark", "[an]\n[` open mark]\n"),
            ("世界 人", "[世界]\n[人]\n"),
        ] {
            assert_eq!(show(text, words(text, 6)), lines);
        }
    }

    #[test]
    fn an_output_breaks_after_a_space_and_keeps_all_of_it() {
        let text = "error: cannot open   x\n\n  /a/very/long/path/name y";
        insta::assert_snapshot!(show(text, output(text, 12)), @"
        [error: ]
        [cannot open   ]
        [x]
        []
        [  /a/very/lo]
        [ng/path/name ]
        [y]
        ");
    }

    #[test]
    fn typed_lines_stay_lines_and_hang_below_their_indentation() {
        let text = "def __init__(self):\n    self.total = round(price, 2)\n\n  - *one* two  \n世";
        insta::assert_snapshot!(typed(text, 20).iter().map(|row| format!("[{row}]\n")).collect::<String>(), @"
        [def __init__(self):]
        [    self.total =]
        [    round(price, 2)]
        []
        [  - *one* two]
        [世]
        ");
        assert_eq!(typed(&format!("{}x", " ".repeat(90)), 20), [format!("{}x", " ".repeat(10))]);
        assert_eq!(typed("", 0), [""]);
    }

    #[test]
    fn ideographs_break_anywhere_but_before_closing_marks() {
        assert_eq!(prose_at(4, "abcd 世"), "[abcd]\n[世]\n");
        insta::assert_snapshot!(prose_at(7, "世界人民、大家好"), @"
        [世界人]
        [民、大]
        [家好]
        ");
    }

    #[test]
    fn a_character_wider_than_the_room_stands_alone() {
        insta::assert_snapshot!(prose_at(1, "世a 👩‍👩‍👧"), @"
        [世]
        [a]
        [👩‍👩‍👧]
        ");
    }

    #[test]
    fn a_cluster_without_end_is_cut_as_well() {
        assert_eq!(prose(&"\u{1100}".repeat(5), 4).len(), 3);
        assert_eq!(code("❤\u{fe0f}\u{a3e}a", 3), [0..9, 9..10]);
    }

    #[test]
    fn code_keeps_its_spaces_and_empty_lines() {
        let text = "  let x;\n\nlong line";
        insta::assert_snapshot!(show(text, code(text, 5)), @"
        [  let]
        [ x;]
        []
        [long ]
        [line]
        ");
    }
}
