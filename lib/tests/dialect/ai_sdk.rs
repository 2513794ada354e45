//! UIMessages and rows of agents as people and SDKs see them: what the corpus' one-line pages do not show.

use std::path::Path;

use crate::support::{messages, reading};
use scrollback::dialect::{self, Dialect};
use scrollback::model::{Error, Home, Sdk, takes};
use scrollback::session::{Session, Source, detect};
use scrollback::view::history::View;
use serde_json::{Value, json};

fn ai_sdk() -> &'static dyn Dialect {
    dialect::named("ai-sdk").unwrap()
}

fn read(text: impl ToString) -> Session {
    Session::from_bytes(ai_sdk(), text.to_string().into_bytes(), &reading())
}

#[test]
fn messages_are_shown_as_they_are() {
    let all: Value = serde_json::from_str(include_str!("../aisdk/parts.json")).unwrap();
    let parts: Vec<&Value> = all.as_object().unwrap().values().collect();
    let told = json!([
        {"id": "q", "role": "user", "parts": [{"type": "text", "text": "Hello"}]},
        {"id": "a", "role": "assistant", "metadata": {"mine": 1}, "parts": parts},
        {"id": "b", "role": "assistant", "parts": []},
    ]);
    let shown = serde_json::to_value(messages(&read(&told))).unwrap();
    for (at, message) in told.as_array().unwrap().iter().enumerate() {
        assert_eq!(shown[at]["parts"], message["parts"]);
        assert_eq!(shown[at]["id"], message["id"]);
    }
    assert_eq!(shown[1]["metadata"], json!({"mine": 1, "records": ["a"]}));
}

#[test]
fn old_messages_become_parts_of_today() {
    let shown = messages(&read(json!([{
        "id": "m", "role": "assistant", "content": "Rain.", "reasoning": "Clouds.", "createdAt": "2024-06-01T10:00:00Z",
        "toolInvocations": [{"state": "result", "toolCallId": "c", "toolName": "sky", "args": {}, "result": "grey"}],
        "experimental_attachments": [{"name": "a.png", "contentType": "image/png", "url": "data:image/png;base64,AA=="}],
        "annotations": [1],
    }])));
    let shown = serde_json::to_value(&shown[0]).unwrap();
    assert_eq!(
        shown["parts"],
        json!([
            {"type": "reasoning", "text": "Clouds."},
            {"type": "dynamic-tool", "toolName": "sky", "toolCallId": "c", "state": "output-available", "input": {}, "output": "grey"},
            {"type": "text", "text": "Rain."},
            {"type": "file", "mediaType": "image/png", "filename": "a.png", "url": "data:image/png;base64,AA=="},
        ])
    );
    assert_eq!(shown["metadata"]["annotations"], json!([1]));
    assert_eq!(takes(&shown, Sdk::V5), Ok(()));
}

/// A database with these rows of agents, by the case of the corpus that makes its table.
fn database(folder: &Path, rows: &str) -> std::path::PathBuf {
    let case = crate::support::corpus().join("ai-sdk/row-pending/agents.sql");
    let sql = std::fs::read_to_string(case).unwrap();
    let table = sql.split("INSERT").next().unwrap();
    let path = folder.join("agents.db");
    rusqlite::Connection::open(&path).unwrap().execute_batch(&format!("{table}{rows}")).unwrap();
    path
}

fn insert(id: &str, status: &str, more: &str) -> String {
    format!(
        "INSERT INTO agents (id, execution_id, model, prompt, created_at, status, result, result_structured, error) \
         VALUES ('{id}', 'run', 'sonnet', 'Go.', '2026-11-01 10:00:00', '{status}', {more});"
    )
}

