//! A removal, a restoration or a deletion across two disks, killed at any step: the next call finishes it or undoes it, no copy is
//! left, and nothing of a session is deleted while some of it is outside of the trash.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::write::trash::moving::tree;

/// A machine whose folders `a` and `b` are separate disks, and which dies after so many steps.
struct Dying {
    root: PathBuf,
    left: Arc<AtomicUsize>,
}

struct DyingLog(Box<dyn OpenLog>, Arc<AtomicUsize>);

fn step(left: &AtomicUsize) -> io::Result<()> {
    let lives = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
    if lives { Ok(()) } else { Err(io::Error::other("killed")) }
}

impl Dying {
    fn check_same_disk(&self, from: &Path, to: &Path) -> io::Result<()> {
        let disk = |path: &Path| {
            path.strip_prefix(&self.root).unwrap().components().next().map(|it| it.as_os_str().to_owned())
        };
        if disk(from) == disk(to) { Ok(()) } else { Err(io::ErrorKind::CrossesDevices.into()) }
    }
}

impl Disk for Dying {
    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenLog>> {
        step(&self.left)?;
        Ok(Box::new(DyingLog(Real.open(path)?, self.left.clone())))
    }
    fn create(&self, path: &Path) -> io::Result<Box<dyn OpenLog>> {
        step(&self.left)?;
        Ok(Box::new(DyingLog(Real.create(path)?, self.left.clone())))
    }
    fn make_folder(&self, path: &Path) -> io::Result<()> {
        step(&self.left)?;
        Real.make_folder(path)
    }
    fn exists(&self, path: &Path) -> bool {
        Real.exists(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.check_same_disk(from, to)?;
        step(&self.left)?;
        Real.rename(from, to)
    }
    fn publish(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.check_same_disk(from, to)?;
        step(&self.left)?;
        Real.publish(from, to)
    }
    fn unlink(&self, path: &Path) -> io::Result<()> {
        step(&self.left)?;
        Real.unlink(path)
    }
    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        step(&self.left)?;
        Real.remove_folder(path)
    }
    fn remove_all(&self, path: &Path) -> io::Result<()> {
        for (path, is_folder) in tree(path).map_err(io::Error::other)?.iter().rev() {
            if *is_folder { self.remove_folder(path)? } else { self.unlink(path)? }
        }
        Ok(())
    }
    fn sync_folder(&self, _path: &Path) -> io::Result<()> {
        step(&self.left)
    }
    fn resolve(&self, path: &Path) -> PathBuf {
        Real.resolve(path)
    }
    fn pause(&self, milliseconds: u64) {
        Real.pause(milliseconds);
    }
}

