//! What Qwen Code's records say once they are messages, titles, usage and child sessions. The corpus tells their tree.

use std::collections::BTreeMap;
use std::path::Path;

use crate::support::{messages, parts, reading};
use scrollback::dialect::QwenCode;
use scrollback::model::{Body, Home, Role, TitleSource, Usage};
use scrollback::session::{Session, Source};
use scrollback::view::find::Places;
use scrollback::view::history::{History, View};
use scrollback::view::listing::{self, Depth};
use serde_json::{Value, json};

fn case(name: &str) -> Session {
    let folder = crate::support::corpus().join("qwen-code").join(name);
    let names = ["session.jsonl", "agent-explore-c1.jsonl"].map(|name| folder.join(name));
    let file = names.into_iter().find(|file| file.is_file());
    Session::open(&Source::file(&QwenCode, &file.unwrap()), &crate::support::reading()).unwrap()
}

fn ours(call: &Value) -> &Value {
    &call["callProviderMetadata"]["scrollback"]
}

#[test]
fn pieces_with_one_uuid_are_one_answer() {
    let session = case("seed-immediate-write");
    let answer = parts(&session, 1);
    assert_eq!(answer[1], json!({"type": "reasoning", "text": "Greeting\n\nSomebody is there.", "state": "done"}));
    assert_eq!(answer[2], json!({"type": "text", "text": "Hi!", "state": "done"}));
    let usage =
        Usage { input: Some(60), output: Some(50), cache_read: Some(40), cache_write: None, reasoning: Some(10) };
    assert_eq!((session.usage(), session.models()), (Some(usage), &["qwen3-coder-plus".to_owned()][..]));
    let joined = case("join");
    let answer = parts(&joined, 1);
    assert_eq!((&answer[1]["text"], &answer[2]["text"]), (&json!("Brest"), &json!(", I think.")));
    assert_eq!(joined.usage().unwrap().output, Some(4), "the latest tokens, though they are fewer");
    assert_eq!(messages(&joined)[1].metadata.as_ref().unwrap()["model"], "qwen3-coder-plus");
    assert_eq!((&answer[3]["output"], &ours(&answer[3])["resultDisplay"]), (&json!("ok"), &json!("one")));
    assert_eq!(ours(&answer[3])["displayName"], "List", "notes of both pieces");
    assert_eq!(joined.find("a1").unwrap().at().unwrap().to_string(), "2026-11-10T09:00:04Z");
}

#[test]
fn calls_end_as_they_ended() {
    let session = case("shipped");
    let answer = parts(&session, 1);
    let signed = |text: &str| json!({"google": {"thoughtSignature": text}});
    assert_eq!((&answer[1]["type"], &answer[1]["providerMetadata"]), (&json!("reasoning"), &signed("c2ln")));
    assert_eq!(answer[3]["callProviderMetadata"]["google"], signed("Y2FsbA==")["google"]);
    assert_eq!((&answer[3]["output"], &ours(&answer[3])["durationMs"]), (&json!("done"), &json!(1200)));
    assert_eq!(ours(&answer[3])["resultDisplay"]["exitCode"], 0);
    let answer = parts(&case("tool-failed-and-refused"), 1);
    assert_eq!((&answer[1]["state"], &answer[1]["errorText"]), (&json!("output-error"), &json!("Exit Code: 1")));
    assert_eq!(answer[2]["state"], "output-denied");
    let answer = parts(&case("calls-without-ids"), 1);
    assert_eq!(
        (&answer[1]["output"], &answer[3]["output"], &answer[5]["text"]),
        (&json!("hi"), &json!("two"), &json!("Done."))
    );
    assert_eq!(parts(&case("result-in-the-note"), 1)[1]["output"], "package main");
}

#[test]
fn usage_counts_once_a_request() {
    let session = case("shipped");
    let usage =
        Usage { input: Some(160), output: Some(13), cache_read: Some(60), cache_write: None, reasoning: Some(3) };
    assert_eq!(session.usage(), Some(usage));
    let (fork, copy) = (case("fork"), case("fork"));
    let mut both = copy.requests();
    both.extend(fork.requests());
    assert_eq!(both.len(), 2, "a copy repeats the names of its requests");
}

