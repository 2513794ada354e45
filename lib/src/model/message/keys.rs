//! Takes a JSON object apart without losing anything: a key is taken only if its value has the right type, and all other keys
//! are the rest. So a `null` or a number in place of a text survives as an unknown key.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Approval, Part, Role, StreamState};

/// The keys of one JSON object that were not taken yet.
pub(super) struct Keys {
    object: Map<String, Value>,
    /// Its `type` is known by the enum that holds the result.
    is_part: bool,
}

impl Keys {
    pub(super) fn new(object: Map<String, Value>) -> Keys {
        Keys { object, is_part: false }
    }

    pub(super) fn of_part(object: Map<String, Value>) -> Keys {
        Keys { object, is_part: true }
    }

    /// Every key that was not taken.
    pub(super) fn rest(&mut self) -> Map<String, Value> {
        if self.is_part {
            self.object.shift_remove("type");
        }
        std::mem::take(&mut self.object)
    }

    /// The object, if nothing was taken.
    pub(super) fn into_object(self) -> Map<String, Value> {
        self.object
    }

    pub(super) fn peek(&self, key: &str) -> Option<&Value> {
        self.object.get(key)
    }

    pub(super) fn peek_text(&self, key: &str) -> Option<&str> {
        self.peek(key)?.as_str()
    }

    pub(super) fn len(&self) -> usize {
        self.object.len()
    }

    /// Takes a key if its value has this type.
    pub(super) fn take<T: FromJson>(&mut self, key: &str) -> Option<T> {
        match T::from_json(self.object.shift_remove(key)?) {
            Ok(taken) => Some(taken),
            Err(other) => {
                self.object.insert(key.to_owned(), other);
                None
            }
        }
    }
}

/// Sets a key, if there is a value. JSON drops what JavaScript calls undefined.
pub(crate) fn put(object: &mut Map<String, Value>, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        object.insert(key.to_owned(), value.into());
    }
}

/// The keys of a JSON object that have a value other than `null`.
pub(crate) fn object(json: Value) -> Map<String, Value> {
    let Value::Object(mut object) = json else { return Map::new() };
    object.retain(|_, value| !value.is_null());
    object
}

/// A type of JSON value; a value of another type is given back.
pub(super) trait FromJson: Sized {
    fn from_json(value: Value) -> Result<Self, Value>;
}

impl FromJson for Value {
    fn from_json(value: Value) -> Result<Value, Value> {
        Ok(value)
    }
}

impl FromJson for String {
    fn from_json(value: Value) -> Result<String, Value> {
        if let Value::String(text) = value { Ok(text) } else { Err(value) }
    }
}

impl FromJson for bool {
    fn from_json(value: Value) -> Result<bool, Value> {
        value.as_bool().ok_or(value)
    }
}

impl FromJson for Map<String, Value> {
    fn from_json(value: Value) -> Result<Map<String, Value>, Value> {
        if let Value::Object(object) = value { Ok(object) } else { Err(value) }
    }
}

impl FromJson for Vec<Value> {
    fn from_json(value: Value) -> Result<Vec<Value>, Value> {
        if let Value::Array(list) = value { Ok(list) } else { Err(value) }
    }
}

impl FromJson for Vec<Part> {
    fn from_json(value: Value) -> Result<Vec<Part>, Value> {
        Vec::from_json(value).map(|list: Vec<Value>| list.into_iter().map(Part::from).collect())
    }
}

impl FromJson for StreamState {
    fn from_json(value: Value) -> Result<StreamState, Value> {
        StreamState::deserialize(&value).map_err(|_| value)
    }
}

impl FromJson for Role {
    fn from_json(value: Value) -> Result<Role, Value> {
        Role::deserialize(&value).map_err(|_| value)
    }
}

impl FromJson for Approval {
    fn from_json(value: Value) -> Result<Approval, Value> {
        let mut keys = Keys::new(Map::from_json(value)?);
        Approval::read(&mut keys).ok_or_else(|| keys.into_object().into())
    }
}

/// A field of a part: required, or optional.
pub(super) trait Field: Sized {
    /// Whether there is a part with this value.
    fn fits(value: Option<&Value>) -> bool;
    fn take(keys: &mut Keys, key: &str) -> Self;
    fn is_absent(&self) -> bool {
        false
    }
}

impl Field for String {
    fn fits(value: Option<&Value>) -> bool {
        value.is_some_and(Value::is_string)
    }
    fn take(keys: &mut Keys, key: &str) -> String {
        keys.take(key).unwrap_or_default()
    }
}

impl Field for Vec<Part> {
    fn fits(value: Option<&Value>) -> bool {
        value.is_some_and(Value::is_array)
    }
    fn take(keys: &mut Keys, key: &str) -> Vec<Part> {
        keys.take(key).unwrap_or_default()
    }
}

impl<T: FromJson> Field for Option<T> {
    fn fits(_: Option<&Value>) -> bool {
        true
    }
    fn take(keys: &mut Keys, key: &str) -> Option<T> {
        keys.take(key)
    }
    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

/// Declares structs of JSON objects: each key with its field. Reading returns `None`, and takes nothing, if a required key is
/// missing or has another type.
macro_rules! json_structs {
    ($($(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $key:literal $field:ident: $type:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize)]
        pub struct $name {
            $($(#[$about])* #[serde(rename = $key, skip_serializing_if = "Field::is_absent")] pub $field: $type,)*
            /// All other keys.
            #[serde(flatten)]
            pub extra: Map<String, Value>,
        }

        impl $name {
            pub(super) fn read(keys: &mut Keys) -> Option<$name> {
                let fits = $(<$type as Field>::fits(keys.peek($key)))&&*;
                fits.then(|| $name { $($field: Field::take(keys, $key),)* extra: keys.rest() })
            }
        }
    )*};
}
pub(super) use json_structs;
