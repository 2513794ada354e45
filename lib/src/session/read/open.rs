//! Opens a session from its source: whole, from its end, or as it grows. All three take the same path.

use std::cell::OnceCell;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;

use crate::dialect::layout::{Format, Layout};
use crate::dialect::{Dialect, RepeatedId};
use crate::model::error::{At, Error, Result};
use crate::model::issue::{IssueKind, quoted};
use crate::model::place::Place;
use crate::model::project;
use crate::model::record::{Title, TitleSource};
use crate::model::regular_file::{self, Links};
use crate::redact::Redactor;
use crate::session::Session;
use crate::session::derived::Derived;
use crate::session::mask::Mask;
use crate::session::read::base::{self, Base};
use crate::session::read::files::{Contents, Files, OpenFile, open_with_start};
use crate::session::read::format;
use crate::session::read::hashed::Hashed;
use crate::session::read::packed;
use crate::session::read::parallel::SPLIT;
use crate::session::read::parser::{Position, ValueUnit};
use crate::session::read::sanitize;
use crate::session::read::segments::Segment;
use crate::session::read::source::{SIDECAR_LIMIT_BYTES, Source, UnreadableFile};
use crate::session::read::tail::Tail;
use crate::session::tree::Bridge;
use crate::session::tree::facts::Facts;
use crate::session::tree::skeleton::{HashedSpan, Skeleton};

/// How much is read at a time: large enough that calls do not count, small enough for a core's own cache.
const CHUNK_BYTES: usize = 1024 * 1024;

/// How to read.
#[derive(Clone, Copy)]
pub struct ReadOptions<'a> {
    /// The current time: times far in its future are ignored.
    pub now: Timestamp,
    /// How to treat missing parents.
    pub bridge: Bridge,
    /// Finds the session that another one begins in.
    pub find: &'a dyn Fn(&str) -> Option<Source>,
    /// Returns the project of a directory: [`project::of`], or a cache of it.
    pub project: &'a dyn Fn(&Path) -> PathBuf,
    /// Masks secrets in everything that is read of the session; `None` reads what is there.
    pub mask: Option<&'a Arc<Redactor>>,
}

impl ReadOptions<'_> {
    /// Options that read a session by itself and leave gaps open.
    pub fn plain(now: Timestamp) -> ReadOptions<'static> {
        ReadOptions { now, bridge: Bridge::AsTheAgent, find: &|_| None, project: &project::of, mask: None }
    }
}

impl Session {
    /// Reads a whole session.
    pub fn open(source: &Source, reading: &ReadOptions<'_>) -> Result<Session> {
        open_within(source, reading, &mut Vec::new())
    }

    /// Reads a session from bytes, such as standard input.
    pub fn from_bytes(dialect: &'static dyn Dialect, bytes: Vec<u8>, reading: &ReadOptions<'_>) -> Session {
        let (bytes, torn) = packed::unpacked(bytes);
        let format = format::of_bytes(dialect, &bytes);
        let layout = Layout { root: PathBuf::new(), pattern: "-", companions: &[], sidecar: None, format };
        let source = Source::new(dialect, PathBuf::from("-"), layout);
        let mut files = Files::memory(bytes);
        files.0[0].torn = torn;
        // Reading from memory does not fail.
        let read = take_files(&source, files, reading);
        let empty = |_| (Session::empty(source, Files::memory(Vec::new()), reading, true), Vec::new());
        let (mut session, segments) = read.unwrap_or_else(empty);
        session.finish(segments, reading, &mut Vec::new());
        session
    }

    pub(crate) fn empty(source: Source, files: Files, reading: &ReadOptions<'_>, whole: bool) -> Session {
        let name = |(at, file): (usize, &OpenFile)| {
            (at > 0).then(|| file.path.file_name().unwrap_or_default().to_string_lossy().into_owned())
        };
        let skeleton = Skeleton {
            file_names: files.0.iter().enumerate().map(name).collect(),
            joins_fragments: source.dialect.traits().repeated_id == RepeatedId::Join,
            ..Skeleton::default()
        };
        let tail = Tail {
            at: Position { offset: 0, line: u32::from(whole), file: 0 },
            pending: Vec::new(),
            skipped: 0,
            before_pending: None,
            base: Base::Unknown,
            bridge: reading.bridge,
            hashed: Hashed::default(),
            now: reading.now,
        };
        let sidecar = Facts::default();
        let mask = reading.mask.cloned().map(Mask::new);
        Session { source, files, skeleton, sidecar, whole, tail, derived: Derived::default(), mask }
    }

