//! Makes untrusted text harmless on a terminal: control characters and hidden characters become visible.
//!
//! A control character that has a symbol is shown as it (`␛`), every other one as an escape (`\u{202e}`).
//! All other characters stay. Cleaning clean text changes nothing.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation as _;

/// Cleans text that must stay on one line: line ends and tabs become a space.
pub(crate) fn line(text: &str) -> Cow<'_, str> {
    clean(text, Whitespace { line_end: " ", tab: " " })
}

/// Cleans text of many lines: `\n` and `\r\n` end a line, tabs become four spaces.
pub(crate) fn text(text: &str) -> Cow<'_, str> {
    clean(text, Whitespace { line_end: "\n", tab: "    " })
}

/// Whether a character controls a terminal, or is hidden.
pub(crate) fn is_active(c: char) -> bool {
    c.is_control() || is_hidden(c)
}

struct Whitespace {
    line_end: &'static str,
    tab: &'static str,
}

const JOINER: char = '\u{200d}';

fn clean(text: &str, whitespace: Whitespace) -> Cow<'_, str> {
    // Nearly all text is this, and a table has tens of thousands of cells.
    if is_printable_ascii(text) {
        return Cow::Borrowed(text);
    }
    let suspicious = |c: char| match c.is_ascii() {
        true => c.is_ascii_control(),
        false => is_active(c) || c == JOINER || is_variation_selector(c),
    };
    if !text.chars().any(suspicious) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    // `\r\n` is one cluster, and so is an emoji with its joiners.
    for cluster in text.graphemes(true) {
        match cluster {
            "\n" | "\r\n" => out.push_str(whitespace.line_end),
            "\t" => out.push_str(whitespace.tab),
            _ => push_cluster(&mut out, cluster),
        }
    }
    Cow::Owned(out)
}

