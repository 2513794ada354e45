//! The fields of a Claude Code line that its link needs, and the events that they make. Any field may be missing or of
//! any shape.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{NO_MODEL, part};
use crate::dialect::{Event, Key, Link, SessionFacts};
use crate::model::lenient::{self, Amount, Count, Flag, ListOrText, Moment, Object, RawObject, Text};
use crate::model::record::{Cost, Kind, TitleSource, Usage};

/// A line; the fields that only a body needs are skipped.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub(super) struct Line<'a> {
    #[serde(rename = "type")]
    pub(super) name: Text<'a>,
    pub(super) subtype: Text<'a>,
    pub(super) uuid: Text<'a>,
    pub(super) parent_uuid: Text<'a>,
    pub(super) logical_parent_uuid: Text<'a>,
    pub(super) compact_metadata: Object<RawObject<'a>>,
    pub(super) timestamp: Moment<'a>,
    pub(super) session_id: Text<'a>,
    pub(super) agent_id: Text<'a>,
    pub(super) cwd: Text<'a>,
    pub(super) git_branch: Text<'a>,
    pub(super) version: Text<'a>,
    pub(super) request_id: Text<'a>,
    pub(super) forked_from: Object<RawObject<'a>>,
    pub(super) message: Object<Message<'a>>,
    pub(super) is_sidechain: Flag,
    pub(super) is_meta: Flag,
    pub(super) is_compact_summary: Flag,
    pub(super) is_api_error_message: Flag,
    pub(super) is_display_only: Flag,
    pub(super) origin: Object<RawObject<'a>>,
    /// How a prompt came; a command that stands for a prompt has none.
    pub(super) prompt_source: Text<'a>,
    /// Our own mark of what a person did at another agent's screen.
    pub(super) scrollback: Text<'a>,
    pub(super) user_type: Text<'a>,
    // In attachments.
    pub(super) attachment: Object<Attachment<'a>>,
    // In notices.
    pub(super) content: Text<'a>,
    // In answers, as documented; the agent itself puts it into the message.
    pub(super) usage: Object<Tokens<'a>>,
    // In answers of old versions.
    #[serde(rename = "costUSD")]
    pub(super) cost_usd: Amount,
    // In `cost-state`.
    pub(super) model_usage: Option<&'a RawValue>,
    // In titles and leaves.
    pub(super) summary: Text<'a>,
    pub(super) custom_title: Text<'a>,
    pub(super) ai_title: Text<'a>,
    pub(super) leaf_uuid: Text<'a>,
    pub(super) explicit: Flag,
}

