//! A removal that fails halfway, on a machine whose disk is full at any step.

mod interrupted;

use std::sync::Mutex;

use jiff::Timestamp;

use super::*;
use crate::disk::{Appended, Locked, OpenLog, PathTarget};
use crate::session::read::open::ReadOptions;

/// The machine's own disk, full after so many bytes.
pub(crate) struct Full(pub(crate) Arc<Mutex<usize>>);

struct FullLog(Box<dyn OpenLog>, Arc<Mutex<usize>>);

impl Disk for Full {
    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenLog>> {
        Real.open(path)
    }
    fn create(&self, path: &Path) -> io::Result<Box<dyn OpenLog>> {
        Ok(Box::new(FullLog(Real.create(path)?, self.0.clone())))
    }
    fn make_folder(&self, path: &Path) -> io::Result<()> {
        Real.make_folder(path)
    }
    fn exists(&self, path: &Path) -> bool {
        Real.exists(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Real.rename(from, to)
    }
    fn unlink(&self, path: &Path) -> io::Result<()> {
        Real.unlink(path)
    }
    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        Real.remove_folder(path)
    }
    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        Real.sync_folder(path)
    }
    fn pause(&self, milliseconds: u64) {
        Real.pause(milliseconds);
    }
}

impl OpenLog for FullLog {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(offset, buffer)
    }
    fn append(&self, bytes: &[u8]) -> io::Result<Appended> {
        let mut left = self.1.lock().unwrap();
        let taken = bytes.len().min(*left);
        if taken == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        *left -= taken;
        self.0.append(&bytes[..taken])
    }
    fn truncate_if_last(&self, start: u64, end: u64) -> io::Result<bool> {
        self.0.truncate_if_last(start, end)
    }
    fn rewrite(&self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.rewrite(path, offset, bytes)
    }
    fn sync(&self) -> io::Result<()> {
        self.0.sync()
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

#[test]
fn a_removal_that_does_not_fit_leaves_nothing_in_the_trash() {
    for room in [0, 1, 50] {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let path = root.join("sessions/s1/messages.jsonl");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "{\"type\":\"user\",\"uuid\":\"u\",\"message\":{\"role\":\"user\",\"content\":\"Hi\"}}\n")
            .unwrap();
        let source = Source::file(dialect::named("native").unwrap(), &path);
        let session = Session::open(&source, &ReadOptions::plain(Timestamp::UNIX_EPOCH)).unwrap();
        let disk: Arc<dyn Disk> = Arc::new(Full(Arc::new(Mutex::new(room))));
        let trash = Trash { disk, ..Trash::open(&root.join("trash"), Host::system("test 1").unwrap()) };
        trash.remove(&session).unwrap_err();
        assert!(path.exists() && fs::read_dir(root.join("trash")).unwrap().next().is_none(), "{room}");
    }
}
