//! The driver: a source becomes a session; whole, from its end, or as it grows. One path for all three.

use std::io::Read;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::branch::{self, Keys};
use crate::conversation::Conversation;
use crate::dialect::Dialect;
use crate::error::{At, Result};
use crate::intake::{Grain, Intake, Position, VALUE_LIMIT_BYTES};
use crate::issue::{Issue, IssueKind};
use crate::layout::{Format, Layout};
use crate::mend;
use crate::session::{Session, Shape};
use crate::skeleton::{Entry, Facts, Flags, Mark, Place, ROOT, Skeleton};
use crate::source::{Contents, Files, OpenFile, Source, open_file};
use crate::tree::{Bridge, Tree};

/// How much is read at a time: large enough that calls do not count, small enough for any machine.
const CHUNK_BYTES: usize = 1024 * 1024;

/// The first window of a session read from its end, and what it grows by: a page of messages is usually in the first.
const TAIL_WINDOW_BYTES: u64 = 256 * 1024;
const TAIL_WINDOW_GROWTH: u64 = 4;

/// A chain of sessions that begin in one another: longer ones are cut, and the cut is a gap.
const BASES_FOLLOWED: usize = 64;

/// A sidecar is a few lines; more is not one.
const SIDECAR_LIMIT_BYTES: u64 = 4 * 1024 * 1024;

/// How to read.
#[derive(Clone, Copy)]
pub struct Reading<'a> {
    /// The clock: instants far in its future do not count.
    pub now: Timestamp,
    /// What to do about missing parents.
    pub bridge: Bridge,
    /// Finds the session that another one begins in.
    pub find: &'a dyn Fn(&str) -> Option<Source>,
}

impl Reading<'_> {
    /// Reads a session by itself, gaps left open.
    pub fn plain(now: Timestamp) -> Reading<'static> {
        Reading { now, bridge: Bridge::AsTheAgent, find: &|_| None }
    }
}

/// A page of a session, counted from its end.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    /// How many messages.
    pub messages: usize,
    /// The record that the page ends before.
    pub before: Option<&'a str>,
}

/// The end of the first file, still growing.
pub(crate) struct Tail {
    /// Where `pending` begins.
    pub(crate) at: Position,
    /// Bytes after the last LF: judged at each look, never stored.
    pub(crate) pending: Vec<u8>,
    /// The skeleton without the pending bytes.
    judged: Option<Mark>,
    bridge: Bridge,
    now: Timestamp,
}

impl Session {
    /// Reads a whole session.
    pub fn open(source: &Source, reading: &Reading<'_>) -> Result<Session> {
        open_within(source, reading, &mut Vec::new())
    }

    /// Reads the last messages of a session, and of its file only what they need.
    ///
    /// The session is `whole` when that turned out to be everything.
    pub fn open_page(source: &Source, reading: &Reading<'_>, page: Page<'_>) -> Result<Session> {
        let size = open_file(&source.path).and_then(|file| file.len());
        let mut window = TAIL_WINDOW_BYTES;
        loop {
            if !matches!(source.layout.format, Format::Lines) || window >= *size.as_ref().unwrap_or(&0) {
                return Session::open(source, reading);
            }
            let session = Session::open_end(source, reading, window)?;
            if session.holds(page) {
                return Ok(session);
            }
            window = window.saturating_mul(TAIL_WINDOW_GROWTH);
        }
    }

    /// Reads what was piped in.
    pub fn from_bytes(dialect: &'static dyn Dialect, bytes: Vec<u8>, reading: &Reading<'_>) -> Session {
        let layout =
            Layout { root: PathBuf::new(), pattern: "-", companions: &[], sidecar: None, format: Format::Lines };
        let source = Source { dialect, path: PathBuf::from("-"), layout, key: None };
        let mut session = Session::empty(source, Files::memory(Vec::new()), reading, true);
        session.push(&bytes);
        session.files = Files::memory(bytes);
        session
    }

    /// Reads the last `window` bytes of a file of lines, from the first line that begins in them.
    pub(crate) fn open_end(source: &Source, reading: &Reading<'_>, window: u64) -> Result<Session> {
        let file = open_file(&source.path)?;
        let from = file.len()?.saturating_sub(window);
        // One byte earlier: if it is an LF, the window begins with a whole line.
        let mut bytes = file.read_at(from.saturating_sub(1), window + 1)?;
        let skipped = if from == 0 { 0 } else { memchr::memchr(b'\n', &bytes).map_or(bytes.len(), |at| at + 1) };
        bytes.drain(..skipped);
        let mut session = Session::empty(source.clone(), Files(vec![file]), reading, false);
        session.tail.at.offset = from.saturating_sub(1) + skipped as u64;
        read_sidecar(&mut session);
        session.push(&bytes);
        Ok(session)
    }

    /// Reads the lines that end in the first `window` bytes of a file.
    pub(crate) fn open_start(source: &Source, reading: &Reading<'_>, window: u64) -> Result<Session> {
        let file = open_file(&source.path)?;
        let mut bytes = file.read_at(0, window)?;
        bytes.truncate(memchr::memrchr(b'\n', &bytes).map_or(0, |last| last + 1));
        let mut session = Session::empty(source.clone(), Files(vec![file]), reading, false);
        read_sidecar(&mut session);
        session.push(&bytes);
        Ok(session)
    }

