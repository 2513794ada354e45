//! The fields of a Codex line that its link needs, and the events that they make. Any field may be missing or of any
//! shape; fields that may be large are not parsed.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::record_class::{Bare, EVENTS, Item, LineType};
use super::{context, id_from_ordinal, local, tool_output};
use crate::dialect::{Event, Key, Link, SessionFacts};
use crate::model::json;
use crate::model::lenient::{Count, Moment, Object, RawObject, Text};
use crate::model::record::{Display, Kind, TitleSource, Usage};

pub(super) fn link<'a>(text: &'a str, emit: &mut dyn FnMut(Event<'a>)) -> Result<(), serde_json::Error> {
    let mut line: Line<'a> = json::from_str(text)?;
    let line_type = LineType::from_line(&line);
    let payload = match line_type {
        // The oldest files have no envelope.
        LineType::Bare(_) => json::from_str(text)?,
        _ => std::mem::take(&mut line.payload).0.unwrap_or_default(),
    };
    Record { line, text, payload }.link(line_type, emit);
    Ok(())
}

/// Whether a line is a message that says that a person typed it.
pub(super) fn is_typed(text: &str) -> bool {
    let payload = json::from_str::<Line<'_>>(text).ok().and_then(|line| line.payload.0);
    payload.is_some_and(|payload| context::is_typed(&payload))
}

/// A line and its payload.
struct Record<'a> {
    line: Line<'a>,
    text: &'a str,
    payload: Payload<'a>,
}

