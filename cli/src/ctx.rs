//! The context of a command: home, config, clock, and the two outputs. Nothing else reads the environment.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use jiff::{Timestamp, tz::TimeZone};
use scrollback::model::{Home, Host};
use scrollback::redact::Redactor;
use serde::Serialize;

use crate::args::{ColorChoice, Global};
use crate::config::Config;
use crate::demo::{self, Demo};
use crate::failure::{Failure, FailureKind};
use crate::outlet::{MaskedLines, Outlet};
use crate::redaction;
use crate::render::json;
use crate::terminal::pager::Pager;
use crate::terminal::paint::Paint;
use crate::terminal::{Look, clean, wrap};

/// Lines of prose longer than this are hard to read, however wide the window is.
const WIDEST_COLUMNS: usize = 120;

/// The width if the output is not a terminal.
const PIPE_COLUMNS: usize = 100;

/// Stops the clock, for tests and screenshots.
const CLOCK_VARIABLE: &str = "SCROLLBACK_NOW";

/// Whether secrets are masked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Masking {
    /// Where no person reads at a terminal.
    Auto,
    On,
    Off,
}

/// The file of this program, for what calls it later.
pub(crate) fn program() -> io::Result<PathBuf> {
    std::env::current_exe()
}

/// One run of the program.
pub(crate) struct Ctx {
    pub(crate) home: Home,
    pub(crate) config: Config,
    /// The directory that the command was typed in, also with `--demo`.
    pub(crate) typed_in: PathBuf,
    pub(crate) now: Timestamp,
    /// When the program started, whatever stops the clock.
    pub(crate) started: SystemTime,
    pub(crate) zone: TimeZone,
    pub(crate) look: Look,
    pub(crate) json: bool,
    pub(crate) demo: bool,
    /// What was typed about secrets.
    masking: Masking,
    /// Masks secrets in what is printed.
    pub(crate) mask: Option<Arc<Redactor>>,
    /// Masks what goes to standard error, once something does.
    err_mask: OnceCell<Arc<Redactor>>,
    /// Why the redaction key could not be made, once a secret asked for it.
    pub(crate) key_failure: Arc<OnceLock<String>>,
    demo_home: Option<Demo>,
    /// Whether standard output is a terminal, and standard error.
    pub(crate) on_terminal: bool,
    pub(crate) err_on_terminal: bool,
    /// The columns of standard error, if a person reads it there; programs read whole lines.
    err_columns: Option<usize>,
    pub(crate) out: Box<dyn Write>,
    pub(crate) err: Box<dyn Write>,
    pager: Option<Pager>,
}

impl Ctx {
    /// Reads the environment of this process.
    pub(crate) fn system(global: &Global) -> Ctx {
        let started = SystemTime::now();
        let vars: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let var = |name: &str| vars.get(name).filter(|value| !value.is_empty());
        let on_terminal = io::stdout().is_terminal();
        let home_var = if cfg!(windows) { "USERPROFILE" } else { "HOME" };
        let home = Home {
            dir: var(home_var).map(PathBuf::from).unwrap_or_default(),
            cwd: std::env::current_dir().unwrap_or_default(),
            vars: vars.clone(),
        };
        let config = Config::read(&home);
        let colour = match global.color.or(config.color()).unwrap_or(ColorChoice::Auto) {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => {
                on_terminal && var("NO_COLOR").is_none() && var("TERM").is_none_or(|term| term != "dumb")
            }
        };
        let columns = var("COLUMNS").and_then(|columns| columns.parse().ok());
        let measured = terminal_size::terminal_size().filter(|_| on_terminal).map(|(width, _)| usize::from(width.0));
        let err_on_terminal = io::stderr().is_terminal();
        let err_measured = terminal_size::terminal_size_of(io::stderr()).map(|(width, _)| usize::from(width.0));
        let err_columns = columns.or(err_measured).filter(|_| err_on_terminal);
        let width = columns.or(measured).unwrap_or(PIPE_COLUMNS).clamp(1, 1000);
        let now = var(CLOCK_VARIABLE).and_then(|now| now.parse().ok()).unwrap_or_else(Timestamp::now);
        Ctx {
            typed_in: home.cwd.clone(),
            home,
            config,
            now,
            started,
            zone: TimeZone::system(),
            look: Look { width, code: width, colour },
            json: global.json,
            demo: global.demo,
            masking: match (global.redact, global.no_redact) {
                (true, _) => Masking::On,
                (false, true) => Masking::Off,
                (false, false) => Masking::Auto,
            },
            mask: None,
            err_mask: OnceCell::new(),
            key_failure: Arc::default(),
            demo_home: None,
            on_terminal,
            err_on_terminal,
            err_columns,
            out: Box::new(io::BufWriter::new(io::stdout())),
            err: Box::new(io::stderr()),
            pager: None,
        }
    }

