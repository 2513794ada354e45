//! A text as one line, for titles: as it was typed, since a title is a name or a prompt.

use unicode_segmentation::UnicodeSegmentation as _;

use super::clean;

/// How many bytes of the source are read per character of the line.
const SOURCE_BYTES_PER_CHAR: usize = 64;

/// The text on one line of at most `max_chars` characters; `…` marks a cut.
pub(crate) fn one_line(source: &str, max_chars: usize) -> String {
    if source.len() <= max_chars && is_one_line(source) {
        return source.to_owned();
    }
    let window = source.floor_char_boundary(max_chars.saturating_mul(SOURCE_BYTES_PER_CHAR));
    let mut line = OneLine::default();
    line.push(&source[..window]);
    line.cut(max_chars, window < source.len())
}

/// Whether a text is one line as it is: most titles are, also those that were cut.
fn is_one_line(text: &str) -> bool {
    let plain = text.strip_suffix('…').unwrap_or(text);
    clean::is_printable_ascii(plain) && text.trim().len() == text.len() && !text.contains("  ")
}

/// Text with its white space collapsed.
#[derive(Default)]
struct OneLine {
    text: String,
    chars: usize,
    space_due: bool,
}

impl OneLine {
    fn push(&mut self, source: &str) {
        for c in clean::line(source).chars() {
            if c.is_whitespace() {
                self.space();
                continue;
            }
            if std::mem::take(&mut self.space_due) {
                self.text.push(' ');
                self.chars += 1;
            }
            self.text.push(c);
            self.chars += 1;
        }
    }

    fn space(&mut self) {
        self.space_due = !self.text.is_empty();
    }

    /// Cuts between clusters, so that accents and emoji stay whole.
    fn cut(mut self, max_chars: usize, more_source: bool) -> String {
        if self.chars < max_chars || (self.chars == max_chars && !more_source) {
            if more_source {
                self.text.push('…');
            }
            return self.text;
        }
        let mut left = max_chars.saturating_sub(1);
        let mut end = 0;
        for cluster in self.text.graphemes(true) {
            let Some(rest) = left.checked_sub(cluster.chars().count()) else { break };
            left = rest;
            end += cluster.len();
        }
        self.text.truncate(end);
        self.text.truncate(self.text.trim_end().len());
        self.text.extend((max_chars > 0).then_some('…'));
        self.text
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_was_typed_stays_and_white_space_is_one() {
        insta::assert_snapshot!(one_line("Fix  __init__ in\n\n- `a  b` and *value*", 100), @"Fix __init__ in - `a b` and *value*");
        insta::assert_snapshot!(one_line("<command-name>/clear</command-name>", 100), @"<command-name>/clear</command-name>");
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(one_line("one two three", 13), "one two three");
        assert_eq!(one_line("one two three", 12), "one two thr…");
        assert_eq!(one_line("one two three", 5), "one…");
        assert_eq!(one_line("ab👩‍👩‍👧cd", 4), "ab…");
        assert_eq!(one_line("abc", 0), "");
    }

    #[test]
    fn a_huge_text_costs_no_more_than_its_start() {
        let huge = "a b ".repeat(12_000_000);
        assert!(one_line(&huge, 40).ends_with('…'));
    }

    proptest! {
        #[test]
        fn a_preview_is_one_clean_line_of_bounded_length(source in any::<String>(), max in 0_usize..50) {
            let preview = one_line(&source, max);
            prop_assert!(preview.chars().count() <= max);
            prop_assert_eq!(clean::line(&preview), preview.as_str());
        }
    }
}
