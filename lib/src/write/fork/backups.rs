//! The file history of a fork: copies of the backups that its snapshots name.
//!
//! Names come from the log: only regular files in the source's own file history are copied.

use std::fs;
use std::path::{Path, PathBuf};

use hashbrown::HashSet;

use crate::disk::Disk;
use crate::disk::append::make_folders;
use crate::disk::inside::Inside;
use crate::disk::replace::delete;
use crate::model::error::{At, Error, Result};
use crate::model::record::{Before, Body, Kind};
use crate::session::Session;
use crate::session::read::source::Source;
use crate::write::copy::copy_file;

/// Backups that were copied for a fork which is not published yet.
pub(super) struct Backups<'a> {
    disk: &'a dyn Disk,
    /// The folder of the copies, where one was needed.
    folder: Option<PathBuf>,
    copied: Vec<PathBuf>,
}

impl<'a> Backups<'a> {
    /// Copies the backups that `fork` names from the file history of `session` to that of the log `path`. A failure leaves nothing.
    pub(super) fn copy(disk: &'a dyn Disk, session: &Session, fork: &Session, path: &Path) -> Result<Backups<'a>> {
        let mut backups = Backups { disk, folder: None, copied: Vec::new() };
        let (Some(from), Some(to)) = (session.source.file_history(), Source::file(fork.dialect(), path).file_history())
        else {
            return Ok(backups);
        };
        let files = found(disk, &session.source, &from, named(fork)?);
        if files.is_empty() {
            return Ok(backups);
        }
        if disk.exists(&to) {
            return Err(Error::Exists(to));
        }
        backups.folder = Some(to.clone());
        let copied = backups.copy_all(&files, &to);
        copied.inspect_err(|_| backups.clean_up()).map(|()| backups)
    }

    fn copy_all(&mut self, files: &[PathBuf], to: &Path) -> Result<()> {
        for file in files {
            let copy = to.join(file.file_name().unwrap_or_default());
            make_folders(self.disk, &copy)?;
            self.copied.push(copy.clone());
            copy_file(self.disk, file, &copy)?;
        }
        self.disk.sync_folder(to).at(to)
    }

    /// Removes the copies of a fork that failed. What cannot be removed belongs to a session that does not exist.
    pub(super) fn clean_up(&self) {
        self.copied.iter().for_each(|copy| drop(delete(self.disk, copy)));
        self.folder.iter().for_each(|folder| drop(self.disk.remove_folder(folder)));
    }
}

/// The names of the backups in a session's snapshots, without folders.
fn named(session: &Session) -> Result<HashSet<String>> {
    let mut names = HashSet::new();
    for record in session.records().filter(|record| record.kind() == Kind::Snapshot) {
        let Body::Snapshot(snapshot) = record.body()? else { continue };
        for file in snapshot.all_files() {
            if let Before::Backup { name, .. } = &file.before {
                names.extend(Path::new(name).file_name().map(|name| name.to_string_lossy().into_owned()));
            }
        }
    }
    Ok(names)
}

/// The regular files of these names in a session's file history, in the order of names.
fn found(disk: &dyn Disk, source: &Source, folder: &Path, names: HashSet<String>) -> Vec<PathBuf> {
    let is_own = |file: &PathBuf| {
        let is_inside = Inside::store_of(source).is_some_and(|inside| inside.check(disk, file).is_ok());
        is_inside && fs::symlink_metadata(file).is_ok_and(|found| found.is_file())
    };
    let mut files: Vec<PathBuf> = names.into_iter().map(|name| folder.join(name)).filter(is_own).collect();
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::dialect;
    use crate::session::read::open::ReadOptions;
    use crate::write::trash::tests::Full;

    #[test]
    fn copies_that_do_not_fit_leave_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let log = root.join("sessions/s1/messages.jsonl");
        fs::create_dir_all(log.with_file_name("backups")).unwrap();
        let files = r#"{"a":{"backupPath":"a.backup"},"b":{"backupPath":"b.backup"}}"#;
        fs::write(&log, format!("{{\"type\":\"file_history_snapshot\",\"snapshot\":{{\"fileBackups\":{files}}}}}\n"))
            .unwrap();
        fs::write(log.with_file_name("backups").join("a.backup"), "12345").unwrap();
        fs::write(log.with_file_name("backups").join("b.backup"), "12345").unwrap();
        let source = Source::file(dialect::named("native").unwrap(), &log);
        let session = Session::open(&source, &ReadOptions::plain(jiff::Timestamp::UNIX_EPOCH)).unwrap();
        for (room, fits) in [(0, false), (5, false), (9, false), (10, true)] {
            let disk = Full(Arc::new(Mutex::new(room)));
            let fork = root.join("sessions/f/messages.jsonl");
            let copied = Backups::copy(&disk, &session, &session, &fork);
            assert_eq!((copied.is_ok(), fork.with_file_name("backups").exists()), (fits, fits), "{room}");
        }
    }
}