#[test]
fn each_row_is_a_session_and_a_failure_is_no_empty_text() {
    let dir = tempfile::tempdir().unwrap();
    let rows = [
        insert("pending", "pending", "NULL, NULL, NULL"),
        insert("done", "completed", "'Gone.', '{\"ok\":true}', NULL"),
        insert("failed", "failed", "NULL, NULL, 'rate limit'"),
        insert("empty", "failed", "'', '', ''"),
        insert("cancelled", "cancelled", "NULL, NULL, NULL"),
    ];
    let path = database(dir.path(), &rows.concat());
    let sources = Source::in_file(ai_sdk(), &path).unwrap();
    assert_eq!(sources.len(), rows.len());
    let mut told = String::new();
    for source in &sources {
        let session = Session::open(source, &reading()).unwrap();
        for message in messages(&session) {
            let message = serde_json::to_value(message.for_sdk(Sdk::V7)).unwrap();
            assert_eq!(takes(&message, Sdk::V7), Ok(()));
            let (parts, error) = (&message["parts"], &message["metadata"]["error"]);
            told += &format!("{} {} {parts} {error}\n", session.id(), message["role"].as_str().unwrap());
        }
    }
    insta::assert_snapshot!(told, @r#"
    pending user [{"type":"text","text":"Go."},{"type":"data-status","data":{"text":"pending"}}] null
    done user [{"type":"text","text":"Go."}] null
    done assistant [{"type":"text","text":"Gone."},{"type":"data-result-structured","data":{"ok":true}}] null
    failed user [{"type":"text","text":"Go."}] null
    failed assistant [{"type":"data-error","data":{"text":"rate limit"}}] true
    empty user [{"type":"text","text":"Go."}] null
    empty assistant [{"type":"data-error","data":{"text":"failed"}}] true
    cancelled user [{"type":"text","text":"Go."}] null
    cancelled assistant [{"type":"data-error","data":{"text":"cancelled"}}] true
    "#);
}

#[test]
fn a_system_prompt_leads_the_history_of_its_row() {
    let dir = tempfile::tempdir().unwrap();
    let rows = [
        insert("done", "completed", "'Gone.', NULL, NULL"),
        "UPDATE agents SET system_prompt = 'Be \"brief\".';".to_owned(),
        insert("without", "completed", "'Gone.', NULL, NULL"),
    ];
    let path = database(dir.path(), &rows.concat());
    let sent = |at: usize| {
        let session = Session::open(&Source::in_file(ai_sdk(), &path).unwrap()[at], &reading()).unwrap();
        assert!(session.issues().is_empty(), "{:?}", session.issues());
        crate::support::sent(&session, View::OpenAi)
    };
    assert_eq!(sent(0)[0], json!({"role": "system", "content": "Be \"brief\"."}));
    assert_eq!(sent(0).len(), 3);
    assert_eq!(sent(1).len(), 2);
    let session = Session::open(&Source::in_file(ai_sdk(), &path).unwrap()[0], &reading()).unwrap();
    let shown: Vec<Value> = messages(&session).iter().map(|message| serde_json::to_value(message).unwrap()).collect();
    assert_eq!((&shown[0]["role"], &shown[0]["id"]), (&json!("system"), &json!("done-system")));
    assert!(shown.iter().all(|message| message["metadata"].get("system_prompt").is_none()));
}

/// Option A of the proposal: a column with UIMessages.
#[test]
fn the_messages_of_a_row_are_its_conversation() {
    let messages_of = r#"[ {"id":"m1","role":"user","parts":[{"type":"text","text":"Go."}]},
        {"id":"m2","role":"assistant","parts":[{"type":"tool-read","toolCallId":"c1","title":"Read a file","state":"output-available","input":{"n":123456789012345678901234567890},"output":"x"},{"type":"text","text":"Gone."}]} ]"#;
    let dir = tempfile::tempdir().unwrap();
    let table = "ALTER TABLE agents ADD COLUMN messages TEXT;";
    let rows = [
        insert("done", "completed", "'Gone.', NULL, NULL"),
        insert("failed", "failed", "NULL, NULL, 'rate limit'"),
        insert("system", "completed", "'Gone.', NULL, NULL"),
        format!(
            "UPDATE agents SET messages = '{messages_of}', tokens_input = 7, tokens_output = 3, system_prompt = 'Brief.';"
        ),
        format!(
            "UPDATE agents SET messages = '{}' WHERE id = 'system';",
            messages_of.replacen("[ ", r#"[{"id":"m0","role":"system","parts":[{"type":"text","text":"Long."}]},"#, 1)
        ),
        insert("bad", "completed", "'Gone.', NULL, NULL"),
        "UPDATE agents SET messages = '[{' WHERE id = 'bad';".to_owned(),
        insert("empty", "completed", "'Gone.', NULL, NULL"),
        "UPDATE agents SET messages = '[]' WHERE id = 'empty';".to_owned(),
    ];
    let path = database(dir.path(), &format!("{table}{}", rows.concat()));
    let sources = Source::in_file(ai_sdk(), &path).unwrap();
    let mut told = String::new();
    for source in &sources {
        let session = Session::open(source, &reading()).unwrap();
        let shown: Vec<String> = messages(&session)
            .iter()
            .map(|message| {
                let types: Vec<String> =
                    message.parts.iter().map(|part| serde_json::to_value(part).unwrap()["type"].to_string()).collect();
                format!(
                    "{}[{}]",
                    serde_json::to_value(message).unwrap()["role"].as_str().unwrap(),
                    types.join(" ").replace('"', "")
                )
            })
            .collect();
        let issues: Vec<&str> = session.issues().iter().map(|issue| issue.kind.name()).collect();
        let output = session.usage().and_then(|usage| usage.output);
        told += &format!("{} {} {output:?} {issues:?}\n", session.id(), shown.join(" "));
    }
    insta::assert_snapshot!(told, @r#"
    done system[text] user[text] assistant[tool-read text] Some(3) []
    failed system[text] user[text] assistant[tool-read text] assistant[data-error] Some(3) []
    system system[text] user[text] assistant[tool-read text] Some(3) []
    bad user[text] assistant[text] None ["invalid-message"]
    empty user[text] assistant[text] None []
    "#);
}

#[test]
fn a_database_that_is_something_else_locked_or_cut_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home { dir: "/nowhere".into(), cwd: "/".into(), vars: Default::default() };
    let other = dir.path().join("other.db");
    let connection = rusqlite::Connection::open(&other).unwrap();
    connection
        .execute_batch("CREATE TABLE agents (id, name); INSERT INTO agents VALUES (1, 2)")
        .unwrap();
    let found = detect::of_file(&other, &home).unwrap();
    assert_eq!(found.name(), "unknown");
    let error = Session::open(&Source::file(found, &other), &reading()).err().unwrap();
    assert!(matches!(error, Error::NoSessions(_)), "{error}");

    let path = database(dir.path(), &insert("a", "pending", "NULL, NULL, NULL"));
    let cut = dir.path().join("cut.db");
    std::fs::write(&cut, &std::fs::read(&path).unwrap()[..3000]).unwrap();
    let opened = detect::of_file(&cut, &home).and_then(|dialect| Source::in_file(dialect, &cut));
    assert!(matches!(opened, Err(Error::Database { .. })), "{opened:?}");

    let writer = rusqlite::Connection::open(&path).unwrap();
    writer.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let locked = detect::of_file(&path, &home).err().unwrap();
    assert!(locked.to_string().ends_with("database is locked"), "{locked}");
}

#[test]
fn a_row_that_still_runs_tells_what_is_known_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = database(dir.path(), &insert("a", "running", "NULL, NULL, NULL"));
    let session = Session::open(&Source::in_file(ai_sdk(), &path).unwrap()[0], &reading()).unwrap();
    let shown = serde_json::to_value(messages(&session)).unwrap();
    assert_eq!(shown[0]["metadata"]["status"], "running");
    assert_eq!(shown[0]["metadata"]["model"], "sonnet");
    assert_eq!(shown[0]["metadata"]["execution_id"], "run");
    assert!(session.examine().path.ends_with("agents.db#a"), "{}", session.examine().path);
}

