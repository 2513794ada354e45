//! What `redact` looks at: sessions, files that are none, and piped bytes.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use scrollback::dialect::Dialect;
use scrollback::model::Error;
use scrollback::session::{Source, detect, folder};
use scrollback::view::find::SessionName;
use scrollback::view::secrets::SecretFile;

use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind};
use crate::session::located::Located;
use crate::session::{name, scope};

/// Something that may have secrets.
pub(super) enum Target {
    Session(Box<Source>),
    /// A file that is no session.
    File(PathBuf),
    Bytes {
        dialect: &'static dyn Dialect,
        bytes: Vec<u8>,
    },
}

impl Target {
    /// The file that a recorder would lock.
    pub(super) fn log(&self) -> Option<&PathBuf> {
        match self {
            Target::Session(source) => Some(&source.path),
            Target::File(_) | Target::Bytes { .. } => None,
        }
    }

    pub(super) fn size_bytes(&self) -> u64 {
        let size = |path: &Path| fs::metadata(path).map_or(0, |metadata| metadata.len());
        match self {
            Target::Session(source) => SecretFile::of_session(source).iter().map(|file| size(&file.path)).sum(),
            Target::File(path) => size(path),
            Target::Bytes { bytes, .. } => bytes.len() as u64,
        }
    }
}

/// What was named, each once; and whether something below a directory could not be read. In a check, only a finding may exit with 1:
/// what is not there is a mistake, and an empty directory has no secret.
pub(super) fn find(
    names: &[SessionName],
    is_check: bool,
    global: &Global,
    ctx: &mut Ctx,
) -> Result<(Vec<Target>, bool), Failure> {
    let (mut targets, mut has_failed) = (Vec::new(), false);
    for name in names {
        let (found, unreadable) = match named(name, global, ctx) {
            Err(failure) if is_check && failure.kind == FailureKind::NotFound => {
                let path = ctx.home.cwd.join(name.typed());
                if fs::read_dir(&path).is_ok_and(|mut entries| entries.next().is_none()) {
                    ctx.note(&format!("{}: an empty directory", path.display()))?;
                    continue;
                }
                return Err(Failure { kind: FailureKind::Usage, ..failure });
            }
            found => found?,
        };
        has_failed |= unreadable > 0;
        targets.extend(found);
    }
    // What was kept of a session has the same secrets.
    let places = scope::places(global, ctx)?;
    let logs: Vec<&Source> = targets
        .iter()
        .filter_map(|target| match target {
            Target::Session(source) if source.key.is_none() => Some(&**source),
            Target::Session(_) | Target::File(_) | Target::Bytes { .. } => None,
        })
        .collect();
    let mut copies: Vec<Source> = logs.iter().flat_map(|source| places.kept_copies(source)).collect();
    copies.extend(places.copies_under_other_names(&logs, ctx.now));
    targets.extend(copies.into_iter().map(|copy| Target::Session(Box::new(copy))));
    let mut known = HashSet::new();
    targets.retain(|target| match target {
        Target::Session(source) => known.insert((source.path.clone(), source.key.clone())),
        Target::File(path) => known.insert((path.clone(), None)),
        Target::Bytes { .. } => true,
    });
    Ok((targets, has_failed))
}

fn named(name: &SessionName, global: &Global, ctx: &mut Ctx) -> Result<(Vec<Target>, usize), Failure> {
    // Without `.` in the middle.
    let path: PathBuf = ctx.home.cwd.join(name.typed()).components().collect();
    // A hook names every file of a commit: what is a file is not the beginning of an id.
    let is_path = name.is_path() || path.is_file();
    if is_path && path.is_dir() {
        return in_folder(&path, global, ctx);
    }
    if is_path && path.is_file() {
        return Ok((in_file(&path, global, ctx)?, 0));
    }
    let named = match name::resolve(name, global, ctx) {
        Err(failure) if failure.kind == FailureKind::NotFound && path.is_dir() => return in_folder(&path, global, ctx),
        Err(failure) if failure.kind == FailureKind::NotFound && path.is_file() => {
            return Ok((in_file(&path, global, ctx)?, 0));
        }
        named => named?,
    };
    if let Some(record) = &named.record {
        let failure = Failure::new(FailureKind::Usage, format!("#{record} is a record; only whole sessions are read"));
        return Err(failure.hint("leave out the record"));
    }
    Ok((
        match named.located {
            Located::Source(source) if source.key.is_none() => sessions(source.dialect, &source.path)?,
            Located::Source(source) => vec![Target::Session(source)],
            Located::Bytes { dialect, bytes } => vec![Target::Bytes { dialect, bytes }],
        },
        0,
    ))
}

/// The sessions of a file, or the file itself if it is none.
fn in_file(path: &Path, global: &Global, ctx: &Ctx) -> Result<Vec<Target>, Failure> {
    let dialect = match scope::dialect(global)? {
        Some(dialect) => Ok(dialect),
        None => detect::of_file(path, &ctx.home),
    };
    match dialect {
        Ok(dialect) if dialect.name() != "unknown" => sessions(dialect, path),
        Ok(_) | Err(Error::NoSessions(_)) => Ok(vec![Target::File(path.to_path_buf())]),
        Err(error) => Err(error.into()),
    }
}

/// A database contains many sessions.
fn sessions(dialect: &'static dyn Dialect, path: &Path) -> Result<Vec<Target>, Failure> {
    let sources = Source::in_file(dialect, path)?;
    Ok(sources.into_iter().map(|source| Target::Session(Box::new(source))).collect())
}

/// The sessions in a directory and below it.
fn in_folder(path: &Path, global: &Global, ctx: &mut Ctx) -> Result<(Vec<Target>, usize), Failure> {
    let found = folder::sessions(path, &ctx.home, scope::dialect(global)?);
    let (sources, unreadable) = scope::readable(found.sources, ctx)?;
    if sources.is_empty() && unreadable == 0 {
        let failure = Failure::new(FailureKind::NotFound, format!("{}: contains no session", path.display()));
        return Err(failure.hint("name its files, a store or a session folder"));
    }
    Ok((sources.into_iter().map(|source| Target::Session(Box::new(source))).collect(), unreadable))
}
