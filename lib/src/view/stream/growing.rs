//! A session's file while it grows, is cut, replaced, deleted or not there yet.

use std::fs::Metadata;

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
            (Ok(stamp), Some(open)) if stamp == open.stamp && !self.gone => {
                self.open = Some(open);
                return Ok(Look { change: None, updates: Vec::new() });
            }
            (Ok(stamp), Some(mut open)) => match open.catch_up(stamp, reading) {
                Ok(None) => {
                    let is_anothers = self.guessed && self.guess_again().unwrap_or(false);
                    if !is_anothers && open.follower.has_its_calls(reading) {
                        self.open = Some(open);
                    } else {
                        self.read_anew(Some(open.follower), stamp, reading)?;
                    }
                    self.gone.then_some(Change::Appeared)
                }
                Ok(Some(change)) => {
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
        let Some(open) = &mut self.open else { return Ok(Look { change, updates: Vec::new() }) };
        match open.follower.updates(reading) {
            Ok(updates) => Ok(Look { change, updates }),
            // It was rewritten between two reads: the next look reads it again.
            Err(Error::Changed(_)) => {
                (open.grows, open.stamp.length) = (false, u64::MAX);
                Ok(Look { change, updates: Vec::new() })
            }
            Err(error) => Err(error),
        }
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
    fn missing(&mut self, error: Error) -> Result<Look> {
        match &error {
            Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                let change = (!std::mem::replace(&mut self.gone, true)).then_some(Change::Gone);
                Ok(Look { change, updates: Vec::new() })
            }
            _ => Err(error),
        }
    }

    fn read_anew(&mut self, follower: Option<Follower>, stamp: Stamp, reading: &ReadOptions<'_>) -> Result<()> {
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

impl Open {
    fn new(follower: Follower, stamp: Stamp) -> Result<Open> {
        let session = &follower.session;
        let on_disk = session.files.0.first().is_some_and(|file| matches!(file.contents, Contents::Disk(_)));
        let grows = on_disk && matches!(session.source.layout.format, Format::Lines);
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
    fn catch_up(&mut self, stamp: Stamp, reading: &ReadOptions<'_>) -> Result<Option<Change>> {
        let taken = self.follower.session.read_bytes();
        if !self.grows {
            return Ok(Some(Change::Rewritten));
        }
        if stamp.file != self.stamp.file {
            return Ok(Some(Change::Replaced));
        }
        let Some(file) = self.follower.session.files.0.first() else { return Ok(Some(Change::Rewritten)) };
        let seam = file.read_at(taken.saturating_sub(self.seam.len() as u64), self.seam.len() as u64)?;
        if stamp.length < taken || seam != self.seam {
            return Ok(Some(Change::Rewritten));
        }
        loop {
            let taken = self.follower.session.read_bytes();
            let Some(file) = self.follower.session.files.0.first() else { break };
            let bytes = file.read_at(taken, CHUNK_BYTES)?;
            if bytes.is_empty() {
                break;
            }
            self.follower.push(&bytes, reading);
        }
        // As it was seen before the bytes were read: what changes now is noticed at the next look.
        self.stamp = Stamp { length: self.follower.session.read_bytes(), ..stamp };
        self.remember_seam()?;
        Ok(None)
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