#[test]
fn a_view_is_no_table_and_no_question_runs_for_ever() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home { dir: "/nowhere".into(), cwd: "/".into(), vars: Default::default() };
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)";
    let columns = "i AS id, i AS prompt, i AS status, i AS model";
    for (at, schema) in [
        format!("CREATE VIEW agents AS {endless} SELECT {columns} FROM n"),
        "CREATE VIRTUAL TABLE agents USING fts5(id, prompt, status, model)".to_owned(),
        "CREATE TABLE agents (id TEXT PRIMARY KEY, prompt, status, model) WITHOUT ROWID".to_owned(),
        "CREATE TABLE agents (id, prompt, status)".to_owned(),
    ]
    .iter()
    .enumerate()
    {
        let path = dir.path().join(format!("{at}.db"));
        rusqlite::Connection::open(&path).unwrap().execute_batch(schema).unwrap();
        assert_eq!(detect::of_file(&path, &home).unwrap().name(), "unknown", "{schema}");
        let error = Source::in_file(ai_sdk(), &path).unwrap_err();
        assert!(matches!(error, Error::NoSessions(_)), "{schema}: {error}");
    }
}

#[test]
fn rows_of_one_name_are_sessions_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("agents.db");
    let connection = rusqlite::Connection::open(&path).unwrap();
    let rows = "INSERT INTO agents VALUES ('a', 'One?', 'pending', 'm'), ('a', 'Two?', 'pending', 'm'), (NULL, 'Three?', 'pending', 'm')";
    connection
        .execute_batch(&format!("CREATE TABLE agents (id, prompt, status, model); {rows}"))
        .unwrap();
    let sources = Source::in_file(ai_sdk(), &path).unwrap();
    let names: Vec<_> = sources.iter().map(|source| source.key.as_deref().unwrap()).collect();
    assert_eq!(names, ["a", "row-2", "row-3"]);
    let said = |source: &Source| {
        let session = Session::open(source, &reading()).unwrap();
        serde_json::to_value(&messages(&session)[0]).unwrap()["parts"][0]["text"].clone()
    };
    assert_eq!(sources.iter().map(said).collect::<Vec<_>>(), ["One?", "Two?", "Three?"]);
}

