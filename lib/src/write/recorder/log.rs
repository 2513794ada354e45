//! The log of one session while it is recorded: the parent of the next record, and the lines that may not survive a crash.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use super::cursor::{Cursor, ParentRecord};
use super::lines::{Batch, On, Piece};
use super::sidecar::TitleState;
use super::{Durability, Saved};
use crate::dialect::Dialect;
use crate::dialect::writer::{Names, Writer};
use crate::disk::Disk;
use crate::disk::append::{Appender, OnReplaced, Warning};
use crate::disk::live::LiveLock;
use crate::model::error::{Error, Result};
use crate::model::git;
use crate::model::host::Host;
use crate::model::record::{Body, Context, Kind, RecordId, SessionId};
use crate::redact::{Redactor, SensitiveCalls};
use crate::session::Session;
use crate::session::read::open::ReadOptions;
use crate::session::read::parser::VALUE_LIMIT_BYTES;
use crate::session::read::source::Source;
use crate::write::store::{ANY_ID, link_named};

/// Records since the last good `sync` are kept in memory; at this size, a `sync` is forced.
const UNSYNCED_LIMIT_BYTES: usize = 8 * 1024 * 1024;

/// The lines of a call are built in a reused buffer; one that grew larger than this is freed.
const BUFFER_LIMIT_BYTES: usize = 64 * 1024;

/// A file whose session ends this often while we write to it cannot be written to.
const SESSIONS_FOLLOWED: usize = 100;

/// How the id of a record begins that is named after the place of its line.
const PLACE_PREFIX: &str = "at-";

/// A secret that begins in the part of a prompt that is repeated, and is longer than this, is known by its beginning.
pub(super) const MASKED_START_BYTES: usize = 32 * 1024;

/// Where a log is, and how it is written.
pub(crate) struct Place {
    pub(crate) dialect: &'static dyn Dialect,
    pub(crate) writing: &'static Writer,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) host: Host,
    pub(crate) session: SessionId,
    pub(crate) sidecar: Option<PathBuf>,
    pub(crate) forked_from: Option<(SessionId, RecordId)>,
    pub(crate) mode: Mode,
    pub(crate) redactor: Option<Arc<Redactor>>,
    /// The working directory of the session's first record that has one: its project is derived from it.
    pub(crate) first_cwd: Option<PathBuf>,
    /// Where the true bytes of files go.
    pub(crate) blobs: PathBuf,
}

impl Place {
    /// Whether the lines state which session they are of, and another program can begin the next one in the same file.
    pub(crate) fn may_change_session(&self) -> bool {
        let states_ids = (self.writing.states_session_id)(&SessionId(ANY_ID.to_owned()));
        self.mode == Mode::Live && self.writing.ended_path.is_some() && states_ids
    }

    /// The beginning of a text, longer than any format repeats it, as it may be written: to be cut only now, because no rule knows
    /// the first half of a secret. `calls` are those before it.
    pub(super) fn masked_start(&self, text: &str, calls: &SensitiveCalls) -> String {
        let start = &text[..text.floor_char_boundary(MASKED_START_BYTES)];
        let Some(redactor) = &self.redactor else { return start.to_owned() };
        let line = Value::from(vec![start]).to_string();
        let masked = redactor.line_after(&mut calls.clone(), line.as_bytes()).bytes;
        serde_json::from_slice(&masked).map_or_else(|_| String::new(), |[start]: [String; 1]| start)
    }
}

/// Whether what is recorded happens now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// It does: records get the current time and context.
    Live,
    /// It happened before: records keep their time and context.
    Replay,
}

pub(crate) struct Log {
    pub(crate) place: Place,
    pub(super) appender: Appender,
    pub(crate) cursor: Cursor,
    /// The durability of all records, if the options set one.
    pub(crate) durability: Option<Durability>,
    /// The working directory and git branch at the last prompt.
    pub(super) context: Context,
    unsynced: Vec<Unsynced>,
    unsynced_bytes: usize,
    /// Lines that are appended together when the last of them is known: see [`Log::hold`].
    pub(super) held: Option<HeldLines>,
    /// How many times something was appended.
    pub(super) appended: u64,
    /// The buffer in which lines are built.
    buffer: Vec<u8>,
    /// A `sync` failed: what is in `unsynced` may be lost.
    failed: Option<Arc<io::Error>>,
    pub(super) sidecar_before: Option<Value>,
    pub(super) sidecar_at: Option<Timestamp>,
    /// Another recorder may have the session open, so it is not marked as closed here.
    is_shared: bool,
    /// Whether the sidecar has the log's title.
    pub(super) title: TitleState,
    pub(super) warnings: Vec<Warning>,
    /// Says that this session is being recorded.
    live: Option<LiveLock>,
}

