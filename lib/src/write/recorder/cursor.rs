//! The cursor of a recording: the parent of the next record, and the state of the session there.

use std::path::Path;

use hashbrown::{HashMap, HashSet};
use jiff::Timestamp;

use super::log::{MASKED_START_BYTES, Moved, Place};
use super::sidecar::first_tally;
use crate::dialect::RepeatedId;
use crate::dialect::writer::Tally;
use crate::model::error::Result;
use crate::model::message::Part;
use crate::model::record::{Body, Content, Kind, RecordId, Thinking, Todo, Usage};
use crate::redact::SensitiveCalls;
use crate::session::record_ref;
use crate::session::tree::facts::TitleLine;
use crate::session::{RecordRef, Session};
use crate::view::history::todos_and_thinking;

/// How many records before the head are searched for calls without results; few turns are longer.
pub(crate) const CALL_SEARCH_RECORDS: usize = 100;

/// The parent of the next record, and the state of the session there.
#[derive(Clone)]
pub(crate) struct Cursor {
    pub(crate) chain: Chain,
    /// The names of called tools, by call.
    pub(crate) calls: HashMap<String, String>,
    /// The calls of this turn that have no result yet. One that a person interrupted never gets one, so the next prompt ends it.
    pub(crate) running_calls: HashSet<String>,
    pub(crate) todos: Option<Vec<Todo>>,
    pub(crate) thinking: Option<Thinking>,
    /// The newest time.
    pub(crate) at: Option<Timestamp>,
    pub(crate) tally: Tally,
    /// The last line in the file that gives the title.
    pub(crate) title_line: Option<TitleLine>,
    /// How many bytes of the file are known: read, or written by us behind what was read. Other programs wrote what follows.
    pub(crate) known_bytes: u64,
    /// How many prompts have each id, in formats where a repeated id is another record.
    names: HashMap<RecordId, u32>,
    /// The last answer with token counts, and the sum of all others: new counts of the same answer replace its old ones.
    costed: Option<(RecordId, Option<Usage>)>,
}

/// The parent of the next record. A write works on a copy, so that a failed one changes nothing.
#[derive(Clone, Default)]
pub(crate) struct Chain {
    /// The parent of the next record.
    pub(crate) parent: Option<ParentRecord>,
    /// The parent is not the head: the next record starts a branch.
    pub(crate) starts_branch: bool,
    /// The first record of the current answer.
    pub(crate) current_answer: Option<RecordId>,
    /// The last record that was an answer.
    pub(crate) last_answer: Option<ParentRecord>,
    /// New records belong to a sidechain.
    pub(crate) is_sidechain: bool,
    /// The id of the last line in the file, if it has one.
    pub(crate) last_line: Option<RecordId>,
    /// Calls on files whose content is a secret: their results are masked.
    pub(crate) sensitive_calls: SensitiveCalls,
}

impl Chain {
    /// Ends the current answer if a record of this kind follows it.
    pub(crate) fn end_answer_before(&mut self, kind: Kind) {
        if matches!(kind, Kind::User | Kind::ToolResult | Kind::Compaction | Kind::Rewind | Kind::Restore) {
            self.current_answer = None;
        }
    }
}

/// A record that can be a parent.
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

impl Cursor {
    /// The cursor of a new session.
    pub(crate) fn fresh(place: &Place, project: &Path) -> Cursor {
        Cursor {
            chain: Chain::default(),
            calls: HashMap::new(),
            running_calls: HashSet::new(),
            todos: None,
            thinking: None,
            at: None,
            tally: first_tally(place, project),
            title_line: None,
            known_bytes: 0,
            names: HashMap::new(),
            costed: None,
        }
    }

    /// The cursor at a record of an existing session.
    pub(crate) fn at(session: &Session, head: Option<RecordRef<'_>>, place: &Place, project: &Path) -> Result<Cursor> {
        let mut cursor = Cursor::fresh(place, project);
        cursor.at = session.updated();
        cursor.count(session)?;
        cursor.title_line.clone_from(&session.derived.facts.title_line);
        cursor.known_bytes = session.tail.at.offset + session.tail.pending.len() as u64;
        if place.dialect.traits().repeated_id == RepeatedId::Distinct {
            let prompts = session.records().filter(|record| record.kind() == Kind::User);
            prompts.for_each(|prompt| *cursor.names.entry(RecordId::from(prompt.written_id())).or_default() += 1);
        }
        cursor.chain.last_line = session.records().next_back().map(|record| RecordId(record.id().into_owned()));
        let Some(head) = head else { return Ok(cursor) };
        let branch = session.branch(head);
        (cursor.todos, cursor.thinking) = todos_and_thinking(&branch)?;
        cursor.chain.parent = Some(ParentRecord::of(head)?);
        cursor.chain.starts_branch = session.head() != Some(head);
        cursor.chain.is_sidechain = head.is_sidechain();
        cursor.running_calls = running_calls(&branch.records)?;
        for record in branch.records.iter().rev().take(CALL_SEARCH_RECORDS) {
            if record.kind() == Kind::Assistant {
                let body = record.body()?;
                if cursor.chain.last_answer.is_none() {
                    let tip = ParentRecord::of(*record)?;
                    cursor.costed = Some((tip.id.clone(), session.usage_without(*record)));
                    cursor.chain.last_answer = Some(tip);
                }
                if let Some(content) = body.content() {
                    cursor.expect_results(content);
                }
                if let Some(redactor) = &place.redactor {
                    for line in record.raw()? {
                        redactor.line_after(&mut cursor.chain.sensitive_calls, line.as_ref());
                    }
                }
            }
        }
        Ok(cursor)
    }

