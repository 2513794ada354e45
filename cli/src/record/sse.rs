//! Server-sent events among the lines of the input: the data lines of one event are joined with LF.
//!
//! ```text
//! data: {"user":      ┐
//! id: 7               │  other fields and comments do not end the event
//! data:  "When?"}     ┘  complete JSON: returned with its last line, before the blank line that ends the event
//! ```
//!
//! Any other line is returned as it is, as in a file of JSON lines.

use crate::record::ingest::LINE_LIMIT_BYTES;

/// The names of fields without data; a comment has an empty name.
const OTHER_FIELDS: [&[u8]; 4] = [b"", b"event", b"id", b"retry"];

/// No field name is longer.
pub(crate) const FIELD_HEAD_BYTES: usize = 16;

/// An event whose data is incomplete.
#[derive(Default)]
pub(crate) struct Events {
    numbers: Vec<u64>,
    /// The joined data.
    text: Vec<u8>,
    json: Nesting,
}

/// The text of a line or an event, and the numbers of its lines; empty for fields without data.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Joined {
    pub(crate) numbers: Vec<u64>,
    pub(crate) text: Vec<u8>,
}

/// The role of a line in a stream of events.
enum Field<'a> {
    Data(&'a [u8]),
    /// A field without data, or a comment.
    Empty,
    Blank,
    /// Not part of an event.
    Other,
}

/// The nesting depth in JSON.
#[derive(Default)]
struct Nesting {
    depth: u64,
    is_in_string: bool,
    /// The last byte was a backslash in a string.
    is_escaped: bool,
}

/// Whether a line is a field or a comment of server-sent events; CR ends such a line too.
pub(crate) fn is_field(line: &[u8]) -> bool {
    let head = line.get(..FIELD_HEAD_BYTES).unwrap_or(line);
    matches!(Field::of(head), Field::Data(_) | Field::Empty)
}

impl Events {
    /// Adds a line of the input and returns what is complete now.
    pub(crate) fn add(&mut self, number: u64, line: Vec<u8>) -> Vec<Joined> {
        let value = match Field::of(line.trim_ascii_start()) {
            Field::Data(value) => value,
            Field::Blank => return self.end().into_iter().collect(),
            Field::Empty => return vec![Joined { numbers: vec![number], text: Vec::new() }],
            Field::Other => {
                return self.end().into_iter().chain([Joined { numbers: vec![number], text: line }]).collect();
            }
        };
        if self.numbers.is_empty() {
            self.json.read(value);
            if !self.json.is_open() {
                return vec![Joined { numbers: vec![number], text: value.to_vec() }];
            }
        } else {
            self.json.read(b"\n");
            self.json.read(value);
            self.text.push(b'\n');
        }
        self.text.extend_from_slice(value);
        self.numbers.push(number);
        // A text that is too long is refused later.
        let is_incomplete = self.json.is_open() && self.text.len() <= LINE_LIMIT_BYTES;
        if is_incomplete { Vec::new() } else { self.end().into_iter().collect() }
    }

    /// Ends the event and returns its data so far.
    pub(crate) fn end(&mut self) -> Option<Joined> {
        let Events { numbers, text, json: _ } = std::mem::take(self);
        (!numbers.is_empty()).then_some(Joined { numbers, text })
    }
}

impl Field<'_> {
    fn of(line: &[u8]) -> Field<'_> {
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let (name, value) = match line.iter().take(FIELD_HEAD_BYTES).position(|byte| *byte == b':') {
            Some(end) => line.split_at(end),
            None => (line, b":".as_slice()),
        };
        match name {
            b"data" => {
                let value = value.strip_prefix(b":").unwrap_or(value);
                Field::Data(value.strip_prefix(b" ").unwrap_or(value))
            }
            _ if line.trim_ascii_start().is_empty() => Field::Blank,
            _ if OTHER_FIELDS.contains(&name) => Field::Empty,
            _ => Field::Other,
        }
    }
}

impl Nesting {
    fn read(&mut self, json: &[u8]) {
        for byte in json {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' if self.is_in_string => self.is_escaped = true,
                b'"' => self.is_in_string = !self.is_in_string,
                b'{' | b'[' if !self.is_in_string => self.depth += 1,
                b'}' | b']' if !self.is_in_string => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }

    fn is_open(&self) -> bool {
        self.depth > 0 || self.is_in_string
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each text in the input, with the numbers of its lines.
    fn texts(input: &str) -> Vec<String> {
        let mut events = Events::default();
        let mut texts = Vec::new();
        for (at, line) in input.split_inclusive('\n').enumerate() {
            texts.extend(events.add(at as u64 + 1, line.as_bytes().to_vec()));
        }
        texts.extend(events.end());
        texts
            .iter()
            .map(|Joined { numbers, text }| format!("{numbers:?} {}", String::from_utf8_lossy(text).trim_end()))
            .collect()
    }

    #[test]
    fn the_lines_of_one_event_are_joined() {
        for (input, expected) in [
            ("data: {\"a\":1}\n\n", &["[1] {\"a\":1}"][..]),
            ("data: {\"a\":\ndata: 1}\n\n", &["[1, 2] {\"a\":\n1}"]),
            ("data:{\r\ndata:  \"a\":\r\ndata:1\r\ndata:}\r\n", &["[1, 2, 3, 4] {\n \"a\":\n1\n}"]),
            ("data: {\ndata\ndata: }\n", &["[1, 2, 3] {\n\n}"]),
            // Brackets in a string do not count, nor does an escaped quotation mark.
            ("data: {\"a\":\"}]\\\"\ndata: {[\"}\n", &["[1, 2] {\"a\":\"}]\\\"\n{[\"}"]),
            // Complete data needs no blank line.
            ("data: {}\ndata: {}\n", &["[1] {}", "[2] {}"]),
            (
                "data: {\n: still here\nid: 7\nevent: x\nretry\ndata: }\n",
                &["[2] ", "[3] ", "[4] ", "[5] ", "[1, 6] {\n}"],
            ),
            ("data: {\n\ndata: }\n", &["[1] {", "[3] }"]),
            ("data: {\n{\"user\": 1}\n", &["[1] {", "[2] {\"user\": 1}"]),
            ("data: {\"a\":", &["[1] {\"a\":"]),
            ("\u{FEFF}data: {\ndata: }", &["[1, 2] {\n}"]),
            ("data: [DONE]\n", &["[1] [DONE]"]),
            ("{\"data\": 1}\n\n \n[]\n", &["[1] {\"data\": 1}", "[4] []"]),
            ("database: {\ndatum\n", &["[1] database: {", "[2] datum"]),
        ] {
            assert_eq!(texts(input), expected, "{input:?}");
        }
    }
}
