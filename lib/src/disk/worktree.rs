//! The third door to disk: the files of one project, for undo.
//!
//! Folders are opened one after the other from the root, without following links, and each file operation names one file in an
//! open folder: no path leads out of the root, whatever is renamed or linked meanwhile.

#[cfg(test)]
pub(crate) mod sim;

use std::io::{self, Read, Write};
use std::ops::Deref;
use std::path::{Path, PathBuf};

use cap_fs_ext::{DirExt, FollowSymlinks, OpenOptionsFollowExt};
use cap_primitives::fs::{AccessModes, AccessType};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirEntry, File, Metadata, OpenOptions};

use crate::model::error::{At, Error, Result};
use crate::model::project_path::ProjectPath;

/// What is at a path now.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Found {
    Nothing,
    File {
        mode: Option<u32>,
        stamp: Stamp,
    },
    Link(String),
    Folder,
    /// Nothing can be there: a folder in its path is a file, or a link, which is not followed.
    BelowFile,
    /// A device, a socket or a pipe.
    Other(&'static str),
}

/// Tells whether a file was changed since it was looked at, without reading it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stamp {
    pub(crate) length: u64,
    /// Of the file itself, and of its content and its permissions.
    pub(crate) identity: (u64, u64),
    pub(crate) modified: (i64, i64),
    /// Not of a file with several names: it changes when one of the others is restored.
    pub(crate) changed: Option<(i64, i64)>,
}

impl PartialEq for Stamp {
    fn eq(&self, other: &Stamp) -> bool {
        let known = |stamp: &Stamp| (stamp.length, stamp.identity, stamp.modified);
        known(self) == known(other) && self.changed.zip(other.changed).is_none_or(|(one, other)| one == other)
    }
}

/// The files below one root: of a real project, or of a simulated one.
pub(crate) trait Worktree: Send + Sync {
    /// Opens the folder that a path is in, to read. Whoever writes opens it again: it may have been moved out of the project.
    fn folder_of(&self, path: &ProjectPath) -> io::Result<Box<dyn ProjectFolder + '_>>;
    /// The names in a folder.
    fn list(&self, folder: &ProjectPath) -> io::Result<Vec<String>>;
    /// Fails if nothing can be created or deleted in a folder; without one, in the root.
    fn check_writable(&self, folder: Option<&ProjectPath>) -> io::Result<()>;
    /// Creates a temporary file beside a path, with the content that `write` writes and these permissions, and makes it safe.
    fn stage(&self, path: &ProjectPath, id: &str, mode: Option<u32>, write: &mut WriteContent<'_>) -> Result<()>;
    /// The same, as a symbolic link.
    fn stage_link(&self, path: &ProjectPath, id: &str, target: &str) -> io::Result<()>;
    /// Gives the temporary file its name. Fails if `is_new` and the name is taken.
    fn publish(&self, path: &ProjectPath, id: &str, is_new: bool) -> io::Result<()>;
    /// Deletes the temporary file, if there is one.
    fn unstage(&self, path: &ProjectPath, id: &str) -> io::Result<()>;
    /// Deletes a file or a link.
    fn remove(&self, path: &ProjectPath) -> io::Result<()>;
    /// Creates a folder. Returns whether it is new.
    fn make_folder(&self, path: &ProjectPath) -> io::Result<bool>;
    /// Deletes an empty folder. Returns whether it was there and empty.
    fn remove_folder(&self, path: &ProjectPath) -> io::Result<bool>;
    /// Makes the names in the folder of a path survive a crash.
    fn sync_folder(&self, path: &ProjectPath) -> io::Result<()>;
    /// The file in words, for errors.
    fn name(&self, path: &ProjectPath) -> PathBuf;

    /// What is at a path. A link is never followed.
    fn look(&self, path: &ProjectPath) -> io::Result<Found> {
        look_in(&self.folder_of(path), path)
    }
    /// Opens a file to read it that was seen to be a regular one.
    fn open(&self, path: &ProjectPath) -> io::Result<Box<dyn Read>> {
        self.folder_of(path)?.open(path.parts().1)
    }
}

/// An open folder of a project, whose files are read.
pub(crate) trait ProjectFolder {
    /// What has a name in it. A link is never followed.
    fn look(&self, name: &str) -> io::Result<Found>;
    /// Opens a file in it that was seen to be a regular one.
    fn open(&self, name: &str) -> io::Result<Box<dyn Read>>;
}

/// What is at a path, given the folder that it is in, which may be missing.
pub(crate) fn look_in(folder: &io::Result<Box<dyn ProjectFolder + '_>>, path: &ProjectPath) -> io::Result<Found> {
    match folder {
        Ok(folder) => folder.look(path.parts().1),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Found::Nothing),
        Err(error) if is_not_a_folder(error) => Ok(Found::BelowFile),
        Err(error) => Err(copied(error)),
    }
}

