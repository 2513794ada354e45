//! Writes a new file beside its place, then publishes it as a whole without overwriting anything.

use std::path::{Path, PathBuf};

use crate::disk::append::make_folders;
use crate::disk::replace::{beside, delete, sync_parent, write_all};
use crate::disk::{Disk, OpenLog};
use crate::model::error::{At, Error, Result};

/// Lines are written in pieces of about this size: a session may have a million of them.
const WRITE_BYTES: usize = 1024 * 1024;

/// A file that is not published yet, beside its place.
pub(crate) struct Staged<'a> {
    disk: &'a dyn Disk,
    path: &'a Path,
    file: PathBuf,
    /// The folders that were created for it, the outermost first.
    made: Vec<PathBuf>,
}

impl<'a> Staged<'a> {
    pub(crate) fn make(disk: &'a dyn Disk, path: &'a Path, new_id: &str) -> Result<Staged<'a>> {
        let missing = path.ancestors().skip(1).take_while(|folder| !disk.exists(folder));
        let mut made: Vec<PathBuf> = missing.map(Path::to_path_buf).collect();
        made.reverse();
        let staged = Staged { disk, path, file: beside(path, new_id), made };
        make_folders(disk, path).inspect_err(|_| staged.remove_folders())?;
        Ok(staged)
    }

    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// Publishes the file. A failure leaves its place as it was.
    pub(crate) fn publish(&self) -> Result<()> {
        self.disk.publish(&self.file, self.path).map_err(|source| match source.kind() {
            std::io::ErrorKind::AlreadyExists => Error::Exists(self.path.to_path_buf()),
            _ => Error::Io { path: self.path.to_path_buf(), source },
        })?;
        // After a failure the caller may try again.
        sync_parent(self.disk, self.path).inspect_err(|_| drop(delete(self.disk, self.path)))
    }

    /// Removes what a failed copy left. What cannot be removed is our own file, with a name that nobody reads.
    pub(crate) fn clean_up(&self) {
        drop(delete(self.disk, &self.file));
        self.remove_folders();
    }

    fn remove_folders(&self) {
        self.made.iter().rev().for_each(|folder| drop(self.disk.remove_folder(folder)));
    }
}

/// Writes lines to a new file.
pub(super) struct LineWriter<'a> {
    log: Box<dyn OpenLog>,
    path: &'a Path,
    pub(super) buffer: Vec<u8>,
    written: u64,
}

impl<'a> LineWriter<'a> {
    pub(super) fn create(disk: &dyn Disk, path: &'a Path) -> Result<LineWriter<'a>> {
        Ok(LineWriter { log: disk.create(path).at(path)?, path, buffer: Vec::new(), written: 0 })
    }

    pub(super) fn position(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    pub(super) fn line(&mut self, line: &[u8]) -> Result<()> {
        self.buffer.extend_from_slice(line);
        self.buffer.push(b'\n');
        if self.buffer.len() >= WRITE_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        write_all(&*self.log, &self.buffer, self.path)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Writes the rest, and makes the content survive a crash.
    pub(super) fn finish(mut self) -> Result<()> {
        self.flush()?;
        self.log.sync().at(self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::sim::{Event, Sim};

    /// Makes a file as a whole, as a fork and a conversion do.
    fn make(sim: &Sim, path: &Path) -> Result<()> {
        let staged = Staged::make(sim, path, "new")?;
        let written = (|| {
            let mut out = LineWriter::create(sim, staged.file())?;
            out.line(b"{}")?;
            out.finish()?;
            staged.publish()
        })();
        written.inspect_err(|_| staged.clean_up())
    }

    #[test]
    fn what_fails_anywhere_leaves_nothing_and_can_be_tried_again() {
        let path = Path::new("/home/store/s.jsonl");
        let all = Sim::new(0, &["/home"]);
        make(&all, path).unwrap();
        for step in 0..all.steps() {
            let sim = Sim::new(step, &["/home"]);
            sim.at(step, Event::Fails(std::io::ErrorKind::Other));
            assert!(make(&sim, path).is_err(), "step {step}");
            let left: Vec<PathBuf> = sim.names().into_iter().filter(|name| name.extension().is_some()).collect();
            assert_eq!(left, Vec::<PathBuf>::new(), "step {step}");
            make(&sim, path).unwrap();
            assert_eq!(sim.read("/home/store/s.jsonl").unwrap(), b"{}\n", "step {step}");
        }
    }
}