#[test]
fn a_model_that_joining_drops_is_not_a_model_of_the_session() {
    let line = |id: &str, model: &str, tokens: u64| {
        format!(
            r#"{{"type":"assistant","uuid":"{id}","parentUuid":null,"sessionId":"s","cwd":"/x","timestamp":"2026-10-01T09:00:00Z","model":"{model}","message":{{"role":"model","parts":[{{"text":"{model}"}}]}},"usageMetadata":{{"promptTokenCount":{tokens}}}}}"#
        )
    };
    let models = |lines: &[String]| {
        let session = Session::from_bytes(&QwenCode, lines.join("\n").into_bytes(), &reading());
        let shown = serde_json::to_value(messages(&session)).unwrap();
        let shown: Vec<String> =
            shown.as_array().unwrap().iter().map(|message| message["metadata"]["model"].to_string()).collect();
        let by_model: Vec<String> =
            session.requests().values().filter_map(|request| request.model.map(str::to_owned)).collect();
        (session.models().join(" "), shown.join(" "), by_model.join(" "))
    };
    let (of_session, shown, by_model) = models(&[line("a", "m1", 1), line("a", "m2", 2)]);
    assert_eq!((of_session.as_str(), shown.as_str(), by_model.as_str()), ("m1", "\"m1\"", "m1"));
    let (of_session, _, _) = models(&[line("a", "", 1), line("a", "m2", 2)]);
    assert_eq!(of_session, "m2");
    let (of_session, _, _) = models(&[line("a", "m1", 1), line("a", "m2", 2), line("b", "m2", 2)]);
    assert_eq!(of_session, "m1 m2");
}

#[test]
fn pictures_and_documents_are_files() {
    let session = case("files");
    let prompt = parts(&session, 0);
    let url = "data:image/png;base64,iVBORw0KGgo=";
    assert_eq!(prompt[1], json!({"type": "file", "mediaType": "image/png", "filename": "a.png", "url": url}));
    assert_eq!(prompt[2]["url"], "https://example.org/t.pdf");
    let answer = parts(&session, 1);
    assert_eq!((&answer[1]["output"][0]["text"], &answer[1]["output"][1]["url"]), (&json!("a picture"), &json!(url)));
    assert_eq!(answer[4]["type"], "data-part");
}

#[test]
fn a_compaction_holds_what_the_model_sees_instead() {
    let session = case("compression");
    let Body::Compaction(cut) = session.find("k1").unwrap().body().unwrap() else { panic!("k1 is a compaction") };
    let contents = [
        json!({"role": "user", "parts": [{"text": "One was asked."}]}),
        json!({"role": "model", "parts": [{"text": "Got it."}]}),
    ];
    assert_eq!((cut.cuts, cut.replacement.map(|bodies| bodies.len())), (true, Some(contents.len())));
    assert_eq!((cut.summary.as_deref(), cut.trigger.as_deref()), (Some("One was asked."), Some("manual")));
    assert_eq!((cut.tokens_before, cut.tokens_after), (Some(1000), Some(50)));
    assert_eq!(parts(&session, 1)[2]["type"], "data-compaction");
    let failed = case("compression-mid-turn");
    let Body::Compaction(cut) = failed.find("k2").unwrap().body().unwrap() else { panic!("k2 is a compaction") };
    assert!(!cut.cuts);
    assert_eq!(parts(&failed, 1)[1]["output"], "a", "the result stands behind the compaction");
}

#[test]
fn who_said_what() {
    let roles = |name: &str| messages(&case(name)).iter().map(|message| message.role).collect::<Vec<_>>();
    assert_eq!(roles("mid-turn-message"), [Role::User, Role::Assistant, Role::User, Role::Assistant]);
    assert_eq!(roles("not-typed"), [Role::User, Role::Assistant, Role::System]);
    let session = case("every-subtype");
    let said: Vec<Value> = (0..7).map(|at| parts(&session, at)[0]["text"].clone()).collect();
    assert_eq!(said[1..5], [json!("Read 1 file"), json!(null), json!("/about"), json!("Qwen Code 0.24.4")]);
    let failed = parts(&session, 6);
    assert_eq!(failed[0]["data"]["text"], "quota exceeded");
    assert_eq!(session.parent_session(), Some(("5e551000-0000-4000-8000-00000000000a", None)));
    let rewind = parts(&case("rewind"), 1);
    assert_eq!((&rewind[2]["data"]["to"], &rewind[2]["data"]["reason"]), (&json!("a1"), &json!("2 items rewound")));
}

#[test]
fn a_typed_title_goes_before_an_automatic_one() {
    let session = case("titles");
    let title = session.title().map(|title| (title.text.as_str(), title.source));
    assert_eq!(title, Some(("By hand", TitleSource::Manual)));
    assert_eq!(case("title-again").title().unwrap().text, "Anchor");
}

#[test]
fn a_title_is_found_where_the_agent_writes_it_again() {
    let dir = tempfile::tempdir().unwrap();
    let line = |id: usize, kind: &str, rest: Value| {
        let parent = (id > 0).then(|| format!("r{}", id - 1));
        let mut line = json!({"uuid": format!("r{id}"), "parentUuid": parent, "sessionId": "s", "type": kind,
            "timestamp": "2026-11-10T09:00:00Z", "cwd": "/x"});
        line.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        line.to_string() + "\n"
    };
    let said = |id| line(id, "user", json!({"message": {"role": "user", "parts": [{"text": "x".repeat(2000)}]}}));
    let title = line(20, "system", json!({"subtype": "custom_title", "systemPayload": {"customTitle": "Tides"}}));
    let log: String = (0..20).map(said).chain([title]).chain((21..40).map(said)).collect();
    let path = dir.path().join("s.jsonl");
    std::fs::write(&path, log).unwrap();
    let row = listing::row(&Source::file(&QwenCode, &path), &crate::support::reading(), Depth::Ends).unwrap();
    assert_eq!(row.title, "Tides");
}

