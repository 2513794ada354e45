//! Server-sent events among the lines of the input: the lines that say the data of one event are joined with LF.
//!
//! ```text
//! data: {"user":      ┐
//! id: 7               │  fields beside the data and comments do not end it
//! data:  "When?"}     ┘  whole: heard with the last of its lines, before the blank line that ends it
//! ```
//!
//! Whatever is no field of an event is a line by itself, as in a file of JSON lines.

use crate::record::ingest::LINE_LIMIT_BYTES;

/// What an event has beside its data; a comment has no name.
const BESIDE: [&[u8]; 4] = [b"", b"event", b"id", b"retry"];

/// So much of a line tells whether it is a field: no name is longer.
pub(crate) const FIELD_HEAD_BYTES: usize = 16;

/// The event whose data is not whole yet.
#[derive(Default)]
pub(crate) struct Events {
    numbers: Vec<u64>,
    /// Its lines as one.
    text: Vec<u8>,
    json: Nesting,
}

/// What is heard at once, and the numbers of its lines.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Joined {
    pub(crate) numbers: Vec<u64>,
    pub(crate) text: Vec<u8>,
}

/// What a line is in a stream of events.
enum Field<'a> {
    Data(&'a [u8]),
    Beside,
    Blank,
    /// It belongs to no event.
    Other,
}

/// How deep in JSON one is.
#[derive(Default)]
struct Nesting {
    depth: u64,
    in_text: bool,
    /// The byte before was a backslash in a text.
    escaped: bool,
}

/// Whether a line is a field or a comment of server-sent events: then CR ends it, too.
pub(crate) fn is_field(line: &[u8]) -> bool {
    let head = line.get(..FIELD_HEAD_BYTES).unwrap_or(line);
    matches!(Field::of(head), Field::Data(_) | Field::Beside)
}

impl Events {
    /// Takes a line of the input, and gives what can be heard now.
    pub(crate) fn take(&mut self, number: u64, line: Vec<u8>) -> Vec<Joined> {
        let value = match Field::of(line.trim_ascii_start()) {
            Field::Data(value) => value,
            Field::Blank => return self.end().into_iter().collect(),
            Field::Beside => return vec![Joined { numbers: vec![number], text: line }],
            Field::Other => {
                return self.end().into_iter().chain([Joined { numbers: vec![number], text: line }]).collect();
            }
        };
        if self.numbers.is_empty() {
            self.json.pass(value);
            if !self.json.is_open() {
                return vec![Joined { numbers: vec![number], text: line }];
            }
            self.text.extend_from_slice(b"data:");
        } else {
            self.json.pass(b"\n");
            self.json.pass(value);
            self.text.push(b'\n');
        }
        self.text.extend_from_slice(value);
        self.numbers.push(number);
        // What is too long is refused by whoever hears it.
        let waits = self.json.is_open() && self.text.len() <= LINE_LIMIT_BYTES;
        if waits { Vec::new() } else { self.end().into_iter().collect() }
    }

    /// No more of the event comes: what there is of it.
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
            _ if BESIDE.contains(&name) => Field::Beside,
            _ => Field::Other,
        }
    }
}

impl Nesting {
    fn pass(&mut self, json: &[u8]) {
        for byte in json {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_text => self.escaped = true,
                b'"' => self.in_text = !self.in_text,
                b'{' | b'[' if !self.in_text => self.depth += 1,
                b'}' | b']' if !self.in_text => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }

    fn is_open(&self) -> bool {
        self.depth > 0 || self.in_text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is heard of the lines of an input, each thing with the numbers of its lines.
    fn heard(input: &str) -> Vec<String> {
        let mut events = Events::default();
        let mut heard = Vec::new();
        for (at, line) in input.split_inclusive('\n').enumerate() {
            heard.extend(events.take(at as u64 + 1, line.as_bytes().to_vec()));
        }
        heard.extend(events.end());
        heard
            .iter()
            .map(|Joined { numbers, text }| format!("{numbers:?} {}", String::from_utf8_lossy(text).trim_end()))
            .collect()
    }

    #[test]
    fn the_lines_of_one_event_are_heard_as_one() {
        for (input, expected) in [
            ("data: {\"a\":1}\n\n", &["[1] data: {\"a\":1}"][..]),
            ("data: {\"a\":\ndata: 1}\n\n", &["[1, 2] data:{\"a\":\n1}"]),
            ("data:{\r\ndata:  \"a\":\r\ndata:1\r\ndata:}\r\n", &["[1, 2, 3, 4] data:{\n \"a\":\n1\n}"]),
            ("data: {\ndata\ndata: }\n", &["[1, 2, 3] data:{\n\n}"]),
            // Brackets in a text are no brackets, and one that ends in a backslash is not ended by the next line.
            ("data: {\"a\":\"}]\\\"\ndata: {[\"}\n", &["[1, 2] data:{\"a\":\"}]\\\"\n{[\"}"]),
            // What is whole is heard at once: nobody need send a blank line.
            ("data: {}\ndata: {}\n", &["[1] data: {}", "[2] data: {}"]),
            (
                "data: {\n: still here\nid: 7\nevent: x\nretry\ndata: }\n",
                &["[2] : still here", "[3] id: 7", "[4] event: x", "[5] retry", "[1, 6] data:{\n}"],
            ),
            ("data: {\n\ndata: }\n", &["[1] data:{", "[3] data: }"]),
            ("data: {\n{\"user\": 1}\n", &["[1] data:{", "[2] {\"user\": 1}"]),
            ("data: {\"a\":", &["[1] data:{\"a\":"]),
            ("\u{FEFF}data: {\ndata: }", &["[1, 2] data:{\n}"]),
            ("data: [DONE]\n", &["[1] data: [DONE]"]),
            ("{\"data\": 1}\n\n \n[]\n", &["[1] {\"data\": 1}", "[4] []"]),
            ("database: {\ndatum\n", &["[1] database: {", "[2] datum"]),
        ] {
            assert_eq!(heard(input), expected, "{input:?}");
        }
    }
}
