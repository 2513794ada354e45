//! A session that was ended lies in the archive, whole; the next one begins where it lay.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::support::place::{files_below, host};
use jiff::Timestamp;
use scrollback::dialect::{self, Dialect};
use scrollback::model::{Error, Host};
use scrollback::session::Source;
use scrollback::write::{EndedSession, NewSession, Policy, Rotation, Store, Warning, When};
use serde_json::{Value, json};

/// Whatever its age.
const CURRENT: Policy = Policy::Current { idle_minutes: 0 };
const ALICE: &str = "alice@example.com";
const HEADER: &str =
    "{\"type\":\"session\",\"version\":1,\"created\":\"2025-02-08T18:00:00Z\",\"jid\":\"alice@example.com\"}\n";
const HELLO: &str = "{\"type\":\"message\",\"role\":\"user\",\"content\":\"Hello\",\"msg_id\":\"m1\",\"ts\":\"2025-02-08T18:30:00Z\"}\n";

/// A store, and a clock that a test sets.
struct Place {
    folder: tempfile::TempDir,
    dialect: &'static dyn Dialect,
    store: Store,
    clock: Arc<AtomicI64>,
}

impl Place {
    fn of(dialect: &str, now: &str) -> Place {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(AtomicI64::new(0));
        let hands = Arc::clone(&clock);
        let now_by_it = move || Timestamp::from_millisecond(hands.load(Ordering::Relaxed)).unwrap();
        let host = Host { now: Arc::new(now_by_it), ..host() };
        let dialect = dialect::named(dialect).unwrap();
        let store = Store::open(dialect, folder.path(), host).unwrap();
        let place = Place { folder, dialect, store, clock };
        place.set(now);
        place
    }

    fn set(&self, now: &str) {
        self.clock.store(now.parse::<Timestamp>().unwrap().as_millisecond(), Ordering::Relaxed);
    }

    fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    fn put(&self, below: &str, text: &str) -> Source {
        let path = self.path(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        self.source(below)
    }

    fn source(&self, below: &str) -> Source {
        Source::file(self.dialect, &self.path(below))
    }

    fn end(&self, below: &str) -> Rotation {
        self.store.rotate(&self.source(below), When::Now).unwrap()
    }

    fn read(&self, below: &str) -> String {
        fs::read_to_string(self.path(below)).unwrap()
    }

    /// Every file, below the store.
    fn files(&self) -> Vec<String> {
        files_below(self.folder.path())
    }
}

fn archived(ended: Rotation) -> EndedSession {
    match ended {
        Rotation::Ended(archived) => archived,
        other => panic!("{other:?}"),
    }
}

#[test]
fn bytes_and_order_are_kept_and_the_archive_is_read_as_before() {
    let place = Place::of("fluux", "2025-02-08T19:00:00.999Z");
    let text = format!("{HEADER}{HELLO}not json\n{HELLO}torn");
    let before = place.put("alice@example.com/history.jsonl", &text);
    let rows = place.store.list(None).rows;
    let done = archived(place.end("alice@example.com/history.jsonl"));
    assert_eq!(done.path, place.path("alice@example.com/sessions/20250208-190000.jsonl"));
    assert_eq!((done.session.as_str(), done.warnings), ("alice@example.com:20250208-190000", vec![]));
    assert_eq!(place.files(), ["alice@example.com/sessions/20250208-190000.jsonl"]);
    assert_eq!(fs::read_to_string(&done.path).unwrap(), text);
    let after = place.store.list(None).rows;
    assert_eq!((rows.len(), after.len()), (1, 1));
    assert_eq!((&rows[0].first_prompt, rows[0].updated), (&after[0].first_prompt, after[0].updated));
    assert_eq!(place.store.rotate(&before, When::Now).unwrap(), Rotation::NotThere);
}

#[test]
fn what_a_session_was_converted_from_goes_with_it() {
    let place = Place::of("fluux", "2025-02-08T19:00:00Z");
    place.put("alice@example.com/history.jsonl", &format!("{HEADER}{HELLO}"));
    place.put("alice@example.com/history.jsonl.scrollback.json", "kept\n");
    place.put("alice@example.com/history.jsonl.scrollback.original", "copied\n");
    let done = archived(place.end("alice@example.com/history.jsonl"));
    assert_eq!(done.warnings, []);
    let names = ["", ".scrollback.json", ".scrollback.original"].map(|ending| format!("20250208-190000.jsonl{ending}"));
    assert_eq!(place.files(), names.map(|name| format!("alice@example.com/sessions/{name}")));
    assert_eq!(place.read("alice@example.com/sessions/20250208-190000.jsonl.scrollback.json"), "kept\n");
    assert_eq!(place.read("alice@example.com/sessions/20250208-190000.jsonl.scrollback.original"), "copied\n");
    assert_eq!(place.store.list(None).rows.len(), 1);
}

#[test]
fn two_in_one_second_get_two_names_in_their_order_and_nothing_is_overwritten() {
    let place = Place::of("fluux", "2025-12-31T23:59:58Z");
    let mut names = Vec::new();
    place.put("alice@example.com/sessions/20251231-235959.jsonl", "mine\n");
    for at in 0..4 {
        place.put("alice@example.com/history.jsonl", &format!("{HEADER}{}", HELLO.replace("m1", &format!("m{at}"))));
        names.push(archived(place.end("alice@example.com/history.jsonl")).path);
    }
    assert!(names.is_sorted(), "{names:?}");
    assert_eq!(
        place.files(),
        ["20251231-235958", "20251231-235959", "20260101-000000", "20260101-000001", "20260101-000002"]
            .map(|name| format!("alice@example.com/sessions/{name}.jsonl"))
    );
    assert_eq!(place.read("alice@example.com/sessions/20251231-235959.jsonl"), "mine\n");
    for (at, path) in names.iter().enumerate() {
        assert!(fs::read_to_string(path).unwrap().contains(&format!("m{at}")), "{path:?}");
    }
}

#[test]
fn what_says_nothing_stays_where_it_is() {
    let place = Place::of("fluux", "2025-02-08T19:00:00Z");
    let path = "alice@example.com/history.jsonl";
    assert_eq!(place.end(path), Rotation::NotThere);
    let torn = format!("{HEADER}{{\"type\":\"mess");
    for text in ["", "\n\n", HEADER, &format!("{HEADER}\r\n\n"), "{\"type\":\"session\"}\n", &torn, "rubbish"] {
        place.put(path, text);
        assert_eq!(place.end(path), Rotation::Empty, "{text:?}");
        assert_eq!(place.files(), [path]);
        assert_eq!(place.read(path), text);
    }
    for text in [&format!("{HEADER}{HELLO}{{\"type\":\"mess"), &format!("{HEADER}{{\"type\":\"later\"}}\n"), HELLO] {
        place.put(path, text);
        assert_eq!(fs::read_to_string(archived(place.end(path)).path).unwrap(), text);
    }
}

#[test]
fn a_session_is_idle_when_its_newest_instant_is_more_than_so_many_minutes_ago() {
    let second = |text: &str| HELLO.replace("2025-02-08T18:30:00Z", text);
    for (lines, now, minutes, is_idle) in [
        (HELLO.to_owned(), "2025-02-08T19:00:00Z", 30, false),
        (HELLO.to_owned(), "2025-02-08T19:00:00.001Z", 30, true),
        (HELLO.to_owned(), "2025-02-08T18:30:00Z", 0, false),
        (HELLO.to_owned(), "2025-02-08T18:30:01Z", 0, true),
        (HELLO.to_owned(), "2025-03-08T19:00:00Z", u32::MAX, false),
        // The clock was set back.
        (HELLO.to_owned(), "2025-02-08T17:00:00Z", 30, false),
        // Lines are not always in order, and offsets count.
        (format!("{}{HELLO}", second("2025-02-08T19:50:00+01:00")), "2025-02-08T19:10:00Z", 30, false),
        // An instant of tomorrow's tomorrow is none.
        (format!("{HELLO}{}", second("2035-02-08T18:30:00Z")), "2025-02-08T19:01:00Z", 30, true),
        (second("soon"), "2025-02-08T18:29:00Z", 30, false),
    ] {
        let place = Place::of("fluux", now);
        let source = place.put("alice@example.com/history.jsonl", &format!("{HEADER}{lines}"));
        let ended = place.store.rotate(&source, When::IdleFor { minutes }).unwrap();
        assert_eq!(matches!(ended, Rotation::Ended(_)), is_idle, "{lines} at {now}, {minutes}: {ended:?}");
    }
    let place = Place::of("fluux", "2030-01-01T00:00:00Z");
    let untimed = "{\"type\":\"message\",\"role\":\"user\",\"content\":\"Hello\"}\n";
    let source = place.put("alice@example.com/history.jsonl", untimed);
    assert_eq!(place.store.rotate(&source, When::IdleFor { minutes: 1 }).unwrap(), Rotation::NotIdle);
}

#[test]
fn an_id_that_its_lines_cannot_tell_is_refused() {
    let place = Place::of("sage-el", "2025-02-08T19:00:00Z");
    let new = NewSession { id: Some("mine"), ..NewSession::of(Path::new("/gone/engine")) };
    for told in [place.store.check(new), place.store.session(new, Policy::New).map(|_| ())] {
        let told = told.unwrap_err().to_string();
        assert_eq!(told, "invalid session name \"mine\": sage-el session ids are UUIDs, or derived from the path");
    }
    let id = "4ccdaf53-7481-4244-80e4-5077653ba545";
    let recorder = place.store.session(NewSession { id: Some(id), ..new }, Policy::New).unwrap();
    assert_eq!(recorder.session().unwrap().as_str(), id);
}

/// The lines of sage for Emacs tell which session they are of.
#[test]
fn a_writer_that_still_has_it_open_goes_on_as_another_session() {
    for by_another in [false, true] {
        let place = Place::of("sage-el", "2025-02-08T19:00:00Z");
        let new = NewSession::of(Path::new("/gone/engine"));
        let mut recorder = place.store.session(new, Policy::New).unwrap();
        recorder.user("One").unwrap();
        recorder.assistant("Yes.").unwrap();
        let first = recorder.session().unwrap().clone();
        let source = place.store.current(&new).unwrap().unwrap();
        let done = archived(place.store.rotate(&source, When::Now).unwrap());
        let next = by_another.then(|| {
            let mut other = place.store.session(new, Policy::New).unwrap();
            other.user("Two, of another program").unwrap();
            other.session().unwrap().clone()
        });
        recorder.user("Three").unwrap();
        recorder.assistant("Yes.").unwrap();
        let warning = if by_another { Warning::Replaced } else { Warning::Deleted };
        assert_eq!(recorder.warnings(), [warning]);
        let ids = |path: &Path| {
            let text = fs::read_to_string(path).unwrap();
            let id =
                |line: &str| serde_json::from_str::<Value>(line).unwrap()["session_id"].as_str().unwrap().to_owned();
            let mut ids: Vec<String> = text.lines().map(id).collect();
            ids.dedup();
            ids
        };
        let now = recorder.session().unwrap();
        assert_ne!(*now, first);
        assert_eq!(next.unwrap_or_else(|| now.clone()), *now);
        assert_eq!((ids(&done.path), ids(&source.path)), (vec![first.to_string()], vec![now.to_string()]));
        recorder.close().unwrap();
        let sidecar: Value =
            serde_json::from_slice(&fs::read(source.path.with_file_name("metadata.json")).unwrap()).unwrap();
        assert_eq!(sidecar["message_count"], if by_another { 3 } else { 2 });
    }
}

#[test]
fn a_writer_that_still_has_it_open_goes_on_in_a_new_file_with_its_header() {
    let place = Place::of("fluux", "2025-02-08T19:00:00Z");
    let project = Path::new("/gone/engine");
    let new = NewSession { with: Some("alice@example.com/phone"), ..NewSession::of(project) };
    place.store.session(new, Policy::New).unwrap().user("One").unwrap();
    let source = place.store.current(&new).unwrap().unwrap();
    let mut recorder = place.store.resume_source(&source, None).unwrap();
    recorder.user("Two").unwrap();
    recorder.warnings();
    let done = archived(place.store.rotate(&source, When::Now).unwrap());
    recorder.user("Three").unwrap();
    assert_eq!(recorder.warnings(), [Warning::Deleted]);
    let said = |path: &Path| {
        let lines: Vec<Value> =
            fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let told = |line: &Value| line["content"].as_str().or(line["jid"].as_str()).unwrap().to_owned();
        lines.iter().map(told).collect::<Vec<_>>()
    };
    assert_eq!(said(&done.path), [ALICE, "One", "Two"]);
    assert_eq!(said(&source.path), [ALICE, "Three"]);
}

#[test]
fn an_idle_session_is_ended_before_it_is_gone_on_with() {
    let place = Place::of("fluux", "2025-02-08T19:00:00Z");
    let new = NewSession { with: Some(ALICE), ..NewSession::of(Path::new("/gone/engine")) };
    let idle = Policy::Current { idle_minutes: 30 };
    let mut recorder = place.store.session(new, idle).unwrap();
    recorder.user("One").unwrap();
    assert!(recorder.predecessor().is_none());
    place.set("2025-02-08T19:30:00Z");
    assert!(!recorder.is_idle_for(30) && recorder.is_idle_for(29));
    let mut same = place.store.session(new, idle).unwrap();
    same.user("Two").unwrap();
    assert!(same.predecessor().is_none());
    place.set("2025-02-08T20:00:01Z");
    let mut next = place.store.session(new, idle).unwrap();
    next.user("Three").unwrap();
    assert_eq!(next.predecessor().unwrap().path, place.path("alice@example.com/sessions/20250208-200001.jsonl"));
    assert_eq!(place.read("alice@example.com/history.jsonl").lines().count(), 2);
    assert!(place.store.session(new, CURRENT).unwrap().predecessor().is_none());
    place.set("2025-02-09T20:00:01Z");
    assert!(place.store.session(new, CURRENT).unwrap().predecessor().is_none(), "0 is no limit");
}

#[test]
fn those_who_begin_a_session_at_once_go_on_in_one() {
    const WRITERS: usize = 4;
    const ROUNDS: usize = 40;
    for (dialect, with) in [("fluux", Some(ALICE)), ("sage-el", None)] {
        for round in 0..ROUNDS {
            let place = Place::of(dialect, "2025-02-08T19:00:00Z");
            let project = place.path("engine");
            let new = NewSession { with, ..NewSession::of(&project) };
            let ready = std::sync::Barrier::new(WRITERS);
            std::thread::scope(|scope| {
                for writer in 0..WRITERS {
                    let (store, ready) = (place.store.clone(), &ready);
                    scope.spawn(move || {
                        ready.wait();
                        let mut recorder = store.session(new, CURRENT).unwrap();
                        recorder.user(format!("{writer}")).unwrap();
                    });
                }
            });
            let logs: Vec<String> = place.files().into_iter().filter(|file| file.ends_with(".jsonl")).collect();
            let [log] = logs.as_slice() else { panic!("{dialect}, round {round}: {logs:?}") };
            let text = place.read(log);
            let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            let mut said: Vec<&str> = lines.iter().filter_map(|line| line["content"].as_str()).collect();
            said.sort_unstable();
            assert_eq!(said, ["0", "1", "2", "3"], "{dialect}, round {round}");
            let mut sessions: Vec<&Value> = lines.iter().filter_map(|line| line.get("session_id")).collect();
            sessions.dedup();
            assert!(sessions.len() <= 1, "{dialect}, round {round}: {text}");
        }
    }
}

#[test]
fn whoever_writes_while_others_end_the_session_loses_nothing() {
    const WRITERS: usize = 3;
    const EACH: usize = 60;
    let place = Place::of("fluux", "2025-02-08T19:00:00Z");
    let new = NewSession { with: Some(ALICE), ..NewSession::of(Path::new("/gone/engine")) };
    place.store.session(new, CURRENT).unwrap();
    let source = place.store.current(&new).unwrap().unwrap();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (store, source) = (place.store.clone(), &source);
            scope.spawn(move || {
                let mut recorder = store.session(new, CURRENT).unwrap();
                for at in 0..EACH {
                    recorder.user(format!("{writer}.{at}")).unwrap();
                    if at % 20 == 10 {
                        store.rotate(source, When::Now).unwrap();
                    }
                }
            });
        }
    });
    let mut found = Vec::new();
    for file in place.files() {
        let text = place.read(&file);
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(lines.first().is_none_or(|first| first["jid"] == ALICE), "{file}: {text}");
        found.extend(lines.iter().filter_map(|line| line["content"].as_str().map(str::to_owned)));
    }
    found.sort();
    let mut expected: Vec<String> =
        (0..WRITERS).flat_map(|writer| (0..EACH).map(move |at| format!("{writer}.{at}"))).collect();
    expected.sort();
    assert_eq!(found, expected);
    assert!(place.files().len() > 2, "{:?}", place.files());
}

