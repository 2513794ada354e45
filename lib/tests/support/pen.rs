//! Writes bodies in a dialect, as an agent that says one after another, and reads them back.

use std::cell::Cell;

use jiff::{SignedDuration, Timestamp};
use scrollback::dialect::Dialect;
use scrollback::history::{History, View};
use scrollback::issue::{Issue, IssueKind};
use scrollback::message::Part;
use scrollback::record::{Body, Context, RecordId, Said, SessionId};
use scrollback::session::Session;
use scrollback::writing::{Draft, Fragment, Grain, Loss, Names, Writing};
use serde_json::Value;

pub(crate) const SESSION: &str = "5e551000-0000-4000-8000-000000000001";

/// An agent that writes.
pub(crate) struct Pen {
    dialect: &'static dyn Dialect,
    writing: &'static Writing,
    session: SessionId,
    context: Context,
    ids: Cell<u64>,
    at: Timestamp,
    head: Option<RecordId>,
    pub(crate) lines: Vec<Value>,
    pub(crate) losses: Vec<Loss>,
}

impl Pen {
    pub(crate) fn new(dialect: &'static dyn Dialect) -> Pen {
        Pen {
            dialect,
            writing: dialect.write().unwrap(),
            session: SESSION.into(),
            context: context(),
            ids: Cell::new(0),
            at: "2026-11-10T09:00:00Z".parse().unwrap(),
            head: None,
            lines: Vec::new(),
            losses: Vec::new(),
        }
    }

    /// Writes what comes next; the id is what the next one hangs on.
    pub(crate) fn say(&mut self, body: Body) -> RecordId {
        let id = self.new_id();
        let fragments = match body {
            Body::Assistant(said) if self.writing.grain != Grain::Turn && said.error.is_none() => split(said),
            body => vec![body],
        };
        let is_one = self.writing.grain == Grain::Part;
        let mut last = id.clone();
        let parent = self.head.clone();
        for (seq, body) in fragments.iter().enumerate() {
            let own = if is_one || seq == 0 { id.clone() } else { self.new_id() };
            let parent = if is_one { parent.clone() } else { self.head.clone() };
            let fragment = is_one.then_some(Fragment { seq: seq as u64, part: seq as u64 });
            self.write(body, &own, &id, parent, fragment, false);
            last = self.head.clone().unwrap_or(own);
        }
        last
    }

    /// Writes something that goes on from an earlier record.
    pub(crate) fn branch(&mut self, from: Option<&RecordId>, body: Body) -> RecordId {
        let id = self.new_id();
        self.write(&body, &id, &id, from.cloned(), None, true);
        self.head.clone().unwrap_or(id)
    }

    fn write(
        &mut self,
        body: &Body,
        id: &RecordId,
        answer: &RecordId,
        parent: Option<RecordId>,
        fragment: Option<Fragment>,
        branches: bool,
    ) {
        self.at += SignedDuration::from_millis(1500);
        let new_id = || self.new_id().0;
        let draft = Draft {
            session: &self.session,
            id,
            parent: parent.as_ref(),
            answer,
            at: self.at,
            version: "1.2.3",
            body,
            context: &self.context,
            branches,
            sidechain: false,
            fragment,
            forked_from: None,
            new_id: &new_id,
        };
        let written = (self.writing.lines)(&draft);
        if let Body::Rewind(_) = body {
            self.head = parent;
        }
        for line in written.lines {
            if let Names::Link(id) = line.names {
                self.head = Some(id);
            }
            self.lines.push(line.value);
        }
        for loss in written.losses {
            if !self.losses.contains(&loss) {
                self.losses.push(loss);
            }
        }
    }

    fn new_id(&self) -> RecordId {
        self.ids.set(self.ids.get() + 1);
        RecordId(format!("00000000-0000-4000-8000-{:012x}", self.ids.get()))
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.lines.iter().flat_map(|line| format!("{line}\n").into_bytes()).collect()
    }

    /// What was written, read back. Nothing may be wrong with it.
    pub(crate) fn session(&self) -> Session {
        let session = Session::from_bytes(self.dialect, self.bytes(), &super::reading());
        // A test may stop before a tool answers.
        let is_wrong = |issue: &&Issue| issue.kind != IssueKind::UnansweredCall;
        let wrong: Vec<&Issue> = session.issues().iter().filter(is_wrong).collect();
        assert!(wrong.is_empty(), "{wrong:?}\n{}", self.text());
        session
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.bytes()).unwrap()
    }

    /// The losses so far, one a line.
    pub(crate) fn lost(&self) -> String {
        let word =
            |loss: &Loss| format!("{} {}", serde_json::to_value(loss.kind).unwrap().as_str().unwrap(), loss.what);
        self.losses.iter().map(word).collect::<Vec<_>>().join("\n")
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

/// Where the agent works.
fn context() -> Context {
    Context {
        cwd: Some("/home/ada/tide-tables".to_owned()),
        git_branch: Some("main".to_owned()),
        platform: Some("linux".to_owned()),
        user_type: None,
    }
}

fn without_context(mut body: Body) -> Body {
    match &mut body {
        Body::User(said)
        | Body::Assistant(said)
        | Body::ToolResult(said)
        | Body::Attachment(said)
        | Body::System(said) => {
            assert_eq!(said.context.cwd.as_deref(), Some("/home/ada/tide-tables"));
            assert_eq!(said.context.git_branch.as_deref(), Some("main"));
            said.context = Context::default();
        }
        _ => {}
    }
    body
}

/// An answer, a part at a time.
pub(crate) fn split(said: Said) -> Vec<Body> {
    if said.parts.len() < 2 {
        return vec![Body::Assistant(said)];
    }
    let (parts, said) = (said.parts, Said { parts: Vec::new(), ..said });
    let part = |part: Part| Body::Assistant(Said { parts: vec![part], ..said.clone() });
    parts.into_iter().map(part).collect()
}

/// Something that the person says.
pub(crate) fn user(parts: impl IntoIterator<Item = Part>) -> Body {
    Body::User(Said { parts: parts.into_iter().collect(), ..Said::default() })
}
