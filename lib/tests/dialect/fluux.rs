//! What a Fluux store is: its files, what they are called, and what the messages of a room hold.

use std::fs;
use std::path::Path;

use crate::support::{messages, reading};
use scrollback::dialect::{self, Dialect};
use scrollback::model::{Body, Home, Part};
use scrollback::session::{Session, Source};
use scrollback::view::SessionRow;
use scrollback::view::find::Places;
use scrollback::view::history::{History, View};
use scrollback::view::listing::{self, Depth};
use serde_json::json;

const HEADER: &str = r#"{"type":"session","version":1,"created":"2025-02-08T19:00:00Z","jid":"alice@example.com"}"#;

fn fluux() -> &'static dyn Dialect {
    dialect::named("fluux").unwrap()
}

fn said(id: &str, second: u32) -> String {
    format!(
        r#"{{"type":"message","role":"assistant","content":"{id}","msg_id":"{id}","ts":"2025-02-08T19:00:{second:02}Z"}}"#
    )
}

fn read(lines: &[&str]) -> Session {
    Session::from_bytes(fluux(), lines.join("\n").into_bytes(), &reading())
}

fn rows(places: &Places) -> Vec<SessionRow> {
    let sources = places.sources().into_iter().map(Result::unwrap);
    sources.map(|source| listing::row(&source, &reading(), Depth::Ends).unwrap()).collect()
}

fn put(store: &Path, name: &str, lines: &[&str]) {
    let path = store.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, lines.join("\n")).unwrap();
}

