//! A session's file while it grows, is cut, replaced, deleted or not there yet.

use std::fs::Metadata;

use xxhash_rust::xxh3::Xxh3;

use super::{Begin, Follower, Update};
use crate::dialect::layout::Format;
use crate::model::error::{Error, Result};
use crate::model::home::Home;
use crate::session::Session;
use crate::session::read::detect;
use crate::session::read::files::{Contents, open_file, with_ending};
use crate::session::read::open::ReadOptions;
use crate::session::read::source::Source;
use crate::view::page::Page;

/// How much is read at a time.
const CHUNK_BYTES: u64 = 1024 * 1024;

/// Bytes before the end that must still be the same: a file that was cut and has grown again is another one.
const SEAM_BYTES: u64 = 512;

/// How often a file that is changed all the time is read: one that is only appended to may be taken as it was read last.
const READS: usize = 3;

/// How many messages a window holds at least, so that late results find their calls.
const WINDOW_MESSAGES: usize = 8;

/// A file that is followed. It reads only what was appended; of a large file it begins with the end.
pub struct Growing {
    source: Source,
    /// The home to detect the dialect with, if it was not given.
    guess_in: Option<Home>,
    /// Whether more of the file may show another dialect.
    guessed: bool,
    begin: Begin,
    open: Option<Open>,
    gone: bool,
}

struct Open {
    follower: Follower,
    /// Whether the file is appended to; else each change means reading it again.
    grows: bool,
    /// The last bytes that were read.
    seam: Vec<u8>,
    stamp: Stamp,
}

/// What reading on found.
enum CaughtUp {
    /// The file is what was read of it, and has perhaps grown.
    Continued,
    /// It was written and is no longer than what was read of it, or was written while it was read.
    Touched,
    /// It is not what was read of it.
    Changed(Change),
}

/// The state of a file, as far as it shows without reading.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) length: u64,
    modified: Option<std::time::SystemTime>,
    /// Which file it is, whatever its name.
    pub(super) file: u64,
    /// A database writes beside its file first.
    beside: Option<(u64, Option<std::time::SystemTime>)>,
}

/// What a look found.
pub struct Look {
    /// What happened to the file, unless it only grew.
    pub change: Option<Change>,
    /// What changed in the messages.
    pub updates: Vec<Update>,
}

/// What a look at the file alone found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refreshed {
    /// Nothing is new.
    Unchanged,
    /// The file does not exist (any more).
    Gone,
    /// It was read; it may not only have grown.
    Changed(Option<Change>),
}

/// What can happen to a file besides growing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// It does not exist (any more).
    Gone,
    /// It exists (again).
    Appeared,
    /// It was truncated, or rewritten in place.
    Rewritten,
    /// Another file has its name now.
    Replaced,
}

impl Growing {
    /// Follows a source, which may not exist yet.
    pub fn new(source: Source, begin: Begin) -> Growing {
        Growing { source, guess_in: None, guessed: false, begin, open: None, gone: false }
    }

    /// Follows a file whose dialect is detected: an empty file may become any dialect's, and another file may take its place.
    pub fn guessing(source: Source, begin: Begin, home: Home) -> Growing {
        Growing { guess_in: Some(home), guessed: true, ..Growing::new(source, begin) }
    }

    /// The source that is followed.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Continues with a file that was moved; false if this is not the file that is followed.
    pub(crate) fn moved_to(&mut self, source: &Source) -> bool {
        let Some(open) = &mut self.open else { return false };
        if source.dialect.name() != self.source.dialect.name() || !open.is_at(source).unwrap_or(false) {
            return false;
        }
        self.source = source.clone();
        open.follower.session.source = source.clone();
        true
    }

    /// The session as it was at the last look.
    pub fn session(&mut self, reading: &ReadOptions<'_>) -> Option<&Session> {
        self.open.as_mut().map(|open| open.follower.session(reading))
    }

