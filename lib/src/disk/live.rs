//! Which logs are being recorded: a lock for each, in our own data folder.
//!
//! ```text
//! <data>/live/<hash of the log's path>      held shared by each recorder, exclusively by what moves the session
//! ```
//!
//! The system releases the lock of a process that dies. The file that it leaves has a token, which the native sidecar repeats: who
//! gets the lock of the token in a sidecar knows that its recorder has ended. A file without the token of the sidecar says nothing:
//! the recorder may have another data folder. Nothing is put beside the log: that folder may be another agent's.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_128;

use crate::disk::append::{fill, make_folders};
use crate::disk::replace::delete;
use crate::disk::{Disk, Locked, OpenLog, PathTarget};
use crate::model::error::{At, Error, Result};

/// The folder of the locks.
const LIVE: &str = "live";

/// Whoever deletes a file that is left over holds its lock for a moment; a recorder holds one for longer than this.
const PAUSE_MS: u64 = 5;
const PAUSES: usize = 100;

/// So many files may be left over, because they say that a recorder has ended; a recorder deletes the oldest of more.
const FILES_KEPT: usize = 64;

/// How many files a recorder looks at to find those that are left over.
const FILES_SWEPT: usize = 1024;

/// A token is shorter than this.
const TOKEN_LIMIT_BYTES: usize = 128;

/// A file that is replaced this often while we lock it cannot be locked.
const FILES_FOLLOWED: usize = 100;

/// A lock on a log's path, released when it is dropped.
pub(crate) struct LiveLock {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    file: Box<dyn OpenLog>,
    /// What the file contains, if a recorder created it.
    pub(crate) token: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Share {
    /// Other recorders may hold it too.
    Shared,
    /// Nobody else may.
    Alone,
}

impl LiveLock {
    /// Says that a recorder has this log open. `None` where the file system has no locks.
    pub(crate) fn of_recorder(
        disk: &Arc<dyn Disk>,
        data: &Path,
        log: &Path,
        new_token: &dyn Fn() -> String,
    ) -> Result<Option<LiveLock>> {
        sweep(disk, data);
        LiveLock::take(disk, data, log, Share::Shared, Some(new_token))
    }

    /// Makes sure that no recorder has this log open while it is moved. Fails with [`Error::Busy`] if one has, and if the lock cannot
    /// be created: a recorder goes on without it. `None` where the file system has no locks.
    pub(crate) fn alone(disk: &Arc<dyn Disk>, data: &Path, log: &Path) -> Result<Option<LiveLock>> {
        LiveLock::take(disk, data, log, Share::Alone, None)
    }

    /// Whether a recorder has this log open now, as far as is known. Nothing is created, and nobody waited for.
    pub(crate) fn is_held(disk: &dyn Disk, data: &Path, log: &Path) -> bool {
        let Ok(file) = disk.open(&path_for(disk, data, log)) else { return false };
        let locked = file.lock();
        if let Ok(Locked::Yes) = locked {
            drop(file.unlock());
        }
        matches!(locked, Ok(Locked::Busy))
    }

    fn take(
        disk: &Arc<dyn Disk>,
        data: &Path,
        log: &Path,
        share: Share,
        new_token: Option<&dyn Fn() -> String>,
    ) -> Result<Option<LiveLock>> {
        let path = path_for(&**disk, data, log);
        for _ in 0..FILES_FOLLOWED {
            let file = open_or_create(&**disk, &path, new_token)?;
            match wait_for(&**disk, &*file, &path, share)? {
                Locked::Yes => {}
                Locked::Busy => return Err(Error::Busy(log.to_path_buf())),
                Locked::Unsupported => return Ok(None),
            }
            // Whoever had the lock before may have deleted the file.
            if let PathTarget::ThisFile { .. } = file.is_at(&path).at(&path)? {
                let token = read_token(&*file);
                return Ok(Some(LiveLock { disk: disk.clone(), path, file, token }));
            }
        }
        Err(Error::Busy(log.to_path_buf()))
    }
}

impl Drop for LiveLock {
    fn drop(&mut self) {
        drop(self.file.unlock());
        delete_unheld(&*self.disk, &*self.file, &self.path);
    }
}

/// The file of a log's lock.
fn path_for(disk: &dyn Disk, data: &Path, log: &Path) -> PathBuf {
    let real = disk.resolve(log);
    let name = format!("{:032x}", xxh3_128(real.as_os_str().as_encoded_bytes()));
    data.join(LIVE).join(name)
}

fn open_or_create(disk: &dyn Disk, path: &Path, new_token: Option<&dyn Fn() -> String>) -> Result<Box<dyn OpenLog>> {
    for _ in 0..FILES_FOLLOWED {
        match disk.open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return opened.at(path),
        }
        match disk.create(path) {
            // Another program was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => make_folders(disk, path)?,
            created => {
                let file = created.at(path)?;
                // Without a token the lock works all the same.
                drop(new_token.map(|new| file.append(new().as_bytes())));
                return Ok(file);
            }
        }
    }
    // The folder cannot be created: a link that leads nowhere has its name.
    Err(io::Error::from(io::ErrorKind::NotFound)).at(path)
}

