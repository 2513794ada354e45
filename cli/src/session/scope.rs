//! Which sessions a command uses: those of this project, unless an option changes that.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use scrollback::dialect::{self, Dialect};
use scrollback::model::{Error, SessionId};
use scrollback::session::Source;
use scrollback::view::SessionRow;
use scrollback::view::find::{Match, Places, ProjectScope, Scope, parse_time, sharing_an_id, unsupported_agent};
use scrollback::view::listing::Depth;
use scrollback_index::Archive;

use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind};
use crate::heap;
use crate::render::short_ids::ShortIds;
use crate::session::{archive, keeping};
use crate::terminal::clean;
use crate::terminal::progress::LateBar;

/// The sessions in scope, and how many are not.
pub(crate) struct Found {
    /// The newest first.
    pub(crate) rows: Vec<(Box<SessionRow>, Source)>,
    /// Kept copies of sessions of any project, which have another name by now.
    pub(crate) copies: Vec<(Box<SessionRow>, Source)>,
    /// How many belong to other projects.
    pub(crate) hidden: usize,
    /// How many files and folders could not be read; each has been reported.
    pub(crate) unreadable: usize,
    /// The project, unless every project is in scope.
    pub(crate) project: Option<PathBuf>,
    /// How sessions are named: an id names a session of any project.
    pub(crate) ids: ShortIds<'static>,
    /// Those of any project that no id names, because several have it.
    pub(crate) same_ids: BTreeMap<SessionId, Vec<Match>>,
    /// What answers further questions about them.
    pub(crate) archive: Archive,
}

/// Finds and describes the sessions in scope.
pub(crate) fn found(global: &Global, ctx: &mut Ctx, depth: Depth) -> Result<Found, Failure> {
    heap::prepare_threads();
    let (places, scope) = (places(global, ctx)?, scope(global, ctx)?);
    let (sources, mut unreadable) = readable(places.sources(), ctx)?;
    let mut archive = archive::open(places.clone(), &sources, global, ctx)?;
    if ctx.config.is_keeping() && global.store.is_none() {
        archive.look(&sources);
        let changed: Vec<Source> = archive.changed(&sources).into_iter().cloned().collect();
        keeping::keep_all(changed.iter(), ctx)?;
    }
    let progress = LateBar::new(sources.len() as u64, ctx);
    let listing = archive.describe(sources, depth, &|| progress.inc(1));
    progress.finish();
    archive::warn_about_index(&mut archive, ctx)?;
    for error in listing.unreadable {
        unreadable += 1;
        ctx.warn(&error.into())?;
    }
    let mut ids: Vec<String> = listing.sessions.iter().map(|(row, _)| row.id.0.clone()).collect();
    if let (Some(_), None) = (&global.dialect, &global.store) {
        // Without --dialect, an id names a session of any dialect.
        let all = Places { dialect: None, ..places.clone() };
        ids.extend(all.sources().into_iter().flatten().map(|source| source.name()));
    }
    let ids = ShortIds::of_sessions(ids.into_iter());
    let same_ids = sharing_an_id(listing.sessions.iter().map(|(row, source)| (&row.id, source)));
    let selected = scope.select(listing.sessions, &ctx.home.cwd);
    let (rows, hidden, project) = (selected.sessions, selected.hidden, selected.project);
    let copies = listing.copies;
    Ok(Found { rows, copies, hidden, unreadable, project, ids, same_ids, archive })
}

/// Every session, and which of them are in scope: what one of them says can stand in another one, too.
pub(crate) struct Everything {
    /// The newest first.
    pub(crate) sessions: Vec<(Box<SessionRow>, Source)>,
    pub(crate) in_scope: InScope,
    /// How many belong to other projects.
    pub(crate) hidden: usize,
    pub(crate) archive: Archive,
}

/// The sessions in scope.
pub(crate) enum InScope {
    All,
    These(HashSet<String>),
}

impl InScope {
    pub(crate) fn holds(&self, row: &SessionRow) -> bool {
        match self {
            InScope::All => true,
            InScope::These(keys) => keys.contains(&InScope::key(row)),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, InScope::These(keys) if keys.is_empty())
    }

    /// What tells sessions apart: several are in one database, and copies have the same id.
    fn key(row: &SessionRow) -> String {
        format!("{}\0{}", row.path, row.id)
    }
}

/// Finds every session of all agents, and which of them are in scope.
pub(crate) fn everything(places: Places, scope: &Scope, global: &Global, ctx: &mut Ctx) -> Result<Everything, Failure> {
    heap::prepare_threads();
    let dialect = places.dialect;
    let places = Places { dialect: None, ..places };
    let (sources, _) = readable(places.sources(), ctx)?;
    let mut archive = archive::open(places, &sources, global, ctx)?;
    let listing = archive.describe(sources, Depth::Ends, &|| {});
    for error in listing.unreadable {
        ctx.warn(&error.into())?;
    }
    let rows = listing.sessions.iter().map(|(row, _)| &**row);
    let (is_in_scope, hidden) = scope.judge(rows.clone(), &ctx.home.cwd);
    let is_of_dialect = |row: &SessionRow| dialect.is_none_or(|dialect| dialect.name() == row.dialect);
    let all = listing.sessions.len();
    let in_scope: Vec<&SessionRow> = rows
        .zip(is_in_scope)
        .filter(|(row, is_in)| *is_in && is_of_dialect(row))
        .map(|(row, _)| row)
        .collect();
    let in_scope = match in_scope.len() == all && all > 0 {
        true => InScope::All,
        false => InScope::These(in_scope.into_iter().map(InScope::key).collect()),
    };
    Ok(Everything { sessions: listing.sessions, in_scope, hidden, archive })
}

