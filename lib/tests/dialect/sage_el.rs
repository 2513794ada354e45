//! sage for Emacs: what the corpus's one line cannot say. Places, projects, archives, parts, verdicts.

use std::fs;
use std::path::Path;

use crate::support::reading;
use scrollback::dialect::{self, Dialect};
use scrollback::model::Home;
use scrollback::session::{Session, Source, detect};
use scrollback::view::Conversation;
use scrollback::view::find::Places;
use scrollback::view::listing::{self, Depth};
use scrollback::view::profile::Profile;
use serde_json::{Value, json};

const TALK: &str = r#"{"role":"user","content":"Hello","timestamp":"2026-01-11T17:00:00-0500"}
{"role":"assistant","content":"Hello.","timestamp":"2026-01-11T17:00:01-0500"}
"#;

fn sage() -> &'static dyn Dialect {
    dialect::named("sage-el").unwrap()
}

fn case(name: &str) -> Session {
    let path = crate::support::corpus().join("sage-el").join(name).join("conversation.jsonl");
    Session::open(&Source::file(sage(), &path), &reading()).unwrap()
}

fn write(store: &Path, path: &str, text: &str) {
    let path = store.join("projects").join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn rows(places: &Places) -> Vec<(String, String, Option<String>)> {
    let sources = places.sources().into_iter().map(Result::unwrap);
    let rows = sources.map(|source| listing::row(&source, &reading(), Depth::Ends).unwrap());
    rows.map(|row| (row.dialect.to_owned(), row.id.as_str().to_owned(), row.project)).collect()
}

fn row(dialect: &str, id: &str, project: Option<&str>) -> (String, String, Option<String>) {
    (dialect.to_owned(), id.to_owned(), project.map(str::to_owned))
}

#[test]
fn a_project_is_what_metadata_says_whatever_its_folder_is_called() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "-etc-passwd/conversation.jsonl", TALK);
    write(dir.path(), "-etc-passwd/metadata.json", r#"{"project_dir":"/gone/tide/","message_count":99}"#);
    write(dir.path(), "-etc-passwd/history/20260110-120000.jsonl", TALK);
    write(dir.path(), "-home-ada-lamp-/conversation.jsonl", TALK);
    write(
        dir.path(),
        "-home-ada-told/conversation.jsonl",
        &TALK.replace("\"role\"", "\"cwd\":\"/gone/told\",\"role\""),
    );
    let home = Home { dir: "/nowhere".into(), cwd: "/".into(), vars: Default::default() };
    let places = Places { home: home.clone(), store: Some(dir.path().to_path_buf()), dialect: None, mask: None };
    assert_eq!(
        rows(&places),
        [
            row("sage-el", "etc-passwd", Some("/gone/tide")),
            row("sage-el", "home-ada-lamp-", None),
            row("sage-el", "home-ada-told", Some("/gone/told")),
            row("sage-el", "20260110-120000", Some("/gone/tide")),
        ]
    );
}

#[test]
fn every_place_of_emacs_is_looked_into_and_a_folder_shared_with_claude_code_is_each_ones_own() {
    let dir = tempfile::tempdir().unwrap();
    for store in [".emacs.d/sage", "xdg/emacs/sage", ".sage", ".claude"] {
        write(&dir.path().join(store), "-gone-p/conversation.jsonl", TALK);
    }
    let claude = r#"{"type":"user","uuid":"u1","sessionId":"c1","message":{"role":"user","content":"hi"}}"#;
    write(&dir.path().join(".claude"), "-gone-p/c1.jsonl", claude);
    let vars = [("XDG_CONFIG_HOME".to_owned(), "xdg".to_owned())].into();
    let home = Home { dir: dir.path().to_path_buf(), cwd: dir.path().to_path_buf(), vars };
    let found = rows(&Places { home: home.clone(), store: None, dialect: None, mask: None });
    let of = |name: &str| found.iter().filter(|(dialect, ..)| dialect == name).count();
    assert_eq!((of("sage-el"), of("claude-code"), found.len()), (4, 1, 5));
    let shared = dir.path().join(".claude/projects/-gone-p/conversation.jsonl");
    assert_eq!(detect::of_file(&shared, &home).unwrap().name(), "sage-el");
}

#[test]
fn duplicated_archives_are_two_sessions_and_an_archive_named_by_its_path_knows_its_project() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "p/metadata.json", r#"{"project_dir":"/gone/tide"}"#);
    write(dir.path(), "p/history/one.jsonl", TALK);
    write(dir.path(), "p/history/two.jsonl", TALK);
    let home = Home { dir: "/nowhere".into(), cwd: "/".into(), vars: Default::default() };
    let places = Places { home: home.clone(), store: Some(dir.path().to_path_buf()), dialect: None, mask: None };
    let expected = [row("sage-el", "one", Some("/gone/tide")), row("sage-el", "two", Some("/gone/tide"))];
    assert_eq!(rows(&places), expected);
    let source = Source::file(sage(), &dir.path().join("projects/p/history/one.jsonl"));
    assert_eq!(Session::open(&source, &reading()).unwrap().cwd(), Some("/gone/tide"));
}

