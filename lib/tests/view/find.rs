//! Naming a session, scope, and following many sessions, as index and web use them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use scrollback::model::Home;
use scrollback::session::{ReadOptions, Source};
use scrollback::view::SessionRow;
use scrollback::view::find::{Location, Lookup, Memory, NameError, Named, Places, ProjectScope, Scope, SessionName};
use scrollback::view::listing::Depth;
use scrollback::view::stream::Following;

/// A home of native sessions, and a clock.
struct TestHome {
    dir: tempfile::TempDir,
}

impl TestHome {
    fn new() -> TestHome {
        TestHome { dir: tempfile::tempdir().unwrap() }
    }

    fn now(&self) -> Timestamp {
        "2026-11-15T12:00:00Z".parse().unwrap()
    }

    fn places(&self) -> Places {
        let (dir, cwd) = (self.dir.path().join("home"), self.dir.path().join("cwd"));
        fs::create_dir_all(&cwd).unwrap();
        Places { home: Home { dir, cwd, vars: BTreeMap::new() }, store: None, dialect: None, mask: None }
    }

    /// A session in the folder `folder` that says that its id is `id`.
    fn session(&self, folder: &str, id: &str, hour: u8, cwd: &str) -> PathBuf {
        let path = self.dir.path().join("home/.sage/sessions").join(folder).join("messages.jsonl");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, line("u1", id, hour, cwd)).unwrap();
        path
    }

    /// A session of Codex, with a prompt or only begun.
    fn codex(&self, id: &str, hour: u8, prompt: Option<&str>) -> PathBuf {
        let folder = self.dir.path().join("home/.codex/sessions/2026/11/15");
        let path = folder.join(format!("rollout-2026-11-15T{hour:02}-00-00-{id}.jsonl"));
        let at = format!("2026-11-15T{hour:02}:00:00Z");
        let meta = serde_json::json!({"timestamp": at, "type": "session_meta",
            "payload": {"id": id, "timestamp": at, "cwd": "/gone"}});
        fs::create_dir_all(folder).unwrap();
        let prompt = prompt.map(|text| {
            let content = serde_json::json!([{"type": "input_text", "text": text}]);
            let payload = serde_json::json!({"type": "message", "role": "user", "content": content});
            serde_json::json!({"timestamp": at, "type": "response_item", "payload": payload})
        });
        let prompt = prompt.map(|line| format!("{line}\n")).unwrap_or_default();
        fs::write(&path, format!("{meta}\n{prompt}")).unwrap();
        path
    }

    fn resolve(&self, name: &str) -> Result<Named, NameError> {
        let (places, mut unreadable) = (self.places(), Vec::new());
        let lookup = Lookup { places: &places, scope: &Scope::EVERYTHING, now: self.now(), memory: None };
        let typed = name.parse::<SessionName>().unwrap();
        let named = typed.resolve(lookup, &mut unreadable);
        let memory = Memory {
            ids: &|sources| {
                let id = |source: &Source| places.describe(vec![source.clone()], self.now(), Depth::Whole, &|| {});
                sources.iter().map(|source| Some(id(source).sessions.first()?.0.id.clone())).collect()
            },
            describe: &|sources| places.describe(sources, self.now(), Depth::Whole, &|| {}),
        };
        let remembered = typed.resolve(Lookup { memory: Some(memory), ..lookup }, &mut unreadable);
        assert_eq!(format!("{remembered:?}"), format!("{named:?}"), "{name}: as it is remembered");
        assert!(unreadable.is_empty(), "{unreadable:?}");
        named
    }

    /// The file of the session that a name means, and the record.
    fn file(&self, name: &str) -> (PathBuf, Option<String>) {
        let named = self.resolve(name).unwrap_or_else(|error| panic!("{name}: {error}"));
        match named.location {
            Location::Source(source) => (source.path, named.record),
            other => panic!("{name}: {other:?}"),
        }
    }
}

fn line(id: &str, session: &str, hour: u8, cwd: &str) -> String {
    let line = serde_json::json!({
        "type": "user", "uuid": id, "parentUuid": null, "timestamp": format!("2026-11-15T{hour:02}:00:00Z"),
        "sessionId": session, "format": 2, "context": {"cwd": cwd}, "message": {"role": "user", "content": "Hi"},
    });
    format!("{line}\n")
}

