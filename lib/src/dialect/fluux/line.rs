//! The fields of a line, everything that may be large left as text. Any field may be missing, null or of any shape.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::model::lenient::{Count, Moment, Text};

/// A line: a header, or a message.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Line<'a> {
    #[serde(rename = "type")]
    pub(super) kind: Text<'a>,
    // Of the header.
    pub(super) version: Count,
    pub(super) created: Moment<'a>,
    pub(super) jid: Text<'a>,
    // Of a message.
    pub(super) role: Text<'a>,
    pub(super) content: Option<&'a RawValue>,
    pub(super) msg_id: Text<'a>,
    pub(super) sender: Text<'a>,
    pub(super) ts: Moment<'a>,
    pub(super) attachments: Option<&'a RawValue>,
    reaction: Option<&'a RawValue>,
}

impl<'a> Line<'a> {
    /// Whether `content` is a text, be it empty.
    pub(super) fn says_text(&self) -> bool {
        self.content.is_some_and(|content| content.get().starts_with('"'))
    }

    /// Whether there is no `content` at all.
    pub(super) fn says_nothing(&self) -> bool {
        self.content.is_none_or(is_null)
    }

    /// The reaction, where there is one.
    pub(super) fn reaction(&self) -> Option<&'a RawValue> {
        self.reaction.filter(|reaction| !is_null(reaction))
    }

    /// Whether it has something to say without words.
    pub(super) fn has_more(&self) -> bool {
        self.reaction().is_some() || self.has_attachments()
    }

    /// Whether it says nothing but its reaction.
    pub(super) fn only_reacts(&self) -> bool {
        let wordless = self.says_nothing() || self.content.is_some_and(|content| content.get() == "\"\"");
        wordless && self.reaction().is_some() && !self.has_attachments()
    }

    fn has_attachments(&self) -> bool {
        self.attachments.is_some_and(|list| !is_null(list) && list.get() != "[]")
    }
}

fn is_null(raw: &RawValue) -> bool {
    raw.get() == "null"
}
