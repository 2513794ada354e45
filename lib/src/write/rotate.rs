//! Ends a session whose format keeps one at a time: its log moves to the ended sessions, whole and under its lock.
//!
//! ```text
//! lock ─▶ still there? ─▶ any message? ─▶ sync ─▶ take a free name ─▶ move there ─▶ sync both folders
//! ```
//!
//! A writer that still has the log open finds that the name is free, and starts the file again, header first.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};

use crate::dialect::layout::beside_converted;
use crate::disk::append::{Warning, lock_log, make_folders};
use crate::disk::replace::sync_parent;
use crate::disk::{Disk, Locked, OpenLog, PathTarget, claim};
use crate::model::error::{At, Error, Result};
use crate::model::project;
use crate::model::record::{Kind, SessionId};
use crate::session::Session;
use crate::session::read::source::Source;
use crate::write::recorder::{Recorder, first_tally, replace_sidecar};
use crate::write::store::{NewSession, Store};

/// A log that is replaced this often while we lock it cannot be moved.
const FILES_FOLLOWED: usize = 100;

/// A name contains the second; if those of a whole day are taken, something else is wrong.
const NAMES_TRIED: i64 = 24 * 60 * 60;

/// When a session is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Now.
    Now,
    /// Now, if its newest record is older than this. A session without times is not idle.
    IdleFor {
        /// How long, in minutes.
        minutes: u32,
    },
}

/// The result of [`Store::rotate`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rotation {
    /// The session has ended.
    Ended(EndedSession),
    /// There is no session.
    NotThere,
    /// It has no messages and stays where it is.
    Empty,
    /// It was not idle for long enough and continues.
    NotIdle,
}

/// A session that was ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedSession {
    /// Its id from now on.
    pub session: SessionId,
    /// Its file from now on.
    pub path: PathBuf,
    /// What the user should know.
    pub warnings: Vec<Warning>,
}

impl Store {
    /// The current session of a project or person, if the format keeps one at a time.
    pub fn current(&self, new: &NewSession<'_>) -> Result<Option<Source>> {
        let Some(ended_path) = self.writing.ended_path else { return Ok(None) };
        let now = (self.host.now)();
        let session = SessionId((self.host.new_id)());
        let path = self.path_of(&self.beginning(&session, new, None)?)?;
        let checked = self.check_folder(&path, new.project);
        if checked.is_ok() && self.disk.exists(&path) {
            return Ok(Some(Source::file(self.dialect, &path)));
        }
        if new.with.is_none() {
            // An earlier version of the agent may have named its folder differently.
            let wanted = project::of(new.project);
            let is_it = |source: &Source, project: Option<&String>| {
                ended_path(&source.path, now).is_some() && project.is_some_and(|project| Path::new(project) == wanted)
            };
            let mut errors = Vec::new();
            let rows = self.rows(&mut errors).filter(|(source, row)| is_it(source, row.project.as_ref()));
            if let Some((source, _)) = rows.max_by(|(_, a), (_, b)| a.updated.cmp(&b.updated)) {
                return Ok(Some(source));
            }
            // A session that cannot be read may be the current one; there must not be a second.
            let is_gone =
                |error: &Error| matches!(error, Error::Io { source, .. } if source.kind() == io::ErrorKind::NotFound);
            if let Some(error) = errors.into_iter().find(|error| !is_gone(error)) {
                return Err(error);
            }
        }
        checked.map(|()| None)
    }

    /// Resumes the [`Store::current`] session, or creates one. One that was idle for too long is ended first; 0 is no limit.
    pub(crate) fn current_or_new(&self, new: NewSession<'_>, idle_minutes: u32) -> Result<Recorder> {
        let mut ended = None;
        for _ in 0..FILES_FOLLOWED {
            let Some(source) = self.current(&new)? else {
                match self.begin(new) {
                    // Another program was faster.
                    Err(Error::Exists(_)) => continue,
                    created => return Ok(created?.after(ended)),
                }
            };
            if idle_minutes > 0
                && let Rotation::Ended(session) = self.rotate(&source, When::IdleFor { minutes: idle_minutes })?
            {
                ended = Some(session);
                continue;
            }
            match self.resume_in(new.project, &source, None) {
                Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
                resumed => return Ok(resumed?.after(ended)),
            }
        }
        Err(Error::Busy(self.root.clone()))
    }

    /// Whether a session has ended: nothing more is added to it.
    pub fn is_ended(&self, source: &Source) -> bool {
        let continues =
            |ended_path: fn(&Path, Timestamp) -> Option<PathBuf>| ended_path(&source.path, (self.host.now)()).is_some();
        // Only a file in a store can be among its ended sessions.
        self.writing.ended_path.is_some_and(|ended_path| !continues(ended_path)) && source.store().is_some()
    }

    /// Ends a session: its file moves to the ended ones, and nothing there is overwritten.
    pub fn rotate(&self, source: &Source, when: When) -> Result<Rotation> {
        let cannot = |what: &str| Error::cannot_store(self.dialect.name(), what.to_owned());
        let Some(ended_path) = self.writing.ended_path else { return Err(cannot("ended sessions")) };
        self.check_log(source)?;
        if self.is_ended(source) {
            return Err(Error::Ended(source.name()));
        }
        let (path, now) = (&source.path, (self.host.now)());
        let name = |ended| ended_path(path, ended).ok_or_else(|| cannot("an end of a session that is not current"));
        check_inside(path, &name(now)?)?;
        let Some((log, locked)) = self.lock_current(path)? else { return Ok(Rotation::NotThere) };
        let ended = self.end(source, &*log, when, name);
        // A lock that cannot be released ends with the handle.
        drop(log.unlock());
        Ok(match ended? {
            Rotation::Ended(mut ended) => {
                ended.warnings.extend((locked == Locked::Unsupported).then_some(Warning::NoLocks));
                Rotation::Ended(ended)
            }
            other => other,
        })
    }

