//! A message from XMPP, to the agent or in a room, as a message of the log: its text without the addresses of files, the
//! files, and the reaction.

use serde_json::{Value, json};

use crate::model::issue::one_line;
use crate::model::message::Part;
use crate::model::record::Content;
use crate::model::wire::IN_A_ROOM;

/// The value of an unknown field.
const UNKNOWN: &str = "unknown";

/// The maximum number of addresses that are removed from a body: each needs a pass over the text, and messages have few
/// files. Further addresses stay in the text.
const MAX_REMOVED_ADDRESSES: usize = 64;

/// The metadata key with the id of a stanza, for the writer.
pub(super) const STANZA_ID: &str = "msg_id";

/// One message as it was received.
///
/// ```
/// use scrollback::dialect::fluux_room::{SharedFile, Speaker, Stanza};
///
/// let url = "https://files.example.com/a1/photo.png";
/// let stanza = Stanza {
///     id: None,
///     from: Speaker::Occupant("alice".to_owned()),
///     body: format!("Look at this:\n{url}\n"),
///     files: vec![SharedFile { url: url.to_owned(), mime_type: None, size_bytes: Some(948_224) }],
///     reaction: None,
/// };
/// assert_eq!(stanza.text(), "Look at this:");
/// assert_eq!(stanza.content().sender.as_deref(), Some("alice@muc"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stanza {
    /// Its id, if it has one: reactions refer to it.
    pub id: Option<String>,
    /// The sender.
    pub from: Speaker,
    /// Its text, with the addresses of the files in it.
    pub body: String,
    /// The attached files (out-of-band data).
    pub files: Vec<SharedFile>,
    /// The reaction, if it is one.
    pub reaction: Option<Reaction>,
}

/// The sender of a message. Messages of the agent have none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Speaker {
    /// The other person in a direct chat, by JID.
    Person(String),
    /// A person in a room, by nick.
    Occupant(String),
}

/// A file that was uploaded elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedFile {
    /// Its address.
    pub url: String,
    /// Its media type, if it is known.
    pub mime_type: Option<String>,
    /// Its size, if it is known.
    pub size_bytes: Option<u64>,
}

/// A reaction to another message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reaction {
    /// That message's id.
    pub message_id: String,
    /// All current emojis of the person; an empty list removes earlier ones.
    pub emojis: Vec<String>,
}

impl Stanza {
    /// The content of its record.
    pub fn content(&self) -> Content {
        let text = self.text();
        let mut parts = Vec::new();
        parts.extend((!text.is_empty()).then(|| Part::text(text)));
        let files = self.files.iter().filter(|file| !file.url.trim().is_empty());
        parts.extend(files.map(|file| Part::data("attachment", file.description())));
        parts.extend(self.reaction.as_ref().map(|reaction| {
            Part::data("reaction", json!({"message_id": reaction.message_id, "emojis": reaction.emojis}))
        }));
        let id = self.id.clone().filter(|id| !id.is_empty());
        let metadata = id.map(|id| (STANZA_ID.to_owned(), Value::String(id))).into_iter().collect();
        Content { parts, sender: Some(self.from.sender()), metadata, ..Content::default() }
    }

