//! The door through which records reach a log: whole lines, one `write`, under a lock. Earlier bytes never change.
//!
//! ```text
//! lock ─▶ still the same file? ─▶ final LF? ─▶ one write ─▶ all of it? ─▶ unlock
//!            │ no: open anew,       │ no: LF      │ no: cut back, or, where somebody
//!            ▼ header first         ▼ first       ▼ wrote behind it, close the piece with LF
//! ```

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::{Disk, Locked, OpenLog, Standing};
use crate::error::{At, Error, Result};

/// How long to wait for another writer: first, in all. A lock is held for one write, so that more is somebody who hangs.
const FIRST_WAIT_MS: u64 = 1;
const LONGEST_WAIT_MS: u64 = 5_000;

/// A line that is written again this often after a short write, and is short each time, does not fit.
const WRITES_PER_LINE: usize = 2;

/// One log that lines are appended to.
pub(crate) struct Appender {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    log: Box<dyn OpenLog>,
    /// What a new file begins with, whole lines.
    header: Vec<u8>,
    /// Folders whose new names are not safe yet.
    unsafe_names: Vec<PathBuf>,
    surprises: Vec<Surprise>,
}

/// Something that happened to the log behind our back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surprise {
    /// The file does not end in a whole line: it was closed with LF.
    TornTail,
    /// Another file has its name now: that one is written to.
    Replaced,
    /// Nothing had its name any more: it was begun anew.
    Deleted,
    /// A piece of a record stayed in the file, because somebody wrote behind it: it was closed with LF.
    TornPiece,
    /// The file system has no locks: two writers may tear each other's lines.
    NoLocks,
    /// The file beside the log could not be written. The log says all that it would.
    NoSidecar,
    /// Another program wrote to the session in the last minute, and may go on.
    InUse,
}

impl Appender {
    /// Makes a new log, its folders too, and writes the header. A file that is there is refused.
    pub(crate) fn create(disk: Arc<dyn Disk>, path: &Path, header: Vec<u8>) -> Result<Appender> {
        let mut unsafe_names = make_folders(&*disk, path)?;
        let log = disk.create(path).at(path)?;
        unsafe_names.extend(path.parent().map(Path::to_path_buf));
        let (path, surprises) = (path.to_path_buf(), Vec::new());
        let mut appender = Appender { disk, path, log, header, unsafe_names, surprises };
        if !appender.header.is_empty() {
            appender.append(&[])?;
        }
        Ok(appender)
    }

    /// Opens a log that is there.
    pub(crate) fn open(disk: Arc<dyn Disk>, path: &Path, header: Vec<u8>) -> Result<Appender> {
        let log = disk.open(path).at(path)?;
        let (path, surprises) = (path.to_path_buf(), Vec::new());
        Ok(Appender { disk, path, log, header, unsafe_names: Vec::new(), surprises })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn len(&self) -> Result<u64> {
        self.log.len().at(&self.path)
    }

    /// What happened to the log since it was last asked.
    pub(crate) fn surprises(&mut self) -> Vec<Surprise> {
        std::mem::take(&mut self.surprises)
    }

    /// Appends whole lines, all or nothing, and tells where the first of them stands.
    pub(crate) fn append(&mut self, lines: &[u8]) -> Result<u64> {
        self.locked(|appender| appender.write(lines))
    }

    /// Makes everything that was appended survive a crash.
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.log.sync().at(&self.path)?;
        while let Some(folder) = self.unsafe_names.last() {
            self.disk.sync_folder(folder).at(folder)?;
            self.unsafe_names.pop();
        }
        Ok(())
    }

    /// After a failed `sync`: makes sure that these lines stand where they were appended, and that the next `sync` carries
    /// them. What is no longer there is appended.
    ///
    /// The system forgets which bytes a failed `sync` did not carry, and shows them all the same: only bytes that are
    /// written again are carried by the next one.
    pub(crate) fn write_again(&mut self, lines: &mut [(u64, Vec<u8>)]) -> Result<()> {
        self.log = self.disk.open(&self.path).at(&self.path)?;
        self.unsafe_names = self.path.parent().map(Path::to_path_buf).into_iter().collect();
        self.locked(|appender| {
            for (offset, line) in lines {
                let mut there = vec![0; line.len()];
                let read = fill(&*appender.log, *offset, &mut there).at(&appender.path)?;
                if there[..read] == line[..] {
                    appender.disk.rewrite(&appender.path, *offset, line).at(&appender.path)?;
                } else {
                    *offset = appender.write(line)?;
                }
            }
            Ok(())
        })
    }

    fn locked<T>(&mut self, work: impl FnOnce(&mut Appender) -> Result<T>) -> Result<T> {
        let locked = self.lock()?;
        let worked = self.stay_in_place().and_then(|()| work(self));
        if locked {
            // A lock that cannot be given back goes with the handle.
            let unlocked = self.log.unlock().at(&self.path);
            return worked.and_then(|value| unlocked.map(|()| value));
        }
        worked
    }

