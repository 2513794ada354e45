//! An agent to read in one sitting: it chats with a model, lets it read and write files, and records all of it.
//! It may be killed at any time: what it acknowledged is on disk, and `--continue` carries on from there.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an agent talks to the person who started it")]

#[path = "chat/model.rs"]
pub(crate) mod model;
#[path = "chat/tools.rs"]
mod tools;

use std::io::Write;
use std::path::PathBuf;

use clap::Parser;
use scrollback::model::project;
use scrollback::write::{Blocked, Fork, Goal, NewSession, Readiness, Scope, Undo, file_history};
use scrollback::{Delta, Entry, History, Home, Host, Kind, Part, Policy, RecordId, Recorder, Store, View, dialect};
use serde_json::{Value, json};

type Failure = Box<dyn std::error::Error>;

/// A model that calls tools without end is stopped after this many answers to one prompt.
const STEP_LIMIT: usize = 50;
/// The name and version of this agent, as sessions have it.
const AGENT: &str = "chat 1.0";
const HELP: &str = "Set OPENAI_BASE_URL (http:// only), OPENAI_API_KEY and MODEL.
Commands: /new  /rewind N  /undo  /redo  /files  /fork  /title TEXT  /quit";

/// Chat with a model and record the session
#[derive(Parser)]
#[command(name = "chat", after_help = HELP, args_override_self = true)]
pub(crate) struct Options {
    /// Continue the newest session of this project
    #[arg(long = "continue")]
    is_continued: bool,
    /// Continue this session (a unique prefix is enough), or from one of its records
    #[arg(long, value_name = "ID[#RECORD]", conflicts_with = "is_continued")]
    resume: Option<String>,
    /// Write native, claude-code, codex, qwen-code, fluux, sage-el or ai-sdk
    #[arg(long, default_value = "native")]
    format: String,
    /// Keep the sessions here; needed unless the format is native
    #[arg(long)]
    store: Option<PathBuf>,
    /// Set the person of a fluux session
    #[arg(long, value_name = "JID")]
    with: Option<String>,
    /// Print a line of JSON for each entry, with the entries that are on disk since
    #[arg(long)]
    acks: bool,
}

pub(crate) fn main() -> Result<(), Failure> {
    run(&Options::parse())
}

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let dialect = dialect::named(&options.format).ok_or_else(|| format!("unknown format {:?}", options.format))?;
    let vars =
        std::env::vars_os().filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)));
    let home = Home { dir: std::env::home_dir().unwrap_or_default(), cwd: PathBuf::new(), vars: vars.collect() };
    let root = options.store.clone().or_else(|| (options.format == "native").then(|| home.data()));
    let root = root.ok_or_else(|| format!("--format {} needs --store", options.format))?;
    let host = Host::system(AGENT)?;
    let (cwd, project) = (host.cwd.clone(), project::of(&host.cwd));
    let store = Store::open(dialect, &root, host)?;
    let new = NewSession { with: options.with.as_deref(), ..NewSession::of(&project) };
    let session = match options.resume.as_deref().map(|point| point.split_once('#').ok_or(point)) {
        Some(Ok((session, record))) => store.resume_at(session, record)?,
        Some(Err(session)) => store.resume(session)?,
        None if options.is_continued => store.session(new, Policy::LatestOrNew)?,
        None => store.session(new, Policy::Current { idle_minutes: 0 })?,
    };
    let mut chat = Chat { cwd, store, new, session, prints_acks: options.acks };
    chat.greet()?;
    while let Some(line) = typed()? {
        let result = match line.trim() {
            "" => Ok(()),
            "/quit" => break,
            // After a failure the next prompt must not go to the old session.
            "/new" => Ok(chat.switch(|chat| Ok(chat.store.session(chat.new, Policy::Rotate)?))?),
            command if command.starts_with('/') => chat.command(command),
            prompt => chat.turn(prompt),
        };
        result.unwrap_or_else(|failure| eprintln!("{failure}"));
    }
    chat.switch(|_| Ok(Recorder::disabled()))
}

struct Chat<'a> {
    cwd: PathBuf,
    store: Store,
    new: NewSession<'a>,
    session: Recorder,
    prints_acks: bool,
}

