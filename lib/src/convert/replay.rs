//! The records of a session, said again to a recorder of another dialect.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use hashbrown::HashMap;
use jiff::Timestamp;
use xxhash_rust::xxh3::xxh3_128;

use super::kept::Kept;
use super::{Conversion, LossRow};
use crate::append::Appender;
use crate::error::{Error, Result};
use crate::host::Host;
use crate::project;
use crate::reading::Reading;
use crate::record::{Body, Kind, Said, SessionId};
use crate::recorder::{Ack, Durability, Log, Mode, Options, Recorder, Saved, Start, Tip};
use crate::session::{RecordRef, Session};
use crate::skeleton::KeyRole;
use crate::store::{NewSession, Store, bytes};
use crate::thinking::Triggers;
use crate::writing::{Loss, LossKind, Shape};

/// What came of saying a session again.
#[derive(Default)]
pub(super) struct Replayed {
    pub(super) losses: Vec<LossRow>,
    /// The source's names of records that are called otherwise now.
    pub(super) ids: BTreeMap<String, String>,
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
        replay.end_at(head);
    } else {
        let mut on_branch = vec![false; session.records().len()];
        branch.iter().for_each(|record| on_branch[record.order()] = true);
        let mut titles = session.records().filter(|record| record.kind() == Kind::Title && record.is_side());
        let records: Vec<RecordRef<'_>> = branch.iter().copied().chain(titles.next_back()).collect();
        records.iter().for_each(|record| on_branch[record.order()] = true);
        replay.say(&records)?;
        for record in session.records().filter(|record| !on_branch[record.order()]) {
            let what = if record.is_side() { beside(record.kind()) } else { "another branch" };
            replay.lose(record, what);
        }
    }
    replay.finish()
}

/// Says what was added to a converted session, behind the lines that its sidecar kept.
pub(super) fn go_on(session: &Session, kept: &Kept, store: &Store, id: &SessionId, file: &Path) -> Result<Replayed> {
    let mut replay = Replay::begin_with(session, store, id, &kept.original(), file)?;
    let before = Session::from_bytes(store.dialect, kept.original(), &Reading::plain(replay.now()));
    for record in session.records().filter(|record| !kept.is_newer(*record)) {
        let original = kept.original_of(&record.id());
        if let Ok(original) = before.find(&original) {
            replay.tips.insert(record.order(), Tip::of(original)?);
        }
    }
    replay.tip_of_linear = before.head().map(Tip::of).transpose()?;
    let newer: Vec<RecordRef<'_>> = session.records().filter(|record| kept.is_newer(*record)).collect();
    replay.say(&newer)?;
    replay.finish()
}

/// An id for a session or a record that another format asks for: always the same for the same source, and nobody else's.
pub(super) fn derived_id(of: &str, to: &str) -> SessionId {
    let hash = xxh3_128(format!("{to}\0{of}").as_bytes());
    SessionId(uuid::Builder::from_custom_bytes(hash.to_be_bytes()).into_uuid().to_string())
}

/// A recorder whose clock and ids are the source's.
struct Replay<'s> {
    session: &'s Session,
    recorder: Recorder,
    shape: Shape,
    script: Arc<Mutex<Script>>,
    /// What hangs on a record of the source hangs on this.
    tips: HashMap<usize, Tip>,
    tip_of_linear: Option<Tip>,
    told: Replayed,
    /// Which record each call of the recorder was about.
    tickets: HashMap<u64, String>,
}

