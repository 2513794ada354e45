//! One dialect's sessions in one folder: create, resume, rename, rewind and remove them.
//!
//! The folder is the one that the agent's own variable would name. Existing sessions are found as [`crate::view::listing`] finds them.

mod find;
mod place;

pub use find::Listed;

pub(crate) use find::link_named;
pub(crate) use place::{ANY_ID, check_name};

use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use hashbrown::HashSet;

use crate::dialect::writer::{Beginning, Line, Shape, Writer};
use crate::dialect::{Dialect, Native};
use crate::disk::append::{Appender, Warning, lock_log, make_folders};
use crate::disk::in_use::is_in_use;
use crate::disk::inside::Inside;
use crate::disk::live::LiveLock;
use crate::disk::replace::delete;
use crate::disk::sidecar;
use crate::disk::{Disk, Real};
use crate::model::error::{At, Error, Result};
use crate::model::git;
use crate::model::host::Host;
use crate::model::json;
use crate::model::project;
use crate::model::record::{Body, Kind, RecordId, SessionId, Title};
use crate::model::regular_file::{self, Links};
use crate::redact::Redactor;
use crate::session::blob;
use crate::session::read::source::Source;
use crate::session::{RecordRef, Session};
use crate::view::answers::SessionRow;
use crate::write::recorder::{Cursor, Entry, Log, Mode, Options, Place, Recorder};
use crate::write::rotate::When;
use crate::write::trash::{Removed, Trash};

/// Where sessions of one dialect are written.
///
/// ```
/// use scrollback::{Policy, Store};
/// use std::path::Path;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let root = folder.path();
/// let store = Store::native(root)?;
/// let project = Path::new("/home/ada/tides");
/// let mut session = store.create(project)?;
/// session.user("When is high water?")?;
/// drop(session); // as if the process had died
///
/// let mut session = store.session(project, Policy::Latest)?;
/// session.assistant("At 04:12.")?;
/// session.close()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Store {
    pub(crate) dialect: &'static dyn Dialect,
    pub(crate) writing: &'static Writer,
    pub(crate) root: PathBuf,
    pub(crate) host: Host,
    pub(crate) disk: Arc<dyn Disk>,
    options: Options,
    /// The agent's settings, if a new session depends on them.
    settings: Option<String>,
}

/// Settings that people write are far smaller.
const SETTINGS_LIMIT_BYTES: u64 = 1024 * 1024;

/// Which session of a project to record to. See [`Store::session`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// A new one; an id that is taken is refused.
    New,
    /// A new one; if its id is taken by a session of the same project, that one. For programs that start at the same moment.
    NewOrSame,
    /// The newest one, or [`Error::NoSession`].
    Latest,
    /// The newest one, or a new one if there is none.
    LatestOrNew,
    /// The current one if the format keeps one at a time, else a new one.
    Current {
        /// A session that was idle for longer is ended first, and a new one begins; 0 is no limit.
        idle_minutes: u32,
    },
    /// A new one. If the format keeps one at a time, the current one is ended first.
    Rotate,
}

/// A session to create.
#[derive(Debug, Clone, Copy)]
pub struct NewSession<'a> {
    /// Its id; `None` makes a new one.
    pub id: Option<&'a str>,
    /// The project's directory, absolute.
    pub project: &'a Path,
    /// The person or room that it is with, if the format asks for one.
    pub with: Option<&'a str>,
}

impl<'a> NewSession<'a> {
    /// A session of a project, with a new id.
    pub fn of(project: &'a Path) -> NewSession<'a> {
        NewSession { id: None, project, with: None }
    }
}

impl<'a, P: AsRef<Path> + ?Sized> From<&'a P> for NewSession<'a> {
    fn from(project: &'a P) -> NewSession<'a> {
        NewSession::of(project.as_ref())
    }
}

/// The lock of a recorder, or why there is none.
#[derive(Default)]
struct Guard {
    lock: Option<LiveLock>,
    warning: Option<Warning>,
}

/// A record that was added to a session by itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Amended {
    /// The entry of its recorder.
    pub entry: Entry,
    /// What other programs or a crash did to the file.
    pub warnings: Vec<Warning>,
}

