//! Copies one branch of a session to a new session. The source is only read.
//!
//! ```text
//! source  u1 ─ a1 ─ u2 ─ a2          other branches are not copied;
//!              └─ [gap] u3 ─ a3      gaps are closed and counted
//! fork    u1 ─ a1 ─ u3 ─ a3          the parent of each record is the one before it
//! ```
//!
//! In a line only ids change ([`Writer::adopt`](crate::dialect::writer::Writer::adopt)): other fields keep their bytes.

mod backups;
mod line;
mod plan;
mod staged;

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::dialect::layout::Format;
use crate::dialect::writer::{Adoption, End, Line, Shape};
use crate::disk::append::{Appender, Warning};
use crate::disk::sidecar;
use crate::model::error::{Error, Result};
use crate::model::project;
use crate::model::record::{RecordId, SessionId, Title};
use crate::session::read::sanitize;
use crate::session::read::source::Source;
use crate::session::{Branch, RecordRef, Session, State};
use crate::write::recorder::{Cursor, Log};
use crate::write::store::{NewSession, Store, check_name, link_named};
use backups::Backups;
use plan::{CopyAs, linear_plan, plan, take_header};
use staged::LineWriter;
pub(crate) use staged::Staged;

/// Gives a line to another session. See [`crate::dialect::writer::Writer::adopt`].
type Adopt = fn(Value, &Adoption<'_>) -> Value;

/// What to fork.
#[derive(Debug, Clone, Copy)]
pub struct Fork<'a> {
    /// The last record of the branch; the session's head if there is none.
    pub head: Option<&'a str>,
    /// The new session's id; generated if there is none.
    pub id: Option<&'a str>,
}

/// The new session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forked {
    /// Its id.
    pub session: SessionId,
    /// Its file.
    pub path: PathBuf,
    /// Its last record.
    pub head: RecordId,
    /// How many records its file has, those beside the conversation included.
    pub records: usize,
    /// How many gaps on the branch were closed.
    pub closed_gaps: usize,
    /// What the user should know.
    pub warnings: Vec<Warning>,
}

impl Store {
    /// Copies a branch of a session, and the file backups that it names, to a new session. Fails if that one exists; a failed copy
    /// leaves nothing.
    ///
    /// The copy is exact, unless the session was opened with a mask.
    pub fn fork(&self, session: &Session, fork: Fork<'_>) -> Result<Forked> {
        self.copying(session).fork_branch(session, fork)
    }

    fn fork_branch(&self, session: &Session, fork: Fork<'_>) -> Result<Forked> {
        let adopt = self.check_fork(session)?;
        let head = find_head(session, fork.head)?;
        let branch = session.branch(head);
        let id = SessionId(fork.id.map_or_else(|| (self.host.new_id)(), str::to_owned));
        let cwd = session.cwd().map_or_else(|| self.host.cwd.clone(), PathBuf::from);
        let project = project::of(&cwd);
        let from = session.id();
        let last = RecordId(head.id().into_owned());
        let with = self.dialect.peer_from_path(session.path());
        let new = NewSession { with: with.as_deref(), ..NewSession::of(&project) };
        check_name(id.as_str())?;
        let mut beginning = self.beginning(&id, &new, session.git_branch())?;
        (beginning.cwd, beginning.forked_from) = (&cwd, Some((&from, &last)));
        let path = self.path_of(&beginning)?;
        self.check_free(&path, fork.id)?;
        let header = (self.writing.header)(&beginning);
        let staged = Staged::make(&*self.disk, &path, &(self.host.new_id)())?;
        let published = (|| {
            let (head, records) = self.copy(session, &branch, adopt, &id, header, staged.file())?;
            let copy = self.check_copy(staged.file(), &head, records)?;
            let backups = Backups::copy(&*self.disk, session, &copy, &path)?;
            staged.publish().inspect_err(|_| backups.clean_up())?;
            Ok((head, copy))
        })();
        let (head, copy) = published.inspect_err(|_: &Error| staged.clean_up())?;
        let records = copy.records().len() + usize::from(self.keep_index_title(session, &copy, &path));
        // The fork exists, even if its sidecar cannot be written.
        let described = self.describe(session, &id, &path, &project);
        let warnings = described.unwrap_or_else(|_| vec![Warning::NoSidecar]);
        let closed_gaps = branch.gaps.len() + usize::from(!branch.cycle.is_empty());
        Ok(Forked { session: id, path, head, records, closed_gaps, warnings })
    }