#[test]
fn a_prefix_is_found_by_file_names_and_other_files_are_not_opened() {
    let home = TestHome::new();
    let wanted = home.session("abc1", "abc1", 9, "/gone");
    // Opened, this one would make the prefix ambiguous: its name does not say so.
    let other = home.session("zzz", "abc2", 10, "/gone");
    assert_eq!(home.file("abc"), (wanted.clone(), None));
    assert_eq!(home.file("native:abc#u1"), (wanted, Some("u1".to_owned())));
    // No file is named so, so that each is opened.
    assert_eq!(home.file("abc2"), (other, None));
}

#[test]
fn several_matches_are_data() {
    let home = TestHome::new();
    let paths = ["abc1", "abc2"].map(|id| home.session(id, id, 9, "/gone"));
    match home.resolve("abc") {
        Err(NameError::Ambiguous { name, matches }) => {
            assert_eq!(name, "abc");
            let found: Vec<_> = matches.iter().map(|one| (one.dialect, one.id.as_str(), one.path.as_path())).collect();
            assert_eq!(found, [("native", "abc1", paths[0].as_path()), ("native", "abc2", paths[1].as_path())]);
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(home.resolve("abd"), Err(NameError::NotFound(name)) if name == "abd"));
    assert!(matches!(home.resolve("codex:abc1"), Err(NameError::NotFound(_))));
    assert!(matches!(home.resolve("@x"), Err(NameError::Malformed(_))));
    assert!(matches!(home.resolve("@~2"), Err(NameError::TooFew { count: 2, hidden: 0, project: None })));
    assert!(matches!(home.resolve("-").unwrap().location, Location::Stdin));
}

#[test]
fn an_exact_id_wins_over_longer_ones() {
    let home = TestHome::new();
    let exact = home.session("abc", "abc", 9, "/gone");
    home.session("abcd", "abcd", 10, "/gone");
    assert_eq!(home.file("abc").0, exact);
}

#[test]
fn the_newest_is_counted_in_scope() {
    let home = TestHome::new();
    let tide = home.session("one", "one", 9, "/gone/tide");
    let newest = home.session("two", "two", 10, "/gone/blog");
    assert_eq!((home.file("@").0, home.file("@~1").0), (newest, tide.clone()));
    let (places, mut unreadable) = (home.places(), Vec::new());
    let scope = Scope { project: ProjectScope::Of("/gone/tide".into()), ..Scope::EVERYTHING };
    let lookup = Lookup { places: &places, scope: &scope, now: home.now(), memory: None };
    let mut newest = |name: &str| name.parse::<SessionName>().unwrap().resolve(lookup, &mut unreadable);
    assert!(matches!(newest("@").unwrap().location, Location::Source(source) if source.path == tide));
    assert!(matches!(newest("@~1"), Err(NameError::TooFew { count: 1, hidden: 1, .. })));
}

#[test]
fn the_newest_of_an_agent_is_named_by_its_dialect() {
    let home = TestHome::new();
    let (old, new) = (home.session("one", "one", 9, "/gone"), home.session("two", "two", 11, "/gone"));
    let codex = home.codex("019a6b1e-4c07-7d31-9a52-6f0b8e21c4d7", 10, Some("Hi"));
    // As `codex resume --last` does, one in which nobody said anything is passed over.
    home.codex("019a6b1e-4c07-7d31-9a52-6f0b8e21c4d8", 11, None);
    assert_eq!((home.file("native:@").0, home.file("native:@~1").0), (new, old));
    assert_eq!(home.file("codex:@#ord-1"), (codex, Some("ord-1".to_owned())));
    assert!(matches!(home.resolve("codex:@~1"), Err(NameError::TooFew { count: 1, .. })));
    assert!(matches!(home.resolve("codex:@x"), Err(NameError::Malformed(_))));
    assert!(matches!(home.resolve("nobody:@"), Err(NameError::NotFound(_))));
}

#[test]
fn a_scope_selects_by_project_and_time() {
    let home = TestHome::new();
    home.session("one", "one", 9, "/gone/tide");
    home.session("two", "two", 10, "/gone/blog");
    home.session("three", "three", 11, "/gone/tide");
    let ids = |scope: Scope| {
        let places = home.places();
        let sources = places.sources().into_iter().map(Result::unwrap).collect();
        let listing = places.describe(sources, home.now(), Depth::Ends, &|| {});
        let selected = scope.select(listing.sessions, Path::new("/gone/tide/deep"));
        (selected.sessions.into_iter().map(|(row, _)| row.id.0).collect::<Vec<_>>(), selected.hidden)
    };
    assert_eq!(ids(Scope::EVERYTHING), (vec!["three".to_owned(), "two".to_owned(), "one".to_owned()], 0));
    let current = Scope { project: ProjectScope::Current, ..Scope::EVERYTHING };
    assert_eq!(ids(current.clone()), (vec!["three".to_owned(), "one".to_owned()], 1));
    let at = |text: &str| Some(text.parse().unwrap());
    let period = Scope { since: at("2026-11-15T10:00:00Z"), until: at("2026-11-15T11:00:00Z"), ..Scope::EVERYTHING };
    assert_eq!(ids(period), (vec!["two".to_owned()], 0));
}

#[test]
fn a_list_is_completed_with_what_is_in_the_middle_of_most_sessions() {
    let home = TestHome::new();
    let folder = home.dir.path().join("home/.claude/projects/-gone");
    fs::create_dir_all(&folder).unwrap();
    // So many prompts, and a title between them.
    let write = |id: &str, prompts: usize, title_at: usize| {
        let prompt = |at: usize| {
            let parent = at.checked_sub(1).map_or("null".to_owned(), |before| format!("\"u{before}\""));
            let text = "and the tide goes out ".repeat(200);
            format!(
                r#"{{"type":"user","uuid":"u{at}","parentUuid":{parent},"sessionId":"{id}","cwd":"/gone","timestamp":"2026-11-15T10:00:00Z","message":{{"role":"user","content":"Why {text}"}}}}"#
            )
        };
        let title = format!(r#"{{"type":"custom-title","customTitle":"The tide","sessionId":"{id}"}}"#);
        let mut lines: Vec<String> = (0..prompts).map(prompt).collect();
        lines.insert(title_at, title);
        fs::write(folder.join(format!("{id}.jsonl")), lines.join("\n") + "\n").unwrap();
    };
    // Prompts have 4 KiB: both ends are larger than what is read first, and the end of one has the title.
    write("most", 40, 20);
    write("large", 1000, 990);
    let places = home.places();
    let sources = places.sources().into_iter().map(Result::unwrap).collect();
    let mut sessions = places.describe(sources, home.now(), Depth::Ends, &|| {}).sessions;
    let told = |sessions: &[(Box<SessionRow>, Source)]| {
        let rows = sessions.iter().map(|(row, _)| (row.id.to_string(), row.title == "The tide", row.message_count));
        rows.collect::<Vec<_>>()
    };
    let [most, large] = ["most", "large"].map(str::to_owned);
    assert_eq!(told(&sessions), [(large.clone(), true, None), (most.clone(), false, None)]);
    assert!(places.complete(&mut sessions, home.now()).is_empty());
    assert_eq!(told(&sessions), [(large, true, None), (most, true, Some(40))]);
}

#[test]
fn sessions_that_change_start_or_move_are_followed() {
    let home = TestHome::new();
    let old = home.session("old", "old", 9, "/gone");
    let start = Instant::now();
    let mut following = Following::new(home.places());
    assert!(following.changed(None, home.now()).is_empty(), "nothing is new yet");

    fs::write(&old, line("u1", "old", 9, "/gone") + &line("u2", "old", 10, "/gone")).unwrap();
    let new = home.session("new", "new", 11, "/gone");
    assert!(following.find_new(None, start).is_empty(), "nothing was moved");
    let mut seen = Vec::new();
    for growing in following.changed(None, home.now()) {
        let updates = growing.look(&ReadOptions::plain(home.now())).unwrap().updates;
        seen.push((growing.source().path.clone(), updates.len()));
    }
    assert_eq!(seen, [(new.clone(), 1), (old, 1)]);

    let to = new.parent().unwrap().with_file_name("renamed");
    fs::rename(new.parent().unwrap(), &to).unwrap();
    let moved = following.find_new(None, start + Duration::from_secs(5));
    assert_eq!((moved.len(), &moved[0].from.path, &moved[0].to.path), (1, &new, &to.join("messages.jsonl")));
}