    /// Looks at the file, and returns what changed since the last look.
    pub fn look(&mut self, reading: &ReadOptions<'_>) -> Result<Look> {
        let change = match self.refresh(reading)? {
            Refreshed::Unchanged => return Ok(Look { change: None, updates: Vec::new() }),
            Refreshed::Gone => return Ok(Look { change: Some(Change::Gone), updates: Vec::new() }),
            Refreshed::Changed(change) => change,
        };
        let Some(open) = &mut self.open else { return Ok(Look { change, updates: Vec::new() }) };
        match open.follower.updates(reading) {
            Ok(updates) => Ok(Look { change, updates }),
            // It was rewritten between two reads: the next look reads it again.
            Err(Error::Changed(_)) => {
                self.doubt();
                Ok(Look { change, updates: Vec::new() })
            }
            Err(error) => Err(error),
        }
    }

    /// Reads all of the file at the next look: what was read of it is not what it holds.
    pub fn doubt(&mut self) {
        if let Some(open) = &mut self.open {
            (open.grows, open.stamp.length) = (false, u64::MAX);
        }
    }

    /// Reads what was appended, or all of a file that is another one. [`Growing::session`] is then the session as it is now.
    pub fn refresh(&mut self, reading: &ReadOptions<'_>) -> Result<Refreshed> {
        let change = match (stamp(&self.source), self.open.take()) {
            (Err(error), before) => {
                self.open = before;
                return self.missing(error);
            }
            (Ok(stamp), None) => {
                self.guess_again()?;
                self.read_anew(None, stamp, reading)?;
                self.gone.then_some(Change::Appeared)
            }
            (Ok(stamp), Some(open)) if stamp == open.stamp && !self.gone && open.has_its_seam() => {
                self.open = Some(open);
                return Ok(Refreshed::Unchanged);
            }
            (Ok(stamp), Some(mut open)) => match open.catch_up(stamp, reading) {
                Ok(CaughtUp::Continued) => {
                    let is_anothers = self.guessed && self.guess_again().unwrap_or(false);
                    if !is_anothers && open.follower.has_its_calls(reading) {
                        self.open = Some(open);
                    } else {
                        self.read_anew(Some(open.follower), stamp, reading)?;
                    }
                    self.gone.then_some(Change::Appeared)
                }
                Ok(CaughtUp::Touched) => {
                    let before = open.follower.session.content();
                    self.read_anew(Some(open.follower), stamp, reading)?;
                    let is_other = self.open.as_ref().is_none_or(|open| open.follower.session.content() != before);
                    is_other.then_some(Change::Rewritten).or(self.gone.then_some(Change::Appeared))
                }
                Ok(CaughtUp::Changed(change)) => {
                    // One that cannot be opened now fails to be read, too, and is looked at again.
                    drop(self.guess_again());
                    self.read_anew(Some(open.follower), stamp, reading)?;
                    Some(if self.gone { Change::Appeared } else { change })
                }
                Err(error) => {
                    self.open = Some(open);
                    return Err(error);
                }
            },
        };
        self.gone = false;
        Ok(Refreshed::Changed(change))
    }

    /// How much of the file was read, if it is one that is appended to: every change of another one means reading all of it.
    pub fn offset(&self) -> Option<u64> {
        self.open.as_ref().filter(|open| open.grows).map(|open| open.follower.session.read_bytes())
    }

    /// Detects the dialect again, and returns whether it changed.
    fn guess_again(&mut self) -> Result<bool> {
        let Some(home) = &self.guess_in else { return Ok(false) };
        let guess = detect::guess_file(&self.source.path, home)?;
        self.guessed = !guess.settled;
        let source = Source::file(guess.dialect, &self.source.path);
        let format = |source: &Source| std::mem::discriminant(&source.layout.format);
        if source.dialect.name() == self.source.dialect.name() && format(&source) == format(&self.source) {
            return Ok(false);
        }
        self.source = source;
        Ok(true)
    }