/// Writes a content into a file.
pub(crate) type WriteContent<'a> = dyn FnMut(&mut dyn Write) -> Result<()> + 'a;

/// What a temporary file is called: nobody else uses such a name.
pub(crate) fn staged_name(name: &str, id: &str) -> String {
    // Leaves room for the rest within 255 bytes, at four bytes a character.
    let start: String = name.chars().take(40).collect();
    format!(".{start}.scrollback-{id}")
}

/// A real project.
pub(crate) struct RealTree {
    root: Dir,
    path: PathBuf,
}

/// An open folder: the root is not opened again for each file.
enum Folder<'t> {
    Root(&'t Dir),
    Below(Dir),
}

impl Deref for Folder<'_> {
    type Target = Dir;

    fn deref(&self) -> &Dir {
        match self {
            Folder::Root(root) => root,
            Folder::Below(folder) => folder,
        }
    }
}

impl RealTree {
    /// Opens the root of a project. The root itself may be reached through links.
    pub(crate) fn open(root: &Path) -> Result<RealTree> {
        let path = root.canonicalize().at(root)?;
        // Memory that is kept as files is somebody's project, such as that of a test.
        let is_system =
            ["/proc", "/sys", "/dev"].iter().any(|folder| path.starts_with(folder)) && !path.starts_with("/dev/shm");
        if is_system || path.parent().is_none() {
            return Err(Error::InvalidRoot(root.to_path_buf()));
        }
        Ok(RealTree { root: Dir::open_ambient_dir(&path, ambient_authority()).at(root)?, path })
    }

    fn folder(&self, path: &ProjectPath) -> io::Result<Folder<'_>> {
        let mut folder = Folder::Root(&self.root);
        for name in path.parts().0 {
            folder = Folder::Below(folder.open_dir_nofollow(name)?);
        }
        Ok(folder)
    }
}

impl ProjectFolder for Folder<'_> {
    fn look(&self, name: &str) -> io::Result<Found> {
        let metadata = match self.symlink_metadata(name) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
            Err(error) => return Err(error),
        };
        let kind = metadata.file_type();
        Ok(if kind.is_symlink() {
            match self.read_link_contents(name)?.to_str() {
                Some(target) => Found::Link(target.to_owned()),
                None => Found::Other("the target of the link is not UTF-8"),
            }
        } else if kind.is_file() {
            Found::File { mode: mode_of(&metadata), stamp: stamp_of(&metadata) }
        } else if kind.is_dir() {
            Found::Folder
        } else {
            Found::Other("it is a device, a socket or a pipe")
        })
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn Read>> {
        let mut how = OpenOptions::new();
        how.read(true).follow(FollowSymlinks::No);
        without_waiting(&mut how);
        // Whoever reads has looked, and looks again before anything is changed: what took the name since does no harm. A pipe does
        // not let us wait, and no more is read than the file had.
        Ok(Box::new(self.open_with(name, &how)?))
    }
}

