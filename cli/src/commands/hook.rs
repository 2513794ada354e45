//! `hook`: an agent says that it has finished, and its session is taken into the index at once.
//!
//! An agent waits for its hooks, so a hook only starts a process of its own that does the work. It never fails and prints nothing: what
//! goes wrong is in a log file.

mod agents;
mod install;
mod json_text;

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use scrollback::model::regular_file::{self, Links};
use scrollback::session::{ReadOptions, Session, Source};
use scrollback::transfer::tables::Tables;
use scrollback::view::find::Places;
use scrollback::write::{append_private_line, replace_private_file};
use scrollback_index::Depth;
use serde_json::{Value, json};

use crate::args::Global;
use crate::ctx::{self, Ctx};
use crate::failure::Failure;
use crate::redaction;
use crate::session::keeping::keep_all;
use crate::session::{archive, scope};
use agents::Agent;

/// Take sessions into the index when their agent finishes
///
/// `hook install AGENT` shows how the agent's settings change, and changes them if you agree. From then on a session that ends can be
/// searched at once, and is kept if `keep` is on. The other commands are what the agents call; they never fail and print nothing, and what
/// goes wrong is in hook.log in the cache folder.
#[derive(clap::Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct HookArgs {
    #[command(subcommand)]
    action: Action,
}

const EXAMPLES: &str = "\
Examples:
  scrollback hook install claude-code
  scrollback hook status
  scrollback hook smithers smithers.db agent-17";

#[derive(clap::Subcommand, Debug)]
enum Action {
    /// Change an agent's settings so that it calls this hook
    Install(install::ChangeArgs),
    /// Take that back
    Remove(install::ChangeArgs),
    /// Show which agents call this hook
    Status,
    /// What Claude Code calls: JSON on standard input
    ClaudeCode(CalledArgs),
    /// What Qwen Code calls: JSON on standard input
    QwenCode(CalledArgs),
    /// What Codex calls: JSON as the last argument
    Codex(CalledArgs),
    /// Store the messages of a finished run in Smithers' own database
    ///
    /// Reads the log that the row in `agents` names, and writes only the tables messages and message_parts.
    Smithers {
        /// The database
        #[arg(value_name = "DB")]
        database: PathBuf,
        /// The id of the run
        #[arg(value_name = "ID")]
        run: String,
        /// Do the work in this process
        #[arg(long, hide = true)]
        worker: bool,
    },
}

#[derive(clap::Args, Debug)]
struct CalledArgs {
    /// Do the work in this process
    #[arg(long, hide = true)]
    worker: bool,
    /// What the agent says
    #[arg(value_name = "JSON", trailing_var_arg = true, allow_hyphen_values = true)]
    said: Vec<String>,
}

/// An agent says no more.
const SAID_LIMIT_BYTES: u64 = 4 * 1024 * 1024;

/// How long the process that does the work listens to an agent that does not finish what it says.
const SAID_WAIT: Duration = Duration::from_secs(10);

/// The log of errors is a page.
const LOG_LIMIT_BYTES: usize = 64 * 1024;

/// An agent may call the hook before its file is there.
const TRIES: u32 = 10;
const BETWEEN_TRIES: Duration = Duration::from_millis(300);

/// Which session has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Ended {
    id: Option<String>,
    path: Option<String>,
}

pub(crate) fn run(args: &HookArgs, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    match &args.action {
        Action::Install(args) => install::install(args, ctx),
        Action::Remove(args) => install::remove(args, ctx),
        Action::Status => install::status(ctx),
        Action::ClaudeCode(args) => Ok(called(Agent::ClaudeCode, args, ctx)),
        Action::QwenCode(args) => Ok(called(Agent::QwenCode, args, ctx)),
        Action::Codex(args) => Ok(called(Agent::Codex, args, ctx)),
        Action::Smithers { database, run, worker } => {
            let database = ctx.home.cwd.join(database);
            if *worker {
                let stored = store_run(&database, run, ctx);
                note(stored, ctx);
            } else {
                let started = start(&["smithers", "--worker", &database.to_string_lossy(), run], Stdio::null());
                note(started, ctx);
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

impl HookArgs {
    /// Whether an agent calls it: then nothing is printed, whatever happens.
    pub(crate) fn is_called(&self) -> bool {
        !matches!(self.action, Action::Install(_) | Action::Remove(_) | Action::Status)
    }
}

/// Whatever happens, the agent goes on.
fn called(agent: Agent, args: &CalledArgs, ctx: &mut Ctx) -> ExitCode {
    let done = match (args.worker, args.said.last()) {
        (true, said) => ended(said).and_then(|ended| take(agent, &ended, ctx)),
        (false, None) if std::io::stdin().is_terminal() => Err("standard input is a terminal".to_owned()),
        // The process that does the work listens, too: an agent that is slow to speak is not waited for.
        (false, None) => start(&[agent.name(), "--worker"], Stdio::inherit()),
        (false, said) => ended(said).and_then(|Ended { id, path }| {
            // Only the names go on: an argument can be seen by everybody on this machine.
            let named = json!({"session_id": id, "transcript_path": path}).to_string();
            start(&[agent.name(), "--worker", &named], Stdio::null())
        }),
    };
    note(done, ctx);
    ExitCode::SUCCESS
}

/// The session that the agent names: in its last argument, or on standard input.
fn ended(said: Option<&String>) -> Result<Ended, String> {
    let said = match said {
        Some(said) => serde_json::from_str(said.trim()).ok(),
        None => said_on_stdin(),
    };
    said.and_then(|said| Ended::from_json(&said))
        .ok_or_else(|| "what the agent said names no session".to_owned())
}

/// The first JSON value on standard input. It is complete where it ends, whether or not the agent closes its end.
fn said_on_stdin() -> Option<Value> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let stdin = std::io::stdin().lock().take(SAID_LIMIT_BYTES);
        let said = serde_json::Deserializer::from_reader(stdin).into_iter::<Value>().next();
        // Nobody listens any more after the wait.
        drop(sender.send(said.and_then(Result::ok)));
    });
    receiver.recv_timeout(SAID_WAIT).ok().flatten()
}

impl Ended {
    fn from_json(said: &Value) -> Option<Ended> {
        let text = |names: &[&str]| {
            let found = names.iter().find_map(|name| said.get(*name)?.as_str());
            found.filter(|text| !text.is_empty() && text.len() < 4096).map(str::to_owned)
        };
        let id = text(&["session_id", "sessionId", "thread-id", "thread_id", "conversation-id", "conversation_id"]);
        let ended = Ended { id, path: text(&["transcript_path", "transcriptPath", "rollout-path", "rollout_path"]) };
        (ended.id.is_some() || ended.path.is_some()).then_some(ended)
    }
}

/// Starts this program again, detached from the agent.
fn start(arguments: &[&str], stdin: Stdio) -> Result<(), String> {
    let mut command = Command::new(ctx::program().map_err(|error| error.to_string())?);
    command.arg("hook").args(arguments).stdin(stdin).stdout(Stdio::null()).stderr(Stdio::null());
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt;
        // A signal to the agent's group does not reach it.
        command.process_group(0);
    }
    command.spawn().map(drop).map_err(|error| error.to_string())
}

