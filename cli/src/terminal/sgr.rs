//! Takes the colours out of what a program printed.
//!
//! Only whole SGR sequences go (`ESC [ … m`). What is left is cleaned like any other text, so that two halves around a
//! removed sequence cannot become an active one.

use std::borrow::Cow;

/// The longest sequence that programs write is a colour of three numbers with a few attributes.
const MAX_SEQUENCE_BYTES: usize = 64;

/// The text without SGR sequences.
pub(crate) fn strip(text: &str) -> Cow<'_, str> {
    let Some(first) = text.find('\u{1b}') else { return Cow::Borrowed(text) };
    let mut out = String::with_capacity(text.len());
    out.push_str(&text[..first]);
    let mut rest = &text[first..];
    while let Some(escape) = rest.find('\u{1b}') {
        out.push_str(&rest[..escape]);
        rest = &rest[escape..];
        match sequence(rest.as_bytes()) {
            Some(length) => rest = &rest[length..],
            None => {
                out.push('\u{1b}');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The length of the SGR sequence that a text starts with.
fn sequence(bytes: &[u8]) -> Option<usize> {
    let parameters = bytes.strip_prefix(b"\x1b[")?;
    let is_parameter = |byte: &&u8| matches!(byte, b'0'..=b'9' | b';' | b':');
    let length = parameters.iter().take(MAX_SEQUENCE_BYTES).take_while(is_parameter).count();
    (parameters.get(length) == Some(&b'm')).then_some(length + 3)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::terminal::clean;

    #[test]
    fn colours_go_and_everything_else_stays() {
        assert_eq!(strip("\u{1b}[2mCompacted\u{1b}[22m \u{1b}[38;2;1;2;3mx\u{1b}[m"), "Compacted x");
        for text in
            ["", "plain", "\u{1b}[2J", "\u{1b}]0;title\u{7}", "\u{1b}[31", "\u{1b}", "\u{1b}[3\u{1b}", "\u{1b}[>4m"]
        {
            assert_eq!(strip(text), text, "{text:?}");
        }
        let long = format!("\u{1b}[{}m", "1;".repeat(100));
        assert_eq!(strip(&long), long);
    }

    proptest! {
        #[test]
        fn nothing_active_is_left_after_cleaning(pieces in proptest::collection::vec("\u{1b}|\\[|[0-9;]|m|J|\u{9b}|a|\n", 0..40)) {
            let text = pieces.concat();
            let shown = clean::text(&strip(&text)).into_owned();
            prop_assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
        }
    }
}
