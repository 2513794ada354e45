//! Aligned columns that fit the terminal: some keep their width, some shrink.

use crate::terminal::paint::Paint;
use crate::terminal::width;

/// The space between columns.
const GAP: &str = "  ";

/// The least width of a shrinking column when no column can be left out: a few letters and `…`.
const LEAST_COLUMNS: usize = 4;

pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

pub(crate) struct Column {
    title: &'static str,
    /// The least width, if the column shrinks.
    least: Option<usize>,
    right: bool,
    /// Left out if there is no room, highest first; 0 stays.
    spare: u8,
}

impl Column {
    pub(crate) fn fixed(title: &'static str) -> Column {
        Column { title, least: None, right: false, spare: 0 }
    }

    pub(crate) fn shrinking(title: &'static str, least: usize) -> Column {
        Column { title, least: Some(least), right: false, spare: 0 }
    }

    pub(crate) fn right(title: &'static str) -> Column {
        Column { title, least: None, right: true, spare: 0 }
    }

    /// Sets how soon the column may be left out.
    pub(crate) fn spare(self, spare: u8) -> Column {
        Column { spare, ..self }
    }
}

/// Clean text, and how it is painted once its width is known.
pub(crate) struct Cell {
    text: String,
    brush: fn(Paint, &str) -> String,
}

impl Cell {
    pub(crate) fn new(text: impl Into<String>, brush: fn(Paint, &str) -> String) -> Cell {
        Cell { text: text.into(), brush }
    }
}

impl Table {
    pub(crate) fn new(columns: Vec<Column>) -> Table {
        Table { columns, rows: Vec::new() }
    }

    pub(crate) fn push(&mut self, row: Vec<Cell>) {
        self.rows.push(row);
    }

    /// The lines of the table. A column that is empty in every row is left out.
    pub(crate) fn render(&self, columns: usize, paint: Paint) -> String {
        let mut used: Vec<usize> =
            (0..self.columns.len()).filter(|at| self.rows.iter().any(|row| !row[*at].text.is_empty())).collect();
        let mut widths = self.widths(&used, columns);
        let too_wide =
            |widths: &[usize]| widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1) > columns;
        while too_wide(&widths) {
            let sparest = (0..used.len()).filter(|at| self.columns[used[*at]].spare > 0);
            let Some(sparest) = sparest.max_by_key(|at| self.columns[used[*at]].spare) else {
                widths = self.squeezed(widths, &used, columns, |_| LEAST_COLUMNS);
                break;
            };
            used.remove(sparest);
            widths = self.widths(&used, columns);
        }
        let mut out = String::new();
        let titles = used
            .iter()
            .zip(&widths)
            .map(|(at, width)| paint.dim(&self.fit(*at, self.columns[*at].title, *width)));
        out.push_str(titles.collect::<Vec<_>>().join(GAP).trim_end());
        out.push('\n');
        for row in &self.rows {
            let cells = used
                .iter()
                .zip(&widths)
                .map(|(at, width)| (row[*at].brush)(paint, &self.fit(*at, &row[*at].text, *width)));
            out.push_str(cells.collect::<Vec<_>>().join(GAP).trim_end());
            out.push('\n');
        }
        out
    }

    fn fit(&self, column: usize, text: &str, columns: usize) -> String {
        if self.columns[column].right {
            format!("{}{text}", " ".repeat(columns.saturating_sub(width::of(text))))
        } else {
            width::fit(text, columns)
        }
    }

    fn widths(&self, used: &[usize], columns: usize) -> Vec<usize> {
        let natural = |at: &usize| {
            let cells = self.rows.iter().map(|row| width::of(&row[*at].text));
            cells.chain([width::of(self.columns[*at].title)]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = used.iter().map(natural).collect();
        self.squeezed(widths, used, columns, |least| least)
    }

    /// Shrinks the widest shrinking column until all fit or none can shrink.
    fn squeezed(
        &self,
        mut widths: Vec<usize>,
        used: &[usize],
        columns: usize,
        floor: fn(usize) -> usize,
    ) -> Vec<usize> {
        let room = columns.saturating_sub(GAP.len() * used.len().saturating_sub(1));
        while widths.iter().sum::<usize>() > room {
            let least = |at: usize| self.columns[used[at]].least.map(floor);
            let can = (0..widths.len()).filter(|at| least(*at).is_some_and(|least| widths[*at] > least));
            let Some(widest) = can.max_by_key(|at| widths[*at]) else { break };
            widths[widest] -= 1;
        }
        widths
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align_and_the_widest_shrinks() {
        let mut table = Table::new(vec![
            Column::fixed("ID"),
            Column::shrinking("TITLE", 5),
            Column::right("N"),
            Column::fixed("NONE"),
        ]);
        for (id, title, n) in [("a", "a rather long title", "7"), ("bb", "短い", "1234")] {
            table.push([id, title, n, ""].map(|text| Cell::new(text, Paint::plain)).into());
        }
        insta::assert_snapshot!(table.render(24, Paint { colour: false }), @"
        ID  TITLE              N
        a   a rather long…     7
        bb  短い            1234
        ");
    }
}
