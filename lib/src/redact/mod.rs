//! Removes secrets from strings and JSON before they reach a file.
//!
//! A recorder passes every line, header and sidecar through the [`Redactor`] of its options. There are no built-in rules yet.

use std::borrow::Cow;
use std::fmt;

use serde_json::{Map, Value};

use crate::model::json;

/// One kind of secret.
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
/// let redactor = Redactor::new(vec![Box::new(Passwords)]);
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

/// The rules for what must not be written.
pub struct Redactor {
    rules: Vec<Box<dyn Rule>>,
}

/// Their makers verify these byte by byte: a changed one is worse than none.
const SIGNATURES: [&str; 4] = ["signature", "thoughtSignature", "encrypted_content", "encryptedContent"];

impl Redactor {
    /// Applies the rules in this order.
    pub fn new(rules: Vec<Box<dyn Rule>>) -> Redactor {
        Redactor { rules }
    }

    /// The text without secrets. See [`Rule::scrub`].
    pub fn scrub<'t>(&self, key: Option<&str>, text: &'t str) -> Cow<'t, str> {
        self.rules.iter().fold(Cow::Borrowed(text), |text, rule| match text {
            Cow::Borrowed(text) => rule.scrub(key, text),
            Cow::Owned(text) => Cow::Owned(rule.scrub(key, &text).into_owned()),
        })
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
                    let written = map.iter_mut().filter(|(key, _)| !SIGNATURES.contains(&key.as_str()));
                    open.extend(written.map(|(key, value)| (Some(key.clone()), value)));
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

    /// How much of the end of a streamed text to hold back.
    pub(crate) fn held_back(&self, text: &str) -> usize {
        self.rules.iter().map(|rule| rule.held_back(text)).max().unwrap_or_default()
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor of {} rules", self.rules.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    struct Secrets;

    impl Rule for Secrets {
        fn scrub<'t>(&self, key: Option<&str>, text: &'t str) -> Cow<'t, str> {
            match key {
                Some("token") => "***".into(),
                _ if text.contains("secret") => text.replace("secret", "***").into(),
                _ => text.into(),
            }
        }
    }

    #[test]
    fn every_string_is_seen_with_its_key_and_ids_and_signatures_stay() {
        let redactor = Redactor::new(vec![Box::new(Secrets)]);
        let mut line = json!({"uuid": "secret-id", "a": ["a secret", {"b secret": {"c": "secret"}}],
            "signature": "secret", "n": 1, "token": ["abc"]});
        redactor.scrub_json(&mut line, &["secret-id".to_owned()]);
        let wanted = json!({"uuid": "secret-id", "a": ["a ***", {"b ***": {"c": "***"}}], "signature": "secret",
            "n": 1, "token": ["***"]});
        assert_eq!(line, wanted);
    }
}
