//! Where a named session is (a file, rows of a database, or piped bytes), and how it is read from there.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use scrollback::dialect::Dialect;
use scrollback::redact::Redactor;
use scrollback::session::{Bridge, ReadOptions, Session, Source, detect};
use scrollback::view::Page;

use super::scope;
use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind};

/// Piped input is kept in memory.
const PIPE_LIMIT_BYTES: u64 = 2 * 1024 * 1024 * 1024;

/// Where a named session is.
pub(crate) enum Located {
    Source(Box<Source>),
    Bytes { dialect: &'static dyn Dialect, bytes: Vec<u8> },
}

impl Located {
    /// Reads standard input to its end.
    pub(crate) fn from_stdin(dialect: Option<&'static dyn Dialect>) -> Result<Located, Failure> {
        Ok(Located::from_bytes(dialect, read_all(std::io::stdin().lock())?))
    }

    /// Reads a shell's pipe to its end.
    pub(crate) fn from_pipe(path: &Path, dialect: Option<&'static dyn Dialect>) -> Result<Located, Failure> {
        let file =
            fs::File::open(path).map_err(|source| scrollback::model::Error::Io { path: path.to_owned(), source })?;
        Ok(Located::from_bytes(dialect, read_all(file)?))
    }

    fn from_bytes(dialect: Option<&'static dyn Dialect>, bytes: Vec<u8>) -> Located {
        Located::Bytes { dialect: dialect.unwrap_or_else(|| detect::of_bytes(&bytes)), bytes }
    }

    /// Reads the session, whole or a page of it; as it is, or masked.
    pub(crate) fn open(
        self,
        global: &Global,
        ctx: &mut Ctx,
        bridge: Bridge,
        page: Option<Page<'_>>,
        mask: Option<&Arc<Redactor>>,
    ) -> Result<Session, Failure> {
        let source = match self {
            Located::Source(source) => source,
            Located::Bytes { dialect, bytes } => {
                let reading = ReadOptions { bridge, mask, ..ReadOptions::plain(ctx.now) };
                return Ok(Session::from_bytes(dialect, bytes, &reading));
            }
        };
        let places = scope::places(global, ctx)?;
        let find = places.finder(&source);
        let reading = ReadOptions { bridge, find: &find, mask, ..ReadOptions::plain(ctx.now) };
        Ok(match page {
            Some(page) => Session::open_page(&source, &reading, page)?,
            None => Session::open(&source, &reading)?,
        })
    }
}

fn read_all(from: impl Read) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    from.take(PIPE_LIMIT_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > PIPE_LIMIT_BYTES {
        let message = format!("the piped input is larger than {PIPE_LIMIT_BYTES} bytes");
        return Err(Failure::new(FailureKind::Usage, message).hint("name the file instead of piping it"));
    }
    Ok(bytes)
}

/// Why a session without records cannot be shown.
pub(crate) fn no_records(session: &Session) -> Failure {
    let path = session.path().display();
    if session.issues().is_empty() {
        Failure::new(FailureKind::NotFound, format!("{path}: the file is empty"))
            .hint("nothing has been recorded in it yet")
    } else {
        Failure::new(FailureKind::NotFound, format!("{path}: no records"))
            .hint("run `scrollback doctor FILE` for details")
    }
}
