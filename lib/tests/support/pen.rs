//! Writes bodies in a dialect, as an agent that says one after another through the recorder, and reads them back.

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use jiff::Timestamp;
use scrollback::dialect::Dialect;
use scrollback::error::Error;
use scrollback::history::{History, View};
use scrollback::host::Host;
use scrollback::issue::{Issue, IssueKind};
use scrollback::message::Part;
use scrollback::record::{Body, Context, RecordId, Said};
use scrollback::recorder::{Ack, Durability, Options, Recorder};
use scrollback::session::Session;
use scrollback::store::{NewSession, Point, Store};
use scrollback::writing::Loss;
use serde_json::Value;
use tempfile::TempDir;

pub(crate) const SESSION: &str = "5e551000-0000-4000-8000-000000000001";

const CWD: &str = "/home/ada/tide-tables";

/// An agent that writes.
pub(crate) struct Pen {
    _folder: TempDir,
    dialect: &'static dyn Dialect,
    store: Store,
    pub(crate) recorder: Recorder,
    lost: Vec<String>,
}

impl Pen {
    pub(crate) fn new(dialect: &'static dyn Dialect) -> Pen {
        let folder = tempfile::tempdir().unwrap();
        let options = Options { durability: Some(Durability::Flush), ..Options::usual() };
        let store = Store::open(dialect, folder.path(), host()).unwrap().with_options(options);
        let new = NewSession { id: Some(SESSION), ..NewSession::of(Path::new(CWD)) };
        let recorder = store.begin(new).unwrap();
        Pen { _folder: folder, dialect, store, recorder, lost: Vec::new() }
    }

    /// Writes what comes next; the id is what the next one hangs on.
    pub(crate) fn say(&mut self, body: Body) -> RecordId {
        let ack = match body {
            Body::Rewind(rewind) => {
                let head = self.recorder.head().unwrap().clone();
                self.recorder.rewind(&head, rewind.reason)
            }
            body => self.recorder.record(body),
        };
        self.hear(ack)
    }

    /// Writes what another agent said, wherever that was.
    fn say_anything(&mut self, mut body: Body) {
        match &mut body {
            Body::User(said)
            | Body::Assistant(said)
            | Body::ToolResult(said)
            | Body::Attachment(said)
            | Body::System(said) => said.context = Context::default(),
            Body::Rewind(_) => return,
            _ => {}
        }
        match self.recorder.record(body) {
            Ok(Ack::Saved(saved)) => saved.losses.iter().map(sentence).for_each(|lost| self.lose(lost)),
            Ok(Ack::Held { .. } | Ack::NotRecorded) => {}
            Err(Error::CannotHold { what, .. }) => self.lose(format!("refused {what}")),
            Err(error) => panic!("{error}"),
        }
    }

    /// Notes what was lost.
    pub(crate) fn hear(&mut self, ack: Result<Ack, Error>) -> RecordId {
        match ack {
            Ok(Ack::Saved(saved)) => saved.losses.iter().map(sentence).for_each(|lost| self.lose(lost)),
            Ok(Ack::Held { .. } | Ack::NotRecorded) => {}
            Err(Error::CannotHold { what, .. }) => self.lose(format!("refused {what}")),
            Err(error) => panic!("{error}"),
        }
        self.recorder.head().unwrap().clone()
    }

    fn lose(&mut self, lost: String) {
        if !self.lost.contains(&lost) {
            self.lost.push(lost);
        }
    }

    /// Goes on from an earlier record, as a new process does.
    pub(crate) fn branch(&mut self, from: &RecordId, body: Body) -> RecordId {
        self.go_on(Point::Message { session: SESSION, record: from.as_str() });
        self.say(body)
    }

    pub(crate) fn go_on(&mut self, point: Point<'_>) {
        self.recorder.finish().unwrap();
        self.recorder = self.store.resume(Path::new(CWD), point).unwrap();
    }

    /// Another program writes.
    pub(crate) fn meanwhile(&mut self, line: &Value) {
        let mut file = std::fs::OpenOptions::new().append(true).open(self.recorder.path().unwrap()).unwrap();
        writeln!(file, "{line}").unwrap();
    }

    pub(crate) fn text(&self) -> String {
        std::fs::read_to_string(self.recorder.path().unwrap()).unwrap()
    }

