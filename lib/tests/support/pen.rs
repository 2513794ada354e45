//! A pen that records a story in a dialect, body by body: what came of each, what was written, and what is read back.

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

use scrollback::dialect::Dialect;
use scrollback::model::{Body, Context, Error, Issue, IssueKind, Loss, RecordId, SessionId};
use scrollback::session::Session;
use scrollback::view::history::View;
use scrollback::write::{Delta, Entry, Recorder, Saved, Store};
use serde_json::Value;
use tempfile::TempDir;

use super::place::{CWD, SESSION, begin, store};
use super::{cases, logs_of_all, reading, sent, valid};

/// An agent that writes.
pub(crate) struct Pen {
    pub(crate) folder: TempDir,
    pub(crate) store: Store,
    pub(crate) recorder: Recorder,
    dialect: &'static dyn Dialect,
    came: Vec<Came>,
}

/// What became of a body.
enum Came {
    Saved(Saved),
    Refused(String),
    /// It waits for more, or was not recorded.
    Nothing,
}

impl Came {
    fn of(entry: Result<Entry, Error>) -> Came {
        match entry {
            Ok(entry) => entry.saved.map_or(Came::Nothing, Came::Saved),
            Err(Error::CannotStore { what, .. }) => Came::Refused(what),
            // A file may have what nobody can record.
            Err(error @ (Error::InvalidTitle(_) | Error::DuplicateCall { .. })) => Came::Refused(error.to_string()),
            Err(error) => panic!("{error}"),
        }
    }

    fn lost(&self) -> Vec<String> {
        let word = |loss: &Loss| format!("{:?} {}", loss.kind, loss.what).to_lowercase();
        match self {
            Came::Saved(saved) => saved.losses.iter().map(word).collect(),
            Came::Refused(what) => vec![format!("refused {what}")],
            Came::Nothing => Vec::new(),
        }
    }
}

impl Pen {
    pub(crate) fn new(dialect: &'static dyn Dialect) -> Pen {
        let (folder, store) = store(dialect);
        let recorder = begin(&store).unwrap();
        Pen { folder, store, recorder, dialect, came: Vec::new() }
    }

    /// Writes what comes next; the id is what the next one hangs on.
    pub(crate) fn say(&mut self, body: Body) -> RecordId {
        self.put(body);
        self.recorder.head().unwrap().clone()
    }

    /// Writes what comes next, whatever comes of it. What would wait for the end of its turn ends it.
    fn put(&mut self, body: Body) {
        let came = match Came::of(self.recorder.record(body)) {
            Came::Nothing => Came::of(self.recorder.end_turn().map(|saved| Entry { number: 0, saved })),
            came => came,
        };
        self.came.push(came);
    }

    /// Notes what came of a call of the recorder.
    pub(crate) fn hear(&mut self, entry: Result<Entry, Error>) -> RecordId {
        self.came.push(Came::of(entry));
        self.recorder.head().unwrap().clone()
    }

    /// Writes an answer piece by piece.
    pub(crate) fn stream(&mut self, deltas: impl IntoIterator<Item = Delta>) {
        self.recorder.keep_reports();
        for delta in deltas {
            self.recorder.delta(delta).unwrap();
            self.came.extend(self.recorder.reports().into_iter().map(|report| match report.result {
                Ok(saved) => Came::Saved(saved),
                Err(why) => Came::Refused(why),
            }));
        }
    }

    /// Goes on from an earlier record, as a new process does.
    pub(crate) fn branch(&mut self, from: &RecordId, body: Body) -> RecordId {
        self.recorder.close().unwrap();
        self.recorder = self.store.resume_at(SESSION, from.as_str()).unwrap();
        self.say(body)
    }

    /// Closes the session and opens it again at its head.
    pub(crate) fn resume(&mut self) {
        self.recorder.close().unwrap();
        self.recorder = self.store.resume(SESSION).unwrap();
    }

    /// Another program writes.
    pub(crate) fn meanwhile(&mut self, line: &Value) {
        let mut file = std::fs::OpenOptions::new().append(true).open(self.path()).unwrap();
        writeln!(file, "{line}").unwrap();
    }

    pub(crate) fn path(&self) -> &Path {
        self.recorder.path().unwrap()
    }

    /// What the recorder calls the session.
    pub(crate) fn id(&self) -> &SessionId {
        self.recorder.session().unwrap()
    }

    pub(crate) fn text(&self) -> String {
        std::fs::read_to_string(self.path()).unwrap()
    }

    /// What was written; in some dialects the first line is the header.
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// What was written, read back, from its place and alike from a pipe. Nothing may be wrong with it but a call that nobody
    /// answered: a test may stop before a tool does.
    pub(crate) fn session(&self) -> Session {
        valid::check(self.dialect.name(), &self.text()).unwrap();
        let session = self.store.load(self.id().as_str()).unwrap();
        let wrong = session.issues().iter().find(|issue| issue.kind != IssueKind::UnansweredCall);
        assert!(wrong.is_none(), "{wrong:?}\n{}", self.text());
        assert_eq!(self.piped().records().len(), session.records().len());
        session
    }

    fn piped(&self) -> Session {
        Session::from_bytes(self.dialect, self.text().into_bytes(), &reading())
    }