/// What the recorder is told when it asks for the time and for ids.
struct Script {
    at: Timestamp,
    /// The source's own id, for the first that is asked for.
    id: Option<String>,
    /// Makes the further ones.
    of: String,
    made: u64,
    to: &'static str,
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
        let header = bytes(&(store.writing.header)(&store.beginning(id, &new, session.git_branch())?));
        Replay::begin_with(session, store, id, &header, file)
    }

    fn begin_with(
        session: &'s Session,
        store: &Store,
        id: &SessionId,
        first: &[u8],
        file: &Path,
    ) -> Result<Replay<'s>> {
        let to = store.dialect.name();
        let at = session.started().unwrap_or_else(|| (store.host.now)());
        let script = Arc::new(Mutex::new(Script { at, id: None, of: id.to_string(), made: 0, to }));
        let (clock, ids) = (Arc::clone(&script), Arc::clone(&script));
        let host = Host {
            now: Arc::new(move || clock.lock().unwrap_or_else(PoisonError::into_inner).at),
            new_id: Arc::new(move || ids.lock().unwrap_or_else(PoisonError::into_inner).next_id()),
            ..store.host.clone()
        };
        let mut place = store.place(id.clone(), file);
        (place.host, place.mode, place.sidecar) = (host, Mode::Replay, None);
        let mut start = Start::fresh(&place, &project::of(&store.host.cwd));
        start.tally.git_branch = session.git_branch().map(str::to_owned);
        let appender = Appender::create(store.disk.clone(), file, first.to_vec())?;
        let options = Options { durability: Some(Durability::Flush), triggers: Triggers::default() };
        let recorder = Recorder::new(Log::new(place, appender, start, None), options);
        Ok(Replay {
            session,
            recorder,
            shape: store.writing.shape,
            script,
            tips: HashMap::new(),
            tip_of_linear: None,
            told: Replayed::default(),
            tickets: HashMap::new(),
        })
    }

    fn now(&self) -> Timestamp {
        self.script.lock().unwrap_or_else(PoisonError::into_inner).at
    }

    fn say(&mut self, records: &[RecordRef<'s>]) -> Result<()> {
        let answers = answers(records);
        let mut is_said = hashbrown::HashSet::new();
        for record in records {
            if !is_said.insert(record.order()) {
                continue;
            }
            let group = answers.get(&record.order()).map_or(std::slice::from_ref(record), Vec::as_slice);
            is_said.extend(group.iter().map(|record| record.order()));
            self.say_one(*record, group)?;
        }
        Ok(())
    }

    /// Says one record, or one answer that the source wrote as several.
    fn say_one(&mut self, first: RecordRef<'s>, group: &[RecordRef<'s>]) -> Result<()> {
        let body = joined(group)?;
        self.set_script(first, group);
        if self.shape == Shape::Tree {
            let tip = first.parent().and_then(|parent| self.tips.get(&parent.order()).cloned());
            self.recorder.go_on_from(tip, first.is_sidechain());
        } else if let Some(tip) = self.tip_of_linear.take() {
            self.recorder.go_on_from(Some(tip), first.is_sidechain());
        }
        let id = first.id().into_owned();
        let said = match body {
            Body::Header(_) => return Ok(()),
            Body::Other(_) => {
                self.lose(first, "a record of an unknown kind");
                self.keep_tip(group);
                return Ok(());
            }
            body => self.recorder.record(body),
        };
        match said {
            Ok(Ack::Saved(saved)) => self.note(&id, saved),
            Ok(Ack::Held { ticket }) => _ = self.tickets.insert(ticket, id),
            Ok(Ack::NotRecorded) => {}
            Err(Error::CannotHold { what, .. }) => {
                let what = if what.is_empty() { beside(first.kind()).to_owned() } else { what };
                self.told.losses.push(LossRow { record: id, what, kind: LossKind::Dropped, count: 1 });
            }
            Err(Error::NoPlace { why, .. }) => {
                self.told
                    .losses
                    .push(LossRow { record: id, what: why.to_owned(), kind: LossKind::Dropped, count: 1 });
            }
            Err(error) => return Err(error),
        }
        self.settle();
        self.keep_tip(group);
        Ok(())
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
    fn end_at(&mut self, head: Option<RecordRef<'_>>) {
        let wanted = head.and_then(|head| self.tips.get(&head.order()));
        if let (Some(wanted), Some(last)) = (wanted, self.session.records().rfind(|record| !record.is_side()))
            && self.tips.get(&last.order()).is_some_and(|last| last.id != wanted.id)
        {
            let to = wanted.id.clone();
            self.set_script(last, &[]);
            match self.recorder.rewind(&to, None) {
                Ok(_) => {
                    let (record, what) = (to.to_string(), "a step back to the head".to_owned());
                    self.told.losses.push(LossRow { record, what, kind: LossKind::Synthesised, count: 1 });
                }
                Err(_) => _ = self.recorder.surprises(),
            }
        }
    }

    fn set_script(&mut self, first: RecordRef<'_>, group: &[RecordRef<'_>]) {
        let last = group.last().copied().unwrap_or(first);
        let mut script = self.script.lock().unwrap_or_else(PoisonError::into_inner);
        script.at = first.at().unwrap_or(script.at);
        script.of = format!("{}#{}", self.session.id(), last.id());
        script.made = 0;
        let is_free = script.to == "native" || uuid::Uuid::try_parse(&first.id()).is_ok();
        let is_made_up = first.id() == first.place().name() || first.id().contains('~');
        script.id = Some(first.id().into_owned()).filter(|_| is_free && !is_made_up && !group.is_empty());
    }

    fn note(&mut self, record: &str, saved: Saved) {
        for Loss { what, kind } in saved.losses {
            self.told.losses.push(LossRow { record: record.to_owned(), what, kind, count: 1 });
        }
    }

    /// Losses of what was held belong to the record that began it.
    fn settle(&mut self) {
        let settled = self.recorder.settled();
        let Some(first) = settled.iter().map(|saved| saved.ticket).min() else { return };
        let record = self.tickets.get(&first).cloned().unwrap_or_default();
        let losses = settled.into_iter().find(|saved| !saved.losses.is_empty());
        losses.into_iter().for_each(|saved| self.note(&record, saved));
    }

    fn lose(&mut self, record: RecordRef<'_>, what: &str) {
        let record = record.id().into_owned();
        self.told.losses.push(LossRow { record, what: what.to_owned(), kind: LossKind::Dropped, count: 1 });
    }

    fn finish(mut self) -> Result<Replayed> {
        self.recorder.end_turn()?;
        self.settle();
        self.recorder.sync()?;
        Ok(self.told)
    }
}

