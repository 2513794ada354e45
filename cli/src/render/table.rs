//! Aligned columns that fit the terminal: some keep their width, some shrink.

use crate::terminal::paint::Paint;
use crate::terminal::width;

/// The space between columns.
const GAP: &str = "  ";

/// The least width of a shrinking column that would be left out otherwise: a word or two.
const LEAST_COLUMNS: usize = 10;

/// How spare an extra column is: it goes first, and comes only if every other column has room.
const EXTRA: u8 = u8::MAX;

pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

pub(crate) struct Column {
    title: &'static str,
    shrinking: Option<Shrinking>,
    right: bool,
    /// Left out if there is no room, highest first; 0 stays.
    spare: u8,
}

/// How narrow a column may be.
#[derive(Clone, Copy)]
struct Shrinking {
    /// Beside columns that may be left out.
    least: usize,
    /// Beside an extra column.
    roomy: usize,
}

impl Column {
    pub(crate) fn fixed(title: &'static str) -> Column {
        Column { title, shrinking: None, right: false, spare: 0 }
    }

    pub(crate) fn shrinking(title: &'static str, least: usize) -> Column {
        Column { shrinking: Some(Shrinking { least, roomy: least }), ..Column::fixed(title) }
    }

    pub(crate) fn right(title: &'static str) -> Column {
        Column { right: true, ..Column::fixed(title) }
    }

    /// Sets how wide a shrinking column must be before an extra one is added.
    pub(crate) fn roomy(self, roomy: usize) -> Column {
        Column { shrinking: self.shrinking.map(|shrinking| Shrinking { roomy, ..shrinking }), ..self }
    }

    /// Sets how soon the column may be left out.
    pub(crate) fn spare(self, spare: u8) -> Column {
        Column { spare, ..self }
    }

    /// Only where there is plenty of room.
    pub(crate) fn extra(self) -> Column {
        self.spare(EXTRA)
    }
}

/// Clean text with its width, and how it is painted once that of the column is known.
pub(crate) struct Cell {
    text: String,
    columns: usize,
    brush: fn(Paint, &str) -> String,
}

impl Cell {
    pub(crate) fn new(text: impl Into<String>, brush: fn(Paint, &str) -> String) -> Cell {
        let text = text.into();
        Cell { columns: width::of(&text), text, brush }
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
        let (used, widths) = self.layout(columns);
        let mut out = String::new();
        let titles = used
            .iter()
            .zip(&widths)
            .map(|(at, width)| paint.dim(&self.fit(*at, self.columns[*at].title, *width)));
        if self.columns.iter().any(|column| !column.title.is_empty()) {
            out.push_str(titles.collect::<Vec<_>>().join(GAP).trim_end());
            out.push('\n');
        }
        for row in &self.rows {
            for (number, (at, width)) in used.iter().zip(&widths).enumerate() {
                out.push_str(if number > 0 { GAP } else { "" });
                let text = self.fit(*at, &row[*at].text, *width);
                out.push_str(&(if paint.colour { (row[*at].brush)(paint, &text) } else { text }));
            }
            out.truncate(out.trim_end_matches(' ').len());
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

    /// The columns that there is room for, and the width of each.
    fn layout(&self, columns: usize) -> (Vec<usize>, Vec<usize>) {
        let is_used = |at: &usize| self.rows.iter().any(|row| !row[*at].text.is_empty());
        let mut used: Vec<usize> = (0..self.columns.len()).filter(is_used).collect();
        let natural: Vec<usize> = (0..self.columns.len()).map(|at| self.natural_width(at)).collect();
        loop {
            let most_spare = used.iter().map(|at| self.columns[*at].spare).max().unwrap_or(0);
            let floor = |shrinking: Shrinking, _: u8| match most_spare {
                EXTRA => shrinking.roomy,
                _ => shrinking.least,
            };
            let (widths, fit) = self.widths(&used, &natural, columns, floor);
            if fit {
                return (used, widths);
            }
            // Before a shrinking column goes, it shrinks as far as it can be read.
            let last_floor = |shrinking: Shrinking, spare: u8| match spare == most_spare {
                true => shrinking.least.min(LEAST_COLUMNS),
                false => floor(shrinking, spare),
            };
            let (widths, fit) = self.widths(&used, &natural, columns, last_floor);
            if fit || most_spare == 0 {
                return (used, widths);
            }
            used.retain(|at| self.columns[*at].spare < most_spare);
        }
    }

    fn natural_width(&self, column: usize) -> usize {
        let cells = self.rows.iter().map(|row| row[column].columns);
        cells.chain([width::of(self.columns[column].title)]).max().unwrap_or(0)
    }

    /// Shrinks whichever column has most to give until all fit or none can; and whether they fit.
    fn widths(
        &self,
        used: &[usize],
        natural: &[usize],
        columns: usize,
        floor: impl Fn(Shrinking, u8) -> usize,
    ) -> (Vec<usize>, bool) {
        let mut widths: Vec<usize> = used.iter().map(|at| natural[*at]).collect();
        let least = |at: &usize| {
            let column = &self.columns[*at];
            column.shrinking.map_or(usize::MAX, |shrinking| floor(shrinking, column.spare))
        };
        let leasts: Vec<usize> = used.iter().map(least).collect();
        let room = columns.saturating_sub(GAP.len() * used.len().saturating_sub(1));
        while widths.iter().sum::<usize>() > room {
            let to_give = |at: &usize| widths[*at].saturating_sub(leasts[*at]);
            let Some(next) = (0..widths.len()).max_by_key(to_give).filter(|at| to_give(at) > 0) else {
                return (widths, false);
            };
            widths[next] -= 1;
        }
        (widths, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which columns there are at a width, and how wide the title is.
    fn layout_at(columns: usize) -> (Vec<&'static str>, usize) {
        let mut table = Table::new(vec![
            Column::fixed("ID"),
            Column::shrinking("TITLE", 20).roomy(30).spare(1),
            Column::shrinking("STATE", 5).spare(2),
            Column::right("TOKENS").extra(),
        ]);
        let cells = ["12345678", "a title that is longer than any terminal is wide, or nearly", "interrupted", "12.3M"];
        table.push(cells.map(|text| Cell::new(text, Paint::plain)).into());
        let (used, widths) = table.layout(columns);
        let title = used.iter().zip(&widths).find(|(at, _)| **at == 1).map_or(0, |(_, width)| *width);
        (used.iter().map(|at| table.columns[*at].title).collect(), title)
    }

    #[test]
    fn the_least_needed_column_goes_first_and_an_extra_one_leaves_room_for_others() {
        assert_eq!(layout_at(200), (vec!["ID", "TITLE", "STATE", "TOKENS"], 59));
        assert_eq!(
            layout_at(60),
            (vec!["ID", "TITLE", "STATE", "TOKENS"], 33),
            "the state shrinks as much as the title"
        );
        assert_eq!(layout_at(54), (vec!["ID", "TITLE", "STATE"], 31), "the title would be narrow beside the tokens");
        assert_eq!(layout_at(37), (vec!["ID", "TITLE", "STATE"], 20));
        assert_eq!(layout_at(36), (vec!["ID", "TITLE"], 26));
        assert_eq!(layout_at(20), (vec!["ID", "TITLE"], 10));
        assert_eq!(layout_at(19), (vec!["ID"], 0));
        assert_eq!(layout_at(3), (vec!["ID"], 0), "an id is never cut");
    }

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
