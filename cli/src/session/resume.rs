//! How the session's own agent continues it: the program, its arguments, and the directory to start it in.

use std::fs;
use std::path::{Path, PathBuf};

use scrollback::dialect::{Dialect, ResumeCommand};
use scrollback::model::Home;
use scrollback::session::Source;
use serde::Serialize;

use super::writable::store_in;
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind};
use crate::terminal::clean;

/// How to continue a session in its own agent. `--json` prints this.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Resume {
    pub(crate) program: &'static str,
    pub(crate) arguments: Vec<String>,
    /// Where the session began.
    pub(crate) directory: PathBuf,
    /// The variable that names the session's store, if the agent would look elsewhere.
    pub(crate) environment: std::collections::BTreeMap<&'static str, PathBuf>,
    /// All of it for a shell.
    pub(crate) command: String,
}

/// The session to continue.
#[derive(Clone, Copy)]
pub(crate) struct Resumable<'a> {
    pub(crate) dialect: &'static dyn Dialect,
    pub(crate) id: &'a str,
    /// Its file.
    pub(crate) path: &'a Path,
    /// The directory that it began in.
    pub(crate) cwd: Option<&'a str>,
}

/// Ends a command that wrote a session: prints the shell command that continues it in its own agent, such as
/// `cd /home/ada/tide && codex resume ID`. Says so instead if its directory is gone.
///
/// Nothing if its agent cannot: it has no such command, or does not look for the session where its file is.
pub(crate) fn print_resume_line(session: Resumable<'_>, ctx: &mut Ctx) -> Result<(), Failure> {
    let Ok(resume) = Resume::of(session, ctx) else { return Ok(()) };
    if resume.directory.is_dir() {
        return ctx.note_command(&format!("Resume: {}", resume.command));
    }
    ctx.note(&format!("Its directory {} is gone: it cannot be resumed there.", resume.directory.display()))
}

impl Resume {
    /// How to continue a session, or why its agent cannot. The directory may be missing.
    pub(crate) fn of(session: Resumable<'_>, ctx: &Ctx) -> Result<Resume, Failure> {
        let refuse = |message: String, hint: String| Err(Failure::new(FailureKind::Usage, message).hint(hint));
        let (name, id) = (session.dialect.name(), clean::line(session.id).into_owned());
        let Some(command) = session.dialect.resume_command() else {
            let hint = format!("run `scrollback convert {id} --to claude-code` (or codex, qwen-code) and resume that");
            return refuse(format!("no agent resumes {name} sessions"), hint);
        };
        let agent = command.agent;
        let Some(store) = Source::file(session.dialect, &ctx.typed_in.join(session.path)).store() else {
            let hint = format!("run `scrollback convert {} --to {name}` to copy it there", session.path.display());
            return refuse(format!("{}: not in a store of {agent}", session.path.display()), hint);
        };
        if !command.accepts(session.id) {
            let hint = format!("run `scrollback fork {id}` to get a copy with such an id");
            return refuse(format!("{agent} resumes only sessions whose id is a UUID"), hint);
        }
        let Some(directory) = session.cwd.map(Path::new).filter(|cwd| cwd.is_absolute()) else {
            let hint = format!("go to its project and run `{} {} {id}`", command.program, command.arguments.join(" "));
            return refuse(format!("session {id} does not say which directory it began in"), hint);
        };
        if clean::line(&directory.to_string_lossy()) != directory.to_string_lossy() {
            let message = format!("{}: control characters in the session's directory", directory.display());
            return refuse(message, "go to its project and start the agent there".to_owned());
        }
        let arguments = command.arguments.iter().copied().chain([session.id]).map(str::to_owned).collect();
        let variable = store_variable(&command, session.dialect, &store, ctx);
        let environment = variable.map(|name| (name, store)).into_iter().collect();
        let resume = Resume {
            program: command.program,
            arguments,
            directory: directory.to_owned(),
            environment,
            command: String::new(),
        };
        Ok(Resume { command: resume.shell_command(), ..resume })
    }

    /// `cd DIR && [VARIABLE=STORE] PROGRAM ARGUMENTS`.
    fn shell_command(&self) -> String {
        let quoted = |path: &Path| quote(&path.to_string_lossy());
        let environment = self.environment.iter().map(|(name, store)| format!("{name}={}", quoted(store)));
        let arguments = self.arguments.iter().map(|argument| quote(argument));
        let words: Vec<String> = environment.chain([self.program.to_owned()]).chain(arguments).collect();
        format!("cd {} && {}", quoted(&self.directory), words.join(" "))
    }
}

/// The variable that leads the agent to the store; none if it looks there by itself, in this shell and in every other one.
fn store_variable(command: &ResumeCommand, dialect: &dyn Dialect, store: &Path, ctx: &Ctx) -> Option<&'static str> {
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let is_found = |home: &Home| store_in(dialect, home).is_some_and(|found| real(&found) == real(store));
    let elsewhere = Home { vars: Default::default(), ..ctx.home.clone() };
    if is_found(&ctx.home) && is_found(&elsewhere) {
        return None;
    }
    let names_it = |name: &&&str| {
        let value = ctx.home.vars.get(**name).filter(|value| !value.is_empty());
        value.is_some_and(|value| real(&ctx.home.cwd.join(value)) == real(store))
    };
    command.store_variables.iter().find(names_it).or(command.store_variables.first()).copied()
}

/// A word for a POSIX shell.
pub(crate) fn quote(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-./:@%+=,".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_quoted_if_a_shell_would_read_it_otherwise() {
        let quoted = ["/home/ada/tide", "/my work", "it's", "$HOME", "~", "", "a;b", "é"].map(quote);
        let expected = ["/home/ada/tide", "'/my work'", r"'it'\''s'", "'$HOME'", "'~'", "''", "'a;b'", "'é'"];
        assert_eq!(quoted, expected);
    }
}
