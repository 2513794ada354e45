//! Secrets in tables: the name of a column is in the header, and its values are in the rows after it.
//!
//! Three layouts are known: `INSERT INTO t (name, password) VALUES ('ada', '…')`, lines with commas, semicolons or tabs, and lines with
//! pipes whose header is underlined, as in Markdown. Each header and each row is read once.

use std::ops::Range;

use super::names::{self, Promise};
use super::values::{self, Strength, Written};

/// A longer line is no header. A stream keeps more than this of what it let go.
const MAX_HEADER_BYTES: usize = 512;

/// A longer row is none, or data: a header with a longer one ends there.
const MAX_ROW_BYTES: usize = 8 * 1024;

const MAX_COLUMNS: usize = 64;

/// A table, as far as its rows fit its header.
pub(super) struct Table {
    /// Where its header starts.
    pub(super) start: usize,
    /// Where the last row ends that was read.
    pub(super) end: usize,
    pub(super) values: Vec<Cell>,
    /// More text could bring more rows.
    pub(super) is_open: bool,
    /// Where the row starts that the text ends in.
    pub(super) open_row: Option<usize>,
}

/// A value that its column makes a secret.
pub(super) struct Cell {
    pub(super) promise: Promise,
    pub(super) span: Range<usize>,
}

/// A column of secrets.
struct Column {
    index: usize,
    promise: Promise,
    /// "pass" counts what passed, too.
    is_verb: bool,
}

/// The table whose header has this name. The number is how far names were judged: none before it has to be judged again.
pub(super) fn at(text: &str, name: &Range<usize>) -> (usize, Option<Table>) {
    let bytes = text.as_bytes();
    let after = name.end + bytes[name.end..].iter().take(MAX_COLUMNS).take_while(|byte| is_around_name(**byte)).count();
    match bytes.get(after) {
        Some(b'|') => lines(text, name),
        // Most names are words of sentences and of code.
        _ if !starts_cell(&bytes[..name.start]) => (name.end, None),
        Some(b',') if open_parenthesis(bytes, name.start).is_some() => inserted(text, name),
        Some(b')') => inserted(text, name),
        Some(b',' | b';' | b'\t' | b'\r' | b'\n' | b'\\') | None => lines(text, name),
        Some(_) => (name.end, None),
    }
}

/// Whether a cell starts after this text, or after the quote and the spaces at its end.
fn starts_cell(before: &[u8]) -> bool {
    const MOST: usize = 8;
    let length = before.iter().rev().take(MOST).take_while(|byte| is_around_name(**byte) || **byte == b'[').count();
    let (before, around) = before.split_at(before.len() - length);
    matches!(before.last(), None | Some(b'(' | b',' | b';' | b'|' | b'\t' | b'\n'))
        || before.ends_with(b"\\n")
        || around.contains(&b'"')
}

/// What may be between a name and the end of its cell.
fn is_around_name(byte: u8) -> bool {
    matches!(byte, b' ' | b'"' | b'\'' | b'`' | b'*' | b']')
}

/// The parenthesis before the names of columns.
fn open_parenthesis(bytes: &[u8], at: usize) -> Option<usize> {
    let before = &bytes[at.saturating_sub(MAX_HEADER_BYTES)..at];
    let length = before.iter().rev().take_while(|byte| is_in_list(**byte)).count();
    let open = at.checked_sub(length + 1)?;
    (bytes[open] == b'(').then_some(open)
}

fn is_in_list(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte.is_ascii_whitespace() || b"_-.,\"'`[]\\".contains(&byte) || !byte.is_ascii()
}

