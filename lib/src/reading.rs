//! The driver: a source becomes a session; whole, from its end, or as it grows. One path for all three.

use std::io::Read;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::branch::{self, Keys};
use crate::conversation::Conversation;
use crate::dialect::Dialect;
use crate::error::{At, Result};
use crate::facts::Facts;
use crate::intake::{Grain, Intake, Origin, Position, VALUE_LIMIT_BYTES};
use crate::issue::{Issue, IssueKind};
use crate::layout::{Format, Layout};
use crate::mend;
use crate::record::{Title, TitleSource};
use crate::session::{Session, Shape};
use crate::skeleton::{Entry, Flags, KeyEntry, Mark, Place, ROOT, Skeleton, Stand};
use crate::source::{Contents, Files, OpenFile, Source, open_file};
use crate::time::Micros;
use crate::tree::{Bridge, Rules, Tree};

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

/// The end of a file, still growing.
pub(crate) struct Tail {
    /// Where `pending` begins.
    pub(crate) at: Position,
    /// Bytes after the last LF: judged at each look, never stored.
    pub(crate) pending: Vec<u8>,
    /// How many bytes of an endless line were dropped before `pending`.
    skipped: u64,
    /// The skeleton without the pending bytes.
    judged: Option<Mark>,
    base: Base,
    bridge: Bridge,
    pub(crate) now: Timestamp,
}

