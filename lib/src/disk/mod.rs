//! The file operations that writing needs, behind one small trait, so that a test can simulate a crash at any of them.
//!
//! [`Real`] is the machine's own disk. Files are created 0600 and folders 0700, whatever the umask is.

pub(crate) mod append;
pub(crate) mod replace;
pub(crate) mod in_use;
pub(crate) mod inside;
pub(crate) mod live;
pub(crate) mod sidecar;
pub(crate) mod worktree;

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::model::error::Result;
use crate::model::regular_file::{Links, without_waiting};
use crate::session::Session;
use crate::session::read::files::read_some;
use crate::session::read::open::ReadOptions;
use crate::session::read::source::Source;

#[cfg(test)]
pub(crate) mod sim;
#[cfg(test)]
mod tests;

/// A path whose file is replaced this often while we open it is not opened.
const FILES_FOLLOWED: usize = 100;

/// A disk: the real one, or a simulated one.
pub(crate) trait Disk: Send + Sync {
    /// Opens an existing regular file for reading and appending; not a link, a folder or a device.
    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenLog>>;
    /// Creates a file. Fails if it exists.
    fn create(&self, path: &Path) -> io::Result<Box<dyn OpenLog>>;
    /// Opens a folder to lock it; `None` if folders have no locks.
    fn open_folder(&self, _path: &Path) -> io::Result<Option<Box<dyn OpenLog>>> {
        Ok(None)
    }
    /// Creates a folder, not its parents. An existing one is fine.
    fn make_folder(&self, path: &Path) -> io::Result<()>;
    /// Whether the path exists.
    fn exists(&self, path: &Path) -> bool;
    /// Renames a file or a folder. An existing file of that name is replaced.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Renames a file. Fails if the name is taken.
    fn publish(&self, from: &Path, to: &Path) -> io::Result<()> {
        claim(self, from, to)
    }
    /// Gives a file a second name. Fails if that is taken. A simulated disk has no hard links.
    fn link(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Removes a file.
    fn unlink(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty folder. A simulated disk may keep it.
    fn remove_folder(&self, _path: &Path) -> io::Result<()> {
        Ok(())
    }
    /// Removes a folder and everything in it, without following links. A simulated disk may keep it.
    fn remove_all(&self, _path: &Path) -> io::Result<()> {
        Ok(())
    }
    /// Makes the names in a folder survive a crash.
    fn sync_folder(&self, path: &Path) -> io::Result<()>;
    /// The path with links resolved, as far as it exists. A simulated disk has no links.
    fn resolve(&self, path: &Path) -> PathBuf {
        path.to_path_buf()
    }
    /// Whether two paths are the same file. A simulated disk has no hard links.
    fn is_same_file(&self, _one: &Path, _other: &Path) -> bool {
        false
    }
    /// Gives a file the permissions of another one. A simulated disk has none.
    fn copy_mode(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        Ok(())
    }
    /// Sets the time of a file's last change. A simulated disk has no times.
    fn touch(&self, _path: &Path, _at: SystemTime) -> io::Result<()> {
        Ok(())
    }
    /// Reads a session on this disk.
    fn read_session(&self, source: &Source, reading: &ReadOptions<'_>) -> Result<Session> {
        Session::open(source, reading)
    }
    /// Waits for another program to release a lock.
    fn pause(&self, milliseconds: u64);
}

/// An open file to append lines to.
pub(crate) trait OpenLog: Send {
    fn len(&self) -> io::Result<u64>;
    /// Reads at most a buffer of bytes at `offset`.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
    /// Appends in one system call, which may take less than all bytes.
    fn append(&self, bytes: &[u8]) -> io::Result<Appended>;
    /// Truncates the file to `start` if it still ends at `end`. Returns whether it did.
    fn truncate_if_last(&self, start: u64, end: u64) -> io::Result<bool>;
    /// Overwrites bytes with the same bytes, so that the next `sync` includes them. The path must still name this file.
    fn rewrite(&self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Makes the content survive a crash.
    fn sync(&self) -> io::Result<()>;
    fn lock(&self) -> io::Result<Locked>;
    /// A lock that several programs can hold at once. A simulated disk has none.
    fn lock_shared(&self) -> io::Result<Locked> {
        Ok(Locked::Unsupported)
    }
    fn unlock(&self) -> io::Result<()>;
    /// What the path names now, compared with this file.
    fn is_at(&self, path: &Path) -> io::Result<PathTarget>;
}

/// What one system call appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Appended {
    pub(crate) taken: usize,
    /// Where these bytes end: a program without a lock may have written before or behind them.
    pub(crate) end: u64,
}

/// The result of trying to lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Locked {
    Yes,
    /// Another program holds the lock.
    Busy,
    /// The file system has no locks.
    Unsupported,
}

/// What a path names, compared with an open file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathTarget {
    /// The same file, with its length: a caller always needs both.
    ThisFile {
        length: u64,
    },
    AnotherFile,
    Nothing,
}