/// `(name, password) VALUES ('ada', '…'), …`
fn inserted(text: &str, name: &Range<usize>) -> (usize, Option<Table>) {
    let bytes = text.as_bytes();
    let rest = &bytes[name.end..bytes.len().min(name.end + MAX_HEADER_BYTES)];
    let close = name.end + rest.iter().take_while(|byte| is_in_list(**byte)).count();
    let values = skip_space(bytes, close + 1);
    let says_values = bytes.get(values..values + 6).is_some_and(|word| word.eq_ignore_ascii_case(b"values"));
    if bytes.get(close) != Some(&b')') || !says_values {
        return (close, None);
    }
    let open = open_parenthesis(bytes, name.start).filter(|open| close - open <= MAX_HEADER_BYTES);
    let Some(open) = open else { return (close, None) };
    let columns = columns(text[open + 1..close].split(','));
    if columns.is_empty() {
        return (close, None);
    }
    let count = text[open + 1..close].split(',').count();
    let mut table = Table { start: open, end: close, values: Vec::new(), is_open: false, open_row: None };
    let mut at = skip_space(bytes, values + 6);
    while bytes.get(at) == Some(&b'(') {
        let row = Tuple::read(bytes, at);
        if !row.is_closed {
            table.open_row = (row.end == bytes.len()).then_some(at);
            break;
        }
        if row.texts.len() != count {
            break;
        }
        table.take(text, &columns, &row.texts, Written::Quoted);
        table.end = row.end;
        at = skip_space(bytes, row.end);
        if bytes.get(at) == Some(&b',') {
            at = skip_space(bytes, at + 1);
        }
    }
    table.is_open = at >= bytes.len() || table.open_row.is_some();
    (table.end, Some(table))
}

/// Where a number or a call has its text.
const NO_TEXT: Range<usize> = 0..0;

/// The values in one pair of parentheses.
struct Tuple {
    /// For each value the text in its quotes; nothing for numbers and calls.
    texts: Vec<Range<usize>>,
    end: usize,
    is_closed: bool,
}

impl Tuple {
    fn read(bytes: &[u8], open: usize) -> Tuple {
        let limit = bytes.len().min(open + MAX_ROW_BYTES);
        let mut tuple = Tuple { texts: vec![NO_TEXT], end: limit, is_closed: false };
        let (mut at, mut depth) = (open + 1, 1);
        while at < limit && tuple.texts.len() <= MAX_COLUMNS {
            match bytes[at] {
                b'\'' | b'"' => {
                    let end = quote_end(&bytes[..limit], at);
                    if let (1, Some(text)) = (depth, tuple.texts.last_mut()) {
                        *text = at + 1..end;
                    }
                    at = end;
                }
                b'(' => depth += 1,
                b')' => depth -= 1,
                b',' if depth == 1 => tuple.texts.push(NO_TEXT),
                _ => {}
            }
            at += 1;
            if depth == 0 {
                return Tuple { end: at, is_closed: true, ..tuple };
            }
        }
        tuple
    }
}

