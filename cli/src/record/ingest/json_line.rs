//! Parses a line as a JSON object: repairs what can be repaired, refuses what would lose a part silently.

use std::borrow::Cow;
use std::fmt;

use scrollback::model::{json, quoted};
use scrollback::session::sanitize;
use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::{Parsed, Refused};

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
    let value = match unique(&text) {
        Ok(value) => value,
        Err(error) => {
            let clean = sanitize::strings(&text).filter(|_| !error.is_data());
            let clean = clean.ok_or_else(|| Refused(not_json(&error)))?;
            let value = unique(&clean).map_err(|error| Refused(not_json(&error)))?;
            let has_halves = sanitize::has_lone_surrogates(&text);
            parsed.sanitized(if has_halves { "half a surrogate pair" } else { "a control character" });
            value
        }
    };
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

/// The value of a text, with its numbers as they are written. An error's column is that in the text.
fn unique(text: &str) -> serde_json::Result<Value> {
    json::parse_with(&json::marked(text), |text| serde_json::from_str(text).map(|Unique(value)| value))
        .map_err(|error| serde_json::from_str::<IgnoredAny>(text).err().unwrap_or(error))
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