impl Chat<'_> {
    /// Shows which session it is, and how it ended last time.
    fn greet(&mut self) -> Result<(), Failure> {
        self.session.keep_reports();
        let Some(id) = self.session.session() else { return Ok(()) };
        println!("Session {id}");
        let read = self.session.read()?;
        let head = self.session.head_in(&read).filter(|head| head.kind() != Kind::Header);
        head.map(|head| History::of(&read, head).map(|history| println!("{}", history.notice)))
            .transpose()?;
        Ok(())
    }

    /// Records a prompt, and everything that the model says and does until its answer is complete.
    fn turn(&mut self, prompt: &str) -> Result<(), Failure> {
        self.record(json!(prompt), |to| to.user(prompt))?;
        for _ in 0..STEP_LIMIT {
            let mut calls = Vec::new();
            let answered = model::answer(&self.session.history(View::OpenAi)?, |delta| {
                let text = match &delta {
                    Delta::Text(text) | Delta::Reasoning(text) => json!(text),
                    Delta::Part(Part::Tool(call)) => json!(calls.push_mut(call.clone()).call_id),
                    _ => Value::Null,
                };
                if let Delta::Text(text) = &delta {
                    print!("{}", plain(text));
                    std::io::stdout().flush()?;
                }
                self.record(text, |to| to.delta(delta.clone()))
            });
            println!();
            // What came of an answer that breaks off is kept.
            if self.session.is_answering() {
                self.record(Value::Null, |to| to.finish_answer(answered.as_ref().ok().copied()))?;
            }
            if let Err(failure) = answered {
                // Not every format can store an error.
                let recorded = self.record(Value::Null, |to| to.error("api_error", &failure.to_string()));
                recorded.unwrap_or_else(|failure| eprintln!("{failure}"));
                return Err(failure);
            }
            if calls.is_empty() {
                return Ok(());
            }
            for call in calls {
                // What is not copied cannot be restored, but that must not stop the tool.
                let changed = tools::changes(&call, &self.cwd);
                changed.iter().try_for_each(|path| self.session.before_tool(&[path]))?;
                let result = tools::run(&call, &self.cwd);
                if changed.is_some() {
                    self.record(Value::Null, Recorder::after_tool)?;
                }
                let (Ok(shown) | Err(shown)) = &result;
                println!("[{} {}]", plain(&call.name), json!(plain(shown)));
                self.record(json!(call.call_id), |to| to.tool_result(&call, result.clone().map(Value::from)))?;
            }
        }
        Err("the model calls tools without end".into())
    }

    fn command(&mut self, line: &str) -> Result<(), Failure> {
        let (command, argument) = line.split_once(' ').unwrap_or((line, ""));
        match (command, argument.trim()) {
            ("/rewind" | "/title", "") => Err(format!("{command} needs an argument; see --help").into()),
            ("/rewind", count) => self.rewind(count),
            ("/title", title) => self.record(Value::Null, |to| to.title(title)),
            ("/fork", "") => self.switch(|chat| {
                let head = chat.session.head().map(RecordId::as_str);
                let forked = chat.store.fork(&chat.session.read()?, Fork { head, id: None })?;
                Ok(chat.store.resume(forked.session.as_str())?)
            }),
            ("/undo", "") => self.restore(&Goal::LastTurn),
            ("/redo", "") => self.restore(&Goal::Redo),
            ("/files", "") => self.files(),
            ("/new" | "/undo" | "/redo" | "/files" | "/fork" | "/quit", _) => {
                Err(format!("{command} takes no argument").into())
            }
            _ => Err(format!("unknown command {command}; see --help").into()),
        }
    }

    /// Closes this session and continues with another one.
    fn switch(&mut self, to: impl FnOnce(&Self) -> Result<Recorder, Failure>) -> Result<(), Failure> {
        self.session.close()?;
        self.session = to(self)?;
        self.greet()
    }

    /// Goes back to before the Nth last prompt. What came after it stays as a branch.
    fn rewind(&mut self, count: &str) -> Result<(), Failure> {
        let read = self.session.read()?;
        let branch = self.session.head_in(&read).map(|head| read.branch(head).records).unwrap_or_default();
        let mut prompts = branch.iter().rev().filter(|record| record.kind() == Kind::User);
        let to = prompts.nth(count.parse::<usize>()?.saturating_sub(1)).and_then(|prompt| prompt.parent());
        let to = RecordId(to.ok_or("no such record")?.id().into_owned());
        self.record(Value::Null, |session| session.rewind(&to, None))
            .inspect(|()| println!("Continuing from {to}"))
    }

    /// Restores the files and the conversation to what they were before the last turn, or takes that back.
    fn restore(&mut self, goal: &Goal) -> Result<(), Failure> {
        let read = self.session.read()?;
        let undo = Undo::open(&read, Host::system(AGENT)?, None)?;
        if undo.is_interrupted()? {
            println!("An undo was interrupted. It is finished, or taken back if files have changed since.");
            return self.switch(|chat| {
                undo.recover()?;
                Ok(chat.store.resume(read.id().as_str())?)
            });
        }
        let plan = undo.plan(goal, Scope::Conversation)?;
        if plan.is_empty() {
            println!("Nothing to {}.", if plan.is_redo { "redo" } else { "undo" });
            return Ok(());
        }
        println!(
            "{} “{}”",
            if plan.is_redo { "Take back the undo to" } else { "Go back to before" },
            plain(&plan.target_text)
        );
        for file in &plan.files {
            let what = if file.state == Readiness::Ready { file.action.name() } else { file.state.name() };
            println!("  {what:<8}  {}  {}", plain(&file.path), plain(file.reason.as_deref().unwrap_or_default()));
        }
        if !plan.is_ready(Blocked::Stop) {
            return Err("nothing was changed: these files are not all as the session left them".into());
        }
        print!("Go on? [y/n] ");
        std::io::stdout().flush()?;
        if typed()?.is_none_or(|answer| answer.trim() != "y") {
            return Err("nothing was changed".into());
        }
        let applied = undo.apply_with(&plan, Blocked::Stop, &mut self.session)?;
        println!("Restored {} files.", applied.files);
        Ok(())
    }

    /// Shows which files the session changed.
    fn files(&self) -> Result<(), Failure> {
        for file in file_history(&self.session.read()?, None, None)?.rows() {
            let changes: Vec<&str> = file.changes.iter().map(|change| change.action.name()).collect();
            println!("{}  {}", plain(&file.path), changes.join(", "));
        }
        Ok(())
    }

    /// Makes a call that records `text`, and prints which entries are on disk since.
    fn record(
        &mut self,
        text: Value,
        call: impl Fn(&mut Recorder) -> scrollback::Result<Entry>,
    ) -> Result<(), Failure> {
        let entry = self.session.retry(call)?.number;
        let reports = self.session.reports();
        if self.prints_acks {
            println!("\n{}", json!({"entry": entry, "text": text, "reports": reports}));
        }
        self.session.warnings().iter().for_each(|warning| eprintln!("warning: {warning}"));
        Ok(())
    }
}

/// The next line that somebody types.
fn typed() -> std::io::Result<Option<String>> {
    std::io::stdin().lines().next().transpose()
}

/// A text without characters that would move the cursor.
fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}