/// Where a text of SQL ends: a quote in it is doubled, or has a backslash before it.
fn quote_end(bytes: &[u8], quote: usize) -> usize {
    let mut at = quote + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            byte if byte == bytes[quote] && bytes.get(at + 1) == Some(&byte) => at += 1,
            byte if byte == bytes[quote] => return at,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

/// How the lines of a table end: as they are, or in JSON within JSON.
#[derive(Clone, Copy)]
enum Break {
    Real,
    Escaped,
}

impl Break {
    /// The line that starts here, and where the next one starts: nowhere if the text ends first.
    fn line(self, text: &str, at: usize) -> (Range<usize>, Option<usize>) {
        let rest = &text.as_bytes()[at..text.len().min(at + MAX_ROW_BYTES)];
        let (end, length) = match self {
            Break::Real => (memchr::memchr(b'\n', rest), 1),
            Break::Escaped => (memchr::memmem::find(rest, b"\\n"), 2),
        };
        let until = text.floor_char_boundary(at + end.unwrap_or(rest.len()));
        let line = match self {
            Break::Real => text.as_bytes()[at..until].strip_suffix(b"\r").map_or(until, |line| at + line.len()),
            Break::Escaped => text.as_bytes()[at..until].strip_suffix(b"\\r").map_or(until, |line| at + line.len()),
        };
        (at..line, end.map(|_| until + length))
    }
}

/// A header in a line of its own, and lines with as many cells.
fn lines(text: &str, name: &Range<usize>) -> (usize, Option<Table>) {
    let (header, rows, ends) = match header_line(text, name) {
        Ok(header) => header,
        Err(end) => return (end, None),
    };
    let Some(layout) = Layout::of(&text[header.clone()]) else { return (header.end, None) };
    let cells = layout.cells(text, &header);
    let is_name = |cell: &Range<usize>| {
        let cell = &text[cell.clone()];
        !cell.trim().is_empty() && cell.trim().len() <= names::MAX_NAME_BYTES && cell.split_whitespace().count() <= 4
    };
    let columns = columns(cells.iter().map(|cell| &text[cell.clone()]));
    let is_header = (2..=MAX_COLUMNS).contains(&cells.len()) && cells.iter().all(is_name) && !columns.is_empty();
    let (true, Some(mut at)) = (is_header, rows) else { return (header.end, None) };
    let mut table = Table { start: header.start, end: header.end, values: Vec::new(), is_open: true, open_row: None };
    if layout == Layout::Pipes {
        let (line, next) = ends.line(text, at);
        let is_rule = text[line.clone()].contains("--") && text[line].bytes().all(|byte| b"-:|+= \t".contains(&byte));
        match next {
            Some(next) if is_rule => at = next,
            _ => {
                table.is_open = next.is_none();
                return (header.end, Some(table));
            }
        }
    }
    loop {
        let (line, next) = ends.line(text, at);
        let is_last = next.is_none();
        let row = layout.cells(text, &line);
        if is_last && text.len() - at < MAX_ROW_BYTES {
            table.open_row = Some(at);
        }
        if row.len() != cells.len() {
            table.is_open = is_last;
            break;
        }
        table.take(text, &columns, &row, Written::Bare);
        table.end = line.end;
        match next {
            Some(next) => at = next,
            None => break,
        }
    }
    (table.end, Some(table))
}

/// The line around a name if it can be a header: where it is, where the next one starts, and how lines end. If it cannot, up to where
/// no other name has to be judged.
fn header_line(text: &str, name: &Range<usize>) -> Result<(Range<usize>, Option<usize>, Break), usize> {
    let bytes = text.as_bytes();
    let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || b" _-.,;|\t\"'`*#()".contains(byte) || !byte.is_ascii();
    let before = &bytes[name.start.saturating_sub(MAX_HEADER_BYTES)..name.start];
    let mut start = name.start - before.iter().rev().take_while(is_part).count();
    let after = &bytes[name.end..bytes.len().min(name.end + MAX_HEADER_BYTES)];
    let end = name.end + after.iter().take_while(is_part).count();
    let (ends, length) = match &bytes[end..] {
        [] => (Break::Real, 0),
        [b'\n', ..] => (Break::Real, 1),
        [b'\r', b'\n', ..] => (Break::Real, 2),
        [b'\\', b'n', ..] => (Break::Escaped, 2),
        [b'\\', b'r', b'\\', b'n', ..] => (Break::Escaped, 4),
        _ => return Err(end),
    };
    let is_start = match ends {
        Break::Real => start == 0 || bytes[start - 1] == b'\n',
        // In JSON, the first line follows a quote, and another one an escaped line break.
        Break::Escaped => {
            let quote = memchr::memrchr(b'"', &bytes[start..end]).map(|at| start + at + 1);
            let is_after_break = quote.is_none() && start > 0 && bytes[start - 1..].starts_with(b"\\n");
            start = quote.unwrap_or(start + usize::from(is_after_break));
            quote.is_some() || is_after_break || start == 0
        }
    };
    if !is_start || start > name.start || end - start > MAX_HEADER_BYTES {
        return Err(end);
    }
    Ok((start..end, (length > 0).then_some(end + length), ends))
}

/// What is between the cells of a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    Pipes,
    Separated(u8),
}

