//! Lines as a dialect writes them, without a recorder and a disk: for many sessions, and for what no recorder would say.

use std::cell::Cell;

use jiff::{SignedDuration, Timestamp};
use scrollback::dialect::{Dialect, Names, NewRecord, Written};
use scrollback::model::{Body, Context, Issue, IssueKind, LossKind, Part, RecordId, SessionId, ToolKind, ToolState};
use scrollback::session::Session;
use scrollback::write::steps;
use serde_json::Value;

use super::place::{SESSION, VERSION, beginning, host, writing};

const NOWHERE: &Context = &Context { cwd: None, git_branch: None, platform: None, user_type: None };

/// The moment of the nth record.
pub(crate) fn at(record: usize) -> Timestamp {
    let start: Timestamp = "2026-11-15T10:00:00.25Z".parse().unwrap();
    start + SignedDuration::from_secs(record as i64)
}

/// A body about to be written, the first of its session.
pub(crate) fn draft<'a>(
    session: &'a SessionId,
    id: &'a RecordId,
    body: &'a Body,
    new_id: &'a dyn Fn() -> String,
) -> NewRecord<'a> {
    NewRecord {
        session,
        id,
        parent: None,
        answer: id,
        at: at(0),
        version: VERSION,
        body,
        responses: &[],
        context: NOWHERE,
        branches: false,
        sidechain: false,
        fragment: None,
        forked_from: None,
        model_before: None,
        last: None,
        prompt: None,
        new_id,
    }
}

/// What became of some bodies.
pub(crate) struct Drafted {
    /// Each body's lines and losses.
    pub(crate) records: Vec<Written>,
    /// The file, read back.
    pub(crate) session: Session,
}

impl Drafted {
    /// The lines of all of them.
    pub(crate) fn lines(&self) -> Vec<&Value> {
        self.records.iter().flat_map(|record| &record.lines).map(|line| &line.value).collect()
    }

    /// What was lost of one of them: `dropped image`, …
    pub(crate) fn lost_of(&self, record: usize) -> Vec<String> {
        let word = |kind| match kind {
            LossKind::Dropped => "dropped",
            LossKind::Renamed => "renamed",
            LossKind::Synthesised => "synthesised",
        };
        self.records[record]
            .losses
            .iter()
            .map(|loss| format!("{} {}", word(loss.kind), loss.what))
            .collect()
    }

    /// What the reader makes of all lines.
    pub(crate) fn bodies(&self) -> Vec<Body> {
        self.lines().iter().map(|line| self.session.dialect().body(&line.to_string())).collect()
    }
}

/// Writes the bodies one after another, `r0`, `r1`, …; the reader must call each line what the writer says.
pub(crate) fn drafted(dialect: &'static dyn Dialect, bodies: &[Body]) -> Drafted {
    let session = SessionId::from(SESSION);
    let made_up = Cell::new(0);
    let new_id = || format!("made-{}", made_up.replace(made_up.get() + 1));
    let mut records = Vec::new();
    let mut parent: Option<RecordId> = None;
    for (number, body) in bodies.iter().enumerate() {
        let id = RecordId(format!("r{number}"));
        let draft = NewRecord { parent: parent.as_ref(), at: at(number), ..draft(&session, &id, body, &new_id) };
        let written = (writing(dialect).lines)(&draft);
        if let Some(Names::Link(last)) = written.lines.last().map(|line| line.names.clone()) {
            parent = Some(last);
        }
        records.push(written);
    }
    let lines = records.iter().flat_map(|record| &record.lines);
    let text: String = lines.clone().map(|line| format!("{}\n", line.value)).collect();
    let session = Session::from_bytes(dialect, text.into_bytes(), &super::reading());
    let names: Vec<Names> = session.records().map(|record| Names::Link(RecordId(record.id().into_owned()))).collect();
    assert_eq!(names, lines.map(|line| line.names.clone()).collect::<Vec<_>>());
    // That a call has no result is nothing that a writer could help.
    let is_wrong = |issue: &&Issue| issue.kind != IssueKind::UnansweredCall;
    assert_eq!(session.issues().iter().find(is_wrong), None);
    Drafted { records, session }
}

/// The newest branch of a session as a file of this dialect: header and all, answers response by response.
pub(crate) fn text_of(dialect: &dyn Dialect, session: &Session) -> Option<String> {
    let branch = session.branch(session.head()?);
    let (session, host) = (SessionId::from(SESSION), host());
    let mut lines = (writing(dialect).header)(&beginning(&session));
    let bodies = branch.records.iter().flat_map(|record| match record.body().unwrap() {
        Body::Assistant(said) => steps(said),
        other => vec![other],
    });
    for body in bodies {
        let id = RecordId((host.new_id)());
        let draft = NewRecord { at: (host.now)(), ..draft(&session, &id, &body, &*host.new_id) };
        lines.extend((writing(dialect).lines)(&draft).lines);
    }
    Some(lines.iter().map(|line| format!("{}\n", line.value)).collect())
}

/// Parts as every format of turns must give them back: where a response begins is another question, a text that is said is
/// done, an empty one says nothing, and a value that is not there is null.
pub(crate) fn plain(parts: &[Part]) -> Vec<Part> {
    let says_something =
        |part: &&Part| !matches!(part, Part::StepStart) && !matches!(part, Part::Text(text) if text.text.is_empty());
    let mut parts: Vec<Part> = parts.iter().filter(says_something).cloned().collect();
    for part in &mut parts {
        match part {
            Part::Text(text) => text.state = None,
            Part::Reasoning(reasoning) => reasoning.state = None,
            Part::Tool(tool) => {
                tool.kind = ToolKind::Dynamic;
                match &mut tool.state {
                    ToolState::OutputAvailable { output, .. } => drop(output.get_or_insert_default()),
                    ToolState::OutputError { input, .. } => drop(input.get_or_insert_default()),
                    _ => {}
                }
            }
            _ => {}
        }
    }
    parts
}