impl OpenLog for DyingLog {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(offset, buffer)
    }
    fn append(&self, bytes: &[u8]) -> io::Result<Appended> {
        if step(&self.1).is_err() {
            // Half of it was written.
            drop(self.0.append(&bytes[..bytes.len() / 2]));
            return Err(io::Error::other("killed"));
        }
        self.0.append(bytes)
    }
    fn truncate_if_last(&self, start: u64, end: u64) -> io::Result<bool> {
        self.0.truncate_if_last(start, end)
    }
    fn rewrite(&self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.rewrite(path, offset, bytes)
    }
    fn sync(&self) -> io::Result<()> {
        step(&self.1)
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

/// Each session: its dialect, its log and its other files.
const SESSIONS: [(&str, &str, &[&str]); 2] = [
    (
        "native",
        "sessions/s1/messages.jsonl",
        &["sessions/s1/metadata.json", "sessions/s1/backups/1", "sessions/s1/backups/2"],
    ),
    (
        "claude-code",
        "projects/p/s1.jsonl",
        &["projects/p/s1/subagents/agent-1.jsonl", "file-history/s1/1", "file-history/s1/2"],
    ),
];

struct Place {
    _dir: tempfile::TempDir,
    root: PathBuf,
    dialect: &'static str,
    log: PathBuf,
}

impl Place {
    fn new((dialect, log, others): (&'static str, &str, &[&str])) -> Place {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let line = "{\"type\":\"user\",\"uuid\":\"u\",\"sessionId\":\"s1\",\"message\":{\"role\":\"user\",\"content\":\"Hi\"}}\n";
        for (name, text) in others.iter().map(|name| (*name, *name)).chain([(log, line)]) {
            let path = root.join("a").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Place { _dir: dir, log: root.join("a").join(log), root, dialect }
    }

    /// The trash, on a machine that dies after so many steps.
    fn trash(&self, steps: usize) -> (Trash, Arc<AtomicUsize>) {
        let left = Arc::new(AtomicUsize::new(steps));
        let disk: Arc<dyn Disk> = Arc::new(Dying { root: self.root.clone(), left: left.clone() });
        (Trash { disk, ..Trash::open(&self.root.join("b/trash"), Host::system("test 1").unwrap()) }, left)
    }

    /// Removes the session; returns whether the machine lived.
    fn remove(&self, steps: usize) -> bool {
        let source = Source::file(dialect::named(self.dialect).unwrap(), &self.log);
        let session = Session::open(&source, &ReadOptions::plain(Timestamp::UNIX_EPOCH)).unwrap();
        let (trash, left) = self.trash(steps);
        let removed = trash.remove(&session);
        let lived = left.load(Ordering::Relaxed) > 0;
        assert!(removed.is_ok() || !lived, "{removed:?}");
        lived
    }

    /// Every file below a folder, with its content.
    fn files(&self, below: &str) -> BTreeMap<String, String> {
        let (mut found, mut next) = (BTreeMap::new(), vec![self.root.join(below)]);
        while let Some(path) = next.pop() {
            let name = path.strip_prefix(&self.root).unwrap().display().to_string();
            assert!(!name.contains(".moving"), "{name}");
            if path.is_dir() {
                next.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            } else if path.is_file() {
                found.insert(name, fs::read_to_string(&path).unwrap());
            }
        }
        found
    }
}

const FOREVER: usize = usize::MAX;

#[test]
fn a_removal_that_was_killed_is_undone_by_the_next_restoration() {
    for case in SESSIONS {
        for steps in 0.. {
            let place = Place::new(case);
            let before = place.files("a");
            let lived = place.remove(steps);
            let (trash, _) = place.trash(FOREVER);
            let listed = trash.list();
            assert!(listed.errors.is_empty() && listed.removed.len() <= 1, "{steps}: {listed:?}");
            match listed.removed.first() {
                Some(removed) => drop(trash.restore(&removed.id).unwrap()),
                None => assert!(place.log.exists(), "{steps}"),
            }
            assert_eq!(place.files("a"), before, "{} {steps}", case.0);
            if listed.removed.len() == 1 {
                assert!(place.files("b").is_empty(), "{} {steps}", case.0);
            }
            if lived {
                break;
            }
        }
    }
}

#[test]
fn a_removal_that_was_killed_is_finished_by_the_next_removal() {
    for case in SESSIONS {
        for steps in 0.. {
            let place = Place::new(case);
            let before = place.files("a");
            let lived = place.remove(steps);
            if place.log.exists() {
                place.remove(FOREVER);
            }
            let (trash, _) = place.trash(FOREVER);
            let listed = trash.list();
            assert_eq!((listed.removed.len(), listed.errors.len()), (1, 0), "{} {steps}: {listed:?}", case.0);
            assert!(!place.log.exists());
            trash.restore(&listed.removed[0].id).unwrap();
            assert_eq!(place.files("a"), before, "{} {steps}", case.0);
            assert!(place.files("b").is_empty(), "{} {steps}", case.0);
            if lived {
                break;
            }
        }
    }
}

#[test]
fn a_restoration_that_was_killed_is_finished_by_the_next_one() {
    for case in SESSIONS {
        for steps in 0.. {
            let place = Place::new(case);
            let before = place.files("a");
            place.remove(FOREVER);
            let (dying, left) = place.trash(steps);
            let id = dying.list().removed[0].id.clone();
            drop(dying.restore(&id));
            let lived = left.load(Ordering::Relaxed) > 0;
            let (trash, _) = place.trash(FOREVER);
            if let Some(removed) = trash.list().removed.first() {
                trash.restore(&removed.id).unwrap();
                assert!(place.files("b").is_empty(), "{} {steps}", case.0);
            }
            assert_eq!(place.files("a"), before, "{} {steps}", case.0);
            if lived {
                break;
            }
        }
    }
}

#[test]
fn another_session_in_the_old_place_is_never_taken_for_a_copy() {
    for case in SESSIONS {
        let place = Place::new(case);
        place.remove(FOREVER);
        fs::create_dir_all(place.log.parent().unwrap()).unwrap();
        fs::write(&place.log, "{}\n").unwrap();
        let (trash, _) = place.trash(FOREVER);
        assert!(matches!(trash.restore("s1"), Err(Error::Exists(_))));
        assert_eq!(fs::read_to_string(&place.log).unwrap(), "{}\n");
    }
}

/// Deletes what is in the trash; what is not deleted must come back whole.
fn delete_or_restore(place: &Place, before: &BTreeMap<String, String>, at: &str) {
    let (trash, _) = place.trash(FOREVER);
    for removed in trash.list().removed {
        let is_outside = removed.origin.files.iter().any(|file| file.path.exists());
        match trash.delete(&removed.id) {
            Ok(_) => {
                assert!(!is_outside, "{at}: half of a session was deleted");
                assert!(place.files("a").is_empty() && place.files("b").is_empty(), "{at}");
                return;
            }
            Err(error) => {
                assert!(is_outside && matches!(error, Error::PartlyRemoved(_)), "{at}: {error}");
                trash.restore(&removed.id).unwrap();
            }
        }
    }
    assert_eq!(&place.files("a"), before, "{at}");
}

#[test]
fn half_of_a_session_is_never_deleted() {
    for case in SESSIONS {
        for is_restored in [false, true] {
            for steps in 0.. {
                let place = Place::new(case);
                let before = place.files("a");
                let lived = if is_restored {
                    place.remove(FOREVER);
                    let (dying, left) = place.trash(steps);
                    drop(dying.restore("s1"));
                    left.load(Ordering::Relaxed) > 0
                } else {
                    place.remove(steps)
                };
                delete_or_restore(&place, &before, &format!("{} {is_restored} {steps}", case.0));
                if lived {
                    break;
                }
            }
        }
    }
}

#[test]
fn a_session_is_deleted_whatever_is_in_its_old_place_now() {
    for case in SESSIONS {
        let place = Place::new(case);
        place.remove(FOREVER);
        fs::create_dir_all(place.log.parent().unwrap()).unwrap();
        fs::write(&place.log, "{}\n").unwrap();
        let (trash, _) = place.trash(FOREVER);
        trash.delete("s1").unwrap();
        assert_eq!(fs::read_to_string(&place.log).unwrap(), "{}\n");
        assert!(place.files("b").is_empty());
    }
}

#[test]
fn a_deletion_that_was_killed_is_finished_by_the_next_one() {
    for case in SESSIONS {
        for steps in 0.. {
            let place = Place::new(case);
            let before = place.files("a");
            place.remove(FOREVER);
            let (dying, left) = place.trash(steps);
            drop(dying.delete("s1"));
            let lived = left.load(Ordering::Relaxed) > 0;
            let (trash, _) = place.trash(FOREVER);
            if trash.list().removed.is_empty() {
                // The same session, from a backup.
                for (name, text) in &before {
                    let path = place.root.join(name);
                    fs::create_dir_all(path.parent().unwrap()).unwrap();
                    fs::write(path, text).unwrap();
                }
                place.remove(FOREVER);
            }
            trash.delete("s1").unwrap();
            assert!(place.files("b").is_empty(), "{} {steps}", case.0);
            if lived {
                break;
            }
        }
    }
}

#[test]
fn a_removal_is_not_finished_while_another_program_writes_to_the_log() {
    for case in SESSIONS {
        // The first step after which the log is in both places.
        let killed = (0..).map(|steps| {
            let place = Place::new(case);
            place.remove(steps);
            place
        });
        let in_trash = |place: &Place| place.root.join("b/trash/s1").join(place.log.file_name().unwrap()).exists();
        let in_both = |place: &Place| place.log.exists() && (in_trash(place) || place.dialect == "native");
        let Some(place) = killed.take(100).filter(in_both).last() else { continue };
        let before = place.files("a");
        let writer = Real.open(&place.log).unwrap();
        assert!(matches!(writer.lock(), Ok(Locked::Yes)));
        let source = Source::file(dialect::named(place.dialect).unwrap(), &place.log);
        let session = Session::open(&source, &ReadOptions::plain(Timestamp::UNIX_EPOCH)).unwrap();
        let (trash, _) = place.trash(FOREVER);
        let refused = trash.remove(&session);
        assert!(matches!(refused, Err(Error::Busy(_))), "{}: {refused:?}", case.0);
        assert_eq!(place.files("a"), before, "{}", case.0);
    }
}
