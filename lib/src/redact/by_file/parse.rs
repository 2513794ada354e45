//! JSON as far as files and calls are concerned: its strings and its shape. Numbers and the like are all the same.
//!
//! serde_json decodes a string into a buffer of its own and copies it from there; one string may be most of a session.

use serde_json::{Map, Value};

use crate::model::json::{self, StringEnd};
use crate::redact::json::decoded;

/// Nothing that an agent writes is deeper.
const DEEPEST: usize = 128;

/// The value that a text is; `None` if it is no JSON.
pub(super) fn parse(text: &[u8]) -> Option<Value> {
    let mut parser = Parser { text, at: 0 };
    let value = parser.value(0)?;
    parser.skip_spaces();
    (parser.at == text.len() && std::str::from_utf8(text).is_ok()).then_some(value)
}

struct Parser<'t> {
    text: &'t [u8],
    at: usize,
}

impl Parser<'_> {
    fn value(&mut self, depth: usize) -> Option<Value> {
        self.skip_spaces();
        match self.text.get(self.at)? {
            _ if depth > DEEPEST => None,
            b'"' => self.string().map(Value::String),
            b'[' => {
                let mut values = Vec::new();
                self.list(b']', |parser| {
                    values.push(parser.value(depth + 1)?);
                    Some(())
                })?;
                Some(Value::Array(values))
            }
            b'{' => {
                let mut map = Map::new();
                self.list(b'}', |parser| {
                    let key = parser.string()?;
                    parser.take(b':')?;
                    map.insert(key, parser.value(depth + 1)?);
                    Some(())
                })?;
                Some(Value::Object(map))
            }
            _ => {
                let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
                let length = self.text[self.at..].iter().take_while(|byte| is_part(byte)).count();
                self.at += length;
                (length > 0).then_some(Value::Null)
            }
        }
    }

    /// Reads elements with commas between them, up to a bracket.
    fn list(&mut self, end: u8, mut element: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.at += 1;
        if self.take(end).is_some() {
            return Some(());
        }
        loop {
            self.skip_spaces();
            element(self)?;
            if self.take(end).is_some() {
                return Some(());
            }
            self.take(b',')?;
        }
    }

    fn string(&mut self) -> Option<String> {
        let start = self.at + 1;
        if self.text.get(self.at) != Some(&b'"') {
            return None;
        }
        let StringEnd { at: end, has_escapes } = json::lenient_string_end(self.text, start);
        self.at = end + 1;
        (end < self.text.len()).then(|| decoded(&self.text[start..end], has_escapes).into_owned())
    }

    /// Reads a sign, if it is the next one.
    fn take(&mut self, sign: u8) -> Option<()> {
        self.skip_spaces();
        let is_next = self.text.get(self.at) == Some(&sign);
        self.at += usize::from(is_next);
        is_next.then_some(())
    }

    fn skip_spaces(&mut self) {
        self.at += self.text[self.at.min(self.text.len())..]
            .iter()
            .take_while(|byte| byte.is_ascii_whitespace())
            .count();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn strings_and_shapes_are_read_and_nothing_else_is() {
        let text = br#" {"a" : [1.5e3, "x\ny", {"b":null , "c":[ ]}], "\u0064": "caf\u00e9", "a2":true} "#;
        assert_eq!(parse(text).unwrap(), json!({"a": [null, "x\ny", {"b": null, "c": []}], "d": "café", "a2": null}));
        for broken in ["", "{", "{\"a\":1", "{\"a\" 1}", "[1,]", "[1 2]", "\"x", "{\"a\":1}}", "{1:2}", "[,]", "é"] {
            assert_eq!(parse(broken.as_bytes()), None, "{broken}");
        }
        assert_eq!(parse("[".repeat(100_000).as_bytes()), None);
    }
}
