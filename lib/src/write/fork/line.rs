//! Changes some fields of a line; the others keep their bytes, numbers and escapes included.

use std::fmt;

use hashbrown::HashMap;
use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::model::json;

/// The line with the changes of `adopt`; `None` if it is not a JSON object.
pub(super) fn adopted(text: &str, adopt: impl FnOnce(Value) -> Value) -> Option<Vec<u8>> {
    let Fields(fields) = serde_json::from_str(text).ok()?;
    // A value that is nested too deeply to parse is not an id: it is null meanwhile.
    let parsed = |raw: &RawValue| json::parse(raw.get()).unwrap_or_default();
    let before: Map<String, Value> = fields.iter().map(|(key, raw)| (key.clone(), parsed(raw))).collect();
    let raw: HashMap<&str, &RawValue> = fields.iter().map(|(key, raw)| (key.as_str(), *raw)).collect();
    let Value::Object(after) = adopt(Value::Object(before.clone())) else { return None };
    let mut line = vec![b'{'];
    for (count, (key, value)) in after.iter().enumerate() {
        if count > 0 {
            line.push(b',');
        }
        serde_json::to_writer(&mut line, key).ok()?;
        line.push(b':');
        match raw.get(key.as_str()).filter(|_| before.get(key) == Some(value)) {
            Some(raw) => line.extend_from_slice(raw.get().as_bytes()),
            None => json::write(&mut line, value).ok()?,
        }
    }
    line.push(b'}');
    // A raw line end is white space between values: strings have it escaped.
    line.iter_mut().filter(|byte| **byte == b'\n').for_each(|byte| *byte = b' ');
    Some(line)
}

/// The fields of an object in order, with unparsed values.
struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(fields)
            }
        }
        from.deserialize_map(InOrder).map(Fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_changed_changes() {
        let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
        for (line, expected) in [
            (r#"{"a":1e400,"id":"x"}"#.to_owned(), r#"{"a":1e400,"id":"new"}"#.to_owned()),
            (
                r#"{"id":1,"n":123456789012345678901234567890,"f":0.10}"#.to_owned(),
                r#"{"id":"new","n":123456789012345678901234567890,"f":0.10}"#.to_owned(),
            ),
            (
                r#"{"s":"\u0041\/","z":{"b":1,"a":2}}"#.to_owned(),
                r#"{"s":"\u0041\/","z":{"b":1,"a":2},"id":"new"}"#.to_owned(),
            ),
            (format!(r#"{{"deep":{deep},"id":0}}"#), format!(r#"{{"deep":{deep},"id":"new"}}"#)),
            (r#"{"a":1,"a":2}"#.to_owned(), r#"{"a":2,"id":"new"}"#.to_owned()),
            (
                r#"{"a":[1,
2]}"#
                    .to_owned(),
                r#"{"a":[1, 2],"id":"new"}"#.to_owned(),
            ),
        ] {
            let renamed = |mut value: Value| {
                value["id"] = "new".into();
                value
            };
            let got = adopted(&line, renamed).map(|line| String::from_utf8(line).unwrap());
            assert_eq!(got, Some(expected), "{line:.80}");
        }
        // Numbers beside a change in the same field stay too.
        let inside = |mut value: Value| {
            value["message"]["id"] = "new".into();
            value
        };
        let line = r#"{"message":{"id":1,"a":1e400,"n":123456789012345678901234567890}}"#;
        let expected = line.replace("\"id\":1", "\"id\":\"new\"");
        assert_eq!(adopted(line, inside).map(|line| String::from_utf8(line).unwrap()), Some(expected));
        assert_eq!(adopted("[1]", |value| value), None);
        assert_eq!(adopted("{", |value| value), None);
    }
}
