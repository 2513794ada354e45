//! Older sessions: recorded into as they are, and the rows of a database brought into the native store.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::native;
use crate::support::place::host_at;
use jiff::Timestamp;
use scrollback::dialect;
use scrollback::model::{Error, Host, LossKind, Part};
use scrollback::session::{ReadOptions, Session, Source};
use scrollback::transfer::import::{self, Imported, Run};
use scrollback::write::Store;
use serde_json::Value;

fn host() -> Host {
    host_at(now())
}

fn now() -> Timestamp {
    "2027-01-01T00:00:00Z".parse().unwrap()
}

fn open(path: &Path) -> Session {
    Session::open(&Source::file(native(), path), &ReadOptions::plain(now())).unwrap()
}

fn branch(session: &Session) -> Vec<String> {
    let records = session.head().map(|head| session.branch(head).records).unwrap_or_default();
    records.iter().map(|record| record.id().into_owned()).collect()
}

/// Every native case: plain messages, documented and shipped Sage, broken ones too.
#[test]
fn recording_into_an_older_session_keeps_every_byte_and_goes_on_from_its_head() {
    let mut tried = 0;
    for case in fs::read_dir(crate::support::corpus().join("native")).unwrap() {
        let case = case.unwrap().path();
        let Ok(before) = fs::read(case.join("messages.jsonl")) else { continue };
        let name = case.file_name().unwrap().to_string_lossy().into_owned();
        let store = tempfile::tempdir().unwrap();
        let folder = store.path().join("sessions").join(&name);
        fs::create_dir_all(&folder).unwrap();
        for file in fs::read_dir(&case).unwrap().map(|file| file.unwrap().path()).filter(|file| file.is_file()) {
            fs::copy(&file, folder.join(file.file_name().unwrap())).unwrap();
        }
        let log = folder.join("messages.jsonl");
        let chain = branch(&open(&log));
        let source = Source::file(native(), &log);
        let mut recorder = Store::open(native(), store.path(), host()).unwrap().resume_source(&source, None).unwrap();
        let asked = recorder.user("And tomorrow?").unwrap().id().unwrap().to_string();
        let answered = recorder.assistant("At 04:58.").unwrap().id().unwrap().to_string();
        recorder.close().unwrap();
        let after = fs::read(&log).unwrap();
        assert!(after.starts_with(&before), "{name}");
        let added = &after[before.len()..];
        let added: Vec<Value> =
            added.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
        assert!(added.len() == 2 && added.iter().all(|line| line["format"] == 2), "{name}: {added:?}");
        let expected: Vec<String> = chain.into_iter().chain([asked, answered]).collect();
        let now = branch(&open(&log));
        assert!(now.ends_with(&expected), "{name}: {now:?} should end with {expected:?}");
        tried += 1;
    }
    assert!(tried > 50, "{tried}");
}

const TABLE: &str = "CREATE TABLE agents (id TEXT, execution_id TEXT, model TEXT, prompt TEXT, status TEXT, result TEXT, \
                     result_structured TEXT, log_path TEXT, error TEXT, started_at TEXT, completed_at TEXT, created_at TEXT, \
                     tokens_input INTEGER, tokens_output INTEGER);";

/// A database with these rows, and a folder for a store.
fn database(rows: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("smithers.db");
    rusqlite::Connection::open(&path).unwrap().execute_batch(&format!("{TABLE}{rows}")).unwrap();
    (folder, path)
}

fn row(id: &str, prompt: &str, result: &str) -> String {
    format!(
        "INSERT INTO agents (id, model, prompt, status, result, created_at, completed_at, tokens_input, tokens_output) VALUES \
         ('{id}', 'sonnet', '{prompt}', 'completed', '{result}', '2025-11-01T10:00:00Z', '2025-11-01T10:01:00Z', 12, 34);"
    )
}

/// A folder for files on the way, beside a database.
fn scratch(database: &Path) -> PathBuf {
    let scratch = database.with_file_name("scratch");
    fs::create_dir_all(&scratch).unwrap();
    scratch
}

fn import_all(database: &Path, run: Run<'_>) -> Vec<Imported> {
    let store = database.with_file_name("store");
    let rows = import::sessions(database).unwrap();
    import::import(&rows, &store, &host(), run).into_iter().map(Result::unwrap).collect()
}

/// What came of each, in a word.
fn words(imported: &[Imported]) -> Vec<&'static str> {
    let word = |one: &Imported| match one {
        Imported::New(_) => "new",
        Imported::Would(_) => "would",
        Imported::Known(_) => "known",
        Imported::Grown(_) => "grown",
        Imported::Taken(_) => "taken",
        Imported::Empty => "empty",
    };
    imported.iter().map(word).collect()
}

