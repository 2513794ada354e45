//! Appends whole lines to a log: one `write` under a lock. Earlier bytes never change.
//!
//! ```text
//! lock ─▶ same file? ─▶ final LF? ─▶ one write ─▶ complete? ─▶ unlock
//!            │ no: reopen,  │ no: LF      │ no: truncate, or, if another program
//!            ▼ header first ▼ first       ▼ wrote behind it, end the piece with LF
//! ```

mod open_end;
mod warning;

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::inside::Inside;
use crate::disk::{Appended, Disk, Locked, OpenLog, PathTarget};
use crate::model::error::{At, Error, Result};
use crate::session::read::files::fill_from;
use open_end::open_end;
pub use warning::Warning;

/// How long to wait for another writer: the first pause, the longest pause, in all. A lock is held for one write, so a longer
/// wait means a program that hangs; among many writers the lock is free only for moments, so we try often.
const FIRST_PAUSE_MS: u64 = 1;
const LONGEST_PAUSE_MS: u64 = 10;
const LONGEST_WAIT_MS: u64 = 5_000;

/// A line that comes out short this often does not fit on the disk.
const WRITES_PER_LINE: usize = 2;

/// A file that is replaced this often while we open it cannot be written to.
const FILES_FOLLOWED: usize = 100;

/// How much is rewritten at a time after a failed `sync`.
const REWRITTEN_AT_ONCE_BYTES: usize = 64 * 1024;

/// A log to append lines to.
pub(crate) struct Appender {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    log: Box<dyn OpenLog>,
    /// The first lines of a new file.
    header: Vec<u8>,
    /// Nothing in the file can be read: the header comes before the next lines.
    is_header_lost: bool,
    /// The first byte that we wrote since the last successful `sync`.
    unsynced_from: Option<u64>,
    /// Where our last line ended: a file of this length ends in LF.
    ended_at: Option<u64>,
    /// Whether the folder was synced since the file was created.
    name: Name,
    /// The store that the file must stay in.
    inside: Option<Inside>,
    /// What to do when another file has taken the log's name.
    on_replaced: OnReplaced,
    /// The length at which nobody had begun the session: at any other, the next lines are refused.
    begins_at: Option<u64>,
    /// The session ends when its file is moved.
    may_end: bool,
    warnings: Vec<Warning>,
}

/// What to do when another file has taken the log's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnReplaced {
    /// Append to the new file.
    Follow,
    /// Fail once with [`Error::Ended`]: the lines name their session, and the new file is another session's.
    Fail,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Name {
    Safe,
    Unsafe,
}

impl Appender {
    /// Creates a log with its folders and writes the header. Fails if the file exists.
    pub(crate) fn create(disk: Arc<dyn Disk>, path: &Path, header: Vec<u8>) -> Result<Appender> {
        make_folders(&*disk, path)?;
        let log = disk.create(path).at(path)?;
        let mut appender = Appender::new(disk, path, log, header);
        if !appender.header.is_empty() {
            appender.append(&[])?;
        }
        Ok(appender)
    }

    /// Opens an existing log.
    pub(crate) fn open(disk: Arc<dyn Disk>, path: &Path, header: Vec<u8>) -> Result<Appender> {
        let log = disk.open(path).at(path)?;
        Ok(Appender::new(disk, path, log, header))
    }

    fn new(disk: Arc<dyn Disk>, path: &Path, log: Box<dyn OpenLog>, header: Vec<u8>) -> Appender {
        // The program that created the file may have crashed before its name was synced.
        let (path, name) = (path.to_path_buf(), Name::Unsafe);
        Appender {
            disk,
            path,
            log,
            header,
            is_header_lost: false,
            unsynced_from: None,
            ended_at: None,
            name,
            inside: None,
            on_replaced: OnReplaced::Follow,
            begins_at: None,
            may_end: false,
            warnings: Vec::new(),
        }
    }

    /// Sets the first lines of a new file.
    pub(crate) fn with_header(self, header: Vec<u8>) -> Appender {
        Appender { header, ..self }
    }

    /// Writes the header before the next lines, because a crash left nothing in the file that can be read.
    pub(crate) fn with_lost_header(self, is_header_lost: bool) -> Appender {
        Appender { is_header_lost, ..self }
    }

    /// Sets what to do when another file has taken the log's name.
    pub(crate) fn on_replaced(self, on_replaced: OnReplaced) -> Appender {
        Appender { on_replaced, ..self }
    }

    /// The next lines begin the session, if the file still has this length: else another program has begun it, and they fail
    /// with [`Error::Ended`].
    pub(crate) fn begin_at(&mut self, length: Option<u64>) {
        self.begins_at = length;
    }

