//! Changes in JSON as text: what is not changed stays as it is written, byte for byte.

use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::Serialize as _;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::ser::{PrettyFormatter, Serializer};
use serde_json::value::RawValue;

/// JSON as it is written.
pub(super) struct JsonText(pub(super) String);

/// A value in it: where it is written.
pub(super) type Span = Range<usize>;

/// One of an object or of a list, from its key on.
#[derive(Clone)]
pub(super) struct Item {
    /// Its key; empty in a list.
    pub(super) key: String,
    whole: Span,
    pub(super) value: Span,
}

impl JsonText {
    /// The whole value.
    pub(super) fn root(&self) -> Span {
        let start = self.0.len() - self.0.trim_start().len();
        start..self.0.trim_end().len()
    }

    pub(super) fn text(&self, span: &Span) -> &str {
        &self.0[span.clone()]
    }

    pub(super) fn string(&self, span: &Span) -> Option<String> {
        serde_json::from_str(self.text(span)).ok()
    }

    /// The fields of an object; of several with the same key, all. `None` if it is no object.
    pub(super) fn fields(&self, object: &Span) -> Option<Vec<Item>> {
        let Fields(fields) = serde_json::from_str(self.text(object)).ok()?;
        Some(self.items(object, fields))
    }

    /// The field that counts, of several with the same key.
    pub(super) fn field(&self, object: &Span, key: &str) -> Option<Span> {
        self.fields(object)?.into_iter().rev().find(|field| field.key == key).map(|field| field.value)
    }

    /// The elements of a list. `None` if it is no list.
    pub(super) fn elements(&self, list: &Span) -> Option<Vec<Item>> {
        let Elements(elements) = serde_json::from_str(self.text(list)).ok()?;
        Some(self.items(list, elements))
    }

    fn items(&self, container: &Span, raw: Vec<(String, &RawValue)>) -> Vec<Item> {
        let mut end = container.start + 1;
        let mut items = Vec::with_capacity(raw.len());
        for (key, value) in raw {
            let start = value.get().as_ptr() as usize - self.0.as_ptr() as usize;
            let between = &self.0[end..start];
            let skipped = between.len() - between.trim_start_matches(|c: char| c == ',' || c.is_whitespace()).len();
            let value = start..start + value.get().len();
            items.push(Item { key, whole: end + skipped..value.end, value: value.clone() });
            end = value.end;
        }
        items
    }

    /// Adds an element to a list, or with a key a field to an object, as the last one.
    pub(super) fn push(&mut self, container: &Span, items: &[Item], key: Option<&str>, value: &Value) {
        let line_end = if self.0.contains("\r\n") { "\r\n" } else { "\n" };
        let of_container = self.text(container);
        let is_empty_text = self.0.trim().len() <= 2;
        let is_long =
            of_container.contains('\n') || is_empty_text || (items.is_empty() && self.0.trim().contains('\n'));
        let unit = indent_of(&self.0).to_owned();
        let key = key.map(|key| format!("{}: ", Value::from(key))).unwrap_or_default();
        let (at, new) = match items.last() {
            Some(last) if is_long => {
                let indent = self.indent_at(last.whole.start);
                (last.whole.end, format!(",{line_end}{indent}{key}{}", written(value, &unit, &indent, line_end)))
            }
            Some(last) => (last.whole.end, format!(", {key}{value}")),
            None if is_long => {
                let outer = self.indent_at(container.start);
                let indent = format!("{outer}{unit}");
                let value = written(value, &unit, &indent, line_end);
                (container.start + 1, format!("{line_end}{indent}{key}{value}{line_end}{outer}"))
            }
            None => (container.start + 1, format!("{key}{value}")),
        };
        // What is between the brackets of an empty container is white space.
        let end = if items.is_empty() { container.end - 1 } else { at };
        self.0.replace_range(at..end, &new);
    }

    /// Removes one item, and the comma with it.
    pub(super) fn remove(&mut self, container: &Span, items: &[Item], at: usize) {
        let (before, after) = (at.checked_sub(1).and_then(|before| items.get(before)), items.get(at + 1));
        let cut = match (before, after) {
            (Some(before), _) => before.whole.end..items[at].whole.end,
            (None, Some(after)) => items[at].whole.start..after.whole.start,
            (None, None) => container.start + 1..container.end - 1,
        };
        self.0.replace_range(cut, "");
    }

    pub(super) fn replace(&mut self, span: &Span, value: &Value) {
        self.0.replace_range(span.clone(), &value.to_string());
    }

    /// What the line of this place is indented by.
    fn indent_at(&self, at: usize) -> String {
        let line = self.0[..at].rfind('\n').map_or(0, |end| end + 1);
        let rest = &self.0[line..];
        rest[..rest.len() - rest.trim_start_matches([' ', '\t']).len()].to_owned()
    }
}

/// What a line of the settings is indented by.
fn indent_of(settings: &str) -> &str {
    let blank = |line: &'_ str| line.len() - line.trim_start().len();
    let mut lines = settings.lines().map(|line| line.get(..blank(line)).unwrap_or_default());
    lines.find(|indent| !indent.is_empty()).unwrap_or("  ")
}

fn written(value: &Value, unit: &str, indent: &str, line_end: &str) -> String {
    let mut bytes = Vec::new();
    let formatter = PrettyFormatter::with_indent(unit.as_bytes());
    match value.serialize(&mut Serializer::with_formatter(&mut bytes, formatter)) {
        Ok(()) => String::from_utf8_lossy(&bytes).replace('\n', &format!("{line_end}{indent}")),
        Err(_) => value.to_string(),
    }
}

struct Fields<'a>(Vec<(String, &'a RawValue)>);

struct Elements<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visit;
        impl<'de> Visitor<'de> for Visit {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Visit)
    }
}

impl<'de> Deserialize<'de> for Elements<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visit;
        impl<'de> Visitor<'de> for Visit {
            type Value = Elements<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut elements = Vec::new();
                while let Some(element) = list.next_element()? {
                    elements.push((String::new(), element));
                }
                Ok(Elements(elements))
            }
        }
        deserializer.deserialize_seq(Visit)
    }
}
