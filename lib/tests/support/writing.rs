//! Bodies recorded in a dialect, and what came of each: the file, the acknowledgements, the losses.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use jiff::{SignedDuration, Timestamp};
use scrollback::dialect::Dialect;
use scrollback::error::Error;
use scrollback::host::Host;
use scrollback::issue::IssueKind;
use scrollback::record::{Body, Context, RecordId, SessionId};
use scrollback::recorder::{Ack, Durability, Options, Recorder, Saved, steps};
use scrollback::session::Session;
use scrollback::store::{NewSession, Store};
use scrollback::writing::{Beginning, Draft, Loss, Writing};
use serde_json::Value;

use super::reading;

pub(crate) const SESSION: &str = "01a1e0f7-bc87-7ea3-9152-fdcfa4291034";

/// Whom a session is with, where a dialect asks for it.
const WITH: &str = "alice@example.com/phone";

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
        with: Some(WITH),
        forked_from: None,
    }
}

/// A clock that goes a millisecond on at each look, and ids that count.
pub(crate) fn host() -> Host {
    let (looks, ids) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicU64::new(0)));
    let later = |millis| began().checked_add(SignedDuration::from_millis(millis)).unwrap();
    Host {
        now: Arc::new(move || later(looks.fetch_add(1, Ordering::Relaxed))),
        new_id: Arc::new(move || format!("00000000-0000-7000-8000-{:012}", ids.fetch_add(1, Ordering::Relaxed))),
        cwd: PathBuf::from("/home/ada/engine/src"),
        platform: "linux".to_owned(),
        version: "1.2.3".to_owned(),
    }
}

/// A session that bodies were recorded in.
pub(crate) struct Log {
    pub(crate) dialect: &'static dyn Dialect,
    pub(crate) store: Store,
    pub(crate) folder: tempfile::TempDir,
    pub(crate) path: PathBuf,
    /// What the recorder called it.
    pub(crate) id: SessionId,
    /// What became of each body.
    came: Vec<Came>,
}

enum Came {
    Saved(Saved),
    Refused(String),
}

impl Log {
    pub(crate) fn text(&self) -> String {
        std::fs::read_to_string(&self.path).unwrap()
    }

    /// The lines; the first one is the header.
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Reads it back; nothing may be wrong with it but a call that nobody answered.
    pub(crate) fn session(&self) -> Session {
        let session = self.store.load(self.id.as_str()).unwrap();
        let wrong = session.issues().iter().find(|issue| issue.kind != IssueKind::UnansweredCall);
        assert!(wrong.is_none(), "{wrong:?}\n{}", self.text());
        let piped = Session::from_bytes(self.dialect, self.text().into_bytes(), &reading());
        assert_eq!(piped.records().len(), session.records().len());
        session
    }

    /// The record that a body became.
    pub(crate) fn record(&self, body: usize) -> &RecordId {
        match &self.came[body] {
            Came::Saved(saved) => &saved.id,
            Came::Refused(what) => panic!("it was refused: {what}"),
        }
    }

    /// The losses of a body in words, `dropped thinking`; of one that got no line, `refused`.
    pub(crate) fn lost(&self, body: usize) -> Vec<String> {
        let word = |loss: &Loss| format!("{:?} {}", loss.kind, loss.what).to_lowercase();
        match &self.came[body] {
            Came::Saved(saved) => saved.losses.iter().map(word).collect(),
            Came::Refused(what) => vec![format!("refused {what}")],
        }
    }

    pub(crate) fn lost_nothing(&self) -> bool {
        (0..self.came.len()).all(|body| self.lost(body).is_empty())
    }
}

pub(crate) fn writing(dialect: &dyn Dialect) -> &'static Writing {
    dialect.write().unwrap()
}

pub(crate) fn begin(store: &Store) -> Result<Recorder, Error> {
    store.begin(NewSession { id: Some(SESSION), with: Some(WITH), ..NewSession::of(Path::new("/home/ada/engine")) })
}

/// Records bodies one by one, each acknowledged on its own.
pub(crate) fn log(dialect: &'static dyn Dialect, bodies: &[Body]) -> Log {
    let folder = tempfile::tempdir().unwrap();
    // No test here pulls a plug.
    let options = Options { durability: Some(Durability::Flush), ..Options::usual() };
    let store = Store::open(dialect, folder.path(), host()).unwrap().with_options(options);
    let mut recorder = begin(&store).unwrap();
    let came = bodies.iter().map(|body| came(&mut recorder, body)).collect();
    let (path, id) = (recorder.path().unwrap().to_owned(), recorder.session().unwrap().clone());
    recorder.close().unwrap();
    Log { dialect, store, folder, path, id, came }
}

fn came(recorder: &mut Recorder, body: &Body) -> Came {
    let held = match recorder.record(body.clone()) {
        Ok(Ack::Saved(saved)) => return Came::Saved(saved),
        Ok(Ack::Held { ticket }) => ticket,
        Ok(Ack::NotRecorded) => panic!("the recorder records"),
        Err(Error::CannotHold { what, .. }) => return Came::Refused(what),
        Err(error) => panic!("{error}"),
    };
    match recorder.end_turn() {
        Ok(()) => Came::Saved(recorder.settled().into_iter().find(|saved| saved.ticket == held).unwrap()),
        Err(Error::CannotHold { what, .. }) => Came::Refused(what),
        Err(error) => panic!("{error}"),
    }
}

/// The same as text alone, without a disk: for many sessions.
pub(crate) fn written_at_once(dialect: &dyn Dialect, bodies: &[Body]) -> String {
    let (session, host) = (SessionId::from(SESSION), host());
    let mut lines = (writing(dialect).header)(&beginning(&session));
    let answers = bodies.iter().flat_map(|body| match body {
        Body::Assistant(said) => steps(said.clone()),
        other => vec![other.clone()],
    });
    for body in answers {
        let id = RecordId((host.new_id)());
        let draft = Draft {
            session: &session,
            id: &id,
            parent: None,
            answer: &id,
            at: (host.now)(),
            version: "1.2.3",
            body: &body,
            responses: &[],
            context: &Context::default(),
            branches: false,
            sidechain: false,
            fragment: None,
            forked_from: None,
            new_id: &*host.new_id,
        };
        lines.extend((writing(dialect).lines)(&draft).lines);
    }
    lines.iter().map(|line| format!("{}\n", line.value)).collect()
}
