//! The recorder and the store on a real disk: what a call said is what a reader finds.

use std::path::Path;

use crate::support::native;
use crate::support::place::PROJECT;
use crate::support::said::{self, todo};
use scrollback::model::{
    Content, Error, Host, Kind, Outcome, Part, RecordId, Thinking, ToolResult, ToolState, Triggers, Usage,
};
use scrollback::session::{Session, State};
use scrollback::write::{Delta, Durability, Entry, NewSession, Options, Policy, Recorder, Store, Warning};
use serde_json::json;
use tempfile::TempDir;

/// An agent that works where its project is.
fn host() -> Host {
    Host { cwd: PROJECT.into(), ..crate::support::place::host() }
}

struct Place {
    folder: TempDir,
    store: Store,
}

fn place() -> Place {
    let folder = tempfile::tempdir().unwrap();
    // A word at the end of a piece would be held back as the possible start of a secret.
    let store = Store::open(native(), folder.path(), host()).unwrap().with_options(Options::unredacted());
    Place { folder, store }
}

impl Place {
    fn create(&self) -> Recorder {
        self.store.create(Path::new(PROJECT)).unwrap()
    }

    fn session(&self) -> Session {
        self.store.last(Path::new(PROJECT)).unwrap().unwrap()
    }
}

fn id(entry: &Entry) -> RecordId {
    entry.id().unwrap().clone()
}

fn call(id: &str) -> Part {
    said::call("read_file", id, ToolState::called(json!({"path": "tides.rs"})))
}

fn result(id: &str, outcome: Outcome) -> ToolResult {
    ToolResult { duration_ms: Some(14), ..said::result(id, "fn main() {}", outcome) }
}

/// The branch of the head, a line a record: its kind and its words.
fn outline(session: &Session) -> Vec<String> {
    let branch = session.branch(session.head().unwrap());
    let words = |said: &Content| {
        let text = said.parts.iter().map(|part| match part {
            Part::Text(text) => text.text.clone(),
            Part::Reasoning(text) => format!("({})", text.text),
            Part::Tool(call) => format!("[{} {}]", call.name, call.call_id),
            other => format!("{other:?}"),
        });
        let results = said.results.iter().map(|result| format!("<{} {:?}>", result.call_id, result.outcome));
        text.chain(results).collect::<Vec<_>>().join(" ")
    };
    let line = |record: &scrollback::session::RecordRef<'_>| {
        let body = record.body().unwrap();
        format!("{}: {}", record.kind().name(), body.content().map(words).unwrap_or_default())
    };
    branch.records.iter().map(line).collect()
}

#[test]
fn what_was_recorded_is_read_back() {
    let place = place();
    let mut recorder = place.create();
    recorder.user("When is high water?").unwrap();
    recorder
        .assistant(vec![Part::reasoning("The harbour?"), Part::text("Let me look."), call("c1"), call("c2")])
        .unwrap();
    recorder
        .tool_results(vec![result("c1", Outcome::Done), result("c2", Outcome::Failed("no such file".to_owned()))])
        .unwrap();
    recorder.assistant("At 04:12.").unwrap();
    recorder.usage(Usage { input: Some(10), output: Some(3), ..Usage::default() }).unwrap();
    recorder.error("rate_limit", "The model answered 429.").unwrap();
    recorder.title("Tides").unwrap();
    recorder.close().unwrap();
    let session = place.session();
    assert_eq!(session.issues(), []);
    assert_eq!(
        outline(&session),
        [
            "user: When is high water?",
            "assistant: (The harbour?) Let me look. [read_file c1] [read_file c2]",
            "tool-result: <c1 Done> <c2 Failed(\"no such file\")>",
            "assistant: At 04:12.",
            "system: The model answered 429.",
        ]
    );
    assert_eq!(session.title().unwrap().text, "Tides");
    assert_eq!(session.usage().unwrap().output, Some(3));
    assert_eq!(session.cwd(), Some(PROJECT));
    let results = session.records().find(|record| record.kind() == Kind::ToolResult).unwrap().body().unwrap();
    assert_eq!(
        results.content().unwrap().results[0].name.as_deref(),
        Some("read_file"),
        "the call's name is filled in"
    );
}

