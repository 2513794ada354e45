//! A session becomes another one: one branch, copied under a fresh id. The source is only read.
//!
//! ```text
//! source  u1 ─ a1 ─ u2 ─ a2          what is not on the branch stays behind;
//!              └─ [gap] u3 ─ a3      gaps are closed, and that is told
//! fork    u1 ─ a1 ─ u3 ─ a3          each record hangs on the one before it
//! ```
//!
//! Of a line only who and what it hangs on changes ([`Writing::adopt`](crate::dialect::writer::Writing::adopt)): other fields keep their bytes.

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
use crate::model::record::{RecordId, SessionId};
use crate::session::read::sanitize;
use crate::session::read::source::Source;
use crate::session::{Branch, RecordRef, Session, State};
use crate::write::recorder::{Log, Start};
use crate::write::store::{NewSession, Store, check_name, link_named};
use plan::{Stands, linear_plan, plan, take_header};
use staged::Out;
pub(crate) use staged::Staged;

/// How a dialect takes a line over.
type Adopt = fn(Value, &Adoption<'_>) -> Value;

/// What to fork.
#[derive(Debug, Clone, Copy)]
pub struct Fork<'a> {
    /// The record that the branch ends in; the session's head where none is named.
    pub head: Option<&'a str>,
    /// The new session's id; a fresh one where none is given.
    pub id: Option<&'a str>,
}

/// A session that was forked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forked {
    /// The new session.
    pub session: SessionId,
    /// Its file.
    pub path: PathBuf,
    /// Its last record.
    pub head: RecordId,
    /// How many records it has.
    pub records: usize,
    /// How many places where a record was missing are closed in it.
    pub closed_gaps: usize,
    /// What happened on the way.
    pub warnings: Vec<Warning>,
}

impl Store {
    /// Copies a branch of a session into a new one. A session that is there already is refused, and nothing stays of a copy that failed.
    pub fn fork(&self, session: &Session, fork: Fork<'_>) -> Result<Forked> {
        let adopt = self.check_fork(session)?;
        let head = end_of(session, fork.head)?;
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
        let copied = self.copy(session, &branch, adopt, &id, header, staged.file()).and_then(|(head, records)| {
            self.check_copy(staged.file(), &head, records)?;
            Ok((head, records))
        });
        let published = copied.and_then(|copied| staged.publish().map(|()| copied));
        let (head, records) = published.inspect_err(|_| staged.clean_up())?;
        // It is there, whatever comes of the file beside it.
        let described = self.describe(session, &id, &path, &project);
        let warnings = described.unwrap_or_else(|_| vec![Warning::NoSidecar]);
        let closed_gaps = branch.gaps.len() + usize::from(!branch.cycle.is_empty());
        Ok(Forked { session: id, path, head, records, closed_gaps, warnings })
    }

    fn check_fork(&self, session: &Session) -> Result<Adopt> {
        let cannot = |what: &str| Error::cannot_store(session.dialect().name(), what.to_owned());
        let adopt = self.writing.adopt.ok_or_else(|| cannot("a fork"))?;
        let what = if session.dialect().name() != self.dialect.name() {
            "another dialect's records"
        } else if !matches!(session.source.layout.format, Format::Lines) {
            "a fork of a session that is no file of lines"
        } else if !session.whole() {
            "a fork of a session that was read in part"
        } else {
            return Ok(adopt);
        };
        Err(cannot(what))
    }

    /// Refuses a place where something of a session lies already.
    fn check_free(&self, path: &Path, chosen: Option<&str>) -> Result<()> {
        let layout = Source::file(self.dialect, path).layout;
        let companions = layout.companions.iter().map(|name| path.with_file_name(name));
        let taken = std::iter::once(path.to_path_buf()).chain(companions).find(|path| self.disk.exists(path));
        // A format that puts the time into its names has another place for the same id.
        let known = || chosen.and_then(|id| self.source(id).ok()).map(|known| known.path);
        if taken.is_some() && self.writing.ended_path.is_some() {
            let what = "a fork beside the session that goes on: there is one at a time".to_owned();
            return Err(Error::cannot_store(self.dialect.name(), what));
        }
        taken.or_else(known).map_or(Ok(()), |taken| Err(Error::Exists(taken)))
    }

