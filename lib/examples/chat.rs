//! An agent that can be read at one sitting: it chats, reads and writes files, and records all of it.
//!
//! What an agent needs of the library is in this file. `chat/model.rs` asks an endpoint, `chat/tools.rs` runs tools,
//! `chat/options.rs` reads the command line.
//! Ctrl-C and kill may come at any time: what was acknowledged is on disk, and `--continue` goes on from there.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an agent talks to the person who started it")]

#[path = "chat/model.rs"]
mod model;
#[path = "chat/options.rs"]
mod options;
#[path = "chat/tools.rs"]
mod tools;

use std::collections::{BTreeSet, HashMap};
use std::io::{BufRead, IsTerminal, Write};
use std::process::ExitCode;

use model::{Failure, Model};
use options::{HELP, Options};
use scrollback::model::error::Error;
use scrollback::model::host::Host;
use scrollback::model::message::{Part, ToolPart};
use scrollback::model::project;
use scrollback::model::record::{Body, Content, Kind, RecordId, Todo};
use scrollback::view::history::{History, prepare_resume};
use scrollback::write::fork::Fork;
use scrollback::write::recorder::{Ack, Delta, Recorder};
use scrollback::write::store::{NewSession, Policy, Store};
use serde_json::json;

/// Answers to one prompt: a model that goes on calling tools is stopped.
const STEPS_LIMIT: usize = 50;

pub(crate) fn main() -> ExitCode {
    let Err(failure) = run(&mut std::env::args().skip(1)) else { return ExitCode::SUCCESS };
    eprintln!("{failure}");
    ExitCode::from(2)
}

pub(crate) fn run(args: &mut dyn Iterator<Item = String>) -> Result<(), Failure> {
    let Some(Options { resume, is_continued, dialect, store, with, prints_acks, model }) = options::read(args)? else {
        println!("{HELP}");
        return Ok(());
    };
    let host = Host::system("chat 1.0")?;
    let project = project::of(&host.cwd);
    let store = Store::open(dialect, &store, host.clone())?;
    let new = NewSession { with: with.as_deref(), ..NewSession::of(&project) };
    let whole = |named| whole_id(&store, named);
    let recorder = match resume.as_deref().map(|point| point.split_once('#').ok_or(point)) {
        Some(Ok((session, record))) => store.resume_at(&whole(session), record)?,
        Some(Err(session)) => store.resume(&whole(session))?,
        None if is_continued => store.session(new, Policy::LatestOrNew)?,
        None => store.session(new, Policy::Current { idle_minutes: 0 })?,
    };
    let (held, lost) = (HashMap::new(), BTreeSet::new());
    let mut chat = Chat { host, store, new, recorder, prints_acks, held, lost };
    chat.greet()?;
    let is_asked = std::io::stdin().is_terminal();
    let mut lines = std::io::stdin().lock().lines();
    loop {
        if is_asked {
            print!("> ");
            std::io::stdout().flush()?;
        }
        let Some(line) = lines.next().transpose()? else { break };
        let done = match line.trim() {
            "" => Ok(()),
            "/quit" => break,
            // Where it fails, the next words are not for the old session.
            "/new" => Ok(chat.change(|chat| Ok(chat.store.session(chat.new, Policy::Rotate)?))?),
            command if command.starts_with('/') => chat.command(command),
            prompt => chat.turn(prompt, &model),
        };
        done.unwrap_or_else(|failure| eprintln!("{failure}"));
    }
    chat.recorder.close()?;
    chat.tell(Ack::NotRecorded, "");
    Ok(())
}

/// The id of the only session that begins so.
fn whole_id(store: &Store, named: &str) -> String {
    let rows = store.list(None).rows;
    let mut ids = rows.iter().map(|row| row.id.as_str()).filter(|id| id.starts_with(named));
    let (first, second) = (ids.next(), ids.next());
    first.filter(|_| second.is_none()).unwrap_or(named).to_owned()
}

