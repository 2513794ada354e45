//! Comma-separated values that no spreadsheet takes for a formula.

/// A table with its titles.
pub(in crate::commands) fn table(titles: &[String], rows: &[Vec<String>]) -> String {
    let mut text = line(titles);
    rows.iter().for_each(|row| text.push_str(&line(row)));
    text
}

fn line(cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| quoted(cell)).collect();
    format!("{}\r\n", cells.join(","))
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
