//! `serve --allow-record`: who may add records over HTTP, to what, and what is answered.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod support;

use serde_json::{Value, json};
use support::server::{Answer, Server};
use support::{TestEnv, talk};

const RECORDS: &str = "/api/v1/sessions/s1/records";

fn acks(answer: &Answer) -> Vec<Value> {
    answer.body.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn texts(env: &TestEnv) -> Vec<String> {
    let shown = env.run(&["show", "s1", "--json"]).json();
    let messages = shown["messages"].as_array().unwrap();
    messages
        .iter()
        .map(|message| {
            message["parts"].as_array().unwrap().last().unwrap()["text"].as_str().unwrap_or_default().to_owned()
        })
        .collect()
}

#[test]
fn lines_are_acknowledged_as_record_does_and_are_on_disk() {
    let env = TestEnv::new();
    let log = env.session("s1", &talk());
    let server = Server::start(&env, &["serve", "--allow-record"]);
    let answer = server.post(RECORDS, "{\"user\": \"And low water?\"}\n\n{\"assistant\": \"At 10:20.\"}\n");
    assert_eq!(answer.status, 200, "{} {}", answer.head, answer.body);
    let acks = acks(&answer);
    assert_eq!(acks.len(), 2);
    for (ack, seq) in acks.iter().zip([1, 3]) {
        assert_eq!((&ack["seq"], &ack["session"]), (&json!(seq), &json!("s1")), "{ack}");
        assert!(ack["id"].is_string() && ack["durability"].is_string(), "{ack}");
        assert!(std::fs::read_to_string(&log).unwrap().contains(ack["id"].as_str().unwrap()));
    }
    assert_eq!(texts(&env)[4..], ["And low water?", "At 10:20."]);
    // A line that is rejected does not stop the others, as in `record`.
    let mixed = server.post(RECORDS, "not JSON\n{\"user\": \"Thanks.\"}\n");
    assert_eq!(mixed.status, 200, "{}", mixed.body);
    assert!(mixed.body.contains("\"error\"") && mixed.body.contains("\"id\""), "{}", mixed.body);
    assert_eq!(server.post(RECORDS, "not JSON\n").status, 422);
}

#[test]
fn secrets_are_masked_before_they_are_written() {
    let secret = format!("{}{}", "ghp_", "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dF3hJ5");
    let env = TestEnv::new();
    let log = env.session("s1", &talk());
    let server = Server::start(&env, &["serve", "--allow-record"]);
    assert_eq!(server.post(RECORDS, &json!({"user": format!("Use {secret}.")}).to_string()).status, 200);
    let written = std::fs::read_to_string(&log).unwrap();
    assert!(written.contains("[REDACTED:github-token") && !written.contains(&secret), "{written}");
}

#[test]
fn only_the_token_opens_it_and_only_if_it_is_allowed() {
    let env = TestEnv::new();
    let log = env.session("s1", &talk());
    let before = std::fs::read(&log).unwrap();
    let line = "{\"user\": \"Hello?\"}\n";
    let closed = Server::start(&env, &["serve"]);
    let refused = closed.post(RECORDS, line);
    assert_eq!((refused.status, &refused.json()["error"]["kind"]), (403, &json!("forbidden")));
    drop(closed);
    let server = Server::start(&env, &["serve", "--allow-record"]);
    let (cookie, origin) = (server.cookie(), format!("Origin: http://127.0.0.1:{}", server.port));
    let wrong = "Authorization: Bearer wrong";
    let foreign = "Origin: http://evil.example";
    let bearer = server.bearer();
    for (headers, status) in [
        (&[][..], 401),
        (&[cookie.as_str()], 403),
        (&[&cookie, &origin], 401),
        (&[wrong], 401),
        (&[&bearer, foreign], 403),
    ] {
        assert_eq!(server.ask("POST", RECORDS, headers, line).status, status, "{headers:?}");
    }
    assert_eq!(server.ask("POST", &format!("{RECORDS}?token={}", server.token), &[], line).status, 401);
    assert_eq!(server.ask("GET", RECORDS, &[&server.bearer()], "").status, 405);
    assert_eq!(std::fs::read(&log).unwrap(), before);
    let demo = env.run(&["--demo", "serve", "--allow-record"]);
    assert!(demo.code == 2 && demo.err.contains("read-only"), "{}", demo.all());
}

#[test]
fn sessions_that_cannot_be_recorded_to_say_why() {
    let env = TestEnv::new();
    env.session("s1", &talk());
    let folder = env.home().join(".claude/projects/-w");
    std::fs::create_dir_all(&folder).unwrap();
    let claude = json!({"type": "user", "uuid": "u1", "parentUuid": null, "sessionId": "0196f2a1-0000-4000-8000-00000000000a", "cwd": "/w",
        "version": "2.1.0", "timestamp": "2026-11-01T10:00:00Z", "message": {"role": "user", "content": "Hello?"}});
    std::fs::write(folder.join("0196f2a1-0000-4000-8000-00000000000a.jsonl"), format!("{claude}\n")).unwrap();
    let server = Server::start(&env, &["serve", "--allow-record"]);
    let line = "{\"user\": \"Hello?\"}\n";
    assert_eq!(server.post("/api/v1/sessions/nothing/records", line).status, 404);
    let foreign = server.post("/api/v1/sessions/0196f2a1-0000-4000-8000-00000000000a/records", line);
    assert_eq!(foreign.status, 422, "{}", foreign.body);
    assert!(foreign.json()["error"]["message"].as_str().unwrap().contains("claude-code"), "{}", foreign.body);
    assert_eq!(server.post(RECORDS, "\n \n").status, 400);
    assert_eq!(server.post(RECORDS, &"{}\n".repeat(10_001)).status, 413);
    assert_eq!(server.post(RECORDS, &"x".repeat(17 * 1024 * 1024)).status, 413);
    // One that begins while the server runs is found.
    let begun = env.run_with(&["record", "--id", "s2"], line.as_bytes());
    assert_eq!(begun.code, 0, "{}", begun.all());
    assert_eq!(server.post("/api/v1/sessions/s2/records", line).status, 200);
}

#[test]
fn a_key_records_once_also_after_a_restart() {
    let env = TestEnv::new();
    env.session("s1", &talk());
    let line = "{\"user\": \"And low water?\"}\n";
    let ask = |server: &Server, key: &str, line: &str| {
        server.ask("POST", RECORDS, &[&server.bearer(), &format!("Idempotency-Key: {key}")], line)
    };
    let server = Server::start(&env, &["serve", "--allow-record"]);
    let first = ask(&server, "k1", line);
    assert_eq!(first.status, 200, "{}", first.body);
    let again = ask(&server, "k1", line);
    assert_eq!((again.status, &again.body), (200, &first.body));
    assert!(again.head.contains("idempotent-replayed: true"), "{}", again.head);
    drop(server);
    let restarted = Server::start(&env, &["serve", "--allow-record"]);
    assert_eq!(ask(&restarted, "k1", line).body, first.body);
    assert_eq!(texts(&env).len(), 5);
    assert_eq!(ask(&restarted, "k1", "{\"user\": \"Another.\"}\n").status, 422);
    assert_eq!(ask(&restarted, &"k".repeat(300), line).status, 400);
    assert_ne!(ask(&restarted, "k2", line).body, first.body);
    assert_eq!(texts(&env).len(), 6);
}

#[test]
fn the_example_on_the_page_runs() {
    let page = include_str!("../../docs/recording.md");
    let block = page.split("\n```curl\n").nth(1).unwrap().split("\n```").next().unwrap();
    if std::process::Command::new("curl").arg("--version").output().is_err() {
        return;
    }
    let env = TestEnv::new();
    env.session("s1", &talk());
    let server = Server::start(&env, &["serve", "--allow-record"]);
    let line = block
        .replace("4747", &server.port.to_string())
        .replace("TOKEN", &server.token)
        .replace("/ID/", "/s1/");
    let ran = std::process::Command::new("sh").args(["-c", &line]).output().unwrap();
    let answer: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(answer["session"], "s1");
    assert_eq!(texts(&env).last().unwrap(), "When is high water?");
}

#[test]
fn requests_at_the_same_time_follow_each_other_on_one_branch() {
    let env = TestEnv::new();
    env.session("s1", &talk());
    let server = Server::start(&env, &["serve", "--allow-record"]);
    std::thread::scope(|scope| {
        for number in 0..8 {
            let server = &server;
            scope.spawn(move || {
                let line = json!({"user": format!("prompt {number}")}).to_string();
                assert_eq!(server.post(RECORDS, &line).status, 200);
            });
        }
    });
    let mut prompts = texts(&env).split_off(4);
    prompts.sort();
    assert_eq!(prompts, (0..8).map(|number| format!("prompt {number}")).collect::<Vec<_>>());
}