/// Lines that are not appended yet.
pub(super) struct HeldLines {
    /// Where they begin, unless another program appends something before.
    offset: u64,
    bytes: Vec<u8>,
    wants_sync: bool,
}

/// Lines that were held and are in another place of the file than expected, because another program changed it.
pub(super) struct Moved {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) bytes: u64,
    /// The file was deleted and begins with them.
    pub(super) is_restarted: bool,
}

impl Moved {
    /// Corrects the id of a line that is named after its place.
    pub(super) fn correct(&self, id: &mut RecordId) {
        let place = id.as_str().strip_prefix(PLACE_PREFIX).and_then(|place| place.parse::<u64>().ok());
        if let Some(behind) = place.and_then(|place| place.checked_sub(self.from)) {
            *id = id_of_place(self.to + behind);
        }
    }

    pub(super) fn correct_record(&self, record: &mut ParentRecord) {
        [Some(&mut record.id), record.parent.as_mut()].into_iter().flatten().for_each(|id| self.correct(id));
    }
}

/// The id of a record that is named after the place of its line in the file.
fn id_of_place(offset: u64) -> RecordId {
    RecordId(format!("{PLACE_PREFIX}{offset}"))
}

/// The state of a log before calls that belong together.
pub(super) struct LogBefore {
    cursor: Cursor,
    unsynced: usize,
    unsynced_bytes: usize,
    appended: u64,
    title: TitleState,
    sidecar_at: Option<Timestamp>,
}

/// Lines that were appended since the last good `sync`.
struct Unsynced {
    offset: u64,
    bytes: Vec<u8>,
}

impl Log {
    pub(crate) fn new(place: Place, appender: Appender, cursor: Cursor, sidecar_before: Option<Value>) -> Log {
        let git_branch = match place.mode {
            Mode::Live => git::branch(&place.host.cwd),
            Mode::Replay => cursor.tally.git_branch.clone(),
        };
        let context = surroundings(&place.host, git_branch);
        let on_replaced = if place.may_change_session() { OnReplaced::Fail } else { OnReplaced::Follow };
        let may_end = place.mode == Mode::Live && place.writing.ended_path.is_some();
        let appender = appender.on_replaced(on_replaced).may_end(may_end);
        Log {
            place,
            appender,
            cursor,
            durability: None,
            context,
            unsynced: Vec::new(),
            unsynced_bytes: 0,
            held: None,
            appended: 0,
            buffer: Vec::new(),
            failed: None,
            sidecar_before,
            sidecar_at: None,
            is_shared: false,
            title: TitleState::Due,
            warnings: Vec::new(),
            live: None,
        }
    }

    /// Keeps a lock as long as this log is open.
    pub(crate) fn guarded_by(self, live: Option<LiveLock>) -> Log {
        Log { live, ..self }
    }

    /// The token of the lock whose release means that nobody records any more.
    pub(super) fn lock_token(&self) -> Option<String> {
        self.live.as_ref().filter(|_| !self.is_shared)?.token.clone()
    }

    pub(crate) fn path(&self) -> &std::path::Path {
        self.appender.path()
    }

    /// Fails after a failed `sync`: nothing can be written until [`Log::reopen`].
    pub(crate) fn check(&self) -> Result<()> {
        self.failed.as_ref().map_or(Ok(()), |why| Err(self.not_saved(why.clone())))
    }