    /// Parses a whole file up to its last LF.
    fn take_file(&mut self, file: &OpenFile, at: u16) -> Result<()> {
        (self.tail.at, self.tail.skipped) = (Position { offset: 0, line: 1, file: at }, 0);
        if let Contents::Rows(table) = &file.contents {
            let mut next = self.tail.at;
            table.each(&file.path, |offset, row| {
                next.offset = offset;
                let mut parser = self.parser(ValueUnit::Line);
                match row {
                    Ok(json) => parser.value(json, next),
                    Err(length) => parser.too_long(length, next),
                }
                let bases = std::mem::take(&mut parser.bases);
                self.note_base(bases);
                next.line = next.line.saturating_add(1);
            })?;
            self.tail.at = next;
            return Ok(());
        }
        if self.value_unit() == ValueUnit::Line {
            self.take_in_parallel(file, SPLIT)?;
        }
        let left = file.len()?.saturating_sub(self.tail.at.offset);
        if left == 0 {
            return Ok(());
        }
        let mut reader = file.loader(self.tail.at.offset)?;
        self.tail.pending.reserve(CHUNK_BYTES.min(usize::try_from(left).unwrap_or(CHUNK_BYTES)) + 1);
        loop {
            let start = self.tail.pending.len();
            let chunk = CHUNK_BYTES.max(start) as u64;
            if (&mut reader).take(chunk).read_to_end(&mut self.tail.pending).at(&file.path)? == 0 {
                // A line may be most of the file, and the session lives longer.
                self.tail.pending.shrink_to_fit();
                return Ok(());
            }
            self.take_lines(start);
        }
    }

    /// Reports a file beside the log that is there and cannot be read.
    pub(crate) fn report_unreadable(&mut self, file: &UnreadableFile) {
        self.skeleton
            .report_beside(&file.path, IssueKind::UnreadableFile, format!("{}; it is ignored", file.why));
    }

    /// Reads the facts in the file beside the log.
    pub(crate) fn read_sidecar(&mut self, now: Timestamp) {
        self.take_sidecar(read_sidecar(&self.source, now));
    }

    fn take_sidecar(&mut self, sidecar: SidecarRead) {
        self.sidecar = sidecar.facts;
        if let Some((path, kind, detail)) = sidecar.issue {
            self.skeleton.report_beside(&path, kind, detail);
        }
    }

    /// Opens the base session, joins the files, parses the unfinished last line, and derives the tree.
    pub(crate) fn finish(&mut self, segments: Vec<Segment>, reading: &ReadOptions<'_>, within: &mut Vec<String>) {
        if self.value_unit() == ValueUnit::Document {
            // A document has no lines to count.
            self.tail.at.line = 0;
            self.take_rest(ValueUnit::Document);
        }
        let own = self.skeleton.entries.len();
        if let Base::Named(origin) = std::mem::replace(&mut self.tail.base, Base::Unknown) {
            base::inherit(self, &origin, reading, within);
            self.tail.base = Base::Followed;
        }
        self.place_segments(segments, self.skeleton.entries.len() - own);
        self.update();
    }
}

/// How much before the end of a file is read at once. Agents that repeat a title do so at least this often.
pub(crate) const NEAR_END_BYTES: u64 = 64 * 1024;

/// How much of the beginning is read with the first call: nearly all sessions show there what they are about.
const START_BYTES: usize = 8 * 1024;

/// How many lines that look like titles are parsed: a conversation can be about them.
const TITLE_LINES: usize = 32;

/// The lines that contain a text, each with its LF.
fn lines_with<'b>(bytes: &'b [u8], text: &str) -> Vec<&'b [u8]> {
    let finder = memchr::memmem::Finder::new(text);
    let (mut lines, mut rest) = (Vec::new(), bytes);
    while let Some(at) = finder.find(rest) {
        let start = memchr::memrchr(b'\n', &rest[..at]).map_or(0, |before| before + 1);
        let end = memchr::memchr(b'\n', &rest[at..]).map_or(rest.len(), |after| at + after + 1);
        lines.push(&rest[start..end]);
        rest = &rest[end..];
    }
    lines
}

/// The two ends of a file of lines. The file is opened once, even if more and more of it is read.
pub(crate) struct FileEnds<'a> {
    source: &'a Source,
    reading: &'a ReadOptions<'a>,
    file: OpenFile,
    sidecar: OnceCell<SidecarRead>,
    near_end: OnceCell<Arc<Vec<u8>>>,
    pub(crate) size_bytes: u64,
}