    /// Takes in bytes that were appended to the first file since it was read.
    ///
    /// The result is the session that reading the whole file gives.
    pub fn push(&mut self, appended: &[u8]) {
        self.unjudge();
        self.tail.pending.extend_from_slice(appended);
        if let Some(last) = memchr::memrchr(b'\n', &self.tail.pending) {
            let rest = self.tail.pending.split_off(last + 1);
            let lines = std::mem::replace(&mut self.tail.pending, rest);
            let at = self.tail.at;
            self.tail.at = self.intake(Grain::Line).lines(&lines, at);
        }
        self.judge();
    }

    fn empty(source: Source, files: Files, reading: &Reading<'_>, whole: bool) -> Session {
        let name = |(at, file): (usize, &OpenFile)| {
            (at > 0).then(|| file.path.file_name().unwrap_or_default().to_string_lossy().into_owned())
        };
        let skeleton = Skeleton { file_names: files.0.iter().enumerate().map(name).collect(), ..Skeleton::default() };
        let tail = Tail {
            at: Position { offset: 0, line: u32::from(whole), file: 0 },
            pending: Vec::new(),
            judged: None,
            bridge: reading.bridge,
            now: reading.now,
        };
        let sidecar = Facts::default();
        Session { source, files, skeleton, sidecar, whole, tail, shape: Shape::default() }
    }

    fn intake(&mut self, grain: Grain) -> Intake<'_> {
        Intake {
            dialect: self.source.dialect,
            skeleton: &mut self.skeleton,
            now: self.tail.now,
            grain,
            bases: Vec::new(),
        }
    }

    /// Looks at the unfinished last line, and derives the tree.
    fn judge(&mut self) {
        let mark = self.skeleton.mark();
        let (pending, at) = (std::mem::take(&mut self.tail.pending), self.tail.at);
        if !pending.is_empty() {
            self.intake(Grain::Line).line(&pending, at);
        }
        self.tail.pending = pending;
        self.tail.judged = Some(mark);
        self.derive();
    }

    fn unjudge(&mut self) {
        if let Some(mark) = self.tail.judged.take() {
            self.skeleton.cut_back(mark);
        }
    }

    fn derive(&mut self) {
        let habits = self.source.dialect.habits();
        let tree = Tree::grow(&self.skeleton, habits.repeated, self.tail.bridge, habits.bridges_within_ms);
        let keys = Keys::new(&self.skeleton, &tree);
        let heads = branch::heads(&self.skeleton, &tree, &keys);
        let mut facts = self.skeleton.facts.clone();
        facts.fall_back_on(self.sidecar.clone());
        let mut issues = self.skeleton.issues.clone();
        // What the end of a file lacks may stand before it.
        let from_tree = if self.whole { tree.issues.iter() } else { [].iter() };
        let from_keys = if self.whole { keys.issues(&tree) } else { Vec::new() };
        for found in from_tree.chain(&from_keys) {
            let place = self.skeleton.entries[found.entry as usize].place;
            issues.push(Issue {
                file: self.skeleton.file_names.get(usize::from(place.file)).cloned().flatten(),
                line: (place.line > 0).then_some(u64::from(place.line)),
                offset: place.offset,
                length: 0,
                kind: found.kind,
                severity: found.kind.severity(),
                detail: found.detail.clone(),
            });
        }
        issues.sort_by(|a, b| (&a.file, a.offset).cmp(&(&b.file, b.offset)));
        self.shape = Shape { tree, keys, heads, facts, issues };
    }

    /// Whether the page is here, with one message more, so that its first is sure to be whole.
    fn holds(&self, page: Page<'_>) -> bool {
        let Some(head) = self.head() else { return false };
        let branch = self.branch(head);
        let reaches_the_edge = branch.records.first().is_none_or(|root| root.missing_parent().is_some());
        let conversation = Conversation::new(&branch);
        let end = match page.before.map(|id| self.find(id)) {
            None => Some(conversation.len()),
            Some(found) => found.ok().and_then(|record| conversation.position(record)),
        };
        // One message more than asked for: the first one here may begin before the window.
        end.is_some_and(|end| end > page.messages || (!reaches_the_edge && end == page.messages))
    }
}

fn open_within(source: &Source, reading: &Reading<'_>, within: &mut Vec<String>) -> Result<Session> {
    let mut session = Session::empty(source.clone(), source.open()?, reading, true);
    let files = std::mem::replace(&mut session.files, Files(Vec::new()));
    let mut bases = Vec::new();
    // The first file comes last: its end is what stays pending.
    for (at, file) in files.0.iter().enumerate().rev() {
        let start = Position { offset: 0, line: 1, file: at as u16 };
        let mut intake = session.intake(grain(source, at));
        let (end, pending) = read_file(&mut intake, file, start)?;
        bases.append(&mut intake.bases);
        if at > 0 {
            session.intake(Grain::Line).line(&pending, end);
        } else {
            session.tail.at = end;
            session.tail.pending = pending;
        }
        if let Some(why) = &file.torn {
            let place = Place { offset: end.offset, length: 0, line: end.line, file: at as u16 };
            session.skeleton.report(place, IssueKind::Torn, why.clone());
        }
    }
    session.files = files;
    read_sidecar(&mut session);
    if let Some((base, until)) = bases.into_iter().next() {
        inherit(&mut session, &base, until.as_deref(), reading, within);
    }
    session.judge();
    Ok(session)
}