#[test]
fn reading_leaves_nothing_beside_a_database() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("live.db");
    let writer = rusqlite::Connection::open(&path).unwrap();
    writer.pragma_update(None, "journal_mode", "wal").unwrap();
    writer
        .execute_batch(
            "CREATE TABLE agents (id, prompt, status, model); INSERT INTO agents VALUES ('a', 'Hi', 'pending', 'm')",
        )
        .unwrap();
    // What a crash leaves: the log without its index; and a copy of the database alone.
    let left = dir.path().join("left");
    std::fs::create_dir(&left).unwrap();
    std::fs::copy(&path, left.join("a?b#.db")).unwrap();
    std::fs::copy(dir.path().join("live.db-wal"), left.join("a?b#.db-wal")).unwrap();
    let listed = || {
        let mut files: Vec<_> = std::fs::read_dir(&left)
            .unwrap()
            .map(|entry| (entry.as_ref().unwrap().path(), std::fs::read(entry.unwrap().path()).unwrap()))
            .collect();
        files.sort();
        files
    };
    let before = listed();
    let sources = Source::in_file(ai_sdk(), &left.join("a?b#.db")).unwrap();
    assert_eq!(messages(&Session::open(&sources[0], &reading()).unwrap()).len(), 1);
    drop(sources);
    assert!(before == listed());
    assert_eq!(Source::in_file(ai_sdk(), &path).unwrap().len(), 1);
}

