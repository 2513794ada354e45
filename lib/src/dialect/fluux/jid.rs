//! The addresses of people and rooms, and which of them can be the name of a folder.

use std::borrow::Cow;
use std::path::{Component, Path};

use crate::dialect::writer::FILE_NAME_LIMIT_BYTES;

/// The JID without its resource, if it can be the name of a folder in the store; otherwise why it cannot.
///
/// ```
/// use scrollback::dialect::bare_jid;
///
/// assert_eq!(bare_jid("alice@example.com/phone").as_deref(), Ok("alice@example.com"));
/// assert!(bare_jid("../bob@example.com").is_err());
/// ```
pub fn bare_jid(jid: &str) -> Result<String, String> {
    let bare = jid.split('/').next().unwrap_or_default();
    let refuse = |why: &str| Err(format!("invalid JID {jid:?}: {why}"));
    if bare.is_empty() {
        return refuse("it has nothing before the resource");
    }
    if bare.starts_with('@') || bare.ends_with('@') {
        return refuse("it needs text before and after the @");
    }
    if bare.len() > FILE_NAME_LIMIT_BYTES {
        let length = bare.len();
        return Err(format!("the JID is {length} bytes long; a folder's name has at most {FILE_NAME_LIMIT_BYTES}"));
    }
    if bare.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return refuse("it has white space or a control character");
    }
    // On a command line the folder's name would be an option, standard input, a home directory or a record.
    if bare.starts_with(['-', '~']) || bare.contains(['#', ':']) {
        return refuse("it begins with - or ~, or has a # or a :");
    }
    if bare.ends_with('.') && !matches!(bare, "." | "..") {
        return refuse("it ends with a dot");
    }
    let mut steps = Path::new(bare).components();
    match (steps.next(), steps.next()) {
        (Some(Component::Normal(name)), None) if name == bare => Ok(bare.to_owned()),
        _ => refuse("it leads out of the store"),
    }
}

/// A JID without its resource, which is the device: a chat does not depend on it.
pub(super) fn bare(jid: Cow<'_, str>) -> Cow<'_, str> {
    match (jid.find('/'), jid) {
        (None | Some(0), jid) => jid,
        (Some(end), Cow::Borrowed(jid)) => Cow::Borrowed(&jid[..end]),
        (Some(end), Cow::Owned(jid)) => Cow::Owned(jid[..end].to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jid_is_reduced_to_the_bare_one_and_never_leaves_the_store() {
        for (jid, expected) in [
            ("alice@example.com", Some("alice@example.com")),
            ("alice@example.com/phone", Some("alice@example.com")),
            ("alice@example.com/../../etc", Some("alice@example.com")),
            ("lobby@conference.example.com/nick/with/slashes", Some("lobby@conference.example.com")),
            ("example.com", Some("example.com")),
            ("...@example.com", Some("...@example.com")),
            ("jürgen@exämple.org", Some("jürgen@exämple.org")),
            ("", None),
            ("/", None),
            ("/etc/passwd", None),
            (".", None),
            ("..", None),
            ("../alice@example.com", None),
            ("./alice@example.com", None),
            ("alice\0@example.com", None),
            ("alice@example.com\n", None),
            (" alice@example.com", None),
            ("@example.com", None),
            ("alice@/phone", None),
            ("Alice@Example.COM/Phone", Some("Alice@Example.COM")),
            ("a%2F..%2Fb@example.com", Some("a%2F..%2Fb@example.com")),
            ("-", None),
            ("--help@example.com", None),
            ("~", None),
            ("#", None),
            ("alice:1@example.com", None),
            ("alice@example.com.", None),
        ] {
            assert_eq!(bare_jid(jid).ok().as_deref(), expected, "{jid:?}");
        }
        assert!(bare_jid(&"a".repeat(FILE_NAME_LIMIT_BYTES)).is_ok());
        assert!(bare_jid(&"a".repeat(FILE_NAME_LIMIT_BYTES + 1)).is_err());
    }
}
