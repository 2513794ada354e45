//! Where a recording stands: the record to go on from, and what is known there.

use std::path::Path;

use hashbrown::HashMap;
use jiff::Timestamp;

use super::log::Place;
use super::sidecar::first_tally;
use crate::dialect::RepeatedId;
use crate::dialect::writer::Tally;
use crate::model::error::Result;
use crate::model::message::Part;
use crate::model::record::{Body, Content, Kind, RecordId, Thinking, Todo, Usage};
use crate::session::record_ref;
use crate::session::{RecordRef, Session};
use crate::view::history::standing;

/// How many records before the head are asked for calls that wait for results: a turn is seldom longer.
pub(crate) const RECORDS_ASKED_FOR_CALLS: usize = 100;

/// How much of a prompt a sidecar repeats.
const PROMPT_CHARS: usize = 100;

/// Where a recording stands.
pub(crate) struct Start {
    pub(crate) chain: Chain,
    /// The names of called tools, by call.
    pub(crate) calls: HashMap<String, String>,
    pub(crate) todos: Option<Vec<Todo>>,
    pub(crate) thinking: Option<Thinking>,
    /// The newest instant.
    pub(crate) at: Option<Timestamp>,
    pub(crate) tally: Tally,
    /// How many prompts have each name, where a second one is another record: people's programs name what they say.
    names: HashMap<RecordId, u32>,
    /// The answer whose cost was or would be told last, and what all others cost: told again, it replaces what was told of it.
    costed: Option<(RecordId, Option<Usage>)>,
}

/// What the next record hangs on. It is small: a write works on a copy, and a failed one leaves it as it was.
#[derive(Clone, Default)]
pub(crate) struct Chain {
    /// The record that the next one hangs on.
    pub(crate) tip: Option<ParentRecord>,
    /// That record is not the head: the next one begins a branch.
    pub(crate) branches: bool,
    /// The answer that the model is giving.
    pub(crate) answer: Option<RecordId>,
    /// The last record that was an answer.
    pub(crate) answered: Option<ParentRecord>,
    /// Everything goes beside the conversation.
    pub(crate) sidechain: bool,
    /// What the last line of the file is called, where it tells that itself.
    pub(crate) last: Option<RecordId>,
}

impl Chain {
    /// Whatever follows such a record is no part of the answer before it.
    pub(crate) fn pass(&mut self, kind: Kind) {
        match kind {
            Kind::User | Kind::ToolResult | Kind::Compaction | Kind::Rewind | Kind::Restore => self.answer = None,
            Kind::Assistant
            | Kind::Attachment
            | Kind::System
            | Kind::Snapshot
            | Kind::Title
            | Kind::Header
            | Kind::Other => {}
        }
    }
}

/// A record that others can hang on.
#[derive(Debug, Clone)]
pub(crate) struct ParentRecord {
    pub(crate) id: RecordId,
    pub(crate) parent: Option<RecordId>,
    pub(crate) kind: Kind,
    /// How many lines it has.
    pub(crate) lines: u64,
}

impl ParentRecord {
    pub(crate) fn of(record: RecordRef<'_>) -> Result<ParentRecord> {
        Ok(ParentRecord {
            id: RecordId(record.id().into_owned()),
            parent: record.parent().map(|parent| RecordId(parent.id().into_owned())),
            kind: record.kind(),
            lines: record.raw()?.len() as u64,
        })
    }
}

impl Start {
    /// A new session's.
    pub(crate) fn fresh(place: &Place, project: &Path) -> Start {
        Start {
            chain: Chain::default(),
            calls: HashMap::new(),
            todos: None,
            thinking: None,
            at: None,
            tally: first_tally(place, project),
            names: HashMap::new(),
            costed: None,
        }
    }

    /// At a record of a session that is there.
    pub(crate) fn at(session: &Session, head: Option<RecordRef<'_>>, place: &Place, project: &Path) -> Result<Start> {
        let mut start = Start::fresh(place, project);
        start.at = session.updated();
        start.count(session)?;
        if place.dialect.traits().repeated_id == RepeatedId::Distinct {
            let prompts = session.records().filter(|record| record.kind() == Kind::User);
            prompts.for_each(|prompt| *start.names.entry(RecordId::from(prompt.written_id())).or_default() += 1);
        }
        start.chain.last = session.records().next_back().map(|record| RecordId(record.id().into_owned()));
        let Some(head) = head else { return Ok(start) };
        let branch = session.branch(head);
        (start.todos, start.thinking) = standing(&branch)?;
        start.chain.tip = Some(ParentRecord::of(head)?);
        start.chain.branches = session.head() != Some(head);
        start.chain.sidechain = head.is_sidechain();
        for record in branch.records.iter().rev().take(RECORDS_ASKED_FOR_CALLS) {
            if record.kind() == Kind::Assistant {
                let body = record.body()?;
                if start.chain.answered.is_none() {
                    let tip = ParentRecord::of(*record)?;
                    start.costed = Some((tip.id.clone(), session.usage_without(*record)));
                    start.chain.answered = Some(tip);
                }
                if let Some(content) = body.content() {
                    start.expect_results(content);
                }
            }
        }
        Ok(start)
    }