struct Chat<'a> {
    host: Host,
    store: Store,
    new: NewSession<'a>,
    recorder: Recorder,
    prints_acks: bool,
    /// What was said and is not on disk yet, by ticket: some formats write a whole part or turn at once.
    held: HashMap<u64, String>,
    /// What the format cannot hold, told once.
    lost: BTreeSet<String>,
}

impl Chat<'_> {
    /// Tells what the session is and how it ended last time.
    fn greet(&mut self) -> Result<(), Failure> {
        println!("Session {}", self.recorder.session().map(ToString::to_string).unwrap_or_default());
        self.tell(Ack::NotRecorded, "");
        let session = self.recorder.read()?;
        // Some formats begin a session with a record about it.
        if let Some(head) = self.recorder.head_in(&session).filter(|head| head.kind() != Kind::Header) {
            println!("{}", History::of(&session, head)?.notice);
        }
        Ok(())
    }

    /// One prompt, and all that the model says and does about it.
    fn turn(&mut self, prompt: &str, model: &Model) -> Result<(), Failure> {
        if self.recorder.is_in_doubt() {
            self.recorder.reopen()?;
        }
        self.record(prompt, |to| to.user(prompt))?;
        let session = self.recorder.read()?;
        let mut history = History::of(&session, self.recorder.head_in(&session).ok_or("the session is empty")?)?;
        for _ in 0..STEPS_LIMIT {
            let answer = self.listen(model, &model.view().messages(&history)?.0)?;
            history.add(Body::Assistant(answer.clone()));
            // What the provider runs itself is nobody else's to run.
            let is_ours = |call: &&ToolPart| call.provider_executed != Some(true);
            let calls = answer
                .parts
                .iter()
                .filter_map(|part| if let Part::Tool(call) = part { Some(&**call) } else { None });
            let mut calls = calls.filter(is_ours);
            let Some(first) = calls.next() else { return Ok(()) };
            for call in std::iter::once(first).chain(calls) {
                let result = tools::run(call, &self.host.cwd);
                println!("[{} {}]", plain(&call.name), plain(&result.output.to_string()));
                self.record(&call.call_id, |to| to.tool_result(result.clone()))?;
                history.add(Body::ToolResult(result.into()));
            }
        }
        Err("the model did not come to an end".into())
    }

    /// Records an answer as it comes. What came of one that breaks off is kept.
    fn listen(&mut self, model: &Model, messages: &[serde_json::Value]) -> Result<Content, Failure> {
        let mut answer = Content::default();
        let heard = model.answer(messages, &mut |mut delta| {
            let said = match &mut delta {
                Delta::Text(text) => {
                    print!("{}", plain(text));
                    std::io::stdout().flush()?;
                    text.clone()
                }
                Delta::Reasoning(text) => text.clone(),
                Delta::Part(Part::Tool(call)) => {
                    if call.call_id.is_empty() {
                        call.call_id = format!("call-{}", (self.host.new_id)());
                    }
                    call.call_id.clone()
                }
                Delta::Part(_) | Delta::Model(_) | Delta::End(_) | Delta::About(_) => String::new(),
            };
            delta.clone().add_to(&mut answer);
            self.record(&said, |to| to.delta(delta))
        });
        println!();
        let usage = heard.as_ref().ok().copied();
        let ended = self.recorder.is_answering().then(|| self.record("", |to| to.finish_answer(usage))).transpose();
        let Err(failure) = heard else { return ended.map(|_| answer) };
        let noted = self.record("", |to| to.error("api_error", &failure.to_string()));
        // Not every format has a place for a failure. It is told after that, as it is what the turn ended with.
        [ended.err(), noted.err()].iter().flatten().for_each(|unrecorded| eprintln!("{unrecorded}"));
        Err(failure)
    }

    fn command(&mut self, line: &str) -> Result<(), Failure> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match (word, rest.trim()) {
            ("/rewind", "") => return Err("/rewind is followed by a number of prompts or a record".into()),
            ("/rewind", to) => self.rewind(to)?,
            ("/fork", "") => self.change(|chat| {
                let head = chat.recorder.head().map(RecordId::as_str);
                let forked = chat.store.fork(&chat.recorder.read()?, Fork { head, id: None })?;
                Ok(chat.store.resume(forked.session.as_str())?)
            })?,
            ("/title", "") => return Err("/title is followed by the title".into()),
            ("/title", title) => self.record(title, |to| to.title(title))?,
            ("/todos", change) => self.todos(change)?,
            ("/export", "") => {
                let session = self.recorder.read()?;
                let head = self.recorder.head_in(&session).ok_or("the session is empty")?;
                println!("{}", serde_json::to_string(&prepare_resume(&session, head)?.messages)?);
            }
            ("/help", "") => println!("{HELP}"),
            ("/new" | "/fork" | "/export" | "/help" | "/quit", _) => return Err(format!("{word} stands alone").into()),
            _ => return Err(format!("no command {word}; /help lists them").into()),
        }
        Ok(())
    }

    /// Goes on with another session. The one so far is closed before that is found.
    fn change(&mut self, to: impl FnOnce(&Self) -> Result<Recorder, Failure>) -> Result<(), Failure> {
        self.recorder.close()?;
        self.tell(Ack::NotRecorded, "");
        self.recorder = to(self)?;
        self.greet()
    }

    /// Goes back to a record, or to before the prompt so many prompts ago. What is left behind stays a branch.
    fn rewind(&mut self, to: &str) -> Result<(), Failure> {
        let session = self.recorder.read()?;
        let branch = self.recorder.head_in(&session).map(|head| session.branch(head));
        let prompts = branch.iter().flat_map(|branch| branch.records.iter().rev()).filter(|it| it.kind() == Kind::User);
        let to = match to.parse::<usize>() {
            Ok(count) => count.checked_sub(1).and_then(|at| prompts.into_iter().nth(at)?.parent()),
            Err(_) => session.find(to).ok(),
        };
        let to = RecordId(to.ok_or("there is no such place")?.id().into_owned());
        self.record("", |recorder| recorder.rewind(&to, None))?;
        println!("Going on from {to}");
        Ok(())
    }

    /// Shows the task list, adds to it, or marks one task as done.
    fn todos(&mut self, change: &str) -> Result<(), Failure> {
        let mut todos = self.recorder.standing_todos().unwrap_or_default().to_vec();
        match change.parse::<usize>() {
            Ok(number) => {
                let todo = number.checked_sub(1).and_then(|at| todos.get_mut(at)).ok_or("no such task")?;
                todo.status = "completed".to_owned();
            }
            Err(_) if change.is_empty() => {
                todos.iter().for_each(|todo| println!("[{}] {}", plain(&todo.status), plain(&todo.content)));
                return Ok(());
            }
            Err(_) => todos.push(Todo::pending(change)),
        }
        self.record("", |to| to.todos(todos))
    }

    fn record(&mut self, said: &str, say: impl FnOnce(&mut Recorder) -> Result<Ack, Error>) -> Result<(), Failure> {
        let ack = say(&mut self.recorder)?;
        self.tell(ack, said);
        Ok(())
    }

    /// Tells what is on disk now, what the format could not hold of it, and what happened to the file behind our back.
    fn tell(&mut self, ack: Ack, said: &str) {
        self.held.extend(ack.ticket().map(|ticket| (ticket, said.to_owned())));
        for saved in self.recorder.saved_by(ack) {
            let said = self.held.remove(&saved.ticket).unwrap_or_default();
            if self.prints_acks {
                let session = self.recorder.session();
                println!("\n{}", json!({"session": session, "id": saved.id, "said": said, "losses": saved.losses}));
            }
            for loss in saved.losses.iter().filter(|loss| self.lost.insert(loss.what.to_string())) {
                eprintln!("(in this format: {})", plain(&loss.to_string()));
            }
        }
        self.recorder.warnings().iter().for_each(|warning| eprintln!("warning: {warning}"));
    }
}

/// What a model or a file says, without what would move a terminal's cursor.
fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}
