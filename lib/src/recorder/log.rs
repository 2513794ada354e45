//! One session's log as a recorder sees it: what the next record hangs on, and which records may not survive a crash.

use std::path::PathBuf;
use std::sync::Arc;

use hashbrown::HashMap;
use jiff::Timestamp;
use serde_json::Value;

use super::start::{Chain, Start, Tip};
use super::{Durability, Saved, Unsaved};
use crate::append::{Appender, Surprise};
use crate::dialect::Dialect;
use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::git;
use crate::host::Host;
use crate::intake::VALUE_LIMIT_BYTES;
use crate::message::Part;
use crate::record::{Body, Context, Kind, RecordId, SessionId};
use crate::redact;
use crate::replace::{Keep, replace};
use crate::writing::{Draft, Fragment, Loss, Names, Tally, Writing};

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
    git_branch: Option<String>,
    unsynced: Vec<Unsynced>,
    unsynced_bytes: usize,
    /// A `sync` failed: what is in `unsynced` may be lost.
    failed: bool,
    sidecar_before: Option<Value>,
    sidecar_at: Option<Timestamp>,
    /// Another recorder may have it open too: only that one knows when it is closed.
    is_shared: bool,
    surprises: Vec<Surprise>,
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
}

/// Lines that are about to be appended.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    /// Where each line begins, and what it names.
    names: Vec<(usize, Names)>,
    losses: Vec<Loss>,
    /// What they say, for whoever remembers it once it is written.
    bodies: Vec<Body>,
    /// The last record, when no line of it is a link.
    side: Option<RecordId>,
}

impl Log {
    pub(crate) fn new(place: Place, appender: Appender, start: Start, sidecar_before: Option<Value>) -> Log {
        let git_branch = match place.mode {
            Mode::Live => git::branch(&place.host.cwd),
            Mode::Replay => start.tally.git_branch.clone(),
        };
        let (unsynced, surprises) = (Vec::new(), Vec::new());
        let (unsynced_bytes, failed, sidecar_at) = (0, false, None);
        Log {
            place,
            appender,
            start,
            git_branch,
            unsynced,
            unsynced_bytes,
            failed,
            sidecar_before,
            sidecar_at,
            is_shared: false,
            surprises,
        }
    }

    pub(crate) fn path(&self) -> &std::path::Path {
        self.appender.path()
    }

    /// Whether anything can be written: after a failed `sync` nothing can.
    pub(crate) fn check(&self) -> Result<()> {
        if self.failed { Err(self.not_saved()) } else { Ok(()) }
    }

    /// Writes pieces that belong together in one call, all or nothing, and moves the head behind them.
    pub(crate) fn write(&mut self, pieces: Vec<Piece>, ticket: u64, durability: Durability) -> Result<Saved> {
        self.check()?;
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
        let mut named = None;
        for (from, names) in &batch.names {
            match names {
                Names::Link(id) => named = Some(id.clone()),
                Names::Place => named = Some(RecordId(format!("at-{}", offset + *from as u64))),
                Names::Side => {}
            }
        }
        if let (Some(id), Some(tip)) = (&named, chain.tip.as_mut().filter(|_| is_new)) {
            tip.id = id.clone();
        }
        let id = named.or(batch.side).unwrap_or_else(|| RecordId((self.place.host.new_id)()));
        let surprises = self.appender.surprises();
        if surprises.contains(&Surprise::Deleted) {
            // The file that counted so far is gone, or ended: this one begins with what was just written.
            (self.start.tally.messages, self.start.tally.started) = (0, None);
        }
        self.surprises.extend(surprises);
        self.start.chain = chain;
        self.start.at = Some(at);
        (self.start.tally.updated, self.start.tally.is_open) = (Some(at), true);
        self.start.tally.started.get_or_insert(at);
        batch.bodies.iter().for_each(|body| self.start.learn(body));
        let losses = batch.losses;
        self.unsynced_bytes += batch.bytes.len();
        self.unsynced.push(Unsynced { ticket, id: id.clone(), kind, offset, bytes: batch.bytes });
        let durability = match durability {
            Durability::Flush if self.unsynced_bytes < UNSYNCED_LIMIT_BYTES => Durability::Flush,
            Durability::Flush | Durability::Sync => {
                self.sync()?;
                Durability::Sync
            }
        };
        self.tell_sidecar_in_time(at);
        Ok(Saved { ticket, id, durability, losses })
    }

