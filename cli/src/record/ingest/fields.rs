//! Takes the fields of a JSON object one by one; the rest is reported as lost.

use scrollback::model::json;
use scrollback::model::quoted;
use serde_json::{Map, Value};

use super::Refused;

/// The fields that are not taken yet.
pub(super) struct Fields(pub(super) Map<String, Value>);

impl Fields {
    /// Takes a field by the first of its names that is present; `null` counts as absent.
    pub(super) fn any(&mut self, names: &[&str]) -> Option<Value> {
        names.iter().find_map(|name| self.0.shift_remove(*name)).filter(|value| !value.is_null())
    }

    /// Takes a text, or fails when the field is something else.
    pub(super) fn text(&mut self, names: &[&str]) -> Result<Option<String>, Refused> {
        match self.any(names) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong(names, "a text", &other)),
        }
    }

    /// Takes a whole number that is not negative.
    pub(super) fn count(&mut self, names: &[&str]) -> Result<Option<u64>, Refused> {
        match self.any(names) {
            None => Ok(None),
            Some(value) => match value.as_u64().or_else(|| whole(json::as_f64(&value)?)) {
                Some(count) => Ok(Some(count)),
                None => Err(wrong(names, "a whole number, not negative", &value)),
            },
        }
    }

    /// Takes `true` or `false`.
    pub(super) fn flag(&mut self, names: &[&str]) -> Result<Option<bool>, Refused> {
        match self.any(names) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(other) => Err(wrong(names, "true or false", &other)),
        }
    }

    /// Takes an object.
    pub(super) fn object(&mut self, names: &[&str]) -> Result<Option<Map<String, Value>>, Refused> {
        match self.any(names) {
            None => Ok(None),
            Some(Value::Object(object)) => Ok(Some(object)),
            Some(other) => Err(wrong(names, "an object", &other)),
        }
    }

    /// Takes a text that must be there.
    pub(super) fn needed(&mut self, names: &[&str]) -> Result<String, Refused> {
        self.text(names)?.ok_or_else(|| Refused(format!("{} is missing", first(names))))
    }
}

fn whole(number: f64) -> Option<u64> {
    // Larger numbers are not exact.
    const LARGEST: f64 = 9_007_199_254_740_992.0;
    (number.fract() == 0.0 && (0.0..=LARGEST).contains(&number)).then_some(number as u64)
}

fn first<'n>(names: &[&'n str]) -> &'n str {
    names.first().copied().unwrap_or_default()
}

/// The error for a field of the wrong type.
pub(super) fn wrong(names: &[&str], wanted: &str, found: &Value) -> Refused {
    let found = match found {
        number if let Some(text) = json::number_text(number) => text.to_owned(),
        Value::Null => "nothing".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => quoted(text),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    };
    Refused(format!("{} is {found} and should be {wanted}", first(names)))
}
