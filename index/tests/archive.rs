//! The archive: with an index it answers as without one, whatever happened to the sessions or to the index.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use scrollback::model::Home;
use scrollback::redact::Redactor;
use scrollback::view::SessionRow;
use scrollback::view::find::Places;
use scrollback::view::listing;
use scrollback_index::query::Query;
use scrollback_index::{Answer, Archive, Depth, FoundSession, SearchOptions, Sort, SqliteIndex};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A home with sessions of Claude Code, and a place for an index.
struct Machine {
    folder: TempDir,
}

fn now() -> Timestamp {
    "2026-11-15T12:00:00Z".parse().unwrap()
}

/// One record of a session: its role, its id, its parent and its text; an answer may call a tool.
fn line(session: &str, id: &str, parent: Option<&str>, minute: u32, message: Value) -> String {
    let kind = if message["role"] == "assistant" { "assistant" } else { "user" };
    json!({
        "type": kind, "uuid": id, "parentUuid": parent, "sessionId": session, "cwd": "/gone/tides", "gitBranch": "main",
        "timestamp": format!("2026-11-14T10:{minute:02}:00.000Z"), "version": "2.1.0", "isSidechain": false,
        "message": message,
    })
    .to_string()
        + "\n"
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn answer(text: &str) -> Value {
    json!({"role": "assistant", "model": "model-1", "id": format!("m-{text}"), "content": [{"type": "text", "text": text}]})
}

fn call(id: &str, command: &str) -> Value {
    let input = json!({"command": command});
    let content = json!([{"type": "tool_use", "id": id, "name": "Bash", "input": input}]);
    json!({"role": "assistant", "model": "model-1", "id": format!("m-{id}"), "content": content})
}

fn result(id: &str, output: &str) -> Value {
    json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": output}]})
}

impl Machine {
    fn new() -> Machine {
        let machine = Machine { folder: tempfile::tempdir().unwrap() };
        fs::create_dir_all(machine.projects()).unwrap();
        machine
    }

    fn projects(&self) -> PathBuf {
        self.folder.path().join(".claude/projects/-gone-tides")
    }

    fn session(&self, name: &str) -> PathBuf {
        self.projects().join(format!("{name}.jsonl"))
    }

    fn write(&self, name: &str, lines: &[String]) {
        fs::write(self.session(name), lines.concat()).unwrap();
    }

    fn write_bytes(&self, name: &str, bytes: &[u8]) {
        fs::write(self.session(name), bytes).unwrap();
    }

    fn append(&self, name: &str, line: &str) {
        fs::OpenOptions::new()
            .append(true)
            .open(self.session(name))
            .unwrap()
            .write_all(line.as_bytes())
            .unwrap();
    }

    fn index_path(&self) -> PathBuf {
        self.folder.path().join("cache/index.db")
    }

    fn places(&self) -> Places {
        let dir = self.folder.path().to_path_buf();
        let home = Home { cwd: dir.clone(), dir, vars: Default::default() };
        Places { home, store: None, dialect: None, mask: Some(Arc::new(Redactor::built_in())) }
    }

    fn without_index(&self) -> Archive {
        Archive::new(self.places(), now())
    }

    fn with_index(&self) -> Archive {
        let mask = Arc::new(Redactor::built_in());
        let index = SqliteIndex::open(&self.index_path(), mask.fingerprint()).unwrap();
        Archive::with_index(self.places(), now(), Box::new(index), mask)
    }

    /// An archive whose index knows everything as it is now.
    fn indexed(&self, depth: Depth) -> Archive {
        let mut archive = self.with_index();
        let sources: Vec<_> = self.places().sources().into_iter().map(Result::unwrap).collect();
        let pending = archive.pending(&sources, depth);
        let refreshed = archive.read_texts(pending, depth, &|_| true);
        assert!(refreshed.unreadable.is_empty() && archive.take_problems().is_empty());
        archive
    }
}

/// The conversation of most tests: prompts, answers, a tool, a branch that was left, and Japanese.
fn tides() -> Vec<String> {
    let s = "aaaaaaaa-0000-4000-8000-000000000001";
    vec![
        line(s, "u1", None, 0, user("When is high water in Crossharbour? See src/tide_table.rs")),
        line(s, "a1", Some("u1"), 1, answer("The parseHttpResponse function knows; Élan vital.")),
        line(s, "u2", Some("a1"), 2, user("Forget the lighthouse.")),
        line(s, "a2", Some("u2"), 3, answer("The lighthouse is forgotten.")),
        line(s, "u3", Some("a1"), 4, user("東京の潮位は？")),
        line(s, "a3", Some("u3"), 5, call("c1", "curl https://tides.example/tokyo")),
        line(s, "t1", Some("a3"), 6, result("c1", &format!("connection refused {} needle", "filler ".repeat(1000)))),
        line(s, "a4", Some("t1"), 7, answer("The server refused the connection.")),
    ]
}

fn rows(archive: &mut Archive) -> Vec<SessionRow> {
    let sources = archive.places().sources().into_iter().map(Result::unwrap).collect();
    archive
        .describe(sources, listing::Depth::Whole, &|| {})
        .sessions
        .into_iter()
        .map(|(row, _)| *row)
        .collect()
}

const ALL: SearchOptions = SearchOptions { sort: Sort::Newest, sessions: 100, hits: 100, context: None };

fn search(archive: &mut Archive, query: &str) -> Answer {
    let query = Query::parse(query, now(), &TimeZone::UTC).unwrap();
    let sources = archive.places().sources().into_iter().map(Result::unwrap).collect();
    let scope = archive.describe(sources, listing::Depth::Ends, &|| {}).sessions;
    archive.search(&query, &scope, ALL)
}

/// Each hit as its record and its labels, in the order of the session.
fn hits(found: &[FoundSession]) -> Vec<String> {
    let mut hits: Vec<String> = found
        .iter()
        .flat_map(|session| &session.hits)
        .map(|hit| {
            [vec![hit.record.to_string()], hit.labels.iter().map(ToString::to_string).collect()]
                .concat()
                .join(" ")
        })
        .collect();
    hits.sort();
    hits
}

#[test]
fn a_question_finds_the_same_parts_with_an_index_and_without() {
    let machine = Machine::new();
    machine.write("aaaaaaaa-0000-4000-8000-000000000001", &tides());
    let cases: &[(&str, &[&str])] = &[
        ("water", &["u1"]),
        ("HIGH water", &["u1"]),
        ("\"high water\"", &["u1"]),
        ("\"water high\"", &[]),
        ("tide_table", &["u1"]),
        ("table", &["u1"]),
        ("src/tide_table.rs", &["u1"]),
        ("parsehttpresponse", &["a1"]),
        ("parseHttpResponse", &["a1"]),
        ("http", &["a1"]),
        ("\"the parsehttpresponse function\"", &["a1"]),
        ("the_PARSEHTTPRES*", &["a1"]),
        ("\"parsehttp response function\"", &[]),
        ("\"http response function\"", &["a1"]),
        ("elan", &["a1"]),
        ("lighthouse", &["a2 dead", "u2 dead"]),
        ("lighthouse is:dead role:user", &["u2 dead"]),
        ("lighthouse -is:dead", &[]),
        ("東京", &["u3"]),
        ("京東", &[]),
        ("潮位", &["u3"]),
        ("tokyo tool:bash", &["a3"]),
        ("refus*", &["a4", "t1"]),
        ("\"connection refused\"", &["t1"]),
        ("refused -server", &["t1"]),
        ("needle", &["t1"]),
        ("needle role:tool", &["t1"]),
        ("refused -needle", &["a4"]),
        ("water OR lighthouse -forget", &["a2 dead", "u1"]),
        ("(water OR server) -\"high water\"", &["a4"]),
        ("/refused?\\s/", &["a4", "t1"]),
        ("role:tool", &["t1"]),
        ("tool:bash", &["a3", "t1"]),
        ("since:2026-11-14T10:06:00Z", &["a4", "t1"]),
        ("until:2026-11-14T10:01:00Z", &["u1"]),
        ("water agent:codex", &[]),
        ("water agent:claude-code project:tides branch:main", &["u1"]),
        ("water (agent:codex OR high)", &["u1"]),
        ("water -agent:codex", &["u1"]),
        ("-refused role:assistant", &["a1", "a2 dead", "a3"]),
        ("in:title water", &["u1"]),
        ("in:title lighthouse", &[]),
        ("model:model-1 lighthouse", &["a2 dead"]),
        ("water -tool:bash -file:src -model:gpt", &["u1"]),
        ("lighthouse -model:model-1", &["u2 dead"]),
    ];
    for depth in [None, Some(Depth::Text), Some(Depth::Everything)] {
        let mut archive = depth.map_or_else(|| machine.without_index(), |depth| machine.indexed(depth));
        for (query, expected) in cases {
            let found = search(&mut archive, query);
            assert_eq!(hits(&found.sessions), *expected, "{query} ({depth:?})");
        }
        assert!(archive.take_problems().is_empty());
        assert_eq!(archive.has_index(), depth.is_some());
    }
}

#[test]
fn what_is_appended_replaced_renamed_or_deleted_is_noticed() {
    let machine = Machine::new();
    let (one, other) = ("aaaaaaaa-0000-4000-8000-000000000001", "bbbbbbbb-0000-4000-8000-000000000002");
    machine.write(one, &tides());
    let mut archive = machine.indexed(Depth::Text);
    let steps: &[(&str, &dyn Fn())] = &[
        ("nothing", &|| {}),
        ("append", &|| machine.append(one, &line(one, "u9", Some("a4"), 9, user("And the ferry?")))),
        ("another session", &|| machine.write(other, &[line(other, "f1", None, 1, user("The ferry sails."))])),
        ("truncate", &|| {
            let bytes = fs::read(machine.session(one)).unwrap();
            fs::write(machine.session(one), &bytes[..bytes.len() / 2]).unwrap();
        }),
        ("replace", &|| {
            let beside = machine.projects().join("new");
            fs::write(&beside, line(one, "n1", None, 1, user("A new ferry."))).unwrap();
            fs::rename(beside, machine.session(one)).unwrap();
        }),
        ("rename", &|| {
            fs::rename(machine.session(other), machine.session("cccccccc-0000-4000-8000-000000000003")).unwrap()
        }),
        ("delete", &|| fs::remove_file(machine.session(one)).unwrap()),
    ];
    for (step, change) in steps {
        change();
        let mut fresh = machine.without_index();
        assert_eq!(rows(&mut archive), rows(&mut fresh), "{step}");
        for query in ["ferry", "water", "role:user"] {
            let (known, read) = (search(&mut archive, query), search(&mut fresh, query));
            assert_eq!(known.sessions, read.sessions, "{query} after {step}");
        }
        // And again, with what was learned.
        archive = machine.indexed(Depth::Text);
        assert_eq!(search(&mut archive, "ferry").sessions, search(&mut fresh, "ferry").sessions, "{step}, indexed");
    }
}

/// Its beginning and its end stay as they were; where it has also grown, it is another file.
#[test]
fn an_edit_in_the_middle_is_noticed() {
    let machine = Machine::new();
    let session = "aaaaaaaa-0000-4000-8000-000000000001";
    let id = |number: u32| format!("u{number}");
    let text =
        |number: u32| if number == 40 { "pineapple".to_owned() } else { format!("{number} {}", "water ".repeat(40)) };
    let parent = |number: u32| number.checked_sub(1).map(id);
    let lines: Vec<String> = (0..80)
        .map(|number| line(session, &id(number), parent(number).as_deref(), number % 60, user(&text(number))))
        .collect();
    machine.write(session, &lines);
    let mut archive = machine.indexed(Depth::Text);
    type Edit<'a> = (&'a str, &'a str, &'a dyn Fn(&str));
    let edits: [Edit<'_>; 3] = [
        ("pineapple", "blueberry", &|text| fs::write(machine.session(session), text).unwrap()),
        ("blueberry", "grapevine", &|text| {
            let beside = machine.projects().join("new");
            fs::write(&beside, text).unwrap();
            fs::rename(beside, machine.session(session)).unwrap();
        }),
        ("grapevine", "raspberry", &|text| {
            let beside = machine.projects().join("new");
            fs::write(&beside, format!("{text}{}", line(session, "u80", Some("u79"), 59, user("at its end")))).unwrap();
            fs::rename(beside, machine.session(session)).unwrap();
        }),
    ];
    for (before, after, write) in edits {
        write(&fs::read_to_string(machine.session(session)).unwrap().replace(before, after));
        for archive in [&mut archive, &mut machine.indexed(Depth::Text)] {
            assert_eq!(search(archive, after).sessions.len(), 1, "{after}");
            assert_eq!(search(archive, before).sessions.len(), 0, "{before}");
        }
    }
}