/// Whether a text is ASCII without control characters.
pub(crate) fn is_printable_ascii(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

fn push_cluster(out: &mut String, cluster: &str) {
    let mut before = None;
    let mut chars = cluster.chars().peekable();
    while let Some(c) = chars.next() {
        let shown_as_is = match c {
            // The segmentation has checked that an emoji precedes the joiner.
            JOINER => before.is_some() && chars.peek().copied().is_some_and(is_joined_emoji),
            // One selector chooses a glyph; a run of them can hide bytes.
            _ if is_variation_selector(c) => before.is_some_and(|b| !is_variation_selector(b)),
            _ => !c.is_control() && !is_hidden(c),
        };
        if shown_as_is {
            out.push(c);
            before = Some(c);
        } else {
            push_visibly(out, c);
            before = None;
        }
    }
}

fn push_visibly(out: &mut String, c: char) {
    match u32::from(c) {
        code @ 0..=0x1f => out.extend(char::from_u32(0x2400 + code)),
        0x7f => out.push('␡'),
        _ => out.extend(c.escape_unicode()),
    }
}

/// Characters that change the layout or are invisible: format characters, fillers, default ignorables.
///
/// Arabic number signs and the like are format characters by category, but have a glyph: they stay.
/// The joiner and the variation selectors depend on their neighbours: see `push_cluster`.
fn is_hidden(c: char) -> bool {
    matches!(
        u32::from(c),
        0xad // soft hyphen
            | 0x34f // grapheme joiner
            | 0x61c // Arabic letter mark
            | 0x115f | 0x1160 | 0x3164 | 0xffa0 // Hangul fillers
            | 0x17b4 | 0x17b5 | 0x180e
            | 0x200b | 0x200c | 0x200e | 0x200f // zero width, direction marks
            | 0x2028..=0x202e // line separators, bidi embedding and override
            | 0x2060..=0x206f // word joiner, bidi isolates, deprecated format characters
            | 0xfeff
            | 0xfff0..=0xfffb // interlinear annotation
            | 0x1_3430..=0x1_343f
            | 0x1_bca0..=0x1_bca3
            | 0x1_d173..=0x1_d17a
            | 0xe_0000..=0xe_00ff // tags
            | 0xe_01f0..=0xe_0fff
    )
}

fn is_variation_selector(c: char) -> bool {
    matches!(u32::from(c), 0x180b..=0x180d | 0x180f | 0xfe00..=0xfe0f | 0xe_0100..=0xe_01ef)
}

/// What may follow a joiner in an emoji sequence: a pictograph, but not a skin tone.
fn is_joined_emoji(c: char) -> bool {
    matches!(u32::from(c), 0x2190..=0x2bff | 0x1_f000..=0x1_f3fa | 0x1_f400..=0x1_faff)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ordinary_text_is_borrowed() {
        for text in ["", "plain", "Grüße, 世界, שלום, e\u{301}", "٪ and \u{600}"] {
            assert!(matches!(line(text), Cow::Borrowed(_)), "{text}");
        }
    }

    #[test]
    fn controls_become_symbols_or_escapes() {
        insta::assert_snapshot!(line("\0\u{1b}[31m\u{7}\u{8}\u{7f}\r\u{9b}2J\u{85}"), @r"␀␛[31m␇␈␡␍\u{9b}2J\u{85}");
    }

    #[test]
    fn hidden_and_bidi_characters_are_escaped() {
        insta::assert_snapshot!(
            line("a\u{202e}b\u{2066}c\u{200b}d\u{feff}e\u{ad}f\u{2028}g\u{e0041}h\u{61c}i\u{200c}"),
            @r"a\u{202e}b\u{2066}c\u{200b}d\u{feff}e\u{ad}f\u{2028}g\u{e0041}h\u{61c}i\u{200c}"
        );
    }

    #[test]
    fn every_named_range_is_covered() {
        let ranges = ["\0..\u{1f}", "\u{7f}..\u{9f}", "\u{200e}..\u{200f}", "\u{202a}..\u{202e}", "\u{2066}..\u{2069}"];
        let listed = ranges.iter().flat_map(|range| {
            let (from, to) = range.split_once("..").unwrap();
            from.chars().next().unwrap()..=to.chars().next().unwrap()
        });
        for c in listed.chain('\u{e0000}'..='\u{e007f}').chain(['\u{61c}', '\u{2060}', '\u{2029}']) {
            assert!(!line(&format!("a{c}b")).contains(c), "{c:?}");
        }
    }

    #[test]
    fn emoji_keep_their_joiners_and_others_do_not() {
        for emoji in ["👩‍👩‍👧", "👩🏽‍🚀", "❤️‍🔥", "🏳️‍🌈", "1️⃣"] {
            assert_eq!(line(emoji), emoji);
        }
        insta::assert_snapshot!(line("a\u{200d}b 👩\u{200d} 👩\u{200d}\u{200d}👩"), @r"a\u{200d}b 👩\u{200d} 👩\u{200d}\u{200d}👩");
    }

    #[test]
    fn a_run_of_variation_selectors_cannot_hide() {
        insta::assert_snapshot!(line("☺\u{fe0f}\u{e0101}\u{e0102}"), @"☺\u{fe0f}\\u{e0101}\\u{e0102}");
    }

    #[test]
    fn line_ends_and_tabs_depend_on_the_place() {
        assert_eq!(line("a\r\nb\nc\td"), "a b c d");
        assert_eq!(text("a\r\nb\nc\td"), "a\nb\nc    d");
        assert_eq!(text("a\rb"), "a␍b");
    }

    proptest! {
        #[test]
        fn clean_text_has_no_active_characters_and_stays_as_it_is(source in any::<String>()) {
            let once = text(&source);
            prop_assert!(!once.chars().any(|c| (c.is_control() && c != '\n') || is_hidden(c)));
            prop_assert_eq!(&*text(&once), &*once);
            let one_line = line(&source);
            prop_assert!(!one_line.chars().any(char::is_control));
        }

        #[test]
        fn harmless_characters_are_never_lost(source in "[^\\p{C}]*") {
            let kept: String = source.chars().filter(|&c| !is_hidden(c) && !is_variation_selector(c)).collect();
            let shown = line(&source);
            let mut rest = shown.chars();
            prop_assert!(kept.chars().all(|c| rest.any(|r| r == c)));
        }
    }
}