/// The machine's own disk.
pub(crate) struct Real;

impl Disk for Real {
    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenLog>> {
        for _ in 0..FILES_FOLLOWED {
            // Checked first: opening a pipe would wait for its other end.
            if !fs::symlink_metadata(path)?.is_file() {
                return Err(not_a_file());
            }
            let file = without_waiting(OpenOptions::new().read(true).append(true), Links::Refuse).open(path)?;
            let log = RealLog::new(file)?;
            match log.is_at(path)? {
                PathTarget::ThisFile { .. } => return Ok(Box::new(log)),
                // Another program moved it away since.
                PathTarget::Nothing => return Err(io::ErrorKind::NotFound.into()),
                PathTarget::AnotherFile => {}
            }
        }
        Err(not_a_file())
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn OpenLog>> {
        let mut how = OpenOptions::new();
        how.read(true).append(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut how, 0o600);
        let file = how.open(path)?;
        #[cfg(unix)]
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
        Ok(Box::new(RealLog::new(file)?))
    }

    #[cfg(unix)]
    fn open_folder(&self, path: &Path) -> io::Result<Option<Box<dyn OpenLog>>> {
        let folder = without_waiting(OpenOptions::new().read(true), Links::Follow).open(path)?;
        Ok(Some(Box::new(RealLog::new(folder)?)))
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        #[cfg_attr(not(unix), expect(unused_mut, reason = "a mode is Unix's"))]
        let mut how = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut how, 0o700);
        match how.create(path) {
            Ok(()) => {
                #[cfg(unix)]
                fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn exists(&self, path: &Path) -> bool {
        fs::symlink_metadata(path).is_ok()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn publish(&self, from: &Path, to: &Path) -> io::Result<()> {
        match fs::hard_link(from, to) {
            Ok(()) => self.unlink(from).inspect_err(|_| drop(self.unlink(to))),
            Err(error) if matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::CrossesDevices) => {
                Err(error)
            }
            // Not every file system has hard links.
            Err(_) => claim(self, from, to),
        }
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn remove_all(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir_all(path)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        // Windows has no such call and needs none.
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let open = || without_waiting(OpenOptions::new().read(true), Links::Follow).open(path);
        if cfg!(unix) { ignore_unsupported(open()?.sync_all()) } else { Ok(()) }
    }

    fn resolve(&self, path: &Path) -> PathBuf {
        let there = path.ancestors().find_map(|above| Some((above, fs::canonicalize(above).ok()?)));
        match there.map(|(above, real)| (path.strip_prefix(above), real)) {
            Some((Ok(rest), real)) if !rest.as_os_str().is_empty() => real.join(rest),
            Some((_, real)) => real,
            None => path.to_path_buf(),
        }
    }

    #[cfg(unix)]
    fn copy_mode(&self, from: &Path, to: &Path) -> io::Result<()> {
        use std::os::unix::fs::PermissionsExt;
        // The set-user-id and set-group-id bits are not copied.
        let mode = fs::symlink_metadata(from)?.permissions().mode() & 0o777;
        fs::set_permissions(to, fs::Permissions::from_mode(mode))
    }

    #[cfg(unix)]
    fn is_same_file(&self, one: &Path, other: &Path) -> bool {
        match (fs::symlink_metadata(one), fs::symlink_metadata(other)) {
            (Ok(one), Ok(other)) => one.is_file() && same_file(&one, &other),
            _ => false,
        }
    }

    fn touch(&self, path: &Path, at: SystemTime) -> io::Result<()> {
        without_waiting(OpenOptions::new().write(true), Links::Refuse).open(path)?.set_modified(at)
    }

    fn pause(&self, milliseconds: u64) {
        std::thread::sleep(std::time::Duration::from_millis(milliseconds));
    }
}

struct RealLog {
    file: File,
    /// Identifies the file.
    known: fs::Metadata,
}

impl RealLog {
    fn new(file: File) -> io::Result<RealLog> {
        Ok(RealLog { known: file.metadata()?, file })
    }
}

impl OpenLog for RealLog {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        read_some(&self.file, offset, buffer)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<Appended> {
        let taken = io::Write::write(&mut &self.file, bytes)?;
        // After appending, the system's own position is the end of what was appended.
        Ok(Appended { taken, end: io::Seek::stream_position(&mut &self.file)? })
    }

    fn truncate_if_last(&self, start: u64, end: u64) -> io::Result<bool> {
        // Not atomic: a program without a lock that writes between these two calls loses its bytes.
        if self.len()? != end {
            return Ok(false);
        }
        self.file.set_len(start).map(|()| true)
    }

    fn rewrite(&self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
        // A file opened for appending would append.
        let file = without_waiting(OpenOptions::new().write(true), Links::Refuse).open(path)?;
        if !same_file(&self.known, &file.metadata()?) {
            return Err(not_a_file());
        }
        #[cfg(unix)]
        return std::os::unix::fs::FileExt::write_all_at(&file, bytes, offset);
        #[cfg(windows)]
        return std::os::windows::fs::FileExt::seek_write(&file, bytes, offset).map(|_| ());
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn lock(&self) -> io::Result<Locked> {
        locked(self.file.try_lock())
    }

    fn lock_shared(&self) -> io::Result<Locked> {
        locked(self.file.try_lock_shared())
    }

    fn unlock(&self) -> io::Result<()> {
        self.file.unlock().or_else(|error| if has_no_locks(&error) { Ok(()) } else { Err(error) })
    }

    fn is_at(&self, path: &Path) -> io::Result<PathTarget> {
        let there = match fs::symlink_metadata(path) {
            Ok(there) => there,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(PathTarget::Nothing),
            Err(error) => return Err(error),
        };
        let length = there.len();
        Ok(if same_file(&self.known, &there) { PathTarget::ThisFile { length } } else { PathTarget::AnotherFile })
    }
}

/// Renames a file without a hard link. The name is created first, so that no other program can take it.
pub(crate) fn claim(disk: &(impl Disk + ?Sized), from: &Path, to: &Path) -> io::Result<()> {
    drop(disk.create(to)?);
    disk.rename(from, to).inspect_err(|_| drop(disk.unlink(to)))
}

/// Syncing a folder may be unsupported on network shares and FUSE file systems.
fn ignore_unsupported(synced: io::Result<()>) -> io::Result<()> {
    use io::ErrorKind::{InvalidInput, Unsupported};
    synced.or_else(|error| if matches!(error.kind(), InvalidInput | Unsupported) { Ok(()) } else { Err(error) })
}

#[cfg(unix)]
fn same_file(a: &fs::Metadata, b: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

/// Windows has no inode numbers, and lets no program replace an open file.
#[cfg(not(unix))]
fn same_file(_: &fs::Metadata, there: &fs::Metadata) -> bool {
    there.is_file()
}

fn locked(tried: std::result::Result<(), TryLockError>) -> io::Result<Locked> {
    match tried {
        Ok(()) => Ok(Locked::Yes),
        Err(TryLockError::WouldBlock) => Ok(Locked::Busy),
        Err(TryLockError::Error(error)) if has_no_locks(&error) => Ok(Locked::Unsupported),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn has_no_locks(error: &io::Error) -> bool {
    // ENOLCK: a share without a lock server. It has no `ErrorKind`.
    const ENOLCK: i32 = if cfg!(target_os = "linux") { 37 } else { 77 };
    error.kind() == io::ErrorKind::Unsupported || (cfg!(unix) && error.raw_os_error() == Some(ENOLCK))
}

fn not_a_file() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")
}
