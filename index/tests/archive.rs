//! The archive: with an index it answers as without one, whatever happened to the sessions or to the index.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
fn a_word_that_is_in_no_session_has_a_suggestion_that_is_in_one() {
    let machine = Machine::new();
    let (one, gone) = ("aaaaaaaa-0000-4000-8000-000000000001", "bbbbbbbb-0000-4000-8000-000000000002");
    machine.write(one, &tides());
    machine.write(gone, &[line(gone, "g1", None, 0, user("The lighthousf and the quokkas."))]);
    for mut archive in [machine.without_index(), machine.indexed(Depth::Text)] {
        let suggested = |archive: &mut Archive, query: &str| search(archive, query).suggestion.map(|(_, near)| near);
        assert_eq!(suggested(&mut archive, "lighthuose").as_deref(), Some("lighthouse"));
        // What is wrong is the second letter: it is in the wrong place, too many, missing, or another one.
        for word in ["qoukkas", "qxuokkas", "qokkas", "qaokkas"] {
            assert_eq!(suggested(&mut archive, word).as_deref(), Some("quokkas"), "{word}");
        }
        assert_eq!(suggested(&mut archive, "ferry quokka").as_deref(), Some("quokkas"));
        assert_eq!(suggested(&mut archive, "qqqqq"), None);
        // It is beyond what is indexed of an output.
        assert_eq!(suggested(&mut archive, "needle nobody"), None);
    }
    // Half of the sessions are asked, and a similar word is only in the others.
    let mut archive = machine.indexed(Depth::Text);
    let query = Query::parse("quokka", now(), &TimeZone::UTC).unwrap();
    let sources = archive.places().sources().into_iter().map(Result::unwrap).collect();
    let mut scope = archive.describe(sources, listing::Depth::Ends, &|| {}).sessions;
    scope.retain(|(row, _)| row.id.as_str() == one);
    assert_eq!(archive.search(&query, &scope, ALL).suggestion, None);
    fs::remove_file(machine.session(gone)).unwrap();
    let mut archive = machine.indexed(Depth::Text);
    assert_eq!(search(&mut archive, "quokka").suggestion, None, "the session is gone");
}

/// Row numbers follow the order of storing, and a session that is read again gets the greatest ones.
#[test]
fn of_too_many_matches_the_newest_count_whatever_was_stored_last() {
    let machine = Machine::new();
    let widgets = |session: &str, day: &str, numbers: std::ops::Range<u32>| -> String {
        let record = |number: u32| {
            let at = format!("{day}T10:{:02}:{:02}.{:03}Z", number / 60 % 60, number % 60, number / 3600);
            json!({"type": "user", "uuid": format!("{session}{number}"), "parentUuid": null, "sessionId": session,
                "timestamp": at, "version": "2.1.0", "message": {"role": "user", "content": format!("widget {number}")}})
        };
        numbers.map(|number| format!("{}\n", record(number))).collect()
    };
    let (old, new) = ("aaaaaaaa-0000-4000-8000-000000000001", "bbbbbbbb-0000-4000-8000-000000000002");
    machine.write_bytes(new, widgets("b", "2026-11-13", 0..3).as_bytes());
    machine.indexed(Depth::Text);
    machine.write_bytes(old, widgets("a", "2026-01-05", 0..5_100).as_bytes());
    let all = SearchOptions { hits: 10_000, ..ALL };
    let mut appended = 0;
    for question in ["widget", "role:user", "widget -3", "since:2026-01-01", "widg*", "-nowhere role:user"] {
        let query = Query::parse(question, now(), &TimeZone::UTC).unwrap();
        let found = |archive: &mut Archive| {
            let sources = archive.places().sources().into_iter().map(Result::unwrap).collect();
            let scope = archive.describe(sources, listing::Depth::Ends, &|| {}).sessions;
            archive.search(&query, &scope, all).sessions
        };
        let (known, read) = (found(&mut machine.indexed(Depth::Text)), found(&mut machine.without_index()));
        let records = |found: &[FoundSession]| -> Vec<Vec<String>> {
            found.iter().map(|session| hits(std::slice::from_ref(session))).collect()
        };
        assert_eq!(records(&known), records(&read), "{question}");
        assert!(known[0].hits.len() >= 2 && known[0].hits[0].record.as_str().starts_with('b'), "{question}");
        assert_eq!(known.iter().map(|session| session.hits.len()).sum::<usize>(), 5_000, "{question}");
        // And what is stored last may be the newest, too.
        appended += 1;
        machine.append(new, &widgets("b", "2026-11-14", appended * 3..appended * 3 + 3));
    }
}

