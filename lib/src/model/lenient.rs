//! Serde types for fields of foreign JSON: a field of the wrong shape reads as absent, it never fails the record.
//!
//! Everything borrows from the line where JSON allows it. A struct of such fields needs one attribute:
//! `#[serde(default, bound(deserialize = "'de: 'a"))]`.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::model::json;

/// A string, or nothing.
#[derive(Debug, Clone, Default)]
pub(crate) struct Text<'a>(pub(crate) Option<Cow<'a, str>>);

/// `true`, or not.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Flag(pub(crate) bool);

/// A whole number that is not negative, or nothing.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Count(pub(crate) Option<u64>);

/// A number that is not negative, or nothing.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Amount(pub(crate) Option<f64>);

/// A JSON object, or nothing. `T`'s own fields must be lenient too.
#[derive(Debug, Clone)]
pub(crate) struct Object<T>(pub(crate) Option<T>);

/// A JSON object, a string in its place, or nothing.
#[derive(Debug, Clone, Default)]
pub(crate) enum ObjectOrText<'a, T> {
    #[default]
    Absent,
    Object(T),
    Text(Cow<'a, str>),
}

/// The objects of a JSON array, or none.
#[derive(Debug, Clone)]
pub(crate) struct List<T>(pub(crate) Vec<T>);

/// A prompt of 100 MB need not be in memory once more to tell what its record is.
const LONG_TEXT_BYTES: usize = 1024 * 1024;

/// The objects of a JSON array, or a JSON string. A long string with escapes is empty here, unless it starts as those do that an agent
/// writes itself, with a tag or a bracket: nobody asks for others.
#[derive(Debug, Clone)]
pub(crate) enum ListOrText<'a, T> {
    List(Vec<T>),
    Text(Cow<'a, str>),
}

impl<T> ListOrText<'_, T> {
    /// The objects, if it is an array.
    pub(crate) fn list(&self) -> &[T] {
        match self {
            ListOrText::List(items) => items,
            ListOrText::Text(_) => &[],
        }
    }

    pub(crate) fn into_list(self) -> Vec<T> {
        match self {
            ListOrText::List(items) => items,
            ListOrText::Text(_) => Vec::new(),
        }
    }

    /// The string, if it is one.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            ListOrText::List(_) => None,
            ListOrText::Text(text) => Some(text),
        }
    }
}

impl<T> Default for ListOrText<'_, T> {
    fn default() -> Self {
        ListOrText::List(Vec::new())
    }
}

impl<T> Default for Object<T> {
    fn default() -> Self {
        Object(None)
    }
}

impl<T> Default for List<T> {
    fn default() -> Self {
        List(Vec::new())
    }
}

/// A moment as a record states it.
#[derive(Debug, Clone, Default)]
pub enum Moment<'a> {
    /// It states none.
    #[default]
    Absent,
    /// A text to parse as a time.
    Text(Cow<'a, str>),
    /// Milliseconds since 1970.
    Millis(i64),
}

impl Moment<'_> {
    /// The moment in a format that writes texts only: a number could be seconds or milliseconds, so it is kept as text.
    pub(crate) fn only_text(&self) -> Self {
        match self {
            Moment::Millis(number) => Moment::Text(number.to_string().into()),
            text => text.clone(),
        }
    }

    pub(crate) fn into_owned(self) -> Moment<'static> {
        match self {
            Moment::Absent => Moment::Absent,
            Moment::Text(text) => Moment::Text(Cow::Owned(text.into_owned())),
            Moment::Millis(millis) => Moment::Millis(millis),
        }
    }
}

impl<'a> Text<'a> {
    /// The string, unless it is empty.
    pub(crate) fn some(self) -> Option<Cow<'a, str>> {
        self.0.filter(|text| !text.is_empty())
    }

    pub(crate) fn owned(self) -> Option<String> {
        self.some().map(Cow::into_owned)
    }
}

/// The value of a JSON text, of any depth: a value that is nested too deeply is kept as a string.
pub(crate) fn parse(text: &str) -> Value {
    json::parse(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

/// The value of a raw field. See [`parse`].
pub(crate) fn value(raw: &RawValue) -> Value {
    parse(raw.get())
}

/// A raw field as this type, if it has its shape.
pub(crate) fn parsed<T: DeserializeOwned>(raw: &RawValue) -> Option<T> {
    json::from_str(raw.get()).ok()
}

/// The elements of a raw field, if it is a list. Serde's error would quote all of a string.
pub(crate) fn elements(raw: &RawValue) -> Option<Vec<&RawValue>> {
    raw.get().starts_with('[').then(|| json::from_str(raw.get()).ok())?
}

/// A string's text, nothing for `null`, or the JSON of any other value.
pub(crate) fn to_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => json::to_string(other),
    }
}