impl Script {
    fn next_id(&mut self) -> String {
        self.made += 1;
        let derived = || derived_id(&format!("{}#{}", self.of, self.made), self.to).0;
        self.id.take().unwrap_or_else(derived)
    }
}

/// The answers that were written as several records, each by its first.
fn answers<'s>(records: &[RecordRef<'s>]) -> HashMap<usize, Vec<RecordRef<'s>>> {
    let mut groups: HashMap<u64, usize> = HashMap::new();
    let mut answers: HashMap<usize, Vec<RecordRef<'s>>> = HashMap::new();
    let mut items: Option<usize> = None;
    for record in records {
        let is_item = record.kind() == Kind::Assistant && record.is_item();
        let first = if let Some(group) = record.keys(KeyRole::Group).next().filter(|_| record.kind() == Kind::Assistant)
        {
            Some(*groups.entry(group).or_insert(record.order()))
        } else if is_item {
            Some(*items.get_or_insert(record.order()))
        } else {
            None
        };
        if !is_item && !record.is_side() {
            items = None;
        }
        if let Some(first) = first {
            answers.entry(first).or_default().push(*record);
        }
    }
    answers.retain(|_, members| members.len() > 1);
    answers
}

/// What several records of one answer say together.
fn joined(group: &[RecordRef<'_>]) -> Result<Body> {
    let mut whole: Option<Said> = None;
    for record in group {
        let body = record.body()?;
        let (Body::Assistant(said), true) = (&body, group.len() > 1) else { return Ok(body) };
        let said = said.clone();
        match &mut whole {
            None => whole = Some(said),
            Some(whole) => {
                whole.parts.extend(said.parts);
                whole.results.extend(said.results);
                whole.notes.extend(said.notes);
                whole.model = whole.model.take().or(said.model);
                whole.todos = said.todos.or(whole.todos.take());
                whole.thinking = said.thinking.or(whole.thinking.take());
                whole.error = whole.error.take().or(said.error);
                whole.metadata.extend(said.metadata);
                // Each block repeats what the answer cost, more or less finished.
                whole.usage = match (whole.usage, said.usage) {
                    (Some(known), Some(more)) if more.output < known.output => Some(known),
                    (known, more) => more.or(known),
                };
            }
        }
    }
    Ok(whole.map_or(Body::Other(serde_json::Value::Null), Body::Assistant))
}

/// What is lost with a record that has no place in the other format.
fn beside(kind: Kind) -> &'static str {
    match kind {
        Kind::User => "a prompt",
        Kind::Assistant => "an answer",
        Kind::ToolResult => "a tool result",
        Kind::Attachment => "context of the agent",
        Kind::System => "a notice",
        Kind::Snapshot => "file states",
        Kind::Title => "a title",
        Kind::Compaction => "a compaction",
        Kind::Rewind => "a step back",
        Kind::Restore => "a restore of files",
        Kind::Header => "a header",
        Kind::Other => "a record of an unknown kind",
    }
}
