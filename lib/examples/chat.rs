//! An agent to read in one sitting: it chats with a model, lets it read and write files, and records all of it.
//!
//! What an agent needs of the library is in this file; `chat/model.rs` asks the model and `chat/tools.rs` runs its tools.
//! The agent may be killed at any time: what it acknowledged is on disk, and `--continue` carries on from there.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an agent talks to the person who started it")]

#[path = "chat/model.rs"]
pub(crate) mod model;
#[path = "chat/tools.rs"]
mod tools;

use std::collections::HashMap;
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use model::Model;
use scrollback::model::project;
use scrollback::view::history::prepare_resume;
use scrollback::write::fork::Fork;
use scrollback::write::recorder::Ack;
use scrollback::write::store::NewSession;
use scrollback::{Body, Content, Delta, Error, History, Home, Host, Kind, Part, Policy, RecordId, Recorder, Store};
use scrollback::{Todo, ToolResult, dialect};
use serde_json::{Value, json};

type Failure = Box<dyn std::error::Error>;

/// A model that calls tools without end is stopped after this many answers to one prompt.
const STEP_LIMIT: usize = 50;
const HELP: &str = "\
The model: ANTHROPIC_BASE_URL and ANTHROPIC_API_KEY, or OPENAI_BASE_URL and OPENAI_API_KEY; MODEL is its name. Only http:// works.
Commands: /new  /rewind N|RECORD  /fork  /title TEXT  /todos [TEXT|N]  /export  /help  /quit";

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
    /// Print a line of JSON for each record that is on disk
    #[arg(long)]
    acks: bool,
}

pub(crate) fn main() -> ExitCode {
    let Err(failure) = run(&Options::parse()) else { return ExitCode::SUCCESS };
    eprintln!("{failure}");
    ExitCode::from(2)
}

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let dialect = dialect::named(&options.format).ok_or_else(|| format!("unknown format {:?}", options.format))?;
    let vars =
        std::env::vars_os().filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)));
    let home = Home { dir: std::env::home_dir().unwrap_or_default(), cwd: PathBuf::new(), vars: vars.collect() };
    let root = options.store.clone().or_else(|| (options.format == "native").then(|| home.data()));
    let root = root.ok_or_else(|| format!("--format {} needs --store", options.format))?;
    let model = Model::from_env()?;
    let host = Host::system("chat 1.0")?;
    let (cwd, project) = (host.cwd.clone(), project::of(&host.cwd));
    let store = Store::open(dialect, &root, host)?;
    let new = NewSession { with: options.with.as_deref(), ..NewSession::of(&project) };
    let recorder = match options.resume.as_deref().map(|point| point.split_once('#').ok_or(point)) {
        Some(Ok((session, record))) => store.resume_at(session, record)?,
        Some(Err(session)) => store.resume(session)?,
        None if options.is_continued => store.session(new, Policy::LatestOrNew)?,
        None => store.session(new, Policy::Current { idle_minutes: 0 })?,
    };
    let mut chat = Chat { cwd: &cwd, store, new, recorder, prints_acks: options.acks, pending: HashMap::new() };
    chat.greet()?;
    let mut lines = std::io::stdin().lock().lines();
    loop {
        if std::io::stdin().is_terminal() {
            print!("> ");
            std::io::stdout().flush()?;
        }
        let Some(line) = lines.next().transpose()? else { break };
        let result = match line.trim() {
            "" => Ok(()),
            "/quit" => break,
            // After a failure the next prompt must not go to the old session.
            "/new" => Ok(chat.switch(|chat| Ok(chat.store.session(chat.new, Policy::Rotate)?))?),
            command if command.starts_with('/') => chat.command(command),
            prompt => chat.turn(prompt, &model),
        };
        result.unwrap_or_else(|failure| eprintln!("{failure}"));
    }
    chat.switch(|_| Ok(Recorder::disabled()))
}

struct Chat<'a> {
    cwd: &'a Path,
    store: Store,
    new: NewSession<'a>,
    recorder: Recorder,
    prints_acks: bool,
    /// Texts that are not on disk yet, by ticket: some formats write a whole part or turn at once.
    pending: HashMap<u64, String>,
}

