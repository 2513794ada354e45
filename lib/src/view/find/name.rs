//! What people type for a session: an id or a unique prefix, `@`, `@~1`, `DIALECT:@`, `DIALECT:PREFIX`, a path, `-`; with `#RECORD` a
//! record in it.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use jiff::Timestamp;

use super::by_id::Candidate;
use super::{Listing, Places, Scope, by_id, path};
use crate::dialect::{self, Dialect};
use crate::model::error::Error;
use crate::model::record::SessionId;
use crate::session::read::source::Source;
use crate::view::listing::{self, Depth};

/// The name of a session as it was typed.
///
/// ```
/// use scrollback::view::find::SessionName;
///
/// let name: SessionName = "codex:019a6b1e".parse().expect("it is not empty");
/// assert_eq!(name.typed(), "codex:019a6b1e");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionName {
    typed: String,
}

/// What a name is looked up in.
#[derive(Clone, Copy)]
pub struct Lookup<'a> {
    /// Where sessions are.
    pub places: &'a Places,
    /// Which sessions `@` counts. An id names a session of any project.
    pub scope: &'a Scope,
    /// The clock.
    pub now: Timestamp,
    /// What somebody remembers of the sessions.
    pub memory: Option<Memory<'a>>,
}

/// What is remembered of sessions, so that their files need not be opened.
#[derive(Clone, Copy)]
pub struct Memory<'a> {
    /// The ids of those sessions whose files are as they were.
    pub ids: &'a dyn Fn(&[Source]) -> Vec<Option<SessionId>>,
    /// Descriptions of [`Depth::Ends`].
    pub describe: &'a dyn Fn(Vec<Source>) -> Listing,
}

impl Lookup<'_> {
    /// Sessions with the ids that are remembered.
    pub(super) fn remembered(&self, sources: Vec<Source>) -> Vec<Candidate> {
        let ids = self.memory.map(|memory| (memory.ids)(&sources)).unwrap_or_default();
        let ids = ids.into_iter().chain(std::iter::repeat(None));
        sources.into_iter().zip(ids).map(|(source, id)| Candidate { source, id }).collect()
    }
}

/// The session that a name means, and the record in it.
#[derive(Debug)]
pub struct Named {
    /// Where the session is.
    pub location: Location,
    /// The part after the `#`.
    pub record: Option<String>,
}

/// Where a session is.
#[derive(Debug)]
pub enum Location {
    /// A file, or rows of a database.
    Source(Box<Source>),
    /// A pipe with a path, such as a shell's `<(command)`: it can be read once.
    Pipe(PathBuf),
    /// Standard input.
    Stdin,
}

/// One of several sessions that a name matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// Its dialect.
    pub dialect: &'static str,
    /// Its id.
    pub id: SessionId,
    /// Its first file; in a database with `#` and its key.
    pub path: PathBuf,
}

/// Why a name means no session.
#[derive(Debug, thiserror::Error)]
pub enum NameError {
    /// No session has such an id, and no file such a name.
    #[error("no session matches {0:?}")]
    NotFound(String),
    /// No session has such an id, and a file or folder of that name is in the working directory: its path needs a `./`.
    #[error("no session matches {0:?}")]
    NeedsSlash(String),
    /// Several sessions match.
    #[error("{name:?} is ambiguous: {} sessions match", matches.len())]
    Ambiguous {
        /// What was typed for the session.
        name: String,
        /// Every match.
        matches: Vec<Match>,
    },
    /// It begins with `@` or `DIALECT:@`, and neither nothing nor `~N` follows.
    #[error("{0:?} is not a session name")]
    Malformed(String),
    /// `@~N` counts further back than there are sessions.
    #[error("{}", too_few(*count, project.as_deref()))]
    TooFew {
        /// How many sessions are in scope.
        count: usize,
        /// How many belong to other projects.
        hidden: usize,
        /// The project that was looked at, unless it was every one.
        project: Option<PathBuf>,
    },
    /// A directory that is not a session's.
    #[error("{}: this directory is not a session", .0.display())]
    NotASession(PathBuf),
    /// A database has no session, or several, with this prefix.
    #[error("{}: {}", file.display(), in_file(session, *count))]
    InFile {
        /// The database.
        file: PathBuf,
        /// The part after the `#`.
        session: String,
        /// How many sessions match.
        count: usize,
    },
    /// Something could not be read.
    #[error(transparent)]
    Read(#[from] Error),
}

impl SessionName {
    /// The name as it was typed.
    pub fn typed(&self) -> &str {
        &self.typed
    }

    /// Whether it is written as a path: with a slash or the ending of a session file.
    pub fn is_path(&self) -> bool {
        path::is_path(&self.typed)
    }

    /// Whether it is the path of a file, with or without `#RECORD`.
    pub fn is_file(&self, cwd: &Path) -> bool {
        let name = self.typed.rsplit_once('#').map_or(self.typed.as_str(), |(name, _)| name);
        [self.typed.as_str(), name].iter().any(|name| path::exists(name, cwd) && cwd.join(name).is_file())
    }

