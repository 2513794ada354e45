//! One session's log as a recorder sees it: what the next record hangs on, and which records may not survive a crash.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hashbrown::HashMap;
use jiff::Timestamp;
use serde_json::Value;

use super::sidecar::{self, Sidecar};
use super::start::{Chain, Start, Tip};
use super::tickets::Wrote;
use super::{Durability, Saved, Unsaved};
use crate::append::{Appender, Surprise};
use crate::dialect::Dialect;
use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::git;
use crate::host::Host;
use crate::intake::VALUE_LIMIT_BYTES;
use crate::message::Part;
use crate::reading::Reading;
use crate::record::{Body, Context, Kind, RecordId, SessionId};
use crate::redact;
use crate::replace::{Keep, replace};
use crate::session::Session;
use crate::writing::{Draft, Fragment, Line, Loss, Names, Tally, Writing};

/// Records since the last good `sync` are kept in memory; one is forced before they are more than this.
const UNSYNCED_LIMIT_BYTES: usize = 8 * 1024 * 1024;

/// How often the sidecar is written while records come.
const SIDECAR_EVERY_MS: i64 = 1_000;

/// Where a log is, and what it is written with.
pub(crate) struct Place {
    pub(crate) dialect: &'static dyn Dialect,
    pub(crate) writing: &'static Writing,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) host: Host,
    pub(crate) session: SessionId,
    pub(crate) sidecar: Option<PathBuf>,
    pub(crate) forked_from: Option<(SessionId, RecordId)>,
    pub(crate) mode: Mode,
}

/// Whether what is recorded happens now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// It does: records are told where and when that is.
    Live,
    /// It happened before: records say what they said then.
    Replay,
}

pub(crate) struct Log {
    pub(crate) place: Place,
    appender: Appender,
    pub(crate) start: Start,
    /// How safe records are, where somebody said so for all.
    pub(crate) durability: Option<Durability>,
    /// Where the agent works, as it was when somebody last spoke.
    context: Context,
    unsynced: Vec<Unsynced>,
    unsynced_bytes: usize,
    /// A `sync` failed: what is in `unsynced` may be lost.
    failed: Option<Arc<io::Error>>,
    sidecar_before: Option<Value>,
    sidecar_at: Option<Timestamp>,
    /// Another recorder may have it open too: only that one knows when it is closed.
    is_shared: bool,
    /// What the title is according to the log, and not told to the sidecar yet.
    title: Title,
    surprises: Vec<Surprise>,
}

/// Whether the sidecar's title is behind the log's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Title {
    /// The log says it anew.
    Due,
    /// It was told: from now on whoever changes it in the sidecar knows better.
    Told,
}

/// Lines that were appended since the last good `sync`.
struct Unsynced {
    ticket: u64,
    id: RecordId,
    kind: Kind,
    offset: u64,
    bytes: Vec<u8>,
}

/// One body to write, and where it hangs.
pub(crate) struct Piece {
    pub(crate) body: Body,
    pub(crate) on: On,
    pub(crate) fragment: Option<Fragment>,
}

/// What a piece hangs on.
pub(crate) enum On {
    /// The record that was written last.
    Tip,
    /// The same, and it begins another answer of the model.
    TipAnew,
    /// Any record.
    Record(RecordId),
    /// It is a further piece of this record.
    Again(Tip),
}

impl Piece {
    /// A whole record after the last one.
    pub(crate) fn next(body: Body) -> Piece {
        Piece { body, on: On::Tip, fragment: None }
    }

    /// The blocks of one answer or of its results, after the last record.
    pub(crate) fn step(mut blocks: Vec<Body>) -> impl Iterator<Item = Piece> {
        let rest = blocks.split_off(blocks.len().min(1));
        let first = blocks.into_iter().map(|body| Piece { on: On::TipAnew, ..Piece::next(body) });
        first.chain(rest.into_iter().map(Piece::next))
    }
}

/// Lines that are about to be appended.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    /// Where each line begins, and what it names.
    names: Vec<(usize, Names)>,
    losses: Vec<Loss>,
    /// What they say, for whoever remembers it once it is written.
    bodies: Vec<(RecordId, Body)>,
    /// How many new messages the reader will find.
    messages: u64,
    /// Its last record is an answer.
    answers: bool,
}