/// The token in a file; `None` if it has none.
fn read_token(file: &dyn OpenLog) -> Option<String> {
    let mut bytes = vec![0; TOKEN_LIMIT_BYTES];
    let read = fill(file, 0, &mut bytes).ok()?;
    bytes.truncate(read);
    String::from_utf8(bytes).ok().filter(|token| !token.is_empty())
}

fn wait_for(disk: &dyn Disk, file: &dyn OpenLog, path: &Path, share: Share) -> Result<Locked> {
    for _ in 0..PAUSES {
        let locked = match share {
            Share::Shared => file.lock_shared(),
            Share::Alone => file.lock(),
        };
        match locked.at(path)? {
            Locked::Busy => disk.pause(PAUSE_MS),
            locked => return Ok(locked),
        }
    }
    Ok(Locked::Busy)
}

/// Deletes the file of a lock that nobody holds. A program that opened it before notices that its name is gone.
fn delete_unheld(disk: &dyn Disk, file: &dyn OpenLog, path: &Path) {
    if matches!(file.lock(), Ok(Locked::Yes)) {
        if matches!(file.is_at(path), Ok(PathTarget::ThisFile { .. })) {
            drop(delete(disk, path));
        }
        drop(file.unlock());
    }
}

/// Deletes the oldest files of processes that died, if there are many.
fn sweep(disk: &Arc<dyn Disk>, data: &Path) {
    let entries = fs::read_dir(data.join(LIVE)).into_iter().flatten().flatten().take(FILES_SWEPT);
    let modified = |path: &Path| fs::symlink_metadata(path).and_then(|found| found.modified()).ok();
    let mut files: Vec<_> = entries.map(|entry| entry.path()).map(|path| (modified(&path), path)).collect();
    files.sort();
    let extra = files.len().saturating_sub(FILES_KEPT);
    for (_, path) in &files[..extra] {
        if let Ok(file) = disk.open(path) {
            delete_unheld(&**disk, &*file, path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Real;

    #[test]
    fn recorders_share_a_log_and_nobody_moves_it_meanwhile() {
        let dir = tempfile::tempdir().unwrap();
        let (data, log) = (dir.path().join("data"), dir.path().join("x.jsonl"));
        let disk: Arc<dyn Disk> = Arc::new(Real);
        let token = || "one".to_owned();
        let locks = || fs::read_dir(data.join(LIVE)).unwrap().count();
        let one = LiveLock::of_recorder(&disk, &data, &log, &token).unwrap();
        let other = LiveLock::of_recorder(&disk, &data, &log, &token).unwrap();
        assert!(one.is_some() && other.is_some() && locks() == 1);
        assert!(matches!(LiveLock::alone(&disk, &data, &log), Err(Error::Busy(_))));
        drop(one);
        assert!(matches!(LiveLock::alone(&disk, &data, &log), Err(Error::Busy(_))));
        drop(other);
        assert_eq!(locks(), 0);
        let mover = LiveLock::alone(&disk, &data, &log).unwrap().unwrap();
        assert_eq!(mover.token, None);
        assert!(matches!(LiveLock::of_recorder(&disk, &data, &log, &token), Err(Error::Busy(_))));
        drop(mover);
        assert_eq!(locks(), 0);
    }

    #[test]
    fn what_a_dead_process_left_has_its_token_and_is_deleted_if_there_is_much() {
        let dir = tempfile::tempdir().unwrap();
        let (data, log) = (dir.path().join("data"), dir.path().join("x.jsonl"));
        let disk: Arc<dyn Disk> = Arc::new(Real);
        let lock = LiveLock::of_recorder(&disk, &data, &log, &|| "one".to_owned()).unwrap().unwrap();
        let path = lock.path.clone();
        drop(lock);
        fs::write(&path, "one").unwrap();
        // Recorders of other logs do not take it away.
        let other = |name: &str| LiveLock::of_recorder(&disk, &data, &dir.path().join(name), &|| name.to_owned());
        drop(other("y.jsonl").unwrap());
        assert_eq!(LiveLock::alone(&disk, &data, &log).unwrap().unwrap().token.as_deref(), Some("one"));
        assert!(!path.exists());
        for number in 0..FILES_KEPT + 10 {
            fs::write(data.join(LIVE).join(number.to_string()), "").unwrap();
        }
        drop(other("y.jsonl").unwrap());
        assert_eq!(fs::read_dir(data.join(LIVE)).unwrap().count(), FILES_KEPT);
    }
}