    pub(crate) fn lines(&self) -> Vec<Value> {
        self.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// What was written, read back. Nothing may be wrong with it.
    pub(crate) fn session(&self) -> Session {
        let session = Session::from_bytes(self.dialect, self.text().into_bytes(), &super::reading());
        // A test may stop before a tool answers.
        let is_wrong = |issue: &&Issue| issue.kind != IssueKind::UnansweredCall;
        let wrong: Vec<&Issue> = session.issues().iter().filter(is_wrong).collect();
        assert!(wrong.is_empty(), "{wrong:?}\n{}", self.text());
        session
    }

    pub(crate) fn head(&self) -> RecordId {
        RecordId(self.session().head().unwrap().id().into_owned())
    }

    /// What was lost so far, one a line.
    pub(crate) fn lost(&self) -> String {
        self.lost.join("\n")
    }

    /// What a model would see to go on, a message a line.
    pub(crate) fn history(&self, view: View) -> String {
        let session = self.session();
        let history = History::of(&session, session.head().unwrap()).unwrap();
        let (messages, _) = view.messages(&history).unwrap();
        messages.iter().map(|message| format!("{message}\n")).collect()
    }

    /// The bodies of the newest branch, as they were given: where they were said is not repeated.
    pub(crate) fn bodies(&self) -> Vec<Body> {
        let session = self.session();
        let branch = session.branch(session.head().unwrap());
        branch.records.iter().map(|record| without_context(record.body().unwrap())).collect()
    }
}

/// A machine on which nothing is left to chance.
fn host() -> Host {
    let (ids, seconds) = (AtomicU64::new(0), AtomicI64::new(0));
    let began: Timestamp = "2026-11-10T09:00:00Z".parse().unwrap();
    let new_id = move || format!("00000000-0000-4000-8000-{:012x}", ids.fetch_add(1, Ordering::Relaxed));
    let now = move || began + jiff::SignedDuration::from_secs(seconds.fetch_add(1, Ordering::Relaxed));
    Host {
        now: Arc::new(now),
        new_id: Arc::new(new_id),
        cwd: CWD.into(),
        platform: "linux".to_owned(),
        version: "1.2.3".to_owned(),
    }
}

fn sentence(loss: &Loss) -> String {
    format!("{} {}", serde_json::to_value(loss.kind).unwrap().as_str().unwrap(), loss.what)
}

fn without_context(mut body: Body) -> Body {
    match &mut body {
        Body::User(said)
        | Body::Assistant(said)
        | Body::ToolResult(said)
        | Body::Attachment(said)
        | Body::System(said) => {
            assert_eq!(said.context.cwd.as_deref(), Some(CWD));
            said.context = Context::default();
        }
        _ => {}
    }
    body
}

/// Something that the person says.
pub(crate) fn user(parts: impl IntoIterator<Item = Part>) -> Body {
    Body::User(Said { parts: parts.into_iter().collect(), ..Said::default() })
}

/// Writes the newest branch of every session that we know, of any dialect, and hands over what became of it.
pub(crate) fn rewritten(dialect: &'static dyn Dialect, mut check: impl FnMut(&str, &Session, &Pen)) {
    for known in scrollback::dialect::all() {
        let folder = super::corpus().join(known.name());
        let mut files: Vec<_> = std::fs::read_dir(&folder)
            .unwrap()
            .flat_map(|case| std::fs::read_dir(case.unwrap().path()).unwrap())
            .map(|file| file.unwrap().path())
            .filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
            .collect();
        files.sort();
        // A new file is synced, and disks are slow.
        for path in files.into_iter().step_by(super::cases(4, 1) as usize) {
            let session = Session::from_bytes(*known, std::fs::read(&path).unwrap(), &super::reading());
            let Some(head) = session.head() else { continue };
            let mut pen = Pen::new(dialect);
            let mut ids = HashMap::new();
            for record in session.branch(head).records {
                let mut body = record.body().unwrap();
                if let Body::Compaction(compaction) = &mut body {
                    let known = compaction.preserved.iter().filter_map(|id| ids.get(id.as_str()).cloned());
                    compaction.preserved = known.collect();
                }
                pen.say_anything(body);
                ids.extend(pen.recorder.head().map(|id| (record.id().into_owned(), id.clone())));
            }
            check(&path.display().to_string(), &session, &pen);
        }
    }
}

/// Whether a model would hear the same of a session and of what was written of it. Only what was wrong with the session
/// may be wrong with that.
pub(crate) fn of_same_history(session: &Session, pen: &Pen, view: View) -> bool {
    let written = Session::from_bytes(pen.dialect, pen.text().into_bytes(), &super::reading());
    for issue in written.issues() {
        let is_old = |known: &Issue| known.kind == issue.kind;
        let of_calls = [IssueKind::UnansweredCall, IssueKind::OrphanResult, IssueKind::DuplicateResult];
        assert!(of_calls.contains(&issue.kind) || session.issues().iter().any(is_old), "{issue:?}\n{}", pen.text());
    }
    // One agent parts the user's words by a line feed, others do not.
    let said = |session: &Session| -> Vec<String> {
        let Some(head) = session.head() else { return Vec::new() };
        let history = History::of(session, head).unwrap();
        view.messages(&history)
            .unwrap()
            .0
            .iter()
            .map(|message| message.to_string().replace("\\n\"", "\""))
            .collect()
    };
    let (before, after) = (said(session), said(&written));
    before == after
}