impl Layout {
    fn of(header: &str) -> Option<Layout> {
        let signs = [b'|', b'\t', b';', b','];
        let sign = signs.into_iter().find(|sign| header.as_bytes().contains(sign))?;
        Some(if sign == b'|' { Layout::Pipes } else { Layout::Separated(sign) })
    }

    /// The cells of a line, without their quotes and the spaces around them.
    fn cells(self, text: &str, line: &Range<usize>) -> Vec<Range<usize>> {
        let bytes = text.as_bytes();
        let sign = if let Layout::Separated(sign) = self { sign } else { b'|' };
        let mut cells = Vec::new();
        let (mut start, mut at) = (line.start, line.start);
        while at < line.end && cells.len() <= MAX_COLUMNS {
            // A quoted cell may have the sign in it.
            if at == start && bytes[at] == b'"' && self != Layout::Pipes {
                at = quote_end(&bytes[..line.end], at);
            } else if bytes[at] == sign {
                cells.push(trimmed(text, start..at));
                start = at + 1;
            }
            at += 1;
        }
        cells.push(trimmed(text, start..line.end));
        if self == Layout::Pipes {
            // The pipes at both ends of a line.
            if cells.first().is_some_and(Range::is_empty) {
                cells.remove(0);
            }
            if cells.last().is_some_and(Range::is_empty) {
                cells.pop();
            }
        }
        cells
    }
}

/// A cell without the spaces, quotes and marks of code around it.
fn trimmed(text: &str, cell: Range<usize>) -> Range<usize> {
    let inside = text[cell.clone()].trim();
    let start = cell.start + (text[cell.clone()].len() - text[cell].trim_start().len());
    let is_quoted = |sign: char| inside.len() >= 2 && inside.starts_with(sign) && inside.ends_with(sign);
    let quotes = usize::from(['"', '\'', '`'].into_iter().any(is_quoted));
    start + quotes..start + inside.len() - quotes
}

fn columns<'n>(names: impl Iterator<Item = &'n str>) -> Vec<Column> {
    let column = |(index, name): (usize, &str)| {
        let name = name.trim_matches(|c: char| !c.is_alphanumeric());
        let ssn =
            || names::is_ssn(name).then_some(Promise { kind: "ssn", strength: Strength::Strong, of_several: false });
        names::promise(name)
            .or_else(ssn)
            .map(|promise| Column { index, promise, is_verb: names::is_verb(name) })
    };
    names.enumerate().filter_map(column).collect()
}

impl Table {
    /// Takes what can be a secret from a row.
    fn take(&mut self, text: &str, columns: &[Column], row: &[Range<usize>], written: Written) {
        for column in columns {
            let Some(span) = row.get(column.index).cloned() else { continue };
            let value = &text[span.clone()];
            if column.promise.kind == "ssn" {
                if values::is_ssn(value) {
                    self.values.push(Cell { promise: column.promise, span });
                }
                continue;
            }
            let is_count = column.is_verb && value.bytes().all(|byte| byte.is_ascii_digit());
            let is_text = written == Written::Bare && (value.contains(char::is_whitespace) || values::is_words(value));
            if !is_count && !is_text && values::is_plausible(value, column.promise.strength, written) {
                self.values.push(Cell { promise: column.promise, span });
            }
        }
    }
}

fn skip_space(bytes: &[u8], at: usize) -> usize {
    const MOST: usize = 64;
    let mut end = at.min(bytes.len());
    while end < bytes.len() && end - at < MOST {
        match &bytes[end..] {
            [byte, ..] if byte.is_ascii_whitespace() => end += 1,
            [b'\\', b'n' | b'r' | b't', ..] => end += 2,
            _ => break,
        }
    }
    end
}