impl Chat<'_> {
    /// Shows which session it is, and how it ended last time.
    fn greet(&mut self) -> Result<(), Failure> {
        let Some(session) = self.recorder.session() else { return Ok(()) };
        println!("Session {session}");
        let session = self.recorder.read()?;
        if let Some(head) = self.recorder.head_in(&session).filter(|head| head.kind() != Kind::Header) {
            println!("{}", History::of(&session, head)?.notice);
        }
        Ok(())
    }

    /// Records a prompt, and everything that the model says and does until its answer is complete.
    fn turn(&mut self, prompt: &str, model: &Model) -> Result<(), Failure> {
        self.record(prompt, |to| to.user(prompt))?;
        let session = self.recorder.read()?;
        let mut history = History::of(&session, self.recorder.head_in(&session).ok_or("the session is empty")?)?;
        for _ in 0..STEP_LIMIT {
            let answer = self.answer(model, &model.view.messages(&history)?.0)?;
            history.add(Body::Assistant(answer.clone()));
            let calls =
                answer.parts.iter().filter_map(|part| if let Part::Tool(call) = part { Some(call) } else { None });
            let calls: Vec<_> = calls.collect();
            if calls.is_empty() {
                return Ok(());
            }
            for call in calls {
                let result = ToolResult::of(call, tools::run(call, self.cwd).map(Value::from));
                println!("[{} {}]", plain(&call.name), plain(&result.output.to_string()));
                self.record(&call.call_id, |to| to.tool_result(result.clone()))?;
                history.add(Body::ToolResult(result.into()));
            }
        }
        Err("the model calls tools without end".into())
    }

    /// Records an answer as it comes; what came of one that breaks off is kept.
    fn answer(&mut self, model: &Model, messages: &[Value]) -> Result<Content, Failure> {
        let mut answer = Content::default();
        let result = model.answer(messages, &mut |delta| {
            let text = match &delta {
                Delta::Text(text) | Delta::Reasoning(text) => text.as_str(),
                Delta::Part(Part::Tool(call)) => &call.call_id,
                _ => "",
            };
            if let Delta::Text(text) = &delta {
                print!("{}", plain(text));
                std::io::stdout().flush()?;
            }
            delta.clone().add_to(&mut answer);
            self.record(text, |to| to.delta(delta.clone()))
        });
        println!();
        let usage = result.as_ref().ok().copied();
        let is_answering = self.recorder.is_answering();
        let finished = if is_answering { self.record("", |to| to.finish_answer(usage)) } else { Ok(()) };
        let Err(failure) = result else { return finished.map(|()| answer) };
        let recorded = self.record("", |to| to.error("api_error", &failure.to_string()));
        // Not every format can store an error.
        [finished, recorded].into_iter().filter_map(Result::err).for_each(|failure| eprintln!("{failure}"));
        Err(failure)
    }

    fn command(&mut self, line: &str) -> Result<(), Failure> {
        let (command, argument) = line.split_once(' ').unwrap_or((line, ""));
        match (command, argument.trim()) {
            ("/rewind" | "/title", "") => Err(format!("{command} needs an argument; see /help").into()),
            ("/rewind", to) => self.rewind(to),
            ("/title", title) => self.record(title, |to| to.title(title)),
            ("/todos", change) => self.todos(change),
            ("/fork", "") => self.switch(|chat| {
                let head = chat.recorder.head().map(RecordId::as_str);
                let forked = chat.store.fork(&chat.recorder.read()?, Fork { head, id: None })?;
                Ok(chat.store.resume(forked.session.as_str())?)
            }),
            ("/export", "") => {
                let session = self.recorder.read()?;
                let head = self.recorder.head_in(&session).ok_or("the session is empty")?;
                println!("{}", serde_json::to_string(&prepare_resume(&session, head)?.messages)?);
                Ok(())
            }
            ("/help", "") => {
                println!("{HELP}");
                Ok(())
            }
            ("/new" | "/fork" | "/export" | "/help" | "/quit", _) => Err(format!("{command} takes no argument").into()),
            _ => Err(format!("unknown command {command}; see /help").into()),
        }
    }

    /// Closes this session and continues with another one.
    fn switch(&mut self, to: impl FnOnce(&Self) -> Result<Recorder, Failure>) -> Result<(), Failure> {
        self.recorder.close()?;
        self.acknowledge(Ack::NotRecorded);
        self.recorder = to(self)?;
        self.greet()
    }

    /// Goes back to a record, or to the one before the Nth last prompt. What came after it stays as a branch.
    fn rewind(&mut self, to: &str) -> Result<(), Failure> {
        let session = self.recorder.read()?;
        let branch = self.recorder.head_in(&session).map(|head| session.branch(head));
        let records = branch.iter().flat_map(|branch| branch.records.iter().rev());
        let mut prompts = records.filter(|record| record.kind() == Kind::User);
        let to = match to.parse::<usize>() {
            Ok(count) => count.checked_sub(1).and_then(|at| prompts.nth(at)?.parent()),
            Err(_) => session.find(to).ok(),
        };
        let to = RecordId(to.ok_or("no such record")?.id().into_owned());
        self.record("", |recorder| recorder.rewind(&to, None))?;
        println!("Continuing from {to}");
        Ok(())
    }

    /// Shows the task list, adds a task, or completes the Nth.
    fn todos(&mut self, change: &str) -> Result<(), Failure> {
        let mut todos = self.recorder.standing_todos().unwrap_or_default().to_vec();
        if let Ok(number) = change.parse::<usize>() {
            let todo = todos.get_mut(number.wrapping_sub(1)).ok_or("no such task")?;
            todo.status = "completed".to_owned();
        } else if !change.is_empty() {
            todos.push(Todo::pending(change));
        }
        todos.iter().for_each(|todo| println!("[{}] {}", plain(&todo.status), plain(&todo.content)));
        if change.is_empty() { Ok(()) } else { self.record("", |to| to.todos(todos.clone())) }
    }

    /// Makes a call; `text` is what its acknowledgement shows.
    fn record(&mut self, text: &str, call: impl Fn(&mut Recorder) -> Result<Ack, Error>) -> Result<(), Failure> {
        let ack = self.recorder.retry(call)?;
        self.pending.extend(ack.ticket().map(|ticket| (ticket, text.to_owned())));
        self.acknowledge(ack);
        Ok(())
    }

    /// Reports what is on disk now, and what happened to the file without us.
    fn acknowledge(&mut self, ack: Ack) {
        for saved in self.recorder.saved_by(ack) {
            let text = self.pending.remove(&saved.ticket).unwrap_or_default();
            if self.prints_acks {
                println!("\n{}", json!({"id": saved.id, "text": text, "losses": saved.losses}));
            }
        }
        self.recorder.warnings().iter().for_each(|warning| eprintln!("warning: {warning}"));
    }
}

/// A text without characters that would move the cursor.
fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}