#[test]
fn a_fork_names_its_origin_and_a_voice_is_somebodys() {
    let row = case("fork").row().unwrap();
    assert_eq!(row.forked_from.unwrap().as_str(), "5e551000-0000-4000-8000-00000000000a");
    let senders: Vec<Value> = messages(&case("not-typed"))
        .into_iter()
        .filter_map(|message| message.metadata?.get("sender").cloned())
        .collect();
    assert_eq!(senders, ["you, aloud"]);
}

#[test]
fn a_sub_agents_file_is_a_child_session() {
    let child = case("sub-agent");
    assert_eq!(child.id().as_str(), "agent-explore-c1");
    assert_eq!(child.parent_session(), Some(("5e551000-0000-4000-8000-000000000001", Some("c1"))));
    assert_eq!(child.title().map(|title| title.text.as_str()), Some("look about"));
    assert!(child.records().all(|record| !record.is_sidechain()));
    assert_eq!(case("sidechain-inline").parent_session(), None);
}

#[test]
fn sessions_are_found_where_the_agent_keeps_them() {
    let dir = tempfile::tempdir().unwrap();
    let write = |path: &str, cwd: &str| {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let line = json!({"type": "user", "uuid": "u1", "parentUuid": null, "cwd": cwd, "message": {"role": "user", "parts": [{"text": "Hi"}]}});
        std::fs::write(path, format!("{line}\n")).unwrap();
    };
    let id = |n: u8| format!("5e551000-0000-4000-8000-00000000000{n}");
    // Two projects whose folders have one name.
    write(&format!(".qwen/projects/-gone-a-b/chats/{}.jsonl", id(1)), "/gone/a-b");
    write(&format!(".qwen/projects/-gone-a-b/chats/{}.jsonl", id(2)), "/gone/a/b");
    write(".qwen/projects/-gone-a-b/chats/prompts.jsonl", "/gone/a-b");
    write(&format!(".qwen/projects/-gone-a-b/chats/archive/{}.jsonl", id(3)), "/gone/a-b");
    write(&format!(".qwen/projects/-gone-a-b/subagents/{}/agent-x-7.jsonl", id(1)), "/gone/a-b");
    write(&format!("home/projects/-gone-c/chats/{}.jsonl", id(4)), "/gone/c");
    write(&format!("runtime/projects/-gone-d/chats/{}.jsonl", id(5)), "/gone/d");
    let listed = |vars: &[(&str, &str)], store: Option<&Path>| {
        let vars: BTreeMap<String, String> = vars.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        let home = Home { dir: dir.path().to_path_buf(), cwd: dir.path().to_path_buf(), vars };
        let places =
            Places { home: home.clone(), store: store.map(Path::to_path_buf), dialect: Some(&QwenCode), mask: None };
        let row = |source: &Source| listing::row(source, &crate::support::reading(), Depth::Ends).unwrap();
        let rows = places.sources().into_iter().map(|source| row(&source.unwrap()));
        rows.map(|row| format!("{} {}", row.id, row.project.unwrap())).collect::<Vec<_>>()
    };
    let (one, two, three) = (id(1) + " /gone/a-b", id(2) + " /gone/a/b", id(3) + " /gone/a-b");
    assert_eq!(listed(&[], None), [one, two, three, "agent-x-7 /gone/a-b".to_owned()]);
    assert_eq!(listed(&[("QWEN_HOME", "home")], None), [id(4) + " /gone/c"]);
    assert_eq!(listed(&[("QWEN_HOME", "home"), ("QWEN_RUNTIME_DIR", "runtime")], None), [id(5) + " /gone/d"]);
    assert_eq!(listed(&[], Some(&dir.path().join("home"))), [id(4) + " /gone/c"]);
}

#[test]
fn a_session_read_line_by_line_is_the_whole_one() {
    for (_, log) in crate::support::logs_of("qwen-code") {
        let bytes = std::fs::read(&log).unwrap();
        let whole = Session::from_bytes(&QwenCode, bytes.clone(), &crate::support::reading());
        let mut grown = Session::from_bytes(&QwenCode, Vec::new(), &crate::support::reading());
        for chunk in bytes.chunks(97) {
            grown.push(chunk, &crate::support::reading());
        }
        assert_eq!(crate::support::describe(&grown), crate::support::describe(&whole), "{}", log.display());
        assert_eq!((grown.usage(), grown.title()), (whole.usage(), whole.title()), "{}", log.display());
    }
}

