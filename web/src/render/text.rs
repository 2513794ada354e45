//! Untrusted text in HTML: what is hidden or directs others becomes visible, and only harmless addresses become links.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What stands in a path or in the name of an anchor as it is.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Text whose control characters are visible. Line ends and tabs stay.
///
/// Characters that change the direction of what follows them could make a name or a command look like another one. Marks that only say
/// in which direction a letter runs stay: Arabic and Hebrew texts need them.
pub fn shown(text: &str) -> Cow<'_, str> {
    let is_active = |c: char| (c.is_control() && !matches!(c, '\n' | '\t')) || is_directing(c);
    if !text.contains(is_active) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match u32::from(c) {
            0x0d if chars.peek() == Some(&'\n') => {}
            0x0a | 0x09 => out.push(c),
            code @ 0..=0x1f => out.extend(char::from_u32(0x2400 + code)),
            0x7f => out.push('␡'),
            0x80..=0x9f => out.extend(c.escape_unicode()),
            _ if is_directing(c) => out.extend(c.escape_unicode()),
            _ => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Embeddings, overrides and isolates.
fn is_directing(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Text in one line.
pub fn line(text: &str) -> String {
    shown(text.trim()).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Text in one line of at most so many characters.
pub fn brief(text: &str, chars: usize) -> String {
    // A long text is not walked for its first words.
    let start = &text[..text.floor_char_boundary(chars.saturating_mul(8))];
    let line = line(start);
    match line.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None if start.len() < text.len() => format!("{line}…"),
        None => line,
    }
}

/// Appends text to HTML, outside of tags or in a quoted attribute.
pub fn push(out: &mut String, text: &str) {
    let text = shown(text);
    let mut rest = &*text;
    while let Some(at) = rest.find(['&', '<', '>', '"', '\'']) {
        out.push_str(&rest[..at]);
        out.push_str(match rest.as_bytes()[at] {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'"' => "&quot;",
            _ => "&#39;",
        });
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
}

/// One part of a path, or the name of an anchor.
pub fn path_segment(text: &str) -> String {
    utf8_percent_encode(text, SEGMENT).to_string()
}

/// The anchor of a message or a record. What is encoded in an id would be decoded in a link to it, so it gets another sign.
pub fn anchor(id: &str) -> String {
    path_segment(id).replace('%', ":")
}

/// An id as it is shown: its first characters.
pub fn short_id(id: &str) -> String {
    const SHOWN_CHARS: usize = 8;
    shown(id).chars().take(SHOWN_CHARS).collect()
}

/// An address that a link may have: a web page or a mailbox. Anything else, such as a script, is shown and leads nowhere.
pub fn web_address(address: &str) -> Option<&str> {
    let address = address.trim();
    let is_plain = !address.contains(|c: char| c.is_control() || c.is_whitespace());
    let (scheme, rest) = address.split_once(':')?;
    let is_known = ["http", "https", "mailto"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    (is_plain && is_known && !rest.is_empty()).then_some(address)
}

/// The host of a web address.
pub fn host(address: &str) -> &str {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    authority.rsplit_once('@').map_or(authority, |(_, host)| host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_hidden_or_directs_becomes_visible() {
        assert_eq!(shown("a\u{1b}[31m\r\nb\tc\u{7f}"), "a␛[31m\nb\tc␡");
        assert_eq!(shown("abc\u{202e}fdp.exe\u{2069}"), "abc\\u{202e}fdp.exe\\u{2069}");
        assert_eq!(shown("مرحبا\u{200f} 👩‍🔬"), "مرحبا\u{200f} 👩‍🔬");
    }

    #[test]
    fn only_web_pages_and_mailboxes_are_links() {
        for (address, is_link) in [
            ("https://example.org/a?b#c", true),
            ("HTTP://example.org", true),
            ("mailto:ada@example.org", true),
            ("javascript:alert(1)", false),
            ("java\nscript:alert(1)", false),
            (" \u{1}javascript:alert(1)", false),
            ("data:text/html,<script>alert(1)</script>", false),
            ("vbscript:x", false),
            ("file:///etc/passwd", false),
            ("//example.org", false),
            ("/s/x", false),
            ("https:", false),
            ("", false),
        ] {
            assert_eq!(web_address(address).is_some(), is_link, "{address:?}");
        }
    }

    #[test]
    fn an_anchor_has_no_character_that_ends_an_attribute_or_is_decoded() {
        assert_eq!(anchor("3f8a-61_c.2"), "3f8a-61_c.2");
        assert_eq!(anchor("a b\"<>%&'#"), "a:20b:22:3C:3E:25:26:27:23");
    }

    #[test]
    fn a_host_is_what_stands_before_the_path() {
        assert_eq!(host("https://u:p@example.org:8080/a@b"), "example.org:8080");
        assert_eq!(host("mailto:x"), "mailto:x");
    }
}
