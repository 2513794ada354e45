//! A Markdown table: boxed, or one line per cell if there are too many columns for the width.

use std::iter::repeat_n;

use anstyle::Style;
use pulldown_cmark::Alignment;

use super::page::Page;
use super::styled::Styled;
use super::{width, wrap};

/// Narrower cells would break nearly every word.
const MIN_CELL_COLUMNS: usize = 4;

/// A table without room repeats its headings in every row, cut to this width.
const MAX_REPEATED_HEADING_COLUMNS: usize = 16;

const DIM: Style = Style::new().dimmed();

/// A table while it is parsed, cell by cell. The first row is the heading.
pub(super) struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<Styled>>,
}

impl Table {
    /// A table without rows.
    pub(super) fn new(alignments: Vec<Alignment>) -> Self {
        Self { alignments, rows: Vec::new() }
    }

    /// Starts the next row.
    pub(super) fn start_row(&mut self) {
        self.rows.push(Vec::new());
    }

    /// Appends a cell to the row.
    pub(super) fn push_cell(&mut self, cell: Styled) {
        if let Some(row) = self.rows.last_mut() {
            row.push(cell);
        }
    }

    /// Writes the table, as wide as the page has room for.
    pub(super) fn write_to(&self, page: &mut Page) {
        let lines_and_padding = 3 * self.alignments.len() + 1;
        let room = page.room().saturating_sub(lines_and_padding);
        if room < MIN_CELL_COLUMNS * self.alignments.len() {
            self.write_cell_by_cell(page);
            return;
        }
        let columns = self.share(room);
        write_rule(page, &columns, ["┌", "┬", "┐"]);
        for (index, row) in self.rows.iter().enumerate() {
            if index == 1 {
                write_rule(page, &columns, ["├", "┼", "┤"]);
            }
            self.write_row(page, row, &columns);
        }
        write_rule(page, &columns, ["└", "┴", "┘"]);
    }

    /// The width of each column: what it needs, or for wide columns an equal share of the room.
    fn share(&self, room: usize) -> Vec<usize> {
        let mut needed = vec![1; self.alignments.len()];
        for row in &self.rows {
            for (column, cell) in needed.iter_mut().zip(row) {
                *column = width::of(cell.as_str()).max(*column);
            }
        }
        let total = |limit: usize| needed.iter().map(|&column| column.min(limit)).sum::<usize>();
        // Bisection finds the greatest limit whose total still fits.
        let (mut fits, mut too_wide) = (0, room + 1);
        while too_wide - fits > 1 {
            let middle = usize::midpoint(fits, too_wide);
            if total(middle) <= room {
                fits = middle;
            } else {
                too_wide = middle;
            }
        }
        let mut left = room - total(fits);
        let mut columns = needed;
        for column in &mut columns {
            if *column > fits {
                let extra = left.min(1);
                left -= extra;
                *column = fits + extra;
            }
        }
        columns
    }

    fn write_row(&self, page: &mut Page, row: &[Styled], columns: &[usize]) {
        let cells: Vec<_> =
            row.iter().zip(columns).map(|(cell, &columns)| wrap::prose(cell.as_str(), columns)).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0).max(1);
        for index in 0..height {
            let mut line = Styled::default();
            for (number, (&columns, alignment)) in columns.iter().zip(&self.alignments).enumerate() {
                let text = row.get(number).zip(cells.get(number).and_then(|lines| lines.get(index)));
                let used = text.map_or(0, |(cell, range)| width::of(&cell.as_str()[range.clone()]));
                let free = columns.saturating_sub(used);
                let before = match alignment {
                    Alignment::None | Alignment::Left => 0,
                    Alignment::Center => free / 2,
                    Alignment::Right => free,
                };
                line.push(if number == 0 { "│ " } else { " │ " }, DIM);
                line.push(&" ".repeat(before), Style::new());
                if let Some((cell, range)) = text {
                    line.push_part(cell, range.clone());
                }
                line.push(&" ".repeat(free - before), Style::new());
            }
            line.push(" │", DIM);
            page.line(&line, 0..line.as_str().len());
        }
    }

    fn write_cell_by_cell(&self, page: &mut Page) {
        let Some((headings, rows)) = self.rows.split_first() else { return };
        let headings: Vec<_> = headings
            .iter()
            .map(|heading| {
                let heading = heading.as_str();
                width::fit(heading, width::of(heading).min(MAX_REPEATED_HEADING_COLUMNS))
            })
            .collect();
        for row in rows {
            for (heading, cell) in headings.iter().zip(row).filter(|(_, cell)| !cell.as_str().is_empty()) {
                let mut line = Styled::default();
                line.push(heading, Style::new().bold());
                line.push(": ", DIM);
                line.push_part(cell, 0..cell.as_str().len());
                page.prose(&line);
            }
            page.end_block();
        }
    }
}

fn write_rule(page: &mut Page, columns: &[usize], [left, middle, right]: [&str; 3]) {
    let mut text = String::from(left);
    for (number, &columns) in columns.iter().enumerate() {
        text.push_str(if number == 0 { "" } else { middle });
        text.extend(repeat_n('─', columns + 2));
    }
    text.push_str(right);
    let mut line = Styled::default();
    line.push(&text, DIM);
    page.line(&line, 0..line.as_str().len());
}
