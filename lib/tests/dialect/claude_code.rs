//! What Claude Code's records say once they are messages, titles, usage and child sessions. The corpus tells their tree.

use std::collections::BTreeMap;
use std::path::Path;

use crate::support::{messages, parts};
use scrollback::dialect::{ClaudeCode, Dialect};
use scrollback::model::{Body, Home, TitleSource, Usage};
use scrollback::session::{Session, Source};
use scrollback::view::find::Places;
use scrollback::view::listing::{self, Depth};
use serde_json::json;

fn case(name: &str) -> Session {
    let folder = crate::support::corpus().join("claude-code").join(name);
    let file = ["session.jsonl", "agent-abc.jsonl"]
        .map(|name| folder.join(name))
        .into_iter()
        .find(|file| file.is_file());
    Session::open(&Source::file(&ClaudeCode, &file.unwrap()), &crate::support::reading()).unwrap()
}

#[test]
fn an_answer_in_three_lines_is_one_step_and_counts_once() {
    let session = case("blocks-of-one-answer");
    let answer = parts(&session, 1);
    assert_eq!(answer[0], json!({"type": "step-start"}));
    let signature = json!({"anthropic": {"signature": "c2ln"}});
    assert_eq!(answer[1], json!({"type": "reasoning", "text": "Hm.", "state": "done", "providerMetadata": signature}));
    assert_eq!(answer[3]["output"], "README.md");
    let steps = answer.as_array().unwrap().iter().filter(|part| part["type"] == "step-start").count();
    assert_eq!(steps, 2);
    let usage =
        Usage { input: Some(20), output: Some(60), cache_read: Some(100), cache_write: Some(3), reasoning: None };
    assert_eq!(session.usage(), Some(usage));
    assert_eq!(messages(&session)[1].metadata.as_ref().unwrap()["usage"], serde_json::to_value(usage).unwrap());
}

#[test]
fn a_boundary_and_its_summary_are_one_line_across_the_page() {
    let session = case("compaction");
    let expected = json!({"type": "data-compaction", "data": {"trigger": "manual", "tokensBefore": 1000, "tokensAfter": 50,
        "preserved": ["u1", "a1"], "record": "c1", "summary": "One was asked."}});
    assert_eq!(parts(&session, 1)[2], expected);
    let Body::Compaction(cut) = session.find("c1").unwrap().body().unwrap() else { panic!("c1 is a compaction") };
    assert!(cut.cuts);
    assert_eq!(cut.preserved.iter().map(|id| id.as_str()).collect::<Vec<_>>(), ["u1", "a1"]);
    let from_here = messages(&case("compaction-from-here")).into_iter().flat_map(|message| message.parts);
    let mut counts = from_here.filter_map(|part| serde_json::to_value(part).unwrap()["data"]["messages"].as_u64());
    assert_eq!(counts.next(), Some(2), "as on the agent's screen");
    let kept = parts(&case("compaction-of-another-agent"), 1);
    assert_eq!(kept[2], json!({"type": "data-compaction", "data": {"record": "c1", "summary": "One was asked."}}));
    assert_eq!(kept.as_array().unwrap().len(), 3);
    let alone = case("summary-without-boundary");
    let Body::Compaction(summary) = alone.find("s1").unwrap().body().unwrap() else { panic!("s1 is a summary") };
    assert!(!summary.cuts);
    assert_eq!(parts(&alone, 1)[2]["data"]["summary"], "One was asked.");
}

#[test]
fn pictures_and_documents_are_files() {
    let session = case("images");
    let prompt = parts(&session, 0);
    assert_eq!(
        prompt[1],
        json!({"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,iVBORw0KGgo="})
    );
    assert_eq!((&prompt[2]["mediaType"], &prompt[2]["filename"]), (&json!("application/pdf"), &json!("t.pdf")));
    let output = &parts(&session, 1)[1]["output"];
    assert_eq!(output[0], json!({"type": "text", "text": "b.png"}));
    assert_eq!(output[1]["url"], "data:image/png;base64,iVBORw0KGgo=");
}

#[test]
fn calls_end_as_they_ended() {
    let session = case("tool-failed-and-refused");
    let answer = parts(&session, 1);
    assert_eq!((&answer[1]["state"], &answer[1]["errorText"]), (&json!("output-error"), &json!("Exit code 3")));
    assert_eq!(answer[2]["state"], "output-denied");
    let server = parts(&case("server-tools"), 1);
    assert_eq!((&server[1]["providerExecuted"], &server[1]["state"]), (&json!(true), &json!("output-available")));
    let build = parts(&case("progress"), 1);
    assert_eq!(build[1]["callProviderMetadata"]["scrollback"]["durationMs"], 1200);
    let delegated = parts(&case("real-sub"), 1);
    assert_eq!(delegated[2]["callProviderMetadata"]["scrollback"]["session"], "agent-a7dd37b9ab905cc51");
    let spoken = case("result-with-words");
    assert_eq!(
        (&parts(&spoken, 1)[1]["output"], &parts(&spoken, 2)[0]["text"]),
        (&json!("ok"), &json!("And be quick."))
    );
}