fn grain(source: &Source, file: usize) -> Grain {
    match source.layout.format {
        Format::Document if file == 0 => Grain::Document,
        Format::Lines | Format::Document | Format::Rows(_) => Grain::Line,
    }
}

/// Takes in a file up to its last LF; gives what comes after that, and where.
fn read_file(intake: &mut Intake<'_>, file: &OpenFile, mut at: Position) -> Result<(Position, Vec<u8>)> {
    if let Contents::Rows(table) = &file.contents {
        table.each(&file.path, |rowid, json| {
            intake.value(json, Position { offset: rowid.cast_unsigned(), line: 0, file: at.file });
        })?;
        return Ok((at, Vec::new()));
    }
    let mut reader = file.reader(0)?;
    let mut buffer: Vec<u8> = Vec::new();
    let mut skipped: u64 = 0;
    loop {
        let start = buffer.len();
        let read = (&mut reader).take(CHUNK_BYTES.max(start) as u64).read_to_end(&mut buffer).at(&file.path)?;
        if read == 0 {
            break;
        }
        if intake.grain == Grain::Document {
            continue;
        }
        if let Some(last) = memchr::memrchr(b'\n', &buffer[start..]) {
            let mut lines = &buffer[..=start + last];
            if skipped > 0 {
                let end = memchr::memchr(b'\n', lines).unwrap_or(0) + 1;
                intake.too_long(skipped + end as u64, at);
                at = at.next_line((skipped as usize).saturating_add(end));
                (lines, skipped) = (&lines[end..], 0);
            }
            at = intake.lines(lines, at);
            buffer.drain(..=start + last);
        } else if buffer.len() > VALUE_LIMIT_BYTES {
            skipped += buffer.len() as u64;
            buffer.clear();
        }
    }
    if skipped > 0 {
        intake.too_long(skipped + buffer.len() as u64, at);
        buffer.clear();
    }
    if intake.grain == Grain::Document {
        intake.line(&buffer, at);
        buffer.clear();
    }
    Ok((at, buffer))
}

/// Reads the file beside the log. It is never believed over the log, so whatever is wrong with it matters to nobody.
fn read_sidecar(session: &mut Session) {
    let Some(path) = session.source.sidecar() else { return };
    let Ok(bytes) = read_limited(&path) else { return };
    let mut told = Skeleton::default();
    let place = Place { offset: 0, length: 0, line: 0, file: 0 };
    let stand = crate::skeleton::Stand { place, hash: 0 };
    let text = mend::whole(&bytes);
    let now = session.tail.now;
    // An error means that the sidecar is damaged: then it tells nothing.
    if session.source.dialect.sidecar(&text, &mut |event| told.take(event, place, stand, now)).is_ok() {
        session.sidecar = told.facts;
    }
}

fn read_limited(path: &Path) -> Result<Vec<u8>> {
    open_file(path)?.read_at(0, SIDECAR_LIMIT_BYTES)
}

/// Puts the records of the session that this one begins in before its own.
fn inherit(session: &mut Session, base: &str, until: Option<&str>, reading: &Reading<'_>, within: &mut Vec<String>) {
    within.push(session.id().0);
    let followed = within.len() < BASES_FOLLOWED && !within.iter().any(|id| id == base);
    let opened = followed.then(|| (reading.find)(base)).flatten().map(|source| open_within(&source, reading, within));
    within.pop();
    let Some(Ok(base_session)) = opened else {
        session.skeleton.begin_in_missing(base);
        return;
    };
    let Some(head) = base_session.head() else { return };
    let branch = base_session.branch(head);
    let mut front = Skeleton::default();
    let first_file = session.files.0.len() as u16;
    let mut parent = ROOT;
    for record in branch.records.iter().take_while(|record| until.is_none_or(|until| record.id() != until)) {
        let id = front.ids.intern(&record.id());
        for entry in base_session.shape.tree.entries_of(record.node) {
            let inherited = base_session.skeleton.entries[entry as usize];
            let place = Place { file: inherited.place.file + first_file, ..inherited.place };
            let flags = inherited.flags.with(Flags::INHERITED, true);
            for key in base_session.skeleton.keys.iter().filter(|key| key.entry == entry) {
                front.keys.push(crate::skeleton::KeyEntry { entry: front.entries.len() as u32, ..*key });
            }
            front.entries.push(Entry { place, id, parent, flags, ..inherited });
        }
        parent = id;
    }
    session.skeleton.prepend(front);
    session.files.0.extend(base_session.files.0);
}