/// The text of a raw field. See [`to_text`].
pub(crate) fn text_or_json(raw: &RawValue) -> String {
    to_text(&value(raw))
}

/// Whether an object has a field that is not null.
pub(crate) fn has_field(object: &str, key: &str) -> bool {
    let fields = json::from_str::<RawObject<'_>>(object).unwrap_or_default();
    fields.raw(key).is_some()
}

/// How a type reads each shape of JSON value; the shapes that it does not define read as absent.
trait Shape<'de>: Default {
    fn text(_: Cow<'de, str>) -> Self {
        Self::default()
    }
    /// A text that is in serde_json's own buffer.
    fn decoded(text: &str) -> Self {
        Self::text(Cow::Owned(text.to_owned()))
    }
    fn flag(_: bool) -> Self {
        Self::default()
    }
    fn whole(_: i64) -> Self {
        Self::default()
    }
    /// A number that is not whole.
    fn fraction(_: f64) -> Self {
        Self::default()
    }
    /// A whole number that is too large for us.
    fn beyond() -> Self {
        Self::whole(i64::MAX)
    }
    fn object<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }
    fn list<A: SeqAccess<'de>>(mut seq: A) -> Result<Self, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }
}

impl<'de: 'a, 'a> Shape<'de> for Text<'a> {
    fn text(text: Cow<'de, str>) -> Self {
        Text(Some(text))
    }
}

impl<'de> Shape<'de> for Flag {
    fn flag(flag: bool) -> Self {
        Flag(flag)
    }
}

impl<'de> Shape<'de> for Count {
    fn whole(number: i64) -> Self {
        Count(u64::try_from(number).ok())
    }
    /// No real count is that large.
    fn beyond() -> Self {
        Count(None)
    }
}

impl<'de> Shape<'de> for Amount {
    fn whole(number: i64) -> Self {
        Amount::fraction(number as f64)
    }
    fn fraction(number: f64) -> Self {
        Amount(Some(number).filter(|number| *number >= 0.0))
    }
}

impl<'de: 'a, 'a> Shape<'de> for Moment<'a> {
    fn text(text: Cow<'de, str>) -> Self {
        Moment::Text(text)
    }
    fn whole(number: i64) -> Self {
        Moment::Millis(number)
    }
}

impl<'de, T: Deserialize<'de>> Shape<'de> for Object<T> {
    fn object<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(|value| Object(Some(value)))
    }
}

impl<'de: 'a, 'a, T: Deserialize<'de> + Default> Shape<'de> for ObjectOrText<'a, T> {
    fn text(text: Cow<'de, str>) -> Self {
        ObjectOrText::Text(text)
    }
    fn object<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(ObjectOrText::Object)
    }
}

impl<'de, T: Deserialize<'de>> Shape<'de> for List<T> {
    fn list<A: SeqAccess<'de>>(mut seq: A) -> Result<Self, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element::<Object<T>>()? {
            items.extend(item.0);
        }
        Ok(List(items))
    }
}

impl<'de: 'a, 'a, T: Deserialize<'de>> Shape<'de> for ListOrText<'a, T> {
    fn text(text: Cow<'de, str>) -> Self {
        let is_kept = matches!(text, Cow::Borrowed(_)) || is_asked_for(&text);
        ListOrText::Text(if is_kept { text } else { Cow::default() })
    }
    fn decoded(text: &str) -> Self {
        ListOrText::Text(if is_asked_for(text) { Cow::Owned(text.to_owned()) } else { Cow::default() })
    }
    fn list<A: SeqAccess<'de>>(seq: A) -> Result<Self, A::Error> {
        <List<T> as Shape>::list(seq).map(|items| ListOrText::List(items.0))
    }
}

/// Whether somebody may ask for a text that is not a part of the line.
fn is_asked_for(text: &str) -> bool {
    text.len() <= LONG_TEXT_BYTES || text.trim_start().starts_with(['<', '['])
}

/// The usual number of fields of an object: to grow a list costs more than to fill it.
const USUAL_FIELDS: usize = 8;

/// The fields of a JSON object, none of them parsed. `null` counts as absent; of a repeated key the last value counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct RawObject<'a>(Vec<(Text<'a>, &'a RawValue)>);

impl<'a> RawObject<'a> {
    /// The fields of a raw value, if it is an object. Serde's error would quote all of a string, which may be a long prompt.
    pub(crate) fn from_raw(raw: &'a RawValue) -> Option<RawObject<'a>> {
        raw.get().starts_with('{').then(|| json::from_str(raw.get()).ok())?
    }

    pub(crate) fn raw(&self, key: &str) -> Option<&'a RawValue> {
        let found = self.0.iter().rev().find(|(name, _)| name.0.as_deref() == Some(key));
        found.map(|(_, raw)| *raw).filter(|raw| raw.get() != "null")
    }

