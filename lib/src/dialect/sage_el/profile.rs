//! The rules of the format's own description for a line, stricter than the reader.

use serde_json::Value;

use crate::dialect::profile::Fault;
use crate::model::json;
use crate::model::lenient::Moment;
use crate::model::time::is_iso_8601;

/// Checks one line: a known `role`, a `content` that is a text and not empty, and a `timestamp`, if there is one, in
/// ISO 8601.
///
/// ```
/// use scrollback::dialect::sage_el_faults;
///
/// assert_eq!(sage_el_faults(r#"{"role":"user","content":"hi","timestamp":"2026-01-11T17:00:00-0500"}"#), []);
/// assert_eq!(sage_el_faults(r#"{"role":"tool","content":"hi"}"#)[0].field.as_deref(), Some("role"));
/// ```
pub fn faults(line: &str) -> Vec<Fault> {
    let fault = |field: Option<&str>, reason| Fault { field: field.map(str::to_owned), reason };
    match json::parse(line) {
        Ok(Value::Object(message)) => {
            let of = |field: &'static str, check: fn(Option<&Value>) -> Option<String>| {
                check(message.get(field)).map(|reason| fault(Some(field), reason))
            };
            [of("role", role), of("content", content), of("timestamp", timestamp)]
                .into_iter()
                .flatten()
                .collect()
        }
        Ok(_) => vec![fault(None, "JSON, but not an object".to_owned())],
        Err(_) => vec![fault(None, "not a JSON object".to_owned())],
    }
}

fn role(value: Option<&Value>) -> Option<String> {
    match value {
        Some(Value::String(role)) if matches!(role.as_str(), "user" | "assistant" | "system") => None,
        Some(Value::String(role)) => {
            let role: String = role.chars().take(ROLE_SHOWN_CHARS).collect();
            Some(format!("{role:?} is not user, assistant or system"))
        }
        other => Some(shape("a text", other)),
    }
}

fn content(value: Option<&Value>) -> Option<String> {
    match value {
        Some(Value::String(text)) => text.is_empty().then(|| "it is empty".to_owned()),
        other => Some(shape("a text", other)),
    }
}

fn timestamp(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(time) if is_iso_8601(&Moment::Text(time.into())) => None,
        Value::String(_) => Some("not an ISO 8601 time".to_owned()),
        other => Some(shape("an ISO 8601 time", Some(other))),
    }
}

/// A longer role is shown shortened.
const ROLE_SHOWN_CHARS: usize = 40;

fn shape(wanted: &str, value: Option<&Value>) -> String {
    let found = match value {
        None => return "it is missing".to_owned(),
        Some(Value::Null) => "null",
        Some(Value::Bool(_)) => "true or false",
        Some(Value::Number(_)) => "a number",
        Some(Value::String(_)) => "a text",
        Some(Value::Array(_)) => "a list",
        Some(Value::Object(_)) => "an object",
    };
    format!("{found}, not {wanted}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_valid_or_names_the_field_that_fails() {
        for (line, field) in [
            (r#"{"role":"user","content":"hi"}"#, None),
            (r#"{"role":"system","content":" ","timestamp":"2026-01-11T22:00:00Z"}"#, None),
            (r#"{"role":"assistant","content":"x","timestamp":"2026-01-11T17:00:00-0500"}"#, None),
            (r#"{"role":"assistant","content":"x","timestamp":"2026-01-11T17:00:00.250+05:30"}"#, None),
            (r#"{"role":"assistant","content":"x","timestamp":"2099-01-11T17:00:00Z"}"#, None),
            (r#"{"role":"user","content":"x","extra":[1]}"#, None),
            (r#"{"role":"tool","content":"x"}"#, Some("role")),
            (r#"{"role":"User","content":"x"}"#, Some("role")),
            (r#"{"role":7,"content":""}"#, Some("role")),
            (r#"{"content":"x"}"#, Some("role")),
            (r#"{"role":"user"}"#, Some("content")),
            (r#"{"role":"user","content":""}"#, Some("content")),
            (r#"{"role":"user","content":null}"#, Some("content")),
            (r#"{"role":"user","content":["x"]}"#, Some("content")),
            (r#"{"role":"user","content":"x","timestamp":"yesterday"}"#, Some("timestamp")),
            (r#"{"role":"user","content":"x","timestamp":"..."}"#, Some("timestamp")),
            (r#"{"role":"user","content":"x","timestamp":1768168800}"#, Some("timestamp")),
            (r#"{"role":"user","content":"x","timestamp":null}"#, Some("timestamp")),
        ] {
            assert_eq!(faults(line).first().map(|fault| fault.field.as_deref()), field.map(Some), "{line}");
        }
        for line in ["", "[1]", "{\"role\":\"us", "null"] {
            assert_eq!(faults(line).first().map(|fault| fault.field.as_deref()), Some(None), "{line}");
        }
        let all = faults(r#"{"role":"tool","content":"","timestamp":7}"#);
        assert_eq!(
            all.iter().filter_map(|fault| fault.field.as_deref()).collect::<Vec<_>>(),
            ["role", "content", "timestamp"]
        );
    }
}
