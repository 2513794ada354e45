//! Markdown as one plain line, for titles and lists.

use pulldown_cmark::{Event, Parser, TagEnd};
use unicode_segmentation::UnicodeSegmentation as _;

use super::clean;
use super::markdown::OPTIONS;

/// How many bytes of the source are read per character of the preview.
const SOURCE_BYTES_PER_CHAR: usize = 64;

/// The text without markup, on one line of at most `max_chars` characters; `…` marks a cut.
pub(crate) fn plain_preview(source: &str, max_chars: usize) -> String {
    let window = source.floor_char_boundary(max_chars.saturating_mul(SOURCE_BYTES_PER_CHAR));
    let more_source = window < source.len();
    let mut line = OneLine::default();
    for event in Parser::new_ext(&source[..window], OPTIONS) {
        match event {
            Event::Text(text) | Event::Code(text) | Event::Html(text) | Event::InlineHtml(text) => line.push(&text),
            Event::Start(tag) if is_inline(tag.to_end()) => {}
            Event::End(tag) if is_inline(tag) => {}
            // Everything else ends a line or a block.
            _ => line.space(),
        }
        if line.chars > max_chars {
            break;
        }
    }
    if line.chars == 0 {
        // Only markup, such as a fence whose code is cut off: show the markup.
        line.push(&source[..window]);
    }
    line.cut(max_chars, more_source)
}

fn is_inline(tag: TagEnd) -> bool {
    matches!(tag, TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough | TagEnd::Link | TagEnd::Image)
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
    fn markup_is_gone_and_white_space_is_one() {
        insta::assert_snapshot!(
            plain_preview("# Fix  the\n**parser**\n\n- see [docs](https://x.y) and `a  b`\n\n```rust\nfn x() {}\n```", 100),
            @"Fix the parser see docs and a b fn x() {}"
        );
    }

    #[test]
    fn tags_of_agents_stay_readable() {
        insta::assert_snapshot!(plain_preview("<command-name>/clear</command-name>", 100), @"<command-name>/clear</command-name>");
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(plain_preview("one two three", 13), "one two three");
        assert_eq!(plain_preview("one two three", 12), "one two thr…");
        assert_eq!(plain_preview("one two three", 5), "one…");
        assert_eq!(plain_preview("ab👩‍👩‍👧cd", 4), "ab…");
        assert_eq!(plain_preview("abc", 0), "");
    }

    #[test]
    fn a_huge_text_costs_no_more_than_its_start() {
        let huge = format!("[{}](x) end", "a".repeat(50_000_000));
        assert!(plain_preview(&huge, 40).ends_with('…'));
    }

    proptest! {
        #[test]
        fn a_preview_is_one_clean_line_of_bounded_length(source in any::<String>(), max in 0_usize..50) {
            let preview = plain_preview(&source, max);
            prop_assert!(preview.chars().count() <= max);
            prop_assert_eq!(clean::line(&preview), preview.as_str());
        }
    }
}