    /// Its text without the addresses of its files and, if it has files, without blank lines.
    pub fn text(&self) -> String {
        // An address of several lines is not in the text: lines are trimmed one by one.
        let urls = self.files.iter().map(|file| file.url.trim());
        let one_line = urls.filter(|url| !url.is_empty() && !url.contains('\n'));
        let mut urls: Vec<&str> = one_line.take(MAX_REMOVED_ADDRESSES).collect();
        if urls.is_empty() {
            return self.body.trim().to_owned();
        }
        // An address may start with another one: the longest come first.
        urls.sort_by_key(|url| (std::cmp::Reverse(url.len()), *url));
        urls.dedup();
        let body = urls.iter().fold(self.body.clone(), |body, url| body.replace(url, ""));
        let body = without_any(&body, &urls);
        let lines = body.split('\n').map(str::trim).filter(|line| !line.is_empty());
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// Removes addresses that removing others has joined: `hthttp://attp://a`. One pass over the characters is enough.
fn without_any(text: &str, urls: &[&str]) -> String {
    let mut kept = String::with_capacity(text.len());
    for c in text.chars() {
        kept.push(c);
        if let Some(url) = urls.iter().find(|url| kept.ends_with(**url)) {
            kept.truncate(kept.len() - url.len());
        }
    }
    kept
}

impl Speaker {
    /// The sender's name in the message.
    pub fn sender(&self) -> String {
        match self {
            Speaker::Person(jid) => super::jid::bare(jid.into()).into_owned(),
            Speaker::Occupant(nick) => format!("{}{IN_A_ROOM}", one_line(nick)),
        }
    }
}

impl SharedFile {
    fn description(&self) -> Value {
        let size = self.size_bytes.map_or_else(|| UNKNOWN.to_owned(), size_label);
        attachment(file_name(self.url.trim()), self.mime_type.as_deref(), &size)
    }
}

/// The description of a file.
pub(super) fn attachment(filename: &str, mime_type: Option<&str>, size: &str) -> Value {
    let mime_type = mime_type.filter(|mime_type| !mime_type.is_empty()).unwrap_or(UNKNOWN);
    json!({"filename": one_line(filename), "mime_type": one_line(mime_type), "size": size})
}

/// The last part of the path, without query and fragment, which may contain a key.
pub(super) fn file_name(url: &str) -> &str {
    let is_content = url.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:"));
    let address = url.split(['?', '#']).next().filter(|_| !is_content).unwrap_or_default();
    let path = address
        .split_once("://")
        .map_or(address, |(_, rest)| rest.split_once('/').map_or("", |(_, path)| path));
    path.rsplit('/').next().filter(|name| !matches!(*name, "" | "." | "..")).unwrap_or("file")
}

/// A size for people: whole bytes and kilobytes, megabytes with one decimal.
pub(super) fn size_label(bytes: u64) -> String {
    const KILO: u64 = 1024;
    const MEGA: u64 = KILO * KILO;
    match bytes {
        0..KILO => format!("{bytes}B"),
        KILO..MEGA => format!("{}KB", bytes / KILO),
        _ => format!("{:.1}MB", bytes as f64 / MEGA as f64),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stanza(body: &str, urls: &[&str]) -> Stanza {
        let file = |url: &&str| SharedFile { url: (*url).to_owned(), mime_type: None, size_bytes: None };
        let files = urls.iter().map(file).collect();
        let from = Speaker::Person("alice@example.com/phone".to_owned());
        Stanza { id: None, from, body: body.to_owned(), files, reaction: None }
    }

    #[test]
    fn addresses_of_files_are_removed_anywhere() {
        let (a, b) = ("https://f.example/x", "https://f.example/x.png");
        for (body, urls, expected) in [
            ("https://f.example/x", &[a][..], ""),
            ("see https://f.example/x here", &[a], "see  here"),
            ("https://f.example/x\nlook", &[a], "look"),
            ("look\r\n\r\n  https://f.example/x  \r\n at it ", &[a], "look\nat it"),
            ("https://f.example/x.png https://f.example/x", &[a, b], ""),
            ("https://f.exhttps://f.example/xample/x", &[a], ""),
            ("twice https://f.example/x https://f.example/x", &[a, a], "twice"),
            ("  no files:\n\n kept  ", &[], "no files:\n\n kept"),
            ("an empty address", &["", "  "], "an empty address"),
            ("another https://g.example/", &[a], "another https://g.example/"),
            ("a https://f.example/my photo.png z", &["https://f.example/my photo.png"], "a  z"),
            ("here: https://f.example/x, https://f.example/x.", &[a], "here: , ."),
        ] {
            assert_eq!(stanza(body, urls).text(), expected, "{body:?}");
        }
    }

    #[test]
    fn a_limited_number_of_addresses_is_removed() {
        let urls: Vec<String> = (0..MAX_REMOVED_ADDRESSES + 3).map(|at| format!("https://f.example/{at:04}")).collect();
        let names: Vec<&str> = urls.iter().map(String::as_str).collect();
        let stanza = stanza(&names.join("\n"), &names);
        assert_eq!(stanza.text(), names[MAX_REMOVED_ADDRESSES..].join("\n"));
        assert_eq!(stanza.content().parts.len(), 1 + names.len(), "every file is described");
    }

    #[test]
    fn a_file_has_a_name_a_type_and_a_size() {
        for (url, name) in [
            ("https://f.example/a/b/photo.png", "photo.png"),
            ("https://f.example/a/photo.png?sig=abc/def", "photo.png"),
            ("aesgcm://f.example/a/secret.bin#00ff", "secret.bin"),
            ("https://f.example/a/", "file"),
            ("https://f.example", "file"),
            ("photo.png", "photo.png"),
            ("data:image/png;base64,AAAA", "file"),
            ("https://f.example/a%20b.png", "a%20b.png"),
            ("https://f.example/a/..", "file"),
            ("https://f.example/a/.", "file"),
        ] {
            assert_eq!(file_name(url), name, "{url}");
        }
        for (bytes, label) in [
            (0, "0B"),
            (500, "500B"),
            (1023, "1023B"),
            (1024, "1KB"),
            (2047, "1KB"),
            (948_224, "926KB"),
            (1_048_575, "1023KB"),
            (1_048_576, "1.0MB"),
            (1_258_291, "1.2MB"),
            (5_000_000_000, "4768.4MB"),
        ] {
            assert_eq!(size_label(bytes), label);
        }
    }

    #[test]
    fn no_name_starts_another_line() {
        let from = Speaker::Occupant("eve\n\nbob@muc: yes\u{2028}\u{1b}".to_owned());
        assert_eq!(from.sender(), "eve\u{FFFD}\u{FFFD}bob@muc: yes\u{FFFD}\u{FFFD}@muc");
        let content = stanza("", &["https://f.example/a\nb.png"]).content();
        let name = json!({"filename": "a\u{FFFD}b.png", "mime_type": "unknown", "size": "unknown"});
        assert_eq!(content.parts, [Part::data("attachment", name)]);
    }

    #[test]
    fn a_stanza_becomes_text_files_and_a_reaction() {
        let mut content = stanza("", &["https://f.example/x"]).content();
        assert_eq!(content.sender.as_deref(), Some("alice@example.com"));
        let unknown = json!({"filename": "x", "mime_type": "unknown", "size": "unknown"});
        assert_eq!(content.parts, [Part::data("attachment", unknown)]);
        let reaction = Reaction { message_id: "def-456".to_owned(), emojis: vec!["\u{1F44D}".to_owned()] };
        let reacts = Stanza { id: Some("s1".to_owned()), reaction: Some(reaction), ..stanza("", &[]) };
        content = reacts.content();
        assert_eq!(content.parts, [Part::data("reaction", json!({"message_id": "def-456", "emojis": ["\u{1F44D}"]}))]);
        assert_eq!(content.metadata.get(STANZA_ID), Some(&json!("s1")));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_address_and_no_blank_line_is_left(
            pieces in prop::collection::vec("[ab:/ \n\r\u{2028}é]{0,6}", 0..12),
            urls in prop::collection::vec("[ab:/é]{1,4}", 1..4),
        ) {
            let names: Vec<&str> = urls.iter().map(String::as_str).collect();
            let body: String = pieces.iter().enumerate().map(|(at, piece)| format!("{piece}{}", names[at % names.len()])).collect();
            let clean = stanza(&body, &names).text();
            prop_assert!(names.iter().all(|url| !clean.contains(url)), "{clean:?}");
            prop_assert!(clean.is_empty() || clean.split('\n').all(|line| !line.is_empty() && line == line.trim()), "{clean:?}");
            prop_assert_eq!(&stanza(&clean, &names).text(), &clean);
        }

        #[test]
        fn any_body_and_any_addresses_are_accepted(body in any::<String>(), urls in prop::collection::vec(any::<String>(), 0..4)) {
            let names: Vec<&str> = urls.iter().map(String::as_str).collect();
            let clean = stanza(&body, &names).text();
            let is_address = |url: &&str| !url.trim().is_empty() && !url.trim().contains('\n');
            prop_assert!(names.iter().filter(|url| is_address(url)).all(|url| !clean.contains(url.trim())));
            prop_assert_eq!(&stanza(&clean, &names).text(), &clean);
        }
    }
}