#[test]
fn a_bare_file_is_told_by_its_marks_then_by_its_name() {
    let plain = r#"{"role":"user","content":"hi","timestamp":"2026-01-11T22:00:00Z"}"#;
    for (line, name) in [
        (plain.to_owned(), "sage-el"),
        (format!("{plain}\n{plain}"), "sage-el"),
        (format!("{plain}\n{}", plain.replace(r#","timestamp":"2026-01-11T22:00:00Z""#, "")), "native"),
        (plain.replace("}", r#","session_id":"s"}"#), "sage-el"),
        (plain.replace("}", r#","tool_calls":[{"name":"x","args":{}}]}"#), "sage-el"),
        (plain.replace("}", r#","tokens":{"estimated":1}}"#), "sage-el"),
        (plain.replace("}", r#","uuid":"20260111-170000-0a1b2c3d"}"#), "sage-el"),
        (plain.replace('Z', "+0100"), "sage-el"),
        (plain.replace("}", r#","mood":1}"#), "native"),
        (plain.replace("}", r#","tool_calls":[{"id":"c","type":"function","function":{"name":"x"}}]}"#), "native"),
    ] {
        assert_eq!(detect::of_bytes(line.as_bytes()).name(), name, "{line}");
    }
    let dir = tempfile::tempdir().unwrap();
    let home = Home { dir: "/nowhere".into(), cwd: "/".into(), vars: Default::default() };
    for (file, name) in [("conversation.jsonl", "sage-el"), ("messages.jsonl", "native"), ("x.jsonl", "sage-el")] {
        let path = dir.path().join(file);
        fs::write(&path, plain).unwrap();
        assert_eq!(detect::of_file(&path, &home).unwrap().name(), name);
    }
}

#[test]
fn a_call_has_its_inline_result() {
    let session = case("tool-calls");
    let branch = session.branch(session.head().unwrap());
    let message = Conversation::new(&branch).message(1).unwrap().unwrap();
    let parts = serde_json::to_value(&message.parts).unwrap();
    let calls: Vec<&Value> = parts.as_array().unwrap().iter().filter(|part| part["type"] == "dynamic-tool").collect();
    let told: Vec<Value> = calls
        .iter()
        .map(|call| json!([call["toolName"], call["state"], call["output"], call["errorText"]]))
        .collect();
    assert_eq!(
        json!(told),
        json!([
            ["read_file", "output-available", "(message \"hi\")", null],
            ["git_status", "output-error", null, "not a repository"],
            ["run", "output-error", null, "make: *** no rule"],
            ["run", "output-error", null, "the tool failed"],
            ["list", "output-available", {"files": ["a.el", "b.el"]}, null],
            ["write_file", "input-available", null, null],
        ])
    );
    assert_eq!(calls[0]["callProviderMetadata"]["scrollback"]["durationMs"], 45);
    let ids: std::collections::BTreeSet<&str> = calls.iter().map(|call| call["toolCallId"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), calls.len());
}

#[test]
fn a_token_count_is_usage_and_an_estimate_is_not() {
    let row = case("usage").row().unwrap();
    let usage = row.usage.unwrap();
    assert_eq!((usage.input, usage.output, usage.cache_read), (Some(1234), Some(567), Some(15000)));
    assert_eq!(row.models, ["gemini-2.0-flash-exp"]);
    assert_eq!(case("seed-tokens").row().unwrap().usage, None);
}

#[test]
fn an_estimate_of_tokens_is_shown_and_kept() {
    let line = |tokens: &str| {
        let line = format!(r#"{{"role":"assistant","content":"12345678","uuid":"a","tokens":{tokens}}}"#);
        let session = Session::from_bytes(sage(), line.into_bytes(), &reading());
        let message = serde_json::to_value(&crate::support::messages(&session)[0]).unwrap();
        message["metadata"]["tokens"].clone()
    };
    assert_eq!(line(r#"{"estimated":150}"#), serde_json::json!({"estimated": 150}));
    assert_eq!(line(r#"{"estimated":2,"exact":3}"#), serde_json::json!({"estimated": 2, "exact": 3}));
    // A quarter of the characters says no more than the text.
    assert_eq!(line(r#"{"estimated":2}"#), serde_json::Value::Null);
}

#[test]
fn tokens_in_other_words_are_tokens_and_none_are_none() {
    let usage = |usage: &str| {
        let line = format!(r#"{{"role":"assistant","content":"x","uuid":"a","usage":{usage}}}"#);
        Session::from_bytes(sage(), line.into_bytes(), &reading()).row().unwrap().usage
    };
    assert_eq!(usage(r#"{"input":10,"output":5}"#).and_then(|usage| usage.output), Some(5));
    assert_eq!(usage(r#"{"all":15}"#), None);
}

#[test]
fn each_line_has_a_verdict_and_a_blank_one_has_none() {
    let text = b"\xef\xbb\xbf{\"role\":\"user\",\"content\":\"a\xe2\x80\xa8b\"}\r\n\n{\"role\":\"tool\",\"content\":\"\"}\n\xff\n{\"role\":\"us";
    let session = Session::from_bytes(sage(), text.to_vec(), &reading());
    let verdicts = session.verdicts(Profile::SageEl).unwrap();
    assert_eq!(
        serde_json::to_value(&verdicts).unwrap(),
        json!([
            {"line": 1, "valid": true},
            {"line": 3, "valid": false, "field": "role", "reason": "\"tool\" is not user, assistant or system",
                "further": [{"field": "content", "reason": "it is empty"}]},
            {"line": 4, "valid": false, "reason": "bytes that are not UTF-8"},
            {"line": 5, "valid": false, "reason": "not a JSON object"},
        ])
    );
}