#[test]
fn a_session_that_grows_is_known_as_one_that_is_read_whole() {
    let id = "aaaaaaaa-0000-4000-8000-000000000001";
    let mut lines = tides();
    lines.extend([
        // The tail of an answer in several lines, a way back, and a compaction: they change what was known of earlier records.
        line(id, "a5", Some("a4"), 9, answer("The ferry")),
        line(id, "u6", Some("u1"), 10, user("Another lighthouse, from the beginning.")),
        line(id, "a6", Some("u6"), 11, answer("It stands on a rock.")),
        json!({"type": "system", "subtype": "compact_boundary", "uuid": "c1", "parentUuid": null, "logicalParentUuid": "a6",
            "sessionId": id, "timestamp": "2026-11-14T10:12:00Z", "content": "Conversation compacted"})
        .to_string()
            + "\n",
        line(id, "u7", Some("c1"), 13, user("Go on about the lighthouse.")),
    ]);
    let text = lines.concat();
    let questions =
        ["lighthouse", "water is:dead", "is:compacted", "is:dead", "ferry", "role:tool", "refus*", "needle"];
    for step in [97, 613, 2_000] {
        let machine = Machine::new();
        machine.write_bytes(id, b"");
        let mut archive = machine.indexed(Depth::Text);
        for end in (0..text.len()).step_by(step).chain([text.len()]) {
            machine.write_bytes(id, &text.as_bytes()[..end]);
            let mut fresh = machine.without_index();
            assert_eq!(rows(&mut archive), rows(&mut fresh), "at {end}");
            for question in questions {
                let (known, read) = (search(&mut archive, question), search(&mut fresh, question));
                let (known, read) = (hits(&known.sessions), hits(&read.sessions));
                assert_eq!(known, read, "{question} at {end}, in steps of {step}");
            }
        }
    }
}

