//! Taking a JSON object apart without losing anything: a key is taken only if its value has the wanted type, and
//! what nobody took is the rest. So a `null` or a number where a text belongs survives as an unknown key.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The keys of one JSON object that nobody has taken yet.
pub(super) struct Keys(Map<String, Value>);

impl Keys {
    pub(super) fn new(object: Map<String, Value>) -> Keys {
        Keys(object)
    }

    pub(super) fn rest(&mut self) -> Map<String, Value> {
        std::mem::take(&mut self.0)
    }

    pub(super) fn peek(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Takes all of these texts, or, where one is missing, none.
    pub(super) fn strings<const N: usize>(&mut self, keys: [&str; N]) -> Option<[String; N]> {
        let complete = keys.iter().all(|key| self.0.get(*key).is_some_and(Value::is_string));
        complete.then(|| keys.map(|key| self.string(key).unwrap_or_default()))
    }

    pub(super) fn any(&mut self, key: &str) -> Option<Value> {
        self.0.shift_remove(key)
    }

    pub(super) fn string(&mut self, key: &str) -> Option<String> {
        self.take(key, |value| match value {
            Value::String(text) => Ok(text),
            other => Err(other),
        })
    }

    pub(super) fn flag(&mut self, key: &str) -> Option<bool> {
        self.take(key, |value| value.as_bool().ok_or(value))
    }

    pub(super) fn object(&mut self, key: &str) -> Option<Map<String, Value>> {
        self.take(key, |value| match value {
            Value::Object(object) => Ok(object),
            other => Err(other),
        })
    }

    pub(super) fn list(&mut self, key: &str) -> Option<Vec<Value>> {
        self.take(key, |value| match value {
            Value::Array(list) => Ok(list),
            other => Err(other),
        })
    }

    /// Takes one word of a closed set.
    pub(super) fn parsed<T: DeserializeOwned>(&mut self, key: &str) -> Option<T> {
        self.take(key, |value| match value.as_str() {
            Some(word) => T::deserialize(serde::de::value::StrDeserializer::<serde::de::value::Error>::new(word))
                .map_err(|_| value),
            None => Err(value),
        })
    }

    fn take<T>(&mut self, key: &str, wanted: impl FnOnce(Value) -> Result<T, Value>) -> Option<T> {
        match wanted(self.0.shift_remove(key)?) {
            Ok(taken) => Some(taken),
            Err(other) => {
                self.0.insert(key.to_owned(), other);
                None
            }
        }
    }
}