#[test]
fn a_stream_is_one_record_and_every_piece_is_on_disk() {
    let place = place();
    let mut recorder = place.create();
    recorder.user("Why?").unwrap();
    for (piece, so_far) in [("Hi", "Hi"), ("gh wa", "High wa"), ("ter.", "High water.")] {
        let ack = recorder.delta(Delta::Text(piece.to_owned())).unwrap();
        assert!(ack.id().is_some(), "{ack:?}");
        assert_eq!(outline(&place.session()), ["user: Why?".to_owned(), format!("assistant: {so_far}")]);
    }
    recorder.delta(Delta::Reasoning("Hm".to_owned())).unwrap();
    recorder.delta(Delta::Part(call("c1"))).unwrap();
    recorder.finish_answer(Some(Usage { output: Some(7), ..Usage::default() })).unwrap();
    recorder.tool_results(result("c1", Outcome::Denied(None))).unwrap();
    drop(recorder);
    let session = place.session();
    assert_eq!(session.issues(), []);
    assert_eq!(
        outline(&session),
        ["user: Why?", "assistant: High water. (Hm) [read_file c1]", "tool-result: <c1 Denied(None)>"]
    );
    assert_eq!(session.usage().unwrap().output, Some(7));
}

#[test]
fn going_on_anywhere_is_branching() {
    let place = place();
    let mut recorder = place.create();
    let question = id(&recorder.user("One?").unwrap());
    recorder.assistant("1").unwrap();
    let session = recorder.session().unwrap().to_string();
    recorder.close().unwrap();
    let mut recorder = place.store.resume_at(&session, question.as_str()).unwrap();
    recorder.assistant("one").unwrap();
    recorder.rewind(&question, None).unwrap();
    recorder.assistant("I").unwrap();
    recorder.close().unwrap();
    let session = place.session();
    assert_eq!(session.heads().count(), 3);
    assert_eq!(outline(&session), ["user: One?", "rewind: ", "assistant: I"]);
    assert_eq!(session.issues(), []);
}

#[test]
fn a_resume_point_has_the_state_of_its_last_message() {
    let place = place();
    let mut recorder = place.create();
    recorder.todos(vec![todo("before anything")]).unwrap();
    let first = id(&recorder.user("Plan it.").unwrap());
    recorder.todos(vec![todo("one")]).unwrap();
    let thinking = Thinking { level: Some("high".to_owned()), disabled: false, triggers: Vec::new() };
    recorder.thinking(thinking.clone()).unwrap();
    recorder.assistant("Done.").unwrap();
    recorder.todos(vec![]).unwrap();
    let session = recorder.session().unwrap().to_string();
    recorder.close().unwrap();
    let recorder = place.store.resume(&session).unwrap();
    assert_eq!(recorder.todos_at_head(), Some(&[][..]));
    assert_eq!(recorder.thinking_at_head(), Some(&thinking));
    let recorder = place.store.resume_at(&session, first.as_str()).unwrap();
    assert_eq!(recorder.todos_at_head(), Some(&[todo("one")][..]));
    assert_eq!(place.session().issues(), []);
}

#[test]
fn durability_follows_the_kind_unless_somebody_says_otherwise() {
    let durability = |entry: Entry| entry.saved.unwrap().durability;
    let place = place();
    let mut recorder = place.create();
    assert_eq!(durability(recorder.user("q").unwrap()), Durability::Sync);
    assert_eq!(durability(recorder.assistant(vec![call("c")]).unwrap()), Durability::Flush);
    assert_eq!(durability(recorder.tool_results(result("c", Outcome::Done)).unwrap()), Durability::Flush);
    assert_eq!(durability(recorder.assistant("a").unwrap()), Durability::Sync);
    let options = Options { durability: Some(Durability::Flush), triggers: Triggers::usual(), ..Options::unredacted() };
    let mut recorder = place.store.clone().with_options(options).create(Path::new(PROJECT)).unwrap();
    assert_eq!(durability(recorder.user("think about it").unwrap()), Durability::Flush);
    assert_eq!(recorder.thinking_at_head().unwrap().level.as_deref(), Some("low"));
}

