//! Codex: one JSONL file per session, `~/.codex/sessions/<year>/<month>/<day>/rollout-<time>-<session id>.jsonl`.
//!
//! `response_item` lines are the conversation; `event_msg` lines repeat it for its interface and are side records.
//! The facts, with the versions they were seen in: docs/dialects/codex.md.

mod body;
mod context;
mod file_name;
mod kind;
mod line;
mod output;
mod write;

use std::borrow::Cow;
use std::path::Path;

pub use file_name::RolloutFileName;

use super::{Dialect, Event, Key, Link, RepeatedId, ResultOrder, SessionFacts, Traits};
use crate::dialect::layout::{Format, Layout};
use crate::dialect::writer::Writer;
use crate::model::home::Home;
use crate::model::record::{Body, Kind, TitleSource};
use kind::{Bare, EVENTS, Item, Type};
use line::{Line, Payload};

/// The Codex dialect.
pub struct Codex;

impl Dialect for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn layouts(&self, home: &Home) -> Vec<Layout> {
        self.layouts_in(&home.var_or("CODEX_HOME", ".codex"))
    }

    fn layouts_in(&self, store: &Path) -> Vec<Layout> {
        let places = [
            ("sessions", "*/*/*/rollout-*.jsonl*"),
            ("sessions", "rollout-*.jsonl*"),
            ("archived_sessions", "rollout-*.jsonl*"),
            ("archived_sessions", "*/*/*/rollout-*.jsonl*"),
        ];
        let layout = |(folder, pattern)| Layout {
            root: store.join(folder),
            pattern,
            companions: &[],
            sidecar: None,
            format: Format::Lines,
        };
        places.into_iter().map(layout).collect()
    }

    fn traits(&self) -> Traits {
        Traits { result_order: ResultOrder::AsReceived, ..Traits::new(RepeatedId::Distinct) }
    }

    fn link<'a>(&self, text: &'a str, emit: &mut dyn FnMut(Event<'a>)) -> Result<(), serde_json::Error> {
        let mut line: Line<'a> = serde_json::from_str(text)?;
        let of_type = Type::of(&line);
        let payload = match of_type {
            // The oldest files have no envelope.
            Type::Bare(_) => serde_json::from_str(text)?,
            _ => std::mem::take(&mut line.payload).0.unwrap_or_default(),
        };
        Record { line, text, payload }.link(of_type, emit);
        Ok(())
    }

    fn body(&self, text: &str) -> Body {
        body::of(text)
    }

    fn writer(&self) -> Option<&'static Writer> {
        Some(&write::WRITING)
    }

    fn session_id_from_path(&self, path: &Path) -> Option<String> {
        RolloutFileName::parse(path.file_name()?.to_str()?).map(|name| name.session.to_owned())
    }

    fn is_at_or_after(&self, id: &str, mark: &str) -> bool {
        match (ordinal_of(id), ordinal_of(mark)) {
            (Some(id), Some(mark)) => id >= mark,
            _ => id == mark,
        }
    }
}

/// The id of the line with this ordinal. A fork's ordinals go on from its parent's, and so do its ids.
fn id_of(ordinal: u64) -> String {
    format!("ord-{ordinal}")
}

fn ordinal_of(id: &str) -> Option<u64> {
    let digits = id.strip_prefix("ord-")?;
    digits.split('~').next()?.parse().ok()
}

/// One line, and what is in its envelope.
struct Record<'a> {
    line: Line<'a>,
    text: &'a str,
    payload: Payload<'a>,
}