    /// A field as a lenient type: absent if it has another shape.
    pub(crate) fn get<T: Deserialize<'a> + Default>(&self, key: &str) -> T {
        self.raw(key).and_then(|raw| json::from_str(raw.get()).ok()).unwrap_or_default()
    }

    /// A string, unless it is empty.
    pub(crate) fn text(&self, key: &str) -> Option<Cow<'a, str>> {
        self.get::<Text<'a>>(key).some()
    }

    pub(crate) fn string(&self, key: &str) -> Option<String> {
        self.get::<Text<'a>>(key).owned()
    }

    pub(crate) fn count(&self, key: &str) -> Option<u64> {
        self.get::<Count>(key).0
    }

    pub(crate) fn flag(&self, key: &str) -> bool {
        self.get::<Flag>(key).0
    }

    pub(crate) fn value(&self, key: &str) -> Option<Value> {
        self.raw(key).map(value)
    }

    /// All fields as values.
    pub(crate) fn values(&self) -> impl Iterator<Item = (String, Value)> {
        self.0.iter().map(|(key, raw)| (key.clone().0.unwrap_or_default().into_owned(), value(raw)))
    }

    pub(crate) fn parsed<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        self.raw(key).and_then(parsed)
    }

    /// An object; empty if the field has another shape.
    pub(crate) fn object(&self, key: &str) -> RawObject<'a> {
        self.raw(key).and_then(RawObject::from_raw).unwrap_or_default()
    }

    /// The fields that are objects, with their keys.
    pub(crate) fn objects_by_key(&self) -> impl Iterator<Item = (Cow<'a, str>, RawObject<'a>)> {
        self.0.iter().filter_map(|(key, raw)| Some((key.0.clone()?, RawObject::from_raw(raw)?)))
    }

    /// The objects of a list.
    pub(crate) fn objects(&self, key: &str) -> Vec<RawObject<'a>> {
        self.get::<List<RawObject<'a>>>(key).0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for RawObject<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Vec<(Text<'de>, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::with_capacity(USUAL_FIELDS);
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(Fields).map(RawObject)
    }
}

struct AnyShape<T>(PhantomData<T>);

impl<'de, T: Shape<'de>> Visitor<'de> for AnyShape<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }
    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<T, E> {
        Ok(T::text(Cow::Borrowed(text)))
    }
    fn visit_str<E>(self, text: &str) -> Result<T, E> {
        Ok(T::decoded(text))
    }
    fn visit_string<E>(self, text: String) -> Result<T, E> {
        Ok(T::text(Cow::Owned(text)))
    }
    fn visit_bool<E>(self, flag: bool) -> Result<T, E> {
        Ok(T::flag(flag))
    }
    fn visit_i64<E>(self, number: i64) -> Result<T, E> {
        Ok(T::whole(number))
    }
    fn visit_u64<E>(self, number: u64) -> Result<T, E> {
        Ok(i64::try_from(number).map_or_else(|_| T::beyond(), T::whole))
    }
    fn visit_f64<E>(self, number: f64) -> Result<T, E> {
        const FIRST_BEYOND: f64 = 9_223_372_036_854_775_808.0;
        Ok(match number {
            number if number.fract() != 0.0 => T::fraction(number),
            number if number >= FIRST_BEYOND => T::beyond(),
            number => T::whole(number as i64),
        })
    }
    fn visit_unit<E>(self) -> Result<T, E> {
        Ok(T::default())
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::object(map)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<T, A::Error> {
        T::list(seq)
    }
}

macro_rules! deserialize_any_shape {
    ($([$($generics:tt)*] $type:ty;)*) => {$(
        impl<$($generics)*> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(AnyShape(PhantomData))
            }
        }
    )*};
}

deserialize_any_shape! {
    ['de: 'a, 'a] Text<'a>;
    ['de: 'a, 'a] Moment<'a>;
    ['de] Flag;
    ['de] Count;
    ['de] Amount;
    ['de, T: Deserialize<'de>] Object<T>;
    ['de, T: Deserialize<'de>] List<T>;
    ['de: 'a, 'a, T: Deserialize<'de> + Default] ObjectOrText<'a, T>;
    ['de: 'a, 'a, T: Deserialize<'de>] ListOrText<'a, T>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_prompt_nothing_is_kept_unless_an_agent_wrote_it() {
        let read = |start: &str, length: usize| {
            let json = serde_json::to_string(&format!("{start}\n{}", "a".repeat(length))).unwrap();
            let read: ListOrText<'_, Flag> = json::from_str(&json).unwrap();
            read.text().map(str::len)
        };
        assert_eq!(read("hello", 10), Some(16));
        assert_eq!(read("hello", LONG_TEXT_BYTES), Some(0));
        assert_eq!(read("<command-message>", LONG_TEXT_BYTES), Some(LONG_TEXT_BYTES + 18));
    }
}
