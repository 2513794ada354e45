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
use std::path::Path;
use std::process::ExitCode;

use model::{Answer, Failure, Model};
use options::{HELP, Options, Start};
use scrollback::archive::When;
use scrollback::dialect::Dialect;
use scrollback::error::Error;
use scrollback::fork::Fork;
use scrollback::history::{History, Item, Origin, Turn, prepare_resume};
use scrollback::host::Host;
use scrollback::message::{Part, Role};
use scrollback::project;
use scrollback::reading::Reading;
use scrollback::record::{Kind, RecordId, Todo};
use scrollback::recorder::{Ack, Delta, Recorder, Saved, Surprise};
use scrollback::session::{RecordRef, Session};
use scrollback::source::Source;
use scrollback::store::{NewSession, Point, Store};
use scrollback::writing::LossKind;
use serde_json::json;

/// Answers to one prompt: a model that goes on calling tools is stopped.
const STEPS_LIMIT: usize = 50;

pub(crate) fn main() -> ExitCode {
    match run(&mut std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::from(2)
        }
    }
}

pub(crate) fn run(args: &mut dyn Iterator<Item = String>) -> Result<(), Failure> {
    match options::read(args)? {
        Some(options) => chat(options),
        None => {
            println!("{HELP}");
            Ok(())
        }
    }
}

fn chat(options: Options) -> Result<(), Failure> {
    let host = Host::system("chat 1.0")?;
    let project = project::of(&host.cwd);
    let store = Store::open(options.dialect, &options.store, host.clone())?;
    let new = NewSession { with: options.with.as_deref(), ..NewSession::of(&project) };
    let recorder = match &options.start {
        // Where a format has one session at a time, for each project or person, that one goes on in any case.
        Start::Continue if !has_one_at_a_time(options.dialect) => match newest(&store, &project) {
            Some(session) => store.resume(&project, Point::Session(&session))?,
            None => store.begin(new)?,
        },
        Start::New | Start::Continue => store.go_on(new, None)?.0,
        Start::Resume(session) => store.resume(&project, Point::Session(session))?,
        Start::Checkpoint(session, record) => store.resume(&project, Point::Message { session, record })?,
    };
    let mut chat = Chat {
        host,
        store,
        new,
        recorder,
        prints_acks: options.prints_acks,
        held: HashMap::new(),
        lost: BTreeSet::new(),
    };
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
            "/new" => {
                chat.begin_anew()?;
                Ok(())
            }
            command if command.starts_with('/') => chat.command(command),
            prompt => chat.turn(prompt, &options.model),
        };
        if let Err(failure) = done {
            eprintln!("{failure}");
        }
    }
    chat.recorder.finish()?;
    chat.acknowledge(Ack::NotRecorded, "");
    Ok(())
}

fn has_one_at_a_time(dialect: &dyn Dialect) -> bool {
    dialect.write().is_some_and(|writing| writing.archive.is_some())
}