impl<'a> Record<'a> {
    fn link(self, line_type: LineType<'a>, emit: &mut dyn FnMut(Event<'a>)) {
        match line_type {
            LineType::Meta | LineType::Bare(Bare::Meta) => self.link_header(emit),
            LineType::Context | LineType::Bare(Bare::State) => {
                // The model of the answers that follow.
                let kind = if self.payload.model.0.is_some() { Kind::Attachment } else { Kind::Header };
                self.emit_record(kind, true, emit);
                let Payload { cwd, model, .. } = self.payload;
                emit(Event::Facts(SessionFacts { cwd: cwd.some(), model: model.some(), ..SessionFacts::default() }));
            }
            LineType::Item | LineType::Bare(Bare::Item) => self.link_item(emit),
            LineType::Event => self.link_event(emit),
            LineType::Usage => {
                self.emit_record(Kind::Header, true, emit);
                // Response ids are unique within a turn at least.
                let response = self.payload.response_id.some();
                let turn = self.payload.turn_id.some().unwrap_or_default();
                let request = response.map(|response| Cow::Owned(format!("{turn}/{response}")));
                if let Some(tokens) = self.payload.usage.0 {
                    // The turn's context names the model.
                    emit(Event::Usage { request, usage: tokens.usage(), model: None, cost: None });
                    emit(Event::TotalWith(self.payload.thread_token_usage.0.map(|total| total.usage())));
                }
            }
            LineType::Compacted => self.emit_record(Kind::Compaction, false, emit),
            LineType::Untyped => {
                self.emit_record(Kind::Other, true, emit);
                emit(Event::MissingField("type"));
            }
            LineType::Unknown(name) => {
                self.emit_record(Kind::Other, true, emit);
                emit(Event::UnknownKind(name));
            }
        }
    }

    /// A record of the conversation that may report a failure.
    fn emit_link(&self, kind: Kind, is_failure: bool, emit: &mut dyn FnMut(Event<'a>)) {
        self.emit_record(kind, false, &mut |event| {
            emit(if let Event::Record(link) = event { Event::Record(Link { is_failure, ..link }) } else { event });
        });
    }

    fn emit_record(&self, kind: Kind, is_side: bool, emit: &mut dyn FnMut(Event<'a>)) {
        let ordinal = self.line.ordinal.0.map(|ordinal| Cow::Owned(id_from_ordinal(ordinal)));
        // A side record has the id of the item that it repeats.
        let own = || self.payload.id.clone().some().filter(|_| !is_side);
        emit(Event::Record(Link {
            id: ordinal.or_else(own),
            at: self.line.timestamp.clone(),
            is_side,
            ..Link::new(self.text, kind)
        }));
    }

    fn link_header(self, emit: &mut dyn FnMut(Event<'a>)) {
        self.emit_record(Kind::Header, true, emit);
        let bare_id = self.line.id.clone();
        let meta = self.payload;
        if meta.id.0.is_none() && bare_id.0.is_none() {
            emit(Event::MissingField("id"));
        }
        let source = meta.source.0.unwrap_or_default();
        let spawned_by = source.object("subagent").object("thread_spawn").text("parent_thread_id");
        emit(Event::Facts(SessionFacts {
            session: meta.id.some().or(bare_id.some()),
            cwd: meta.cwd.some(),
            git_branch: meta.git.0.and_then(|git| git.text("branch")),
            version: meta.cli_version.some(),
            model: None,
            parent_session: meta.parent_thread_id.some().or(spawned_by),
            parent_call: None,
            forked_from: meta.forked_from_id.clone().some(),
            ..SessionFacts::default()
        }));
        // Older forks have `forked_from_id` too, and a copy of the history: only an ordinal makes it a reference.
        let base = meta.history_base.0.unwrap_or_default();
        let end = base.count("end_ordinal_exclusive").or(meta.forked_from_ordinal_exclusive.0);
        let session = base.text("thread_id").or_else(|| meta.forked_from_id.some().filter(|_| end.is_some()));
        // A fork that was rewound to before its first prompt has nothing of the other session.
        if let Some(session) = session.filter(|_| end != Some(0)) {
            let until = end.map(|end| Cow::Owned(id_from_ordinal(end)));
            let last = end.and_then(|end| end.checked_sub(1)).map(|last| Cow::Owned(id_from_ordinal(last)));
            emit(Event::ForkBase { session, until, last });
            if end.is_none() {
                emit(Event::MissingField("valid end_ordinal_exclusive"));
            }
        }
    }

    fn link_item(self, emit: &mut dyn FnMut(Event<'a>)) {
        let name = self.payload.kind.0.clone();
        let Some(item) = name.as_deref().and_then(Item::from_type) else {
            // In the conversation, because it may be an answer of the model.
            self.emit_record(Kind::Other, false, emit);
            return emit(name.map_or(Event::MissingField("payload.type"), Event::UnknownKind));
        };
        let kind = match item {
            Item::Message => match self.payload.role.0.as_deref() {
                Some("assistant") => Kind::Assistant,
                Some("user") if context::is_prompt(&self.payload) => Kind::User,
                // From the developer, the system, or another agent.
                _ => Kind::Attachment,
            },
            Item::Reasoning | Item::Call | Item::Hosted => Kind::Assistant,
            Item::Result => Kind::ToolResult,
            Item::Context => Kind::Attachment,
            Item::Snapshot => Kind::Snapshot,
        };
        let local =
            (kind == Kind::Attachment && item == Item::Message).then(|| local::display(&self.payload)).flatten();
        match local {
            Some(display) => self.emit_link(Kind::System, display == Display::Interrupted, emit),
            None => self.emit_record(kind, item == Item::Snapshot, emit),
        }
        if name.as_deref() == Some("message") && self.payload.content.is_none() {
            emit(Event::MissingField("payload.content"));
        }
        if kind == Kind::Assistant {
            emit(Event::AnswerItem);
        }
        let call = self.payload.call_id.some().or_else(|| self.payload.id.some().filter(|_| item == Item::Call));
        match (item, call) {
            (Item::Call, Some(call)) => emit(Event::Key(Key::Call(call))),
            (Item::Result, Some(call)) => emit(Event::Key(Key::Result(call))),
            (Item::Call | Item::Result, None) => emit(Event::MissingField("call_id")),
            _ => {}
        }
    }

    fn link_event(self, emit: &mut dyn FnMut(Event<'a>)) {
        let name = self.payload.kind.0.clone();
        if name.as_deref() == Some("thread_rolled_back") {
            emit(Event::CutTurns(self.payload.num_turns.0.unwrap_or(0)));
            return self.emit_record(Kind::Rewind, false, emit);
        }
        if name.as_deref() == Some("task_complete") && self.payload.error.0.is_some() {
            return self.emit_link(Kind::System, true, emit);
        }
        self.emit_record(Kind::Header, true, emit);
        match name.as_deref() {
            Some("token_count") => {
                let info = self.payload.info.0.unwrap_or_default();
                if let Some(total) = info.total_token_usage.0 {
                    let last = info.last_token_usage.0.map(|last| last.usage());
                    emit(Event::TotalUsage { total: total.usage(), last });
                }
            }
            Some("thread_name_updated") => {
                if let Some(text) = self.payload.thread_name.some() {
                    emit(Event::Title { text, source: TitleSource::Manual });
                }
            }
            Some("task_started" | "turn_started") => emit(Event::TurnStart),
            Some("item_completed") => {
                let call = self.payload.item.and_then(tool_output::run_of_call).and_then(|run| run.text("id"));
                call.into_iter().for_each(|call| emit(Event::Key(Key::LateResult(call))));
            }
            Some(known) if EVENTS.contains(&known) => {}
            _ => emit(name.map_or(Event::MissingField("payload.type"), Event::UnknownKind)),
        }
    }
}

/// The envelope.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Line<'a> {
    pub(super) timestamp: Moment<'a>,
    pub(super) ordinal: Count,
    #[serde(rename = "type")]
    pub(super) kind: Text<'a>,
    pub(super) payload: Object<Payload<'a>>,
    // In the oldest files, which have no envelope.
    pub(super) id: Text<'a>,
    pub(super) record_type: Text<'a>,
    pub(super) instructions: Present,
    pub(super) role: Text<'a>,
    pub(super) content: Option<&'a RawValue>,
}

/// Whether a field is present, even as null.
#[derive(Default)]
pub(super) struct Present(pub(super) bool);

impl<'de> Deserialize<'de> for Present {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Present(true))
    }
}

/// The content of the envelope, whatever its type.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Payload<'a> {
    #[serde(rename = "type")]
    pub(super) kind: Text<'a>,
    pub(super) id: Text<'a>,
    // In items.
    pub(super) role: Text<'a>,
    pub(super) content: Option<&'a RawValue>,
    pub(super) call_id: Text<'a>,
    #[serde(rename = "internal_chat_message_metadata_passthrough")]
    pub(super) passthrough: Object<RawObject<'a>>,
    /// The same as in `passthrough`, beside it.
    pub(super) content_item_kinds: Option<&'a RawValue>,
    // In the header and in turns.
    pub(super) cwd: Text<'a>,
    pub(super) model: Text<'a>,
    pub(super) cli_version: Text<'a>,
    pub(super) git: Object<RawObject<'a>>,
    /// Who started the session: a string, or an object with the agent that spawned it.
    pub(super) source: Object<RawObject<'a>>,
    pub(super) parent_thread_id: Text<'a>,
    pub(super) forked_from_id: Text<'a>,
    pub(super) forked_from_ordinal_exclusive: Count,
    /// Where a fork by reference starts. Its byte offset is not read: the parent may be rewritten, but its ordinals stay.
    pub(super) history_base: Object<RawObject<'a>>,
    // In events and in usage.
    pub(super) num_turns: Count,
    pub(super) error: Object<RawObject<'a>>,
    pub(super) thread_name: Text<'a>,
    pub(super) item: Option<&'a RawValue>,
    pub(super) info: Object<Info>,
    pub(super) turn_id: Text<'a>,
    pub(super) response_id: Text<'a>,
    pub(super) usage: Object<Tokens>,
    pub(super) thread_token_usage: Object<Tokens>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Info {
    pub(super) total_token_usage: Object<Tokens>,
    pub(super) last_token_usage: Object<Tokens>,
}

/// Tokens as OpenAI counts them: cached tokens are included in the input.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Tokens {
    input_tokens: Count,
    cached_input_tokens: Count,
    cache_write_input_tokens: Count,
    output_tokens: Count,
    reasoning_output_tokens: Count,
}

impl Tokens {
    pub(super) fn usage(&self) -> Usage {
        let cached = [self.cached_input_tokens, self.cache_write_input_tokens].map(|count| count.0.unwrap_or(0));
        let uncached = |input: u64| cached.iter().fold(input, |input, cached| input.saturating_sub(*cached));
        Usage {
            input: self.input_tokens.0.map(uncached),
            output: self.output_tokens.0,
            cache_read: self.cached_input_tokens.0,
            cache_write: self.cache_write_input_tokens.0,
            reasoning: self.reasoning_output_tokens.0,
        }
    }
}
