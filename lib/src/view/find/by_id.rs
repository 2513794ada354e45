//! A session by its id or a prefix of it, as far as possible from the names of files.
//!
//! Most agents name a session's file after the session. So the files are opened whose names match, and those of dialects whose
//! file names have no id, unless their ids are remembered. Only when none of them has a matching id, the other files are opened, each just far enough to show its id.
//! The session that was found may have a copy under any name: the beginnings of the other files are searched for its id.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use hashbrown::{HashMap, HashSet};
use jiff::Timestamp;
use memchr::memmem;
use rayon::prelude::*;

use super::name::split_dialect;
use super::{Lookup, Match, NameError};
use crate::dialect::Dialect;
use crate::model::error::{Error, Result};
use crate::model::record::SessionId;
use crate::session::read::files::head_of;
use crate::session::read::open::ReadOptions;
use crate::session::read::packed::is_called_packed;
use crate::session::read::source::Source;
use crate::view::listing;

/// How far into a file its id is searched: agents state it in the first lines.
const SEARCHED_BYTES: u64 = 32 * 1024;

/// A session that was found.
pub(super) struct Found {
    pub(super) source: Source,
    /// Whether `#RECORD` turned out to be a part of the id.
    pub(super) is_whole_name: bool,
}

/// A session that may be the one, with its id if somebody remembers it.
pub(super) struct Candidate {
    pub(super) source: Source,
    pub(super) id: Option<SessionId>,
}

/// A session whose id is known.
struct Identified {
    source: Source,
    id: SessionId,
}

impl Identified {
    fn describe(&self) -> Match {
        Match { dialect: self.source.dialect.name(), id: self.id.clone(), path: typed_path(&self.source) }
    }
}

/// Finds the session called `name`, or `typed`, which is the name with `#RECORD`.
pub(super) fn find(
    typed: &str,
    name: &str,
    lookup: Lookup<'_>,
    unreadable: &mut Vec<Error>,
) -> std::result::Result<Found, NameError> {
    let wanted = Wanted::parse(typed, name);
    let candidates = lookup.remembered(readable(lookup.places.sources(), unreadable));
    let (likely, others): (Vec<_>, Vec<_>) =
        candidates.into_iter().partition(|candidate| wanted.may_be(&candidate.source));
    let Lookup { places, now, .. } = lookup;
    // From as little of its file as shows it.
    let id = |source: &Source| {
        let find = places.finder(source);
        listing::id(source, &ReadOptions { find: &find, ..ReadOptions::plain(now) })
    };
    let identify = |candidates, unreadable: &mut Vec<Error>| identify(candidates, &id, unreadable);
    let mut known = identify(likely, unreadable);
    let mut matches = wanted.by_ids(&known);
    if let Some(first) = matches.only_id(&known) {
        // What cannot be read is no reason to doubt what was found.
        known.extend(identify(mentioning(others, first.as_str(), false), &mut Vec::new()));
        // Only a session of the same id counts now: one whose id only begins alike is not what its file's name says.
        let of_others = (matches.searched..known.len()).filter(|at| known[*at].id == first);
        matches.sessions.extend(of_others.filter(|at| wanted.is_dialect(&known[*at].source)));
    } else if matches.sessions.is_empty() {
        known.extend(identify(others, unreadable));
        matches = wanted.by_ids(&known);
        if matches.sessions.is_empty() {
            matches = wanted.by_file_names(&known);
        }
    }
    wanted.only(matches, &known)
}

/// The sessions with exactly this id. Files that could not be read are added to `unreadable`.
pub(crate) fn with_id(sources: Vec<Source>, session: &str, now: Timestamp, unreadable: &mut Vec<Error>) -> Vec<Source> {
    let id = |source: &Source| listing::id(source, &ReadOptions::plain(now));
    let candidates = sources.into_iter().map(|source| Candidate { source, id: None }).collect();
    let identified = identify(mentioning(candidates, session, true), &id, unreadable);
    let found = distinct(&positions(&identified, |one| one.id.as_str() == session), &identified);
    found.into_iter().map(|at| identified[at].source.clone()).collect()
}