#[test]
fn rows_become_sessions_once() {
    let (_folder, path) = database(&(row("a1", "Go.", "Done.") + &row("a2", "Stop.", "Stopped.")));
    let scratch = scratch(&path);
    let rehearsed = import_all(&path, Run::Rehearsal(&scratch));
    assert_eq!(words(&rehearsed), ["would", "would"]);
    assert!(!path.with_file_name("store").exists());
    let first = import_all(&path, Run::Import);
    assert_eq!(words(&first), ["new", "new"]);
    for (done, would) in first.iter().zip(&rehearsed) {
        let (Imported::New(done), Imported::Would(would)) = (done, would) else { panic!("{done:?}") };
        assert_eq!((&done.session, &done.path, &done.losses), (&would.session, &would.path, &would.losses));
        let session = open(&done.path);
        assert_eq!(session.records().len(), 2);
        assert_eq!(session.usage().unwrap().output, Some(34));
        assert_eq!(session.models(), ["sonnet"]);
        assert_eq!(session.updated(), Some("2025-11-01T10:01:00Z".parse().unwrap()));
    }
    assert_eq!(words(&import_all(&path, Run::Import)), ["known", "known"]);
    assert_eq!(words(&import_all(&path, Run::Rehearsal(&scratch))), ["known", "known"]);
    let change = "UPDATE agents SET completed_at = '2025-11-02T10:00:00Z' WHERE id = 'a1'; UPDATE agents SET prompt = 'Other.' WHERE id = 'a2';";
    rusqlite::Connection::open(&path).unwrap().execute_batch(change).unwrap();
    assert_eq!(words(&import_all(&path, Run::Import)), ["grown", "taken"]);
}

#[test]
fn a_row_with_a_readable_log_is_imported_from_the_log() {
    let (folder, path) = database("");
    let log = crate::support::corpus().join("ai-sdk/row-log/log.jsonl");
    fs::copy(log, folder.path().join("log.jsonl")).unwrap();
    let insert = "INSERT INTO agents (id, model, prompt, status, log_path) VALUES ('a1', 'm', 'p', 'completed', 'log.jsonl'), \
                  ('a2', 'm', 'p', 'completed', 'gone.jsonl');";
    rusqlite::Connection::open(&path).unwrap().execute_batch(insert).unwrap();
    let imported = import_all(&path, Run::Import);
    assert_eq!(words(&imported), ["new", "new"]);
    let Imported::New(of_log) = &imported[0] else { panic!("{imported:?}") };
    let reading = ReadOptions::plain(now());
    let log = Session::open(
        &Source::file(dialect::named("claude-code").unwrap(), &folder.path().join("log.jsonl")),
        &reading,
    );
    let log = log.unwrap();
    let parts = |session: &Session| {
        crate::support::messages(session).into_iter().map(|message| message.parts).collect::<Vec<_>>()
    };
    assert_eq!(parts(&open(&of_log.path)), parts(&log));
    let row = of_log.losses.iter().find(|row| row.what.name() == "field" && row.record == "a1").unwrap();
    assert_eq!((row.kind, row.fields.join(" ")), (LossKind::Dropped, "model prompt status".to_owned()));
    let Imported::New(of_row) = &imported[1] else { panic!("{imported:?}") };
    assert_eq!(parts(&open(&of_row.path))[0], [Part::text("p")], "a log that is gone leaves what the row says");
}

#[test]
fn what_a_row_says_is_in_its_session_and_nothing_is_invented() {
    for (columns, values, kind, failure, output) in [
        ("status, result", "'completed', 'Done.'", None, None, None),
        ("status, result, result_structured", "'completed', 'Done.', '{\"high\":true}'", None, None, None),
        ("status, result, tokens_output", "'completed', 'Done.', 34", None, None, Some(34)),
        ("status, result, tokens_output", "'completed', 'Done.', 1e30", None, None, None),
        ("status, result, tokens_output", "'completed', 'Done.', 'many'", None, None, None),
        ("status, error", "'failed', 'boom'", Some("failed"), Some("boom"), None),
        ("status, error", "'completed', 'boom'", Some("error"), Some("boom"), None),
        ("status", "'cancelled'", Some("cancelled"), Some("cancelled"), None),
    ] {
        let insert = format!(
            "INSERT INTO agents (id, model, prompt, created_at, completed_at, {columns}) VALUES ('a', 'm', 'When is high water?', \
             '2025-11-01T10:00:00Z', '2025-11-01T10:01:00Z', {values});"
        );
        let (_folder, path) = database(&insert);
        let imported = import_all(&path, Run::Import);
        let Imported::New(done) = &imported[0] else { panic!("{imported:?}") };
        let dropped: Vec<_> = done.losses.iter().filter(|row| row.kind == LossKind::Dropped).collect();
        assert!(dropped.is_empty(), "{values}: {dropped:?}");
        let session = open(&done.path);
        assert_eq!(session.usage().and_then(|usage| usage.output), output, "{values}");
        let answer = session.head().unwrap().body().unwrap();
        let said = answer.content().unwrap();
        assert_eq!(said.error.as_deref(), kind, "{values}");
        let text = fs::read_to_string(&done.path).unwrap();
        assert!(failure.is_none_or(|failure| text.contains(&format!("\"text\":\"{failure}\""))), "{values}: {text}");
        assert!(!text.contains("9223372036854775807"), "{values}: {text}");
        assert!(!values.contains("1e30") || text.contains("\"tokens_output\":1e+30"), "{values}: {text}");
    }
}

