//! The records of a session, said again to a recorder of another dialect.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use hashbrown::{HashMap, HashSet};

use super::answers::{answers, joined};
use super::kept::Kept;
use super::pairing::Pairing;
use super::script::{Script, derived_id};
use super::{Conversion, LossRow};
use crate::append::Appender;
use crate::error::{Error, Result};
use crate::project;
use crate::reading::Reading;
use crate::record::{Body, Kind, RecordId, Said, SessionId};
use crate::recorder::{Ack, Durability, Log, Mode, Options, RECORDS_ASKED_FOR_CALLS, Recorder, Saved, Start, Tip};
use crate::session::{RecordRef, Session};
use crate::store::{NewSession, Store, bytes};
use crate::thinking::Triggers;
use crate::writing::{Grain, Loss, Shape};

/// What came of saying a session again.
#[derive(Default)]
pub(super) struct Replayed {
    pub(super) losses: Vec<LossRow>,
    /// The source's names of records that are called otherwise now.
    pub(super) ids: BTreeMap<String, String>,
    /// What records of the source are called now, by their order.
    pub(super) tips: HashMap<usize, String>,
    /// The record that the branch ended in, where only one was said.
    pub(super) head: Option<String>,
    /// Something of it was written.
    pub(super) has_said: bool,
}

/// Says a whole session again.
pub(super) fn all(
    session: &Session,
    how: &Conversion<'_>,
    store: &Store,
    id: &SessionId,
    file: &Path,
) -> Result<Replayed> {
    let head = session.head_called(how.head)?;
    let mut replay = Replay::begin(session, store, id, how.with, file)?;
    let branch = head.map(|head| session.branch(head).records).unwrap_or_default();
    if store.writing.shape == Shape::Tree {
        let records: Vec<RecordRef<'_>> = session.records().collect();
        replay.say(&records)?;
        replay.end_at(head)?;
    } else {
        replay.told.head = head.map(|head| head.id().into_owned());
        let mut on_branch = vec![false; session.records().len()];
        branch.iter().for_each(|record| on_branch[record.order()] = true);
        let records: Vec<RecordRef<'_>> = branch.iter().copied().chain(title_that_counts(session)?).collect();
        records.iter().for_each(|record| on_branch[record.order()] = true);
        replay.say(&records)?;
        for record in session.records().filter(|record| !on_branch[record.order()]) {
            let what = match () {
                () if record.is_side() => beside(record.kind()),
                () if record.is_sidechain() => "sidechain",
                () => "another branch",
            };
            replay.lose(record, what);
        }
    }
    replay.finish()
}

/// Says what was added to a converted session, behind the lines that its sidecar kept.
pub(super) fn go_on(session: &Session, kept: &Kept, store: &Store, id: &SessionId, file: &Path) -> Result<Replayed> {
    let mut replay = Replay::begin_with(session, store, id, &kept.original(), file)?;
    let before = Session::from_bytes(store.dialect, kept.original(), &Reading::plain(replay.script.now()));
    // Records are looked for by their whole names, each once: the beginning of a name can be another record's.
    let by_name: HashMap<Cow<'_, str>, RecordRef<'_>> = before.records().map(|record| (record.id(), record)).collect();
    let head = kept.head().and_then(|head| by_name.get(head).copied()).or(before.head());
    let (newer, older): (Vec<_>, Vec<_>) = session.records().partition(|record| kept.is_newer(*record));
    let mut last = None;
    let asked_for_calls = older.len().saturating_sub(RECORDS_ASKED_FOR_CALLS);
    for (at, record) in older.into_iter().enumerate() {
        replay.pairing.expect(&[record]);
        replay.pairing.count(record);
        if at >= asked_for_calls && record.kind() == Kind::Assistant {
            replay.recorder.expect_results(&record.body()?);
        }
        if record.is_side() {
            continue;
        }
        last = Some(record.order());
        if let Some(original) = by_name.get(kept.original_of(&record.id()).as_str()) {
            replay.tips.insert(record.order(), Tip::of(*original)?);
        }
    }
    // A line of records ends where the branch ended that it was made of.
    if let (Some(last), Some(head)) = (last, head) {
        replay.tips.entry(last).or_insert(Tip::of(head)?);
    }
    replay.tip_of_linear = before.head().map(Tip::of).transpose()?;
    replay.say(&newer)?;
    replay.finish()
}

