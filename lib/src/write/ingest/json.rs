//! The JSON object that a line is: mended where that is possible, refused where a part of it would be lost unseen.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::{Heard, Refused};
use crate::session::read::sanitize;

/// A number with no more digits than this is the same after it was read.
const EXACT_DIGITS: usize = 15;

/// Nothing for lines that say nothing.
pub(super) fn object(line: &[u8], heard: &mut Heard) -> Result<Option<Map<String, Value>>, Refused> {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
    // What server-sent events have beside their data.
    let field = |name: &[u8]| match line.strip_prefix(name)? {
        // A field that says nothing may have no colon.
        b"" => Some(b"".as_slice()),
        rest => rest.strip_prefix(b":").map(<[u8]>::trim_ascii),
    };
    if line.starts_with(b":") || [b"event".as_slice(), b"id", b"retry"].into_iter().any(|name| field(name).is_some()) {
        return Ok(None);
    }
    let line = field(b"data").unwrap_or(line);
    if line.is_empty() || line == b"[DONE]" {
        return Ok(None);
    }
    if line.iter().all(|byte| *byte == 0) {
        return Err(Refused::because("a line of NUL bytes says nothing"));
    }
    let mut sanitized = sanitize::utf8(line);
    if sanitized.bad_utf8 {
        heard.sanitized("bad UTF-8");
    }
    let Whole(value) = match serde_json::from_str(&sanitized.text) {
        Ok(value) => value,
        Err(error) => {
            let has_halves = sanitize::has_lone_surrogates(&sanitized.text);
            if error.is_data() || !sanitize::strings(&mut sanitized) {
                return Err(Refused(not_json(&error)));
            }
            let value = serde_json::from_str(&sanitized.text).map_err(|error| Refused(not_json(&error)))?;
            heard.sanitized(if has_halves { "half a surrogate pair" } else { "a control character" });
            value
        }
    };
    if has_longer_numbers(&sanitized.text) {
        heard.sanitized("digits of a number");
    }
    match value {
        Value::Object(object) => Ok(Some(object)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(Refused::because("a line is a JSON object, such as {\"user\": \"…\"}"))
        }
    }
}

fn not_json(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = text.split(" at line ").next().unwrap_or_default();
    if error.is_data() { what.to_owned() } else { format!("not JSON at column {}: {what}", error.column()) }
}

/// A value that says each thing once.
struct Whole(Value);

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Whole, D::Error> {
        from.deserialize_any(OnlyOnce).map(Whole)
    }
}

/// Takes values as they come; the parser itself bounds how deep they are.
struct OnlyOnce;

impl<'de> Visitor<'de> for OnlyOnce {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(flag.into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Whole(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some((key, Whole(value))) = entries.next_entry::<String, Whole>()? {
            if object.contains_key(&key) {
                return Err(A::Error::custom(format!("{} is said twice", crate::model::issue::quoted(&key))));
            }
            object.insert(key, value);
        }
        Ok(object.into())
    }
}

/// Whether JSON has a number that is another one after it was read.
fn has_longer_numbers(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_of_number = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-');
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let rest = bytes.get(at..).unwrap_or_default();
        at += match byte {
            b'"' => 1 + text_length(rest.get(1..).unwrap_or_default()),
            b'-' | b'0'..=b'9' => {
                let length = rest.iter().position(|byte| !is_of_number(byte)).unwrap_or(rest.len());
                if text.get(at..at + length).is_some_and(changes) {
                    return true;
                }
                length
            }
            _ => 1,
        };
    }
    false
}

/// The bytes of a string up to its end and the quotation mark there.
fn text_length(rest: &[u8]) -> usize {
    let mut at = 0;
    while let Some(byte) = rest.get(at) {
        at += if *byte == b'\\' { 2 } else { 1 };
        if *byte == b'"' {
            break;
        }
    }
    at
}

fn changes(number: &str) -> bool {
    let digits = significant(number);
    if digits.len() <= EXACT_DIGITS || number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok() {
        return false;
    }
    number.parse::<f64>().is_ok_and(|read| significant(&format!("{read:e}")) != digits)
}

/// The digits of a number without its exponent and without the zeros around them.
fn significant(number: &str) -> String {
    let mantissa = number.split(['e', 'E']).next().unwrap_or_default();
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    digits.trim_matches('0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_do_not_fit_are_noticed() {
        for exact in ["1", "-0.5", "1e300", "9007199254740993", "18446744073709551615", "0.1", "1.50000000000000000000"]
        {
            assert!(!has_longer_numbers(&format!("{{\"a\":[{exact}],\"b\":\"1.00000000000000000001\"}}")), "{exact}");
        }
        for longer in ["18446744073709551617123", "1.0000000000000000001", "-0.12345678901234567890123"] {
            assert!(has_longer_numbers(&format!("{{\"a \\\" 1\":[{longer}]}}")), "{longer}");
        }
    }
}