#[test]
fn odd_rows_are_imported_as_far_as_they_say_anything() {
    let rows = "INSERT INTO agents (id) VALUES (NULL), ('a'), ('a'), (x'00ff'), (7); \
                INSERT INTO agents (id, prompt) VALUES (NULL, 'one'), ('', 'two'), ('../../x', 'three'), (x'ff', 'four'); \
                INSERT INTO agents (id, prompt, status, created_at) VALUES ('b', x'ff41', 9, 1761991200);";
    let (folder, path) = database(rows);
    let rehearsed = import_all(&path, Run::Rehearsal(&scratch(&path)));
    let imported = import_all(&path, Run::Import);
    assert_eq!(
        words(&rehearsed),
        words(&imported).iter().map(|word| if *word == "new" { "would" } else { *word }).collect::<Vec<_>>()
    );
    assert_eq!(words(&imported), ["empty", "empty", "empty", "empty", "empty", "new", "new", "new", "new", "new"]);
    assert_eq!(words(&import_all(&path, Run::Import))[5..], ["known"; 5]);
    let names: Vec<String> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    assert!(names.iter().all(|name| ["store", "scratch", "smithers.db"].contains(&name.as_str())), "{names:?}");
}

#[test]
fn a_row_that_tells_no_time_and_no_place_has_those_of_its_database() {
    let (folder, path) = database("INSERT INTO agents (id, prompt, result) VALUES ('a', 'Go.', 'Gone.');");
    let changed = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
    fs::File::options().write(true).open(&path).unwrap().set_modified(changed).unwrap();
    let imported = import_all(&path, Run::Import);
    let Imported::New(done) = &imported[0] else { panic!("{imported:?}") };
    let session = open(&done.path);
    assert_eq!(session.updated(), Some(Timestamp::try_from(changed).unwrap()));
    let store = Store::open(dialect::named("native").unwrap(), &path.with_file_name("store"), host()).unwrap();
    let row = store.list(None).rows.swap_remove(0);
    assert_eq!(row.project.map(PathBuf::from), Some(folder.path().to_path_buf()));
    assert!(
        done.losses.iter().any(|row| row.what.name() == "timestamp" && row.kind == LossKind::Synthesised),
        "{:?}",
        done.losses
    );
}

#[test]
fn what_is_no_database_of_agents_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("text.db"), "not a database").unwrap();
    fs::write(path("empty.db"), "").unwrap();
    fs::write(path("damaged.db"), [b"SQLite format 3\0".as_slice(), &[7; 4000]].concat()).unwrap();
    rusqlite::Connection::open(path("other.db"))
        .unwrap()
        .execute_batch("CREATE TABLE agents (id, name);")
        .unwrap();
    for (name, expected) in [
        ("text.db", "not a SQLite database"),
        ("empty.db", "not a SQLite database"),
        ("damaged.db", "not a database"),
        ("other.db", "not a database of a known agent"),
        ("gone.db", "No such file"),
    ] {
        let error = import::sessions(&path(name)).unwrap_err().to_string();
        assert!(error.contains(expected), "{name}: {error}");
    }
    let (_folder, locked) = database(&row("a", "Go.", "Done."));
    let writer = rusqlite::Connection::open(&locked).unwrap();
    writer.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let error = import::sessions(&locked).unwrap_err();
    assert!(matches!(error, Error::Database { .. }), "{error}");
}

#[test]
fn the_file_beside_an_imported_row_tells_how_it_ended() {
    for (status, result, error, state) in [
        ("completed", "'At 04:12.'", "NULL", "completed"),
        ("failed", "NULL", "'no connection'", "failed"),
        ("failed", "'At'", "NULL", "failed"),
        ("cancelled", "NULL", "NULL", "failed"),
        ("running", "NULL", "NULL", "active"),
        ("pending", "NULL", "NULL", "active"),
    ] {
        let (_folder, path) = database(&format!(
            "INSERT INTO agents (id, model, prompt, status, result, error, created_at) VALUES \
             ('a', 'sonnet', 'When is high water?', '{status}', {result}, {error}, '2025-11-01T10:00:00Z');"
        ));
        import_all(&path, Run::Import);
        let sessions = fs::read_dir(path.with_file_name("store").join("sessions")).unwrap();
        let beside: Vec<PathBuf> = sessions.map(|folder| folder.unwrap().path().join("metadata.json")).collect();
        let told: Value = serde_json::from_slice(&fs::read(&beside[0]).unwrap()).unwrap();
        assert_eq!((beside.len(), told["state"].as_str()), (1, Some(state)), "{status}");
    }
}
