//! Rules in code: what only the program that embeds the library knows.

use std::borrow::Cow;
use std::sync::Arc;

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
/// redactor.json(&mut line);
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

/// What the rules make of a text, one after the other; `None` if they leave it as it is.
pub(super) fn scrubbed(rules: &[Arc<dyn Rule>], key: Option<&str>, text: &str) -> Option<String> {
    let mut new = None;
    for rule in rules {
        let before = new.as_deref().unwrap_or(text);
        let after = rule.scrub(key, before);
        if after != before {
            new = Some(after.into_owned());
        }
    }
    new
}