#[test]
fn relevance_means_the_same_with_an_index_and_without() {
    let machine = Machine::new();
    let texts = [
        "A lighthouse, and the weather was such that nobody on the whole coast could see anything of it before noon.",
        "Lighthouse by lighthouse by lighthouse.",
        "The lighthouse is closed on Mondays and in the winter.",
        "Nothing about it here.",
        "The ferry sails.",
    ];
    for (at, text) in texts.iter().enumerate() {
        let session = format!("{at}aaaaaaa-0000-4000-8000-000000000001");
        machine.write(&session, &[line(&session, &format!("u{at}"), None, at as u32, user(text))]);
    }
    for mut archive in [machine.without_index(), machine.indexed(Depth::Text)] {
        let query = Query::parse("lighthouse", now(), &TimeZone::UTC).unwrap();
        let sources = archive.places().sources().into_iter().map(Result::unwrap).collect();
        let scope = archive.describe(sources, listing::Depth::Ends, &|| {}).sessions;
        let found = archive.search(&query, &scope, SearchOptions { sort: Sort::Relevance, ..ALL }).sessions;
        let records: Vec<&str> = found.iter().map(|session| session.hits[0].record.as_str()).collect();
        assert_eq!(records, ["u1", "u2", "u0"]);
    }
}

#[test]
fn a_title_is_found_with_the_record_that_has_it_or_with_the_first_message() {
    let machine = Machine::new();
    let (prompted, named) = ("aaaaaaaa-0000-4000-8000-000000000001", "bbbbbbbb-0000-4000-8000-000000000002");
    let snapshot = |session: &str| {
        let snapshot = json!({"messageId": "s", "trackedFileBackups": {}, "timestamp": "2026-11-14T09:00:00Z"});
        json!({"type": "file-history-snapshot", "messageId": "s", "sessionId": session, "snapshot": snapshot})
            .to_string()
            + "\n"
    };
    let title =
        json!({"type": "custom-title", "customTitle": "Tides of Crossharbour", "sessionId": named}).to_string() + "\n";
    machine.write(prompted, &[vec![snapshot(prompted)], tides()].concat());
    machine.write(named, &[snapshot(named), line(named, "f1", None, 1, user("The ferry?")), title]);
    for mut archive in [machine.without_index(), machine.indexed(Depth::Text)] {
        assert_eq!(hits(&search(&mut archive, "in:title crossharbour").sessions), ["f1", "u1"]);
    }
}

/// Some agents attach several texts to one record, and say beside them what people see.
#[test]
fn each_part_has_a_number_of_its_own() {
    let machine = Machine::new();
    let session = "aaaaaaaa-0000-4000-8000-000000000001";
    let rendered = json!([
        {"content": "Called the Read tool with the gauge."},
        {"content": "Result: seven metres."}
    ]);
    let attachment = json!({"type": "file", "filename": "tide.md", "displayPath": "tide.md",
        "content": {"type": "text", "file": {"filePath": "tide.md", "content": "high", "numLines": 1}}});
    let attached = json!({"type": "attachment", "uuid": "x1", "parentUuid": "u1", "sessionId": session,
        "timestamp": "2026-11-14T10:01:00Z", "version": "2.1.0", "rendered": rendered, "attachment": attachment})
    .to_string()
        + "\n";
    machine.write(session, &[line(session, "u1", None, 0, user("See @tide.md")), attached]);
    let mut archive = machine.indexed(Depth::Text);
    let found = search(&mut archive, "since:2026-01-01");
    let mut parts: Vec<(String, usize)> =
        found.sessions[0].hits.iter().map(|hit| (hit.record.to_string(), hit.part)).collect();
    let all = parts.len();
    parts.sort();
    parts.dedup();
    assert_eq!(parts.len(), all, "{parts:?}");
    assert!(all > 2, "{parts:?}");
    let sources: Vec<_> = archive.places().sources().into_iter().map(Result::unwrap).collect();
    assert!(archive.verify(&sources, &|_| true).wrong.is_empty());
}

#[test]
fn nothing_of_a_session_that_is_gone_or_excluded_stays() {
    let machine = Machine::new();
    let (one, other) = ("aaaaaaaa-0000-4000-8000-000000000001", "bbbbbbbb-0000-4000-8000-000000000002");
    let secret = |session: &str, parent: &str| {
        let input = json!({"file_path": "/gone/quokkafile.md", "content": "walrusword"});
        let content = json!([{"type": "tool_use", "id": "w1", "name": "Write", "input": input}]);
        line(
            session,
            "w1",
            Some(parent),
            3,
            json!({"role": "assistant", "model": "quokkamodel", "id": "m9", "content": content}),
        )
    };
    machine.write(one, &[line(one, "u1", None, 0, user("high water"))]);
    let has_words = || {
        let bytes = fs::read(machine.index_path()).unwrap();
        ["quokkafile", "quokkamodel", "walrusword"].map(|word| memchr::memmem::find(&bytes, word.as_bytes()).is_some())
    };
    for excludes in [false, true] {
        machine.write(other, &[line(other, "u2", None, 2, user("low water")), secret(other, "u2")]);
        drop(machine.indexed(Depth::Text));
        assert_eq!(has_words(), [true; 3]);
        let mut archive = machine.with_index();
        if excludes {
            archive = archive.excluding(vec![machine.session(other)]);
            assert_eq!(archive.forget_excluded(), 1);
        } else {
            fs::remove_file(machine.session(other)).unwrap();
            assert_eq!(archive.forget_missing(), 1);
        }
        drop(archive);
        assert_eq!(has_words(), [false; 3], "{excludes}");
    }
}