    /// Whether a `sync` failed, so that lines in the file may be lost.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.failed.is_some()
    }

    /// Whether lines that were written may be lost: they are held, or a `sync` failed.
    pub(super) fn may_lose_lines(&self) -> bool {
        self.held.is_some() || self.is_in_doubt()
    }

    /// Whether every line is as safe as it was asked to be.
    pub(crate) fn is_synced(&self) -> bool {
        self.unsynced.is_empty()
    }

    /// Writes pieces that belong together with one append, all or nothing, and moves the head behind them. If the session was
    /// ended meanwhile, they start the next one. A `sync` that fails afterwards is no error here: see [`Log::is_in_doubt`].
    pub(crate) fn write(&mut self, pieces: Vec<Piece>, durability: Durability) -> Result<Saved> {
        if !self.place.may_change_session() {
            return self.write_here(pieces, durability);
        }
        for _ in 0..SESSIONS_FOLLOWED {
            match self.write_here(pieces.clone(), durability) {
                Err(Error::Ended(_)) => self.continue_in_successor()?,
                saved => return saved,
            }
        }
        Err(Error::Busy(self.path().to_path_buf()))
    }

    /// Continues in the session whose file has the log's name now. If nobody has begun it, the next lines do.
    fn continue_in_successor(&mut self) -> Result<()> {
        let source = Source::file(self.place.dialect, self.path());
        // Before it is read: whoever writes in between is noticed by the length.
        let length = self.appender.len()?;
        let session = match self.place.disk.read_session(&source, &ReadOptions::plain((self.place.host.now)())) {
            // It has ended too; the next write starts the file again.
            Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => return Ok(()),
            session => session?,
        };
        let is_begun = session.head().is_some();
        self.place.session = if is_begun { session.id() } else { SessionId((self.place.host.new_id)()) };
        self.appender.begin_at((!is_begun).then_some(length));
        // Whoever ended the old session has synced it.
        self.forget_unsynced();
        self.cursor = Cursor::at(&session, session.head(), &self.place, Path::new(&self.cursor.tally.project))?;
        Ok(())
    }

    pub(super) fn write_here(&mut self, pieces: Vec<Piece>, durability: Durability) -> Result<Saved> {
        self.check()?;
        let durability = self.durability.unwrap_or(durability);
        let at = self.clock();
        let mut chain = self.cursor.chain.clone();
        let mut batch = Batch { bytes: std::mem::take(&mut self.buffer), ..Batch::default() };
        let mut kind = Kind::Other;
        // A further line of a record does not move the head.
        let is_new = !pieces.iter().any(|piece| matches!(piece.on, On::Append(_)));
        for piece in pieces {
            kind = piece.body.kind();
            self.draft(piece, at, &mut chain, &mut batch)?;
        }
        if batch.bytes.len() > VALUE_LIMIT_BYTES {
            return Err(Error::TooLong { bytes: batch.bytes.len() });
        }
        if batch.names.is_empty() {
            return Err(Error::record_lost(self.place.dialect.name(), batch.losses));
        }
        let offset = self.append(&batch.bytes)?;
        let (mut named, mut aside) = (None, None);
        for (from, names) in &batch.names {
            let place = || id_of_place(offset + *from as u64);
            match names {
                Names::Link(id) => named = Some(self.cursor.call(id, &self.place, kind)),
                Names::Place => named = Some(place()),
                Names::Aside(id) => aside = Some(id.clone()),
                Names::Side => aside = Some(place()),
            }
        }
        if let (Some(id), Some(tip)) = (&named, chain.parent.as_mut().filter(|_| is_new)) {
            tip.id = id.clone();
            if batch.answers {
                chain.last_answer.clone_from(&chain.parent);
            }
        }
        let id = named.or(aside).unwrap_or_else(|| RecordId((self.place.host.new_id)()));
        self.cursor.chain = chain;
        self.cursor.at = Some(at);
        self.note_first_cwd(&batch.bodies);
        self.cursor.tally.updated = Some(at);
        self.cursor.tally.started.get_or_insert(at);
        self.cursor.tally.is_open = true;
        self.cursor.tally.messages += batch.messages;
        self.cursor.wrote(offset, batch.bytes.len(), &batch.bodies);
        if batch.bodies.iter().any(|(_, body)| matches!(body, Body::Title(_))) {
            (self.title, self.sidecar_at) = (TitleState::Due, None);
        }
        // With `Flush` for all records, there is nothing to remember for a `sync` that fails.
        if self.durability != Some(Durability::Flush) {
            self.unsynced_bytes += batch.bytes.len();
            // What is too large for a buffer is not copied.
            let is_large = batch.bytes.len() > BUFFER_LIMIT_BYTES;
            let bytes = if is_large { std::mem::take(&mut batch.bytes) } else { batch.bytes.clone() };
            self.unsynced.push(Unsynced { offset, bytes });
        }
        self.buffer = batch.bytes;
        self.buffer.clear();
        self.buffer.shrink_to(BUFFER_LIMIT_BYTES);
        let is_flush = durability == Durability::Flush && self.unsynced_bytes < UNSYNCED_LIMIT_BYTES;
        let durability = if is_flush { Durability::Flush } else { Durability::Sync };
        if is_flush || self.sync().is_ok() {
            self.write_sidecar_if_due(at);
        }
        Ok(Saved { id, durability, losses: batch.losses })
    }

    /// Notes the first working directory that a record has: it may be another one than the agent's.
    fn note_first_cwd(&mut self, bodies: &[(RecordId, Body)]) {
        if self.place.first_cwd.is_none() {
            let cwd = bodies.iter().find_map(|(_, body)| body.content()?.context.cwd.as_deref());
            self.place.first_cwd = cwd.map(PathBuf::from).filter(|cwd| cwd.is_absolute());
        }
    }

    /// Appends lines, or adds them to those that are held. Returns where they begin.
    fn append(&mut self, bytes: &[u8]) -> Result<u64> {
        if let Some(held) = &mut self.held {
            let offset = held.offset + held.bytes.len() as u64;
            held.bytes.extend_from_slice(bytes);
            return Ok(offset);
        }
        let (offset, is_restarted) = self.append_now(bytes)?;
        if is_restarted {
            self.cursor.restart_file();
        }
        Ok(offset)
    }

    /// Appends lines. Returns where they begin, and whether the file was deleted and begins with them.
    fn append_now(&mut self, bytes: &[u8]) -> Result<(u64, bool)> {
        let offset = self.appender.append(bytes)?;
        self.appended += 1;
        let warnings = self.appender.take_warnings();
        let is_restarted = warnings.contains(&Warning::Deleted);
        warnings.into_iter().for_each(|warning| self.warning(warning));
        Ok((offset, is_restarted))
    }

    /// Holds all lines until [`Log::append_held`], so that they are in the file together or not at all. A session that another
    /// program may end meanwhile is written at once: only its format's whole turns are lines.
    pub(super) fn hold(&mut self) -> Result<LogBefore> {
        if self.place.writing.ended_path.is_none() {
            let offset = self.appender.len()?;
            self.held = Some(HeldLines { offset, bytes: Vec::new(), wants_sync: false });
        }
        Ok(LogBefore {
            cursor: self.cursor.clone(),
            unsynced: self.unsynced.len(),
            unsynced_bytes: self.unsynced_bytes,
            appended: self.appended,
            title: self.title,
            sidecar_at: self.sidecar_at,
        })
    }

    /// Appends the lines that are held. Returns how they moved if they are not where they were expected. A `sync` that fails
    /// afterwards is no error here: see [`Log::is_in_doubt`].
    pub(super) fn append_held(&mut self, before: &LogBefore) -> Result<Option<Moved>> {
        let Some(held) = self.held.take() else { return Ok(None) };
        let mut moved = None;
        if !held.bytes.is_empty() {
            let (offset, is_restarted) = self.append_now(&held.bytes)?;
            for lines in self.unsynced.iter_mut().skip(before.unsynced) {
                lines.offset = lines.offset - held.offset + offset;
            }
            if is_restarted || offset != held.offset {
                let by = Moved { from: held.offset, to: offset, bytes: held.bytes.len() as u64, is_restarted };
                self.cursor.move_lines(&by, &before.cursor);
                moved = Some(by);
            }
        }
        if held.wants_sync {
            // The recorder reports a failure.
            drop(self.sync());
        }
        if let (false, Some(at)) = (self.is_in_doubt(), self.cursor.at) {
            self.write_sidecar_if_due(at);
        }
        Ok(moved)
    }

    /// Returns to the state before. Returns whether it could: lines in the file stay.
    pub(super) fn forget_held(&mut self, before: LogBefore) -> bool {
        self.held = None;
        if self.appended != before.appended {
            return false;
        }
        self.cursor = before.cursor;
        self.unsynced.truncate(before.unsynced);
        (self.unsynced_bytes, self.title, self.sidecar_at) = (before.unsynced_bytes, before.title, before.sidecar_at);
        true
    }

    /// Makes everything so far survive a crash.
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.check()?;
        if let Some(held) = &mut self.held {
            held.wants_sync = true;
            return Ok(());
        }
        if let Err(error) = self.appender.sync() {
            let why = Arc::new(if let Error::Io { source, .. } = error { source } else { io::Error::other(error) });
            self.failed = Some(why.clone());
            return Err(self.not_saved(why));
        }
        self.forget_unsynced();
        Ok(())
    }

    /// Forgets which records are not synced yet: they are safe.
    fn forget_unsynced(&mut self) {
        self.unsynced.clear();
        self.unsynced_bytes = 0;
    }

    /// After a failed `sync`: writes what may be lost once more.
    pub(crate) fn reopen(&mut self) -> Result<()> {
        let mut lines: Vec<(u64, Vec<u8>)> =
            self.unsynced.iter_mut().map(|lines| (lines.offset, std::mem::take(&mut lines.bytes))).collect();
        let written = self.appender.rewrite_lines(&mut lines);
        for (known, (offset, bytes)) in self.unsynced.iter_mut().zip(lines) {
            (known.offset, known.bytes) = (offset, bytes);
        }
        written?;
        self.failed = None;
        self.sync()
    }

    pub(crate) fn warning(&mut self, warning: Warning) {
        self.is_shared |= warning == Warning::InUse;
        // Each warning is reported once until it is read.
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    pub(crate) fn warnings(&mut self) -> Vec<Warning> {
        std::mem::take(&mut self.warnings)
    }

    /// Reads the current git branch and context.
    pub(crate) fn refresh_context(&mut self) {
        let user_type = self.context.user_type.take();
        self.context = Context { user_type, ..surroundings(&self.place.host, git::branch(&self.place.host.cwd)) };
        self.cursor.tally.git_branch.clone_from(&self.context.git_branch);
    }

    /// Reads the session as it is on disk.
    pub(super) fn read(&self) -> Result<Session> {
        let source = Source::file(self.place.dialect, self.path());
        self.place.disk.read_session(&source, &ReadOptions::plain((self.place.host.now)()))
    }

    /// The state of a recording that continues from a record of this log.
    pub(crate) fn cursor_at(&self, record: &RecordId) -> Result<Cursor> {
        let session = self.read()?;
        let found = link_named(&session, record.as_str())?;
        Cursor::at(&session, Some(found), &self.place, Path::new(&self.cursor.tally.project))
    }

    /// Ends the recording: makes everything safe and writes the sidecar.
    pub(crate) fn close(&mut self) -> Result<()> {
        let synced = if self.unsynced.is_empty() { self.check() } else { self.sync() };
        self.is_shared |= self.appender.is_written_behind();
        self.cursor.tally.is_open = synced.is_err() || self.is_shared;
        self.write_sidecar();
        synced
    }

    /// Makes everything in the file safe, though more is still to be written.
    pub(crate) fn pause(&mut self) -> Result<()> {
        let synced = if self.unsynced.is_empty() { self.check() } else { self.sync() };
        self.write_sidecar();
        synced
    }

    /// The current time; if the clock was set back, the last time until it has caught up.
    pub(super) fn clock(&self) -> Timestamp {
        let now = (self.place.host.now)();
        match self.place.mode {
            Mode::Live => self.cursor.at.map_or(now, |last| now.max(last)),
            Mode::Replay => now,
        }
    }

    fn not_saved(&self, source: Arc<io::Error>) -> Error {
        Error::Unsaved { path: self.path().to_path_buf(), count: self.unsynced.len(), source, is_recorded: false }
    }
}

/// The context of the agent.
fn surroundings(host: &Host, git_branch: Option<String>) -> Context {
    let cwd = Some(host.cwd.to_string_lossy().into_owned());
    Context { cwd, git_branch, platform: Some(host.platform.clone()), user_type: None }
}