#[test]
fn a_disabled_recorder_records_nothing() {
    let mut recorder = Recorder::disabled();
    assert_eq!(recorder.user("q").unwrap(), Entry::default());
    assert_eq!(recorder.delta(Delta::Text("a".to_owned())).unwrap(), Entry::default());
    assert_eq!(recorder.finish_answer(None).unwrap(), Entry::default());
    recorder.close().unwrap();
}

#[test]
fn two_recorders_make_two_branches() {
    let place = place();
    let mut one = place.create();
    one.user("Both?").unwrap();
    let session = one.session().unwrap().to_string();
    let mut other = place.store.resume(&session).unwrap();
    for count in 0..20 {
        one.assistant(format!("one {count}")).unwrap();
        other.assistant(format!("other {count}")).unwrap();
    }
    let session = place.session();
    assert_eq!(session.records().len(), 41);
    assert_eq!(session.heads().count(), 2);
    assert_eq!(session.issues(), []);
}

#[test]
fn names_that_leave_the_store_are_refused() {
    let place = place();
    for name in ["", "..", ".", "../x", "a/b", "/etc", "a\0b", "a\\b", ".hidden", "con:", "x\n", &"n".repeat(300)] {
        let new = NewSession { id: Some(name), ..NewSession::of(Path::new(PROJECT)) };
        let refused = place.store.session(new, Policy::New).err();
        assert!(matches!(refused, Some(Error::InvalidName { .. })), "{name:?}: {refused:?}");
    }
    let refused = place.store.create(Path::new("relative")).err();
    assert!(matches!(refused, Some(Error::InvalidName { .. })), "{refused:?}");
    assert!(std::fs::read_dir(place.folder.path()).unwrap().next().is_none(), "nothing was made");
}

#[test]
fn an_existing_session_is_not_begun_again() {
    let place = place();
    let new = NewSession { id: Some("mine"), ..NewSession::of(Path::new(PROJECT)) };
    let mut recorder = place.store.session(new, Policy::New).unwrap();
    recorder.user("q").unwrap();
    assert!(matches!(place.store.session(new, Policy::New).err(), Some(Error::Exists(_))));
    assert!(place.store.exists("mine"));
    assert!(!place.store.exists("min"));
}

#[test]
fn an_interrupted_session_says_so() {
    let place = place();
    let mut recorder = place.create();
    recorder.user("q").unwrap();
    let session = place.session();
    assert_eq!(session.state(&session.branch(session.head().unwrap())), State::InterruptedPrompt);
    recorder.assistant(vec![call("c")]).unwrap();
    let session = place.session();
    assert_eq!(session.state(&session.branch(session.head().unwrap())), State::InterruptedTurn);
}

#[test]
fn what_an_answer_cost_may_be_told_after_its_tools_have_answered() {
    let place = place();
    let mut recorder = place.create();
    recorder.user("q").unwrap();
    recorder.delta(Delta::Part(call("c1"))).unwrap();
    recorder.early_result(result("c1", Outcome::Done)).unwrap();
    recorder.delta(Delta::Part(call("c2"))).unwrap();
    recorder.early_result(result("c2", Outcome::Done)).unwrap();
    recorder.finish_answer(None).unwrap();
    recorder.usage(Usage { output: Some(7), ..Usage::default() }).unwrap();
    recorder.assistant("a").unwrap();
    let session = place.session();
    let told = outline(&session);
    assert_eq!(told.len(), 5, "{told:?}");
    assert_eq!(told[1], "assistant: [read_file c1] [read_file c2]");
    assert_eq!((session.heads().count(), session.usage().unwrap().output), (1, Some(7)));
    assert_eq!(session.issues(), []);
}