impl Log {
    pub(crate) fn new(place: Place, appender: Appender, start: Start, sidecar_before: Option<Value>) -> Log {
        let git_branch = match place.mode {
            Mode::Live => git::branch(&place.host.cwd),
            Mode::Replay => start.tally.git_branch.clone(),
        };
        let context = surroundings(&place.host, git_branch);
        Log {
            place,
            appender,
            start,
            durability: None,
            context,
            unsynced: Vec::new(),
            unsynced_bytes: 0,
            failed: None,
            sidecar_before,
            sidecar_at: None,
            is_shared: false,
            title: Title::Due,
            surprises: Vec::new(),
        }
    }

    pub(crate) fn path(&self) -> &std::path::Path {
        self.appender.path()
    }

    /// Whether anything can be written: after a failed `sync` nothing can.
    pub(crate) fn check(&self) -> Result<()> {
        self.failed.as_ref().map_or(Ok(()), |why| Err(self.not_saved(why.clone())))
    }

    /// Writes pieces that belong together in one call, all or nothing, and moves the head behind them.
    pub(crate) fn write(&mut self, pieces: Vec<Piece>, ticket: u64, durability: Durability) -> Result<Wrote> {
        self.check()?;
        let durability = self.durability.unwrap_or(durability);
        let at = self.clock();
        let mut chain = self.start.chain.clone();
        let mut batch = Batch::default();
        let mut kind = Kind::Other;
        // A further piece of a record may be of one that others hang on already.
        let is_new = !pieces.iter().any(|piece| matches!(piece.on, On::Again(_)));
        for piece in pieces {
            kind = kind_of(&piece.body);
            self.draft(piece, at, &mut chain, &mut batch)?;
        }
        if batch.bytes.len() > VALUE_LIMIT_BYTES {
            return Err(Error::TooLong { bytes: batch.bytes.len() });
        }
        if batch.names.is_empty() {
            let what = batch.losses.into_iter().map(|loss| loss.what).collect::<Vec<_>>().join(", ");
            return Err(Error::CannotHold { dialect: self.place.dialect.name(), what });
        }
        let offset = self.appender.append(&batch.bytes)?;
        let (mut named, mut aside) = (None, None);
        for (from, names) in &batch.names {
            let place = || RecordId(format!("at-{}", offset + *from as u64));
            match names {
                Names::Link(id) => named = Some(id.clone()),
                Names::Place => named = Some(place()),
                Names::Aside(id) => aside = Some(id.clone()),
                Names::Side => aside = Some(place()),
            }
        }
        if let (Some(id), Some(tip)) = (&named, chain.tip.as_mut().filter(|_| is_new)) {
            tip.id = id.clone();
            if batch.answers {
                chain.answered.clone_from(&chain.tip);
            }
        }
        let id = named.or(aside).unwrap_or_else(|| RecordId((self.place.host.new_id)()));
        let surprises = self.appender.surprises();
        if surprises.contains(&Surprise::Deleted) {
            // The file that counted so far is gone, or ended: this one begins with what was just written.
            (self.start.tally.messages, self.start.tally.started) = (0, None);
        }
        self.surprises.extend(surprises);
        self.start.chain = chain;
        self.start.at = Some(at);
        self.start.tally.updated = Some(at);
        self.start.tally.started.get_or_insert(at);
        self.start.tally.is_open = true;
        self.start.tally.messages += batch.messages;
        for (id, body) in &batch.bodies {
            self.start.learn(id, body);
            if let Body::Title(_) = body {
                (self.title, self.sidecar_at) = (Title::Due, None);
            }
        }
        let losses = batch.losses;
        self.unsynced_bytes += batch.bytes.len();
        self.unsynced.push(Unsynced { ticket, id: id.clone(), kind, offset, bytes: batch.bytes });
        let (durability, doubt) = match durability {
            Durability::Flush if self.unsynced_bytes < UNSYNCED_LIMIT_BYTES => (Durability::Flush, None),
            Durability::Flush | Durability::Sync => (Durability::Sync, self.sync().err()),
        };
        if self.durability == Some(Durability::Flush) {
            self.forget_unsynced();
        }
        if doubt.is_none() {
            self.tell_sidecar_in_time(at);
        }
        Ok(Wrote { saved: Saved { ticket, id, durability, losses }, doubt })
    }