    /// Stands elsewhere in the same session: what was known of the branch that was left counts no more.
    pub(crate) fn stand(&mut self, there: Start) {
        (self.calls, self.todos, self.thinking) = (there.calls, there.todos, there.thinking);
        self.chain.answered = there.chain.answered;
        (self.tally.usage, self.costed) = (there.tally.usage, there.costed);
    }

    /// What the reader calls a record that was just written under this name.
    pub(crate) fn call(&mut self, id: &RecordId, place: &Place, kind: Kind) -> RecordId {
        if kind != Kind::User || place.dialect.traits().repeated_id != RepeatedId::Distinct {
            return id.clone();
        }
        let count = self.names.entry(id.clone()).or_default();
        *count += 1;
        if *count == 1 { id.clone() } else { RecordId(record_ref::copy_name(id.as_str(), *count)) }
    }

    /// The file that was counted so far is gone: another one starts.
    pub(crate) fn restart_file(&mut self) {
        (self.tally.messages, self.tally.started) = (0, None);
        self.names.clear();
    }

    /// Results of these calls may follow.
    pub(crate) fn expect_results(&mut self, content: &Content) {
        self.calls.extend(content.open_calls().map(|(id, name)| (id.to_owned(), name.to_owned())));
    }

    /// Remembers what a record that was just written says.
    pub(crate) fn learn(&mut self, id: &RecordId, body: &Body) {
        match body {
            Body::User(content) => {
                self.prompt(content);
                self.content(id, content);
            }
            Body::Assistant(content) => {
                self.expect_results(content);
                self.tally.model = content.model.clone().or(self.tally.model.take());
                self.content(id, content);
            }
            Body::ToolResult(content) => {
                content.results.iter().for_each(|result| _ = self.calls.remove(&result.call_id));
                self.content(id, content);
            }
            Body::Attachment(content) | Body::System(content) => self.content(id, content),
            Body::Title(title) => self.tally.title = Some(title.text.clone()),
            Body::Restore(restore) => self.todos = restore.todos.clone().or(self.todos.take()),
            Body::Compaction(_) | Body::Rewind(_) | Body::Snapshot(_) | Body::Header(_) | Body::Other(_) => {}
        }
    }

    fn content(&mut self, id: &RecordId, content: &Content) {
        self.todos = content.todos.clone().or(self.todos.take());
        self.thinking = content.thinking.clone().or(self.thinking.take());
        if let Some(usage) = content.usage {
            let known = self.costed.take().filter(|(record, _)| record == id);
            let others = known.map_or(self.tally.usage, |(_, others)| others);
            let mut all = others.unwrap_or_default();
            all.add(usage);
            (self.tally.usage, self.costed) = (Some(all), Some((id.clone(), others)));
        }
    }

    fn prompt(&mut self, content: &Content) {
        let text = content
            .parts
            .iter()
            .find_map(|part| if let Part::Text(text) = part { Some(&text.text) } else { None });
        let Some(text) = text else { return };
        let short: String = text.chars().take(PROMPT_CHARS).collect();
        let first = self.tally.prompts.take().map_or_else(|| short.clone(), |(first, _)| first);
        self.tally.prompts = Some((first, short));
    }

    /// Counts what a session's sidecar tells. Pieces of one answer are counted as one.
    fn count(&mut self, session: &Session) -> Result<()> {
        let tally = &mut self.tally;
        tally.started = session.started();
        tally.updated = session.updated();
        tally.title = session.title().map(|title| title.text.clone());
        tally.git_branch = tally.git_branch.take().or_else(|| session.git_branch().map(str::to_owned));
        tally.model = session.models().last().cloned();
        tally.forked_from = session.forked_from().map(crate::model::record::SessionId::from);
        let is_message = |record: &RecordRef<'_>| {
            matches!(record.kind(), Kind::User | Kind::Assistant | Kind::ToolResult | Kind::System)
        };
        tally.messages = session.records().filter(is_message).count() as u64;
        tally.usage = session.usage();
        let mut prompts = session.records().filter(|record| record.kind() == Kind::User && !record.is_reaction());
        let (first, last) = (prompts.next(), prompts.next_back());
        for record in first.into_iter().chain(last) {
            if let Body::User(content) = record.body()? {
                self.prompt(&content);
            }
        }
        Ok(())
    }
}
