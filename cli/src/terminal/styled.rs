//! Clean text with its styles. All rendered Markdown is cleaned here.

use std::ops::Range;

use anstyle::Style;

use super::clean;

/// Text and the styles of its runs.
#[derive(Debug, Default)]
pub(super) struct Styled {
    text: String,
    runs: Vec<Run>,
}

/// A style, from the end of the previous run to `end` (in bytes).
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// Where the run ends.
    pub(super) end: usize,
    /// The style of its text.
    pub(super) style: Style,
}

impl Styled {
    /// Text that keeps its line ends, in one style.
    pub(super) fn lines(source: &str, style: Style) -> Self {
        let text = clean::text(source).into_owned();
        let runs = vec![Run { end: text.len(), style }];
        Self { text, runs }
    }

    /// Replaces the styles, if the new ones cover the whole text.
    pub(super) fn paint(&mut self, runs: Vec<Run>) {
        if runs.last().is_some_and(|last| last.end == self.text.len()) {
            self.runs = runs;
        }
    }

    /// Appends text of one line.
    pub(super) fn push(&mut self, source: &str, style: Style) {
        self.text.push_str(&clean::line(source));
        self.extend_style(style);
    }

    /// Appends an end of line.
    pub(super) fn push_line_end(&mut self) {
        self.text.push('\n');
        self.extend_style(Style::new());
    }

    /// Appends a part of another text with its styles.
    pub(super) fn push_part(&mut self, other: &Self, range: Range<usize>) {
        for (piece, style) in other.pieces(range) {
            self.text.push_str(piece);
            self.extend_style(style);
        }
    }

    /// The text alone.
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// The pieces of a range, each in one style.
    pub(super) fn pieces(&self, range: Range<usize>) -> impl Iterator<Item = (&str, Style)> {
        let first = self.runs.partition_point(|run| run.end <= range.start);
        self.runs[first..].iter().scan(range.start, move |start, run| {
            let end = run.end.min(range.end);
            let piece = self.text.get(*start..end)?;
            *start = end;
            (!piece.is_empty()).then_some((piece, run.style))
        })
    }

    /// Keeps every run longer than nothing, so that an empty piece means the end of a range.
    fn extend_style(&mut self, style: Style) {
        let end = self.text.len();
        match self.runs.last_mut() {
            Some(last) if last.style == style || last.end == end => last.end = end,
            _ => self.runs.push(Run { end, style }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_keeps_the_styles_it_cuts_through() {
        let bold = Style::new().bold();
        let mut whole = Styled::default();
        whole.push("plain ", Style::new());
        whole.push("bold", bold);
        whole.push("", Style::new());
        whole.push("\u{1b}", Style::new());
        let mut part = Styled::default();
        part.push_part(&whole, 3..8);
        assert_eq!(part.pieces(0..5).collect::<Vec<_>>(), [("in ", Style::new()), ("bo", bold)]);
        assert_eq!(whole.pieces(0..13).map(|(piece, _)| piece).collect::<String>(), "plain bold␛");
    }
}