    /// Makes everything so far survive a crash.
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.check()?;
        if let Err(error) = self.appender.sync() {
            let why = Arc::new(if let Error::Io { source, .. } = error { source } else { io::Error::other(error) });
            self.failed = Some(why.clone());
            return Err(self.not_saved(why));
        }
        self.forget_unsynced();
        Ok(())
    }

    /// Forgets which records are not synced yet: they are safe, or nobody asked that they survive more than this process.
    fn forget_unsynced(&mut self) {
        self.unsynced.clear();
        self.unsynced_bytes = 0;
    }

    /// After a failed `sync`: writes what may be lost once more.
    pub(crate) fn reopen(&mut self) -> Result<()> {
        let mut lines: Vec<(u64, Vec<u8>)> =
            self.unsynced.iter_mut().map(|lines| (lines.offset, std::mem::take(&mut lines.bytes))).collect();
        let written = self.appender.write_again(&mut lines);
        for (known, (offset, bytes)) in self.unsynced.iter_mut().zip(lines) {
            (known.offset, known.bytes) = (offset, bytes);
        }
        written?;
        self.failed = None;
        self.sync()
    }

    /// What may not survive a crash, though it was written.
    pub(crate) fn unsaved(&self) -> impl Iterator<Item = Unsaved> + '_ {
        let lines = self.unsynced.iter().filter(|_| self.failed.is_some());
        lines.map(|lines| Unsaved { ticket: lines.ticket, id: Some(lines.id.clone()), kind: lines.kind })
    }

    pub(crate) fn surprise(&mut self, surprise: Surprise) {
        self.is_shared |= surprise == Surprise::InUse;
        self.surprises.push(surprise);
    }

    pub(crate) fn surprises(&mut self) -> Vec<Surprise> {
        std::mem::take(&mut self.surprises)
    }

    /// The working directory's context, as it is now.
    pub(crate) fn look_around(&mut self) {
        self.context = surroundings(&self.place.host, git::branch(&self.place.host.cwd));
        self.start.tally.git_branch.clone_from(&self.context.git_branch);
    }

    /// Where a recording would stand at a record of this log.
    pub(crate) fn start_at(&self, record: &RecordId) -> Result<Start> {
        let session =
            Session::from_bytes(self.place.dialect, self.appender.read()?, &Reading::plain((self.place.host.now)()));
        let Ok(found) = session.find(record.as_str()) else {
            return Err(Error::NoRecord { record: record.to_string() });
        };
        if found.is_side() {
            return Err(Error::NoPlace { record: record.to_string(), why: "it has no place in the conversation" });
        }
        Start::at(&session, Some(found), &self.place, Path::new(&self.start.tally.project))
    }

    /// Ends the log's recording: it is whole once everything is safe.
    pub(crate) fn close(&mut self) -> Result<()> {
        let synced = if self.unsynced.is_empty() { self.check() } else { self.sync() };
        self.is_shared |= self.appender.is_written_behind();
        self.start.tally.is_open = synced.is_err() || self.is_shared;
        self.tell_sidecar();
        if synced.is_ok() && !self.is_shared {
            self.appender.mark_closed((self.place.host.now)());
        }
        synced
    }

    /// Makes safe what is there; something else is still to be written.
    pub(crate) fn pause(&mut self) -> Result<()> {
        let synced = if self.unsynced.is_empty() { self.check() } else { self.sync() };
        self.tell_sidecar();
        synced
    }

    /// Writes what the file beside the log says. It is derived: that it could not be written stops nothing.
    pub(crate) fn tell_sidecar(&mut self) {
        let (Some(path), Some(tell)) = (self.place.sidecar.clone(), self.place.writing.sidecar) else { return };
        self.sidecar_at = Some((self.place.host.now)());
        let mut tally = self.start.tally.clone();
        tally.size_bytes = self.appender.len().unwrap_or_default();
        let before = match sidecar::read(&*self.place.disk, &path) {
            Sidecar::Says(value) => {
                if self.title == Title::Told {
                    tally.title = sidecar::title(self.place.dialect, &value);
                }
                Some(value)
            }
            Sidecar::Nothing => self.sidecar_before.take(),
            // Somebody may want to mend it: what it should say is in the log.
            Sidecar::Unclear => return self.surprises.push(Surprise::NoSidecar),
        };
        let mut told = tell(before, &tally);
        redact::scrub(&mut told, &[]);
        let Ok(mut bytes) = serde_json::to_vec_pretty(&told) else { return };
        bytes.push(b'\n');
        let new_id = (self.place.host.new_id)();
        let inside = self.appender.check_inside();
        if inside.and_then(|()| replace(&*self.place.disk, &path, &new_id, &bytes, Keep::IfPossible)).is_err() {
            return self.surprises.push(Surprise::NoSidecar);
        }
        self.title = Title::Told;
    }

    fn tell_sidecar_in_time(&mut self, at: Timestamp) {
        let is_due = |last: Timestamp| at.as_millisecond().saturating_sub(last.as_millisecond()) >= SIDECAR_EVERY_MS;
        if self.sidecar_at.is_none_or(is_due) {
            self.tell_sidecar();
        }
    }

    /// Adds the lines of one piece to the batch, and follows it with what the next one hangs on.
    fn draft(&self, piece: Piece, at: Timestamp, chain: &mut Chain, batch: &mut Batch) -> Result<()> {
        let Piece { mut body, on, fragment } = piece;
        let tells_surroundings = body.said().is_some_and(|said| said.context != Context::default());
        self.fill_in(&mut body, &self.start.calls);
        let kind = kind_of(&body);
        let tip_before = chain.tip.as_ref().map(|tip| tip.id.clone());
        let (id, parent) = match &on {
            On::Tip | On::TipAnew => (RecordId((self.place.host.new_id)()), tip_before.clone()),
            On::Record(parent) => (RecordId((self.place.host.new_id)()), Some(parent.clone())),
            On::Again(record) => (record.id.clone(), record.parent.clone()),
        };
        if kind == Kind::Assistant && matches!(on, On::TipAnew) {
            chain.answer = None;
        }
        if kind == Kind::Assistant && !matches!(on, On::Again(_)) && fragment.is_none_or(|piece| piece.seq == 0) {
            chain.answer.get_or_insert_with(|| id.clone());
        }
        let branches = chain.branches || matches!(&on, On::Record(to) if tip_before.as_ref() != Some(to));
        let Place { session, writing, host, forked_from, .. } = &self.place;
        let mut written = (writing.lines)(&Draft {
            session,
            id: &id,
            parent: parent.as_ref(),
            answer: chain.answer.as_ref().unwrap_or(&id),
            at,
            version: &host.version,
            body: &body,
            context: &self.context,
            branches,
            sidechain: chain.sidechain,
            fragment,
            forked_from: forked_from.as_ref().map(|(session, record)| (session, record)),
            new_id: &*host.new_id,
        });
        let ids = [Some(&id), parent.as_ref(), chain.answer.as_ref()].map(|id| id.map(RecordId::as_str));
        let known = redact::ids_of(&body, ids.into_iter().chain([Some(session.as_str())]));
        let is_link = |line: &&Line| matches!(line.names, Names::Link(_) | Names::Place);
        written.lines.iter_mut().for_each(|line| redact::scrub(&mut line.value, &known));
        let mut links: Vec<&Names> = written.lines.iter().filter(is_link).map(|line| &line.names).collect();
        links.dedup_by(|a, b| a == b && **a != Names::Place);
        let (lines, is_link) = (written.lines.len() as u64, !links.is_empty());
        let is_message = matches!(kind, Kind::User | Kind::Assistant | Kind::ToolResult | Kind::System);
        if is_message && !matches!(on, On::Again(_)) {
            batch.messages += links.len() as u64;
        }
        for line in &written.lines {
            batch.names.push((batch.bytes.len(), line.names.clone()));
            serde_json::to_writer(&mut batch.bytes, &line.value).map_err(|_| self.cannot_encode())?;
            batch.bytes.push(b'\n');
        }
        let is_missed = |loss: &Loss| tells_surroundings || loss.what != Loss::SURROUNDINGS;
        batch.losses.extend(written.losses.into_iter().filter(is_missed));
        chain.branches = branches && !is_link;
        if !is_link {
            // A step back that the format cannot say is taken with the next record.
            if let (Body::Rewind(_), On::Record(to)) = (&body, on) {
                chain.tip = Some(Tip { id: to, parent: None, kind: Kind::Other, lines: 1 });
            }
        } else if let On::Again(_) = on {
            for known in chain.tip.iter_mut().chain(&mut chain.answered).filter(|known| known.id == id) {
                known.lines += lines;
            }
        } else {
            let link = written.lines.iter().rev().find_map(|line| match &line.names {
                Names::Link(id) => Some(id.clone()),
                Names::Place | Names::Aside(_) | Names::Side => None,
            });
            let link = link
                .or_else(|| chain.tip.as_ref().map(|tip| tip.id.clone()))
                .unwrap_or_else(|| RecordId(String::new()));
            chain.tip = Some(Tip { id: link, parent, kind, lines });
            batch.answers = kind == Kind::Assistant;
            if batch.answers {
                chain.answered.clone_from(&chain.tip);
            }
        }
        chain.pass(kind);
        batch.bodies.push((id, body));
        Ok(())
    }

    /// What the caller need not say: where it was said, and the names of tools that answer.
    fn fill_in(&self, body: &mut Body, calls: &HashMap<String, String>) {
        let said = match body {
            Body::User(said)
            | Body::Assistant(said)
            | Body::ToolResult(said)
            | Body::Attachment(said)
            | Body::System(said) => said,
            Body::Snapshot(_)
            | Body::Title(_)
            | Body::Compaction(_)
            | Body::Rewind(_)
            | Body::Restore(_)
            | Body::Header(_)
            | Body::Other(_) => return,
        };
        for result in &mut said.results {
            result.name = result.name.take().or_else(|| calls.get(&result.call_id).cloned());
        }
        if self.place.mode == Mode::Live {
            said.context.fill_from(self.context.clone());
        }
    }

    /// Now; a clock that was set back stands still until it has caught up.
    fn clock(&self) -> Timestamp {
        let now = (self.place.host.now)();
        match self.place.mode {
            Mode::Live => self.start.at.map_or(now, |last| now.max(last)),
            Mode::Replay => now,
        }
    }

    fn not_saved(&self, source: Arc<io::Error>) -> Error {
        Error::Unsaved { path: self.path().to_path_buf(), count: self.unsynced.len(), source }
    }

    fn cannot_encode(&self) -> Error {
        Error::CannotHold { dialect: self.place.dialect.name(), what: "a value that is no JSON".to_owned() }
    }
}

