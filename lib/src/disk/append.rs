//! The door through which records reach a log: whole lines, one `write`, under a lock. Earlier bytes never change.
//!
//! ```text
//! lock ─▶ still the same file? ─▶ final LF? ─▶ one write ─▶ all of it? ─▶ unlock
//!            │ no: open anew,       │ no: LF      │ no: cut back, or, where somebody
//!            ▼ header first         ▼ first       ▼ wrote behind it, close the piece with LF
//! ```

mod open_end;
mod warning;

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::inside::Inside;
use crate::disk::{Appended, Disk, Locked, OpenLog, Standing};
use crate::model::error::{At, Error, Result};
use crate::session::read::files::fill_from;
use open_end::open_end;
pub use warning::Warning;

/// How long to wait for another writer: first, at once, in all. A lock is held for one write, so that more is somebody who
/// hangs; among many writers it is free for moments only, so that it is asked for often.
const FIRST_PAUSE_MS: u64 = 1;
const LONGEST_PAUSE_MS: u64 = 10;
const LONGEST_WAIT_MS: u64 = 5_000;

/// A line that is written again this often after a short write, and is short each time, does not fit.
const WRITES_PER_LINE: usize = 2;

/// A file that is replaced again each time that we have found it is not one to write to.
const FILES_FOLLOWED: usize = 100;

/// How much is written again at once after a failed `sync`.
const REWRITTEN_AT_ONCE_BYTES: usize = 64 * 1024;

/// One log that lines are appended to.
pub(crate) struct Appender {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    log: Box<dyn OpenLog>,
    /// What a new file begins with, whole lines.
    header: Vec<u8>,
    /// The first byte of ours that no `sync` has carried.
    unsynced_from: Option<u64>,
    /// Where our last line ended: a file of this length needs no look at its last byte.
    ended_at: Option<u64>,
    /// Whether a `sync` of its folder has carried the file's name.
    name: Name,
    /// The store that it must not leave.
    inside: Option<Inside>,
    /// What to do when another file has the log's name.
    another: Another,
    warnings: Vec<Warning>,
}

/// What becomes of lines when another file has the log's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Another {
    /// They go there.
    TakesLines,
    /// [`Error::Ended`], once: they tell whose they are, and the other file is another session.
    IsToldFirst,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Name {
    Safe,
    Unsafe,
}

impl Appender {
    /// Makes a new log, its folders too, and writes the header. A file that is there is refused.
    pub(crate) fn create(disk: Arc<dyn Disk>, path: &Path, header: Vec<u8>) -> Result<Appender> {
        make_folders(&*disk, path)?;
        let log = disk.create(path).at(path)?;
        let mut appender = Appender::of(disk, path, log, header);
        if !appender.header.is_empty() {
            appender.append(&[])?;
        }
        Ok(appender)
    }

    /// Opens a log that is there.
    pub(crate) fn open(disk: Arc<dyn Disk>, path: &Path, header: Vec<u8>) -> Result<Appender> {
        let log = disk.open(path).at(path)?;
        Ok(Appender::of(disk, path, log, header))
    }

    fn of(disk: Arc<dyn Disk>, path: &Path, log: Box<dyn OpenLog>, header: Vec<u8>) -> Appender {
        // Whoever made the file may have died before its name was safe.
        let (path, name) = (path.to_path_buf(), Name::Unsafe);
        Appender {
            disk,
            path,
            log,
            header,
            unsynced_from: None,
            ended_at: None,
            name,
            inside: None,
            another: Another::TakesLines,
            warnings: Vec::new(),
        }
    }

    /// The same log, with what to do when another file has its name.
    pub(crate) fn where_another(self, another: Another) -> Appender {
        Appender { another, ..self }
    }

    /// The same log, never followed out of a store.
    pub(crate) fn staying(self, inside: Option<Inside>) -> Appender {
        Appender { inside, ..self }
    }

    /// Refuses a path that leads out of the store by now.
    pub(crate) fn check_inside(&self) -> Result<()> {
        self.inside.as_ref().map_or(Ok(()), |inside| inside.check(&*self.disk, &self.path))
    }

    /// Whether somebody else wrote behind our last line.
    pub(crate) fn is_written_behind(&self) -> bool {
        self.ended_at.is_some_and(|end| self.log.len().is_ok_and(|length| length != end))
    }