const SAID: &str = "{\"role\":\"user\",\"content\":\"Hi\",\"timestamp\":\"2026-01-10T11:00:00Z\"}\n";

#[test]
fn a_conversation_of_sage_goes_into_history_and_its_metadata_counts_anew() {
    let place = Place::of("sage-el", "2026-01-10T12:00:00Z");
    let log = "projects/-gone-engine/conversation.jsonl";
    place.put(log, SAID);
    let about = json!({
        "project_dir": "/gone/engine", "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-10T11:00:00Z",
        "message_count": 1, "total_size": 70, "mood": {"kept": [1.50, "as it is"]},
    });
    place.put("projects/-gone-engine/metadata.json", &about.to_string());
    let done = archived(place.end(log));
    assert_eq!(done.path, place.path("projects/-gone-engine/history/20260110-120000.jsonl"));
    assert_eq!(fs::read_to_string(&done.path).unwrap(), SAID);
    let told = || serde_json::from_str::<Value>(&place.read("projects/-gone-engine/metadata.json")).unwrap();
    let mut expected = about.clone();
    (expected["message_count"], expected["total_size"]) = (0.into(), 0.into());
    expected["updated_at"] = "2026-01-10T12:00:00Z".into();
    assert_eq!(told(), expected);
    let row = place.store.list(None).rows.remove(0);
    assert_eq!(row.project.as_deref(), Some("/gone/engine"), "an archive is still its project's");
    assert_eq!(row.id, done.session);
    let mut next = place.store.create(Path::new("/gone/engine")).unwrap();
    next.user("Again").unwrap();
    next.close().unwrap();
    assert_eq!((&told()["mood"], &told()["message_count"]), (&about["mood"], &json!(1)));
}