    pub(crate) fn head(&self) -> RecordId {
        RecordId(self.session().head().unwrap().id().into_owned())
    }

    /// The record that a body became.
    pub(crate) fn record(&self, body: usize) -> &RecordId {
        match &self.came[body] {
            Came::Saved(saved) => &saved.id,
            Came::Refused(what) => panic!("it was refused: {what}"),
            Came::Nothing => panic!("it was not written"),
        }
    }

    /// What was lost of one body: `dropped thinking`; of one that got no line, `refused thinking`.
    pub(crate) fn lost_of(&self, body: usize) -> Vec<String> {
        self.came[body].lost()
    }

    /// What was lost so far, one a line, each once.
    pub(crate) fn lost(&self) -> String {
        let mut lost: Vec<String> = Vec::new();
        for what in self.came.iter().flat_map(Came::lost) {
            if !lost.contains(&what) {
                lost.push(what);
            }
        }
        lost.join("\n")
    }

    /// What a model would see to go on, a message a line.
    pub(crate) fn history(&self, view: View) -> String {
        sent(&self.session(), view).iter().map(|message| format!("{message}\n")).collect()
    }

    /// The bodies of the newest branch, as they were given: where they were said is not repeated.
    pub(crate) fn bodies(&self) -> Vec<Body> {
        let session = self.session();
        let branch = session.branch(session.head().unwrap());
        let given = |mut body: Body| {
            if let Some(said) = body.content_mut() {
                assert_eq!(said.context.cwd.as_deref(), Some(CWD));
                said.context = Context::default();
            }
            body
        };
        branch.records.iter().map(|record| given(record.body().unwrap())).collect()
    }
}

/// A whole story, written and closed.
pub(crate) fn wrote(dialect: &'static dyn Dialect, bodies: &[Body]) -> Pen {
    let mut pen = Pen::new(dialect);
    bodies.iter().for_each(|body| pen.put(body.clone()));
    pen.recorder.close().unwrap();
    pen
}

/// The fields of a line that are there and say nothing.
pub(crate) fn says_nothing(line: &Value) -> Vec<&str> {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    };
    let fields = line.as_object().unwrap().iter();
    fields.filter(|(_, value)| is_empty(value)).map(|(key, _)| key.as_str()).collect()
}

/// What any agent said, the model hears again: all of it where nothing is reported as lost.
pub(crate) fn assert_every_session_can_be_written(dialect: &'static dyn Dialect) {
    let mut compared = 0;
    rewritten(dialect, |case, session, pen| {
        let same = of_same_history(session, pen, View::Anthropic);
        // The order of its lines tells which calls were made at once: that is not ours to say.
        if pen.lost().is_empty() && session.dialect().name() != "claude-code" {
            assert!(same, "{case}");
            compared += 1;
        }
    });
    assert!(compared >= 30, "{compared}");
}

/// Writes the newest branch of every session that we know, of any dialect, and hands over what became of it.
fn rewritten(dialect: &'static dyn Dialect, mut check: impl FnMut(&str, &Session, &Pen)) {
    // A new file is synced, and disks are slow.
    for (known, path) in logs_of_all().into_iter().step_by(cases(4, 1) as usize) {
        let session = Session::from_bytes(known, std::fs::read(&path).unwrap(), &reading());
        let Some(head) = session.head() else { continue };
        let mut pen = Pen::new(dialect);
        let mut ids = HashMap::new();
        for record in session.branch(head).records {
            let mut body = record.body().unwrap();
            match &mut body {
                Body::Rewind(_) => continue,
                Body::Compaction(compaction) => {
                    let known = compaction.preserved.iter().filter_map(|id| ids.get(id.as_str()).cloned());
                    compaction.preserved = known.collect();
                }
                // It is said here, wherever that was.
                body => body.content_mut().into_iter().for_each(|said| said.context = Context::default()),
            }
            pen.put(body);
            ids.extend(pen.recorder.head().map(|id| (record.id().into_owned(), id.clone())));
        }
        check(&path.display().to_string(), &session, &pen);
    }
}

/// Whether a model would hear the same of a session and of what was written of it. Only what was wrong with the session
/// may be wrong with that.
fn of_same_history(session: &Session, pen: &Pen, view: View) -> bool {
    valid::check(pen.dialect.name(), &pen.text()).unwrap();
    let written = pen.piped();
    for issue in written.issues() {
        let is_old = |known: &Issue| known.kind == issue.kind;
        let of_calls = [IssueKind::UnansweredCall, IssueKind::OrphanResult, IssueKind::DuplicateResult];
        assert!(of_calls.contains(&issue.kind) || session.issues().iter().any(is_old), "{issue:?}\n{}", pen.text());
    }
    let said = |session: &Session| -> Vec<String> {
        let mut messages = session.head().map(|_| sent(session, view)).unwrap_or_default();
        // Each agent sends results in an order of its own.
        let is_result = |block: &Value| block["type"] == "tool_result";
        for blocks in messages.iter_mut().filter_map(|message| message["content"].as_array_mut()) {
            blocks.sort_by_cached_key(|block| is_result(block).then(|| block.to_string()));
        }
        // One agent parts the user's words by a line feed, others do not.
        messages.iter().map(|message| message.to_string().replace("\\n\"", "\"")).collect()
    };
    said(session) == said(&written)
}
