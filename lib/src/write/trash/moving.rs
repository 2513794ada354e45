//! Moves files and folders to free places: renamed where the disk can, else copied, compared and removed.
//!
//! A copy grows under a name that depends only on its entry in the trash and on its place, so that after a crash the next call finds
//! and removes it. It gets its own name when it is complete, and only then the original is removed: of two that are there, one is
//! complete, and everything in the other one is in it too ([`is_copied`]).

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use crate::dialect::layout::MOVING;
use crate::disk::Disk;
use crate::disk::replace::{beside, delete, sync_parent};
use crate::model::error::{At, Error, Result};
use crate::model::regular_file::{self, Links};
use crate::write::copy::{PIECE_BYTES, copy_file};

/// The folder of a session has fewer files than this.
const ENTRIES_LIMIT: usize = 100_000;

/// Moves each to its new place: all of them, or none.
pub(super) fn move_all(disk: &dyn Disk, moves: &[(PathBuf, PathBuf)], entry: &str) -> Result<()> {
    for (done, (from, to)) in moves.iter().enumerate() {
        if let Err(error) = move_one(disk, from, to, entry) {
            for (from, to) in moves[..done].iter().rev() {
                // What cannot be moved back is in the origin file of the trash.
                drop(move_one(disk, to, from, entry));
            }
            return Err(error);
        }
    }
    Ok(())
}

/// The name of an incomplete copy that becomes `to`.
fn incomplete(to: &Path, entry: &str) -> PathBuf {
    beside(to, &format!("{:016x}{MOVING}", xxh3_64(entry.as_bytes())))
}

/// Removes an incomplete copy that a crash left.
pub(super) fn remove_incomplete(disk: &dyn Disk, to: &Path, entry: &str) -> Result<()> {
    let copy = incomplete(to, entry);
    if disk.exists(&copy) { remove_tree(disk, &copy) } else { Ok(()) }
}

/// Whether everything in `part` is also in `whole`: a file with the same content, or a folder of which the same is true.
pub(super) fn is_copied(part: &Path, whole: &Path) -> Result<bool> {
    for (path, is_folder) in tree(part)? {
        let other = rebase(&path, part, whole);
        let Ok(kind) = fs::symlink_metadata(&other).map(|found| found.file_type()) else { return Ok(false) };
        let is_same = if is_folder { kind.is_dir() } else { kind.is_file() && same_content(&path, &other)? };
        if !is_same {
            return Ok(false);
        }
    }
    Ok(true)
}

fn move_one(disk: &dyn Disk, from: &Path, to: &Path, entry: &str) -> Result<()> {
    if disk.exists(to) {
        return Err(Error::Exists(to.to_path_buf()));
    }
    let moved = rename_to_free(disk, from, to);
    match moved {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            remove_incomplete(disk, to, entry)?;
            let staged = incomplete(to, entry);
            let copied = copy_tree(disk, from, &staged).and_then(|()| rename_to_free(disk, &staged, to).at(to));
            if let Err(error) = copied {
                drop(remove_tree(disk, &staged));
                return Err(error);
            }
            sync_parent(disk, to)?;
            remove_tree(disk, from)?;
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(Error::Exists(to.to_path_buf())),
        moved => moved.at(from)?,
    }
    sync_parent(disk, to)?;
    sync_parent(disk, from)
}

fn rename_to_free(disk: &dyn Disk, from: &Path, to: &Path) -> io::Result<()> {
    // Renaming a folder replaces at most an empty one.
    if fs::symlink_metadata(from)?.is_dir() { disk.rename(from, to) } else { disk.publish(from, to) }
}

/// A folder and everything in it, each folder before its content; or a single file. Fails for links and devices.
pub(crate) fn tree(root: &Path) -> Result<Vec<(PathBuf, bool)>> {
    let (mut found, mut next) = (Vec::new(), vec![root.to_path_buf()]);
    while let Some(path) = next.pop() {
        let kind = fs::symlink_metadata(&path).at(&path)?.file_type();
        if !kind.is_dir() && !kind.is_file() {
            return Err(Error::NotAFile(path));
        }
        if kind.is_dir() {
            for entry in fs::read_dir(&path).at(&path)? {
                next.push(entry.at(&path)?.path());
            }
        }
        found.push((path, kind.is_dir()));
        if found.len() + next.len() > ENTRIES_LIMIT {
            return Err(io::Error::other("more files than a session can have")).at(root);
        }
    }
    Ok(found)
}

/// The path below `to` that corresponds to one below `from`.
fn rebase(path: &Path, from: &Path, to: &Path) -> PathBuf {
    match path.strip_prefix(from) {
        Ok(rest) if !rest.as_os_str().is_empty() => to.join(rest),
        _ => to.to_path_buf(),
    }
}

