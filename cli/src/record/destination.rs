//! The session that is recorded to. It is created or opened with the first content; nothing is written before.

use std::path::{Path, PathBuf};

use scrollback::dialect::{Dialect, WriteUnit};
use scrollback::model::Error;
use scrollback::session::Session;
use scrollback::view::find::SessionName;
use scrollback::view::history::resume_notice;
use scrollback::write::{EndedSession, NewSession, Policy, Recorder, Store};

use crate::ctx::Ctx;
use crate::failure::Failure;
use crate::redaction;
use crate::session::warnings;
use crate::session::writable::Writable;

/// A session to record to, before it is opened.
pub(crate) struct Destination {
    pub(crate) store: Store,
    pub(crate) start: Start,
}

/// Which session it is.
pub(crate) enum Start {
    New {
        id: Option<String>,
        project: PathBuf,
    },
    /// The current session of a project or a person, in formats with one at a time.
    Current {
        project: PathBuf,
        with: Option<String>,
        idle_minutes: Option<u32>,
    },
    Resume {
        session: Box<Writable>,
        record: Option<String>,
    },
}

/// An open session, and whether it was just created.
pub(crate) struct Opened {
    pub(crate) recorder: Recorder,
    pub(crate) is_new: bool,
}

impl Destination {
    /// The person or room of the session.
    pub(crate) fn with(&self) -> Option<&str> {
        match &self.start {
            Start::Current { with, .. } => with.as_deref(),
            Start::Resume { session, .. } => session.session.with(),
            Start::New { .. } => None,
        }
    }

    /// A name that finds the session again.
    pub(crate) fn name_of(&self, session: &str, path: &Path, ctx: &Ctx) -> String {
        name_of(self.store.dialect(), session, path, ctx)
    }

    /// Whether the format writes whole turns.
    pub(crate) fn writes_whole_turns(&self) -> bool {
        self.store.dialect().writer().is_some_and(|writing| writing.unit == WriteUnit::Turn)
    }

    /// After how many minutes without a message the session ends.
    pub(crate) fn idle_minutes(&self) -> Option<u32> {
        match self.start {
            Start::Current { idle_minutes, .. } => idle_minutes,
            Start::New { .. } | Start::Resume { .. } => None,
        }
    }

    /// Reports which session continues, and how it ended.
    pub(crate) fn report_resumed(&self, recorder: &Recorder, is_new: bool, ctx: &mut Ctx) -> Result<(), Failure> {
        if is_new || ctx.json {
            return Ok(());
        }
        let read;
        let (session, record) = match &self.start {
            Start::Resume { session, record } => (&session.session, record.as_deref()),
            Start::New { .. } | Start::Current { .. } => {
                read = recorder.read()?;
                (&read, None)
            }
        };
        let head = record.map_or_else(|| Ok(session.head()), |record| session.find(record).map(Some))?;
        head.map_or(Ok(()), |head| ctx.note(&resume_notice(session, head)))?;
        report_branch(session, ctx)
    }

    /// Opens the session; one that was idle for this many minutes is ended first.
    pub(crate) fn open(&self, idle_minutes: Option<u32>, ctx: &mut Ctx) -> Result<Opened, Error> {
        redaction::make_key_for_recording(ctx)?;
        let store = &self.store;
        match &self.start {
            Start::New { id, project } => {
                let new = NewSession { id: id.as_deref(), ..NewSession::of(project) };
                match store.session(new, Policy::New) {
                    // It was free when this program started: another one started at the same moment and was faster.
                    Err(Error::Exists(_)) if id.is_some() => {
                        Ok(Opened { recorder: store.session(new, Policy::NewOrSame)?, is_new: false })
                    }
                    recorder => Ok(Opened { recorder: recorder?, is_new: true }),
                }
            }
            Start::Resume { session, record } => {
                let recorder = store.resume_source(&session.source, record.as_deref())?;
                Ok(Opened { recorder, is_new: false })
            }
            Start::Current { project, with, .. } => {
                let new = NewSession { with: with.as_deref(), ..NewSession::of(project) };
                let is_new = store.current(&new)?.is_none();
                let recorder = store.session(new, Policy::Current { idle_minutes: idle_minutes.unwrap_or(0) })?;
                let ended = recorder.predecessor();
                ended.into_iter().for_each(|ended| let_fail(report_ended(ended, ctx)));
                let is_new = is_new || ended.is_some();
                Ok(Opened { recorder, is_new })
            }
        }
    }
}

/// A name that finds a session again: its id, if nothing else can have that name, or the path of a file outside of the agents' folders.
pub(crate) fn name_of(dialect: &dyn Dialect, session: &str, path: &Path, ctx: &Ctx) -> String {
    let is_found = dialect.layouts(&ctx.home).iter().any(|layout| path.starts_with(&layout.root));
    let is_path = session.parse::<SessionName>().is_ok_and(|name| name.is_path());
    match (is_found, dialect.name()) {
        (false, _) => path.display().to_string(),
        (true, "native") if !is_path => session.to_owned(),
        (true, dialect) => format!("{dialect}:{session}"),
    }
}

/// Warns that another branch is checked out than the one that was recorded last.
pub(crate) fn report_branch(session: &Session, ctx: &mut Ctx) -> Result<(), Failure> {
    match (session.git_branch_now(), session.git_branch()) {
        (Some(now), Some(recorded)) => {
            ctx.note(&format!("The branch {now} is checked out now; the session recorded {recorded}."))
        }
        _ => Ok(()),
    }
}

fn report_ended(ended: &EndedSession, ctx: &mut Ctx) -> Result<(), Failure> {
    let EndedSession { session, path, warnings } = ended;
    warnings::print(warnings, ctx)?;
    let text = format!("the session was idle and has ended; it is now {session}, in {}", path.display());
    ctx.caution("archived", &text)
}

/// Recording continues when a message cannot be printed.
pub(crate) fn let_fail(result: Result<(), Failure>) {
    drop(result);
}