    fn lock(&mut self) -> Result<bool> {
        let locked = lock_log(&*self.disk, &*self.log, &self.path)?;
        if locked == Locked::Never {
            self.surprise_once(Surprise::NoLocks);
        }
        Ok(locked == Locked::Yes)
    }

    /// Goes on in the file that the path names now.
    fn stay_in_place(&mut self) -> Result<()> {
        let (surprise, log) = match self.log.is_at(&self.path).at(&self.path)? {
            Standing::ThisFile => return Ok(()),
            Standing::AnotherFile => (Surprise::Replaced, self.disk.open(&self.path).at(&self.path)?),
            Standing::Nothing => {
                self.unsafe_names.extend(make_folders(&*self.disk, &self.path)?);
                (Surprise::Deleted, self.disk.create(&self.path).at(&self.path)?)
            }
        };
        // The old file's lock is nobody's concern: nobody finds that file any more.
        self.log = log;
        self.unsafe_names.extend(self.path.parent().map(Path::to_path_buf));
        self.surprises.push(surprise);
        self.lock().map(|_| ())
    }

    /// One write of whole lines at the end of the file; the caller holds the lock.
    fn write(&mut self, lines: &[u8]) -> Result<u64> {
        let before = self.len()?;
        let torn = before > 0 && !self.ends_in_newline(before)?;
        let mut bytes = Vec::with_capacity(1 + self.header.len() + lines.len());
        if torn {
            bytes.push(b'\n');
        } else if before == 0 {
            bytes.extend_from_slice(&self.header);
        }
        let first = before + bytes.len() as u64;
        bytes.extend_from_slice(lines);
        self.write_whole(before, &bytes)?;
        if torn {
            self.surprises.push(Surprise::TornTail);
        }
        Ok(first)
    }

    fn write_whole(&mut self, before: u64, bytes: &[u8]) -> Result<()> {
        let mut why = io::Error::from(io::ErrorKind::StorageFull);
        for _ in 0..WRITES_PER_LINE {
            let written = loop {
                match self.log.append(bytes) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    written => break written,
                }
            };
            match written {
                Ok(all) if all == bytes.len() => return Ok(()),
                Ok(some) => self.take_back(before, some as u64)?,
                Err(error) => {
                    why = error;
                    break;
                }
            }
        }
        Err(why).at(&self.path)
    }

    /// Removes a piece of a line that did not fit.
    fn take_back(&mut self, before: u64, written: u64) -> Result<()> {
        if self.len()? == before + written && self.log.truncate(before).is_ok() {
            return Ok(());
        }
        // Somebody who takes no lock wrote behind it, or it cannot be cut: a line of its own does no harm.
        let end = self.len()?;
        if end > before && !self.ends_in_newline(end)? {
            // Where even one byte does not fit, the next append begins with it.
            drop(self.log.append(b"\n"));
        }
        self.surprises.push(Surprise::TornPiece);
        Err(Error::Torn(self.path.clone()))
    }

    fn ends_in_newline(&self, length: u64) -> Result<bool> {
        let mut last = [0];
        let read = self.log.read_at(length - 1, &mut last).at(&self.path)?;
        Ok(read == 1 && last[0] == b'\n')
    }

    fn surprise_once(&mut self, surprise: Surprise) {
        if !self.surprises.contains(&surprise) {
            self.surprises.push(surprise);
        }
    }
}

/// Takes a log's lock, and waits for it as long as somebody may hold it: [`Locked::Never`] where there are no locks.
pub(crate) fn lock_log(disk: &dyn Disk, log: &dyn OpenLog, path: &Path) -> Result<Locked> {
    let (mut wait, mut waited) = (FIRST_WAIT_MS, 0);
    loop {
        match log.lock().at(path)? {
            Locked::ByAnother if waited >= LONGEST_WAIT_MS => return Err(Error::Busy(path.to_path_buf())),
            Locked::ByAnother => disk.pause(wait),
            locked => return Ok(locked),
        }
        waited += wait;
        wait = (wait * 2).min(LONGEST_WAIT_MS / 20);
    }
}

/// Makes the folders above a path, and tells which folders have new names in them, the innermost last.
pub(crate) fn make_folders(disk: &dyn Disk, path: &Path) -> Result<Vec<PathBuf>> {
    let missing: Vec<&Path> = path.ancestors().skip(1).take_while(|folder| !disk.exists(folder)).collect();
    let mut changed = Vec::new();
    for folder in missing.into_iter().rev().filter(|folder| !folder.as_os_str().is_empty()) {
        disk.make_folder(folder).at(folder)?;
        changed.extend(folder.parent().map(Path::to_path_buf));
    }
    Ok(changed)
}

fn fill(log: &dyn OpenLog, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let mut read = 0;
    while read < buffer.len() {
        match log.read_at(offset + read as u64, &mut buffer[read..]) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}