#[test]
fn each_file_of_a_jid_is_a_session_of_its_own_and_nothing_else_is() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("data/memory");
    let (first, second, now) = (said("one", 1), said("two", 2), said("three", 3));
    put(&store, "alice@example.com/history.jsonl", &[HEADER, &now]);
    put(&store, "alice@example.com/sessions/20250208-190000.jsonl", &[HEADER, &first]);
    // The same archive again, as a copy leaves it, and one that was never a second of a clock.
    put(&store, "alice@example.com/sessions/20250208-190000 (copy).jsonl", &[HEADER, &first]);
    put(&store, "alice@example.com/sessions/20250209-120000.jsonl", &[HEADER, &second]);
    put(&store, "bob@example.com/history.jsonl", &[&first]);
    for beside in ["knowledge.jsonl", "user.md", "memory.md", "history.md", "files/a.jsonl", "sessions/old.md"] {
        put(&store, &format!("alice@example.com/{beside}"), &[r#"{"key":"tea","content":"green","ts":"x"}"#]);
    }
    put(&store, "instructions.md", &["Be brief."]);
    let home = Home { dir: "/nowhere".into(), cwd: dir.path().to_path_buf(), vars: Default::default() };
    let expected = [
        "alice@example.com",
        "bob@example.com",
        "alice@example.com:20250208-190000 (copy)",
        "alice@example.com:20250208-190000",
        "alice@example.com:20250209-120000",
    ];
    for places in [
        Places { home: home.clone(), store: None, dialect: Some(fluux()), mask: None },
        Places { home: home.clone(), store: Some(store.clone()), dialect: Some(fluux()), mask: None },
    ] {
        let mut rows = rows(&places);
        let ids: Vec<&str> = rows.iter().map(|row| row.id.as_str()).collect();
        assert_eq!(ids, expected);
        assert!(rows.iter().all(|row| row.issue_count == Some(0)));
        rows.retain(|row| row.id.as_str().starts_with("alice"));
        rows.sort_by_key(|row| row.updated);
        let titles: Vec<_> = rows.iter().map(|row| row.head.as_ref().unwrap().as_str()).collect();
        assert_eq!(titles, ["one", "one", "two", "three"], "archives come before what is going on");
    }
}

#[test]
fn a_session_is_called_after_its_place() {
    for (path, name) in [
        ("/m/alice@example.com/history.jsonl", Some("alice@example.com")),
        ("/m/alice@example.com/sessions/20250208-190000.jsonl", Some("alice@example.com:20250208-190000")),
        ("/m/..hidden/history.jsonl", Some("..hidden")),
        ("/m/alice@example.com/other.jsonl", None),
        ("history.jsonl", None),
        ("../history.jsonl", None),
        ("/sessions/x.jsonl", None),
        ("/m/../sessions/x.jsonl", None),
    ] {
        assert_eq!(fluux().session_id_from_path(Path::new(path)).as_deref(), name, "{path}");
    }
}

#[test]
fn no_jid_of_a_header_becomes_a_name() {
    for jid in ["../../etc/passwd", "/etc/passwd", "..", "", "/", "C:\\\\x", "a/b/c", "\\u0000"] {
        let session = read(&[&HEADER.replace("alice@example.com", jid), &said("one", 1)]);
        assert_eq!(session.id().as_str(), "stdin", "{jid}");
    }
}

#[test]
fn who_said_what_with_which_files_and_reactions() {
    let session = read(&[
        r#"{"type":"message","role":"user","content":"alice: hi","msg_id":"u1","sender":"bob@muc","attachments":[{"filename":"photo.png","mime_type":"image/png","size":"926KB"}]}"#,
        r#"{"type":"message","role":"user","content":"","sender":"carol@muc","reaction":{"message_id":"u1","emojis":["👍","🎉"]}}"#,
        r#"{"type":"message","role":"assistant","content":"Hi there!","msg_id":"a1"}"#,
    ]);
    let messages = messages(&session);
    let senders: Vec<_> = messages.iter().map(|message| message.metadata.as_ref().unwrap().get("sender")).collect();
    assert_eq!(senders, [Some(&json!("bob@muc")), Some(&json!("carol@muc")), None]);
    let file = json!({"filename": "photo.png", "mime_type": "image/png", "size": "926KB"});
    assert_eq!(messages[0].parts, [Part::text("alice: hi"), Part::data("attachment", file)]);
    assert_eq!(messages[1].parts, [Part::data("reaction", json!({"message_id": "u1", "emojis": ["👍", "🎉"]}))]);
    assert_eq!(session.records().map(|record| record.is_reaction()).collect::<Vec<_>>(), [false, true, false]);
}

#[test]
fn every_shape_of_every_field_is_read() {
    let odd =
        ["null", "true", "-1", "1e300", r#""""#, r#""x""#, "[]", "[null,[]]", "{}", r#"{"message_id":1,"emojis":{}}"#];
    let fields = ["type", "role", "content", "msg_id", "sender", "ts", "attachments", "reaction", "version", "jid"];
    let whole = r#"{"type":"message","role":"user","content":"hi","msg_id":"u","sender":"a","ts":"2025-02-08T19:00:00Z","attachments":[],"reaction":null}"#;
    for field in fields {
        for value in odd {
            let mut line: serde_json::Map<String, serde_json::Value> = serde_json::from_str(whole).unwrap();
            line.insert(field.to_owned(), serde_json::from_str(value).unwrap());
            let line = serde_json::Value::from(line).to_string();
            let session = read(&[&line]);
            assert_eq!(session.records().len(), 1, "{line}");
            match session.records().next().unwrap().body().unwrap() {
                Body::User(said) => {
                    let wordless = field == "content" && matches!(value, "null" | r#""""#);
                    assert_eq!(said.parts.is_empty(), wordless, "{line}");
                }
                Body::Header(_) | Body::Other(_) => {}
                other => panic!("{line}: {other:?}"),
            }
        }
    }
}

#[test]
fn other_agents_messages_are_not_taken_for_its_own() {
    for (line, name) in [
        (r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}"#, "codex"),
        (r#"{"type":"session","version":3,"id":"a","cwd":"/x"}"#, "unknown"),
        (r#"{"role":"user","content":"hi"}"#, "native"),
        (HEADER, "fluux"),
        (r#"{"type":"message","role":"user","content":"hi"}"#, "fluux"),
    ] {
        assert_eq!(scrollback::session::detect::of_bytes(line.as_bytes()).name(), name, "{line}");
    }
}

/// What the model is told, as `role: content`.
fn told(lines: &[&str]) -> Vec<String> {
    let session = read(lines);
    let history = History::of(&session, session.head().unwrap()).unwrap();
    let (messages, _) = View::Fluux.messages(&history).unwrap();
    let line = |message: &serde_json::Value| {
        assert_eq!(message.as_object().unwrap().len(), 2);
        format!("{}: {}", message["role"].as_str().unwrap(), message["content"].as_str().unwrap())
    };
    messages.iter().map(line).collect()
}

/// The document's own examples, and what it says of them.
#[test]
fn the_model_sees_words_and_lines_of_json() {
    let corpus =
        |case: &str| fs::read_to_string(crate::support::corpus().join("fluux").join(case).join("history.jsonl"));
    let example = corpus("documented-example").unwrap();
    assert_eq!(
        told(&example.lines().collect::<Vec<_>>()),
        [
            "user: Hello, how are you?",
            "assistant: I'm doing well, thanks for asking! How can I help you today?",
            "user: {\"filename\":\"document.pdf\",\"mime_type\":\"application/pdf\",\"size\":\"1.2MB\"}\nCan you read this?",
            "assistant: I can see the PDF. It appears to be a project proposal...",
            "user: {\"message_id\":\"a1b2c3d4-e5f6-7890-abcd-ef1234567890\",\"emojis\":[\"\u{1f44d}\"]}",
            "assistant: Glad you liked that! Let me know if you need anything.",
        ]
    );
    let room = corpus("documented-room").unwrap();
    assert_eq!(
        told(&room.lines().collect::<Vec<_>>()),
        ["user: alice@muc: Anyone around?", "user: bob@muc: I'm here!", "assistant: Hi everyone!"]
    );
}

#[test]
fn a_room_prefixes_the_whole_and_only_a_room_does() {
    let message = |more: &str| format!(r#"{{"type":"message","role":"user",{more}}}"#);
    let everything = message(
        r#""content":"See","sender":"bob@muc","msg_id":"m1","ts":"2025-02-08T19:00:01Z","reaction":{"emojis":["👍"],"message_id":"m0","more":1},"attachments":[{"size":"1KB","filename":"a b.png","mime_type":"image/png"},{"filename":"\"c\"","mime_type":"unknown","size":"unknown","url":"x"}]"#,
    );
    let lines = [
        everything,
        message(r#""content":"Hi","sender":"alice@muc.server""#),
        message(r#""content":"Hi","sender":"alice@example.com/phone""#),
        message(r#""content":"","sender":"eve@muc""#),
        message(r#""content":"a\nb","sender":"@muc""#),
    ];
    assert_eq!(
        told(&lines.iter().map(String::as_str).collect::<Vec<_>>()),
        [
            "user: bob@muc: {\"message_id\":\"m0\",\"emojis\":[\"👍\"]}\n{\"filename\":\"a b.png\",\"mime_type\":\"image/png\",\"size\":\"1KB\"}\n{\"filename\":\"\\\"c\\\"\",\"mime_type\":\"unknown\",\"size\":\"unknown\"}\nSee",
            "user: Hi",
            "user: Hi",
            "user: @muc: a\nb",
        ]
    );
}

#[test]
fn a_header_of_somebody_else_than_the_folder_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let issues = |folder: &str| {
        let folder = dir.path().join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("history.jsonl");
        std::fs::write(&path, "{\"type\":\"session\",\"version\":1,\"jid\":\"bob@example.org/phone\",\"created\":\"2026-01-11T22:00:00Z\"}\n").unwrap();
        let session = Session::open(&Source::file(dialect::named("fluux").unwrap(), &path), &reading()).unwrap();
        session.issues().iter().map(|issue| issue.kind.name()).collect::<Vec<_>>()
    };
    assert_eq!(issues("alice@example.org"), ["mixed-session"]);
    assert!(issues("Bob@example.org").is_empty());
    assert!(issues("backup").is_empty());
}
