//! The sessions of a store: all, by id, or the newest of a project; and the record of a session by its id.

use std::path::Path;

use super::Store;
use crate::model::error::{Error, Result};
use crate::model::project;
use crate::session::read::open::ReadOptions;
use crate::session::read::source::Source;
use crate::session::{RecordRef, Session};
use crate::view::answers::SessionRow;
use crate::view::find::by_id;
use crate::view::listing::{self, Depth};

/// Sessions, and the files that could not be read.
#[derive(Debug, Default)]
pub struct Listed {
    /// The newest first, by the times in them.
    pub rows: Vec<SessionRow>,
    /// Files and folders that could not be read.
    pub errors: Vec<Error>,
}

impl Store {
    /// The store's sessions, of one project or of all.
    pub fn list(&self, project: Option<&Path>) -> Listed {
        let wanted = project.map(|project| project::of(project).to_string_lossy().into_owned());
        let mut listed = Listed::default();
        for (_, row) in self.rows(&mut listed.errors) {
            if wanted.is_none() || row.project == wanted {
                listed.rows.push(row);
            }
        }
        listed.rows.sort_by(|a, b| b.updated.cmp(&a.updated).then_with(|| b.id.cmp(&a.id)));
        listed
    }

    /// Reads a session.
    pub fn load(&self, session: &str) -> Result<Session> {
        self.read(&self.source(session)?)
    }

    /// Reads the newest session of a project. Fails if there is none and something could not be read; see [`Store::list`].
    pub fn last(&self, project: &Path) -> Result<Option<Session>> {
        let project = project::of(project);
        match self.newest(|_, row| row.project.as_ref().is_some_and(|known| Path::new(known) == project)) {
            (Some(source), _) => self.read(&source).map(Some),
            (None, errors) => errors.into_iter().next().map_or(Ok(None), Err),
        }
    }

    /// Whether there is a session with this id.
    pub fn exists(&self, session: &str) -> bool {
        !self.with_id(session).0.is_empty()
    }

    /// The session with this id. Several are [`Error::AmbiguousSession`].
    pub fn source(&self, session: &str) -> Result<Source> {
        let (found, errors) = self.with_id(session);
        // One of the unreadable files may be the session.
        only(session, found)?.ok_or_else(|| errors.into_iter().next().unwrap_or_else(|| none(session)))
    }

    /// The session of a row: another one may have the same id.
    pub fn source_of(&self, row: &SessionRow) -> Result<Source> {
        let mut sources = self.sources().into_iter().filter_map(Result::ok);
        let in_file = sources.find(|source| source.key.is_none() && source.path == row.path);
        in_file.map_or_else(|| self.source(row.id.as_str()), Ok)
    }

    /// Every session with this id, and what could not be read: what may be the session comes first.
    pub(crate) fn with_id(&self, session: &str) -> (Vec<Source>, Vec<Error>) {
        let (mut sources, mut unreachable, mut errors) = (Vec::new(), Vec::new(), Vec::new());
        for source in self.sources() {
            match source {
                Ok(source) => sources.push(source),
                Err(error) => unreachable.push(error),
            }
        }
        sources.sort_by_key(|source| !source.name().ends_with(session));
        let found = by_id::with_id(sources, session, (self.host.now)(), &mut errors);
        errors.append(&mut unreachable);
        (found, errors)
    }

    /// The session with this id, or else the only one whose id starts with it.
    pub(super) fn source_named(&self, name: &str) -> Result<Source> {
        self.source(name).or_else(|error| match error {
            Error::AmbiguousSession { .. } => Err(error),
            error => {
                let rows = self.rows(&mut Vec::new()).filter(|(_, row)| row.id.as_str().starts_with(name));
                only(name, rows.map(|(source, _)| source).collect())?.ok_or(error)
            }
        })
    }

    /// The newest of the sessions that match, and what could not be read. Sub-agents' sessions are continued only by name.
    pub(crate) fn newest(&self, matches: impl Fn(&Source, &SessionRow) -> bool) -> (Option<Source>, Vec<Error>) {
        let mut errors = Vec::new();
        let rows = self.rows(&mut errors);
        let own = rows.filter(|(source, row)| row.parent_session.is_none() && matches(source, row));
        let newest = own.max_by(|(_, a), (_, b)| a.updated.cmp(&b.updated).then_with(|| a.id.cmp(&b.id)));
        (newest.map(|(source, _)| source), errors)
    }

    pub(crate) fn sources(&self) -> Vec<Result<Source>> {
        let layouts: Vec<_> =
            self.dialect.layouts_in(&self.root).into_iter().map(|layout| (self.dialect, layout)).collect();
        Source::walk_all(&layouts)
    }

    pub(crate) fn rows(&self, errors: &mut Vec<Error>) -> impl Iterator<Item = (Source, SessionRow)> + use<> {
        let reading = ReadOptions::plain((self.host.now)());
        let mut rows = Vec::new();
        for source in self.sources() {
            match source.and_then(|source| Ok((listing::row(&source, &reading, Depth::Ends)?, source))) {
                Ok((row, source)) => rows.push((source, row)),
                Err(error) => errors.push(error),
            }
        }
        rows.into_iter()
    }

    pub(crate) fn read(&self, source: &Source) -> Result<Session> {
        Session::open(source, &ReadOptions::plain((self.host.now)()))
    }
}

/// The only one of the sessions that match, if any does.
fn only(name: &str, mut found: Vec<Source>) -> Result<Option<Source>> {
    if found.len() < 2 {
        return Ok(found.pop());
    }
    let paths = found.into_iter().map(|source| source.path).collect();
    Err(Error::AmbiguousSession { name: name.to_owned(), paths })
}

fn none(session: &str) -> Error {
    Error::NoSession(Some(session.to_owned()))
}

/// Finds a record by its id or a unique prefix, if it can be the parent of others.
pub(crate) fn link_named<'s>(session: &'s Session, name: &str) -> Result<RecordRef<'s>> {
    let record = session.find(name)?;
    if record.is_side() {
        return Err(Error::CannotContinue { record: name.to_owned(), why: "it is not part of the conversation" });
    }
    Ok(record)
}
