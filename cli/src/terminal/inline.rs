//! The text of a block while it is parsed: marks, links, and their styles.

use std::mem::take;

use anstyle::{AnsiColor, Effects, Style};
use pulldown_cmark::{CowStr, Tag, TagEnd};

use super::clean;
use super::styled::Styled;

/// The text of a paragraph, heading or cell.
pub(super) struct Inline<'a> {
    text: Styled,
    strong: usize,
    emphasis: usize,
    strikethrough: usize,
    /// Open links: where their text starts, and their address.
    links: Vec<(usize, CowStr<'a>)>,
    /// Without colour, marks that have a meaning stay in the text.
    colour: bool,
}

impl<'a> Inline<'a> {
    /// An empty text.
    pub(super) fn new(colour: bool) -> Self {
        Self { text: Styled::default(), strong: 0, emphasis: 0, strikethrough: 0, links: Vec::new(), colour }
    }

    /// Opens a mark, or returns the block that starts here.
    pub(super) fn start(&mut self, tag: Tag<'a>) -> Option<Tag<'a>> {
        match tag {
            Tag::Emphasis => self.emphasis += 1,
            Tag::Strong => self.start_strong(),
            Tag::Strikethrough => {
                self.strikethrough += 1;
                self.push_unless_coloured("~~");
            }
            Tag::Link { dest_url, .. } => self.links.push((self.text.as_str().len(), dest_url)),
            Tag::Image { .. } => self.push("[image: "),
            block => return Some(block),
        }
        None
    }

    /// Closes a mark, or returns the block that ends here.
    pub(super) fn end(&mut self, tag: TagEnd) -> Option<TagEnd> {
        match tag {
            TagEnd::Emphasis => self.emphasis -= 1,
            TagEnd::Strong => self.end_strong(),
            TagEnd::Strikethrough => {
                self.push_unless_coloured("~~");
                self.strikethrough -= 1;
            }
            TagEnd::Link => self.end_link(),
            TagEnd::Image => self.push("]"),
            block => return Some(block),
        }
        None
    }

    /// Makes the following text bold, as in headings.
    pub(super) fn start_strong(&mut self) {
        self.strong += 1;
    }

    /// Ends what [`Self::start_strong`] started.
    pub(super) fn end_strong(&mut self) {
        self.strong -= 1;
    }

    /// Appends text in the style of the open marks.
    pub(super) fn push(&mut self, text: &str) {
        self.text.push(text, self.style());
    }

    /// Appends code.
    pub(super) fn push_code(&mut self, code: &str) {
        self.push_unless_coloured("`");
        self.text.push(code, self.style().fg_color(Some(AnsiColor::Cyan.into())));
        self.push_unless_coloured("`");
    }

    /// Appends a hard line break.
    pub(super) fn push_line_end(&mut self) {
        self.text.push_line_end();
    }

    /// Takes the text and starts a new one.
    pub(super) fn take(&mut self) -> Styled {
        take(&mut self.text)
    }

    fn end_link(&mut self) {
        let Some((start, url)) = self.links.pop() else { return };
        let url = clean::line(&url);
        let text = self.text.as_str().get(start..).unwrap_or_default();
        if text != url && url.strip_prefix("mailto:") != Some(text) {
            self.text.push(&format!(" ({url})"), self.style().dimmed());
        }
    }

    fn push_unless_coloured(&mut self, mark: &str) {
        if !self.colour {
            self.push(mark);
        }
    }

    fn style(&self) -> Style {
        let open = [
            (self.strong > 0, Effects::BOLD),
            (self.emphasis > 0, Effects::ITALIC),
            (self.strikethrough > 0, Effects::STRIKETHROUGH),
            (!self.links.is_empty(), Effects::UNDERLINE),
        ];
        open.into_iter().filter(|(open, _)| *open).fold(Style::new(), |style, (_, effect)| style | effect)
    }
}