#[test]
fn a_damaged_index_is_moved_aside_and_the_answers_stay() {
    let machine = Machine::new();
    machine.write("aaaaaaaa-0000-4000-8000-000000000001", &tides());
    drop(machine.indexed(Depth::Text));
    let whole = fs::read(machine.index_path()).unwrap();
    let damages: Vec<(&str, Vec<u8>)> = vec![
        ("empty", Vec::new()),
        ("zeros", vec![0; whole.len()]),
        ("text", b"these are my notes\n".repeat(500)),
        ("half", whole[..whole.len() / 2].to_vec()),
        ("no end", whole[..whole.len() - 4096].to_vec()),
        ("a page of zeros", [&whole[..4096], &[0; 4096], &whole[8192..]].concat()),
    ];
    for (damage, bytes) in damages {
        for ending in ["db-wal", "db-shm"] {
            drop(fs::remove_file(machine.index_path().with_extension(ending)));
        }
        fs::write(machine.index_path(), bytes).unwrap();
        let mut archive = machine.with_index();
        assert_eq!(hits(&search(&mut archive, "water").sessions), ["u1"], "{damage}");
        assert_eq!(rows(&mut archive), rows(&mut machine.without_index()), "{damage}");
    }
}

/// SQLite sees only damage to its own structure, not a row that says something else.
#[test]
fn an_index_that_another_program_changed_is_made_anew() {
    let machine = Machine::new();
    machine.write("aaaaaaaa-0000-4000-8000-000000000001", &tides());
    drop(machine.indexed(Depth::Text));
    assert!(!SqliteIndex::open(&machine.index_path(), 0).unwrap().was_changed(), "nobody changed it");
    let rules = Redactor::built_in().fingerprint();
    drop(machine.indexed(Depth::Text));
    let whole = fs::read(machine.index_path()).unwrap();
    for at in (4096..whole.len()).step_by(whole.len() / 40) {
        let mut flipped = whole.clone();
        flipped[at] ^= 4;
        fs::write(machine.index_path(), flipped).unwrap();
        // Times of files are coarse: in life, nobody else writes within the same tick.
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(at as u64);
        fs::File::options().write(true).open(machine.index_path()).unwrap().set_modified(later).unwrap();
        assert!(SqliteIndex::open_known(&machine.index_path(), rules).unwrap().is_none(), "byte {at}");
        let mut archive = machine.with_index();
        assert_eq!(rows(&mut archive), rows(&mut machine.without_index()), "byte {at}");
        assert_eq!(hits(&search(&mut archive, "refused").sessions), ["a4", "t1"], "byte {at}");
        assert_eq!(archive.take_problems().len(), 0, "byte {at}");
    }
}