#[test]
fn what_is_beside_the_log_and_unclear_is_left_to_whoever_mends_it() {
    let log = "projects/-gone-engine/conversation.jsonl";
    for unclear in ["{\"project_dir\": \"/gone/eng", "[]", "\"a text\""] {
        let place = Place::of("sage-el", "2026-01-10T12:00:00Z");
        place.put(log, SAID);
        place.put("projects/-gone-engine/metadata.json", unclear);
        let done = archived(place.end(log));
        assert_eq!(place.read("projects/-gone-engine/metadata.json"), unclear);
        assert_eq!(done.warnings, [Warning::DamagedSidecar], "{unclear}");
    }
}

#[test]
fn a_project_goes_on_in_its_own_folder_whatever_the_folder_is_called() {
    let place = Place::of("sage-el", "2026-01-10T12:00:00Z");
    let new = NewSession::of(Path::new("/gone/my.engine"));
    let of = |dir: &str| json!({"project_dir": dir}).to_string();
    assert!(place.store.current(&new).unwrap().is_none());
    place.put("projects/-gone-my-engine/conversation.jsonl", SAID);
    let aligned = place.store.current(&new).unwrap().unwrap().path;
    assert_eq!(aligned, place.path("projects/-gone-my-engine/conversation.jsonl"), "nobody says whose it is");
    place.put("projects/-gone-my-engine/metadata.json", &of("/gone/my/engine"));
    let refused = place.store.current(&new).unwrap_err();
    assert!(
        matches!(&refused, Error::OtherProject { project, .. } if project == Path::new("/gone/my/engine")),
        "{refused}"
    );
    assert!(matches!(place.store.create(new.project), Err(Error::Exists(_) | Error::OtherProject { .. })));
    fs::remove_file(place.path("projects/-gone-my-engine/conversation.jsonl")).unwrap();
    assert!(matches!(place.store.create(new.project), Err(Error::OtherProject { .. })), "an ended one's folder too");
    place.put("projects/-gone-my.engine-/conversation.jsonl", SAID);
    place.put("projects/-gone-my.engine-/metadata.json", &of("/gone/my.engine/"));
    let own = place.store.current(&new).unwrap().unwrap().path;
    assert_eq!(own, place.path("projects/-gone-my.engine-/conversation.jsonl"));
}

