//! Bodies written in a dialect, as a recorder would have it done, and read back.

use std::cell::Cell;

use scrollback::dialect::Dialect;
use scrollback::issue::{Issue, IssueKind};
use scrollback::message::{Part, ToolKind, ToolState};
use scrollback::record::{Body, RecordId, SessionId};
use scrollback::session::Session;
use scrollback::writing::{Draft, LossKind, Names, Written};
use serde_json::Value;

/// What became of some bodies.
pub(crate) struct Made {
    /// Each body's lines and losses.
    pub(crate) records: Vec<Written>,
    /// The file, read back.
    pub(crate) session: Session,
}

impl Made {
    /// The lines of all of them.
    pub(crate) fn lines(&self) -> Vec<&Value> {
        self.records.iter().flat_map(|record| &record.lines).map(|line| &line.value).collect()
    }

    /// What was lost of one of them: `dropped image`, …
    pub(crate) fn losses(&self, record: usize) -> Vec<String> {
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

/// The moment of the nth record.
pub(crate) fn at(record: usize) -> jiff::Timestamp {
    let start: jiff::Timestamp = "2026-11-15T10:00:00.25Z".parse().unwrap();
    start + jiff::SignedDuration::from_secs(record as i64)
}

/// Writes the bodies one after another, `r0`, `r1`, …; the reader must call each line what the writer says.
pub(crate) fn write(dialect: &'static dyn Dialect, bodies: &[Body]) -> Made {
    let session = SessionId::from("5e551011-0000-7000-8000-000000000001");
    let made_up = Cell::new(0);
    let new_id = || format!("made-{}", made_up.replace(made_up.get() + 1));
    let mut records = Vec::new();
    let mut parent: Option<RecordId> = None;
    for (number, body) in bodies.iter().enumerate() {
        let id = RecordId(format!("r{number}"));
        let written = (dialect.write().unwrap().lines)(&Draft {
            session: &session,
            id: &id,
            parent: parent.as_ref(),
            answer: &id,
            at: at(number),
            version: "1.2.3",
            body,
            responses: &[],
            context: &Default::default(),
            branches: false,
            sidechain: false,
            fragment: None,
            forked_from: None,
            new_id: &new_id,
        });
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
    Made { records, session }
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
