//! Rules in code: what only the program that embeds the library knows.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::Redactor;
use crate::model::json;

/// One kind of secret, as code.
///
/// ```
/// use scrollback::redact::{Redactor, Rule};
/// use std::borrow::Cow;
///
/// struct Passwords;
///
/// impl Rule for Passwords {
///     fn scrub<'t>(&self, key: Option<&str>, text: &'t str) -> Cow<'t, str> {
///         if key == Some("password") { Cow::Borrowed("***") } else { Cow::Borrowed(text) }
///     }
/// }
///
/// let redactor = Redactor::of_rules(vec![Box::new(Passwords)]);
/// let mut line = serde_json::json!({"user": "ada", "password": "tide"});
/// redactor.scrub_json(&mut line, &[]);
/// assert_eq!(line["password"], "***");
/// ```
pub trait Rule: Send + Sync {
    /// The text without the secret. `key` is the object key that the text is the value of; `None` for keys themselves and
    /// for the text of a stream.
    fn scrub<'t>(&self, key: Option<&str>, text: &'t str) -> Cow<'t, str>;

    /// How many bytes at the end of a streamed text could be the start of a secret: they are held back.
    fn held_back(&self, _text: &str) -> usize {
        0
    }
}

/// Their makers verify these byte by byte: a changed one is worse than none.
const SIGNATURES: [&str; 4] = ["signature", "thoughtSignature", "encrypted_content", "encryptedContent"];

impl Redactor {
    /// The text without secrets. See [`Redactor::value`], which says also what was found.
    pub fn scrub<'t>(&self, key: Option<&str>, text: &'t str) -> Cow<'t, str> {
        self.value(key, text).text
    }

    /// Scrubs every string of a value, keys too, except the ids by which others find it.
    pub fn scrub_json(&self, value: &mut Value, ids: &[String]) {
        let mut open: Vec<(Option<String>, &mut Value)> = vec![(None, value)];
        while let Some((key, value)) = open.pop() {
            if json::number_text(value).is_some() {
                continue;
            }
            match value {
                Value::String(text) if ids.contains(text) => {}
                Value::String(text) => {
                    let scrubbed = self.scrub(key.as_deref(), text);
                    if scrubbed != text.as_str() {
                        *text = scrubbed.into_owned();
                    }
                }
                Value::Array(values) => open.extend(values.iter_mut().map(|value| (key.clone(), value))),
                Value::Object(map) => {
                    self.scrub_keys(map);
                    let pair = super::json::pair_name(map).map(str::to_owned);
                    let written = map.iter_mut().filter(|(key, _)| !SIGNATURES.contains(&key.as_str()));
                    let named = |key: &String| super::json::judged_as(key, pair.as_deref()).to_owned();
                    open.extend(written.map(|(key, value)| (Some(named(key)), value)));
                }
                Value::Null | Value::Bool(_) | Value::Number(_) => {}
            }
        }
    }

    fn scrub_keys(&self, map: &mut Map<String, Value>) {
        if map.keys().any(|key| self.scrub(None, key) != key.as_str()) {
            let scrubbed = std::mem::take(map).into_iter();
            *map = scrubbed.map(|(key, value)| (self.scrub(None, &key).into_owned(), value)).collect();
        }
    }
}