/// Takes a session into the index, and keeps it if that is switched on.
fn take(agent: Agent, ended: &Ended, ctx: &mut Ctx) -> Result<(), String> {
    let said = |failure: Failure| failure.message;
    let global = Global::plain();
    let places = Places { dialect: agent.dialect(), ..scope::places(&global, ctx).map_err(said)? };
    let source = find(&places, ended, ctx).ok_or_else(|| {
        let name = ended.id.as_ref().or(ended.path.as_ref());
        format!("no session of {} is {:?}", agent.name(), name.map(String::as_str).unwrap_or_default())
    })?;
    let mut archive = archive::open(places, std::slice::from_ref(&source), &global, ctx).map_err(said)?;
    let pending = archive.pending(std::slice::from_ref(&source), Depth::Text);
    let refreshed = archive.read_texts(pending, Depth::Text, &|_| true);
    keep_all(std::iter::once(&source), ctx).map_err(said)?;
    let problems = archive.take_problems().into_iter().map(|problem| problem.to_string());
    let unreadable = refreshed.unreadable.into_iter().map(|error| error.to_string());
    match problems.chain(unreadable).next() {
        Some(problem) => Err(problem),
        None => Ok(()),
    }
}

/// The session that has ended, waiting for its file.
fn find(places: &Places, ended: &Ended, ctx: &Ctx) -> Option<Source> {
    for attempt in 0..TRIES {
        let is_path = |source: &Source| ended.path.as_deref().is_some_and(|path| source.path == Path::new(path));
        let by_path = || places.sources().into_iter().filter_map(Result::ok).find(is_path);
        let by_id = || places.with_id(ended.id.as_deref()?, ctx.now).into_iter().next();
        if let Some(source) = by_path().or_else(by_id) {
            return Some(source);
        }
        if attempt + 1 < TRIES {
            std::thread::sleep(BETWEEN_TRIES);
        }
    }
    None
}

/// Stores the messages of a run that has ended, from its log.
fn store_run(database: &Path, run: &str, ctx: &mut Ctx) -> Result<(), String> {
    let said = |error: scrollback::Error| error.to_string();
    let mut tables = Tables::open_smithers(database).map_err(said)?;
    let Some(log) = tables.log_of_run(run).map_err(said)? else { return Err(format!("run {run:?} has no log")) };
    let mask = redaction::for_reading(ctx).map_err(|failure| failure.message)?;
    let reading = ReadOptions { mask: Some(&mask), ..ReadOptions::plain(ctx.now) };
    let dialect = scrollback::session::detect::of_file(&log, &ctx.home).map_err(said)?;
    let session = Session::open(&Source::file(dialect, &log), &reading).map_err(said)?;
    if session.head().is_none() {
        return Err(format!("the log of run {run:?} is no session: {}", log.display()));
    }
    tables.store_run(&session, run).map(drop).map_err(said)
}

/// Notes what went wrong; if even that fails, nobody is told.
fn note(done: Result<(), impl std::fmt::Display>, ctx: &Ctx) {
    let Err(problem) = done else { return };
    let path = ctx.home.cache().join("hook.log");
    if !path.is_absolute() {
        return;
    }
    let line: String = format!("{} {problem}", ctx.now).chars().filter(|c| !c.is_control()).take(1000).collect();
    let masked = redaction::for_reading(ctx).map(|mask| mask.text(&line).text.into_owned());
    drop(append_private_line(&path, &masked.unwrap_or_else(|_| "a hook failed".to_owned())));
    shorten(&path, ctx);
}

/// Keeps the newer half of a log that has become too long.
fn shorten(path: &Path, ctx: &Ctx) {
    let Ok(log) = regular_file::read(path, 2 * LOG_LIMIT_BYTES as u64, Links::Refuse) else { return };
    if log.len() > LOG_LIMIT_BYTES {
        let half = log.len() - LOG_LIMIT_BYTES / 2;
        let start = log.iter().skip(half).position(|byte| *byte == b'\n').map_or(log.len(), |at| half + at + 1);
        drop(replace_private_file(path, &log[start..], Links::Refuse, &ctx.host()));
    }
}
