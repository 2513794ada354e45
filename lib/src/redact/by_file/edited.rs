//! A text with some of its parts replaced. Nothing is copied before the first: most texts stay, and some are large.

use std::ops::Range;

pub(super) struct Edited<'t> {
    text: &'t str,
    out: String,
    /// Up to here, the text is in `out`.
    copied: usize,
    is_changed: bool,
}

impl<'t> Edited<'t> {
    pub(super) fn new(text: &'t str) -> Edited<'t> {
        Edited { text, out: String::new(), copied: 0, is_changed: false }
    }

    /// Replaces a part. Parts come in order; one that begins in the last one is gone with it.
    pub(super) fn replace(&mut self, span: Range<usize>, new: &str) {
        if span.start < self.copied {
            return;
        }
        self.out.push_str(&self.text[self.copied..span.start]);
        self.out.push_str(new);
        self.copied = span.end;
        self.is_changed = true;
    }

    /// The text, if something in it was replaced.
    pub(super) fn finish(mut self) -> Option<String> {
        self.out.push_str(&self.text[if self.is_changed { self.copied } else { self.text.len() }..]);
        self.is_changed.then_some(self.out)
    }
}
