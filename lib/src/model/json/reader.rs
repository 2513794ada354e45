//! A serde deserializer for one line of JSON that passes over strings many bytes at a time.
//!
//! Most of a session's bytes are long strings that nobody asks for. serde_json stops at each escape in them; here they are passed over
//! in blocks (`string_end.rs`). It reads the usual line only: what it does not take, from a control character to
//! a depth of 64, is left to serde_json, which decides. So it may refuse what is right, but never take what serde_json refuses.

use serde::de::value::{BorrowedStrDeserializer, MapDeserializer, StrDeserializer};
use serde::de::{DeserializeSeed, Deserializer, Error, Expected, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};

use super::string_end::string_end;
use super::strings;

/// Reads a type from JSON, as `serde_json::from_str` does.
pub(crate) fn from_str<'a, T: Deserialize<'a>>(text: &'a str) -> serde_json::Result<T> {
    usual(text).map_or_else(|| serde_json::from_str(text), Ok)
}

/// Reads a type from a usual line of JSON.
fn usual<'a, T: Deserialize<'a>>(text: &'a str) -> Option<T> {
    if has_controls(text.as_bytes()) {
        return None;
    }
    let mut reader = Reader { text, at: 0, depth: 0 };
    let value = T::deserialize(&mut reader).ok()?;
    reader.peek().is_none().then_some(value)
}

/// Whether there is a control character. Looked for in blocks: a search that may stop at each byte takes one at a time.
pub(crate) fn has_controls(bytes: &[u8]) -> bool {
    const BLOCK: usize = 128;
    bytes.chunks(BLOCK).any(|block| block.iter().fold(false, |found, byte| found | (*byte < 0x20)))
}

/// serde_json's own name for a value that is kept as its text.
const RAW_VALUE: &str = "$serde_json::private::RawValue";

/// How deep values may be nested: as many bits as a word has.
const DEPTH_LIMIT: u32 = 64;

/// Something that this reader leaves to serde_json, which also says what is wrong with it.
#[derive(Debug)]
struct Refused;

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("not a usual line of JSON")
    }
}

impl std::error::Error for Refused {}

impl Error for Refused {
    fn custom<T: std::fmt::Display>(_: T) -> Self {
        Refused
    }
    // The texts of serde's errors quote the value; nobody reads them here.
    fn invalid_type(_: Unexpected<'_>, _: &dyn Expected) -> Self {
        Refused
    }
    fn invalid_value(_: Unexpected<'_>, _: &dyn Expected) -> Self {
        Refused
    }
}

type Result<T> = std::result::Result<T, Refused>;

/// A text without control characters, and how much of it is read.
struct Reader<'de> {
    text: &'de str,
    at: usize,
    depth: u32,
}

impl<'de> Reader<'de> {
    /// The next byte that is not a blank, which stays.
    #[inline]
    fn peek(&mut self) -> Option<u8> {
        loop {
            match self.text.as_bytes().get(self.at) {
                Some(b' ') => self.at += 1,
                byte => return byte.copied(),
            }
        }
    }

    /// The next byte that is not a blank.
    #[inline]
    fn next(&mut self) -> Result<u8> {
        let byte = self.peek().ok_or(Refused)?;
        self.at += 1;
        Ok(byte)
    }

    #[inline]
    fn expect(&mut self, byte: u8) -> Result<()> {
        if self.next()? == byte { Ok(()) } else { Err(Refused) }
    }

