//! Comma-separated values that no spreadsheet takes for a formula.

use std::borrow::Cow;
use std::io::Write;

use crate::ctx::Ctx;
use crate::failure::Failure;
use crate::terminal::clean;

/// Prints a table with its titles. A program gets names as they are; on a terminal they are cleaned.
pub(in crate::commands) fn print(titles: &[String], rows: &[Vec<String>], ctx: &mut Ctx) -> Result<(), Failure> {
    let shown: fn(&str) -> Cow<'_, str> = if ctx.on_terminal { clean::line } else { |cell| Cow::Borrowed(cell) };
    for cells in std::iter::once(titles).chain(rows.iter().map(Vec::as_slice)) {
        let cells: Vec<String> = cells.iter().map(|cell| quoted(&shown(cell))).collect();
        write!(ctx.out, "{}\r\n", cells.join(","))?;
    }
    Ok(())
}

/// A cell. One that could be read as a formula begins with an apostrophe, unless it is a number.
fn quoted(cell: &str) -> String {
    let is_formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r']) && cell.parse::<f64>().is_err();
    let cell = if is_formula { format!("'{cell}") } else { cell.to_owned() };
    if cell.contains([',', '"', '\n', '\r']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_never_a_formula() {
        for (cell, expected) in [
            ("a", "a"),
            ("a,b", "\"a,b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("=1+1", "'=1+1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("-2", "-2"),
            ("-2+cmd|' /C calc'!A0", "'-2+cmd|' /C calc'!A0"),
            ("+x,\ny", "\"'+x,\ny\""),
            ("\t=1", "'\t=1"),
        ] {
            assert_eq!(quoted(cell), expected, "{cell}");
        }
    }
}