#[cfg(unix)]
#[test]
fn a_folder_that_becomes_a_link_out_of_the_store_is_not_followed() {
    for has_log in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let (root, out) = (folder.path().join("store"), folder.path().join("out"));
        let store = Store::open(native(), &root, host()).unwrap();
        let mut recorder = store.create(Path::new(PROJECT)).unwrap();
        recorder.user("Hi").unwrap();
        let session = recorder.path().unwrap().parent().unwrap().to_path_buf();
        std::fs::rename(&session, folder.path().join("away")).unwrap();
        std::fs::create_dir(&out).unwrap();
        if has_log {
            std::fs::write(out.join("messages.jsonl"), "").unwrap();
        }
        std::os::unix::fs::symlink(&out, &session).unwrap();
        recorder.user("Still there?").unwrap_err();
        drop(recorder.close());
        let found: Vec<_> = std::fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(found.len(), usize::from(has_log), "{found:?}");
        assert!(!has_log || std::fs::read(out.join("messages.jsonl")).unwrap().is_empty());
    }
}

#[cfg(unix)]
#[test]
fn a_session_that_cannot_be_read_is_told_of() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let project = Path::new(PROJECT);
    let store = Store::open(native(), folder.path(), host()).unwrap();
    let begin = |id: &str| {
        let mut recorder = store.session(NewSession { id: Some(id), ..NewSession::of(project) }, Policy::New).unwrap();
        recorder.user("Hi").unwrap();
        recorder.close().unwrap();
    };
    begin("s1");
    begin("s2");
    let newest = folder.path().join("sessions/s2/messages.jsonl");
    std::fs::set_permissions(&newest, std::fs::Permissions::from_mode(0o000)).unwrap();
    if std::fs::read(&newest).is_ok() {
        // Whoever runs the tests may read everything, but not what leads to itself.
        std::fs::remove_file(&newest).unwrap();
        std::os::unix::fs::symlink("messages.jsonl", &newest).unwrap();
    }
    assert_eq!(store.list(None).errors.len(), 1);
    let mut recorder = store.session(project, Policy::Latest).unwrap();
    assert_eq!(recorder.session().unwrap().as_str(), "s1");
    assert!(recorder.warnings().contains(&Warning::Unread));
    for (project, expected) in [(project, Some("s1")), (Path::new("/gone/another"), None)] {
        let mut recorder = store.session(NewSession::of(project), Policy::LatestOrNew).unwrap();
        assert_eq!(expected.unwrap_or(recorder.session().unwrap().as_str()), recorder.session().unwrap().as_str());
        assert!(recorder.warnings().contains(&Warning::Unread), "{}", project.display());
    }
    let refused = store.load("s2");
    assert!(matches!(refused, Err(Error::Io { .. })), "{:?}", refused.err());
    assert!(store.load("s1").is_ok());
}

#[test]
fn a_session_that_is_discarded_after_its_log_went_away_leaves_the_sidecar_to_its_owner() {
    let folder = tempfile::tempdir().unwrap();
    for dialect in ["native", "sage-el"] {
        let store = Store::open(scrollback::dialect::named(dialect).unwrap(), &folder.path().join(dialect), host());
        let store = store.unwrap();
        let recorder = store.create(Path::new(PROJECT)).unwrap();
        let log = recorder.path().unwrap().to_path_buf();
        let sidecars = || std::fs::read_dir(log.parent().unwrap()).unwrap().count();
        std::fs::remove_file(&log).unwrap();
        assert_eq!(sidecars(), 1, "{dialect}");
        assert!(store.discard(recorder).unwrap().is_none());
        assert_eq!(sidecars(), 1, "{dialect}");
    }
}