    fn word(&mut self, word: &str) -> Result<()> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err(Refused);
        }
        self.at += word.len();
        Ok(())
    }

    /// What is between the quotes of a string whose first quote is read, and whether it has escapes.
    #[inline]
    fn string(&mut self) -> Result<(&'de str, bool)> {
        let start = self.at;
        let end = string_end(self.text.as_bytes(), start).ok_or(Refused)?;
        self.at = end.at + 1;
        Ok((&self.text[start..end.at], end.has_escapes))
    }

    /// A number by JSON's grammar, and whether it is whole and not negative.
    fn number(&mut self) -> Result<(&'de str, bool)> {
        let (bytes, start) = (self.text.as_bytes(), self.at);
        let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let is_negative = bytes[start] == b'-';
        let mut at = start + usize::from(is_negative);
        let whole = digits(at);
        if whole == 0 || whole > 1 && bytes[at] == b'0' {
            return Err(Refused);
        }
        at += whole;
        let mut is_count = !is_negative;
        if bytes.get(at) == Some(&b'.') {
            let fraction = digits(at + 1);
            (at, is_count) = (at + 1 + fraction, false);
            if fraction == 0 {
                return Err(Refused);
            }
        }
        if let Some(b'e' | b'E') = bytes.get(at) {
            at += if let Some(b'+' | b'-') = bytes.get(at + 1) { 2 } else { 1 };
            let exponent = digits(at);
            (at, is_count) = (at + exponent, false);
            if exponent == 0 {
                return Err(Refused);
            }
        }
        self.at = at;
        Ok((&self.text[start..at], is_count))
    }

    /// Passes over a value of any shape. A bit of `objects` says whether the value that is open at a depth is an object.
    fn skip(&mut self) -> Result<()> {
        let (mut objects, mut depth) = (0_u64, 0);
        loop {
            match self.next()? {
                b'"' => _ = self.string()?,
                b't' => self.word("rue")?,
                b'f' => self.word("alse")?,
                b'n' => self.word("ull")?,
                b'-' | b'0'..=b'9' => {
                    self.at -= 1;
                    self.number()?;
                }
                open @ (b'{' | b'[') => {
                    let is_object = open == b'{';
                    if self.peek() == Some(close_of(is_object)) {
                        self.at += 1;
                    } else {
                        if depth == DEPTH_LIMIT {
                            return Err(Refused);
                        }
                        objects = objects << 1 | u64::from(is_object);
                        depth += 1;
                        if is_object {
                            self.skip_key()?;
                        }
                        continue;
                    }
                }
                _ => return Err(Refused),
            }
            // After a value: the next one of what is open, or its end.
            loop {
                if depth == 0 {
                    return Ok(());
                }
                let is_object = objects & 1 == 1;
                match self.next()? {
                    b',' if is_object => break self.skip_key()?,
                    b',' => break,
                    close if close == close_of(is_object) => (objects, depth) = (objects >> 1, depth - 1),
                    _ => return Err(Refused),
                }
            }
        }
    }

    fn skip_key(&mut self) -> Result<()> {
        self.expect(b'"')?;
        self.string()?;
        self.expect(b':')
    }

    /// The text of the next value.
    fn raw(&mut self) -> Result<&'de str> {
        self.peek();
        let start = self.at;
        self.skip()?;
        Ok(&self.text[start..self.at])
    }

    /// Gives the items of an object or an array to a visitor, and checks that all of them were taken.
    fn items<T>(&mut self, is_object: bool, visit: impl FnOnce(Items<'_, 'de>) -> Result<T>) -> Result<T> {
        if self.depth == DEPTH_LIMIT {
            return Err(Refused);
        }
        self.at += 1;
        self.depth += 1;
        let value = visit(Items { reader: self, is_first: true, is_object })?;
        self.depth -= 1;
        self.expect(close_of(is_object))?;
        Ok(value)
    }
}

fn close_of(is_object: bool) -> u8 {
    if is_object { b'}' } else { b']' }
}

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = Refused;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.peek().ok_or(Refused)? {
            b'"' => {
                self.at += 1;
                match self.string()? {
                    (text, false) => visitor.visit_borrowed_str(text),
                    (inside, true) => visitor.visit_string(strings::decoded(inside).ok_or(Refused)?),
                }
            }
            b'{' => self.items(true, |items| visitor.visit_map(items)),
            b'[' => self.items(false, |items| visitor.visit_seq(items)),
            b't' => self.word("true").and_then(|()| visitor.visit_bool(true)),
            b'f' => self.word("false").and_then(|()| visitor.visit_bool(false)),
            b'n' => self.word("null").and_then(|()| visitor.visit_unit()),
            b'-' | b'0'..=b'9' => match self.number()? {
                (count, true) if count.len() <= super::SAFE_DIGITS => {
                    visitor.visit_u64(count.parse().map_err(|_| Refused)?)
                }
                (number, _) => serde_json::Number::deserialize_any(number.parse().map_err(|_| Refused)?, visitor)
                    .map_err(|_| Refused),
            },
            _ => Err(Refused),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.peek() {
            Some(b'n') => self.word("null").and_then(|()| visitor.visit_none()),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value> {
        if name == RAW_VALUE {
            let raw = BorrowedStrDeserializer::new(self.raw()?);
            return visitor.visit_map(MapDeserializer::new(std::iter::once((StrDeserializer::new(RAW_VALUE), raw))));
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.skip()?;
        visitor.visit_unit()
    }

    /// serde_json takes a name or an object with one key here; no type of a session needs it.
    fn deserialize_enum<V: Visitor<'de>>(self, _: &'static str, _: &'static [&'static str], _: V) -> Result<V::Value> {
        Err(Refused)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier
    }
}

/// The items of an object or an array whose bracket is read.
struct Items<'r, 'de> {
    reader: &'r mut Reader<'de>,
    is_first: bool,
    is_object: bool,
}

