//! Which files are secrets, and what replaces their content.

use super::RULE;
use crate::redact::{Engine, Style};

/// What the parts of this room share.
#[derive(Clone, Copy)]
pub(super) struct FileMask<'e> {
    pub(super) engine: &'e Engine,
    pub(super) style: Style,
}

impl FileMask<'_> {
    pub(super) fn is_sensitive(self, path: &str) -> bool {
        self.engine.files.is_sensitive(path)
    }

    /// Whether the path of such a file could be in a text.
    pub(super) fn may_be_named_in(self, text: &str) -> bool {
        self.engine.files.may_be_named_in(text.as_bytes())
    }

    /// The lines in which it could be.
    pub(super) fn lines_naming(self, text: &str) -> Vec<&str> {
        self.engine.files.lines_naming(text)
    }

    /// What replaces a text; `None` if it is empty or replaced already.
    pub(super) fn placeholder(self, text: &str) -> Option<String> {
        if text.trim().is_empty() || is_placeholder(text.trim()) {
            return None;
        }
        let mut masked = String::new();
        self.engine.write_placeholder(&mut masked, RULE, Some(text), self.style);
        Some(masked)
    }
}

fn is_placeholder(text: &str) -> bool {
    text.starts_with("[REDACTED") && text.ends_with(']') && text.len() < 64
}