/// Where to look for sessions.
pub(crate) fn places(global: &Global, ctx: &Ctx) -> Result<Places, Failure> {
    let store = global.store.as_ref().map(|store| ctx.home.cwd.join(store));
    if let Some(store) = store.as_ref().filter(|store| !store.is_dir() && !store.is_file()) {
        let failure = Failure::new(FailureKind::Usage, format!("{}: no such directory", store.display()));
        return Err(failure.hint("use the folder above an agent's sessions, such as ~/.codex, or a database"));
    }
    Ok(Places { home: ctx.home.clone(), store, dialect: dialect(global)?, mask: ctx.mask.clone() })
}

/// Which sessions of those places are in scope.
pub(crate) fn scope(global: &Global, ctx: &Ctx) -> Result<Scope, Failure> {
    let project = match &global.project {
        Some(dir) => ProjectScope::Of(dir.clone()),
        None if global.all || ctx.demo || global.store.is_some() => ProjectScope::All,
        None => ProjectScope::Current,
    };
    let since = time(global.since.as_deref(), "--since", ctx)?;
    let until = time(global.until.as_deref(), "--until", ctx)?;
    Ok(Scope { project, since, until })
}

/// The dialect that `--dialect` names.
pub(crate) fn dialect(global: &Global) -> Result<Option<&'static dyn Dialect>, Failure> {
    let Some(name) = &global.dialect else { return Ok(None) };
    dialect::named(name).map(Some).ok_or_else(|| unknown_dialect(name))
}

/// Says that there is no such dialect, or not yet, and which names `--dialect` and `DIALECT:` take.
pub(crate) fn unknown_dialect(name: &str) -> Failure {
    let message = match unsupported_agent(name) {
        Some(agent) => format!("{agent} sessions are not supported yet"),
        None => format!("unknown dialect {name:?}"),
    };
    let known: Vec<&str> = dialect::all().iter().map(|dialect| dialect.name()).collect();
    Failure::new(FailureKind::Usage, message).hint(format!("use one of: {}", known.join(", ")))
}

/// The folders that are searched, by dialect: first what other agents write, then our own.
pub(crate) fn folders(places: &Places) -> Vec<Vec<String>> {
    let home = &places.home.dir;
    let name = |root: PathBuf| match root.strip_prefix(home) {
        Ok(below) if home.is_absolute() => Path::new("~").join(below).display().to_string(),
        Ok(_) | Err(_) => root.display().to_string(),
    };
    let (ours, others): (Vec<_>, Vec<_>) = dialect::all().iter().partition(|dialect| dialect.name() == "native");
    let is_searched = |dialect: &&'static dyn Dialect| places.dialect.is_none_or(|only| only.name() == dialect.name());
    let mut known = HashSet::new();
    let mut of = |dialect| {
        let roots = Places { dialect: Some(dialect), ..places.clone() }.roots().into_iter().map(name);
        roots.filter(|root| known.insert(root.clone())).collect()
    };
    others
        .into_iter()
        .chain(ours)
        .filter(is_searched)
        .map(&mut of)
        .filter(|folders: &Vec<_>| !folders.is_empty())
        .collect()
}

/// The same as a sentence, those in the home first: `~` is shorter, and where people look.
pub(crate) fn searched(places: &Places) -> String {
    let mut folders = folders(places).concat();
    folders.sort_by_key(|folder| !folder.starts_with('~'));
    let is_known = places.home.dir.is_absolute() || places.store.is_some();
    let unknown = if is_known { "" } else { ", and no home directory: set HOME to an absolute path" };
    match folders.is_empty() {
        true => format!("searched no folder{unknown}"),
        false => format!("searched {}{unknown}", folders.join(", ")),
    }
}

/// The sources that can be read. Each error is reported once, and counted.
pub(crate) fn readable(found: Vec<Result<Source, Error>>, ctx: &mut Ctx) -> Result<(Vec<Source>, usize), Failure> {
    let (mut sources, mut warned) = (Vec::with_capacity(found.len()), HashSet::new());
    for source in found {
        match source {
            Ok(source) => sources.push(source),
            Err(error) => {
                // Layouts that share a folder report the same error.
                if warned.insert(error.to_string()) {
                    ctx.warn(&error.into())?;
                }
            }
        }
    }
    Ok((sources, warned.len()))
}

/// The instant that an option names.
pub(crate) fn time(text: Option<&str>, flag: &str, ctx: &Ctx) -> Result<Option<Timestamp>, Failure> {
    let Some(text) = text else { return Ok(None) };
    parse_time(text, ctx.now, &ctx.zone).map(Some).ok_or_else(|| {
        Failure::new(FailureKind::Usage, format!("{flag}: invalid time {:?}", clean::line(text)))
            .hint("use a date (2026-11-01), an instant, or an age (30m, 12h, 3d, 2w)")
    })
}
