//! The driver: a source becomes a session; whole, from its end, or as it grows. One path for all three.

use std::io::Read;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::dialect::Dialect;
use crate::dialect::layout::{Format, Layout};
use crate::model::error::{At, Result};
use crate::model::issue::{IssueKind, quoted};
use crate::model::place::Place;
use crate::model::project;
use crate::session::Session;
use crate::session::derived::Derived;
use crate::session::read::base::{self, Base};
use crate::session::read::files::{Contents, Files, OpenFile, head_of, open_file};
use crate::session::read::format;
use crate::session::read::packed;
use crate::session::read::parallel::CUT;
use crate::session::read::parser::{Position, ValueUnit};
use crate::session::read::rows::RowContent;
use crate::session::read::sanitize;
use crate::session::read::source::{SIDECAR_LIMIT_BYTES, Source};
use crate::session::read::tail::Tail;
use crate::session::tree::Bridge;
use crate::session::tree::facts::Facts;
use crate::session::tree::skeleton::{HashedSpan, Skeleton};

/// How much is read at a time: large enough that calls do not count, small enough for a core's own cache.
const CHUNK_BYTES: usize = 1024 * 1024;

/// How to read.
#[derive(Clone, Copy)]
pub struct ReadOptions<'a> {
    /// The clock: instants far in its future do not count.
    pub now: Timestamp,
    /// What to do about missing parents.
    pub bridge: Bridge,
    /// Finds the session that another one begins in.
    pub find: &'a dyn Fn(&str) -> Option<Source>,
    /// The project that work in a directory belongs to: [`project::of`], or what remembers its answers.
    pub project: &'a dyn Fn(&Path) -> PathBuf,
}

impl ReadOptions<'_> {
    /// Reads a session by itself, gaps left open.
    pub fn plain(now: Timestamp) -> ReadOptions<'static> {
        ReadOptions { now, bridge: Bridge::AsTheAgent, find: &|_| None, project: &project::of }
    }
}

impl Session {
    /// Reads a whole session.
    pub fn open(source: &Source, reading: &ReadOptions<'_>) -> Result<Session> {
        open_within(source, reading, &mut Vec::new())
    }

    /// Reads what was piped in.
    pub fn from_bytes(dialect: &'static dyn Dialect, bytes: Vec<u8>, reading: &ReadOptions<'_>) -> Session {
        let (bytes, torn) = packed::unpacked(bytes);
        let format = format::of_bytes(dialect, &bytes);
        let layout = Layout { root: PathBuf::new(), pattern: "-", companions: &[], sidecar: None, format };
        let source = Source { dialect, path: PathBuf::from("-"), layout, key: None, rows: None };
        let mut files = Files::memory(bytes);
        files.0[0].torn = torn;
        // Memory is always read.
        let read = take_files(&source, files, reading);
        let mut session = read.unwrap_or_else(|_| Session::empty(source, Files::memory(Vec::new()), reading, true));
        session.finish(reading, &mut Vec::new());
        session
    }

    fn empty(source: Source, files: Files, reading: &ReadOptions<'_>, whole: bool) -> Session {
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
        Session { source, files, skeleton, sidecar, whole, tail, derived: Derived::default() }
    }

    /// Takes in a whole file, but for what comes after its last LF.
    fn take_file(&mut self, file: &OpenFile, at: u16) -> Result<()> {
        (self.tail.at, self.tail.skipped) = (Position { offset: 0, line: 1, file: at }, 0);
        if let Contents::Rows(table) = &file.contents {
            let mut next = self.tail.at;
            table.each(&file.path, |offset, row| {
                next.offset = offset;
                let mut intake = self.intake(ValueUnit::Line);
                match row {
                    RowContent::Json(json) => intake.value(json, next),
                    RowContent::TooLong(length) => intake.too_long(length, next),
                }
                let bases = std::mem::take(&mut intake.bases);
                self.note_base(bases);
                next.line = next.line.saturating_add(1);
            })?;
            self.tail.at = next;
            return Ok(());
        }
        if self.grain() == ValueUnit::Line {
            self.take_pieces(file, CUT)?;
        }
        let mut reader = file.loader(self.tail.at.offset)?;
        let left = file.len()?.saturating_sub(self.tail.at.offset);
        self.tail.pending.reserve(CHUNK_BYTES.min(usize::try_from(left).unwrap_or(CHUNK_BYTES)) + 1);
        loop {
            let start = self.tail.pending.len();
            let chunk = CHUNK_BYTES.max(start) as u64;
            if (&mut reader).take(chunk).read_to_end(&mut self.tail.pending).at(&file.path)? == 0 {
                return Ok(());
            }
            self.take_lines(start);
        }
    }