impl Worktree for RealTree {
    fn folder_of(&self, path: &ProjectPath) -> io::Result<Box<dyn ProjectFolder + '_>> {
        Ok(Box::new(self.folder(path)?))
    }

    fn list(&self, folder: &ProjectPath) -> io::Result<Vec<String>> {
        let entries = self.folder(folder)?.open_dir_nofollow(folder.parts().1)?.entries()?;
        let name = |entry: io::Result<DirEntry>| {
            entry?.file_name().into_string().map_err(|_| io::Error::from(io::ErrorKind::InvalidData))
        };
        entries.map(name).collect()
    }

    fn check_writable(&self, folder: Option<&ProjectPath>) -> io::Result<()> {
        let open = match folder {
            Some(folder) => self.folder(folder)?.open_dir_nofollow(folder.parts().1)?,
            None => self.root.try_clone()?,
        };
        open.access(".", AccessType::Access(AccessModes { readable: false, writable: true, executable: true }))
    }

    fn stage(&self, path: &ProjectPath, id: &str, mode: Option<u32>, write: &mut WriteContent<'_>) -> Result<()> {
        let place = self.name(path);
        let folder = self.folder(path).at(&place)?;
        let mut how = OpenOptions::new();
        how.write(true).create_new(true).follow(FollowSymlinks::No);
        private(&mut how);
        let mut file = folder.open_with(staged_name(path.parts().1, id), &how).at(&place)?;
        write(&mut file)?;
        set_mode_of(&file, mode).at(&place)?;
        file.sync_all().at(&place)
    }

    fn stage_link(&self, path: &ProjectPath, id: &str, target: &str) -> io::Result<()> {
        make_link(&*self.folder(path)?, target, &staged_name(path.parts().1, id))
    }

    fn publish(&self, path: &ProjectPath, id: &str, is_new: bool) -> io::Result<()> {
        let (folder, name) = (self.folder(path)?, path.parts().1);
        let staged = staged_name(name, id);
        if !is_new {
            return folder.rename(&staged, &folder, name);
        }
        match folder.hard_link(&staged, &folder, name) {
            Ok(()) => folder.remove_file(&staged),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
            // Not every file system has hard links.
            Err(_) if folder.symlink_metadata(name).is_ok() => Err(io::ErrorKind::AlreadyExists.into()),
            Err(_) => folder.rename(&staged, &folder, name),
        }
    }

    fn unstage(&self, path: &ProjectPath, id: &str) -> io::Result<()> {
        let removed = self.folder(path).and_then(|folder| folder.remove_file(staged_name(path.parts().1, id)));
        removed.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
    }

    fn remove(&self, path: &ProjectPath) -> io::Result<()> {
        self.folder(path)?.remove_file(path.parts().1)
    }

    fn make_folder(&self, path: &ProjectPath) -> io::Result<bool> {
        match self.folder(path)?.create_dir(path.parts().1) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn remove_folder(&self, path: &ProjectPath) -> io::Result<bool> {
        use io::ErrorKind::{DirectoryNotEmpty, NotADirectory, NotFound};
        match self.folder(path).and_then(|folder| folder.remove_dir(path.parts().1)) {
            Ok(()) => Ok(true),
            Err(error) if matches!(error.kind(), DirectoryNotEmpty | NotFound | NotADirectory) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn sync_folder(&self, path: &ProjectPath) -> io::Result<()> {
        // The handle of the folder only names it; Windows has no such call and needs none.
        if cfg!(unix) { Dir::open(&*self.folder(path)?, ".")?.sync_all() } else { Ok(()) }
    }

    fn name(&self, path: &ProjectPath) -> PathBuf {
        path.below(&self.path)
    }
}

/// An error of the system once more, for the next file of the same folder.
fn copied(error: &io::Error) -> io::Error {
    error
        .raw_os_error()
        .map_or_else(|| io::Error::new(error.kind(), error.to_string()), io::Error::from_raw_os_error)
}

/// Whether a name in a path is something else than a folder: a link is not followed, which systems tell in two ways.
fn is_not_a_folder(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotADirectory || is_loop(error)
}

#[cfg(unix)]
fn is_loop(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ELOOP)
}

#[cfg(unix)]
fn mode_of(metadata: &Metadata) -> Option<u32> {
    use cap_std::fs::MetadataExt;
    Some(metadata.mode() & 0o7777)
}

#[cfg(unix)]
fn stamp_of(metadata: &Metadata) -> Stamp {
    use cap_std::fs::MetadataExt;
    Stamp {
        length: metadata.len(),
        identity: (metadata.dev(), metadata.ino()),
        modified: (metadata.mtime(), metadata.mtime_nsec()),
        changed: (metadata.nlink() == 1).then(|| (metadata.ctime(), metadata.ctime_nsec())),
    }
}

#[cfg(unix)]
fn without_waiting(how: &mut OpenOptions) {
    use cap_std::fs::OpenOptionsExt;
    how.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
}

/// Nobody else reads a file before it has its own permissions.
#[cfg(unix)]
fn private(how: &mut OpenOptions) {
    use cap_std::fs::OpenOptionsExt;
    how.mode(0o600);
}

#[cfg(unix)]
fn set_mode_of(file: &File, mode: Option<u32>) -> io::Result<()> {
    use cap_std::fs::{Permissions, PermissionsExt};
    // Set-user-id and set-group-id bits come from a log: they are not set.
    mode.map_or(Ok(()), |mode| file.set_permissions(Permissions::from_mode(mode & 0o777)))
}

#[cfg(unix)]
fn make_link(folder: &Dir, target: &str, name: &str) -> io::Result<()> {
    folder.symlink_contents(target, name)
}

#[cfg(not(unix))]
mod windows {
    //! Windows has no permission bits, and creating links needs a right that people rarely have.

    use std::io;

    use cap_std::fs::{Dir, File, Metadata, OpenOptions};

    use super::Stamp;

    pub(super) fn is_loop(_: &io::Error) -> bool {
        false
    }

    pub(super) fn mode_of(_: &Metadata) -> Option<u32> {
        None
    }

    pub(super) fn stamp_of(metadata: &Metadata) -> Stamp {
        let modified =
            metadata.modified().ok().and_then(|time| time.into_std().duration_since(std::time::UNIX_EPOCH).ok());
        let modified = modified.map_or((0, 0), |since| (since.as_secs() as i64, i64::from(since.subsec_nanos())));
        Stamp { length: metadata.len(), identity: (0, 0), modified, changed: None }
    }

    pub(super) fn without_waiting(_: &mut OpenOptions) {}

    pub(super) fn private(_: &mut OpenOptions) {}

    pub(super) fn set_mode_of(_: &File, _: Option<u32>) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn make_link(_: &Dir, _: &str, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
#[cfg(not(unix))]
use windows::{is_loop, make_link, mode_of, private, set_mode_of, stamp_of, without_waiting};