/// The sessions that share their id with another one of these, by that id: only their paths name them.
pub fn sharing_an_id<'s>(
    sessions: impl Iterator<Item = (&'s SessionId, &'s Source)>,
) -> BTreeMap<SessionId, Vec<Match>> {
    let mut by_id: HashMap<&SessionId, Vec<&Source>> = HashMap::new();
    sessions.for_each(|(id, source)| by_id.entry(id).or_default().push(source));
    let of_id = |(id, sources): (&SessionId, Vec<&Source>)| {
        let identified = |source: &Source| Identified { source: source.clone(), id: id.clone() };
        let same: Vec<Identified> = sources.into_iter().map(identified).collect();
        let kept = distinct(&positions(&same, |_| true), &same);
        (kept.len() > 1).then(|| (id.clone(), kept.iter().map(|at| same[*at].describe()).collect()))
    };
    by_id.into_iter().filter(|(_, sources)| sources.len() > 1).filter_map(of_id).collect()
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
        let (dialect, prefix) = split_dialect(name);
        Wanted { typed, name, dialect: dialect.map(Dialect::name), prefix }
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

    fn by_ids(&self, sessions: &[Identified]) -> Matches {
        // Ids are other programs' strings: one may contain a #.
        let whole: Vec<usize> = positions(sessions, |session| session.id.as_str() == self.typed);
        if !whole.is_empty() {
            return Matches { sessions: whole, searched: sessions.len(), is_whole_name: true };
        }
        self.by(sessions, |session| vec![session.id.as_str().to_owned()])
    }

    fn by_file_names(&self, sessions: &[Identified]) -> Matches {
        self.by(sessions, |session| file_names(&session.source))
    }

    /// The sessions that have the prefix as their name; else those with a name that begins so.
    fn by(&self, sessions: &[Identified], names: impl Fn(&Identified) -> Vec<String>) -> Matches {
        let matching = |is_match: &dyn Fn(&String) -> bool| {
            positions(sessions, |session| self.is_dialect(&session.source) && names(session).iter().any(is_match))
        };
        let mut found = matching(&|name| name == self.prefix);
        if found.is_empty() {
            found = matching(&|name| name.starts_with(self.prefix));
        }
        Matches { sessions: found, searched: sessions.len(), is_whole_name: false }
    }

    /// The only match, or why there is none.
    fn only(&self, matches: Matches, sessions: &[Identified]) -> std::result::Result<Found, NameError> {
        let found = distinct(&matches.sessions, sessions);
        match found.as_slice() {
            [] => Err(NameError::NotFound(self.name.to_owned())),
            [only] => Ok(Found { source: sessions[*only].source.clone(), is_whole_name: matches.is_whole_name }),
            several => {
                let matches = several.iter().map(|at| sessions[*at].describe()).collect();
                Err(NameError::Ambiguous { name: self.name.to_owned(), matches })
            }
        }
    }
}

/// The sessions that a name matches, by their positions.
struct Matches {
    sessions: Vec<usize>,
    /// How many sessions were searched.
    searched: usize,
    is_whole_name: bool,
}

impl Matches {
    /// The id of all matches, if they have the same.
    fn only_id(&self, sessions: &[Identified]) -> Option<SessionId> {
        let mut ids = self.sessions.iter().map(|at| &sessions[*at].id);
        let first = ids.next()?;
        ids.all(|id| id == first).then(|| first.clone())
    }
}

fn positions(sessions: &[Identified], is_match: impl Fn(&Identified) -> bool) -> Vec<usize> {
    (0..sessions.len()).filter(|at| is_match(&sessions[*at])).collect()
}