fn contents(session: &Session) -> Vec<Value> {
    let history = History::of(session, session.head().unwrap()).unwrap();
    View::Gemini.messages(&history).unwrap().0
}

/// Each word names a recorded content by its uuid; `+` joins parts, `k1*` is a compressed history.
#[test]
fn the_model_sees_the_recorded_contents_unchanged_and_in_order() {
    for (name, expected) in [
        ("compression", "k1* u2 a2"),
        ("compression-mid-turn", "k1* r1 a2"),
        ("mid-turn-message", "u1 a1 r1+m1 a2"),
        ("not-typed", "u1 a1 n1 a2 n2 n3 a3"),
        ("join", "u1 a1+a1+a1 r1"),
        ("rewind", "u1 a1 u3 a3"),
        ("shipped", "u1 a1 r1 a2"),
        ("tool-failed-and-refused", "u1 a1 r1+r2 a2"),
        ("result-without-call", "u1 a1"),
        ("duplicate-line", "u1 a1 a2"),
        ("sub-agent", "u1 a1 a2 r1 e1 e2 a3"),
    ] {
        let session = case(name);
        let text = std::fs::read_to_string(session.path()).unwrap();
        let lines: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let mut recorded: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
        for line in lines.iter().filter(|line| line.get("message").is_some()) {
            recorded.entry(line["uuid"].as_str().unwrap()).or_default().push(&line["message"]);
        }
        let mut wanted: Vec<Value> = Vec::new();
        for word in expected.split(' ') {
            if let Some(uuid) = word.strip_suffix('*') {
                let line = lines.iter().find(|line| line["uuid"] == uuid).unwrap();
                wanted.extend(line["systemPayload"]["compressedHistory"].as_array().unwrap().iter().cloned());
                continue;
            }
            let mut pieces = word.split('+').map(|uuid| recorded.get_mut(uuid).unwrap().remove(0).clone());
            let mut content = pieces.next().unwrap();
            for mut piece in pieces {
                content["parts"].as_array_mut().unwrap().append(piece["parts"].as_array_mut().unwrap());
            }
            wanted.push(content);
        }
        // As text: the order of keys is a part of what was recorded.
        let as_text = |contents: &[Value]| contents.iter().map(Value::to_string).collect::<Vec<_>>();
        assert_eq!(as_text(&contents(&session)), as_text(&wanted), "{name}");
    }
}

#[test]
fn what_the_api_would_refuse_is_repaired() {
    let closed = json!({"error": "[no result was recorded: the session ended before this call finished]"});
    assert_eq!(
        contents(&case("open-call"))[2],
        json!({"role": "user", "parts": [{"functionResponse": {"name": "read_file", "response": closed, "id": "c1"}}]})
    );
    assert_eq!(
        contents(&case("result-in-the-note"))[2],
        json!({"role": "user", "parts": [
            {"functionResponse": {"id": "c1", "name": "read_file", "response": {"output": "package main"}}},
        ]})
    );
    let without_ids = contents(&case("calls-without-ids"));
    assert_eq!(
        without_ids[2],
        json!({"role": "user", "parts": [{"functionResponse": {"name": "bash", "response": {"output": "hi"}}}]})
    );
    assert_eq!(without_ids[5], json!({"role": "model", "parts": [{"text": "Done."}]}));
}

#[test]
fn a_request_that_was_tried_again_with_success_has_not_failed() {
    let session = case("failed-request-retried");
    let answer = parts(&session, 1);
    let attempts = &answer[0]["data"];
    assert_eq!((&attempts["attempts"], &attempts["retried"]), (&json!(2), &json!(true)));
    assert_eq!(answer[2]["text"], "At noon.");
    assert_eq!(messages(&session)[1].metadata.as_ref().unwrap().get("error"), None);
    let failed = case("failed-request");
    assert_eq!(messages(&failed)[3].metadata.as_ref().unwrap()["error"], true);
    assert_eq!(parts(&failed, 3)[0]["data"].get("retried"), None, "nothing came after it");
}

#[test]
fn what_a_person_typed_in_tags_is_the_title() {
    let prompt = |id: &str, parent: Option<&str>, text: &str| {
        json!({"uuid": id, "parentUuid": parent, "sessionId": "s", "timestamp": "2026-11-10T09:00:01Z", "type": "user",
            "provenance": "real_user", "message": {"role": "user", "parts": [{"text": text}]}})
    };
    let log = format!("{}\n{}\n", prompt("u1", None, "<summary>typed</summary>"), prompt("u2", Some("u1"), "Two?"));
    let session = Session::from_bytes(&QwenCode, log.into_bytes(), &reading());
    assert_eq!(session.row().unwrap().title, "typed");
}