    /// The format ends sessions by moving their files: what is in a file that was moved stays there.
    pub(crate) fn may_end(self, may_end: bool) -> Appender {
        Appender { may_end, ..self }
    }

    /// Never follows the log out of this store.
    pub(crate) fn inside(self, inside: Option<Inside>) -> Appender {
        Appender { inside, ..self }
    }

    /// Fails if the path now leads out of the store.
    pub(crate) fn check_inside(&self) -> Result<()> {
        self.inside.as_ref().map_or(Ok(()), |inside| inside.check(&*self.disk, &self.path))
    }

    /// Whether another program wrote behind our last line.
    pub(crate) fn is_written_behind(&self) -> bool {
        self.ended_at.is_some_and(|end| self.log.len().is_ok_and(|length| length != end))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn len(&self) -> Result<u64> {
        self.log.len().at(&self.path)
    }

    /// What happened to the log since the last call.
    pub(crate) fn take_warnings(&mut self) -> Vec<Warning> {
        std::mem::take(&mut self.warnings)
    }

    /// Appends whole lines, all or none. Returns the offset of the first.
    pub(crate) fn append(&mut self, lines: &[u8]) -> Result<u64> {
        self.locked(|appender, length| {
            if appender.begins_at.is_some_and(|expected| expected != length) {
                return Err(Error::Ended(appender.path.display().to_string()));
            }
            let offset = appender.write(length, lines)?;
            appender.begins_at = None;
            Ok(offset)
        })
    }

    /// Makes everything appended so far survive a crash.
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.log.sync().at(&self.path)?;
        if let (Name::Unsafe, Some(folder)) = (self.name, self.path.parent()) {
            self.disk.sync_folder(folder).at(folder)?;
        }
        (self.unsynced_from, self.name) = (None, Name::Safe);
        Ok(())
    }