#[test]
fn an_index_of_a_newer_version_is_refused() {
    let machine = Machine::new();
    drop(machine.with_index());
    let path = machine.index_path();
    rusqlite::Connection::open(&path).unwrap().execute_batch("pragma user_version = 99").unwrap();
    let error = SqliteIndex::open(&path, 0).err().unwrap().to_string();
    assert!(error.ends_with("index.db: the index was made by a newer version of scrollback"), "{error}");
    assert!(path.exists());
}

#[test]
fn an_index_of_an_older_version_is_made_anew() {
    let machine = Machine::new();
    machine.write("aaaaaaaa-0000-4000-8000-000000000001", &tides());
    drop(machine.indexed(Depth::Text));
    let path = machine.index_path();
    let older = "drop table parts; drop table words; create table parts(other text); pragma user_version = 1";
    rusqlite::Connection::open(&path).unwrap().execute_batch(older).unwrap();
    let index = SqliteIndex::open(&path, 0).unwrap();
    assert_eq!(index.set_aside(), None);
    drop(index);
    let mut archive = machine.indexed(Depth::Text);
    assert_eq!(hits(&search(&mut archive, "water").sessions), ["u1"]);
    let beside = fs::read_dir(path.parent().unwrap())
        .unwrap()
        .filter(|file| file.as_ref().unwrap().file_name().to_string_lossy().contains("aside"));
    assert_eq!(beside.count(), 0);
}