    /// Makes everything so far survive a crash.
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.check()?;
        if self.appender.sync().is_err() {
            self.failed = true;
            return Err(self.not_saved());
        }
        self.forget_unsynced();
        Ok(())
    }

    /// Forgets which records are not synced yet: nobody asked that they survive more than this process.
    pub(crate) fn forget_unsynced(&mut self) {
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
        self.failed = false;
        self.sync()
    }

    /// What may not survive a crash, though it was written.
    pub(crate) fn unsaved(&self) -> impl Iterator<Item = Unsaved> + '_ {
        let lines = self.unsynced.iter().filter(|_| self.failed);
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
        self.git_branch = git::branch(&self.place.host.cwd);
        self.start.tally.git_branch.clone_from(&self.git_branch);
    }

    /// Ends the log's recording.
    pub(crate) fn close(&mut self) -> Result<()> {
        self.is_shared |= self.appender.is_written_behind();
        self.start.tally.is_open = self.is_shared;
        let synced = if self.unsynced.is_empty() { Ok(()) } else { self.sync() };
        self.tell_sidecar();
        if !self.is_shared {
            self.appender.mark_closed((self.place.host.now)());
        }
        synced
    }

    /// Writes what the file beside the log says. It is derived: that it could not be written stops nothing.
    pub(crate) fn tell_sidecar(&mut self) {
        let (Some(path), Some(tell)) = (&self.place.sidecar, self.place.writing.sidecar) else { return };
        let mut tally = self.start.tally.clone();
        tally.size_bytes = self.appender.len().unwrap_or_default();
        let told = tell(self.sidecar_before.clone(), &tally);
        let Ok(mut bytes) = serde_json::to_vec_pretty(&told) else { return };
        bytes.push(b'\n');
        let new_id = (self.place.host.new_id)();
        let inside = self.appender.check_inside();
        if inside.and_then(|()| replace(&*self.place.disk, path, &new_id, &bytes, Keep::IfPossible)).is_err() {
            self.surprises.push(Surprise::NoSidecar);
        }
        self.sidecar_at = Some((self.place.host.now)());
        self.sidecar_before = Some(told);
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
        let body = redact::scrub(body);
        let kind = kind_of(&body);
        let tip_before = chain.tip.as_ref().map(|tip| tip.id.clone());
        let (id, parent) = match &on {
            On::Tip => (RecordId((self.place.host.new_id)()), tip_before.clone()),
            On::Record(parent) => (RecordId((self.place.host.new_id)()), Some(parent.clone())),
            On::Again(record) => (record.id.clone(), record.parent.clone()),
        };
        if kind == Kind::Assistant && !matches!(on, On::Again(_)) && fragment.is_none_or(|piece| piece.seq == 0) {
            chain.answer.get_or_insert_with(|| id.clone());
        }
        let branches = chain.branches || matches!(&on, On::Record(to) if tip_before.as_ref() != Some(to));
        let context = self.context();
        let Place { session, writing, host, forked_from, .. } = &self.place;
        let written = (writing.lines)(&Draft {
            session,
            id: &id,
            parent: parent.as_ref(),
            answer: chain.answer.as_ref().unwrap_or(&id),
            at,
            version: &host.version,
            body: &body,
            context: &context,
            branches,
            sidechain: chain.sidechain,
            fragment,
            forked_from: forked_from.as_ref().map(|(session, record)| (session, record)),
            new_id: &*host.new_id,
        });
        let is_link = written.lines.iter().any(|line| line.names != Names::Side);
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
            batch.side = Some(id);
        } else if let On::Again(_) = on {
            if let Some(tip) = chain.tip.as_mut().filter(|tip| tip.id == id) {
                tip.lines += 1;
            }
        } else {
            let id = written.lines.iter().rev().find_map(|line| match &line.names {
                Names::Link(id) => Some(id.clone()),
                Names::Place | Names::Side => None,
            });
            let id = id
                .or_else(|| chain.tip.as_ref().map(|tip| tip.id.clone()))
                .unwrap_or_else(|| RecordId(String::new()));
            chain.tip = Some(Tip { id, parent, kind, lines: 1 });
            if kind == Kind::Assistant {
                chain.answered.clone_from(&chain.tip);
            }
        }
        chain.pass(kind);
        batch.bodies.push(body);
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
            said.context.fill_from(self.context());
        }
    }

    /// Where the agent works.
    fn context(&self) -> Context {
        Context {
            cwd: Some(self.place.host.cwd.to_string_lossy().into_owned()),
            git_branch: self.git_branch.clone(),
            platform: Some(self.place.host.platform.clone()),
            user_type: None,
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

    fn not_saved(&self) -> Error {
        Error::Unsaved { path: self.path().to_path_buf(), count: self.unsynced.len() }
    }

    fn cannot_encode(&self) -> Error {
        Error::CannotHold { dialect: self.place.dialect.name(), what: "a value that is no JSON".to_owned() }
    }
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
