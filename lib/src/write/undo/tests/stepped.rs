//! The machine's own disk, whose operations count as steps of a simulated project.

use std::io;
use std::path::{Path, PathBuf};

use crate::disk::worktree::sim::Steps;
use crate::disk::{Appended, Disk, Locked, OpenLog, PathTarget, Real};

/// The machine's own disk. Nothing of it is lost when the power fails, but a line that is being written is cut.
pub(super) struct Stepped(pub(super) Steps);

struct SteppedLog(Box<dyn OpenLog>, Steps);

impl Stepped {
    fn log(&self, log: Box<dyn OpenLog>) -> Box<dyn OpenLog> {
        Box::new(SteppedLog(log, self.0.clone()))
    }
}

impl Disk for Stepped {
    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenLog>> {
        self.0.step()?;
        Ok(self.log(Real.open(path)?))
    }
    fn create(&self, path: &Path) -> io::Result<Box<dyn OpenLog>> {
        self.0.step()?;
        Ok(self.log(Real.create(path)?))
    }
    fn open_folder(&self, path: &Path) -> io::Result<Option<Box<dyn OpenLog>>> {
        self.0.step()?;
        Ok(Real.open_folder(path)?.map(|folder| self.log(folder)))
    }
    fn make_folder(&self, path: &Path) -> io::Result<()> {
        self.0.step()?;
        Real.make_folder(path)
    }
    fn exists(&self, path: &Path) -> bool {
        Real.exists(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.step()?;
        Real.rename(from, to)
    }
    fn publish(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.step()?;
        Real.publish(from, to)
    }
    fn unlink(&self, path: &Path) -> io::Result<()> {
        self.0.step()?;
        Real.unlink(path)
    }
    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        self.0.step()?;
        Real.remove_folder(path)
    }
    fn sync_folder(&self, _path: &Path) -> io::Result<()> {
        self.0.step()
    }
    fn resolve(&self, path: &Path) -> PathBuf {
        Real.resolve(path)
    }
    fn pause(&self, milliseconds: u64) {
        Real.pause(milliseconds);
    }
}

impl OpenLog for SteppedLog {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(offset, buffer)
    }
    fn append(&self, bytes: &[u8]) -> io::Result<Appended> {
        if let Err(error) = self.1.step() {
            if self.1.has_just_lost_power() {
                self.0.append(&bytes[..bytes.len() / 2])?;
            }
            return Err(error);
        }
        self.0.append(bytes)
    }
    fn truncate_if_last(&self, start: u64, end: u64) -> io::Result<bool> {
        self.1.step()?;
        self.0.truncate_if_last(start, end)
    }
    fn rewrite(&self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.1.step()?;
        self.0.rewrite(path, offset, bytes)
    }
    fn sync(&self) -> io::Result<()> {
        self.1.step()
    }
    fn lock(&self) -> io::Result<Locked> {
        self.0.lock()
    }
    fn unlock(&self) -> io::Result<()> {
        self.0.unlock()
    }
    fn is_at(&self, path: &Path) -> io::Result<PathTarget> {
        self.0.is_at(path)
    }
}
