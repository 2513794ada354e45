//! The end of a session whose format has one at a time: its log moves to where ended ones lie, whole and under its lock.
//!
//! ```text
//! lock ─▶ still there? ─▶ anything said? ─▶ sync ─▶ take a free name ─▶ move there ─▶ sync both folders
//! ```
//!
//! A writer that still has the log open finds that nothing has its name any more, and begins it anew, header first.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};

use crate::dialect::layout::kept_beside;
use crate::disk::append::{Warning, lock_log, make_folders};
use crate::disk::{Disk, Locked, OpenLog, PathTarget, claim};
use crate::model::error::{At, Error, Result};
use crate::model::project;
use crate::model::record::{Kind, SessionId};
use crate::session::Session;
use crate::session::read::source::Source;
use crate::write::recorder::{Recorder, first_tally, tell};
use crate::write::store::{NewSession, Store};

/// A log that is replaced again each time that we have found it is not one to move.
const FILES_FOLLOWED: usize = 100;

/// A name has the second in it; where those of a whole day are taken, something else is wrong.
const NAMES_TRIED: i64 = 24 * 60 * 60;

/// When a session is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Now.
    Now,
    /// Now, if its newest instant is more than this long ago. One that tells no time is not idle.
    IdleFor {
        /// How long, in minutes.
        minutes: u32,
    },
}

/// What came of ending a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// It lies in the archive.
    Archived(Archived),
    /// There is none.
    NotThere,
    /// Nobody has said anything in it: it stays where it is.
    Empty,
    /// It goes on.
    NotIdle,
}

/// A session that was ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archived {
    /// What it is called now.
    pub session: SessionId,
    /// Its file.
    pub path: PathBuf,
    /// What happened on the way.
    pub warnings: Vec<Warning>,
}

impl Store {
    /// The session that goes on, where a format has one at a time for each project or person.
    pub fn current(&self, new: &NewSession<'_>) -> Result<Option<Source>> {
        let Some(archive) = self.writing.archive else { return Ok(None) };
        let now = (self.host.now)();
        let session = SessionId((self.host.new_id)());
        let path = self.path_of(&self.beginning(&session, new, None)?)?;
        let checked = self.check_folder(&path, new.project);
        if checked.is_ok() && self.disk.exists(&path) {
            return Ok(Some(Source::file(self.dialect, &path)));
        }
        if new.with.is_none() {
            // It may lie in a folder that an earlier version of the agent has named.
            let wanted = project::of(new.project);
            let is_it = |source: &Source, project: Option<&String>| {
                archive(&source.path, now).is_some() && project.is_some_and(|project| Path::new(project) == wanted)
            };
            let mut errors = Vec::new();
            let rows = self.rows(&mut errors).filter(|(source, row)| is_it(source, row.project.as_ref()));
            if let Some((source, _)) = rows.max_by(|(_, a), (_, b)| a.updated.cmp(&b.updated)) {
                return Ok(Some(source));
            }
            // What cannot be looked into may be it: a second one beside it would be two that go on.
            let is_gone =
                |error: &Error| matches!(error, Error::Io { source, .. } if source.kind() == io::ErrorKind::NotFound);
            if let Some(error) = errors.into_iter().find(|error| !is_gone(error)) {
                return Err(error);
            }
        }
        checked.map(|()| None)
    }

    /// Goes on with the [`Store::current`] session, or begins one: always the latter where a format has many at a time. One that
    /// was idle for longer than so many minutes is ended before; 0 is no limit, as in the settings of the agents.
    pub fn open_current(&self, new: NewSession<'_>, idle_minutes: Option<u32>) -> Result<(Recorder, Option<Archived>)> {
        let idle_minutes = idle_minutes.filter(|minutes| *minutes > 0);
        let mut archived = None;
        for _ in 0..FILES_FOLLOWED {
            let Some(source) = self.current(&new)? else {
                match self.begin(new) {
                    // Somebody was faster.
                    Err(Error::Exists(_)) => continue,
                    begun => return Ok((begun?, archived)),
                }
            };
            if let Some(minutes) = idle_minutes
                && let Ended::Archived(ended) = self.archive(&source, When::IdleFor { minutes })?
            {
                archived = Some(ended);
                continue;
            }
            match self.resume_in(new.project, &source, None) {
                Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
                resumed => return Ok((resumed?, archived)),
            }
        }
        Err(Error::Busy(self.root.clone()))
    }

    /// Whether a session was ended: it lies among those, and nothing is added to it any more.
    pub fn is_ended(&self, source: &Source) -> bool {
        let goes_on =
            |archive: fn(&Path, Timestamp) -> Option<PathBuf>| archive(&source.path, (self.host.now)()).is_some();
        // A file that lies in no store was not ended there.
        self.writing.archive.is_some_and(|archive| !goes_on(archive)) && source.store().is_some()
    }

    /// Goes on with what went on last, or begins it: the session that goes on, where a format has one at a time, else the
    /// newest of the project, or of those that tell of none.
    pub fn resume_or_create(&self, new: NewSession<'_>) -> Result<Recorder> {
        if self.writing.archive.is_some() {
            return self.open_current(new, None).map(|(recorder, _)| recorder);
        }
        let project = project::of(new.project);
        let (newest, errors) = self.newest(|_, row| row.project.as_ref().is_none_or(|told| Path::new(told) == project));
        let mut recorder = match newest {
            Some(source) => self.resume_source(&source, None)?,
            None => self.begin(new)?,
        };
        if !errors.is_empty() {
            recorder.warning(Warning::Unread);
        }
        Ok(recorder)
    }