/// While the index is open, or after a crash, its seal says nothing.
#[test]
fn a_bit_that_flips_in_what_is_stored_of_a_session_is_noticed() {
    let machine = Machine::new();
    let session = "aaaaaaaa-0000-4000-8000-000000000001";
    let paid = |number: u32| {
        let mut message = answer(&number.to_string());
        message["usage"] = json!({"input_tokens": number, "output_tokens": 7});
        line(session, &format!("p{number}"), Some("a4"), 10 + number, message)
    };
    machine.write(session, &[tides(), (0..20).map(paid).collect()].concat());
    let sources: Vec<_> = machine.places().sources().into_iter().map(Result::unwrap).collect();
    let whole = |archive: &mut Archive| {
        let mut sessions = archive.describe(sources.clone(), listing::Depth::Whole, &|| {}).sessions;
        archive.add_requests(&mut sessions);
        let rows: Vec<SessionRow> = sessions.iter().map(|(row, _)| (**row).clone()).collect();
        let counts = archive.count(sessions, &|_| true, &|| {});
        (rows, counts.sessions.into_iter().map(|session| session.counts).collect::<Vec<_>>())
    };
    let mut fresh = machine.without_index();
    let mut expected = whole(&mut fresh);
    expected.0 = rows(&mut machine.without_index());
    for (table, column) in [
        ("cards", "card"),
        ("cards", "requests"),
        ("counts", "counts"),
        ("bookmarks", "checkpoint"),
        ("bookmarks", "standings"),
    ] {
        let mut archive = machine.indexed(Depth::Text);
        assert!(archive.verify(&sources, &|_| true).wrong.is_empty(), "{table}.{column}");
        let connection = rusqlite::Connection::open(machine.index_path()).unwrap();
        let read = format!("select {column} from {table}");
        let mut bytes: Vec<u8> = connection.query_row(&read, [], |row| row.get(0)).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        connection.execute(&format!("update {table} set {column} = ?1"), [bytes]).unwrap();
        drop(connection);
        assert_eq!(archive.verify(&sources, &|_| true).wrong.len(), 1, "{table}.{column}");
        let (known, counts) = whole(&mut archive);
        assert_eq!((known, counts), expected, "{table}.{column}");
        assert_eq!(hits(&search(&mut archive, "water").sessions), ["u1"], "{table}.{column}");
        // And what was read anew is stored.
        drop(archive);
        let mut archive = machine.indexed(Depth::Text);
        if table != "bookmarks" {
            assert!(archive.verify(&sources, &|_| true).wrong.is_empty(), "{table}.{column}");
        }
        archive.clear();
    }
}

/// A block of rows is needed by every question: the index has answered nothing, and is made anew.
#[test]
fn a_bit_that_flips_in_a_block_of_rows_hides_nothing() {
    let machine = Machine::new();
    machine.write("aaaaaaaa-0000-4000-8000-000000000001", &tides());
    drop(machine.indexed(Depth::Text));
    let mut archive = machine.indexed(Depth::Text);
    let connection = rusqlite::Connection::open(machine.index_path()).unwrap();
    let mut rows: Vec<u8> = connection.query_row("select rows from parts", [], |row| row.get(0)).unwrap();
    let middle = rows.len() / 2;
    rows[middle] ^= 1;
    connection.execute("update parts set rows = ?1", [rows]).unwrap();
    drop(connection);
    assert_eq!(hits(&search(&mut archive, "water").sessions), ["u1"]);
    assert!(!archive.take_problems().is_empty() && !archive.has_index());
}

/// What a link leads to is somebody's: nothing is made, cut or changed there.
#[test]
#[cfg(unix)]
fn a_link_in_the_place_of_the_index_or_its_seal_leads_nowhere() {
    let machine = Machine::new();
    let elsewhere = machine.folder.path().join("elsewhere");
    fs::create_dir_all(machine.index_path().parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(&elsewhere, machine.index_path()).unwrap();
    assert!(SqliteIndex::open(&machine.index_path(), 0).is_err() && !elsewhere.exists());
    fs::remove_file(machine.index_path()).unwrap();
    fs::write(&elsewhere, "a letter").unwrap();
    fs::remove_file(machine.index_path().with_extension("db-seal")).unwrap();
    std::os::unix::fs::symlink(&elsewhere, machine.index_path().with_extension("db-seal")).unwrap();
    drop(machine.indexed(Depth::Text));
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "a letter");
}

#[test]
fn a_search_that_is_given_up_reads_no_session() {
    let machine = Machine::new();
    machine.write("aaaaaaaa-0000-4000-8000-000000000001", &tides());
    let given_up: Arc<AtomicBool> = Arc::default();
    let mut archive = machine.without_index().given_up_by(given_up.clone());
    assert_eq!(hits(&search(&mut archive, "/refus\\w+/").sessions), ["a4", "t1"]);
    given_up.store(true, Ordering::Relaxed);
    assert_eq!(hits(&search(&mut archive, "/refus\\w+/").sessions), Vec::<String>::new());
}