impl<'a> Record<'a> {
    fn link(self, of_type: Type<'a>, emit: &mut dyn FnMut(Event<'a>)) {
        match of_type {
            Type::Meta | Type::Bare(Bare::Meta) => self.header(emit),
            Type::Surroundings | Type::Bare(Bare::State) => {
                // The model is that of the answers that follow.
                let kind = if self.payload.model.0.is_some() { Kind::Attachment } else { Kind::Header };
                self.emit(kind, true, emit);
                let Payload { cwd, model, .. } = self.payload;
                emit(Event::Facts(SessionFacts { cwd: cwd.some(), model: model.some(), ..SessionFacts::default() }));
            }
            Type::Item | Type::Bare(Bare::Item) => self.item(emit),
            Type::Event => self.event(emit),
            Type::Usage => {
                self.emit(Kind::Header, true, emit);
                // Response ids are unique within a turn at least.
                let response = self.payload.response_id.some();
                let turn = self.payload.turn_id.some().unwrap_or_default();
                let request = response.map(|response| Cow::Owned(format!("{turn}/{response}")));
                if let Some(tokens) = self.payload.usage.0 {
                    // The turn's context names the model.
                    emit(Event::Usage { request, usage: tokens.usage(), model: None, cost: None });
                }
            }
            Type::Compacted => self.emit(Kind::Compaction, false, emit),
            Type::Untyped => {
                self.emit(Kind::Other, true, emit);
                emit(Event::MissingField("type"));
            }
            Type::Unknown(name) => {
                self.emit(Kind::Other, true, emit);
                emit(Event::UnknownKind(name));
            }
        }
    }

    fn emit(&self, kind: Kind, side: bool, emit: &mut dyn FnMut(Event<'a>)) {
        let ordinal = self.line.ordinal.0.map(|ordinal| Cow::Owned(id_of(ordinal)));
        // A side record's own id is that of the item it repeats.
        let own = || self.payload.id.clone().some().filter(|_| !side);
        emit(Event::Record(Link {
            id: ordinal.or_else(own),
            at: self.line.timestamp.clone(),
            is_side: side,
            ..Link::new(self.text, kind)
        }));
    }

    fn header(self, emit: &mut dyn FnMut(Event<'a>)) {
        self.emit(Kind::Header, true, emit);
        let of_old = self.line.id.clone();
        let meta = self.payload;
        if meta.id.0.is_none() && of_old.0.is_none() {
            emit(Event::MissingField("id"));
        }
        let spawned = meta.source.0.and_then(|source| source.subagent.0).and_then(|by| by.thread_spawn.0);
        let spawned_by = spawned.and_then(|spawn| spawn.parent_thread_id.some());
        emit(Event::Facts(SessionFacts {
            session: meta.id.some().or(of_old.some()),
            cwd: meta.cwd.some(),
            git_branch: meta.git.0.and_then(|git| git.branch.some()),
            version: meta.cli_version.some(),
            model: None,
            parent_session: meta.parent_thread_id.some().or(spawned_by),
            parent_call: None,
            forked_from: meta.forked_from_id.clone().some(),
        }));
        // Older forks have `forked_from_id` too, and a copy of the history: only an ordinal makes it a reference.
        let base = meta.history_base.0.unwrap_or_default();
        let end = base.end_ordinal_exclusive.0.or(meta.forked_from_ordinal_exclusive.0);
        let session = base.thread_id.some().or_else(|| meta.forked_from_id.some().filter(|_| end.is_some()));
        if let Some(session) = session {
            let until = end.map(|end| Cow::Owned(id_of(end)));
            let last = end.and_then(|end| end.checked_sub(1)).map(|last| Cow::Owned(id_of(last)));
            emit(Event::ForkBase { session, until, last });
        }
    }

    fn item(self, emit: &mut dyn FnMut(Event<'a>)) {
        let name = self.payload.kind.0.clone();
        let Some(item) = name.as_deref().and_then(Item::named) else {
            // A link, because it may be what the model said.
            self.emit(Kind::Other, false, emit);
            return emit(name.map_or(Event::MissingField("payload.type"), Event::UnknownKind));
        };
        let kind = match item {
            Item::Message => match self.payload.role.0.as_deref() {
                Some("assistant") => Kind::Assistant,
                Some("user") if context::is_prompt(&self.payload) => Kind::User,
                // Of the developer, the system, or another agent.
                _ => Kind::Attachment,
            },
            Item::Reasoning | Item::Call | Item::Hosted => Kind::Assistant,
            Item::Result => Kind::ToolResult,
            Item::Context => Kind::Attachment,
            Item::Snapshot => Kind::Snapshot,
        };
        self.emit(kind, item == Item::Snapshot, emit);
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

    fn event(self, emit: &mut dyn FnMut(Event<'a>)) {
        let name = self.payload.kind.0.clone();
        if name.as_deref() == Some("thread_rolled_back") {
            emit(Event::CutTurns(self.payload.num_turns.0.unwrap_or(0)));
            return self.emit(Kind::Rewind, false, emit);
        }
        self.emit(Kind::Header, true, emit);
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
            Some(known) if EVENTS.contains(&known) => {}
            _ => emit(name.map_or(Event::MissingField("payload.type"), Event::UnknownKind)),
        }
    }
}