    /// Writes a title that only an index of the agent has to the fork. Returns whether there is one; the fork exists, even if that fails.
    fn keep_index_title(&self, session: &Session, copy: &Session, path: &Path) -> bool {
        let title =
            session.title().filter(|title| session.source.index_title.is_some() && copy.title() != Some(*title));
        title.is_some_and(|title| {
            let title = Title { text: session.shown(&title.text), source: title.source };
            self.rename(&Source::file(self.dialect, path), title).is_ok()
        })
    }

    fn check_fork(&self, session: &Session) -> Result<Adopt> {
        let cannot = |what: &str| Error::cannot_store(session.dialect().name(), what.to_owned());
        let adopt = self.writing.adopt.ok_or_else(|| cannot("a fork"))?;
        let what = if session.dialect().name() != self.dialect.name() {
            "records of another dialect"
        } else if !matches!(session.source.layout.format, Format::Lines) {
            "a fork of a session that is not a file of lines"
        } else if !session.whole() {
            "a fork of a partly read session"
        } else {
            return Ok(adopt);
        };
        Err(cannot(what))
    }

    /// Fails if the place of the new session is taken.
    fn check_free(&self, path: &Path, chosen: Option<&str>) -> Result<()> {
        let layout = Source::file(self.dialect, path).layout;
        let companions = layout.companions.iter().map(|name| path.with_file_name(name));
        let taken = std::iter::once(path.to_path_buf()).chain(companions).find(|path| self.disk.exists(path));
        // File names may contain the time: the same id can have another path.
        let known = || chosen.and_then(|id| self.with_id(id).0.into_iter().next()).map(|known| known.path);
        if taken.is_some() && self.writing.ended_path.is_some() {
            let what = "a fork, because there is only one session at a time".to_owned();
            return Err(Error::cannot_store(self.dialect.name(), what));
        }
        taken.or_else(known).map_or(Ok(()), |taken| Err(Error::Exists(taken)))
    }

    /// Writes the branch to a file. Returns the last record and the number of records.
    fn copy(
        &self,
        session: &Session,
        branch: &Branch<'_>,
        adopt: Adopt,
        id: &SessionId,
        header: Vec<Line>,
        file: &Path,
    ) -> Result<(RecordId, usize)> {
        let from = session.id();
        let kind_of_header = header.first().and_then(|line| line.value["type"].as_str()).map(str::to_owned);
        let mut plan = match self.writing.shape {
            Shape::Tree => plan(session, branch)?,
            Shape::Linear => linear_plan(session, branch),
        };
        let mut out = LineWriter::create(&*self.disk, file)?;
        match take_header(&mut plan, kind_of_header.as_deref())? {
            Some(own) => plan.insert(0, (own, CopyAs::Side)),
            None => out.buffer = self.bytes(&header),
        }
        let (mut last, mut records): (Option<RecordId>, usize) = (None, 0);
        for (record, copy_as) in plan {
            let known = RecordId(record.id().into_owned());
            let parent = last.clone().filter(|_| copy_as == CopyAs::Link);
            let place = format!("at-{}", out.position());
            for piece in record.raw()? {
                let by = Adoption { session: id, parent: parent.as_ref(), from: (&from, &known) };
                let text = sanitize::whole(&piece);
                let line = line::adopted(&text, |value| adopt(value, &by)).ok_or_else(|| self.cannot_copy(&known))?;
                out.line(&line)?;
            }
            if copy_as == CopyAs::Link {
                // A record without an id is named after its offset, which has changed.
                last = Some(if record.id() == record.place().name() { RecordId(place) } else { known });
                records += 1;
            }
        }
        out.finish()?;
        let nothing = || Error::CannotContinue { record: from.to_string(), why: "it has no record" };
        Ok((last.ok_or_else(nothing)?, records))
    }

