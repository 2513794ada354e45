//! The fields of a line and the events that they make. Any field may be missing, null or of any shape; fields that may be
//! large are not parsed.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{VERSION, jid};
use crate::dialect::{Event, Link};
use crate::model::lenient::{Count, Moment, Text};
use crate::model::record::Kind;

/// A line: a header, or a message.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Line<'a> {
    #[serde(rename = "type")]
    type_name: Text<'a>,
    // In the header.
    version: Count,
    created: Moment<'a>,
    jid: Text<'a>,
    // In a message.
    role: Text<'a>,
    pub(super) content: Option<&'a RawValue>,
    msg_id: Text<'a>,
    pub(super) sender: Text<'a>,
    ts: Moment<'a>,
    pub(super) attachments: Option<&'a RawValue>,
    pub(super) reaction: Option<&'a RawValue>,
}

impl<'a> Line<'a> {
    pub(super) fn link(self, text: &'a str, emit: &mut dyn FnMut(Event<'a>)) {
        let kind = self.kind();
        let at = if kind == Kind::Header { &self.created } else { &self.ts };
        // A message in an unknown role is part of the conversation.
        let is_message = self.type_name.0.as_deref() == Some("message") && self.role.0.is_some();
        emit(Event::Record(Link {
            id: self.msg_id.clone().some(),
            at: at.only_text(),
            is_side: kind == Kind::Header || (kind == Kind::Other && !is_message),
            ..Link::new(text, kind)
        }));
        if kind.is_dialogue() && self.only_reacts() {
            emit(Event::Reaction);
        }
        match (self.type_name.0.as_deref(), self.role.0.as_deref()) {
            (Some("session"), _) => self.emit_header(emit),
            (Some("message") | None, Some(role)) if kind == Kind::Other => {
                emit(Event::UnknownKind(Cow::Owned(format!("role {role}"))));
            }
            (None, _) => emit(Event::MissingField("type")),
            (Some("message"), None) => emit(Event::MissingField("role")),
            (Some("message"), _) if self.content.is_some() && !self.has_text() => {
                emit(Event::MissingField("text in its content"));
            }
            (Some("message"), _) if self.content.is_none() && self.reaction.is_none() && !self.has_attachments() => {
                emit(Event::MissingField("content"));
            }
            (Some("message"), _) => {}
            (Some(name), _) => emit(Event::UnknownKind(Cow::Owned(name.to_owned()))),
        }
    }

    fn emit_header(self, emit: &mut dyn FnMut(Event<'a>)) {
        if let Some(version) = self.version.0.filter(|version| *version > VERSION) {
            emit(Event::NewerFormat(version));
        }
        match self.jid.some() {
            Some(jid) => emit(Event::Peer(jid::bare(jid))),
            None => emit(Event::MissingField("jid")),
        }
    }

    pub(super) fn kind(&self) -> Kind {
        match (self.type_name.0.as_deref(), self.role.0.as_deref()) {
            (Some("session"), _) => Kind::Header,
            (Some("message") | None, Some("user")) => Kind::User,
            (Some("message") | None, Some("assistant")) => Kind::Assistant,
            _ => Kind::Other,
        }
    }

    /// Whether it is a header with a JID, or a message whose text is in the line itself, as no other agent writes it.
    pub(super) fn is_recognized(&self) -> bool {
        match self.type_name.0.as_deref() {
            Some("session") => self.jid.0.is_some(),
            Some("message") => self.role.0.is_some() && (self.has_text() || self.reaction.is_some()),
            _ => false,
        }
    }

    /// Whether `content` is a text, even an empty one.
    fn has_text(&self) -> bool {
        self.content.is_some_and(|content| content.get().starts_with('"'))
    }

    /// Whether it is only a reaction.
    fn only_reacts(&self) -> bool {
        let has_no_text = self.content.is_none_or(|content| content.get() == "\"\"");
        has_no_text && self.reaction.is_some() && !self.has_attachments()
    }

    fn has_attachments(&self) -> bool {
        self.attachments.is_some_and(|list| list.get() != "[]")
    }
}
