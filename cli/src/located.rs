//! Where a named session is: a file, rows of a database, or what is piped in; and reading it from there.

use std::fs;
use std::io::Read;
use std::path::Path;

use scrollback::dialect::{self, Dialect};
use scrollback::session::read::detect;
use scrollback::session::read::open::ReadOptions;
use scrollback::session::read::source::Source;
use scrollback::session::{Bridge, Session};
use scrollback::view::listing::{self, Depth};
use scrollback::view::page::Page;

use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind};
use crate::scope;

/// What may be piped in: it is kept in memory.
const STDIN_LIMIT_BYTES: u64 = 2 * 1024 * 1024 * 1024;

/// Where a named session is.
pub(crate) enum Located {
    Source(Box<Source>),
    Bytes { dialect: &'static dyn Dialect, bytes: Vec<u8> },
}

impl Located {
    /// The file or folder that a path names.
    pub(crate) fn at(name: &str, global: &Global, ctx: &Ctx) -> Result<Located, Failure> {
        let path = ctx.home.cwd.join(name.strip_prefix("./").unwrap_or(name));
        let named = scope::dialect(global)?;
        let metadata =
            fs::metadata(&path).map_err(|source| scrollback::model::error::Error::Io { path: path.clone(), source })?;
        if metadata.is_dir() {
            return session_folder(&path, named).map(|source| Located::Source(Box::new(source)));
        }
        if !metadata.is_file() && is_a_shell_pipe(&path) {
            let file = fs::File::open(&path)
                .map_err(|source| scrollback::model::error::Error::Io { path: path.clone(), source })?;
            return Ok(Located::bytes(named, read_all(file)?));
        }
        if !metadata.is_file() {
            return Err(scrollback::model::error::Error::NotAFile(path).into());
        }
        let dialect = named.map_or_else(|| detect::of_file(&path, &ctx.home), Ok)?;
        Ok(Located::Source(Box::new(Source::file(dialect, &path))))
    }

    /// What is piped in.
    pub(crate) fn of_stdin(global: &Global) -> Result<Located, Failure> {
        Ok(Located::bytes(scope::dialect(global)?, read_all(std::io::stdin().lock())?))
    }

    fn bytes(named: Option<&'static dyn Dialect>, bytes: Vec<u8>) -> Located {
        Located::Bytes { dialect: named.unwrap_or_else(|| detect::of_bytes(&bytes)), bytes }
    }

    /// The session of a database whose key begins so; nothing when it is no database, or one of a single session.
    pub(crate) fn session_in(&self, session: &str, ctx: &Ctx) -> Result<Option<Located>, Failure> {
        let Located::Source(file) = self else { return Ok(None) };
        let mut found = Source::in_file(file.dialect, &file.path)?;
        if found.len() == 1 && found.iter().all(|only| only.key.is_none()) {
            return Ok(None);
        }
        if found.iter().any(|of_file| of_file.key.as_deref() == Some(session)) {
            found.retain(|of_file| of_file.key.as_deref() == Some(session));
        }
        // A row that names its log is listed under the log's id.
        let by_log = |of_file: &Source| {
            let row = listing::row(of_file, &ReadOptions::plain(ctx.now), Depth::Windows);
            row.is_ok_and(|row| row.id.as_str().starts_with(session))
        };
        let by_key = |of_file: &Source| of_file.key.as_deref().is_some_and(|key| key.starts_with(session));
        let is_key = found.iter().any(by_key);
        found.retain(|of_file| if is_key { by_key(of_file) } else { by_log(of_file) });
        let count = found.len();
        match found.pop().filter(|_| count == 1) {
            Some(only) => Ok(Some(Located::Source(Box::new(only)))),
            None => {
                let kind = if count == 0 { FailureKind::NotFound } else { FailureKind::Usage };
                let message = format!("{}: {count} sessions match {session:?}", file.path.display());
                Err(Failure::new(kind, message).hint("`scrollback list --store` with this file shows every id"))
            }
        }
    }

    /// Reads the session, whole or a page of it.
    pub(crate) fn open(
        self,
        global: &Global,
        ctx: &mut Ctx,
        bridge: Bridge,
        page: Option<Page<'_>>,
    ) -> Result<Session, Failure> {
        match self {
            Located::Bytes { dialect, bytes } => {
                Ok(Session::from_bytes(dialect, bytes, &ReadOptions { bridge, ..ReadOptions::plain(ctx.now) }))
            }
            Located::Source(source) => {
                let stores = scope::Stores::new(global, ctx)?;
                let find = stores.finder(&source);
                let reading = ReadOptions { bridge, find: &find, ..ReadOptions::plain(ctx.now) };
                Ok(match page {
                    Some(page) => Session::open_page(&source, &reading, page)?,
                    None => Session::open(&source, &reading)?,
                })
            }
        }
    }
}

/// `<(command)` of a shell is a pipe with a path; other pipes and devices may never end.
fn is_a_shell_pipe(path: &Path) -> bool {
    path.starts_with("/dev/fd") || path == Path::new("/dev/stdin")
}

/// The session that a folder is: its file is there under the name that a dialect gives it.
fn session_folder(folder: &Path, named: Option<&'static dyn Dialect>) -> Result<Source, Failure> {
    let own_name = |dialect: &'static dyn Dialect| {
        let layouts = dialect.layouts_in(Path::new(""));
        let names = layouts
            .iter()
            .filter_map(|layout| layout.pattern.rsplit('/').next())
            .filter(|name| !name.contains('*'));
        names
            .map(|name| folder.join(name))
            .find(|file| file.is_file())
            .map(|file| Source::file(dialect, &file))
    };
    let found = match named {
        Some(dialect) => own_name(dialect),
        None => dialect::all().iter().copied().find_map(own_name),
    };
    found.ok_or_else(|| {
        let message = format!("{}: a directory, and no session's", folder.display());
        Failure::new(FailureKind::Usage, message).hint("name a file in it; `scrollback list --store DIR` lists a store")
    })
}

fn read_all(from: impl Read) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    from.take(STDIN_LIMIT_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > STDIN_LIMIT_BYTES {
        let message = format!("more than {STDIN_LIMIT_BYTES} bytes were piped in");
        return Err(
            Failure::new(FailureKind::Usage, message).hint("name the file instead: files are read piece by piece")
        );
    }
    Ok(bytes)
}