    /// The same; the caller holds the lock.
    fn end(
        &self,
        source: &Source,
        log: &dyn OpenLog,
        when: When,
        name: impl Fn(Timestamp) -> Result<PathBuf>,
    ) -> Result<Rotation> {
        let (session, now) = (self.read(source)?, (self.host.now)());
        if is_empty(&session) {
            return Ok(Rotation::Empty);
        }
        if let When::IdleFor { minutes } = when {
            let limit = SignedDuration::from_mins(i64::from(minutes));
            if session.updated().is_none_or(|last| now.duration_since(last) <= limit) {
                return Ok(Rotation::NotIdle);
            }
        }
        let to = move_away(&*self.disk, log, &source.path, now, name)?;
        // A session without an id in its lines is named after its place.
        let has_own_id = session.id().as_str() != source.name();
        let id = if has_own_id { session.id() } else { SessionId(Source::file(self.dialect, &to).name()) };
        let mut warnings = self.begin_sidecar(&session, source, now);
        warnings.extend(self.move_original(&source.path, &to));
        Ok(Rotation::Ended(EndedSession { session: id, path: to, warnings }))
    }

    /// Moves the files that keep the original of a converted session.
    fn move_original(&self, log: &Path, ended: &Path) -> Option<Warning> {
        let files = beside_converted(log).into_iter().zip(beside_converted(ended));
        let moved = files
            .filter(|(from, _)| self.disk.exists(from))
            .map(|(from, to)| claim(&*self.disk, &from, &to).at(&to).and_then(|()| sync_both(&*self.disk, &from, &to)));
        (moved.filter(|moved| moved.is_err()).count() > 0).then_some(Warning::NoSidecar)
    }

    /// Resets the counts in the sidecar; its other fields stay.
    fn begin_sidecar(&self, session: &Session, source: &Source, now: Timestamp) -> Vec<Warning> {
        let place = self.place(session.id(), &source.path);
        let project = session.cwd().map_or_else(|| self.host.cwd.clone(), |cwd| project::of(Path::new(cwd)));
        let mut tally = first_tally(&place, &project);
        (tally.started, tally.updated, tally.is_open) = (session.started().or(Some(now)), Some(now), false);
        let written = replace_sidecar(&place, |old, build| build(old, &tally));
        written.err().map(|error| Warning::of_sidecar(&error)).into_iter().collect()
    }

    /// Locks the file that the path names now; `None` if there is none.
    pub(super) fn lock_current(&self, path: &Path) -> Result<Option<(Box<dyn OpenLog>, Locked)>> {
        for _ in 0..FILES_FOLLOWED {
            let log = match self.disk.open(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                log => log.at(path)?,
            };
            let locked = lock_log(&*self.disk, &*log, path)?;
            match log.is_at(path).at(path)? {
                PathTarget::ThisFile { .. } => return Ok(Some((log, locked))),
                PathTarget::Nothing => return Ok(None),
                PathTarget::AnotherFile => {}
            }
        }
        Err(Error::Busy(path.to_path_buf()))
    }
}

/// Moves a log to a free name, a second later for each that is taken, so that names sort by the end of the sessions.
///
/// It never has two names: after a crash, a program that continues it would write to both.
fn move_away(
    disk: &dyn Disk,
    log: &dyn OpenLog,
    path: &Path,
    ended: Timestamp,
    name: impl Fn(Timestamp) -> Result<PathBuf>,
) -> Result<PathBuf> {
    log.sync().at(path)?;
    let mut to = name(ended)?;
    make_folders(disk, &to)?;
    for later in 0..NAMES_TRIED {
        to = name(ended.saturating_add(SignedDuration::from_secs(later)).unwrap_or(ended))?;
        match claim(disk, path, &to) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            moved => moved.at(&to)?,
        }
        return sync_both(disk, path, &to).map(|()| to);
    }
    Err(Error::Exists(to))
}

/// Makes a move survive a crash. The new name comes first: if only half of the move is on disk, no name is worse than two.
fn sync_both(disk: &dyn Disk, from: &Path, to: &Path) -> Result<()> {
    sync_parent(disk, to)?;
    sync_parent(disk, from)
}

/// Whether there is nothing to keep: only headers, and at most a torn line. It stays, and the next message is recorded there.
fn is_empty(session: &Session) -> bool {
    session.records().all(|record| record.kind() == Kind::Header)
}

/// Fails if a link among the folders leads out of the store.
fn check_inside(log: &Path, ended: &Path) -> Result<()> {
    let folder = |path: &Path| path.ancestors().skip(1).find_map(|folder| fs::canonicalize(folder).ok());
    let is_inside = match (folder(ended), folder(log)) {
        (Some(ended), Some(log)) => ended.starts_with(log),
        _ => true,
    };
    let name = || ended.parent().unwrap_or(ended).display().to_string();
    let why = || "it leads out of the store".to_owned();
    if is_inside { Ok(()) } else { Err(Error::InvalidName { name: name(), why: why() }) }
}

#[cfg(test)]
mod tests;
