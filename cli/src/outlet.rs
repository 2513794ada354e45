//! Where output leaves the program: which commands mask secrets, and the last check of each line.
//!
//! Sessions are opened with a mask (`ReadOptions::mask`), so what is rendered of them has no secrets. This is the net below: titles,
//! paths and errors that reach a pipe from anywhere else pass it, too.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use scrollback::model::regular_file::{self, Links};
use scrollback::redact::{Redactor, SensitiveCalls};

use crate::args::{Cli, Command};
use crate::ctx::Ctx;
use crate::failure::Failure;
use crate::redaction;

/// What a command prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outlet {
    /// Something of sessions: masked, unless a person reads it at a terminal.
    Sessions,
    /// Lines of JSON about a recording.
    Acknowledgements,
    /// The exact bytes of a session: masked only with `--redact`.
    Exact,
    /// What other people get of sessions: masked, also at a terminal.
    Shared,
    /// Nothing of a session.
    Program,
}

impl Outlet {
    pub(crate) fn of(cli: &Cli) -> Outlet {
        let Some(command) = &cli.command else { return Outlet::Sessions };
        match command {
            Command::Show(args) if args.is_raw() => Outlet::Exact,
            Command::Convert(args) if args.is_piped() => Outlet::Exact,
            Command::Redact(args) if args.is_piped() => Outlet::Exact,
            Command::Files(args) if args.is_exact() => Outlet::Exact,
            Command::History(_) => Outlet::Exact,
            Command::Record(_) => Outlet::Acknowledgements,
            Command::Export(_) | Command::Serve(_) => Outlet::Shared,
            Command::List(_)
            | Command::Search(_)
            | Command::Stats(_)
            | Command::Sql(_)
            | Command::Index(_)
            | Command::Hook(_)
            | Command::Keep(_)
            | Command::Show(_)
            | Command::Tree(_)
            | Command::Tail(_)
            | Command::Replay(_)
            | Command::ExtractTools(_)
            | Command::Resume(_)
            | Command::New(_)
            | Command::Fork(_)
            | Command::Convert(_)
            | Command::Rewind(_)
            | Command::Undo(_)
            | Command::Redo(_)
            | Command::Files(_)
            | Command::Rename(_)
            | Command::Remove(_)
            | Command::Trash(_)
            | Command::Import(_)
            | Command::Redact(_)
            | Command::Doctor(_) => Outlet::Sessions,
            Command::Config(_) | Command::Completions(_) | Command::Man => Outlet::Program,
        }
    }
}

/// Counts the secrets in what is printed or written exactly, to tell about them.
pub(crate) struct Secrets {
    /// `None` if they are masked, or nobody wants to know.
    redactor: Option<Arc<Redactor>>,
    calls: SensitiveCalls,
    count: usize,
}

impl Secrets {
    pub(crate) fn new(ctx: &Ctx) -> Result<Secrets, Failure> {
        let is_counted = !ctx.is_redacting() && !ctx.is_not_redacting();
        let redactor = is_counted.then(|| redaction::for_reading(ctx)).transpose()?;
        Ok(Secrets { redactor, calls: SensitiveCalls::new(), count: 0 })
    }

    /// Those in a file that was written.
    pub(crate) fn of_file(path: &Path, ctx: &Ctx) -> Result<Secrets, Failure> {
        let mut secrets = Secrets::new(ctx)?;
        if secrets.redactor.is_some() {
            secrets.count_all(&regular_file::read(path, u64::MAX, Links::Refuse)?);
        }
        Ok(secrets)
    }

    /// Counts those in all lines.
    pub(crate) fn count_all(&mut self, bytes: &[u8]) {
        let found = self.redactor.as_ref().map(|redactor| redactor.document(bytes).findings.len());
        self.count += found.unwrap_or(0);
    }

    /// Counts those in a file of a project, which may be a secret as a whole.
    pub(crate) fn count_file(&mut self, path: &str, bytes: &[u8]) {
        // Looking for secrets takes long, and they are texts.
        if !bytes.contains(&0) && std::str::from_utf8(bytes).is_ok() {
            self.count_all(bytes);
        }
        let is_secret = self.redactor.as_ref().is_some_and(|redactor| redactor.is_sensitive_file(path));
        self.count += usize::from(is_secret && self.count == 0 && !bytes.is_empty());
    }

    /// Counts those of the next line.
    pub(crate) fn count(&mut self, line: &[u8]) {
        let found = self.redactor.as_ref().map(|redactor| redactor.line_after(&mut self.calls, line).findings.len());
        self.count += found.unwrap_or(0);
    }

    /// Says how many there are.
    pub(crate) fn tell(&self, ctx: &mut Ctx) -> Result<(), Failure> {
        let (what, them) = match self.count {
            0 => return Ok(()),
            1 => ("1 secret is".to_owned(), "it"),
            count => (format!("{count} secrets are"), "them"),
        };
        ctx.caution("secrets", &format!("{what} in this session; --redact masks {them}"))
    }
}

/// Masks what is written, line by line.
pub(crate) struct MaskedLines<W: Write> {
    out: W,
    redactor: Arc<Redactor>,
    /// A line without its end.
    line: Vec<u8>,
}

impl<W: Write> MaskedLines<W> {
    pub(crate) fn new(out: W, redactor: Arc<Redactor>) -> MaskedLines<W> {
        MaskedLines { out, redactor, line: Vec::new() }
    }

    fn write_line(&mut self, from: usize) -> io::Result<()> {
        let end = self.line[from..].iter().rposition(|byte| *byte == b'\n').map(|at| from + at + 1);
        let Some(end) = end else { return Ok(()) };
        self.write_until(end)
    }

    fn write_until(&mut self, end: usize) -> io::Result<()> {
        let rest = self.line.split_off(end);
        let lines = std::mem::replace(&mut self.line, rest);
        self.out.write_all(&self.redactor.document(&lines).bytes)
    }
}

impl<W: Write> Write for MaskedLines<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let from = self.line.len();
        self.line.extend_from_slice(bytes);
        self.write_line(from)?;
        Ok(bytes.len())
    }

    /// Writes also a line that is not complete: a question waits for an answer.
    fn flush(&mut self) -> io::Result<()> {
        self.write_until(self.line.len())?;
        self.out.flush()
    }
}

impl<W: Write> Drop for MaskedLines<W> {
    fn drop(&mut self) {
        // Whoever must know that it failed has flushed before.
        drop(self.flush());
    }
}