#[cfg(unix)]
#[test]
fn a_session_is_not_begun_beside_what_cannot_be_looked_into() {
    let place = Place::of("sage-el", "2026-01-10T12:00:00Z");
    let new = NewSession::of(Path::new("/gone/engine"));
    let link = |to: &str, below: &str| {
        fs::create_dir_all(place.path(below).parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(to, place.path(below)).unwrap();
    };
    link("nowhere", "projects/-gone/conversation.jsonl");
    assert!(place.store.current(&new).unwrap().is_none(), "what is gone is no session");
    link("conversation.jsonl", "projects/-loop/conversation.jsonl");
    assert!(matches!(place.store.session(new, CURRENT), Err(Error::Io { .. })));
    let usual = "projects/-gone-engine/conversation.jsonl";
    place.put(usual, SAID);
    assert_eq!(
        place.store.current(&new).unwrap().unwrap().path,
        place.path(usual),
        "the usual place is looked at first"
    );
}

#[test]
fn only_a_session_that_goes_on_is_ended() {
    let place = Place::of("fluux", "2025-02-08T19:00:00Z");
    let ended = place.put("alice@example.com/sessions/20250101-000000.jsonl", HELLO);
    assert!(matches!(place.store.rotate(&ended, When::Now), Err(Error::Ended(_))));
    let native = Place::of("native", "2025-02-08T19:00:00Z");
    let source = native.put("sessions/s/messages.jsonl", "{}\n");
    assert!(matches!(native.store.rotate(&source, When::Now), Err(Error::CannotStore { .. })));
}

#[test]
fn nothing_is_added_to_a_session_that_was_ended() {
    for (dialect, log, ended) in [
        ("fluux", "alice@example.com/history.jsonl", "alice@example.com/sessions/20250208-190000.jsonl"),
        ("sage-el", "projects/-gone-engine/conversation.jsonl", "projects/-gone-engine/history/20250208-190000.jsonl"),
    ] {
        let place = Place::of(dialect, "2025-02-08T19:00:00Z");
        let project = Path::new("/gone/engine");
        let new = NewSession { with: Some(ALICE).filter(|_| dialect == "fluux"), ..NewSession::of(project) };
        place.store.session(new, Policy::New).unwrap().user("One").unwrap();
        let source = place.source(log);
        assert!(!place.store.is_ended(&source));
        let session = archived(place.end(log)).session;
        let (source, text) = (place.source(ended), place.read(ended));
        assert!(place.store.is_ended(&source));
        let by_source = place.store.resume_source(&source, None).err();
        let by_name = place.store.resume(session.as_str()).err();
        for refused in [by_source, by_name] {
            assert!(matches!(&refused, Some(Error::Ended(_))), "{refused:?}");
        }
        assert!(matches!(place.store.session(project, Policy::Latest).err(), Some(Error::NoSession(None))));
        assert_eq!((place.read(ended), place.path(log).exists()), (text.clone(), false), "{dialect}");
        assert!(place.store.load(session.as_str()).is_ok(), "it is read as before");
        // A file that lies in no archive is nobody's ended session.
        place.put("copy.jsonl", &text);
        assert!(place.store.resume_source(&place.source("copy.jsonl"), None).is_ok(), "{dialect}");
    }
}

#[test]
fn whom_or_what_there_is_no_place_for_is_named() {
    let long = format!("/gone/{}", "d".repeat(300));
    let folder = format!("\"-gone-{}\"…", "d".repeat(74));
    for (dialect, id, with, project, expected) in [
        (
            "fluux",
            None,
            Some("../eve"),
            "/gone",
            "cannot create a session: invalid JID \"../eve\": it leads out of the store".to_owned(),
        ),
        (
            "fluux",
            None,
            None,
            "/gone",
            "cannot create a session: a Fluux session needs the JID of a person or a room".to_owned(),
        ),
        (
            "sage-el",
            None,
            None,
            &long,
            format!("cannot create a session: the name {folder} is 306 bytes long; file systems accept 255"),
        ),
        (
            "qwen-code",
            None,
            None,
            &long,
            "cannot create a session: the path of the directory is longer than 255 bytes; Qwen Code does not record there"
                .to_owned(),
        ),
        (
            "claude-code",
            Some("mine"),
            None,
            "/gone",
            "invalid session name \"mine\": Claude Code opens only sessions whose id is a UUID".to_owned(),
        ),
    ] {
        let place = Place::of(dialect, "2025-02-08T19:00:00Z");
        let new = NewSession { id, with, project: Path::new(project) };
        assert_eq!(
            place.store.session(new, Policy::New).err().map(|error| error.to_string()),
            Some(expected),
            "{dialect}"
        );
        assert!(place.files().is_empty(), "{dialect}");
    }
}

#[cfg(unix)]
#[test]
fn nothing_goes_through_a_link() {
    let place = Place::of("fluux", "2025-02-08T19:00:00Z");
    let elsewhere = tempfile::tempdir().unwrap();
    let source = place.put("alice@example.com/history.jsonl", HELLO);
    std::os::unix::fs::symlink(elsewhere.path(), place.path("alice@example.com/sessions")).unwrap();
    assert!(matches!(place.store.rotate(&source, When::Now), Err(Error::InvalidName { .. })));
    let other = place.put("bob@example.com/real.jsonl", HELLO);
    std::os::unix::fs::symlink(&other.path, place.path("bob@example.com/history.jsonl")).unwrap();
    assert!(matches!(
        place.store.rotate(&place.source("bob@example.com/history.jsonl"), When::Now),
        Err(Error::Io { .. })
    ));
    assert!(fs::read_dir(elsewhere.path()).unwrap().next().is_none());
}

/// Another program ends the session and begins the next one at any moment while a recorder opens it: what is recorded then is in
/// the next session, and no file has lines of two.
#[test]
fn a_session_that_ends_while_it_is_opened_gets_no_more_lines() {
    for at in 0.. {
        let place = Place::of("sage-el", "2025-02-08T19:00:00Z");
        let project = place.path("project");
        let record = |store: &Store, text: &str| {
            let mut recorder = store.session(project.as_path(), CURRENT).unwrap();
            recorder.user(text).unwrap();
            recorder.close().unwrap();
        };
        record(&place.store, "one");
        // The clock is read several times while a session is opened.
        let (count, other) = (Arc::new(AtomicI64::new(0)), place.store.clone());
        let looked = Arc::clone(&count);
        let (folder, dialect, in_project) = (place.folder.path().to_path_buf(), place.dialect, project.clone());
        let now = move || {
            if looked.fetch_add(1, Ordering::Relaxed) == at {
                let mut next = other.session(in_project.as_path(), Policy::Rotate).unwrap();
                next.user("two").unwrap();
                next.close().unwrap();
            }
            "2025-02-08T19:00:01Z".parse().unwrap()
        };
        record(&Store::open(dialect, &folder, Host { now: Arc::new(now), ..host() }).unwrap(), "three");
        if count.load(Ordering::Relaxed) <= at {
            assert!(at > 0, "the clock was never read");
            return;
        }
        let mut ids = Vec::new();
        for path in place.files().into_iter().filter(|path| path.ends_with(".jsonl")) {
            let line =
                |line: &str| serde_json::from_str::<Value>(line).unwrap()["session_id"].as_str().unwrap().to_owned();
            let mut of_file: Vec<String> = place.read(&path).lines().map(line).collect();
            of_file.dedup();
            assert_eq!(of_file.len(), 1, "at {at}, {path}: {of_file:?}");
            ids.extend(of_file);
        }
        assert_eq!(ids.len(), 2, "at {at}");
    }
}
