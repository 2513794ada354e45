//! The lines written so far and the margin of the next one: quote bars, list markers, indents.
//!
//! The margin has at most [`MAX_LEVELS`] levels and takes at most half of the line; deeper levels replace the innermost.

use std::ops::Range;

use anstyle::Style;

use super::styled::Styled;
use super::{Look, MIN_COLUMNS, width, wrap};

/// Each level takes room from the text.
const MAX_LEVELS: usize = 12;

const DIM: Style = Style::new().dimmed();

/// Finished lines, and the margin of the next one.
pub(super) struct Page {
    out: String,
    columns: usize,
    code_columns: usize,
    colour: bool,
    margins: Vec<Margin>,
    /// For each open level, the margins that it replaces.
    displaced: Vec<Vec<Margin>>,
    gap: bool,
}

/// What one level puts before each of its lines, always of the same width.
pub(super) struct Margin {
    /// Shown once, before the first line.
    first: Option<String>,
    rest: String,
    columns: usize,
}

impl Margin {
    /// A marker before the first line, and space below it.
    pub(super) fn hanging(marker: String) -> Self {
        let columns = width::of(&marker);
        Self { first: Some(marker), rest: " ".repeat(columns), columns }
    }

    /// The same text before every line.
    pub(super) fn bar(bar: &str) -> Self {
        Self { first: None, rest: bar.to_owned(), columns: width::of(bar) }
    }

    /// The widest margin that fits on every page.
    pub(super) const MAX_COLUMNS: usize = MIN_COLUMNS / 2;
}

impl Page {
    /// An empty page.
    pub(super) fn new(look: &Look) -> Self {
        Self {
            out: String::new(),
            columns: look.width.max(MIN_COLUMNS),
            code_columns: look.code.max(look.width).max(MIN_COLUMNS),
            colour: look.colour,
            margins: Vec::new(),
            displaced: Vec::new(),
            gap: false,
        }
    }

    /// Opens a level. An empty line due from [`Self::end_block`] comes before it.
    pub(super) fn open(&mut self, margin: Margin) {
        self.write_gap();
        let mut displaced = Vec::new();
        while self.margins.len() >= MAX_LEVELS || self.indent() + margin.columns > self.columns / 2 {
            let Some(mut outer) = self.margins.pop() else { break };
            // It returns when this level closes, too late for its marker.
            outer.first = None;
            displaced.push(outer);
        }
        self.displaced.push(displaced);
        self.margins.push(margin);
    }

    /// Closes the last level. A marker without text gets its own line.
    pub(super) fn close(&mut self) {
        if self.margins.last().is_some_and(|margin| margin.first.is_some()) {
            self.line(&Styled::default(), 0..0);
        }
        self.margins.pop();
        let displaced = self.displaced.pop().unwrap_or_default();
        self.margins.extend(displaced.into_iter().rev());
    }

    /// The columns left for text.
    pub(super) fn room(&self) -> usize {
        self.columns - self.indent()
    }

    /// Writes prose, wrapped between words.
    pub(super) fn prose(&mut self, text: &Styled) {
        for range in wrap::prose(text.as_str(), self.room()) {
            self.line(text, range);
        }
    }

    /// Writes code, cut at the edge.
    pub(super) fn code(&mut self, text: &Styled) {
        for range in wrap::code(text.as_str(), self.code_columns - self.indent()) {
            self.line(text, range);
        }
    }

    /// Writes one line, unwrapped.
    pub(super) fn line(&mut self, text: &Styled, range: Range<usize>) {
        self.write_gap();
        let margin: String = self
            .margins
            .iter_mut()
            .map(|margin| margin.first.take().unwrap_or_else(|| margin.rest.clone()))
            .collect();
        self.write(if range.is_empty() { margin.trim_end() } else { &margin }, DIM);
        for (piece, style) in text.pieces(range) {
            self.write(piece, style);
        }
        self.out.push('\n');
    }

    /// Ends a block: an empty line comes before the next line.
    pub(super) fn end_block(&mut self) {
        self.gap = !self.out.is_empty();
    }

    /// All lines.
    pub(super) fn finish(self) -> String {
        self.out
    }

    fn indent(&self) -> usize {
        self.margins.iter().map(|margin| margin.columns).sum()
    }

    fn write_gap(&mut self) {
        if std::mem::take(&mut self.gap) {
            let margin: String = self.margins.iter().map(|margin| margin.rest.as_str()).collect();
            self.write(margin.trim_end(), DIM);
            self.out.push('\n');
        }
    }

    fn write(&mut self, text: &str, style: Style) {
        if self.colour && !style.is_plain() && !text.trim_start().is_empty() {
            self.out.push_str(&format!("{style}{text}{style:#}"));
        } else {
            self.out.push_str(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(page: &mut Page, text: &str) {
        page.prose(&Styled::lines(text, Style::new()));
    }

    #[test]
    fn a_level_without_room_displaces_others_until_it_closes() {
        let mut page = Page::new(&Look { width: 24, code: 24, colour: false });
        for bar in ["a ", "b ", "c "] {
            page.open(Margin::bar(bar));
        }
        write(&mut page, "before");
        page.open(Margin::hanging("1234567. ".to_owned()));
        write(&mut page, "inside of it");
        page.close();
        write(&mut page, "after");
        insta::assert_snapshot!(page.finish(), @"
        a b c before
        a 1234567. inside of it
        a b c after
        ");
    }

    #[test]
    fn levels_are_limited_on_wide_pages_too() {
        let mut page = Page::new(&Look { width: 200, code: 200, colour: false });
        for level in 0..50 {
            page.open(Margin::hanging(format!("{level}. ")));
        }
        write(&mut page, "deep");
        insta::assert_snapshot!(page.finish(), @"0. 1. 2. 3. 4. 5. 6. 7. 8. 9. 10. 49. deep");
    }

    #[test]
    fn a_marker_without_text_is_shown_and_an_empty_block_is_not() {
        let mut page = Page::new(&Look { width: 80, code: 80, colour: false });
        page.open(Margin::bar("│ "));
        page.end_block();
        page.open(Margin::hanging("• ".to_owned()));
        page.close();
        page.close();
        insta::assert_snapshot!(page.finish(), @"│ •");
    }
}
