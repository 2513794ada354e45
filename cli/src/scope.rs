//! Which sessions a command looks at: this project's, unless somebody says otherwise.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rayon::prelude::*;
use scrollback::dialect::{self, Dialect};
use scrollback::model::home::Home;
use scrollback::model::project;
use scrollback::session::read::open::ReadOptions;
use scrollback::session::read::source::Source;
use scrollback::view::answers::SessionRow;
use scrollback::view::listing::{self, Depth, Places};

use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind};
use crate::render::clock;
use crate::terminal::clean;

/// What was found: the sessions in scope, and how many lie outside.
pub(crate) struct Found {
    pub(crate) rows: Rows,
    pub(crate) hidden: usize,
    /// How many places or sessions could not be read; each was told.
    pub(crate) unreadable: usize,
    pub(crate) project: Option<PathBuf>,
}

/// The dialect that was named.
pub(crate) fn dialect(global: &Global) -> Result<Option<&'static dyn Dialect>, Failure> {
    let Some(name) = &global.dialect else { return Ok(None) };
    dialect::named(name).map(Some).ok_or_else(|| {
        let known: Vec<&str> = dialect::all().iter().map(|dialect| dialect.name()).collect();
        Failure::new(FailureKind::Usage, format!("no dialect is called {name:?}"))
            .hint(format!("known: {}", known.join(", ")))
    })
}

/// Every session's source.
fn sources(global: &Global, ctx: &mut Ctx) -> Result<(Vec<Source>, usize), Failure> {
    let found = Places { home: &ctx.home, store: store(global, ctx)?, dialect: dialect(global)? }.sources();
    readable(found, ctx)
}

/// What can be read of it; the rest is told on standard error and counted.
pub(crate) fn readable(
    found: Vec<scrollback::model::error::Result<Source>>,
    ctx: &mut Ctx,
) -> Result<(Vec<Source>, usize), Failure> {
    let (mut sources, mut told) = (Vec::new(), HashSet::new());
    for source in found {
        match source {
            Ok(source) => sources.push(source),
            Err(error) => {
                // Several layouts begin in one folder, and each finds it shut.
                if told.insert(error.to_string()) {
                    ctx.warn(&error.into())?;
                }
            }
        }
    }
    Ok((sources, told.len()))
}

/// Every session with its source, the newest first.
pub(crate) type Rows = Vec<(SessionRow, Source)>;

/// Describes every session, whatever its project, and counts what could not be read.
pub(crate) fn rows(global: &Global, ctx: &mut Ctx, depth: Depth) -> Result<(Rows, usize), Failure> {
    let (sources, mut unreadable) = sources(global, ctx)?;
    let stores = Stores::new(global, ctx)?;
    let (now, progress) = (ctx.now, progress(ctx, sources.len() as u64, depth));
    let projects = project::Projects::default();
    let describe = |source: &Source| {
        let find = stores.finder(source);
        let project = |cwd: &Path| projects.of(cwd);
        let reading = ReadOptions { find: &find, project: &project, ..ReadOptions::plain(now) };
        let row = listing::row(source, &reading, depth);
        progress.inc(1);
        row
    };
    let described = sources.par_iter().map(describe).collect::<Vec<_>>();
    progress.finish_and_clear();
    let mut rows = Vec::new();
    for (row, source) in described.into_iter().zip(&sources) {
        match row {
            Ok(row) => rows.push((row, source.clone())),
            Err(error) => {
                unreadable += 1;
                ctx.warn(&error.into())?;
            }
        }
    }
    listing::entitle(&mut rows.iter_mut().map(|(row, _)| row).collect::<Vec<_>>());
    rows.sort_by(|(a, _), (b, _)| b.updated.cmp(&a.updated).then_with(|| a.path.cmp(&b.path)));
    Ok((rows, unreadable))
}

/// The sessions in scope.
pub(crate) fn found(global: &Global, ctx: &mut Ctx, depth: Depth) -> Result<Found, Failure> {
    let since = time(global.since.as_deref(), "--since", ctx)?;
    let until = time(global.until.as_deref(), "--until", ctx)?;
    let (mut rows, unreadable) = rows(global, ctx, depth)?;
    let total = rows.len();
    let project = current(global, ctx, &rows);
    if let Some(project) = &project {
        rows.retain(|(row, _)| row.project.as_deref().is_some_and(|of| Path::new(of) == project));
    }
    let hidden = total - rows.len();
    rows.retain(|(row, _)| {
        since.is_none_or(|since| row.updated.is_some_and(|at| at >= since))
            && until.is_none_or(|until| row.updated.is_some_and(|at| at < until))
    });
    Ok(Found { rows, hidden, unreadable, project })
}

