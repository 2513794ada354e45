//! A session by its id or a prefix of it, as far as possible from the names of files.
//!
//! Most agents name a session's file after the session. So the files are opened whose names match, and those of dialects whose
//! file names have no id. Only when none of them has a matching id, the other files are opened, each just far enough to show its id.

use hashbrown::HashSet;
use rayon::prelude::*;

use super::{Lookup, Match, NameError};
use crate::dialect;
use crate::model::error::{Error, Result};
use crate::model::record::SessionId;
use crate::session::read::open::ReadOptions;
use crate::session::read::source::Source;
use crate::view::listing;

/// A session that was found.
pub(super) struct Found {
    pub(super) source: Source,
    /// Whether `#RECORD` turned out to be a part of the id.
    pub(super) is_whole_name: bool,
}

/// A session whose id is known.
struct Identified {
    source: Source,
    id: SessionId,
}

/// Finds the session called `name`, or `typed`, which is the name with `#RECORD`.
pub(super) fn find(
    typed: &str,
    name: &str,
    lookup: Lookup<'_>,
    unreadable: &mut Vec<Error>,
) -> std::result::Result<Found, NameError> {
    let wanted = Wanted::parse(typed, name);
    let sources = readable(lookup.places.sources(), unreadable);
    let (likely, others): (Vec<Source>, Vec<Source>) = sources.into_iter().partition(|source| wanted.may_be(source));
    let likely = identify(likely, lookup, unreadable);
    if let Some(found) = wanted.by_ids(&likely) {
        return found;
    }
    let mut all = identify(others, lookup, unreadable);
    all.splice(0..0, likely);
    let found = wanted.by_ids(&all).or_else(|| wanted.by_file_names(&all));
    found.unwrap_or_else(|| Err(NameError::NotFound(name.to_owned())))
}

/// Separates the sources from the errors. Several layouts share a folder: its error is kept once.
pub(super) fn readable(found: Vec<Result<Source>>, unreadable: &mut Vec<Error>) -> Vec<Source> {
    let mut known = HashSet::new();
    let mut sources = Vec::with_capacity(found.len());
    for source in found {
        match source {
            Ok(source) => sources.push(source),
            Err(error) if known.insert(error.to_string()) => unreadable.push(error),
            Err(_) => {}
        }
    }
    sources
}

/// The id that is looked for.
struct Wanted<'a> {
    typed: &'a str,
    name: &'a str,
    dialect: Option<&'a str>,
    prefix: &'a str,
}

impl<'a> Wanted<'a> {
    fn parse(typed: &'a str, name: &'a str) -> Wanted<'a> {
        let (dialect, prefix) = match name.split_once(':') {
            Some((dialect, prefix)) if dialect::named(dialect).is_some() => (Some(dialect), prefix),
            _ => (None, name),
        };
        Wanted { typed, name, dialect, prefix }
    }

    fn is_dialect(&self, source: &Source) -> bool {
        self.dialect.is_none_or(|dialect| dialect == source.dialect.name())
    }

    /// Whether a session may have this id, by the name of its file.
    fn may_be(&self, source: &Source) -> bool {
        let is_likely =
            |name: &String| name == self.typed || (self.is_dialect(source) && name.starts_with(self.prefix));
        !source.dialect.traits().has_ids_in_names || file_names(source).iter().any(is_likely)
    }

    fn by_ids(&self, sessions: &[Identified]) -> Option<std::result::Result<Found, NameError>> {
        // Ids are other programs' strings: one may contain a #.
        if let Some(session) = sessions.iter().find(|session| session.id.as_str() == self.typed) {
            return Some(Ok(Found { source: session.source.clone(), is_whole_name: true }));
        }
        self.choose(sessions, |session| vec![session.id.as_str().to_owned()])
    }

    fn by_file_names(&self, sessions: &[Identified]) -> Option<std::result::Result<Found, NameError>> {
        self.choose(sessions, |session| file_names(&session.source))
    }

    /// The session that has the prefix as its name; else the only one with a name that begins so.
    fn choose(
        &self,
        sessions: &[Identified],
        names: impl Fn(&Identified) -> Vec<String>,
    ) -> Option<std::result::Result<Found, NameError>> {
        let matching = |is_match: &dyn Fn(&String) -> bool| -> Vec<&Identified> {
            let of_dialect = sessions.iter().filter(|session| self.is_dialect(&session.source));
            of_dialect.filter(|session| names(session).iter().any(is_match)).collect()
        };
        let mut matches = matching(&|name| name == self.prefix);
        if matches.is_empty() {
            matches = matching(&|name| name.starts_with(self.prefix));
        }
        match matches[..] {
            [] => None,
            [only] => Some(Ok(Found { source: only.source.clone(), is_whole_name: false })),
            _ => {
                let matches = matches.into_iter().map(|session| Match {
                    dialect: session.source.dialect.name(),
                    id: session.id.clone(),
                    path: session.source.path.clone(),
                });
                Some(Err(NameError::Ambiguous { name: self.name.to_owned(), matches: matches.collect() }))
            }
        }
    }
}

fn identify(sources: Vec<Source>, lookup: Lookup<'_>, unreadable: &mut Vec<Error>) -> Vec<Identified> {
    let id = |source: &Source| {
        let find = lookup.places.finder(source);
        listing::id(source, &ReadOptions { find: &find, ..ReadOptions::plain(lookup.now) })
    };
    let ids: Vec<Result<SessionId>> = sources.par_iter().map(id).collect();
    let mut identified = Vec::with_capacity(ids.len());
    for (id, source) in ids.into_iter().zip(sources) {
        match id {
            Ok(id) => identified.push(Identified { source, id }),
            Err(error) => unreadable.push(error),
        }
    }
    identified
}

/// What a session is called by its place: its file's name, unless every session's file has that one; and what the dialect takes from it.
fn file_names(source: &Source) -> Vec<String> {
    let is_own = source.layout.pattern.rsplit('/').next().is_some_and(|name| name.contains('*'));
    let stem = source.path.file_stem().filter(|_| is_own && source.key.is_none());
    stem.map(|stem| stem.to_string_lossy().into_owned()).into_iter().chain([source.name()]).collect()
}