/// The newest session of the project, or of those that tell of none.
fn newest(store: &Store, project: &Path) -> Option<String> {
    let project = project.to_string_lossy();
    let of_project = |row: &Option<String>| row.as_ref().is_none_or(|row| *row == project);
    let mut rows = store.list(None).rows.into_iter();
    rows.find(|row| row.parent_session.is_none() && of_project(&row.project))
        .map(|row| row.id.to_string())
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
        self.acknowledge(Ack::NotRecorded, "");
        let session = self.session()?;
        if let Some(head) = self.head(&session) {
            println!("{}", History::of(&session, head)?.notice);
        }
        Ok(())
    }

    /// One prompt, and all that the model says and does about it.
    fn turn(&mut self, prompt: &str, model: &Model) -> Result<(), Failure> {
        if self.recorder.unsaved().iter().any(|unsaved| unsaved.id.is_some()) {
            self.recorder.reopen()?;
        }
        let ack = self.recorder.user(prompt)?;
        self.acknowledge(ack, prompt);
        let session = self.session()?;
        let mut history = History::of(&session, self.head(&session).ok_or("the session is empty")?)?;
        for _ in 0..STEPS_LIMIT {
            let (messages, _) = model.view().messages(&history)?;
            let answer = self.listen(model, &messages)?;
            let is_call = |part: Part| if let Part::Tool(call) = part { Item::Call(call) } else { Item::Part(part) };
            let items: Vec<Item> = answer.parts.into_iter().map(is_call).collect();
            let mut results = Vec::new();
            for item in &items {
                let Item::Call(call) = item else { continue };
                let result = tools::run(call, &self.host.cwd);
                println!("[{} {}]", call.name, plain(&result.output.to_string()));
                let ack = self.recorder.tool_result(result.clone())?;
                self.acknowledge(ack, &result.call_id);
                results.push(Item::Result(result));
            }
            let is_over = results.is_empty();
            history.turns.push(said(Role::Assistant, Origin::Answer, items, answer.model));
            history.turns.push(said(Role::User, Origin::Results, results, None));
            if is_over {
                return Ok(());
            }
        }
        Err("the model did not come to an end".into())
    }

    /// Records an answer as it comes. What came of one that breaks off is kept.
    fn listen(&mut self, model: &Model, messages: &[serde_json::Value]) -> Result<Answer, Failure> {
        let mut answer = Answer::default();
        let heard = model.answer(messages, &mut |delta| {
            answer.add(&delta);
            let said = match &delta {
                Delta::Text(text) | Delta::Reasoning(text) => text.clone(),
                Delta::Part(Part::Tool(call)) => call.call_id.clone(),
                Delta::Part(_) | Delta::Model(_) | Delta::End(_) | Delta::About(_) => String::new(),
            };
            if let Delta::Text(text) = &delta {
                print!("{}", plain(text));
                std::io::stdout().flush()?;
            }
            let ack = self.recorder.delta(delta)?;
            self.acknowledge(ack, &said);
            Ok(())
        });
        println!();
        if self.recorder.is_answering() {
            let ack = self.recorder.finish_answer(heard.as_ref().ok().copied())?;
            self.acknowledge(ack, "");
        }
        if let Err(failure) = &heard {
            let ack = self.recorder.error("api_error", &failure.to_string())?;
            self.acknowledge(ack, "");
        }
        heard.map(|_| answer)
    }

    fn command(&mut self, line: &str) -> Result<(), Failure> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match (word, rest.trim()) {
            ("/rewind", to) => {
                let session = self.session()?;
                let to = match to.parse() {
                    Ok(prompts) => self.before_prompts(&session, prompts).ok_or("there is nothing before that")?,
                    Err(_) => session.find(to).map_err(|_| format!("no record {to:?}"))?,
                };
                let to = RecordId(to.id().into_owned());
                let ack = self.recorder.rewind(&to, None)?;
                println!("Going on from {to}");
                self.acknowledge(ack, "");
                Ok(())
            }
            ("/fork", _) => {
                self.recorder.finish()?;
                let session = self.session()?;
                let head = self.recorder.head().map(RecordId::as_str);
                let forked = self.store.fork(&session, Fork { head, id: None })?;
                self.go_on_with(self.store.resume(self.new.project, Point::Session(forked.session.as_str()))?)
            }
            ("/title", "") => Err("/title is followed by the title".into()),
            ("/title", title) => {
                let ack = self.recorder.title(title)?;
                self.acknowledge(ack, title);
                Ok(())
            }
            ("/todos", change) => self.todos(change),
            ("/export", _) => {
                let session = self.session()?;
                let head = self.head(&session).ok_or("the session is empty")?;
                println!("{}", serde_json::to_string(&prepare_resume(&session, head)?.messages)?);
                Ok(())
            }
            ("/help", _) => {
                println!("{HELP}");
                Ok(())
            }
            _ => Err(format!("no command {word}; /help lists them").into()),
        }
    }

    fn begin_anew(&mut self) -> Result<(), Failure> {
        self.recorder.finish()?;
        // Where a format has one session at a time, it goes to where ended ones lie.
        if let Some(current) = self.store.current(&self.new)? {
            self.store.archive(&current, When::Now)?;
        }
        self.go_on_with(self.store.go_on(self.new, None)?.0)
    }

    fn go_on_with(&mut self, recorder: Recorder) -> Result<(), Failure> {
        self.acknowledge(Ack::NotRecorded, "");
        self.recorder = recorder;
        // Whoever wrote to it a moment ago was us.
        self.warn(|surprise| *surprise != Surprise::InUse);
        self.greet()
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
            Err(_) => {
                let (content, status) = (change.to_owned(), "pending".to_owned());
                todos.push(Todo { content, status, active_form: None, extra: serde_json::Map::new() });
            }
        }
        let ack = self.recorder.todos(todos)?;
        self.acknowledge(ack, "");
        Ok(())
    }

    /// The record that the prompt so many prompts back follows.
    fn before_prompts<'s>(&self, session: &'s Session, prompts: usize) -> Option<RecordRef<'s>> {
        let branch = session.branch(self.head(session)?);
        let mut asked = branch.records.into_iter().rev().filter(|record| record.kind() == Kind::User);
        asked.nth(prompts.checked_sub(1)?)?.parent()
    }

    /// The session as it is on disk.
    fn session(&self) -> Result<Session, Failure> {
        let file = self.recorder.path().zip(self.recorder.dialect());
        let (path, dialect) = file.ok_or(Error::NoSession(None))?;
        Ok(Session::open(&Source::file(dialect, path), &Reading::plain((self.host.now)()))?)
    }

    fn head<'s>(&self, session: &'s Session) -> Option<RecordRef<'s>> {
        self.recorder.head().map_or_else(|| session.head(), |head| session.find(head.as_str()).ok())
    }

    /// Tells what is on disk now: of the call that was just made, and of those that had to wait.
    fn acknowledge(&mut self, ack: Ack, said: &str) {
        match ack {
            Ack::Saved(saved) => self.tell(&saved, said),
            Ack::Held { ticket } => drop(self.held.insert(ticket, said.to_owned())),
            Ack::NotRecorded => {}
        }
        for saved in self.recorder.settled() {
            let said = self.held.remove(&saved.ticket).unwrap_or_default();
            self.tell(&saved, &said);
        }
        self.warn(|_| true);
    }

    /// Tells what happened to the file behind our back.
    fn warn(&mut self, is_told: impl Fn(&Surprise) -> bool) {
        let surprises = self.recorder.surprises();
        surprises
            .iter()
            .filter(|surprise| is_told(surprise))
            .for_each(|surprise| eprintln!("warning: {surprise}"));
    }

    fn tell(&mut self, saved: &Saved, said: &str) {
        let losses = &saved.losses;
        if self.prints_acks {
            let session = self.recorder.session();
            println!("\n{}", json!({"session": session, "id": saved.id, "said": said, "losses": losses}));
        }
        for loss in losses.iter().filter(|loss| self.lost.insert(loss.what.clone())) {
            let became = match loss.kind {
                LossKind::Dropped => "is not kept",
                LossKind::Renamed => "is kept as something else",
                LossKind::Synthesised => "is made up",
            };
            eprintln!("(in this format: {} {became})", plain(&loss.what));
        }
    }
}

/// What the model is told of a turn that may not be on disk yet.
fn said<'s>(role: Role, origin: Origin, items: Vec<Item>, model: Option<String>) -> Turn<'s> {
    Turn { role, origin, items, records: Vec::new(), model, sender: None }
}

/// What a model or a file says, without what would move a terminal's cursor.
fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}
