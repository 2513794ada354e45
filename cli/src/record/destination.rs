//! Where what is recorded goes: a session that begins or goes on with the first words. Before, nothing is written.

use std::path::PathBuf;

use scrollback::model::error::Error;
use scrollback::write::recorder::Recorder;
use scrollback::write::rotate::Archived;
use scrollback::write::store::{NewSession, Store};

use crate::ctx::Ctx;
use crate::failure::Failure;
use crate::session::warnings;
use crate::session::writable::Writable;

/// A session to record to, before anything was said.
pub(crate) struct Destination {
    pub(crate) store: Store,
    pub(crate) start: Start,
}

/// How the session begins.
pub(crate) enum Start {
    New {
        id: Option<String>,
        project: PathBuf,
    },
    /// The one session that a project or a person has at a time.
    Current {
        project: PathBuf,
        with: Option<String>,
        idle_minutes: Option<u32>,
    },
    GoOn {
        session: Box<Writable>,
        record: Option<String>,
    },
}

/// A session that is open, and whether it was begun just now.
pub(crate) struct Opened {
    pub(crate) recorder: Recorder,
    pub(crate) is_new: bool,
}

impl Destination {
    /// Whom the session is with, where it is with somebody.
    pub(crate) fn with(&self) -> Option<&str> {
        match &self.start {
            Start::Current { with, .. } => with.as_deref(),
            Start::GoOn { session, .. } => session.session.with(),
            Start::New { .. } => None,
        }
    }

    /// After how many minutes without words the session is ended.
    pub(crate) fn idle_minutes(&self) -> Option<u32> {
        match self.start {
            Start::Current { idle_minutes, .. } => idle_minutes,
            Start::New { .. } | Start::GoOn { .. } => None,
        }
    }

    /// Opens the session; one that was idle for so many minutes is ended before.
    pub(crate) fn open(&self, idle_minutes: Option<u32>, ctx: &mut Ctx) -> Result<Opened, Error> {
        let store = &self.store;
        match &self.start {
            Start::New { id, project } => {
                let recorder = store.begin(NewSession { id: id.as_deref(), ..NewSession::of(project) })?;
                Ok(Opened { recorder, is_new: true })
            }
            Start::GoOn { session, record } => {
                let recorder = store.resume_source(&session.source, record.as_deref())?;
                Ok(Opened { recorder, is_new: false })
            }
            Start::Current { project, with, .. } => {
                let new = NewSession { with: with.as_deref(), ..NewSession::of(project) };
                let is_new = store.current(&new)?.is_none();
                let (recorder, archived) = store.open_current(new, idle_minutes)?;
                if let Some(archived) = &archived {
                    told(tell_archived(archived, ctx));
                }
                Ok(Opened { recorder, is_new: is_new || archived.is_some() })
            }
        }
    }
}

fn tell_archived(archived: &Archived, ctx: &mut Ctx) -> Result<(), Failure> {
    let Archived { session, path, warnings } = archived;
    warnings::tell_all(warnings, ctx)?;
    let text = format!("the session was idle: it is ended, called {session} now, in {}", path.display());
    ctx.caution("archived", &text)
}

/// What could not be told stops no recording.
pub(crate) fn told(result: Result<(), Failure>) {
    drop(result);
}
