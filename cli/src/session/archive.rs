//! The archive of this run: with the user's index, or without one.

use std::io::ErrorKind;
use std::path::PathBuf;

use scrollback::session::Source;
use scrollback::view::find::Places;
use scrollback_index::{Archive, Error, SqliteIndex};

use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind};
use crate::redaction;

/// Opens the archive over these places. The demo, a store that was named and what is asked for with its secrets never enter the
/// user's index; and an index that cannot be used is no reason not to answer.
pub(crate) fn open(places: Places, sources: &[Source], global: &Global, ctx: &mut Ctx) -> Result<Archive, Failure> {
    let without = Archive::new(places.clone(), ctx.now);
    // Without a session there is nothing to keep.
    let Some(path) = path(ctx).filter(|_| is_indexed(global, ctx) && !sources.is_empty()) else {
        return Ok(without);
    };
    let mask = redaction::for_reading(ctx)?;
    match SqliteIndex::open(&path, mask.fingerprint()) {
        Ok(index) => {
            if let Some(aside) = index.set_aside() {
                let (was, now) = (path.display(), aside.display());
                let what = format!("{was}: damaged, or no index; it is now {now}, and a new index is made");
                ctx.caution("index", &what)?;
            }
            if index.was_changed() {
                let what = format!("{}: another program has changed it; it is made anew", path.display());
                ctx.caution("index", &what)?;
            }
            Ok(Archive::with_index(places, ctx.now, Box::new(index), mask).excluding(excluded(ctx)))
        }
        Err(error) => {
            warn(&error, ctx)?;
            Ok(without)
        }
    }
}

/// Opens the archive with what is known already: makes no index, and does without one that cannot be used.
pub(crate) fn open_known(places: Places, global: &Global, ctx: &Ctx) -> Archive {
    let path = path(ctx).filter(|path| is_indexed(global, ctx) && path.is_file());
    let opened = path.and_then(|path| {
        let mask = redaction::for_reading(ctx).ok()?;
        let index = SqliteIndex::open_known(&path, mask.fingerprint()).ok()??;
        Some(Archive::with_index(places.clone(), ctx.now, Box::new(index), mask).excluding(excluded(ctx)))
    });
    opened.unwrap_or_else(|| Archive::new(places, ctx.now))
}

fn is_indexed(global: &Global, ctx: &Ctx) -> bool {
    !ctx.demo && global.store.is_none() && !ctx.is_not_redacting()
}

/// The folders that the config file excludes; `~` is the home directory.
pub(crate) fn excluded(ctx: &Ctx) -> Vec<PathBuf> {
    let folder = |text: String| match text.strip_prefix("~/") {
        Some(below) => ctx.home.dir.join(below),
        None if text == "~" => ctx.home.dir.clone(),
        None => ctx.home.cwd.join(text),
    };
    ctx.config.texts("exclude").into_iter().map(folder).collect()
}

/// Where the index of this user is; `None` without a home directory.
pub(crate) fn path(ctx: &Ctx) -> Option<PathBuf> {
    Some(ctx.home.cache().join("index.db")).filter(|path| path.is_absolute())
}

/// Says what went wrong with the index; the answer is right all the same.
pub(crate) fn warn_about_index(archive: &mut Archive, ctx: &mut Ctx) -> Result<(), Failure> {
    archive.take_problems().iter().try_for_each(|problem| warn(problem, ctx))
}

fn warn(error: &Error, ctx: &mut Ctx) -> Result<(), Failure> {
    if let (true, Some(path)) = (SqliteIndex::is_damaged(error), path(ctx))
        && let Ok(aside) = SqliteIndex::move_aside(&path)
    {
        let what = format!("{error}; it is now {}, and the next command makes a new one", aside.display());
        return ctx.caution("index", &what);
    }
    let hint = match error {
        Error::Newer(_) => "update scrollback, or delete the file; ",
        Error::Read(_) => "",
        Error::Io { source, .. } if source.kind() == ErrorKind::InvalidInput => "move away what is in its place; ",
        Error::Io { source, .. }
            if matches!(source.kind(), ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied) =>
        {
            ""
        }
        Error::Database { .. } | Error::Io { .. } => "free disk space, or delete the file: it is only a cache; ",
    };
    let failure = Failure::new(FailureKind::Io, error.to_string());
    ctx.warn(&failure.hint(format!("{hint}the sessions themselves were read")))
}