    /// Finds the session. Files that could not be read on the way are added to `unreadable`.
    ///
    /// For an id or a prefix, only files are opened whose names allow for it; the others only if none of those has such an id.
    pub fn resolve(&self, lookup: Lookup<'_>, unreadable: &mut Vec<Error>) -> Result<Named, NameError> {
        let cwd = &lookup.places.home.cwd;
        if path::exists(&self.typed, cwd) {
            return Ok(Named { location: path::locate(&self.typed, lookup.places)?, record: None });
        }
        let (name, record) = match self.typed.rsplit_once('#') {
            Some((name, record)) if !record.is_empty() && !name.is_empty() => (name, Some(record.to_owned())),
            _ => (self.typed.as_str(), None),
        };
        if let Some(session) = record.as_deref().filter(|_| path::exists(name, cwd)) {
            let location = path::locate(name, lookup.places)?;
            // In a database, the part after the # names one of its sessions.
            return Ok(match path::session_in(&location, session, lookup.now)? {
                Some(source) => Named { location: source.into(), record: None },
                None => Named { location, record },
            });
        }
        if name == "-" {
            return Ok(Named { location: Location::Stdin, record });
        }
        let (of_dialect, rest) = split_dialect(name);
        if let Some(back) = rest.strip_prefix('@') {
            let back = steps_back(back).ok_or_else(|| NameError::Malformed(name.to_owned()))?;
            let chosen = lookup.places.dialect;
            if chosen.zip(of_dialect).is_some_and(|(chosen, of)| chosen.name() != of.name()) {
                return Err(NameError::NotFound(name.to_owned()));
            }
            let places = &Places { dialect: of_dialect.or(chosen), ..lookup.places.clone() };
            return Ok(Named { location: newest(back, Lookup { places, ..lookup }, unreadable)?.into(), record });
        }
        match by_id::find(&self.typed, name, lookup, unreadable) {
            Ok(by_id::Found { source, is_whole_name }) => {
                Ok(Named { location: source.into(), record: record.filter(|_| !is_whole_name) })
            }
            Err(NameError::NotFound(_)) if name.contains(['/', '\\']) => {
                Ok(Named { location: path::locate(name, lookup.places)?, record })
            }
            Err(NameError::NotFound(name)) if cwd.join(&name).exists() => Err(NameError::NeedsSlash(name)),
            Err(error) => Err(error),
        }
    }
}

impl FromStr for SessionName {
    type Err = &'static str;

    fn from_str(typed: &str) -> Result<SessionName, &'static str> {
        let has_no_id = || typed.strip_suffix(':').is_some_and(|dialect| dialect::named(dialect).is_some());
        if typed.is_empty() || has_no_id() {
            Err("the name of a session is empty")
        } else {
            Ok(SessionName { typed: typed.to_owned() })
        }
    }
}

impl From<Source> for Location {
    fn from(source: Source) -> Location {
        Location::Source(Box::new(source))
    }
}

fn too_few(count: usize, project: Option<&Path>) -> String {
    match (count, project) {
        (0, Some(project)) => format!("no session in {}", project.display()),
        (0, None) => "no session found".to_owned(),
        (1, _) => "there is only 1 session".to_owned(),
        (count, _) => format!("there are only {count} sessions"),
    }
}

fn in_file(session: &str, count: usize) -> String {
    match count {
        0 => format!("no session matches {session:?}"),
        count => format!("{session:?} is ambiguous: {count} sessions match"),
    }
}

/// Separates the dialect from `DIALECT:NAME`. Ids are other programs' strings: what is before the colon may not be a dialect.
pub(super) fn split_dialect(name: &str) -> (Option<&'static dyn Dialect>, &str) {
    let split = name.split_once(':').and_then(|(dialect, name)| Some((dialect::named(dialect)?, name)));
    split.map_or((None, name), |(dialect, name)| (Some(dialect), name))
}

/// How many sessions back from the newest: `@` is 0, `@~` is 1, `@~2` is 2. Takes what follows the `@`.
fn steps_back(text: &str) -> Option<usize> {
    match text.strip_prefix('~') {
        None if text.is_empty() => Some(0),
        None => None,
        Some("") => Some(1),
        Some(count) => count.parse().ok(),
    }
}

/// The newest session in scope that is not a sub-agent's, or one before it, as the agents count them.
fn newest(back: usize, lookup: Lookup<'_>, unreadable: &mut Vec<Error>) -> Result<Source, NameError> {
    let sources = by_id::readable(lookup.places.sources(), unreadable);
    let mut listing = match lookup.memory {
        Some(memory) => (memory.describe)(sources),
        None => lookup.places.describe(sources, lookup.now, Depth::Ends, &|| {}),
    };
    unreadable.append(&mut listing.unreadable);
    let found = lookup.scope.select(listing.sessions, &lookup.places.home.cwd);
    let mut sources: Vec<Source> = Vec::new();
    for (row, source) in found.sessions {
        let is_passed_over = source.dialect.traits().passes_over_empty && listing::is_empty(&row);
        if row.parent_session.is_none() && !is_passed_over {
            sources.push(source);
        }
    }
    if back >= sources.len() {
        return Err(NameError::TooFew { count: sources.len(), hidden: found.hidden, project: found.project });
    }
    Ok(sources.swap_remove(back))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_at_sign_counts_back_from_the_newest() {
        let counts = ["", "~", "~1", "~12", "x", "~x", "1", "~-1"].map(steps_back);
        assert_eq!(counts, [Some(0), Some(1), Some(1), Some(12), None, None, None, None]);
    }
}