#[test]
fn failures_and_lists_are_told_in_the_metadata() {
    let failed = messages(&case("api-error"));
    assert_eq!(failed[1].metadata.as_ref().unwrap()["error"], true);
    assert!(failed[3].metadata.as_ref().unwrap().get("error").is_none());
    assert_eq!(case("api-error").models(), ["claude-opus-5-5"]);
    let planned = messages(&case("todos"));
    assert!(planned[0].metadata.as_ref().unwrap().get("todos").is_none());
    assert_eq!(planned[1].metadata.as_ref().unwrap()["todos"][1]["content"], "Cut");
}

#[test]
fn a_title_is_the_last_typed_one_and_a_summary_belongs_to_its_leaf() {
    let titles = case("titles");
    assert_eq!(
        titles.title().map(|title| (title.text.as_str(), title.source)),
        Some(("Counting up", TitleSource::Manual))
    );
    assert_eq!(titles.summaries_of_others(), [("elsewhere".to_owned(), "Somebody else's".to_owned())]);
    assert_eq!(case("summary-era").title(), None);
}

#[test]
fn a_sub_agents_file_is_a_child_session() {
    let child = case("sub-agent");
    assert_eq!(child.id().as_str(), "agent-abc");
    assert_eq!(child.parent_session(), Some(("5e551000-0000-4000-8000-000000000001", Some("t1"))));
    assert_eq!(child.title().map(|title| title.text.as_str()), Some("look about"));
    assert!(child.records().all(|record| !record.is_sidechain()));
    assert_eq!(case("sub-agent-older").parent_session(), Some(("5e551000-0000-4000-8000-000000000001", None)));
    assert_eq!(case("sidechain-with-agent-id").parent_session(), None);
}

#[test]
fn sessions_are_found_where_the_agent_keeps_them() {
    let dir = tempfile::tempdir().unwrap();
    let write = |path: &str, id: &str, cwd: &str| {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let line = json!({"type": "user", "uuid": "u1", "parentUuid": null, "sessionId": id, "cwd": cwd, "message": {"content": "Hi"}});
        std::fs::write(path, format!("{line}\n")).unwrap();
    };
    // Two projects whose folders have one name.
    write(".claude/projects/-gone-a-b/s1.jsonl", "s1", "/gone/a-b");
    write(".claude/projects/-gone-a-b/s2.jsonl", "s2", "/gone/a/b");
    write(".claude/projects/-gone-a-b/s2/subagents/agent-7.jsonl", "s2", "/gone/a/b");
    write("elsewhere/projects/-gone-c/s3.jsonl", "s3", "/gone/c");
    let listed = |vars: &[(&str, &str)], store: Option<&Path>| {
        let vars: BTreeMap<String, String> = vars.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        let home = Home { dir: dir.path().to_path_buf(), cwd: dir.path().to_path_buf(), vars };
        let places =
            Places { home: home.clone(), store: store.map(Path::to_path_buf), dialect: Some(&ClaudeCode), mask: None };
        let row = |source: &Source| listing::row(source, &crate::support::reading(), Depth::Ends).unwrap();
        let rows = places.sources().into_iter().map(|source| row(&source.unwrap()));
        rows.map(|row| format!("{} {}", row.id, row.project.unwrap())).collect::<Vec<_>>()
    };
    assert_eq!(listed(&[], None), ["s1 /gone/a-b", "s2 /gone/a/b", "s2 /gone/a/b"]);
    assert_eq!(listed(&[("CLAUDE_CONFIG_DIR", "elsewhere")], None), ["s3 /gone/c"]);
    assert_eq!(listed(&[], Some(&dir.path().join("elsewhere"))), ["s3 /gone/c"]);
    assert_eq!(ClaudeCode.name(), "claude-code");
}