/// The title beside the conversation that counts: the most binding, and of those the last.
fn title_that_counts(session: &Session) -> Result<Option<RecordRef<'_>>> {
    let mut best = None;
    for record in session.records().filter(|record| record.kind() == Kind::Title && record.is_side()) {
        let Body::Title(title) = record.body()? else { continue };
        if best.is_none_or(|(source, _)| source <= title.source) {
            best = Some((title.source, record));
        }
    }
    Ok(best.map(|(_, record)| record))
}

/// A recorder whose clock and ids are the source's.
struct Replay<'s> {
    recorder: Recorder,
    grain: Grain,
    shape: Shape,
    script: Script,
    /// What hangs on a record of the source hangs on this.
    tips: HashMap<usize, Tip>,
    tip_of_linear: Option<Tip>,
    told: Replayed,
    /// What the recorder holds of a turn that is not over.
    held: Vec<RecordRef<'s>>,
    pairing: Pairing,
    /// The last record of the chain that was written.
    last_link: Option<RecordId>,
}

impl<'s> Replay<'s> {
    fn begin(
        session: &'s Session,
        store: &Store,
        id: &SessionId,
        with: Option<&str>,
        file: &Path,
    ) -> Result<Replay<'s>> {
        let project = project::of(&store.host.cwd);
        let new = NewSession { with, ..NewSession::of(&project) };
        // A session that is called after its place may have a name that is none for a file.
        let fresh = derived_id(session.id().as_str(), store.dialect.name());
        let beginning = store.beginning(&fresh, &new, session.git_branch())?;
        if store.dialect.name() == "fluux" {
            // Its first line tells whom it is with, wherever the file goes: no place is made for nobody.
            store.path_of(&beginning)?;
        }
        let header = bytes(&(store.writing.header)(&beginning));
        Replay::begin_with(session, store, id, &header, file)
    }

    fn begin_with(
        session: &'s Session,
        store: &Store,
        id: &SessionId,
        first: &[u8],
        file: &Path,
    ) -> Result<Replay<'s>> {
        let at = session.started().unwrap_or_else(|| (store.host.now)());
        let script = Script::new(store.dialect.name(), id, at);
        let host = script.host(&store.host);
        let mut place = store.place(id.clone(), file);
        (place.host, place.mode, place.sidecar) = (host, Mode::Replay, None);
        let mut start = Start::fresh(&place, &project::of(&store.host.cwd));
        start.tally.git_branch = session.git_branch().map(str::to_owned);
        let appender = Appender::create(store.disk.clone(), file, first.to_vec())?;
        let options = Options { durability: Some(Durability::Flush), triggers: Triggers::default() };
        let recorder = Recorder::new(Log::new(place, appender, start, None), options);
        Ok(Replay {
            recorder,
            grain: store.writing.grain,
            shape: store.writing.shape,
            script,
            tips: HashMap::new(),
            tip_of_linear: None,
            told: Replayed::default(),
            held: Vec::new(),
            pairing: Pairing::default(),
            last_link: None,
        })
    }

    fn say(&mut self, records: &[RecordRef<'s>]) -> Result<()> {
        let answers = answers(records);
        let mut first_of: HashMap<usize, RecordRef<'s>> = HashMap::new();
        for record in records {
            first_of.entry(record.order()).or_insert(*record);
            let Some(members) = answers.get(&record.order()) else { continue };
            first_of.extend(members.iter().map(|member| (member.order(), *record)));
        }
        let group = |first: &RecordRef<'s>| answers.get(&first.order()).cloned().unwrap_or_else(|| vec![*first]);
        let is_first = |record: &&RecordRef<'s>| first_of.get(&record.order()) == Some(*record);
        records.iter().filter(is_first).for_each(|first| self.pairing.expect(&group(first)));
        let mut is_said: HashSet<usize> = HashSet::new();
        for record in records {
            // A record that stands before its parent waits for it; a circle is cut where it is entered.
            let mut waiting = Vec::new();
            let mut next = Some(*record);
            while let Some(first) = next.and_then(|record| first_of.get(&record.order()).copied()) {
                if !is_said.insert(first.order()) {
                    break;
                }
                waiting.push(first);
                next = first.parent().filter(|_| self.shape == Shape::Tree);
            }
            while let Some(first) = waiting.pop() {
                self.say_one(first, &group(&first))?;
            }
        }
        Ok(())
    }

    /// Says one record, or one answer that the source wrote as several.
    fn say_one(&mut self, first: RecordRef<'s>, group: &[RecordRef<'s>]) -> Result<()> {
        let mut body = joined(group)?;
        let mut mended = self.pairing.mend(&mut body, first.is_sidechain());
        std::mem::take(&mut mended.losses).into_iter().for_each(|loss| self.lose_as(&first.id(), loss));
        if matches!(&body, Body::ToolResult(said) if said.results.is_empty() && said.parts.is_empty()) {
            self.pass_over(group);
            return Ok(());
        }
        let last = group.last().copied().unwrap_or(first);
        if let Some(results) = self.results_beside_words(&mut body) {
            let calls = std::mem::take(&mut mended.calls);
            self.script.add_to(first, last);
            self.say_into_turn(first, Body::Assistant(Said { parts: calls, ..Said::default() }))?;
            self.say_into_turn(first, results)?;
        }
        if !goes_into_a_turn(&body) {
            self.end_turn()?;
        }
        self.script.turn_to(first, last);
        if self.shape == Shape::Tree {
            let tip = match first.parent() {
                Some(parent) => self.tips.get(&parent.order()).cloned(),
                // What stands beside the conversation begins none of its own, where it is written into one.
                None if first.is_side() => self.recorder.tip().cloned(),
                None => None,
            };
            self.recorder.go_on_from(tip, first.is_sidechain());
        } else if let Some(tip) = self.tip_of_linear.take() {
            self.recorder.go_on_from(Some(tip), first.is_sidechain());
        }
        if !mended.calls.is_empty() {
            self.script.add_to(first, first);
            let calls = Said { parts: mended.calls, ..Said::default() };
            match self.recorder.record(Body::Assistant(calls)) {
                Ok(_) => {}
                Err(error) => _ = not_held(error)?,
            }
            self.script.turn_to(first, last);
        }
        let said = match body {
            Body::Header(_) => {
                self.lose(first, beside(Kind::Header));
                self.pass_over(group);
                return Ok(());
            }
            Body::Other(_) => {
                self.lose(first, beside(Kind::Other));
                self.keep_tip(group);
                return Ok(());
            }
            body => self.recorder.record(body),
        };
        match said {
            Ok(Ack::Saved(saved)) => {
                self.note(&first.id(), saved);
                if !first.is_side() {
                    self.last_link = self.recorder.head().cloned();
                }
            }
            Ok(Ack::Held { .. }) => {
                self.held.extend(group);
                return Ok(());
            }
            Ok(Ack::NotRecorded) => {}
            Err(error) => {
                let what = not_held(error)?;
                self.lose(first, if what.is_empty() { beside(first.kind()) } else { &what });
            }
        }
        self.keep_tip(group);
        Ok(())
    }

    /// Results that share a record with somebody's words: where a turn is one message, they belong to it and the words end it.
    fn results_beside_words(&self, body: &mut Body) -> Option<Body> {
        let (Body::User(said) | Body::Attachment(said)) = body else { return None };
        if self.grain != Grain::Turn || said.results.is_empty() {
            return None;
        }
        let (results, context) = (std::mem::take(&mut said.results), said.context.clone());
        Some(Body::ToolResult(Said { results, context, ..Said::default() }))
    }

    /// Adds a part of a record to the turn that is held.
    fn say_into_turn(&mut self, of: RecordRef<'s>, body: Body) -> Result<()> {
        if body.said().is_some_and(|said| said.parts.is_empty() && said.results.is_empty()) {
            return Ok(());
        }
        match self.recorder.record(body) {
            Ok(Ack::Held { .. }) if self.held.is_empty() => self.held.push(of),
            Ok(Ack::Held { .. } | Ack::NotRecorded) => {}
            Ok(Ack::Saved(saved)) => self.note(&of.id(), saved),
            Err(error) => {
                let what = not_held(error)?;
                self.lose(of, if what.is_empty() { beside(Kind::ToolResult) } else { &what });
            }
        }
        Ok(())
    }

    /// Writes the turn that is held, as what its first record is.
    fn end_turn(&mut self) -> Result<()> {
        let held = std::mem::take(&mut self.held);
        let Some(first) = held.first().copied() else { return Ok(()) };
        self.script.turn_to(first, first);
        match self.recorder.end_turn() {
            Ok(()) => {
                let losses = self.recorder.settled().into_iter().find(|saved| !saved.losses.is_empty());
                losses.into_iter().for_each(|saved| self.note(&first.id(), saved));
                self.told.has_said = true;
                self.last_link = self.recorder.head().cloned();
            }
            Err(error) => {
                not_held(error)?;
                held.iter().for_each(|record| self.lose(*record, beside(record.kind())));
            }
        }
        self.keep_tip(&held);
        Ok(())
    }

    /// What hangs on records that are not said hangs on what they hung on.
    fn pass_over(&mut self, group: &[RecordRef<'s>]) {
        let above = group.first().and_then(|first| first.parent());
        if let Some(tip) = above.and_then(|above| self.tips.get(&above.order()).cloned()) {
            self.tips.extend(group.iter().map(|record| (record.order(), tip.clone())));
        }
    }

    /// What hangs on these records hangs on what was written last.
    fn keep_tip(&mut self, group: &[RecordRef<'_>]) {
        if let Some(tip) = self.recorder.tip() {
            if let Some(last) = group.iter().rfind(|record| !record.is_side() && record.id() != tip.id.as_str()) {
                self.told.ids.insert(tip.id.to_string(), last.id().into_owned());
            }
            self.tips
                .extend(group.iter().filter(|record| !record.is_side()).map(|record| (record.order(), tip.clone())));
        }
    }

    /// The last link of the file is its head: where that is another record, going on from it is said.
    fn end_at(&mut self, head: Option<RecordRef<'_>>) -> Result<()> {
        self.end_turn()?;
        let Some(head) = head else { return Ok(()) };
        let Some(to) = self.tips.get(&head.order()).map(|tip| tip.id.clone()) else { return Ok(()) };
        if self.last_link.as_ref().is_none_or(|last| *last == to) {
            return Ok(());
        }
        self.script.add_to(head, head);
        match self.recorder.rewind(&to, None) {
            Ok(_) => {
                self.lose_as(&head.id(), Loss::synthesised("step back to the head"));
                // What goes on behind it goes on from there.
                let step = self.recorder.tip().map(|tip| tip.id.to_string());
                step.into_iter().for_each(|step| _ = self.told.ids.entry(step).or_insert(head.id().into_owned()));
            }
            Err(error) => _ = not_held(error)?,
        }
        Ok(())
    }

    fn note(&mut self, record: &str, saved: Saved) {
        self.told.has_said = true;
        saved.losses.into_iter().for_each(|loss| self.lose_as(record, loss));
    }

    fn lose_as(&mut self, record: &str, loss: Loss) {
        let Loss { what, kind } = loss;
        self.told.losses.push(LossRow { record: record.to_owned(), what, kind, count: 1 });
    }

    fn lose(&mut self, record: RecordRef<'_>, what: &str) {
        self.lose_as(&record.id(), Loss::dropped(what));
    }

    fn finish(mut self) -> Result<Replayed> {
        self.end_turn()?;
        self.recorder.sync()?;
        self.told.tips = self.tips.into_iter().map(|(order, tip)| (order, tip.id.0)).collect();
        Ok(self.told)
    }
}

/// Whether the turn that a format of turns holds goes on: it takes the body in, or leaves it beside or out.
fn goes_into_a_turn(body: &Body) -> bool {
    match body {
        Body::Assistant(_)
        | Body::ToolResult(_)
        | Body::Title(_)
        | Body::Snapshot(_)
        | Body::Header(_)
        | Body::Other(_) => true,
        Body::User(_)
        | Body::Attachment(_)
        | Body::System(_)
        | Body::Compaction(_)
        | Body::Rewind(_)
        | Body::Restore(_) => false,
    }
}

/// What the format has no place for; other errors stop the conversion.
fn not_held(error: Error) -> Result<String> {
    match error {
        Error::CannotHold { what, .. } => Ok(what),
        Error::NoPlace { why, .. } => Ok(why.to_owned()),
        error => Err(error),
    }
}

/// What is lost with a record that has no place in the other format.
fn beside(kind: Kind) -> &'static str {
    match kind {
        Kind::User => "prompt",
        Kind::Assistant => "answer",
        Kind::ToolResult => "tool result",
        Kind::Attachment => "context",
        Kind::System => "notice",
        Kind::Snapshot => "snapshot",
        Kind::Title => "title",
        Kind::Compaction => "compaction",
        Kind::Rewind => "rewind",
        Kind::Restore => "restore",
        Kind::Header => "header",
        Kind::Other => "unknown record",
    }
}
