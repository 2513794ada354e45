//! Reads the bodies of one turn: what it begins with, its calls, and how it ended.

use hashbrown::{HashMap, HashSet};
use serde_json::Value;

use super::{TurnEnd, TurnKind, TurnRow, Turns};
use crate::dialect::local;
use crate::model::error::Result;
use crate::model::message::{Part, ToolState};
use crate::model::metadata::INTERRUPTED;
use crate::model::record::{Body, Compaction, Content, Display, Kind, Outcome, RecordId, ToolResult};
use crate::session::RecordRef;
use crate::view::describe::{PREVIEW_CHARS, shorten, text_of};
use crate::view::tool_view::{Ending, asks_for_rights, ending, failure_ending};

/// How many prompts in a row are followed to an answer of all of them.
const PROMPTS_TOGETHER: usize = 16;

impl Turns<'_> {
    /// Reads one turn.
    pub fn row(&self, turn: usize) -> Result<TurnRow> {
        let group = &self.groups[turn];
        let first = self.session.at(group.first);
        let body = first.body()?;
        let (kind, text) = beginning(first, &body);
        let reader = self.read(turn)?;
        let end = self.end(turn, kind, &body, &reader)?;
        Ok(TurnRow {
            id: name(self.last(turn)),
            first: name(first),
            parent: first.parent().map(name),
            kind,
            text: shorten(&text, PREVIEW_CHARS),
            at: first.at(),
            end,
            calls: reader.calls.len(),
            failed_calls: reader.ended(Ending::Failed),
            denied_calls: reader.ended(Ending::Denied),
            interrupted_calls: reader.ended(Ending::Interrupted),
            sidechain: first.is_sidechain(),
            on_branch: group.on_branch,
            head: group.head,
            missing_parent: first.missing_parent().map(RecordId::from),
        })
    }

    /// How a turn ended that begins with this body.
    pub(in crate::view) fn end(
        &self,
        turn: usize,
        kind: TurnKind,
        first: &Body,
        reader: &TurnReader,
    ) -> Result<Option<TurnEnd>> {
        let group = &self.groups[turn];
        // In a room, people talk to each other too.
        let is_in_room = first.content().is_some_and(|content| content.sender.is_some());
        let asks = matches!(kind, TurnKind::Prompt | TurnKind::Notification) && !is_in_room;
        let is_command = matches!(kind, TurnKind::Command | TurnKind::Shell);
        Ok(match reader.end(asks, group.is_continued && group.head.is_none()) {
            Some(TurnEnd::NoAnswer) if self.is_answered_later(turn)? => Some(TurnEnd::AnsweredWithNext),
            None if has_failed(first) => Some(TurnEnd::Failed),
            None if reader.is_in_the_middle() && !is_command => self.end_of_rest(turn)?,
            // What follows it belongs to the turn in which it was run.
            Some(_) if is_command && self.is_inside_a_turn(turn)? => has_failed(first).then_some(TurnEnd::Failed),
            end => end,
        })
    }

    /// How a turn ended that goes on after a command which a person ran in the meantime, or with the next prompt.
    fn end_of_rest(&self, turn: usize) -> Result<Option<TurnEnd>> {
        for next in self.following(turn) {
            let group = &self.groups[next];
            match self.kind(next) {
                Kind::User => return Ok(self.is_answered_later(next - 1)?.then_some(TurnEnd::AnsweredWithNext)),
                Kind::System => {}
                _ => break,
            }
            if let Some(end) = self.read(next)?.end(false, group.is_continued && group.head.is_none()) {
                return Ok(Some(end));
            }
        }
        Ok(None)
    }

    /// Whether a command was run while the model worked at a turn before it.
    fn is_inside_a_turn(&self, command: usize) -> Result<bool> {
        let before = std::iter::successors(self.parent(command), |turn| self.parent(*turn));
        for turn in before.take(PROMPTS_TOGETHER) {
            let reader = self.read(turn)?;
            if reader.last != Last::Nothing || self.kind(turn) != Kind::System {
                return Ok(reader.is_in_the_middle());
            }
        }
        Ok(false)
    }

    /// The turns that follow a turn, as far as each continues the one before it.
    fn following(&self, turn: usize) -> impl Iterator<Item = usize> + '_ {
        let continues =
            |next: &usize| self.groups.get(*next).is_some_and(|group| group.parent == Some(*next as u32 - 1));
        ((turn + 1)..=(turn + PROMPTS_TOGETHER)).take_while(continues)
    }

    /// Whether a branch of a turn ends with an answer: of these records, one that nothing follows.
    pub(in crate::view) fn has_answered_branch(&self, records: &[RecordRef<'_>]) -> Result<bool> {
        let among: HashSet<usize> = records.iter().map(|record| record.order()).collect();
        let is_followed = |record: &RecordRef<'_>| record.children().any(|next| among.contains(&next.order()));
        for record in records.iter().filter(|record| record.kind() == Kind::Assistant && !is_followed(record)) {
            let mut reader = TurnReader::default();
            reader.add(*record, &record.exact_body()?)?;
            if reader.last == Last::Text {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn read(&self, turn: usize) -> Result<TurnReader> {
        let mut reader = TurnReader::default();
        for record in self.records(turn).filter(|record| is_read(*record)) {
            reader.add(record, &record.exact_body()?)?;
        }
        self.read_next(turn, &mut reader)?;
        Ok(reader)
    }

    /// Reads the last results of a turn, which can be in the record of the next prompt.
    pub(in crate::view) fn read_next(&self, turn: usize, reader: &mut TurnReader) -> Result<()> {
        let next = self.last(turn).children().filter(|next| reader.has_open_calls() && next.kind() == Kind::User);
        let next: Vec<Body> = next.map(RecordRef::exact_body).collect::<Result<_>>()?;
        next.iter().filter_map(Body::content).for_each(|content| reader.results(&content.results));
        Ok(())
    }

    /// Whether the model answers a prompt together with one of those that were typed right after it.
    fn is_answered_later(&self, turn: usize) -> Result<bool> {
        for next in self.following(turn) {
            // The answer may be on another branch.
            if !matches!(self.kind(next), Kind::User | Kind::Assistant) {
                break;
            }
            match self.read(next)?.last {
                Last::Nothing => {}
                last => return Ok(matches!(last, Last::Text | Last::Call | Last::Result | Last::Thinking)),
            }
        }
        Ok(false)
    }
}

/// Whether the body of a record says something about its turn.
pub(in crate::view) fn is_read(record: RecordRef<'_>) -> bool {
    !record.is_side() || record.is_failure()
}

/// Whether an answer in the middle of a turn is only the summary of the compaction right after it.
fn is_asked_for_by_compaction(record: RecordRef<'_>, body: &Body) -> Result<bool> {
    let Body::Assistant(content) = body else { return Ok(false) };
    let is_text = |part: &Part| matches!(part, Part::Text(_));
    let Some(next) = record.children().find(|next| next.kind() == Kind::Compaction) else { return Ok(false) };
    let Body::Compaction(compaction) = next.exact_body()? else { return Ok(false) };
    let summary = compaction.summary.unwrap_or_default();
    Ok(content.parts.iter().all(is_text) && Compaction::asked_for(&text_of(body), &summary))
}

fn name(record: RecordRef<'_>) -> RecordId {
    RecordId(record.id().into_owned())
}

/// Whether it is a command that a person ran and that failed.
fn has_failed(body: &Body) -> bool {
    let display = body.content().and_then(|content| content.display.as_ref());
    matches!(display, Some(Display::Shell { exit_code: Some(code), .. }) if *code != 0)
}

/// What a turn begins with.
pub(in crate::view) fn beginning(first: RecordRef<'_>, body: &Body) -> (TurnKind, String) {
    match body {
        Body::User(content) | Body::System(content) => match &content.display {
            Some(Display::Command { text }) if first.kind() == Kind::System => (TurnKind::Command, text.clone()),
            Some(Display::Shell { text, .. }) => (TurnKind::Shell, text.clone()),
            Some(Display::Notification { text }) => (TurnKind::Notification, text.clone()),
            _ => (TurnKind::Prompt, prompt(content)),
        },
        Body::Compaction(compaction) => {
            // The summary may be in a record of its own, after the one that cuts and what is sent before the summary.
            let own = || summary_after(first)?.body().ok().map(|body| text_of(&body));
            let summary = compaction.summary.clone().or_else(own).unwrap_or_default();
            (TurnKind::Compaction, local::summary_itself(&summary).to_owned())
        }
        Body::Rewind(rewind) => (TurnKind::Rewind, rewind.reason.clone().unwrap_or_default()),
        Body::Restore(restore) => {
            let files = restore.files.as_array().into_iter().flatten();
            let is_done = |file: &&Value| file.get("action").and_then(Value::as_str) != Some("none");
            let paths: Vec<&str> = files.filter(is_done).filter_map(|file| file.get("path")?.as_str()).collect();
            (TurnKind::Restore, paths.join(", "))
        }
        _ => (TurnKind::Answer, String::new()),
    }
}

/// The next compaction after this one, with only context in between.
fn summary_after(first: RecordRef<'_>) -> Option<RecordRef<'_>> {
    let mut next = first;
    loop {
        next = next.children().find(|next| matches!(next.kind(), Kind::Attachment | Kind::Compaction))?;
        if next.kind() == Kind::Compaction {
            return Some(next);
        }
    }
}

/// A prompt as its author typed it; without text, the kinds of what was attached.
fn prompt(content: &Content) -> String {
    let mut text = content.shown_text();
    if text.trim().is_empty() {
        let files = content.parts.iter().filter_map(|part| match part {
            Part::File(file) => Some(format!("[{}]", file.filename.as_deref().unwrap_or(&file.media_type))),
            _ => None,
        });
        text = files.collect::<Vec<_>>().join(" ");
    }
    match &content.sender {
        Some(sender) => format!("{sender}: {text}"),
        None => text,
    }
}

/// The last thing that happened in a turn.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Last {
    #[default]
    Nothing,
    Text,
    Thinking,
    Call,
    Result,
    Failure,
    Interruption,
}

/// What the bodies of a turn say about how it ended. They hold ids only, so no text has to be masked.
#[derive(Default)]
pub(in crate::view) struct TurnReader {
    last: Last,
    calls: HashSet<String>,
    answered: HashSet<String>,
    /// How calls ended that did not succeed.
    endings: HashMap<String, Ending>,
    /// The calls that were to be allowed first.
    asking: HashSet<String>,
    /// How calls ended after their results.
    late: HashMap<String, Outcome>,
    /// What a compaction kept was said in an earlier turn, also where its record follows the summary.
    kept: HashSet<String>,
}

impl TurnReader {
    /// Takes the next record of the turn.
    pub(in crate::view) fn add(&mut self, record: RecordRef<'_>, body: &Body) -> Result<()> {
        if self.kept.contains(&*record.id()) || is_asked_for_by_compaction(record, body)? {
            return Ok(());
        }
        match body {
            Body::Assistant(content) => {
                let late = record.exact_late_results()?;
                self.late.extend(late.into_iter().map(|late| (late.call_id, late.outcome)));
                self.answer(record, content);
            }
            Body::ToolResult(content) => {
                self.results(&content.results);
                // Who refuses a call or stops it stops the agent, unless it goes on.
                let ended = content.results.iter().filter_map(|result| self.endings.get(&result.call_id));
                let is_stopped = ended.into_iter().any(|ended| matches!(ended, Ending::Denied | Ending::Interrupted));
                self.last = if is_stopped { Last::Interruption } else { Last::Result };
            }
            Body::User(content) | Body::Attachment(content) => self.results(&content.results),
            Body::System(content) if record.is_failure() => {
                let is_stopped = content.display == Some(Display::Interrupted);
                self.last = if is_stopped { Last::Interruption } else { Last::Failure };
            }
            Body::Compaction(compaction) => {
                self.kept.extend(compaction.preserved.iter().map(|record| record.as_str().to_owned()));
            }
            Body::System(_)
            | Body::Snapshot(_)
            | Body::Title(_)
            | Body::Rewind(_)
            | Body::Restore(_)
            | Body::Header(_)
            | Body::Other(_) => {}
        }
        Ok(())
    }

    fn answer(&mut self, record: RecordRef<'_>, content: &Content) {
        for part in &content.parts {
            match part {
                Part::Text(text) if !text.text.trim().is_empty() => self.last = Last::Text,
                Part::File(_) => self.last = Last::Text,
                Part::Reasoning(_) => self.last = Last::Thinking,
                Part::Tool(call) => {
                    self.calls.insert(call.call_id.clone());
                    self.last = if call.is_open() { Last::Call } else { Last::Result };
                    self.answered.extend((!call.is_open()).then(|| call.call_id.clone()));
                    if let ToolState::OutputError { .. } | ToolState::OutputDenied { .. } = call.state {
                        self.endings.insert(call.call_id.clone(), ending(call));
                    }
                    self.asking.extend(asks_for_rights(call.input()).then(|| call.call_id.clone()));
                }
                _ => {}
            }
        }
        self.results(&content.results);
        if record.is_failure() || content.error.is_some() {
            self.last = Last::Failure;
        }
        if content.metadata.get(INTERRUPTED) == Some(&true.into()) {
            self.last = Last::Interruption;
        }
    }

    fn results(&mut self, results: &[ToolResult]) {
        for result in results.iter().filter(|result| !result.preliminary) {
            self.answered.insert(result.call_id.clone());
            let ended = match self.late.get(&result.call_id).unwrap_or(&result.outcome) {
                Outcome::Done => continue,
                Outcome::Failed(why) => failure_ending(why, self.asking.contains(&result.call_id)),
                Outcome::Denied(_) => Ending::Denied,
            };
            self.endings.insert(result.call_id.clone(), ended);
        }
    }

    /// How many calls ended so.
    fn ended(&self, wanted: Ending) -> usize {
        self.endings.iter().filter(|(call, ended)| **ended == wanted && self.calls.contains(*call)).count()
    }

    /// Whether the model has not ended its answer.
    fn is_in_the_middle(&self) -> bool {
        matches!(self.last, Last::Call | Last::Result)
    }

    fn has_open_calls(&self) -> bool {
        !self.calls.is_subset(&self.answered)
    }

    /// How the turn ended; `asks` is whether it asked for an answer.
    fn end(&self, asks: bool, is_continued: bool) -> Option<TurnEnd> {
        match self.last {
            Last::Nothing => asks.then_some(TurnEnd::NoAnswer),
            Last::Text => Some(TurnEnd::Answered),
            Last::Failure => Some(TurnEnd::Failed),
            // A prompt was typed, or a command was run, while a tool ran; the model goes on after it.
            Last::Call | Last::Result if is_continued && !self.has_open_calls() => None,
            Last::Thinking | Last::Call | Last::Result | Last::Interruption => Some(TurnEnd::Interrupted),
        }
    }
}