    /// After a failed `sync`: writes these lines again in their places, so that the next `sync` includes them. Lines that are
    /// gone are appended.
    ///
    /// After a failed `fsync` the system considers the pages clean, although they are not on disk: only bytes that are written
    /// again are part of the next one. That includes headers and line ends.
    pub(crate) fn rewrite_lines(&mut self, lines: &mut [(u64, Vec<u8>)]) -> Result<()> {
        self.ended_at = None;
        if self.may_end && self.is_elsewhere()? && self.has_lines(lines)? {
            // The session was ended. Its lines are in the file that was moved, and whoever moved it has synced it: appended to
            // the file that has the name now, they would be in two sessions.
            self.unsynced_from = None;
            return Ok(());
        }
        if !matches!(self.log.is_at(&self.path), Ok(PathTarget::ThisFile { .. })) {
            self.unsynced_from = None;
        }
        match self.disk.open(&self.path) {
            Ok(log) => self.log = log,
            // It is created again below.
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
                    appender.mark_unsynced(*offset);
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

    /// Whether the path no longer names this file.
    fn is_elsewhere(&self) -> Result<bool> {
        Ok(!matches!(self.log.is_at(&self.path).at(&self.path)?, PathTarget::ThisFile { .. }))
    }

    /// Whether all lines are in their places in this file, whatever its name is now.
    fn has_lines(&self, lines: &[(u64, Vec<u8>)]) -> Result<bool> {
        for (offset, line) in lines {
            let mut there = vec![0; line.len()];
            let read = fill(&*self.log, *offset, &mut there).at(&self.path)?;
            if there[..read] != line[..] {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Writes everything since the last successful `sync` again.
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

    /// Runs `work` on the file that the path names now, with its length, under the lock.
    fn locked<T>(&mut self, work: impl FnOnce(&mut Appender, u64) -> Result<T>) -> Result<T> {
        let worked = self.lock_in_place().and_then(|length| work(self, length));
        // A lock that cannot be released ends with the handle; the write has succeeded.
        drop(self.log.unlock());
        worked
    }

    /// Locks the file that the path names now and returns its length.
    fn lock_in_place(&mut self) -> Result<u64> {
        for _ in 0..FILES_FOLLOWED {
            self.lock()?;
            let standing = self.log.is_at(&self.path).at(&self.path)?;
            let (warning, log) = match standing {
                PathTarget::ThisFile { length } => return Ok(length),
                PathTarget::AnotherFile => {
                    self.check_inside()?;
                    (Warning::Replaced, self.disk.open(&self.path))
                }
                PathTarget::Nothing => {
                    self.check_inside()?;
                    make_folders(&*self.disk, &self.path)?;
                    (Warning::Deleted, self.disk.create(&self.path))
                }
            };
            use io::ErrorKind::{AlreadyExists, NotFound};
            match log {
                // Nobody can reach the old file any more: its lock does not matter.
                Ok(log) => self.log = log,
                // Another program was faster.
                Err(error) if matches!(error.kind(), NotFound | AlreadyExists) => continue,
                Err(error) => return Err(error).at(&self.path),
            }
            (self.unsynced_from, self.ended_at, self.name) = (None, None, Name::Unsafe);
            self.warn_once(warning);
            if self.on_replaced == OnReplaced::Fail {
                return Err(Error::Ended(self.path.display().to_string()));
            }
        }
        Err(Error::Busy(self.path.clone()))
    }

    fn lock(&mut self) -> Result<()> {
        if lock_log(&*self.disk, &*self.log, &self.path)? == Locked::Unsupported {
            self.warn_once(Warning::NoLocks);
        }
        Ok(())
    }

    /// Writes whole lines at the end of the file. The caller holds the lock.
    fn write(&mut self, length: u64, lines: &[u8]) -> Result<u64> {
        let mut before = length;
        for _ in 0..WRITES_PER_LINE {
            if self.ended_at.take_if(|ended_at| before < *ended_at).is_some() {
                self.warn_once(Warning::Shortened);
            }
            let has_open_end = before > 0 && self.ended_at != Some(before) && !self.ends_in_newline(before)?;
            let warning = if has_open_end { Some(open_end(&*self.log, before).at(&self.path)?) } else { None };
            let line_end: &[u8] = if has_open_end { b"\n" } else { b"" };
            let header: &[u8] = if before == 0 || self.is_header_lost { &self.header } else { b"" };
            // Usually nothing comes before the lines: no copy.
            let is_usual = line_end.is_empty() && header.is_empty();
            let bytes = if is_usual { Cow::Borrowed(lines) } else { Cow::Owned([line_end, header, lines].concat()) };
            if bytes.is_empty() {
                return Ok(before);
            }
            let Appended { taken, end } = self.append_once(&bytes)?;
            let start = end.saturating_sub(taken as u64);
            self.mark_unsynced(start);
            if taken == bytes.len() {
                self.is_header_lost = false;
                self.ended_at = Some(end);
                self.warnings.extend(warning);
                return Ok(end.saturating_sub(lines.len() as u64));
            }
            self.remove_torn(start, end)?;
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

    /// Removes the part of a line that did not fit.
    fn remove_torn(&mut self, start: u64, end: u64) -> Result<()> {
        if let Ok(true) = self.log.truncate_if_last(start, end) {
            return Ok(());
        }
        // A program without a lock wrote behind it, or it cannot be truncated: it becomes a line of its own.
        let end = self.len()?;
        if end > start && !self.ends_in_newline(end)? {
            // If even one byte does not fit, the next append starts with it.
            drop(self.log.append(b"\n"));
        }
        self.warn_once(Warning::TornPiece);
        Err(Error::Torn(self.path.clone()))
    }

    fn ends_in_newline(&self, length: u64) -> Result<bool> {
        let mut last = [0];
        let read = fill(&*self.log, length - 1, &mut last).at(&self.path)?;
        Ok(read == 1 && last[0] == b'\n')
    }

    fn mark_unsynced(&mut self, offset: u64) {
        self.unsynced_from = Some(self.unsynced_from.map_or(offset, |known| known.min(offset)));
    }

    fn warn_once(&mut self, warning: Warning) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }
}

/// Takes a log's lock, waiting for other writers. Returns [`Locked::Unsupported`] where there are no locks.
pub(crate) fn lock_log(disk: &dyn Disk, log: &dyn OpenLog, path: &Path) -> Result<Locked> {
    let (mut wait, mut waited) = (FIRST_PAUSE_MS, 0);
    loop {
        match log.lock().at(path)? {
            Locked::Busy if waited >= LONGEST_WAIT_MS => return Err(Error::Busy(path.to_path_buf())),
            Locked::Busy => disk.pause(wait),
            locked => return Ok(locked),
        }
        waited += wait;
        wait = (wait * 2).min(LONGEST_PAUSE_MS);
    }
}

/// Creates the folders above a path, syncing each name before anything is put inside.
///
/// So of existing folders, only the innermost can still be lost in a crash, if its creator died right after creating it.
pub(crate) fn make_folders(disk: &dyn Disk, path: &Path) -> Result<()> {
    let is_missing = |folder: &&Path| !folder.as_os_str().is_empty() && !disk.exists(folder);
    let missing: Vec<&Path> = path.ancestors().skip(1).take_while(is_missing).collect();
    if let Some(above) = path.ancestors().skip(1 + missing.len()).nth(1) {
        match disk.sync_folder(above) {
            // We may not be allowed to read the folder above one that another user created.
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