    /// Reads the copy before it is published, and fails if a record is missing.
    fn check_copy(&self, file: &Path, head: &RecordId, records: usize) -> Result<Session> {
        let copy = self.read(&Source::file(self.dialect, file))?;
        let end = match self.writing.shape {
            Shape::Tree => copy.find(head.as_str()).ok(),
            // The first of several records of one name may not have been copied.
            Shape::Linear => copy.head(),
        };
        let is_whole = end.is_some_and(|end| {
            let branch = copy.branch(end);
            branch.records.len() == records && branch.gaps.is_empty() && branch.cycle.is_empty()
        });
        if is_whole { Ok(copy) } else { Err(self.cannot_copy(head)) }
    }

    fn cannot_copy(&self, record: &RecordId) -> Error {
        let what = format!(
            "a copy of {}: its id is used by another record, or it is nested too deeply",
            crate::model::issue::quoted(record.as_str())
        );
        Error::cannot_store(self.dialect.name(), what)
    }

    /// Writes the sidecar of the new log. Unknown fields come from the source's sidecar.
    pub(crate) fn describe(&self, from: &Session, id: &SessionId, path: &Path, project: &Path) -> Result<Vec<Warning>> {
        let source = Source::file(self.dialect, path);
        let place = self.place(id.clone(), path);
        if self.writing.sidecar.is_none() || place.sidecar.is_none() {
            return Ok(Vec::new());
        }
        let session = self.read(&source)?;
        let mut cursor = Cursor::at(&session, session.head(), &place, project)?;
        if let Some(cwd) = from.cwd() {
            cursor.tally.cwd = from.shown(cwd);
        }
        cursor.tally.git_branch = from.git_branch().map(|branch| from.shown(branch));
        cursor.tally.title = from.title().map(|title| from.shown(&title.text));
        // Whoever recorded it knows; the old sidecar says so.
        cursor.tally.is_redacted = true;
        // A fork may end earlier than its source. Another format may not record how a session ended.
        let is_copy = from.dialect().name() == self.dialect.name();
        cursor.tally.end = end_of_session(if is_copy { &session } else { from });
        let own = from.source.sidecar().filter(|_| from.dialect().name() == self.dialect.name());
        let mut before = own.and_then(|path| sidecar::content(&path));
        if let Some(Value::Object(fields)) = &mut before {
            fields.retain(|key, _| !matches!(key.as_str(), "parentSessionId" | "parentToolCallId"));
            // What was recorded with secrets is copied without them.
            if from.mask.is_some() {
                fields.shift_remove("redaction");
            }
        }
        let mut log = Log::new(place, Appender::open(self.disk.clone(), path, Vec::new())?, cursor, before);
        log.close()?;
        Ok(log.warnings())
    }
}

/// How a session ended.
fn end_of_session(session: &Session) -> End {
    let Some(head) = session.head() else { return End::Closed };
    let branch = session.branch(head);
    match session.state(&branch) {
        _ if branch.records.last().is_some_and(|last| last.is_failure()) => End::Failed,
        State::InterruptedPrompt | State::InterruptedTurn => End::BrokenOff,
        State::Clean | State::Degraded => End::Closed,
    }
}

fn find_head<'s>(session: &'s Session, name: Option<&str>) -> Result<RecordRef<'s>> {
    let head = match name {
        None => session.head(),
        Some(name) => Some(link_named(session, name)?),
    };
    session.check_not_empty(head)?;
    head.ok_or_else(|| Error::CannotContinue { record: session.id().to_string(), why: "it has no record" })
}