impl Items<'_, '_> {
    /// Whether there is another item; reads the comma before it.
    #[inline]
    fn has_next(&mut self) -> Result<bool> {
        if self.reader.peek() == Some(close_of(self.is_object)) {
            return Ok(false);
        }
        if !std::mem::take(&mut self.is_first) {
            self.reader.expect(b',')?;
        }
        Ok(true)
    }
}

impl<'de> MapAccess<'de> for Items<'_, 'de> {
    type Error = Refused;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        if !self.has_next()? {
            return Ok(None);
        }
        self.reader.expect(b'"')?;
        match self.reader.string()? {
            (key, false) => seed.deserialize(BorrowedStrDeserializer::new(key)).map(Some),
            (inside, true) => {
                let key = strings::decoded(inside).ok_or(Refused)?;
                seed.deserialize(StrDeserializer::new(&key)).map(Some)
            }
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value> {
        self.reader.expect(b':')?;
        seed.deserialize(&mut *self.reader)
    }
}

impl<'de> SeqAccess<'de> for Items<'_, 'de> {
    type Error = Refused;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        if !self.has_next()? {
            return Ok(None);
        }
        seed.deserialize(&mut *self.reader).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde::de::IgnoredAny;
    use serde_json::Value;
    use serde_json::value::RawValue;

    use super::*;

    /// What is read in the usual way is what serde_json reads.
    fn check<'a, T: Deserialize<'a> + std::fmt::Debug>(text: &'a str) -> bool {
        let ours = usual::<T>(text);
        if let Some(ours) = &ours {
            let theirs = serde_json::from_str::<T>(text);
            assert_eq!(format!("{ours:?}"), format!("{:?}", theirs.expect(text)), "{text}");
        }
        ours.is_some()
    }

    /// The same for types of several shapes; whether it was read as any value.
    fn check_all(text: &str) -> bool {
        check::<&RawValue>(text);
        check::<IgnoredAny>(text);
        check::<Vec<Option<f64>>>(text);
        check::<BTreeMap<String, &RawValue>>(text);
        check::<BTreeMap<&str, Option<Vec<Value>>>>(text);
        check::<Value>(text)
    }

    #[test]
    fn usual_lines_are_read_here() {
        for text in [
            r#"{"a":[1,-2,3.5,1e9,true,false,null,{}],"b":{"c":"d"},"e":[]}"#,
            r#" { "long" : "a text that is longer than forty bytes, so that it is looked for by memchr" } "#,
            r#""\n \" \\ \/ \u00e9 \ud83c\udf0a \ufffd \\""#,
            r#"{"key\n":"\"","k":"\\"}"#,
            "18446744073709551615",
            "-0",
            "[0,0.0,-1,123456789012345678901234567890]",
        ] {
            assert!(check_all(text), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_or_unusual_is_left_to_serde_json() {
        let deep = format!("{}1{}", "[".repeat(80), "]".repeat(80));
        for text in [
            "",
            "{",
            "[1,]",
            "[,1]",
            "[1 2]",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{1:2}",
            "01",
            "1.",
            ".5",
            "+1",
            "1e",
            "tru",
            "nul",
            "\"",
            "\"\\\"",
            r#""\x""#,
            r#""\u12""#,
            r#""\u12g4""#,
            r#""\ud83c""#,
            r#""\ud83c\u0041""#,
            r#""\udf0a""#,
            "\"\t\"",
            "[\n1]",
            "1 2",
            "[1}",
            "{\"a\":1]",
            "\u{feff}1",
            &deep,
        ] {
            assert!(!check_all(text), "{text}");
        }
        assert!(from_str::<Value>(&deep).is_ok() && from_str::<Value>("[\n1]").is_ok());
    }

    proptest! {
        #[test]
        fn a_changed_line_is_read_as_serde_json_reads_it(
            line in prop::sample::select(vec![
                r#"{"type":"user","n":[0,-1.5e3,{"x":null}],"text":"a \"quoted\" \u00e9 \ud83c\udf0a text that is longer than forty bytes","t":true}"#,
                r#"[{"a":{"b":[[],{}]}}, "x\\", 12345678901234567890, 1E-2 ]"#,
            ]),
            changes in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(r#"{}[]",:\u0129eE+-. tfn"#.chars().collect::<Vec<_>>()), 0..3_u8), 0..4),
        ) {
            let mut text: Vec<char> = line.chars().collect();
            for (at, c, how) in changes {
                let at = at.index(text.len());
                match how {
                    0 => text[at] = c,
                    1 => text.insert(at, c),
                    _ => _ = text.remove(at),
                }
            }
            check_all(&text.into_iter().collect::<String>());
        }
    }
}