impl<'a> FileEnds<'a> {
    /// Returns `None` for a compressed file, for one without lines and for a session of several: those are read whole.
    pub(crate) fn open(source: &'a Source, reading: &'a ReadOptions<'a>) -> Result<Option<FileEnds<'a>>> {
        if !matches!(source.layout.format, Format::Lines) || !source.earlier.is_empty() {
            return Ok(None);
        }
        let (file, size_bytes) = open_with_start(&source.path, START_BYTES)?;
        let is_of_lines = matches!(file.contents, Contents::Disk(_)) && !file.is_database;
        if !is_of_lines {
            return Ok(None);
        }
        Ok(Some(FileEnds { source, reading, file, sidecar: OnceCell::new(), near_end: OnceCell::new(), size_bytes }))
    }

    /// Reads the whole session.
    pub(crate) fn whole(self) -> Result<Session> {
        let (files, unreadable) = self.source.open_beside(self.file)?;
        read_open(self.source, files, unreadable, None, self.reading, &mut Vec::new())
    }

    /// Reads the lines that end in the first `window` bytes.
    pub(crate) fn start(&self, window: u64) -> Result<Session> {
        let mut bytes = self.file.read_at(0, window.min(self.size_bytes))?;
        bytes.truncate(memchr::memrchr(b'\n', &bytes).map_or(0, |last| last + 1));
        Ok(self.session(bytes, 0))
    }

    /// Reads the lines that begin in the last `window` bytes.
    pub(crate) fn end(&self, window: u64) -> Result<Session> {
        let (bytes, from) = self.last_lines(window)?;
        Ok(self.session(bytes, from))
    }

    /// The last title near the end, by a text that is in every line with one.
    pub(crate) fn last_title(&self, mark: &str) -> Result<Option<Title>> {
        // Nearly all files have none: look before lines are split.
        if memchr::memmem::find(self.near_end()?.0, mark.as_bytes()).is_none() {
            return Ok(None);
        }
        let (bytes, from) = self.last_lines(NEAR_END_BYTES)?;
        Ok(self.last_title_of(&lines_with(&bytes, mark), from))
    }

    /// The last title in some lines. One that a person gave wins.
    fn last_title_of(&self, lines: &[&[u8]], offset: u64) -> Option<Title> {
        let mut best: Option<Title> = None;
        for line in lines.iter().rev().take(TITLE_LINES) {
            let title = self.session(line.to_vec(), offset).title().cloned();
            if title.as_ref().map(|title| title.source) > best.as_ref().map(|best| best.source) {
                best = title;
            }
            if best.as_ref().is_some_and(|best| best.source == TitleSource::Manual) {
                break;
            }
        }
        best
    }

    /// The lines that begin in the last `window` bytes, and where they begin.
    fn last_lines(&self, window: u64) -> Result<(Vec<u8>, u64)> {
        let start = self.size_bytes.saturating_sub(window);
        // One byte earlier: if it is an LF, the window begins with a whole line.
        let from = start.saturating_sub(1);
        let read;
        let bytes = if window <= NEAR_END_BYTES {
            let (near_end, begin) = self.near_end()?;
            // The file may have been cut since its size was asked for.
            near_end.get((from - begin) as usize..).unwrap_or_default()
        } else {
            read = self.file.read_at(from, self.size_bytes - from)?;
            read.as_slice()
        };
        let skipped = if start == 0 { 0 } else { memchr::memchr(b'\n', bytes).map_or(bytes.len(), |at| at + 1) };
        Ok((bytes[skipped..].to_vec(), from + skipped as u64))
    }

    /// The last [`NEAR_END_BYTES`] with the byte before them, and where they begin: the end and the title are found there.
    fn near_end(&self) -> Result<(&[u8], u64)> {
        let begin = self.near_end_begins();
        if let Some(bytes) = self.near_end.get() {
            return Ok((bytes, begin));
        }
        let bytes = self.file.read_at(begin, self.size_bytes - begin)?;
        Ok((self.near_end.get_or_init(|| Arc::new(bytes)), begin))
    }

    fn near_end_begins(&self) -> u64 {
        self.size_bytes.saturating_sub(NEAR_END_BYTES + 1)
    }

    fn session(&self, bytes: Vec<u8>, offset: u64) -> Session {
        let file = self.file.shared().map(|mut file| {
            let near_end = self.near_end.get().map(|bytes| (self.near_end_begins(), Arc::clone(bytes)));
            file.loaded.extend(near_end);
            file
        });
        let files = Files(file.into_iter().collect());
        let mut session = Session::empty(self.source.clone(), files, self.reading, false);
        let sidecar = self.sidecar.get_or_init(|| read_sidecar(self.source, self.reading.now));
        session.take_sidecar(sidecar.clone());
        session.tail.at.offset = offset;
        session.tail.pending = bytes;
        session.take_lines(0);
        session.update();
        session
    }
}

pub(crate) fn open_within(source: &Source, reading: &ReadOptions<'_>, within: &mut Vec<String>) -> Result<Session> {
    let lost_log = match source.log()? {
        Some(Ok(log)) => return open_within(&log, reading, within),
        Some(Err(path)) => Some(path),
        None => None,
    };
    let (files, unreadable) = source.open()?;
    read_open(source, files, unreadable, lost_log, reading, within)
}

/// Reads a session whose files are open.
fn read_open(
    source: &Source,
    files: Files,
    unreadable: Vec<UnreadableFile>,
    lost_log: Option<String>,
    reading: &ReadOptions<'_>,
    within: &mut Vec<String>,
) -> Result<Session> {
    let (mut session, segments) = take_files(source, files, reading)?;
    unreadable.iter().for_each(|file| session.report_unreadable(file));
    session.report_copies();
    if let Some(path) = lost_log {
        let detail = format!("its log {} cannot be read; only the row is used", quoted(&path));
        let place = Place { offset: 0, length: 0, line: 1, file: 0 };
        session.skeleton.report(place, IssueKind::LogMissing, detail);
    }
    session.read_sidecar(reading.now);
    session.finish(segments, reading, within);
    Ok(session)
}

/// Parses the lines, the document or the rows of every file, which are not joined yet.
fn take_files(source: &Source, files: Files, reading: &ReadOptions<'_>) -> Result<(Session, Vec<Segment>)> {
    let mut session = Session::empty(source.clone(), files, reading, true);
    let files = std::mem::replace(&mut session.files, Files(Vec::new()));
    let (mut first_base, mut segments) = (Base::Unknown, Vec::new());
    session.skeleton.has_segments = !source.earlier.is_empty();
    // The first file comes last: its unfinished line stays pending.
    for (at, file) in files.0.iter().enumerate().rev() {
        let start = session.skeleton.entries.len();
        match session.take_file(file, at as u16) {
            // What cannot be read beside the log does not hide it.
            Err(error) if at > 0 => {
                session.report_unreadable(&UnreadableFile::new(file.path.clone(), &error));
            }
            taken => taken?,
        }
        if let Some(why) = &file.torn {
            let Position { offset, line, file } = session.tail.at;
            session.skeleton.report(Place { offset, length: 0, line, file }, IssueKind::Torn, why.clone());
        }
        if at > 0 {
            session.take_rest(ValueUnit::Line);
        }
        if !source.earlier.is_empty() {
            let base = std::mem::replace(&mut session.tail.base, Base::Unknown);
            if at + 1 == files.0.len() {
                // Only the base of the oldest one is another session.
                first_base = base;
            } else {
                segments.push(Segment { file: at as u16, start, base });
            }
        }
    }
    if !source.earlier.is_empty() {
        session.tail.base = first_base;
    }
    session.files = files;
    Ok((session, segments))
}

/// A sidecar as it was read.
#[derive(Clone, Default)]
struct SidecarRead {
    facts: Facts,
    issue: Option<(PathBuf, IssueKind, String)>,
}

/// Reads the file beside the log. The log has precedence over it, so only what makes it useless is reported.
fn read_sidecar(source: &Source, now: Timestamp) -> SidecarRead {
    let Some(path) = source.sidecar() else { return SidecarRead::default() };
    let useless = |kind: IssueKind, detail: String| SidecarRead {
        facts: Facts::default(),
        issue: Some((path.clone(), kind, detail)),
    };
    let bytes = match regular_file::read(&path, SIDECAR_LIMIT_BYTES, Links::Follow) {
        Ok(bytes) => bytes,
        // It was there a moment ago: its writer replaces it.
        Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound && !regular_file::is_there(&path) => {
            return SidecarRead::default();
        }
        Err(error) => return useless(IssueKind::UnreadableFile, format!("{error}; it is ignored")),
    };
    let mut skeleton = Skeleton::default();
    let place = Place { offset: 0, length: 0, line: 0, file: 0 };
    let span = HashedSpan { place, hash: 0 };
    let read = source
        .dialect
        .sidecar(&sanitize::whole(&bytes), &mut |event| skeleton.apply(event, place, span, now));
    match read {
        Ok(()) => SidecarRead { facts: skeleton.facts, issue: None },
        Err(_) => {
            let detail = format!("{}: not a JSON object; it is ignored", path.display());
            useless(IssueKind::DamagedSidecar, detail)
        }
    }
}