    /// A context that can report a usage error.
    pub(crate) fn plain(json: bool) -> Ctx {
        let global = Global { json, color: Some(ColorChoice::Never), ..Global::plain() };
        Ctx::system(&global)
    }

    /// Fails if the clock was set to something that is not a time.
    pub(crate) fn check_clock(&self) -> Result<(), Failure> {
        let set = self.home.vars.get(CLOCK_VARIABLE).filter(|now| !now.is_empty());
        match set.filter(|now| now.parse::<Timestamp>().is_err()) {
            None => Ok(()),
            Some(now) => Err(Failure::new(FailureKind::Usage, format!("invalid time in {CLOCK_VARIABLE}: {now:?}"))
                .hint("set it to an instant such as 2026-11-15T12:00:00Z, or unset it")),
        }
    }

    /// Whether the clock is stopped.
    fn is_clock_stopped(&self) -> bool {
        self.home.vars.get(CLOCK_VARIABLE).is_some_and(|now| !now.is_empty())
    }

    /// Reads the clock again, in a command that keeps running.
    pub(crate) fn update_now(&mut self) {
        if !self.is_clock_stopped() {
            self.now = Timestamp::now();
        }
    }

    /// Refuses a folder below a home directory that is not known: it would be one below the working directory. `others` are the
    /// variables that would place it elsewhere, and the option, if there is one.
    pub(crate) fn check_home(&self, folder: PathBuf, others: &str) -> Result<PathBuf, Failure> {
        if folder.is_absolute() {
            return Ok(folder);
        }
        let ours = self.home.vars.get("SCROLLBACK_HOME").filter(|value| !value.is_empty());
        if ours.is_some_and(|ours| folder.starts_with(ours)) {
            return Err(Failure::new(FailureKind::Usage, "SCROLLBACK_HOME is not an absolute path")
                .hint("set SCROLLBACK_HOME to an absolute path, or unset it"));
        }
        let what = "the home directory is unknown: HOME is not set to an absolute path";
        Err(Failure::new(FailureKind::Usage, what).hint(format!("set HOME to an absolute path, or use {others}")))
    }

    /// What writing a session needs; its clock is stopped if ours is.
    pub(crate) fn host(&self) -> Host {
        let mut host = Host::at(self.home.cwd.clone(), concat!("scrollback ", env!("CARGO_PKG_VERSION")));
        host.data = Some(self.home.data()).filter(|data| data.is_absolute());
        if self.is_clock_stopped() {
            let now = self.now;
            host.now = Arc::new(move || now);
        }
        host
    }

    /// Uses the demo home instead of the user's.
    pub(crate) fn enter_demo(&mut self) -> Result<(), Failure> {
        let demo = demo::unpack(&self.home, &self.host())?;
        self.use_demo(demo);
        Ok(())
    }

    /// Uses a copy of the demo home, which may be changed, and says where it is.
    pub(crate) fn enter_demo_copy(&mut self) -> Result<(), Failure> {
        let demo = demo::copy(&self.host())?;
        let what = format!("the demo's sessions and their project are copied to {}", demo.path.display());
        self.use_demo(demo);
        if self.json { self.caution("copied", &what) } else { self.note(&what.replacen("the", "The", 1)) }
    }

    fn use_demo(&mut self, demo: Demo) {
        // A stopped clock stays stopped.
        let clock = self.home.vars.remove_entry(CLOCK_VARIABLE);
        self.home = Home { cwd: demo.path.clone(), dir: demo.path.clone(), vars: clock.into_iter().collect() };
        self.demo_home = Some(demo);
    }

    /// Decides whether output is masked, and does it.
    pub(crate) fn mask_output(&mut self, outlet: Outlet) -> Result<(), Failure> {
        let is_masked = match (self.masking, outlet) {
            (Masking::Off, _) | (_, Outlet::Program) => false,
            (Masking::On, _) | (Masking::Auto, Outlet::Shared) => true,
            (Masking::Auto, Outlet::Exact) => false,
            (Masking::Auto, Outlet::Sessions | Outlet::Acknowledgements) => !self.on_terminal,
        };
        if is_masked {
            self.mask = Some(redaction::for_reading(self)?);
            let is_text = !self.json && !matches!(outlet, Outlet::Exact | Outlet::Shared);
            if is_text || outlet == Outlet::Acknowledgements {
                self.out = self.masked(io::stdout());
            }
        }
        Ok(())
    }