    /// Follows the base, looks at the unfinished end, and derives the tree.
    pub(crate) fn finish(&mut self, reading: &ReadOptions<'_>, within: &mut Vec<String>) {
        if self.grain() == ValueUnit::Document {
            // Lines of a document mean nothing.
            self.tail.at.line = 0;
            self.take_rest(ValueUnit::Document);
        }
        if let Base::Told(origin) = std::mem::replace(&mut self.tail.base, Base::Untold) {
            base::inherit(self, &origin, reading, within);
            self.tail.base = Base::Followed;
        }
        self.judge();
    }
}

/// The two ends of a file of lines: it is opened once, however much is read of it.
pub(crate) struct Ends<'a> {
    source: &'a Source,
    reading: &'a ReadOptions<'a>,
    file: OpenFile,
    sidecar: Facts,
    pub(crate) size_bytes: u64,
}

impl<'a> Ends<'a> {
    /// `None` for what must be unpacked or is no file of lines: that has no end to begin with.
    pub(crate) fn of(source: &'a Source, reading: &'a ReadOptions<'a>) -> Result<Option<Ends<'a>>> {
        if !matches!(source.layout.format, Format::Lines) {
            return Ok(None);
        }
        let Some(file) = open_file(&source.path)?.shared().filter(|file| !file.is_database) else { return Ok(None) };
        let size_bytes = file.len()?;
        Ok(Some(Ends { source, reading, file, sidecar: read_sidecar(source, reading.now), size_bytes }))
    }

    /// Reads the lines that end in the first `window` bytes.
    pub(crate) fn start(&self, window: u64) -> Result<Session> {
        let mut bytes = self.file.read_at(0, window)?;
        bytes.truncate(memchr::memrchr(b'\n', &bytes).map_or(0, |last| last + 1));
        Ok(self.session(bytes, 0))
    }

    /// Reads the last `window` bytes, from the first line that begins in them.
    pub(crate) fn end(&self, window: u64) -> Result<Session> {
        let from = self.size_bytes.saturating_sub(window);
        // One byte earlier: if it is an LF, the window begins with a whole line.
        let mut bytes = self.file.read_at(from.saturating_sub(1), window + 1)?;
        let skipped = if from == 0 { 0 } else { memchr::memchr(b'\n', &bytes).map_or(bytes.len(), |at| at + 1) };
        bytes.drain(..skipped);
        Ok(self.session(bytes, from.saturating_sub(1) + skipped as u64))
    }

    fn session(&self, bytes: Vec<u8>, offset: u64) -> Session {
        let files = Files(self.file.shared().into_iter().collect());
        let mut session = Session::empty(self.source.clone(), files, self.reading, false);
        session.sidecar = self.sidecar.clone();
        session.tail.at.offset = offset;
        session.tail.pending = bytes;
        session.take_lines(0);
        session.judge();
        session
    }
}

pub(crate) fn open_within(source: &Source, reading: &ReadOptions<'_>, within: &mut Vec<String>) -> Result<Session> {
    let lost_log = match source.log()? {
        Some(Ok(log)) => return open_within(&log, reading, within),
        Some(Err(told)) => Some(told),
        None => None,
    };
    let mut session = take_files(source, source.open()?, reading)?;
    if let Some(told) = lost_log {
        let detail = format!("its log {} is no log that can be read; the row is all there is", quoted(&told));
        let place = Place { offset: 0, length: 0, line: 1, file: 0 };
        session.skeleton.report(place, IssueKind::LogMissing, detail);
    }
    session.sidecar = read_sidecar(source, reading.now);
    session.finish(reading, within);
    Ok(session)
}

/// Takes in the lines, the document or the rows of every file.
fn take_files(source: &Source, files: Files, reading: &ReadOptions<'_>) -> Result<Session> {
    let mut session = Session::empty(source.clone(), files, reading, true);
    let files = std::mem::replace(&mut session.files, Files(Vec::new()));
    // The first file comes last: its end is what stays pending.
    for (at, file) in files.0.iter().enumerate().rev() {
        session.take_file(file, at as u16)?;
        if let Some(why) = &file.torn {
            let Position { offset, line, file } = session.tail.at;
            session.skeleton.report(Place { offset, length: 0, line, file }, IssueKind::Torn, why.clone());
        }
        if at > 0 {
            session.take_rest(ValueUnit::Line);
        }
    }
    session.files = files;
    Ok(session)
}

/// Reads the file beside the log. It is never believed over the log, so whatever is wrong with it matters to nobody.
fn read_sidecar(source: &Source, now: Timestamp) -> Facts {
    let bytes = source.sidecar().and_then(|path| head_of(&path, SIDECAR_LIMIT_BYTES).ok());
    let Some(bytes) = bytes else { return Facts::default() };
    let mut told = Skeleton::default();
    let place = Place { offset: 0, length: 0, line: 0, file: 0 };
    let stand = HashedSpan { place, hash: 0 };
    // An error means that the sidecar is damaged: then it tells nothing.
    match source.dialect.sidecar(&sanitize::whole(&bytes), &mut |event| told.take(event, place, stand, now)) {
        Ok(()) => told.facts,
        Err(_) => Facts::default(),
    }
}