    /// A missing file is reported once; every other problem is an error.
    fn missing(&mut self, error: Error) -> Result<Refreshed> {
        match &error {
            Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                let is_known = std::mem::replace(&mut self.gone, true);
                Ok(if is_known { Refreshed::Unchanged } else { Refreshed::Gone })
            }
            _ => Err(error),
        }
    }

    /// Reads the file, and again if it was changed meanwhile: half of it may have been cut off and written anew.
    fn read_anew(&mut self, follower: Option<Follower>, stamp: Stamp, reading: &ReadOptions<'_>) -> Result<()> {
        let (mut follower, mut before) = (follower, stamp);
        for reads_left in (0..READS).rev() {
            let tail = Tail::of(&self.source, before.length);
            self.read_once(follower.take(), before, reading)?;
            let Ok(now) = self::stamp(&self.source) else { break };
            let is_longer_at_most =
                now.file == before.file && now.length >= before.length && Tail::of(&self.source, before.length) == tail;
            if now == before && is_longer_at_most {
                break;
            }
            if reads_left == 0 {
                if !is_longer_at_most {
                    self.doubt();
                }
                break;
            }
            (follower, before) = (self.open.take().map(|open| open.follower), now);
        }
        Ok(())
    }

    fn read_once(&mut self, follower: Option<Follower>, stamp: Stamp, reading: &ReadOptions<'_>) -> Result<()> {
        let session = match self.begin {
            Begin::Everything => Session::open(&self.source, reading),
            Begin::Last(messages) => page(&self.source, messages, reading),
            Begin::At(_) => page(&self.source, 0, reading),
        };
        let follower = match (session, follower) {
            (Ok(session), Some(mut follower)) => {
                follower.replace(session);
                follower
            }
            (Ok(session), None) => Follower::new(session, self.begin),
            (Err(error), Some(follower)) => {
                // Nothing changes here; the next look tries again.
                let stamp = Stamp { length: u64::MAX, ..stamp };
                self.open = Some(Open { follower, grows: false, seam: Vec::new(), stamp });
                return Err(error);
            }
            (Err(error), None) => return Err(error),
        };
        self.open = Some(Open::new(follower, stamp)?);
        Ok(())
    }
}

/// The bytes before a place of a file, if they can be read: its clock may be too slow to show that they are others now.
#[derive(PartialEq, Eq)]
struct Tail(Option<Vec<u8>>);

impl Tail {
    fn of(source: &Source, end: u64) -> Tail {
        let from = end.saturating_sub(SEAM_BYTES);
        let is_of_lines = matches!(source.layout.format, Format::Lines);
        Tail(
            is_of_lines
                .then(|| open_file(&source.path).and_then(|file| file.read_at(from, end - from)).ok())
                .flatten(),
        )
    }
}

impl Open {
    fn new(follower: Follower, stamp: Stamp) -> Result<Open> {
        let grows = follower.session.appended_offset().is_some();
        let mut open = Open { follower, grows, seam: Vec::new(), stamp };
        open.remember_seam()?;
        Ok(open)
    }

    /// Whether its file is at this source. The system reuses the number of a deleted file, so the content must match too.
    fn is_at(&self, source: &Source) -> Result<bool> {
        let stamp = stamp(source)?;
        if stamp.file != self.stamp.file || !self.grows {
            return Ok(stamp == self.stamp);
        }
        let from = self.follower.session.read_bytes().saturating_sub(self.seam.len() as u64);
        Ok(open_file(&source.path)?.read_at(from, self.seam.len() as u64)? == self.seam)
    }

    fn remember_seam(&mut self) -> Result<()> {
        let (session, taken) = (&self.follower.session, self.follower.session.read_bytes());
        if let (true, Some(file)) = (self.grows, session.files.0.first()) {
            let from = taken.saturating_sub(SEAM_BYTES);
            self.seam = file.read_at(from, taken - from)?;
        }
        Ok(())
    }