    /// Moves to another record of the same session, with the state there.
    pub(crate) fn move_to(&mut self, there: Cursor) {
        (self.calls, self.todos, self.thinking) = (there.calls, there.todos, there.thinking);
        self.running_calls = there.running_calls;
        self.chain.last_answer = there.chain.last_answer;
        (self.tally.usage, self.costed) = (there.tally.usage, there.costed);
    }

    /// The state before the first record.
    pub(crate) fn move_to_start(&mut self) {
        self.calls.clear();
        self.running_calls.clear();
        (self.todos, self.thinking, self.chain.last_answer) = (None, None, None);
    }

    /// The id that a reader gives to a record that was just written with this id.
    pub(crate) fn call(&mut self, id: &RecordId, place: &Place, kind: Kind) -> RecordId {
        if kind != Kind::User || place.dialect.traits().repeated_id != RepeatedId::Distinct {
            return id.clone();
        }
        let count = self.names.entry(id.clone()).or_default();
        *count += 1;
        if *count == 1 { id.clone() } else { RecordId(record_ref::copy_name(id.as_str(), *count)) }
    }

    /// Notes what was written at this offset.
    pub(crate) fn wrote(&mut self, offset: u64, bytes: usize, bodies: &[(RecordId, Body)]) {
        let end = offset + bytes as u64;
        if offset == self.known_bytes {
            self.known_bytes = end;
        }
        for (id, body) in bodies {
            self.learn(id, body);
            if let Body::Title(title) = body {
                let line = TitleLine { title: title.clone(), end };
                self.title_line = Some(TitleLine::followed_by(self.title_line.take(), line));
            }
        }
    }

    /// Corrects the places of lines that were held. `before` is the cursor before them.
    pub(super) fn move_lines(&mut self, moved: &Moved, before: &Cursor) {
        let known = if moved.is_restarted { 0 } else { before.known_bytes };
        self.known_bytes = if known == moved.to { moved.to + moved.bytes } else { known };
        self.title_line = self.title_line.take().filter(|line| !moved.is_restarted || line.end > moved.from);
        if let Some(line) = self.title_line.as_mut().filter(|line| line.end > moved.from) {
            line.end = line.end - moved.from + moved.to;
        }
        if moved.is_restarted {
            self.tally.messages = self.tally.messages.saturating_sub(before.tally.messages);
            self.tally.started = self.at;
            self.names
                .iter_mut()
                .for_each(|(id, count)| *count -= before.names.get(id).copied().unwrap_or_default());
        }
        self.chain
            .parent
            .iter_mut()
            .chain(&mut self.chain.last_answer)
            .for_each(|known| moved.correct_record(known));
    }

    /// Starts counting again, because the file was deleted.
    pub(crate) fn restart_file(&mut self) {
        (self.title_line, self.known_bytes) = (None, 0);
        (self.tally.messages, self.tally.started) = (0, None);
        self.names.clear();
    }

    /// Remembers the calls of a message, because results may follow.
    pub(crate) fn expect_results(&mut self, content: &Content) {
        self.calls.extend(content.open_calls().map(|(id, name)| (id.to_owned(), name.to_owned())));
    }

    /// Updates the state with a record that was just written.
    fn learn(&mut self, id: &RecordId, body: &Body) {
        match body {
            Body::User(content) => {
                self.running_calls.clear();
                self.prompt(content);
                self.content(id, content);
            }
            Body::Assistant(content) => {
                self.expect_results(content);
                self.running_calls.extend(content.open_calls().map(|(id, _)| id.to_owned()));
                self.tally.model = content.model.clone().or(self.tally.model.take());
                self.content(id, content);
            }
            Body::ToolResult(content) => {
                content.results.iter().for_each(|result| _ = self.calls.remove(&result.call_id));
                let ended = content.results.iter().filter(|result| !result.preliminary);
                ended.for_each(|result| _ = self.running_calls.remove(&result.call_id));
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
        let start = text[..text.floor_char_boundary(MASKED_START_BYTES)].to_owned();
        let first = self.tally.prompts.take().map_or_else(|| start.clone(), |(first, _)| first);
        self.tally.prompts = Some((first, start));
    }

    /// Counts what the sidecar repeats. Pieces of one answer count as one.
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

/// The calls of the last turn of a branch that have no result.
fn running_calls(branch: &[RecordRef<'_>]) -> Result<HashSet<String>> {
    let (mut running, mut ended) = (HashSet::new(), HashSet::new());
    let turn = branch.iter().rev().take_while(|record| record.kind() != Kind::User);
    for record in turn.take(CALL_SEARCH_RECORDS) {
        match record.body()? {
            Body::ToolResult(content) => {
                ended.extend(
                    content.results.into_iter().filter(|result| !result.preliminary).map(|result| result.call_id),
                );
            }
            // An id that is used again belongs to the newer call.
            Body::Assistant(content) => {
                let calls = content.open_calls().filter(|(id, _)| !ended.contains(*id));
                running.extend(calls.map(|(id, _)| id.to_owned()));
            }
            _ => {}
        }
    }
    Ok(running)
}