#[test]
fn a_store_is_a_folder_of_chats_too() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    write("one.json", r#"[{"id":"a","role":"user","content":"hi"}]"#);
    write("settings.json", "{\n  \"model\": \"x\"\n}\n");
    write("two.json.bak", r#"[{"id":"a","role":"user","content":"hi"}]"#);
    write("history.jsonl", r#"{"display":"hi","timestamp":1}"#);
    database(dir.path(), &insert("row", "pending", "NULL, NULL, NULL"));
    std::fs::create_dir(dir.path().join("chats")).unwrap();
    write("chats/three.jsonl", r#"{"id":"a","role":"user","parts":[{"type":"text","text":"hi"}]}"#);
    let layouts: Vec<_> = ai_sdk().layouts_in(dir.path()).into_iter().map(|layout| (ai_sdk(), layout)).collect();
    let mut names: Vec<String> = Source::walk_all(&layouts).into_iter().map(|source| source.unwrap().name()).collect();
    names.sort();
    assert_eq!(names, ["one", "row", "three"]);
}

#[test]
fn lines_that_are_piped_in_are_lines() {
    let message = |id: &str| format!(r#"{{"id":"{id}","role":"user","parts":[{{"type":"text","text":"hi"}}]}}"#);
    let session = read(format!("{}\n{}\n", message("a"), message("b")));
    assert!(!session.has_errors());
    assert_eq!(messages(&session).len(), 2);
}

#[test]
fn calls_of_sdk_3_have_their_results() {
    let session = read(include_str!("../../../corpus/ai-sdk/sdk-3-functions/chat.json"));
    let shown = serde_json::to_value(messages(&session)).unwrap();
    assert_eq!(shown[1]["parts"][0]["output"], "rain");
    assert_eq!(shown[2]["parts"][0]["input"], json!({"city": "Nantes"}));
    assert_eq!(shown[2]["parts"][0]["output"], "sun");
    let session = read(include_str!("../../../corpus/ai-sdk/sdk-4-more-than-parts/chat.json"));
    let shown = serde_json::to_value(messages(&session)).unwrap();
    assert_eq!(shown[0]["parts"][1]["text"], "Weather?");
    assert_eq!(shown[1]["parts"][1]["toolCallId"], "c1");
    assert_eq!(shown[1]["parts"][2]["text"], "Rain. Take a coat.");
}

#[test]
fn each_message_has_its_verdict() {
    let session = read(include_str!("../../../corpus/ai-sdk/rejected-only/chat.json"));
    let verdicts = serde_json::to_value(session.message_verdicts().unwrap()).unwrap();
    let told: Vec<_> = verdicts
        .as_array()
        .unwrap()
        .iter()
        .map(|told| (told["id"].as_str().unwrap(), &told["valid"]))
        .collect();
    assert_eq!(told, [("1", &json!(false)), ("2", &json!(false)), ("3", &json!(false))]);
    assert_eq!(verdicts[2]["problems"], json!(["role robot is not known"]));
    let good = read(json!([{"id": "a", "role": "user", "parts": [{"type": "text", "text": "hi"}]}]));
    let verdicts = serde_json::to_value(good.message_verdicts().unwrap()).unwrap();
    assert_eq!(verdicts, json!([{"id": "a", "valid": true, "problems": []}]));
}

#[test]
fn a_list_cut_anywhere_keeps_its_whole_messages() {
    let message =
        |id: usize| json!({"id": format!("m{id}"), "role": "user", "parts": [{"type": "text", "text": "{["}]});
    let text = json!([message(0), message(1), message(2)]).to_string();
    let ends: Vec<usize> = text.match_indices("}]}").map(|(at, end)| at + end.len()).collect();
    for cut in 1..text.len() {
        let session = read(&text[..cut]);
        let whole = ends.iter().filter(|end| **end <= cut).count();
        let kept = session.records().filter(|record| record.id().starts_with('m')).count();
        assert_eq!(kept, whole, "cut at {cut}");
        assert!(session.has_errors(), "cut at {cut}");
    }
}