#[test]
fn a_summary_in_another_file_is_a_title() {
    let session = |text: &str| {
        Session::from_bytes(&ClaudeCode, text.as_bytes().to_vec(), &crate::support::reading())
            .row()
            .unwrap()
    };
    let mut older =
        session(r#"{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s1","message":{"content":"Hi"}}"#);
    let mut newer = session(r#"{"type":"summary","summary":"Greeting","leafUuid":"u1"}"#);
    listing::entitle(&mut [&mut older, &mut newer]);
    assert_eq!((older.title.as_str(), older.title_source), ("Greeting", TitleSource::Summary));
    assert_eq!(newer.title_source, TitleSource::Id);
}

#[test]
fn a_command_of_the_agent_is_no_first_prompt() {
    let session = |prompts: &[&str]| {
        let line = |text: &&str| json!({"type": "user", "uuid": text, "message": {"content": text}}).to_string() + "\n";
        let log: String = prompts.iter().map(line).collect();
        Session::from_bytes(&ClaudeCode, log.into_bytes(), &crate::support::reading()).row().unwrap().title
    };
    assert_eq!(session(&["<command-name>/clear</command-name>", "Hi <b>"]), "Hi <b>");
    assert_eq!(session(&["<T> is missing", "Hi"]), "<T> is missing");
    assert_eq!(session(&["<command-name>/clear</command-name>"]), "/clear");
    assert_eq!(session(&["<bash-input>ls</bash-input>", "<bash-stdout>a</bash-stdout>"]), "! ls");
}

#[test]
fn what_a_person_typed_in_tags_is_the_title() {
    let title = |text: &str| {
        let typed = json!({"type": "user", "uuid": "u1", "message": {"content": text}, "origin": {"kind": "human"}, "promptSource": "typed"});
        let log = format!(
            "{typed}\n{}\n",
            json!({"type": "user", "uuid": "u2", "parentUuid": "u1", "message": {"content": "Two?"}})
        );
        Session::from_bytes(&ClaudeCode, log.into_bytes(), &crate::support::reading()).row().unwrap().title
    };
    assert_eq!(title("<bash-input>ls -la</bash-input>"), "ls -la");
    assert_eq!(title("<summary>a <b>sum</b></summary> and <more"), "a sum and <more");
    assert_eq!(title("<system-reminder>mind</system-reminder>"), "mind");
    assert_eq!(title("See <b>this</b>"), "See <b>this</b>");
}

#[test]
fn a_session_read_line_by_line_is_the_whole_one() {
    for name in ["real-full", "real-sub-agent", "compaction", "titles", "sidechain-with-agent-id"] {
        let folder = crate::support::corpus().join("claude-code").join(name);
        let file = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let bytes =
            std::fs::read(file.into_iter().find(|path| path.extension().is_some_and(|e| e == "jsonl")).unwrap());
        let bytes = bytes.unwrap();
        let whole = Session::from_bytes(&ClaudeCode, bytes.clone(), &crate::support::reading());
        let mut grown = Session::from_bytes(&ClaudeCode, Vec::new(), &crate::support::reading());
        for chunk in bytes.chunks(97) {
            grown.push(chunk, &crate::support::reading());
        }
        assert_eq!(crate::support::describe(&grown), crate::support::describe(&whole), "{name}");
        assert_eq!((grown.usage(), grown.title()), (whole.usage(), whole.title()), "{name}");
    }
}

#[test]
fn a_retry_has_words_a_forbidden_call_is_denied_and_a_notification_is_shown() {
    let session = case("notified-denied-reset");
    let shown = serde_json::to_string(&messages(&session)).unwrap();
    assert!(shown.contains("connection reset (ECONNRESET)"), "{shown}");
    assert!(shown.contains(r#"{"kind":"notification","text":"Background done"}"#), "{shown}");
    let row = session.turns().unwrap().row(0).unwrap();
    assert_eq!((row.calls, row.failed_calls, row.denied_calls), (1, 0, 1));
}

#[test]
fn a_command_that_stands_for_a_prompt_is_shown_as_it_was_typed() {
    let session = case("prompt-command");
    assert_eq!(session.row().unwrap().title, "/greet Bob");
    let typed: Vec<_> = messages(&session).into_iter().filter_map(|message| message.metadata).collect();
    assert_eq!(typed[0]["display"]["text"], "/greet Bob");
    assert!(typed[2].get("display").is_none(), "a person typed the tags");
}

#[test]
fn a_call_that_a_hook_forbids_is_denied() {
    assert_eq!(parts(&case("denied-by-a-hook"), 1)[1]["state"], "output-denied");
}

/// A title is what a person asked first, without the tags around it.
#[test]
fn typed_tags_are_no_title() {
    let prompt = |id: &str, parent: Option<&str>, text: &str| {
        let line = serde_json::json!({"type": "user", "uuid": id, "parentUuid": parent, "sessionId": "s", "userType": "external",
            "origin": {"kind": "human"}, "promptSource": "typed", "timestamp": "2026-10-02T09:00:00Z",
            "message": {"role": "user", "content": text}});
        format!("{line}\n")
    };
    let title = |lines: &[String]| {
        let session = Session::from_bytes(&ClaudeCode, lines.concat().into_bytes(), &crate::support::reading());
        session.row().unwrap().title
    };
    let shell = prompt("u1", None, "<bash-input>rm -rf /</bash-input>");
    let command = prompt("u2", Some("u1"), "<command-name>/clear</command-name> what is that?");
    assert_eq!(title(&[shell, command.clone()]), "rm -rf /");
    assert_eq!(title(&[command]), "/clear what is that?");
    assert_eq!(title(&[prompt("u1", None, "How do I close a <div>?")]), "How do I close a <div>?");
}