impl<'a> Line<'a> {
    pub(super) fn link(self, text: &'a str, emit: &mut dyn FnMut(Event<'a>)) {
        let class = self.record_class();
        let parent = self.parent_uuid.clone().some();
        let begins_anew = parent.is_none() && class.kind == Kind::Compaction;
        let parent = parent.or_else(|| self.logical_parent());
        let (id, at, is_sidechain) = (self.uuid.clone().some(), self.timestamp.clone(), self.is_sidechain.0);
        let is_whole = class.emit(Link { id, at, is_sidechain, ..Link::new(text, class.kind) }, parent, emit);
        let is_dialogue = matches!(self.name.0.as_deref(), Some("user" | "assistant"));
        if is_whole && is_dialogue && self.message.0.is_none() && !lenient::has_field(text, "message") {
            emit(Event::MissingField("message"));
        }
        if self.is_state_only() {
            emit(Event::StateOnly);
        }
        if begins_anew {
            emit(Event::BeginsAnew);
        }
        self.emit_title_and_head(emit);
        self.emit_keys_and_facts(class.kind, emit);
    }

    /// A compaction starts a tree of its own and names the record that it follows: the last one that it summarises, or
    /// that it keeps. What it keeps stays in the conversation. A copy that `/branch` makes has only what is kept, and that
    /// follows the summary.
    fn logical_parent(&self) -> Option<Cow<'a, str>> {
        let kept = self.compact_metadata.0.as_ref().map(|metadata| metadata.object("preservedSegment"));
        kept.and_then(|kept| kept.text("tailUuid")).or_else(|| self.logical_parent_uuid.clone().some())
    }

    pub(super) fn title(&self) -> Option<(Cow<'a, str>, TitleSource)> {
        let (text, source) = match self.name.0.as_deref() {
            Some("custom-title") => (&self.custom_title, TitleSource::Manual),
            Some("ai-title") => (&self.ai_title, TitleSource::Automatic),
            _ => (&self.summary, TitleSource::Summary),
        };
        text.clone().some().map(|text| (text, source))
    }

    fn emit_title_and_head(&self, emit: &mut dyn FnMut(Event<'a>)) {
        let leaf = self.leaf_uuid.clone().some();
        let title = || self.title().map(|(text, source)| Event::Title { text, source });
        let event = match self.name.0.as_deref() {
            Some("last-prompt") if self.explicit.0 => leaf.map(Event::RewindTo),
            Some("last-prompt") => leaf.map(Event::Head),
            // A file may contain summaries of other sessions, which their leaves identify.
            Some("summary") => match (self.summary.clone().some(), leaf) {
                (Some(text), Some(of)) => Some(Event::Summary { text, of }),
                (Some(_), None) => title(),
                (None, _) => None,
            },
            Some("custom-title" | "ai-title") => title(),
            _ => None,
        };
        event.into_iter().for_each(emit);
    }

    fn emit_keys_and_facts(self, kind: Kind, emit: &mut dyn FnMut(Event<'a>)) {
        let costs = self.model_usage.filter(|_| self.name.0.as_deref() == Some("cost-state"));
        for (model, used) in costs.and_then(RawObject::from_raw).iter().flat_map(RawObject::objects_by_key) {
            if let Some(cost) = used.get::<Amount>("costUSD").0.and_then(Cost::recorded) {
                emit(Event::CostSoFar { model: Some(model), cost });
            }
        }
        let mut model = None;
        if let Some(message) = self.message.0.filter(|_| kind.is_dialogue()) {
            let usage = message.usage(&self.usage).filter(|_| kind == Kind::Assistant);
            model = message.model.some().filter(|model| model != NO_MODEL);
            let id = message.id.some().filter(|_| kind == Kind::Assistant);
            if let Some(usage) = usage {
                let request = match (&id, self.request_id.some()) {
                    (None, None) => None,
                    (id, request) => Some([id.as_deref().unwrap_or(""), &request.unwrap_or_default()].join(" ")),
                };
                let cost = self.cost_usd.0.and_then(Cost::recorded);
                emit(Event::Usage { request: request.map(Cow::Owned), usage, model: model.clone(), cost });
            }
            if let Some(id) = id {
                emit(Event::Key(Key::Group(id)));
            }
            for block in message.content.into_list() {
                let is_call = block.name.0.is_some_and(|name| part::is_call(&name));
                match (block.tool_use_id.some(), block.id.some()) {
                    (Some(call), _) => emit(Event::Key(Key::Result(call))),
                    (None, Some(id)) if is_call => emit(Event::Key(Key::Call(id))),
                    (None, _) => {}
                }
            }
        }
        // A sub-agent's file has its own name and states the parent session on every line.
        let (session, parent_session) = match self.agent_id.some() {
            Some(_) => (None, self.session_id.some()),
            None => (self.session_id.some(), None),
        };
        emit(Event::Facts(SessionFacts {
            session,
            cwd: self.cwd.some(),
            git_branch: self.git_branch.some(),
            platform: None,
            user_type: self.user_type.some(),
            version: self.version.some(),
            model,
            parent_session,
            parent_call: None,
            forked_from: self.forked_from.0.and_then(|origin| origin.text("sessionId")),
        }));
    }
}

impl Message<'_> {
    /// The usage of the request, in the message or in its line; the agent's own messages have none.
    pub(super) fn usage(&self, of_line: &Object<Tokens<'_>>) -> Option<Usage> {
        let tokens = self.usage.0.as_ref().or(of_line.0.as_ref());
        let tokens = tokens.filter(|_| self.model.0.as_deref() != Some(NO_MODEL))?;
        Some(Usage {
            input: tokens.input_tokens.0,
            output: tokens.output_tokens.0,
            cache_read: tokens.cache_read_input_tokens.0,
            cache_write: tokens.cache_creation_input_tokens.0,
            reasoning: tokens.output_tokens_details.0.as_ref().and_then(|details| details.count("thinking_tokens")),
        })
    }
}

/// The type of an attachment.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub(super) struct Attachment<'a> {
    #[serde(rename = "type")]
    pub(super) name: Text<'a>,
    pub(super) command_mode: Text<'a>,
    pub(super) origin: Object<RawObject<'a>>,
}

/// The API's message, or one block of it.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Message<'a> {
    pub(super) id: Text<'a>,
    pub(super) role: Text<'a>,
    pub(super) model: Text<'a>,
    pub(super) usage: Object<Tokens<'a>>,
    pub(super) content: ListOrText<'a, Block<'a>>,
}

/// The fields that link a content block to others.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Block<'a> {
    #[serde(rename = "type")]
    pub(super) name: Text<'a>,
    pub(super) id: Text<'a>,
    pub(super) tool_use_id: Text<'a>,
    pub(super) text: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Tokens<'a> {
    pub(super) input_tokens: Count,
    pub(super) output_tokens: Count,
    pub(super) cache_read_input_tokens: Count,
    pub(super) cache_creation_input_tokens: Count,
    pub(super) output_tokens_details: Object<RawObject<'a>>,
}