    /// Masks what a command copies from one session to another: only with `--redact`.
    pub(crate) fn content_mask(&self) -> Option<Arc<Redactor>> {
        self.mask.clone().filter(|_| self.is_redacting())
    }

    /// A text as it may be printed: masked before it is cut.
    pub(crate) fn shown<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.mask.as_ref().map_or(Cow::Borrowed(text), |mask| mask.text(text).text)
    }

    /// Whether `--redact` was typed.
    pub(crate) fn is_redacting(&self) -> bool {
        self.masking == Masking::On
    }

    /// Whether `--no-redact` was typed.
    pub(crate) fn is_not_redacting(&self) -> bool {
        self.masking == Masking::Off
    }

    /// Text to standard output or to a pager, without secrets if that is masked.
    fn masked(&self, out: impl Write + 'static) -> Box<dyn Write> {
        let out = io::BufWriter::new(out);
        match &self.mask {
            Some(mask) => Box::new(MaskedLines::new(out, mask.clone())),
            None => Box::new(out),
        }
    }

    /// A text as it may go to standard error.
    fn for_err<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let is_exact = match self.masking {
            Masking::Auto => self.err_on_terminal,
            Masking::On => false,
            Masking::Off => true,
        };
        if is_exact {
            return clean::line(text);
        }
        // A mistake in the user's own rules must not hide what went wrong.
        let redactor = || redaction::for_reading(self).unwrap_or_else(|_| Arc::new(Redactor::built_in()));
        let masked = self.err_mask.get_or_init(redactor).text(text).text.into_owned();
        Cow::Owned(clean::line(&masked).into_owned())
    }

    pub(crate) fn paint(&self) -> Paint {
        Paint { colour: self.look.colour }
    }

    /// The layout of prose: never too wide to read.
    pub(crate) fn prose(&self) -> Look {
        Look { width: self.look.width.min(WIDEST_COLUMNS), ..self.look }
    }

    /// Sends the following output to a pager, if a person reads it.
    pub(crate) fn page(&mut self, from_line: usize) {
        if !self.on_terminal || self.json {
            return;
        }
        if let Some((pager, input)) = Pager::start(&self.home, self.config.pager(), from_line) {
            self.pager = Some(pager);
            self.out = self.masked(input);
        }
    }

    /// The same for lines that are known, if they are more than the window has; whether there is a pager now.
    pub(crate) fn page_if_long(&mut self, lines: usize) -> bool {
        let rows = terminal_size::terminal_size().map_or(usize::MAX, |(_, height)| usize::from(height.0));
        // The prompt needs a row too.
        if lines >= rows {
            self.page(0);
        }
        self.pager.is_some()
    }

    /// Waits until the pager is closed, so that notes do not mix with its screen.
    pub(crate) fn end_page(&mut self) -> Result<(), Failure> {
        let flushed = self.out.flush();
        if let Some(pager) = self.pager.take() {
            self.out = self.masked(io::stdout());
            pager.wait();
        }
        Ok(flushed?)
    }

    /// Lends the output to a function that needs the rest of the context too.
    pub(crate) fn writing(
        &mut self,
        write: impl FnOnce(&Ctx, &mut dyn Write) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut out = std::mem::replace(&mut self.out, Box::new(io::sink()));
        let written = write(self, &mut out);
        self.out = out;
        written
    }

    /// Prints one JSON document.
    pub(crate) fn print_json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let mut text = Vec::new();
        json::pretty(&mut text, value)?;
        self.write_json(&text)
    }

    /// Prints a JSON document that has no secrets in it, because sessions are opened with a mask: it may be long, and is not kept in
    /// memory.
    pub(crate) fn stream_json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        json::pretty(&mut self.out, value)?;
        writeln!(self.out)?;
        Ok(())
    }

    /// Prints a value on one line.
    pub(crate) fn print_json_line(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let mut text = Vec::new();
        json::compact(&mut text, value)?;
        self.write_json(&text)
    }

    fn write_json(&mut self, text: &[u8]) -> Result<(), Failure> {
        match &self.mask {
            Some(mask) => self.out.write_all(&mask.line(text).bytes)?,
            None => self.out.write_all(text)?,
        }
        Ok(writeln!(self.out)?)
    }

    /// Prints one line for a person.
    pub(crate) fn line(&mut self, text: &str) -> Result<(), Failure> {
        writeln!(self.out, "{text}")?;
        Ok(())
    }

    /// Reports something that could not be read; the command continues without it.
    pub(crate) fn warn(&mut self, failure: &Failure) -> Result<(), Failure> {
        Ok(self.print_failure(failure)?)
    }

    /// Prints a warning; the command continues.
    pub(crate) fn caution(&mut self, kind: &str, text: &str) -> Result<(), Failure> {
        self.caution_with_hint(kind, text, None)
    }

    /// Warns about mistakes in the config file.
    pub(crate) fn warn_about_config(&mut self) -> Result<(), Failure> {
        for problem in std::mem::take(&mut self.config.problems) {
            self.caution_with_hint("config", &problem.message, Some(&problem.hint))?;
        }
        Ok(())
    }

    fn caution_with_hint(&mut self, kind: &str, text: &str, hint: Option<&str>) -> Result<(), Failure> {
        if self.json {
            let mut warning = serde_json::json!({"kind": kind, "message": self.for_err(text)});
            if let Some(hint) = hint {
                warning["hint"] = self.for_err(hint).into();
            }
            json::compact(&mut self.err, &serde_json::json!({"warning": warning}))?;
            writeln!(self.err)?;
            return Ok(());
        }
        let (text, hint) = (self.for_err(text).into_owned(), hint.map(|hint| self.for_err(hint).into_owned()));
        self.wrapped(&format!("warning: {text}"))?;
        Ok(hint.map_or(Ok(()), |hint| self.wrapped(&format!("hint: {hint}")))?)
    }

    /// Prints a line on standard error, or several if it is longer than the window.
    fn wrapped(&mut self, line: &str) -> io::Result<()> {
        // On one screen, or where both go to one file, what was printed before it is above it.
        if self.pager.is_none() {
            self.out.flush()?;
        }
        let Some(columns) = self.err_columns else { return writeln!(self.err, "{line}") };
        wrap::words(line, columns).into_iter().try_for_each(|range| writeln!(self.err, "{}", &line[range]))
    }

    /// Prints a note on standard error, for people: not with `--json`.
    pub(crate) fn note(&mut self, text: &str) -> Result<(), Failure> {
        if !self.json {
            let text = self.for_err(text).into_owned();
            self.wrapped(&text)?;
        }
        Ok(())
    }

    /// The same for a command to copy: it stays on one line.
    pub(crate) fn note_command(&mut self, text: &str) -> Result<(), Failure> {
        let columns = self.err_columns.take();
        let noted = self.note(text);
        self.err_columns = columns;
        noted
    }

    /// Ends the run: flushes the output, prints the failure, and returns the exit code.
    pub(crate) fn finish(&mut self, done: Result<ExitCode, Failure>) -> ExitCode {
        let flushed = self.end_page();
        if let Some(why) = self.key_failure.get().cloned() {
            // If standard error is closed, nobody reads it.
            drop(self.caution("redaction-key", &format!("{why}; what was masked has no hash")));
        }
        match done.and_then(|code| flushed.map(|()| code)) {
            Ok(code) => code,
            Err(failure) => {
                let printed = self.print_failure(&failure);
                // If standard error is closed, only the exit code is left to report it.
                ExitCode::from(if printed.is_ok() { failure.exit_code() } else { 2 })
            }
        }
    }

    fn print_failure(&mut self, failure: &Failure) -> io::Result<()> {
        if failure.kind == FailureKind::BrokenPipe {
            return Ok(());
        }
        let shown = Failure {
            kind: failure.kind,
            message: self.for_err(&failure.message).into_owned(),
            hint: failure.hint.as_deref().map(|hint| self.for_err(hint).into_owned()),
            wrong: failure.wrong.clone(),
        };
        if self.json {
            json::compact(&mut self.err, &shown.json()).map_err(io::Error::from)?;
            return writeln!(self.err);
        }
        self.wrapped(&format!("scrollback: {}", shown.message))?;
        if let Some([typed, caret]) = failure.wrong.as_ref().map(|wrong| &wrong.excerpt) {
            let typed = self.for_err(typed).into_owned();
            writeln!(self.err, "  {typed}\n  {caret}")?;
        }
        shown.hint.map_or(Ok(()), |hint| self.wrapped(&format!("hint: {hint}")))
    }
}
