//! Parses a line as a JSON object: repairs what can be repaired, refuses what would lose a part silently.

use std::borrow::Cow;
use std::fmt;

use scrollback::model::quoted;
use scrollback::session::sanitize;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::{Parsed, Refused};

/// A number with no more digits than this is read exactly.
const EXACT_DIGITS: usize = 15;

/// Returns nothing for blank lines and for the mark that ends a stream of server-sent events.
pub(super) fn object(line: &[u8], parsed: &mut Parsed) -> Result<Option<Map<String, Value>>, Refused> {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
    if line.is_empty() || line == b"[DONE]" {
        return Ok(None);
    }
    if line.iter().all(|byte| *byte == 0) {
        return Err(Refused::because("a line of NUL bytes"));
    }
    let text = String::from_utf8_lossy(line);
    if matches!(text, Cow::Owned(_)) {
        parsed.sanitized("bad UTF-8");
    }
    let Unique(value) = match serde_json::from_str(&text) {
        Ok(value) => value,
        Err(error) => {
            let clean = sanitize::strings(&text).filter(|_| !error.is_data());
            let clean = clean.ok_or_else(|| Refused(not_json(&error)))?;
            let value = serde_json::from_str(&clean).map_err(|error| Refused(not_json(&error)))?;
            let has_halves = sanitize::has_lone_surrogates(&text);
            parsed.sanitized(if has_halves { "half a surrogate pair" } else { "a control character" });
            value
        }
    };
    if has_inexact_numbers(&text) {
        parsed.sanitized("digits of a number");
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

/// A value without duplicate keys.
struct Unique(Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Unique, D::Error> {
        from.deserialize_any(UniqueKeys).map(Unique)
    }
}

/// Builds the value; the parser itself bounds its depth.
struct UniqueKeys;

impl<'de> Visitor<'de> for UniqueKeys {
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
        while let Some(Unique(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some((key, Unique(value))) = entries.next_entry::<String, Unique>()? {
            if object.contains_key(&key) {
                return Err(A::Error::custom(format!("duplicate key {}", quoted(&key))));
            }
            object.insert(key, value);
        }
        Ok(object.into())
    }
}

/// Whether JSON has a number that changes when it is read.
fn has_inexact_numbers(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_number_byte = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-');
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let rest = bytes.get(at..).unwrap_or_default();
        at += match byte {
            b'"' => 1 + string_length(rest.get(1..).unwrap_or_default()),
            b'-' | b'0'..=b'9' => {
                let length = rest.iter().position(|byte| !is_number_byte(byte)).unwrap_or(rest.len());
                if text.get(at..at + length).is_some_and(is_inexact) {
                    return true;
                }
                length
            }
            _ => 1,
        };
    }
    false
}

/// The length of a string up to and including its closing quotation mark.
fn string_length(rest: &[u8]) -> usize {
    let mut at = 0;
    while let Some(byte) = rest.get(at) {
        at += if *byte == b'\\' { 2 } else { 1 };
        if *byte == b'"' {
            break;
        }
    }
    at
}

fn is_inexact(number: &str) -> bool {
    let digits = significant_digits(number);
    if digits.len() <= EXACT_DIGITS || number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok() {
        return false;
    }
    number.parse::<f64>().is_ok_and(|read| significant_digits(&format!("{read:e}")) != digits)
}

/// The digits of a number without its exponent and without leading and trailing zeros.
fn significant_digits(number: &str) -> String {
    let mantissa = number.split(['e', 'E']).next().unwrap_or_default();
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    digits.trim_matches('0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inexact_numbers_are_found() {
        for exact in ["1", "-0.5", "1e300", "9007199254740993", "18446744073709551615", "0.1", "1.50000000000000000000"]
        {
            assert!(!has_inexact_numbers(&format!("{{\"a\":[{exact}],\"b\":\"1.00000000000000000001\"}}")), "{exact}");
        }
        for inexact in ["18446744073709551617123", "1.0000000000000000001", "-0.12345678901234567890123"] {
            assert!(has_inexact_numbers(&format!("{{\"a \\\" 1\":[{inexact}]}}")), "{inexact}");
        }
    }
}
