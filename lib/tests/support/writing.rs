//! A dialect's writer, driven as a recorder drives it, on bytes: the header, then each body in pieces of its grain.

use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use scrollback::dialect::Dialect;
use scrollback::issue::IssueKind;
use scrollback::record::{Body, RecordId, Said, SessionId};
use scrollback::session::Session;
use scrollback::writing::{Beginning, Draft, Grain, Line, Loss, Names, Writing};

use super::reading;

pub(crate) const SESSION: &str = "01a1e0f7-bc87-7ea3-9152-fdcfa4291034";

pub(crate) fn began() -> Timestamp {
    "2026-11-14T23:59:58.250Z".parse().unwrap()
}

/// A beginning that every dialect takes.
pub(crate) fn beginning(session: &SessionId) -> Beginning<'_> {
    Beginning {
        session,
        project: Path::new("/home/ada/engine"),
        cwd: Path::new("/home/ada/engine/src"),
        at: began(),
        version: "1.2.3",
        git_branch: Some("main"),
        with: Some("alice@example.com/phone"),
        forked_from: None,
    }
}

/// What was written of some bodies.
pub(crate) struct Log {
    pub(crate) dialect: &'static dyn Dialect,
    /// The lines; the first ones are the header.
    pub(crate) lines: Vec<Line>,
    /// What was lost of each body.
    pub(crate) losses: Vec<Vec<Loss>>,
}

impl Log {
    pub(crate) fn text(&self) -> String {
        self.lines.iter().map(|line| format!("{}\n", line.value)).collect()
    }

    /// Reads it back; nothing may be wrong with it but a call that nobody answered, and each line is called as was told.
    pub(crate) fn session(&self) -> Session {
        let session = Session::from_bytes(self.dialect, self.text().into_bytes(), &reading());
        let wrong = session.issues().iter().find(|issue| issue.kind != IssueKind::UnansweredCall);
        assert!(wrong.is_none(), "{wrong:?}\n{}", self.text());
        let mut offset = 0;
        for line in &self.lines {
            let name = match &line.names {
                Names::Link(id) => Some(id.as_str().to_owned()),
                Names::Place => Some(format!("at-{offset}")),
                Names::Side => None,
            };
            let on_chain = session.records().find(|record| record.place().offset == offset && !record.is_side());
            assert_eq!(on_chain.map(|record| record.id().into_owned()), name, "{}", line.value);
            offset += line.value.to_string().len() as u64 + 1;
        }
        session
    }

    /// The losses of a body in words, `dropped thinking`.
    pub(crate) fn lost(&self, body: usize) -> Vec<String> {
        self.losses[body]
            .iter()
            .map(|loss| format!("{:?} {}", loss.kind, loss.what).to_lowercase())
            .collect()
    }
}

pub(crate) fn writing(dialect: &dyn Dialect) -> &'static Writing {
    dialect.write().unwrap()
}

pub(crate) fn log(dialect: &'static dyn Dialect, bodies: &[Body]) -> Log {
    let session = SessionId::from(SESSION);
    let writing = writing(dialect);
    let mut log = Log { dialect, lines: (writing.header)(&beginning(&session)), losses: Vec::new() };
    let mut ids = (1..).map(|n: u32| RecordId(format!("00000000-0000-7000-8000-{n:012}")));
    let mut at = began();
    for body in bodies {
        let mut losses = Vec::new();
        let (mut answer, mut parent) = (None, None);
        for piece in pieces(writing.grain, body) {
            let id = ids.next().unwrap();
            at = at.checked_add(SignedDuration::from_millis(1)).unwrap();
            let answer = answer.get_or_insert_with(|| id.clone());
            let written = (writing.lines)(&Draft {
                session: &session,
                id: &id,
                parent: parent.as_ref(),
                answer,
                at,
                version: "1.2.3",
                body: &piece,
                sidechain: false,
                fragment: None,
                forked_from: None,
                new_id: &|| "made-up".to_owned(),
            });
            log.lines.extend(written.lines);
            losses.extend(written.losses);
            parent = Some(id);
        }
        log.losses.push(losses);
    }
    log
}

fn pieces(grain: Grain, body: &Body) -> Vec<Body> {
    match (grain, body) {
        (Grain::Block, Body::Assistant(said)) if said.parts.len() > 1 => {
            let last = said.parts.len() - 1;
            let block = |(at, part): (usize, &scrollback::message::Part)| {
                let usage = said.usage.filter(|_| at == last);
                Body::Assistant(Said { parts: vec![part.clone()], usage, ..said.clone() })
            };
            said.parts.iter().enumerate().map(block).collect()
        }
        _ => vec![body.clone()],
    }
}