    /// Says that nobody of ours writes to the log any more; whoever writes next takes the mark away without knowing it.
    pub(crate) fn mark_closed(&self, at: jiff::Timestamp) {
        if self.ended_at.is_some() {
            // A disk that keeps no such times has no marks.
            drop(self.log.set_written(crate::disk::in_use::marked(at)));
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn len(&self) -> Result<u64> {
        self.log.len().at(&self.path)
    }

    /// What happened to the log since it was last asked.
    pub(crate) fn warnings(&mut self) -> Vec<Warning> {
        std::mem::take(&mut self.warnings)
    }

    /// Appends whole lines, all or nothing, and tells where the first of them stands.
    pub(crate) fn append(&mut self, lines: &[u8]) -> Result<u64> {
        self.locked(|appender, length| appender.write(length, lines))
    }

    /// Makes everything that was appended survive a crash.
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.log.sync().at(&self.path)?;
        if let (Name::Unsafe, Some(folder)) = (self.name, self.path.parent()) {
            self.disk.sync_folder(folder).at(folder)?;
        }
        (self.unsynced_from, self.name) = (None, Name::Safe);
        Ok(())
    }

    /// After a failed `sync`: makes sure that these lines stand where they were appended, and that the next `sync` carries
    /// them. What is no longer there is appended.
    ///
    /// The system forgets which bytes a failed `sync` did not carry, and shows them all the same: only bytes that are
    /// written again are carried by the next one. That holds for headers and line ends too.
    pub(crate) fn write_again(&mut self, lines: &mut [(u64, Vec<u8>)]) -> Result<()> {
        self.ended_at = None;
        if !matches!(self.log.is_at(&self.path), Ok(Standing::ThisFile { .. })) {
            self.unsynced_from = None;
        }
        match self.disk.open(&self.path) {
            Ok(log) => self.log = log,
            // Then it is begun anew.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).at(&self.path),
        }
        self.name = Name::Unsafe;
        self.locked(|appender, end| {
            let mut missing = Vec::new();
            for (offset, line) in lines {
                let mut there = vec![0; line.len()];
                let read = fill(&*appender.log, *offset, &mut there).at(&appender.path)?;
                if there[..read] == line[..] {
                    appender.is_unsynced_from(*offset);
                } else {
                    missing.push((offset, line));
                }
            }
            appender.rewrite(end)?;
            for (offset, line) in missing {
                let length = appender.len()?;
                *offset = appender.write(length, line)?;
            }
            Ok(())
        })
    }

    /// Writes everything again that no `sync` has carried.
    fn rewrite(&mut self, end: u64) -> Result<()> {
        let mut at = self.unsynced_from.unwrap_or(end);
        let mut bytes = vec![0; REWRITTEN_AT_ONCE_BYTES];
        while at < end {
            let wanted = bytes.len().min(usize::try_from(end - at).unwrap_or(usize::MAX));
            let read = fill(&*self.log, at, &mut bytes[..wanted]).at(&self.path)?;
            if read == 0 {
                break;
            }
            self.log.rewrite(&self.path, at, &bytes[..read]).at(&self.path)?;
            at += read as u64;
        }
        Ok(())
    }

    /// Does something with the file that has the name, and its length, while nobody else does.
    fn locked<T>(&mut self, work: impl FnOnce(&mut Appender, u64) -> Result<T>) -> Result<T> {
        let worked = self.lock_in_place().and_then(|length| work(self, length));
        // A lock that cannot be given back goes with the handle; what was written is written.
        drop(self.log.unlock());
        worked
    }

    /// Locks the file that the path names now, goes on there, and tells how long it is.
    fn lock_in_place(&mut self) -> Result<u64> {
        for _ in 0..FILES_FOLLOWED {
            self.lock()?;
            let standing = self.log.is_at(&self.path).at(&self.path)?;
            let (warning, log) = match standing {
                Standing::ThisFile { length } => return Ok(length),
                Standing::AnotherFile => {
                    self.check_inside()?;
                    (Warning::Replaced, self.disk.open(&self.path))
                }
                Standing::Nothing => {
                    self.check_inside()?;
                    make_folders(&*self.disk, &self.path)?;
                    (Warning::Deleted, self.disk.create(&self.path))
                }
            };
            use io::ErrorKind::{AlreadyExists, NotFound};
            match log {
                // The old file's lock is nobody's concern: nobody finds that file any more.
                Ok(log) => self.log = log,
                // Somebody was faster.
                Err(error) if matches!(error.kind(), NotFound | AlreadyExists) => continue,
                Err(error) => return Err(error).at(&self.path),
            }
            (self.unsynced_from, self.ended_at, self.name) = (None, None, Name::Unsafe);
            self.surprise_once(warning);
            if self.another == Another::IsToldFirst {
                return Err(Error::Ended(self.path.display().to_string()));
            }
        }
        Err(Error::Busy(self.path.clone()))
    }

    fn lock(&mut self) -> Result<()> {
        if lock_log(&*self.disk, &*self.log, &self.path)? == Locked::Never {
            self.surprise_once(Warning::NoLocks);
        }
        Ok(())
    }

    /// One write of whole lines at the end of the file; the caller holds the lock.
    fn write(&mut self, length: u64, lines: &[u8]) -> Result<u64> {
        let mut before = length;
        for _ in 0..WRITES_PER_LINE {
            if self.ended_at.take_if(|ended_at| before < *ended_at).is_some() {
                self.surprise_once(Warning::Shortened);
            }
            let is_open = before > 0 && self.ended_at != Some(before) && !self.ends_in_newline(before)?;
            let warning = if is_open { Some(open_end(&*self.log, before).at(&self.path)?) } else { None };
            let first: &[u8] = match (is_open, before) {
                (true, _) => b"\n",
                (false, 0) => &self.header,
                (false, _) => b"",
            };
            // Most lines are written as they are.
            let bytes = if first.is_empty() { Cow::Borrowed(lines) } else { Cow::Owned([first, lines].concat()) };
            if bytes.is_empty() {
                return Ok(before);
            }
            let Appended { taken, end } = self.append_once(&bytes)?;
            let start = end.saturating_sub(taken as u64);
            self.is_unsynced_from(start);
            if taken == bytes.len() {
                self.ended_at = Some(end);
                self.warnings.extend(warning);
                return Ok(end.saturating_sub(lines.len() as u64));
            }
            self.take_back(start, end)?;
            before = self.len()?;
        }
        Err(io::Error::from(io::ErrorKind::StorageFull)).at(&self.path)
    }

    fn append_once(&self, bytes: &[u8]) -> Result<Appended> {
        loop {
            match self.log.append(bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                appended => return appended.at(&self.path),
            }
        }
    }

    /// Removes a piece of a line that did not fit.
    fn take_back(&mut self, start: u64, end: u64) -> Result<()> {
        if let Ok(true) = self.log.cut_back(start, end) {
            return Ok(());
        }
        // Somebody who takes no lock wrote behind it, or it cannot be cut: a line of its own does no harm.
        let end = self.len()?;
        if end > start && !self.ends_in_newline(end)? {
            // Where even one byte does not fit, the next append begins with it.
            drop(self.log.append(b"\n"));
        }
        self.surprise_once(Warning::TornPiece);
        Err(Error::Torn(self.path.clone()))
    }

    fn ends_in_newline(&self, length: u64) -> Result<bool> {
        let mut last = [0];
        let read = fill(&*self.log, length - 1, &mut last).at(&self.path)?;
        Ok(read == 1 && last[0] == b'\n')
    }

    fn is_unsynced_from(&mut self, offset: u64) {
        self.unsynced_from = Some(self.unsynced_from.map_or(offset, |known| known.min(offset)));
    }

    fn surprise_once(&mut self, warning: Warning) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }
}