/// The project that commands are about: none means all of them.
fn current(global: &Global, ctx: &Ctx, rows: &[(SessionRow, Source)]) -> Option<PathBuf> {
    if let Some(dir) = &global.project {
        return Some(project::of(&project::settled(&ctx.home.cwd, dir)));
    }
    if global.all || ctx.demo || global.store.is_some() {
        return None;
    }
    if let Some(root) = project::git_root(&ctx.home.cwd) {
        return Some(root);
    }
    // Outside a work tree we are inside a project only if sessions say so.
    let is_project =
        |dir: &&Path| rows.iter().any(|(row, _)| row.project.as_deref().is_some_and(|of| Path::new(of) == *dir));
    ctx.home.cwd.ancestors().find(is_project).map(Path::to_path_buf)
}

/// Where a session that another one begins in is looked for.
pub(crate) struct Stores {
    home: Home,
    store: Option<PathBuf>,
}

impl Stores {
    pub(crate) fn new(global: &Global, ctx: &Ctx) -> Result<Stores, Failure> {
        Ok(Stores { home: ctx.home.clone(), store: store(global, ctx)? })
    }

    /// Every session's source that can be found.
    pub(crate) fn sources(&self, dialect: Option<&'static dyn Dialect>) -> Vec<Source> {
        let places = Places { home: &self.home, store: self.store.clone(), dialect };
        places.sources().into_iter().filter_map(Result::ok).collect()
    }

    /// The folders that sessions lie below, there or not.
    pub(crate) fn roots(&self, dialect: Option<&'static dyn Dialect>) -> Vec<PathBuf> {
        let dialects = dialect.map_or_else(|| dialect::all().to_vec(), |dialect| vec![dialect]);
        let layouts = dialects.iter().flat_map(|dialect| match &self.store {
            Some(store) => dialect.layouts_in(store),
            None => dialect.layouts(&self.home),
        });
        let mut roots: Vec<PathBuf> = layouts.map(|layout| layout.root).collect();
        roots.sort();
        roots.dedup();
        roots
    }

    /// Finds what `source` begins in: beside it, else in the usual places. Nothing is walked before one is looked for.
    pub(crate) fn finder<'a>(&'a self, source: &'a Source) -> impl Fn(&str) -> Option<Source> + 'a {
        let (near, far) = (OnceCell::<Vec<Source>>::new(), OnceCell::<Vec<Source>>::new());
        let walk = || self.sources(Some(source.dialect));
        move |id| {
            let named = |sources: &[Source]| sources.iter().find(|known| known.name() == id).cloned();
            named(near.get_or_init(|| source.neighbours())).or_else(|| named(far.get_or_init(walk)))
        }
    }
}

/// The store that was named.
fn store(global: &Global, ctx: &Ctx) -> Result<Option<PathBuf>, Failure> {
    let store = global.store.as_ref().map(|store| ctx.home.cwd.join(store));
    match store {
        Some(store) if !store.is_dir() && !store.is_file() => {
            let failure = Failure::new(FailureKind::Usage, format!("{}: no such directory", store.display()));
            Err(failure.hint("--store names the folder that holds the agent's sessions folder, or a database"))
        }
        store => Ok(store),
    }
}

fn time(text: Option<&str>, flag: &str, ctx: &Ctx) -> Result<Option<Timestamp>, Failure> {
    let Some(text) = text else { return Ok(None) };
    clock::parse(text, ctx.now, &ctx.zone).map(Some).ok_or_else(|| {
        let message = format!("{flag}: {:?} is no time", clean::line(text));
        Failure::new(FailureKind::Usage, message)
            .hint("say a date (2026-11-01), an instant, or an age (30m, 12h, 3d, 2w)")
    })
}

/// A bar for a person who waits; nothing for a pipe or a short list.
fn progress(ctx: &Ctx, sessions: u64, depth: Depth) -> indicatif::ProgressBar {
    const WORTH_A_BAR: u64 = 200;
    let wanted = ctx.err_on_terminal && (depth == Depth::Whole || sessions > WORTH_A_BAR);
    let bar = if wanted { indicatif::ProgressBar::new(sessions) } else { indicatif::ProgressBar::hidden() };
    bar.with_message("sessions")
}