/// Copies a file or a folder with everything in it. Fails if a copy differs from its file.
fn copy_tree(disk: &dyn Disk, from: &Path, to: &Path) -> Result<()> {
    let found = tree(from)?;
    for (path, is_folder) in &found {
        let there = rebase(path, from, to);
        if *is_folder {
            disk.make_folder(&there).at(&there)?;
        } else {
            copy_file(disk, path, &there)?;
        }
    }
    for (path, _) in found.iter().filter(|(_, is_folder)| !is_folder) {
        if !same_content(path, &rebase(path, from, to))? {
            return Err(Error::Changed(path.clone()));
        }
    }
    let mut folders = found.iter().rev().filter(|(_, is_folder)| *is_folder).map(|(path, _)| rebase(path, from, to));
    folders.try_for_each(|folder| disk.sync_folder(&folder).at(&folder))
}

fn same_content(a: &Path, b: &Path) -> Result<bool> {
    let ((mut one, _), (mut other, _)) = (regular_file::open(a, Links::Refuse)?, regular_file::open(b, Links::Refuse)?);
    let (mut here, mut there) = (vec![0; PIECE_BYTES], vec![0; PIECE_BYTES]);
    loop {
        let read = one.read(&mut here).at(a)?;
        if read == 0 {
            return Ok(other.read(&mut there[..1]).at(b)? == 0);
        }
        match other.read_exact(&mut there[..read]) {
            Ok(()) if here[..read] == there[..read] => {}
            Ok(()) => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            Err(error) => return Err(error).at(b),
        }
    }
}

pub(super) fn remove_tree(disk: &dyn Disk, root: &Path) -> Result<()> {
    for (path, is_folder) in tree(root)?.iter().rev() {
        if *is_folder { disk.remove_folder(path).at(path)? } else { delete(disk, path)? }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{OpenLog, Real};

    /// A machine whose folders `a` and `b` are separate disks; the second may be full.
    struct Apart {
        root: PathBuf,
        full: bool,
    }

    impl Apart {
        fn crosses(&self, from: &Path, to: &Path) -> io::Result<()> {
            let disk = |path: &Path| {
                path.strip_prefix(&self.root).unwrap().components().next().map(|part| part.as_os_str().to_owned())
            };
            if disk(from) == disk(to) { Ok(()) } else { Err(io::ErrorKind::CrossesDevices.into()) }
        }
    }

    impl Disk for Apart {
        fn open(&self, path: &Path) -> io::Result<Box<dyn OpenLog>> {
            Real.open(path)
        }
        fn create(&self, path: &Path) -> io::Result<Box<dyn OpenLog>> {
            if self.full && path.ends_with("second") {
                return Err(io::ErrorKind::StorageFull.into());
            }
            Real.create(path)
        }
        fn make_folder(&self, path: &Path) -> io::Result<()> {
            Real.make_folder(path)
        }
        fn exists(&self, path: &Path) -> bool {
            Real.exists(path)
        }
        fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
            self.crosses(from, to)?;
            Real.rename(from, to)
        }
        fn publish(&self, from: &Path, to: &Path) -> io::Result<()> {
            self.crosses(from, to)?;
            Real.publish(from, to)
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

    /// Every file in a folder, with its content.
    fn content(root: &Path) -> Vec<String> {
        let files = tree(root).unwrap().into_iter().filter(|(_, is_folder)| !is_folder);
        let line = |path: PathBuf| {
            format!("{} {}", path.strip_prefix(root).unwrap().display(), fs::read_to_string(&path).unwrap())
        };
        let mut all: Vec<String> = files.map(|(path, _)| line(path)).collect();
        all.sort();
        all
    }

    fn place() -> (tempfile::TempDir, Vec<(PathBuf, PathBuf)>) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::create_dir_all(root.join("a/s/deep")).unwrap();
        fs::create_dir_all(root.join("b")).unwrap();
        for (name, text) in [("a/x", "one"), ("a/s/first", "two"), ("a/s/deep/second", "three")] {
            fs::write(root.join(name), text).unwrap();
        }
        let moves = vec![(root.join("a/x"), root.join("b/x")), (root.join("a/s"), root.join("b/s"))];
        (dir, moves)
    }

    const ALL: [&str; 3] = ["s/deep/second three", "s/first two", "x one"];

    #[test]
    fn what_crosses_disks_is_copied_and_taken_away() {
        let (dir, moves) = place();
        move_all(&Apart { root: dir.path().to_path_buf(), full: false }, &moves, "n").unwrap();
        assert_eq!(content(&dir.path().join("b")), ALL);
        assert!(content(&dir.path().join("a")).is_empty());
        assert!(!dir.path().join("a/s").exists());
    }

    #[test]
    fn what_does_not_fit_is_where_it_was() {
        let (dir, moves) = place();
        move_all(&Apart { root: dir.path().to_path_buf(), full: true }, &moves, "n").unwrap_err();
        assert_eq!(content(&dir.path().join("a")), ALL);
        assert!(fs::read_dir(dir.path().join("b")).unwrap().next().is_none());
    }

    #[test]
    fn nothing_is_overwritten() {
        let (dir, moves) = place();
        fs::write(dir.path().join("b/s"), "there").unwrap();
        assert!(matches!(move_all(&Real, &moves, "n"), Err(Error::Exists(_))));
        assert_eq!(content(&dir.path().join("a")), ALL);
        assert_eq!(content(&dir.path().join("b")), ["s there"]);
    }
}