/// Takes a log's lock, and waits for it as long as somebody may hold it: [`Locked::Never`] where there are no locks.
pub(crate) fn lock_log(disk: &dyn Disk, log: &dyn OpenLog, path: &Path) -> Result<Locked> {
    let (mut wait, mut waited) = (FIRST_PAUSE_MS, 0);
    loop {
        match log.lock().at(path)? {
            Locked::ByAnother if waited >= LONGEST_WAIT_MS => return Err(Error::Busy(path.to_path_buf())),
            Locked::ByAnother => disk.pause(wait),
            locked => return Ok(locked),
        }
        waited += wait;
        wait = (wait * 2).min(LONGEST_PAUSE_MS);
    }
}

/// Makes the folders above a path, one by one, each name safe before there is anything inside.
///
/// So of the folders that are there, only the innermost one's name can be lost, where whoever made it died at once.
pub(crate) fn make_folders(disk: &dyn Disk, path: &Path) -> Result<()> {
    let is_missing = |folder: &&Path| !folder.as_os_str().is_empty() && !disk.exists(folder);
    let missing: Vec<&Path> = path.ancestors().skip(1).take_while(is_missing).collect();
    if let Some(above) = path.ancestors().skip(1 + missing.len()).nth(1) {
        match disk.sync_folder(above) {
            // A folder that somebody else made may lie in one that we may not read.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            synced => synced.at(above)?,
        }
    }
    for folder in missing.into_iter().rev() {
        disk.make_folder(folder).at(folder)?;
        if let Some(above) = folder.parent() {
            disk.sync_folder(above).at(above)?;
        }
    }
    Ok(())
}

pub(crate) fn fill(log: &dyn OpenLog, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
    fill_from(|at, bytes| log.read_at(at, bytes), offset, buffer)
}

#[cfg(test)]
pub(crate) mod tests;