/// What may be of a session: the id is remembered, in the file's name or near its beginning, or cannot be seen without reading it.
fn mentioning(candidates: Vec<Candidate>, id: &str, with_unreadable: bool) -> Vec<Candidate> {
    let finder = memmem::Finder::new(id);
    let may_be = |Candidate { source, id: remembered }: &Candidate| {
        if let Some(remembered) = remembered {
            return remembered.as_str() == id;
        }
        let is_opaque = !source.dialect.traits().has_ids_in_names || source.key.is_some();
        is_opaque
            || file_names(source).iter().any(|name| name == id)
            || head_of(&source.path, SEARCHED_BYTES).map_or(with_unreadable, |head| finder.find(&head).is_some())
    };
    let kept: Vec<bool> = candidates.par_iter().map(may_be).collect();
    candidates.into_iter().zip(kept).filter_map(|(candidate, kept)| kept.then_some(candidate)).collect()
}

/// Leaves out what belongs to another one of these: the same file by a link, the compressed copy of a log, a row that refers to a
/// log, a sub-agent's file that states the id of the session it worked for, a kept copy of a session that has another name by now.
fn distinct(found: &[usize], sessions: &[Identified]) -> Vec<usize> {
    let real: Vec<RealPlace> = found.iter().map(|at| real_place(&sessions[*at].source)).collect();
    let (mut files, mut logs, mut ids, mut there) = (HashSet::new(), HashSet::new(), HashSet::new(), HashSet::new());
    for (at, (path, _)) in found.iter().zip(&real) {
        let Identified { source, id } = &sessions[*at];
        files.insert(path);
        logs.extend(source.key.is_none().then_some(path));
        ids.extend((!is_of_sub_agent(path)).then(|| (source.dialect.name(), id.as_str())));
        let is_there = source.kept_from().is_none() && !is_of_sub_agent(path);
        there.extend(is_there.then(|| (source.dialect.name(), id.as_str())));
    }
    let (mut known, mut kept) = (HashSet::new(), Vec::new());
    for (at, place) in found.iter().zip(&real) {
        let (Identified { source, id }, path) = (&sessions[*at], &place.0);
        let is_copy = is_called_packed(path) && files.contains(&path.with_extension(""));
        let is_row = source.key.is_some() && logs.contains(path);
        let is_part = is_of_sub_agent(path) && ids.contains(&(source.dialect.name(), id.as_str()));
        let is_kept_copy = source.kept_from().is_some() && there.contains(&(source.dialect.name(), id.as_str()));
        if known.insert(place) && !is_copy && !is_row && !is_part && !is_kept_copy {
            kept.push(*at);
        }
    }
    kept
}

/// Whether an agent named a file as those of its sub-agents.
fn is_of_sub_agent(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("agent-"))
}

/// A path that names a session: its file, in a database with its key.
fn typed_path(source: &Source) -> PathBuf {
    match &source.key {
        Some(key) => format!("{}#{key}", source.path.display()).into(),
        None => source.path.clone(),
    }
}

/// The file of a session without links, and its key in a database.
type RealPlace = (PathBuf, Option<String>);

/// Where a session really is: that of a row that refers to a log, in the log.
fn real_place(source: &Source) -> RealPlace {
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    match source.log() {
        Ok(Some(Ok(log))) => (real(&log.path), None),
        _ => (real(&source.path), source.key.clone()),
    }
}

fn identify(
    candidates: Vec<Candidate>,
    id: &(dyn Fn(&Source) -> Result<SessionId> + Sync),
    unreadable: &mut Vec<Error>,
) -> Vec<Identified> {
    let read = |candidate: &Candidate| candidate.id.clone().map_or_else(|| id(&candidate.source), Ok);
    let ids: Vec<Result<SessionId>> = candidates.par_iter().map(read).collect();
    let mut identified = Vec::with_capacity(ids.len());
    for (id, Candidate { source, .. }) in ids.into_iter().zip(candidates) {
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