impl Store {
    /// A store of scrollback's own format at `root`, for an agent that runs on this machine. To record the name and version of
    /// your agent, use [`Store::open`].
    pub fn native(root: impl AsRef<Path>) -> Result<Store> {
        let host = Host::system(concat!("scrollback ", env!("CARGO_PKG_VERSION")))?;
        Store::open(&Native, root.as_ref(), host)
    }

    /// A store at `root`: the folder that the agent's own variable names, such as `~/.claude` for Claude Code. Nothing is
    /// created there before the first session.
    ///
    /// ```
    /// use scrollback::{Host, Store, dialect};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let root = folder.path();
    /// let claude_code = dialect::named("claude-code").ok_or("unknown format")?;
    /// let store = Store::open(claude_code, root, Host::system("my-agent 0.3.1")?)?;
    /// assert!(store.list(None).rows.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn open(dialect: &'static dyn Dialect, root: &Path, host: Host) -> Result<Store> {
        Store::on(Arc::new(Real), dialect, root, host)
    }

    pub(crate) fn on(disk: Arc<dyn Disk>, dialect: &'static dyn Dialect, root: &Path, host: Host) -> Result<Store> {
        let writing = dialect.writer().ok_or(Error::ReadOnly(dialect.name()))?;
        let root = host.cwd.join(root);
        let settings = writing.settings.and_then(|name| {
            let bytes = regular_file::read(&root.join(name), SETTINGS_LIMIT_BYTES, Links::Follow).ok()?;
            String::from_utf8(bytes).ok()
        });
        Ok(Store { dialect, writing, root, host, disk, options: Options::usual(), settings })
    }

    /// The dialect of its sessions.
    pub fn dialect(&self) -> &'static dyn Dialect {
        self.dialect
    }

    /// The same store with other options for its recorders.
    pub fn with_options(self, options: Options) -> Store {
        Store { options, ..self }
    }

    /// The same store for copies of a session: they are masked if the session is.
    pub(crate) fn copying(&self, session: &Session) -> Store {
        let redactor = session.mask.as_ref().map(|mask| mask.redactor().clone());
        Store { options: Options { redactor, ..self.options.clone() }, ..self.clone() }
    }

    /// Creates a session of a project: an absolute path, the project's root or a directory in it.
    pub fn create(&self, project: impl AsRef<Path>) -> Result<Recorder> {
        self.session(project.as_ref(), Policy::New)
    }

    /// Opens the session that the policy chooses.
    pub fn session<'a>(&self, new: impl Into<NewSession<'a>>, policy: Policy) -> Result<Recorder> {
        let new = new.into();
        match policy {
            Policy::New => self.begin_as_named(new),
            Policy::NewOrSame => match (self.begin_as_named(new), new.id) {
                (Err(Error::Exists(path)), Some(id)) => self.join(id, new.project, path),
                (begun, _) => begun,
            },
            Policy::Latest => match self.latest(|known, wanted| known.is_some_and(|known| known == wanted), &new)? {
                (Some(recorder), _) => Ok(recorder),
                // If no session was found, an unreadable one may be the reason.
                (None, error) => Err(error.unwrap_or(Error::NoSession(None))),
            },
            Policy::LatestOrNew if self.writing.ended_path.is_some() => self.current_or_new(new, 0),
            Policy::LatestOrNew => {
                match self.latest(|known, wanted| known.is_none_or(|known| known == wanted), &new)? {
                    (Some(recorder), _) => Ok(recorder),
                    (None, error) => {
                        let mut recorder = self.begin(new)?;
                        error.into_iter().for_each(|_| recorder.warning(Warning::Unread));
                        Ok(recorder)
                    }
                }
            }
            Policy::Current { idle_minutes } => self.current_or_new(new, idle_minutes),
            Policy::Rotate => {
                if let Some(current) = self.current(&new)? {
                    self.rotate(&current, When::Now)?;
                }
                self.current_or_new(new, 0)
            }
        }
    }

    /// Creates a session. An id that was chosen may be taken anywhere in the store, under a name that contains another time or
    /// project: one program at a time looks for it and creates the file.
    fn begin_as_named(&self, new: NewSession<'_>) -> Result<Recorder> {
        let Some(id) = new.id else { return self.begin(new) };
        self.in_project(&new).as_ref().unwrap_or(self).prepare(&new)?;
        make_folders(&*self.disk, &self.root.join(id))?;
        let folder = match self.disk.open_folder(&self.root) {
            Err(error) if error.kind() == ErrorKind::PermissionDenied => None,
            folder => folder.at(&self.root)?,
        };
        if let Some(folder) = &folder {
            // Where there are no locks, two programs can still be too fast for each other.
            lock_log(&*self.disk, &**folder, &self.root)?;
        }
        // The lock ends with the handle.
        self.check_id_is_free(id).and_then(|()| self.begin(new))
    }

    /// Continues in the session that another program has just begun with this id.
    fn join(&self, id: &str, project: &Path, taken: PathBuf) -> Result<Recorder> {
        let source = self.source(id)?;
        let is_elsewhere = |cwd: &str| project::of(Path::new(cwd)) != project::of(project);
        if self.read(&source)?.cwd().is_some_and(is_elsewhere) {
            return Err(Error::Exists(taken));
        }
        self.resume_source(&source, None)
    }

    fn check_id_is_free(&self, id: &str) -> Result<()> {
        self.with_id(id).0.into_iter().next().map_or(Ok(()), |known| Err(Error::Exists(known.path)))
    }

    /// Creates a session, all or nothing. One that exists is refused.
    pub(crate) fn begin(&self, new: NewSession<'_>) -> Result<Recorder> {
        if new.project.is_absolute() && new.project.components().any(|part| part == Component::ParentDir) {
            let project = project::settled(&self.host.cwd, new.project);
            return self.begin(NewSession { project: &project, ..new });
        }
        if let Some(store) = self.in_project(&new) {
            return store.begin(new);
        }
        let (session, path, header) = self.prepare(&new)?;
        let session = self.called(session, &path);
        let place = self.place(session, &path);
        let cursor = Cursor::fresh(&place, new.project);
        let guard = self.guard(&path)?;
        // In formats with one session at a time, the sidecar is that of the session before.
        let sidecar = place.sidecar.as_deref().and_then(sidecar::content);
        let created = Appender::create(self.disk.clone(), &path, header.clone()).and_then(|mut appender| {
            // A session that was named exists from now on, even if the machine crashes.
            appender.sync()?;
            Ok(appender)
        });
        let appender = created.map_err(|error| match error {
            // Another program was faster.
            Error::Io { source, path: file } if source.kind() == ErrorKind::AlreadyExists => Error::Exists(file),
            error => {
                let is_header = || {
                    let written = regular_file::read(&path, header.len() as u64, Links::Refuse);
                    written.is_ok_and(|written| header.starts_with(&written))
                };
                // Its sidecar is not written yet: one that is there is that of the session before.
                drop(self.clear_away(&path, None, is_header));
                error
            }
        })?;
        let inside = Inside::store_of(&Source::file(self.dialect, &path));
        let mut appender = appender.inside(inside);
        appender.begin_at(place.may_change_session().then_some(header.len() as u64));
        let mut log = Log::new(place, appender, cursor, sidecar).guarded_by(guard.lock);
        guard.warning.into_iter().for_each(|warning| log.warning(warning));
        log.write_sidecar();
        Ok(Recorder::new(log, self.options.clone()))
    }

    /// The id of a new session: the one in its path, in formats whose lines do not store it.
    pub(crate) fn called(&self, session: SessionId, path: &Path) -> SessionId {
        if (self.writing.states_session_id)(&session) {
            return session;
        }
        self.dialect.session_id_from_path(path).map_or(session, SessionId)
    }

    /// Checks that a session can be created at its place; writes nothing. A session of the same id at another place is found when
    /// it is created, or by [`Store::exists`]: both look into every file of the store.
    pub fn check(&self, new: NewSession<'_>) -> Result<()> {
        self.in_project(&new).as_ref().unwrap_or(self).prepare(&new).map(|_| ())
    }

    /// Deletes a session that was created and has no records. One with records stays, and its recorder is returned.
    pub fn discard(&self, recorder: Recorder) -> Result<Option<Recorder>> {
        let (Some(path), Some(session)) = (recorder.path().map(Path::to_path_buf), recorder.session().cloned()) else {
            return Ok(Some(recorder));
        };
        let read = || self.read(&Source::file(self.dialect, &path));
        let is_empty = || read().is_ok_and(|session| session.records().all(|record| record.kind() == Kind::Header));
        let is_gone = self.clear_away(&path, self.place(session, &path).sidecar.as_deref(), is_empty)?;
        Ok((!is_gone).then_some(recorder))
    }

    /// Deletes a log that still has no records, and its folder if that is empty then. Returns whether the log is gone.
    fn clear_away(&self, path: &Path, sidecar: Option<&Path>, is_empty: impl Fn() -> bool) -> Result<bool> {
        // Another program may have begun to write: what it writes later goes to a new file.
        let Some(folder) = path.parent() else { return Ok(false) };
        let Some((log, _)) = self.lock_current(path)? else {
            // It was never created, or another program moved it: a sidecar that is there is not of this log.
            drop(self.disk.remove_folder(folder));
            return Ok(true);
        };
        let deleted = if is_empty() { delete(&*self.disk, path).map(|()| true) } else { Ok(false) };
        drop(log.unlock());
        if !deleted? {
            return Ok(false);
        }
        let mut rest = fs::read_dir(folder).at(folder)?.flatten().map(|entry| entry.path());
        let only = (rest.next(), rest.next());
        if let ((Some(left), None), Some(sidecar)) = (only, sidecar)
            && left == sidecar
        {
            delete(&*self.disk, sidecar)?;
        }
        // A folder that is not empty stays.
        drop(self.disk.remove_folder(folder));
        Ok(true)
    }

    /// The store with the project as working directory: readers derive a session's project from its working directory.
    fn in_project(&self, new: &NewSession<'_>) -> Option<Store> {
        let is_elsewhere = new.project.is_absolute() && !self.host.cwd.starts_with(new.project);
        let host = || Host { cwd: new.project.to_path_buf(), ..self.host.clone() };
        is_elsewhere.then(|| Store { host: host(), ..self.clone() })
    }

    /// The id, the path and the header of a session that can be created.
    fn prepare(&self, new: &NewSession<'_>) -> Result<(SessionId, PathBuf, Vec<u8>)> {
        let session = SessionId(new.id.map_or_else(|| (self.host.new_id)(), str::to_owned));
        let git_branch = git::branch(&self.host.cwd);
        check_name(session.as_str())?;
        self.check_storable_id(&session)?;
        if fs::metadata(&self.root).is_ok_and(|root| !root.is_dir()) {
            return Err(std::io::Error::from(ErrorKind::NotADirectory)).at(&self.root);
        }
        let beginning = self.beginning(&session, new, git_branch.as_deref())?;
        let path = self.path_of(&beginning)?;
        if self.disk.exists(&path) {
            return Err(Error::Exists(path));
        }
        let header = self.bytes(&(self.writing.header)(&beginning));
        self.check_folder(&path, new.project)?;
        Ok((session, path, header))
    }

    /// Resumes a session at its head; a unique prefix of its id is enough.
    pub fn resume(&self, session: &str) -> Result<Recorder> {
        self.resume_source(&self.source_named(session)?, None)
    }

    /// Resumes a session at any record: the next record starts a branch, and nothing is lost.
    pub fn resume_at(&self, session: &str, record: &str) -> Result<Recorder> {
        self.resume_source(&self.source_named(session)?, Some(record))
    }

    /// The newest session of the projects that match, and the first error if one could not be read.
    fn latest(
        &self,
        matches: impl Fn(Option<&Path>, &Path) -> bool,
        new: &NewSession<'_>,
    ) -> Result<(Option<Recorder>, Option<Error>)> {
        let project = project::of(new.project);
        let is_its = |row: &SessionRow| matches(row.project.as_deref().map(Path::new), &project);
        let (newest, errors) = self.newest(|source, row| is_its(row) && !self.is_ended(source));
        let mut recorder = newest.map(|newest| self.resume_source(&newest, None)).transpose()?;
        let error = errors.into_iter().next();
        if let (Some(recorder), Some(_)) = (&mut recorder, &error) {
            recorder.warning(Warning::Unread);
        }
        Ok((recorder, error))
    }

    /// Resumes a session that was found, at its head or at any record.
    pub fn resume_source(&self, source: &Source, record: Option<&str>) -> Result<Recorder> {
        self.resume_in(&self.host.cwd, source, record)
    }

    /// Resumes a session that was found; one without a project belongs to this one.
    pub(crate) fn resume_in(&self, project: &Path, source: &Source, record: Option<&str>) -> Result<Recorder> {
        self.check_source(source)?;
        let guard = self.guard(&source.path)?;
        // Opened before it is read: if another program ends the session in between, the next lines find that the path names
        // another file; if it writes, the length tells.
        let appender = Appender::open(self.disk.clone(), &source.path, Vec::new())?;
        let length = appender.len()?;
        let session = self.read(source)?;
        let head = match record {
            Some(name) => Some(self.record_to_continue(&session, name)?),
            None => session.head(),
        };
        let path = &source.path;
        let project = session.cwd().map_or_else(|| project.to_path_buf(), |cwd| project::of(Path::new(cwd)));
        let id = session.id();
        let with = session.with().map(str::to_owned).or_else(|| self.dialect.peer_from_path(path));
        let new = NewSession { with: with.as_deref(), ..NewSession::of(&project) };
        // The session exists, so its id is not checked.
        let header = self.bytes(&(self.writing.header)(&self.unchecked_beginning(&id, &new, session.git_branch())));
        let first_cwd = session.cwd().map_or_else(|| project.clone(), PathBuf::from);
        let place = Place { first_cwd: Some(first_cwd), ..self.place(id, path) };
        let cursor = Cursor::at(&session, head, &place, &project)?;
        let sidecar = place.sidecar.as_deref().and_then(sidecar::content);
        let in_use = is_in_use(path, session.updated(), sidecar.as_ref(), (self.host.now)());
        // Where the format has a header, a file without records has lost its own.
        let is_header_lost = session.records().len() == 0;
        let appender = appender.with_header(header).with_lost_header(is_header_lost);
        let mut appender = appender.inside(Inside::store_of(source));
        let is_begun = session.head().is_some();
        appender.begin_at((!is_begun && place.may_change_session()).then_some(length));
        let mut log = Log::new(place, appender, cursor, sidecar).guarded_by(guard.lock);
        guard.warning.into_iter().for_each(|warning| log.warning(warning));
        if in_use {
            log.warning(Warning::InUse);
        }
        log.write_sidecar();
        Ok(Recorder::new(log, self.options.clone()))
    }

    /// Notes that a log is being recorded. A recording must not fail because that cannot be noted.
    fn guard(&self, log: &Path) -> Result<Guard> {
        let Some(data) = &self.host.data else { return Ok(Guard::default()) };
        match LiveLock::of_recorder(&self.disk, data, log, &*self.host.new_id) {
            Ok(Some(lock)) => Ok(Guard { lock: Some(lock), warning: None }),
            Err(error @ Error::Busy(_)) => Err(error),
            Ok(None) | Err(_) => Ok(Guard { lock: None, warning: Some(Warning::Unguarded) }),
        }
    }

    /// Whether a recorder has this log open now, as far as is known.
    pub fn is_recording(&self, log: &Path) -> bool {
        self.host.data.as_ref().is_some_and(|data| LiveLock::is_held(&*self.disk, data, log))
    }

    /// Adds a title to a session.
    pub fn rename(&self, source: &Source, title: Title) -> Result<Amended> {
        self.amend(source, |recorder| recorder.title(title))
    }

    /// Adds a rewind to a session: it continues from an earlier record.
    pub fn rewind(&self, source: &Source, to: &str, reason: Option<String>) -> Result<Amended> {
        let to = RecordId(self.record_to_continue(&self.read(source)?, to)?.id().into_owned());
        self.amend(source, |recorder| recorder.rewind(&to, reason))
    }

    /// The same, from the start of the session: see [`Recorder::rewind_to_start`].
    pub fn rewind_to_start(&self, source: &Source, reason: Option<String>) -> Result<Amended> {
        self.amend(source, |recorder| recorder.rewind_to_start(reason))
    }

    fn amend(&self, source: &Source, change: impl FnOnce(&mut Recorder) -> Result<Entry>) -> Result<Amended> {
        let mut recorder = self.resume_source(source, None)?;
        let entry = change(&mut recorder)?;
        recorder.close()?;
        Ok(Amended { entry, warnings: recorder.warnings() })
    }

    /// The trash for a session: that of its own store if the store is ours, else the one in our data folder.
    pub fn trash_of(&self, source: &Source, data: &Path) -> Trash {
        let own = source.store().filter(|_| source.dialect.name() == "native");
        match own.filter(|store| store != data) {
            Some(store) => Trash::of_store(&store, self.host.clone()),
            None => Trash::open(&data.join("trash"), self.host.clone()),
        }
    }

    /// Moves a session to the trash; another agent's goes to the one in our data folder.
    pub fn remove(&self, session: &str, data: &Path) -> Result<Removed> {
        let source = self.source(session)?;
        self.trash_of(&source, data).remove(&self.read(&source)?)
    }

    /// Checks that a session can be continued; writes nothing.
    pub fn check_source(&self, source: &Source) -> Result<()> {
        self.check_log(source)?;
        self.check_inside(source)?;
        if self.is_ended(source) { Err(Error::Ended(source.name())) } else { Ok(()) }
    }

    /// Checks that a session can be continued from a record.
    pub fn check_place(&self, session: &Session, record: &str) -> Result<()> {
        self.record_to_continue(session, record).map(|_| ())
    }

    pub(crate) fn place(&self, session: SessionId, path: &Path) -> Place {
        Place {
            dialect: self.dialect,
            writing: self.writing,
            disk: self.disk.clone(),
            host: self.host.clone(),
            session,
            sidecar: Source::file(self.dialect, path).named_sidecar(),
            forked_from: None,
            mode: Mode::Live,
            redactor: self.redactor(),
            first_cwd: None,
            blobs: blob::folder(&self.root),
        }
    }

    pub(crate) fn beginning<'a>(
        &'a self,
        session: &'a SessionId,
        new: &NewSession<'a>,
        git_branch: Option<&'a str>,
    ) -> Result<Beginning<'a>> {
        if !new.project.is_absolute() || new.project.as_os_str().as_encoded_bytes().contains(&0) {
            let (name, why) =
                (new.project.to_string_lossy().into_owned(), "the project must be an absolute path".to_owned());
            return Err(Error::InvalidName { name, why });
        }
        Ok(self.unchecked_beginning(session, new, git_branch))
    }

    fn unchecked_beginning<'a>(
        &'a self,
        session: &'a SessionId,
        new: &NewSession<'a>,
        git_branch: Option<&'a str>,
    ) -> Beginning<'a> {
        Beginning {
            session,
            project: new.project,
            cwd: &self.host.cwd,
            at: (self.host.now)(),
            version: &self.host.version,
            git_branch,
            with: new.with,
            forked_from: None,
            settings: self.settings.as_deref(),
        }
    }

    /// Its rules, with placeholders as the dialect writes them.
    fn redactor(&self) -> Option<Arc<Redactor>> {
        let redactor = self.options.redactor.as_ref()?;
        Some(Arc::new(redactor.in_style(self.writing.placeholders)))
    }

    /// Lines as they are written, after redaction.
    pub(crate) fn bytes(&self, lines: &[Line]) -> Vec<u8> {
        let scrubbed = lines.iter().map(|line| {
            let mut value = line.value.clone();
            if let Some(redactor) = self.redactor() {
                redactor.json(&mut value);
            }
            value
        });
        scrubbed.flat_map(|value| (json::to_string(&value) + "\n").into_bytes()).collect()
    }

    fn record_to_continue<'s>(&self, session: &'s Session, name: &str) -> Result<RecordRef<'s>> {
        let record = link_named(session, name)?;
        if self.writing.shape == Shape::Linear && Some(record) != session.head() {
            return Err(no_branches(name));
        }
        if !self.writing.continues_before_compaction && is_before_a_cut(session, record)? {
            let why = "this agent goes on after its last compaction, and would ignore what comes before it";
            return Err(Error::CannotContinue { record: name.to_owned(), why });
        }
        Ok(record)
    }
}

/// Whether a compaction follows a record in the file that is not one of its ancestors.
fn is_before_a_cut(session: &Session, record: RecordRef<'_>) -> Result<bool> {
    let branch: HashSet<usize> = session.branch(record).records.iter().map(|record| record.order()).collect();
    let later = session.records().filter(|later| later.order() > record.order() && !branch.contains(&later.order()));
    for later in later.filter(|later| later.kind() == Kind::Compaction && !later.is_sidechain()) {
        if matches!(later.body()?, Body::Compaction(compaction) if compaction.cuts) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Why a session without branches can be continued only from its last record.
pub(crate) fn no_branches(record: &str) -> Error {
    let why = "a session of this format continues only from its last record";
    Error::CannotContinue { record: record.to_owned(), why }
}