#[test]
fn no_secret_is_in_the_index() {
    let machine = Machine::new();
    let secret = format!("{}{}", "ghp_", "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dF3hJ5");
    let s = "aaaaaaaa-0000-4000-8000-000000000001";
    let lines = [
        line(s, "u1", None, 0, user(&format!("Use {secret} for the tide gauge"))),
        line(s, "a1", Some("u1"), 1, call("c1", "cat .env")),
        line(s, "t1", Some("a1"), 2, result("c1", "TIDE_GAUGE=quiet-harbour-canary")),
    ];
    machine.write(s, &lines);
    let mut archive = machine.indexed(Depth::Everything);
    assert_eq!(hits(&search(&mut archive, "gauge role:user").sessions), ["u1"]);
    drop(archive);
    for entry in fs::read_dir(machine.index_path().parent().unwrap()).unwrap() {
        let path = entry.unwrap().path();
        let bytes = fs::read(&path).unwrap().to_ascii_lowercase();
        for canary in [secret.to_ascii_lowercase(), "canary".to_owned(), "ab3de5gh7".to_owned()] {
            let found = bytes.windows(canary.len()).any(|window| window == canary.as_bytes());
            assert!(!found, "{canary} in {}", path.display());
        }
    }
    assert_eq!(mode(&machine.index_path()), 0o600);
}

#[cfg(unix)]
fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_record_that_forks_repeat_is_one_hit() {
    let machine = Machine::new();
    let (one, fork) = ("aaaaaaaa-0000-4000-8000-000000000001", "bbbbbbbb-0000-4000-8000-000000000002");
    machine.write(one, &tides());
    let copied: Vec<String> = tides().iter().map(|line| line.replace(one, fork)).collect();
    machine
        .write(fork, &[copied, vec![line(fork, "u9", Some("a4"), 9, user("Only the fork has water wings."))]].concat());
    for mut archive in [machine.without_index(), machine.indexed(Depth::Text)] {
        let found = search(&mut archive, "water");
        let of_first: Vec<_> = found
            .sessions
            .iter()
            .flat_map(|session| &session.hits)
            .map(|hit| (hit.record.to_string(), hit.also_in.len()))
            .collect();
        assert_eq!(of_first, [("u9".to_owned(), 0), ("u1".to_owned(), 1)]);
    }
}

#[test]
fn a_word_that_occurs_nowhere_has_a_suggestion() {
    let machine = Machine::new();
    machine.write("aaaaaaaa-0000-4000-8000-000000000001", &tides());
    let mut archive = machine.indexed(Depth::Text);
    assert_eq!(search(&mut archive, "lighthuose").suggestion, Some(("lighthuose".to_owned(), "lighthouse".to_owned())));
    assert_eq!(search(&mut archive, "qqqqq").suggestion, None);
}