/// Where the agent works.
fn surroundings(host: &Host, git_branch: Option<String>) -> Context {
    let cwd = Some(host.cwd.to_string_lossy().into_owned());
    Context { cwd, git_branch, platform: Some(host.platform.clone()), user_type: None }
}

/// What a body is.
pub(crate) fn kind_of(body: &Body) -> Kind {
    match body {
        Body::User(_) => Kind::User,
        Body::Assistant(_) => Kind::Assistant,
        Body::ToolResult(_) => Kind::ToolResult,
        Body::Attachment(_) => Kind::Attachment,
        Body::System(_) => Kind::System,
        Body::Snapshot(_) => Kind::Snapshot,
        Body::Title(_) => Kind::Title,
        Body::Compaction(_) => Kind::Compaction,
        Body::Rewind(_) => Kind::Rewind,
        Body::Restore(_) => Kind::Restore,
        Body::Header(_) => Kind::Header,
        Body::Other(_) => Kind::Other,
    }
}

/// The calls of some parts that wait for their results.
pub(crate) fn open_calls(parts: &[Part]) -> impl Iterator<Item = (&str, &str)> {
    parts.iter().filter_map(|part| match part {
        Part::Tool(call) if call.is_open() => Some((call.call_id.as_str(), call.name.as_str())),
        _ => None,
    })
}

/// What the tally needs to be a new session's.
pub(crate) fn first_tally(place: &Place, project: &std::path::Path) -> Tally {
    Tally {
        session: place.session.clone(),
        project: project.to_string_lossy().into_owned(),
        cwd: place.host.cwd.to_string_lossy().into_owned(),
        git_branch: git::branch(&place.host.cwd),
        version: place.host.version.clone(),
        started: None,
        updated: None,
        title: None,
        prompts: None,
        model: None,
        messages: 0,
        size_bytes: 0,
        usage: None,
        is_open: true,
        forked_from: place.forked_from.as_ref().map(|(session, _)| session.clone()),
    }
}