    /// Begins a session. The one that goes on, where a format has one at a time, is ended before.
    pub fn archive_and_create(&self, new: NewSession<'_>) -> Result<Recorder> {
        if let Some(current) = self.current(&new)? {
            self.archive(&current, When::Now)?;
        }
        self.open_current(new, None).map(|(recorder, _)| recorder)
    }

    /// Ends a session: its file goes where ended ones lie, and nothing there is overwritten.
    pub fn archive(&self, source: &Source, when: When) -> Result<Ended> {
        let cannot = |what: &str| Error::cannot_store(self.dialect.name(), what.to_owned());
        let Some(archive) = self.writing.archive else { return Err(cannot("an archive of ended sessions")) };
        self.check_log(source)?;
        if self.is_ended(source) {
            return Err(Error::Ended(source.name()));
        }
        let (path, now) = (&source.path, (self.host.now)());
        let name = |ended| archive(path, ended).ok_or_else(|| cannot("an end of a session that is not going on"));
        check_inside(path, &name(now)?)?;
        let Some((log, locked)) = self.lock_current(path)? else { return Ok(Ended::NotThere) };
        let ended = self.end(source, &*log, when, name);
        // A lock that cannot be given back goes with the handle.
        drop(log.unlock());
        Ok(match ended? {
            Ended::Archived(mut archived) => {
                archived.warnings.extend((locked == Locked::Unsupported).then_some(Warning::NoLocks));
                Ended::Archived(archived)
            }
            other => other,
        })
    }

    /// Ends a session; the caller holds its lock.
    fn end(
        &self,
        source: &Source,
        log: &dyn OpenLog,
        when: When,
        name: impl Fn(Timestamp) -> Result<PathBuf>,
    ) -> Result<Ended> {
        let (session, now) = (self.read(source)?, (self.host.now)());
        if says_nothing(&session) {
            return Ok(Ended::Empty);
        }
        if let When::IdleFor { minutes } = when {
            let limit = SignedDuration::from_mins(i64::from(minutes));
            if session.updated().is_none_or(|last| now.duration_since(last) <= limit) {
                return Ok(Ended::NotIdle);
            }
        }
        let to = move_away(&*self.disk, log, &source.path, now, name)?;
        // Where no line tells what it is called, its place does.
        let is_told = session.id().as_str() != source.name();
        let archived = if is_told { session.id() } else { SessionId(Source::file(self.dialect, &to).name()) };
        let mut warnings = self.begin_sidecar(&session, source, now);
        warnings.extend(self.move_kept(&source.path, &to));
        Ok(Ended::Archived(Archived { session: archived, path: to, warnings }))
    }

    /// What the log was converted from goes with it.
    fn move_kept(&self, log: &Path, archived: &Path) -> Option<Warning> {
        let (from, to) = (kept_beside(log), kept_beside(archived));
        if !self.disk.exists(&from) {
            return None;
        }
        let sync = |file: &PathBuf| file.parent().map_or(Ok(()), |folder| self.disk.sync_folder(folder));
        let moved = claim(&*self.disk, &from, &to).and_then(|()| sync(&to)).and_then(|()| sync(&from));
        moved.is_err().then_some(Warning::NoSidecar)
    }

    /// The file beside the log counts anew; whose it is, and what else it says, stays.
    fn begin_sidecar(&self, session: &Session, source: &Source, now: Timestamp) -> Vec<Warning> {
        let place = self.place(session.id(), &source.path);
        let project = session.cwd().map_or_else(|| self.host.cwd.clone(), |cwd| project::of(Path::new(cwd)));
        let mut tally = first_tally(&place, &project);
        (tally.updated, tally.is_open) = (Some(now), false);
        let written = tell(&place, |says, tell| tell(says, &tally));
        written.err().map(|_| Warning::NoSidecar).into_iter().collect()
    }

    /// Locks the file that the path names now; nothing where it names none.
    fn lock_current(&self, path: &Path) -> Result<Option<(Box<dyn OpenLog>, Locked)>> {
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

/// Gives a log a free name, a second later for each that is taken: names sort as the sessions ended.
///
/// At no point it has two names: whoever goes on after a crash would write into both.
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
        // The new name first: of a move that is half on disk, no name is worse than two.
        for folder in [&to, path].into_iter().filter_map(|file| file.parent()) {
            disk.sync_folder(folder).at(folder)?;
        }
        return Ok(to);
    }
    Err(Error::Exists(to))
}

/// Whether there is nothing to keep: headers, and at most a piece of a line. It stays where the next words are recorded.
fn says_nothing(session: &Session) -> bool {
    session.records().all(|record| record.kind() == Kind::Header)
}

/// A link among the folders may lead anywhere.
fn check_inside(log: &Path, archive: &Path) -> Result<()> {
    let folder = |path: &Path| path.ancestors().skip(1).find_map(|folder| fs::canonicalize(folder).ok());
    let is_inside = match (folder(archive), folder(log)) {
        (Some(archive), Some(log)) => archive.starts_with(log),
        _ => true,
    };
    let name = || archive.parent().unwrap_or(archive).display().to_string();
    let why = || "it leads out of the store".to_owned();
    if is_inside { Ok(()) } else { Err(Error::InvalidName { name: name(), why: why() }) }
}

#[cfg(test)]
mod tests;