    /// Reads what was appended, or returns why the whole file must be read again.
    fn catch_up(&mut self, stamp: Stamp, reading: &ReadOptions<'_>) -> Result<CaughtUp> {
        let taken = self.follower.session.read_bytes();
        if !self.grows {
            return Ok(CaughtUp::Changed(Change::Rewritten));
        }
        if stamp.file != self.stamp.file {
            return Ok(CaughtUp::Changed(Change::Replaced));
        }
        if stamp.length < taken || !self.has_its_seam() {
            return Ok(CaughtUp::Changed(Change::Rewritten));
        }
        if stamp.length == taken {
            return Ok(CaughtUp::Touched);
        }
        let mut tail = self.seam.clone();
        loop {
            let taken = self.follower.session.read_bytes();
            let Some(file) = self.follower.session.files.0.first() else { break };
            let bytes = file.read_at(taken, CHUNK_BYTES)?;
            if bytes.is_empty() {
                break;
            }
            self.follower.push(&bytes, reading);
            tail.extend_from_slice(&bytes);
            tail.drain(..tail.len().saturating_sub(SEAM_BYTES as usize));
        }
        // It may have been cut and have grown again while it was read.
        if !self.is_seam(taken) {
            return Ok(CaughtUp::Changed(Change::Rewritten));
        }
        // As it was seen before the bytes were read: if it grew meanwhile, the next look compares what was read, which may be torn.
        (self.stamp, self.seam) = (stamp, tail);
        Ok(CaughtUp::Continued)
    }

    /// Whether the last bytes that were read are still there: a file can be cut and grow again between two ticks of its clock.
    fn has_its_seam(&self) -> bool {
        self.is_seam(self.follower.session.read_bytes())
    }

    /// Whether the seam stands before this place.
    fn is_seam(&self, end: u64) -> bool {
        let (Some(file), length) = (self.follower.session.files.0.first(), self.seam.len() as u64) else { return true };
        !self.grows || file.read_at(end.saturating_sub(length), length).is_ok_and(|seam| seam == self.seam)
    }
}

impl Session {
    /// A number for what its records are in its file.
    fn content(&self) -> u64 {
        let mut content = Xxh3::new();
        for entry in &self.skeleton.entries {
            content.update(&entry.hash.to_le_bytes());
            content.update(&entry.place.offset.to_le_bytes());
        }
        content.digest()
    }

    /// How much of its file was read, if that is one that is appended to.
    pub fn appended_offset(&self) -> Option<u64> {
        let on_disk = self.files.0.first().is_some_and(|file| matches!(file.contents, Contents::Disk(_)));
        (on_disk && matches!(self.source.layout.format, Format::Lines)).then(|| self.read_bytes())
    }
}

fn page(source: &Source, messages: usize, reading: &ReadOptions<'_>) -> Result<Session> {
    Session::open_page(source, reading, Page { messages: messages.max(WINDOW_MESSAGES), before: None })
}

pub(super) fn stamp(source: &Source) -> Result<Stamp> {
    use crate::model::error::At;
    let metadata = std::fs::metadata(&source.path).at(&source.path)?;
    let beside = match source.layout.format {
        Format::Rows(_) => std::fs::metadata(with_ending(&source.path, "-wal")).ok(),
        Format::Lines | Format::Document | Format::ByContent { .. } => None,
    };
    let beside = beside.map(|metadata| (metadata.len(), metadata.modified().ok()));
    let modified = metadata.modified().ok();
    Ok(Stamp { length: metadata.len(), modified, file: identity(&metadata), beside })
}

/// Which file it is, whatever its name.
#[cfg(unix)]
pub(super) fn identity(metadata: &Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt;
    metadata.ino() ^ metadata.dev().rotate_left(32)
}

/// Which file it is, whatever its name: its creation time, where the system does not say more.
#[cfg(not(unix))]
pub(super) fn identity(metadata: &Metadata) -> u64 {
    let made = metadata.created().ok().and_then(|made| made.duration_since(std::time::UNIX_EPOCH).ok());
    made.map_or(0, |made| made.as_nanos() as u64)
}
