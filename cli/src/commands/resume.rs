//! `resume`: continues a session in its own agent.

use std::io::{self, Write};
use std::process::{Command, ExitCode};

use scrollback::model::SessionId;
use scrollback::session::{Bridge, Session};
use scrollback::view::find::SessionName;
use serde::Serialize;

use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind};
use crate::session::located::Located;
use crate::session::name;
use crate::session::resume::{Resumable, Resume};
use crate::terminal::clean;

/// Continue a session in its own agent
///
/// Starts Claude Code, Codex or Qwen Code in the directory that the session began in, with the arguments that continue it; scrollback ends
/// there. Convert sessions of other agents first. Prints a warning if another git branch is checked out than the session recorded last.
#[derive(clap::Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ResumeArgs {
    /// Session id, unique prefix, @, or a path
    session: SessionName,
    /// Print the command for a shell instead of starting the agent
    #[arg(long)]
    print: bool,
}

const EXAMPLES: &str = "\
Examples:
  scrollback resume @
  scrollback resume codex:@ --print";

/// What `--json` prints, instead of starting the agent.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResumeAnswer {
    session: SessionId,
    dialect: &'static str,
    #[serde(flatten)]
    resume: Resume,
    #[serde(skip_serializing_if = "Option::is_none")]
    git_branch_now: Option<String>,
}

pub(crate) fn run(args: &ResumeArgs, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    if ctx.demo {
        return Err(misuse("no agent has the demo's sessions", "leave out --demo to resume a session of yours"));
    }
    let named = name::resolve(&args.session, global, ctx)?;
    let Located::Source(source) = named.located else {
        return Err(misuse("cannot resume piped input", "name a session"));
    };
    if let Some(record) = named.record {
        let hint = "run `scrollback fork SESSION#RECORD` to get a session that ends there, and resume that";
        return Err(misuse(format!("#{record} is a record; only sessions can be resumed"), hint));
    }
    let path = source.path.clone();
    let session = Located::Source(source).open(global, ctx, Bridge::AsTheAgent, None, None)?;
    if let Some((parent, _)) = session.parent_session() {
        let hint = format!("run `scrollback resume {parent}` to continue the session that started it");
        return Err(misuse(format!("session {} is a sub-agent's", session.id()), hint));
    }
    let id = session.id();
    let resumable = Resumable { dialect: session.dialect(), id: id.as_str(), path: &path, cwd: session.cwd() };
    let resume = Resume::of(resumable, ctx)?;
    if !resume.directory.is_dir() {
        let hint = "the project may have been moved or deleted: put it back there, then run the command again";
        return Err(misuse(format!("{}: no such directory", resume.directory.display()), hint));
    }
    warn_about_branch(&session, ctx)?;
    if let Err(empty) = session.check_not_empty(session.head()) {
        ctx.caution("empty-branch", &empty.to_string())?;
    }
    if ctx.json {
        let git_branch_now = session.git_branch_now();
        ctx.print_json(&ResumeAnswer { session: id, dialect: session.dialect().name(), resume, git_branch_now })?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.print {
        ctx.line(&clean::line(&resume.command))?;
        return Ok(ExitCode::SUCCESS);
    }
    ctx.out.flush()?;
    start(&resume).map_err(|error| not_started(&resume, &session, &error))
}

fn misuse(message: impl Into<String>, hint: impl Into<String>) -> Failure {
    Failure::new(FailureKind::Usage, message).hint(hint)
}

/// Warns that the agent finds other files there than those that the conversation is about.
fn warn_about_branch(session: &Session, ctx: &mut Ctx) -> Result<(), Failure> {
    match (session.git_branch_now(), session.git_branch()) {
        (Some(now), Some(recorded)) => {
            ctx.caution("git-branch", &format!("the branch {now} is checked out; the session recorded {recorded}"))
        }
        _ => Ok(()),
    }
}

/// Becomes the agent; returns only if it could not be started.
#[cfg(unix)]
fn start(resume: &Resume) -> io::Result<ExitCode> {
    Err(std::os::unix::process::CommandExt::exec(&mut command(resume)))
}

/// Starts the agent and waits for its end.
#[cfg(not(unix))]
fn start(resume: &Resume) -> io::Result<ExitCode> {
    let code = command(resume).status()?.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(crate::failure::FAILED)))
}

fn command(resume: &Resume) -> Command {
    let mut command = Command::new(resume.program);
    // A shell that changes the directory sets PWD too.
    command
        .args(&resume.arguments)
        .envs(&resume.environment)
        .current_dir(&resume.directory)
        .env("PWD", &resume.directory);
    command
}

fn not_started(resume: &Resume, session: &Session, error: &io::Error) -> Failure {
    let agent = session.dialect().resume_command().map_or(resume.program, |command| command.agent);
    let message = match error.kind() {
        io::ErrorKind::NotFound => format!("{}: no such program", resume.program),
        _ => format!("{}: {error}", resume.program),
    };
    misuse(
        message,
        format!("install {agent}, or add it to PATH; `scrollback resume {} --print` prints the command", session.id()),
    )
}