    /// Writes the branch to a file, and tells the last record and how many there are.
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
        let mut out = Out::create(&*self.disk, file)?;
        match take_header(&mut plan, kind_of_header.as_deref())? {
            Some(own) => plan.insert(0, (own, Stands::Aside)),
            None => out.held = self.bytes(&header),
        }
        let (mut last, mut records): (Option<RecordId>, usize) = (None, 0);
        for (record, stands) in plan {
            let known = RecordId(record.id().into_owned());
            let parent = last.clone().filter(|_| stands == Stands::Straight);
            let place = format!("at-{}", out.position());
            for piece in record.raw()? {
                let by = Adoption { session: id, parent: parent.as_ref(), from: (&from, &known) };
                let text = sanitize::whole(&piece);
                let line = line::adopted(&text, |value| adopt(value, &by)).ok_or_else(|| self.odd(&known))?;
                out.line(&line)?;
            }
            if stands == Stands::Straight {
                // A record without a name is called after its place, which is another one now.
                last = Some(if record.id() == record.place().name() { RecordId(place) } else { known });
                records += 1;
            }
        }
        out.finish()?;
        let nothing = || Error::CannotContinue { record: from.to_string(), why: "it holds no record" };
        Ok((last.ok_or_else(nothing)?, records))
    }

    /// Makes sure that a reader finds what was copied, before anybody else can.
    fn check_copy(&self, file: &Path, head: &RecordId, records: usize) -> Result<()> {
        let copy = self.read(&Source::file(self.dialect, file))?;
        let end = match self.writing.shape {
            Shape::Tree => copy.find(head.as_str()).ok(),
            // Of equal names the first one may have stayed behind.
            Shape::Linear => copy.head(),
        };
        let is_whole = end.is_some_and(|end| {
            let branch = copy.branch(end);
            branch.records.len() == records && branch.gaps.is_empty() && branch.cycle.is_empty()
        });
        if is_whole { Ok(()) } else { Err(self.odd(head)) }
    }

    fn odd(&self, record: &RecordId) -> Error {
        let what = format!(
            "a copy of {}, which has another record's name or is too deep",
            crate::model::issue::quoted(record.as_str())
        );
        Error::cannot_store(self.dialect.name(), what)
    }

    /// Writes the file beside the new log. It begins with what the source's says: another program may keep more there.
    pub(crate) fn describe(&self, from: &Session, id: &SessionId, path: &Path, project: &Path) -> Result<Vec<Warning>> {
        let source = Source::file(self.dialect, path);
        let place = self.place(id.clone(), path);
        if self.writing.sidecar.is_none() || place.sidecar.is_none() {
            return Ok(Vec::new());
        }
        let session = self.read(&source)?;
        let mut start = Start::at(&session, session.head(), &place, project)?;
        if let Some(cwd) = from.cwd() {
            start.tally.cwd = cwd.to_owned();
        }
        start.tally.git_branch = from.git_branch().map(str::to_owned);
        start.tally.title = from.title().map(|title| title.text.clone());
        // A fork may end earlier than its source; what another format says of an end may have no place here.
        let is_copy = from.dialect().name() == self.dialect.name();
        start.tally.end = end_of_session(if is_copy { &session } else { from });
        let own = from.source.sidecar().filter(|_| from.dialect().name() == self.dialect.name());
        let before = own.and_then(|path| sidecar::says(&path));
        let mut log = Log::new(place, Appender::open(self.disk.clone(), path, Vec::new())?, start, before);
        log.close()?;
        Ok(log.warnings())
    }
}

/// Where a session ends that nobody records.
fn end_of_session(session: &Session) -> End {
    let Some(head) = session.head() else { return End::Closed };
    let branch = session.branch(head);
    match session.state(&branch) {
        _ if branch.records.last().is_some_and(|last| last.is_failure()) => End::Failed,
        State::InterruptedPrompt | State::InterruptedTurn => End::BrokenOff,
        State::Clean | State::Degraded => End::Closed,
    }
}

fn end_of<'s>(session: &'s Session, name: Option<&str>) -> Result<RecordRef<'s>> {
    let head = match name {
        None => session.head(),
        Some(name) => Some(link_named(session, name)?),
    };
    head.ok_or_else(|| Error::CannotContinue { record: session.id().to_string(), why: "it holds no record" })
}