/// The session that this one begins in. A line tells it when it is whole, not while it is pending.
enum Base {
    Untold,
    Told(Origin),
    Followed,
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
        let format = match dialect.layouts_in(Path::new("")).first().map(|layout| layout.format) {
            Some(Format::Document) => Format::Document,
            Some(Format::Lines | Format::Rows(_)) | None => Format::Lines,
        };
        let layout = Layout { root: PathBuf::new(), pattern: "-", companions: &[], sidecar: None, format };
        let source = Source { dialect, path: PathBuf::from("-"), layout, key: None };
        let mut session = Session::empty(source, Files::memory(Vec::new()), reading, true);
        session.tail.pending.extend_from_slice(&bytes);
        session.take_lines(0);
        session.finish(reading, &mut Vec::new());
        session.files.0[0].contents = Contents::Memory(bytes);
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
        session.tail.pending = bytes;
        session.take_lines(0);
        session.judge();
        Ok(session)
    }

    /// Reads the lines that end in the first `window` bytes of a file.
    pub(crate) fn open_start(source: &Source, reading: &Reading<'_>, window: u64) -> Result<Session> {
        let file = open_file(&source.path)?;
        let mut bytes = file.read_at(0, window)?;
        bytes.truncate(memchr::memrchr(b'\n', &bytes).map_or(0, |last| last + 1));
        let mut session = Session::empty(source.clone(), Files(vec![file]), reading, false);
        read_sidecar(&mut session);
        session.tail.pending = bytes;
        session.take_lines(0);
        session.judge();
        Ok(session)
    }

    /// Takes in bytes that were appended to the first file since it was read, a file of lines.
    ///
    /// The result is the session that reading the whole file gives. A document or a database is not appended to: open it
    /// again.
    pub fn push(&mut self, appended: &[u8], reading: &Reading<'_>) {
        if let Some(Contents::Memory(bytes)) = self.files.0.first_mut().map(|file| &mut file.contents) {
            bytes.extend_from_slice(appended);
        }
        if let Some(mark) = self.tail.judged.take() {
            self.skeleton.cut_back(mark);
        }
        self.tail.now = reading.now;
        let from = self.tail.pending.len();
        self.tail.pending.extend_from_slice(appended);
        self.take_lines(from);
        self.finish(reading, &mut Vec::new());
    }

    fn empty(source: Source, files: Files, reading: &Reading<'_>, whole: bool) -> Session {
        let name = |(at, file): (usize, &OpenFile)| {
            (at > 0).then(|| file.path.file_name().unwrap_or_default().to_string_lossy().into_owned())
        };
        let skeleton = Skeleton { file_names: files.0.iter().enumerate().map(name).collect(), ..Skeleton::default() };
        let tail = Tail {
            at: Position { offset: 0, line: u32::from(whole), file: 0 },
            pending: Vec::new(),
            skipped: 0,
            judged: None,
            base: Base::Untold,
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

    /// Takes in the whole lines of what is pending, of which `from` bytes had been looked at before.
    fn take_lines(&mut self, from: usize) {
        let grain = self.grain();
        let last = memchr::memrchr(b'\n', &self.tail.pending[from..]).filter(|_| grain == Grain::Line);
        match last {
            Some(last) => {
                // The buffer is kept: a fresh one for each chunk costs more than reading it.
                let mut pending = std::mem::take(&mut self.tail.pending);
                let (mut at, skipped) = (self.tail.at, std::mem::take(&mut self.tail.skipped));
                let mut intake = self.intake(grain);
                let mut lines = &pending[..=from + last];
                if skipped > 0 {
                    let end = memchr::memchr(b'\n', lines).map_or(lines.len(), |lf| lf + 1);
                    intake.too_long(skipped + end as u64, at);
                    at = at.next_line((skipped as usize).saturating_add(end));
                    lines = &lines[end..];
                }
                let at = intake.lines(lines, at);
                let bases = std::mem::take(&mut intake.bases);
                pending.drain(..=from + last);
                (self.tail.at, self.tail.pending) = (at, pending);
                self.note_base(bases);
            }
            None if self.tail.pending.len() > VALUE_LIMIT_BYTES => {
                self.tail.skipped += self.tail.pending.len() as u64;
                self.tail.pending.clear();
            }
            None => {}
        }
    }

    fn note_base(&mut self, bases: Vec<Origin>) {
        if let (Base::Untold, Some(origin)) = (&self.tail.base, bases.into_iter().next()) {
            self.tail.base = Base::Told(origin);
        }
    }

    /// Takes in a whole file, but for what comes after its last LF.
    fn take_file(&mut self, file: &OpenFile, at: u16) -> Result<()> {
        (self.tail.at, self.tail.skipped) = (Position { offset: 0, line: 1, file: at }, 0);
        if let Contents::Rows(table) = &file.contents {
            let mut intake = self.intake(Grain::Line);
            table.each(&file.path, |rowid, json| {
                intake.value(json, Position { offset: rowid.cast_unsigned(), line: 0, file: at });
            })?;
            let bases = std::mem::take(&mut intake.bases);
            self.note_base(bases);
            return Ok(());
        }
        let mut reader = file.reader(0)?;
        loop {
            let start = self.tail.pending.len();
            let chunk = CHUNK_BYTES.max(start) as u64;
            if (&mut reader).take(chunk).read_to_end(&mut self.tail.pending).at(&file.path)? == 0 {
                return Ok(());
            }
            self.take_lines(start);
        }
    }

    /// Takes in what a file ends with: a line without its LF, or the whole document.
    fn take_rest(&mut self, grain: Grain) {
        let (rest, at) = (std::mem::take(&mut self.tail.pending), self.tail.at);
        let skipped = self.tail.skipped;
        let mut intake = self.intake(grain);
        if skipped > 0 {
            intake.too_long(skipped + rest.len() as u64, at);
        } else if !rest.is_empty() {
            intake.line(&rest, at);
        }
        let bases = std::mem::take(&mut intake.bases);
        if grain == Grain::Document || at.file > 0 {
            self.tail.skipped = 0;
            self.note_base(bases);
        } else {
            self.tail.pending = rest;
        }
    }

    fn grain(&self) -> Grain {
        match self.source.layout.format {
            Format::Document if self.tail.at.file == 0 => Grain::Document,
            Format::Lines | Format::Document | Format::Rows(_) => Grain::Line,
        }
    }

    /// Follows the base, looks at the unfinished end, and derives the tree.
    fn finish(&mut self, reading: &Reading<'_>, within: &mut Vec<String>) {
        if self.grain() == Grain::Document {
            // Lines of a document mean nothing.
            self.tail.at.line = 0;
            self.take_rest(Grain::Document);
        }
        if let Base::Told(origin) = std::mem::replace(&mut self.tail.base, Base::Untold) {
            inherit(self, &origin, reading, within);
            self.tail.base = Base::Followed;
        }
        self.judge();
    }

    /// Looks at the unfinished last line, and derives the tree.
    fn judge(&mut self) {
        let mark = self.skeleton.mark();
        self.take_rest(Grain::Line);
        self.tail.judged = Some(mark);
        self.derive();
    }

    fn derive(&mut self) {
        let habits = self.source.dialect.habits();
        let bridge_within = match self.tail.bridge {
            Bridge::Always => Some(Micros::MAX),
            Bridge::AsTheAgent => habits.bridges_within_ms.map(|ms| ms.saturating_mul(1000)),
        };
        let rules = Rules { repeated: habits.repeated, bridge_within, whole: self.whole };
        let mut facts = self.skeleton.facts.clone();
        facts.fall_back_on(self.sidecar.clone());
        let itself = self.source.name();
        facts.parent_session.take_if(|parent| facts.session.as_ref() == Some(parent) || *parent == itself);
        self.skeleton.settle_sidechains(facts.parent_session.is_some());
        let tree = Tree::grow(&self.skeleton, rules);
        let keys = Keys::new(&self.skeleton, &tree);
        let heads = branch::heads(&self.skeleton, &tree, &keys);
        let (own, others): (Vec<_>, Vec<_>) = std::mem::take(&mut facts.summaries)
            .into_iter()
            .partition(|(of, _)| self.skeleton.ids.find(of).and_then(|id| tree.named(id)).is_some());
        facts.summaries = others;
        for (_, text) in own {
            facts.entitle(Title { text, source: TitleSource::Summary });
        }
        let mut issues = self.skeleton.issues.clone();
        // What the end of a file lacks may stand before it.
        let from_tree = if self.whole { tree.issues.iter() } else { [].iter() };
        let from_keys = if self.whole { keys.issues(&tree) } else { Vec::new() };
        for found in from_tree.chain(&from_keys) {
            let place = self.skeleton.entries[found.entry as usize].place;
            let file = self.skeleton.file_names.get(usize::from(place.file)).cloned().flatten();
            issues.push(Issue::at(place, file, found.kind, found.detail.clone()));
        }
        issues.kept.sort_by(|a, b| (&a.file, a.offset).cmp(&(&b.file, b.offset)));
        self.shape = Shape { tree, keys, heads, facts, issues };
    }

    /// Whether the page is here, and sure to be what the whole session has at its end.
    fn holds(&self, page: Page<'_>) -> bool {
        let Some(head) = self.head() else { return false };
        let branch = self.branch(head);
        let conversation = Conversation::new(&branch);
        let end = match page.before {
            None => Some(conversation.len()),
            // A beginning of an id may fit a record before the window too.
            Some(id) => {
                branch.records.iter().find(|record| record.id() == id).and_then(|at| conversation.position(*at))
            }
        };
        let Some(first) = end.and_then(|end| end.checked_sub(page.messages)) else { return false };
        let begins_here = branch.records.first().is_some_and(|root| root.is_root());
        // The first message here may begin before the window, and with it the count of a long turn's messages.
        let sure = begins_here || (1..=first).any(|at| !conversation.continues(at));
        sure && (first..conversation.len()).all(|at| conversation.has_its_calls(at))
    }
}

fn open_within(source: &Source, reading: &Reading<'_>, within: &mut Vec<String>) -> Result<Session> {
    let mut session = Session::empty(source.clone(), source.open()?, reading, true);
    let files = std::mem::replace(&mut session.files, Files(Vec::new()));
    // The first file comes last: its end is what stays pending.
    for (at, file) in files.0.iter().enumerate().rev() {
        session.take_file(file, at as u16)?;
        if let Some(why) = &file.torn {
            let Position { offset, line, file } = session.tail.at;
            session.skeleton.report(Place { offset, length: 0, line, file }, IssueKind::Torn, why.clone());
        }
        if at > 0 {
            session.take_rest(Grain::Line);
        }
    }
    session.files = files;
    read_sidecar(&mut session);
    session.finish(reading, within);
    Ok(session)
}

/// Reads the file beside the log. It is never believed over the log, so whatever is wrong with it matters to nobody.
fn read_sidecar(session: &mut Session) {
    let Some(path) = session.source.sidecar() else { return };
    let Ok(bytes) = read_limited(&path) else { return };
    let mut told = Skeleton::default();
    let place = Place { offset: 0, length: 0, line: 0, file: 0 };
    let stand = Stand { place, hash: 0 };
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
fn inherit(session: &mut Session, origin: &Origin, reading: &Reading<'_>, within: &mut Vec<String>) {
    let base = origin.session.as_str();
    within.push(session.skeleton.facts.session.clone().unwrap_or_else(|| session.source.name()));
    let followed = within.len() < BASES_FOLLOWED && !within.iter().any(|id| id == base);
    let opened = followed.then(|| (reading.find)(base)).flatten().map(|source| open_within(&source, reading, within));
    within.pop();
    let Some(Ok(mut base_session)) = opened else {
        session.skeleton.begin_in_missing(base);
        return;
    };
    let dialect = base_session.source.dialect;
    let reaching = |mark: &Option<String>| {
        let mark = mark.as_deref()?;
        base_session.skeleton.first_entry(|id| dialect.reaches(id, mark))
    };
    let (until, incomplete) = (reaching(&origin.until), origin.last.is_some() && reaching(&origin.last).is_none());
    if let Some(until) = until {
        // As it was then: what came later, a step back too, is none of this session's.
        base_session.skeleton.forget_from(until);
        base_session.derive();
    }
    let front = front(&base_session, session.files.0.len() as u16);
    let inherited = front.entries.len();
    session.skeleton.prepend(front);
    if let Some(last) = origin.last.as_ref().filter(|_| incomplete) {
        session.skeleton.go_on_from_missing(last, inherited);
    } else if let Some(missing) = base_session.skeleton.missing_base().filter(|_| inherited == 0) {
        session.skeleton.begin_in_missing(missing);
    }
    session.files.0.append(&mut base_session.files.0);
}

/// The current branch of a session as the beginning of another one, whose own files come before `first_file`.
fn front(base: &Session, first_file: u16) -> Skeleton {
    let Session { skeleton, shape, .. } = base;
    let mut front = Skeleton::default();
    let file_name = |file: &OpenFile| file.path.file_name().map(|name| name.to_string_lossy().into_owned());
    front.file_names = base.files.0.iter().map(file_name).collect();
    let branch = base.head().map(|head| base.branch(head).records).unwrap_or_default();
    let missing = branch.first().and_then(|root| root.missing_parent());
    let mut parent = missing.map_or(ROOT, |missing| front.ids.intern(missing));
    for record in branch {
        let place = record.place();
        let moved = |place: Place| Place { file: place.file + first_file, ..place };
        let nameless = record.id() == place.name();
        let id = if nameless { front.ids.intern(&moved(place).name()) } else { front.ids.intern(&record.id()) };
        for at in shape.tree.entries_of(record.node) {
            let entry = skeleton.entries[at as usize];
            let first_key = skeleton.keys.partition_point(|key| key.entry < at);
            let keys = skeleton.keys[first_key..].iter().take_while(|key| key.entry == at);
            front.keys.extend(keys.map(|key| KeyEntry { entry: front.entries.len() as u32, ..*key }));
            let flags = entry.flags.with(Flags::INHERITED, true);
            front.entries.push(Entry { place: moved(entry.place), id, parent, flags, ..entry });
        }
        parent = id;
    }
    front
}
