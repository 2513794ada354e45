//! `replay`, and `serve --replay`: a session played again for a person, and as the model of an agent.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod support;

use serde_json::{Value, json};
use support::server::{Answer, Server};
use support::{TestEnv, line, talk};

/// A question, a call, its result and an answer.
fn tides(env: &TestEnv) {
    let record = |kind: &str, id: &str, parent: Option<&str>, at: &str, more: Value| {
        let mut record = json!({"type": kind, "uuid": id, "parentUuid": parent, "sessionId": "s1", "format": 2,
            "timestamp": format!("2026-11-01T10:00:{at}Z"), "context": {"cwd": "/gone/tide"}});
        record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        format!("{record}\n")
    };
    let lines = [
        record("user", "u1", None, "00", json!({"message": {"role": "user", "content": "When is high water?"}})),
        record(
            "assistant",
            "a1",
            Some("u1"),
            "01",
            json!({"message": {"role": "assistant", "content": "I look.", "model": "tide-1",
            "toolCalls": [{"id": "c1", "name": "read", "arguments": {"path": "brest.csv"}}]}}),
        ),
        record(
            "tool_result",
            "r1",
            Some("a1"),
            "02",
            json!({"toolResults": [{"toolCallId": "c1", "toolName": "read", "content": "04:12", "success": true}]}),
        ),
        record(
            "assistant",
            "a2",
            Some("r1"),
            "40",
            json!({"message": {"role": "assistant", "content": "At 04:12.", "model": "tide-1"}}),
        ),
    ];
    env.session("s1", &lines.concat());
}

#[test]
fn a_replay_without_a_terminal_waits_for_nothing() {
    let env = TestEnv::new();
    tides(&env);
    let played = env.run(&["replay", "s1"]);
    assert_eq!(played.code, 0, "{}", played.all());
    let places =
        ["When is high water?", "I look.", "brest.csv", "At 04:12."].map(|words| played.out.find(words).unwrap());
    assert!(places.is_sorted(), "{}", played.out);
    assert_eq!(env.run(&["replay", "s1", "--step"]).out, played.out);
    let lines = env.run(&["replay", "s1", "--json", "--speed", "0.5"]);
    let lines: Vec<Value> = lines.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!((&lines[1]["pauseMs"], &lines[1]["message"]["id"]), (&json!(1_000), &json!("a1")));
    let shown = env.run(&["show", "s1", "--json"]).json();
    assert_eq!(lines[1]["message"], shown["messages"][1]);
    assert!(env.run(&["replay", "s1#a1"]).out.contains("At 04:12."));
    assert!(!env.run(&["replay", "s1#a1"]).out.contains("high water"));
    for wrong in
        [&["replay", "s1", "--speed", "0"][..], &["replay", "s1", "--speed", "2", "--step"], &["replay", "s1#zz"]]
    {
        assert_ne!(env.run(wrong).code, 0, "{wrong:?}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn at_a_terminal_it_takes_its_time_and_the_last_frame_is_what_show_shows() {
    let env = TestEnv::new();
    tides(&env);
    // 1 s, 1 s and 38 s, which are 3.
    let began = std::time::Instant::now();
    let played = env.on_terminal([40, 80], "replay s1 --speed 20 < /dev/null");
    assert!(began.elapsed() >= std::time::Duration::from_millis(250), "5 s, 20 times as fast");
    assert!(played.contains("Playing") && played.contains("At 04:12."), "{played}");
    assert_eq!(played.matches("I look.").count(), 1, "{played}");
}

const APIS: [(&str, &str, &str); 4] = [
    ("anthropic", "/v1/messages", "messages"),
    ("openai", "/v1/chat/completions", "messages"),
    ("openai-responses", "/v1/responses", "input"),
    ("gemini", "/v1beta/models/tide-1:generateContent", "contents"),
];

/// What `history` gives at a record.
fn history(env: &TestEnv, at: &str, view: &str) -> Value {
    env.run(&["history", &format!("s1#{at}"), "--for", view]).json()
}

#[test]
fn every_api_gives_the_recorded_answer_whole_and_streamed() {
    let env = TestEnv::new();
    tides(&env);
    let server = Server::start(&env, &["serve", "--replay", "s1"]);
    for (view, path, field) in APIS {
        for (point, words) in [("u1", "brest.csv"), ("r1", "At 04:12.")] {
            let mut request = json!({"model": "m", "max_tokens": 100, field: history(&env, point, view)});
            let whole = server.post(path, &request.to_string());
            assert!(whole.status == 200 && whole.body.contains(words), "{view} {point}: {} {}", whole.head, whole.body);
            assert!(whole.head.contains("application/json"), "{}", whole.head);
            request["stream"] = true.into();
            let path = path.replace(":generateContent", ":streamGenerateContent?alt=sse");
            let streamed = server.post(&path, &request.to_string());
            assert!(streamed.head.contains("text/event-stream"), "{view}: {}", streamed.head);
            let last = match view {
                "anthropic" => "message_stop",
                "openai" => "[DONE]",
                "openai-responses" => "response.completed",
                _ => "\"finishReason\":\"STOP\"",
            };
            assert!(streamed.status == 200 && streamed.body.contains(last), "{view} {point}: {}", streamed.body);
        }
    }
    let (code, printed) = server.stop();
    assert_eq!(code, Some(0));
    assert!(printed.contains("Played 2 of 2 answers"), "{printed}");
}

#[test]
fn a_difference_is_refused_and_shown_and_loosely_it_is_answered() {
    let env = TestEnv::new();
    tides(&env);
    let server = Server::start(&env, &["serve", "--replay", "s1"]);
    for (view, path, field) in APIS {
        let other = history(&env, "r1", view).to_string().replace("04:12", "05:00");
        let other: Value = serde_json::from_str(&other).unwrap();
        let refused = server.post(path, &json!({"model": "m", field: other}).to_string());
        assert_eq!(refused.status, 409, "{view}: {}", refused.body);
        assert!(refused.head.contains("x-should-retry: false"), "{}", refused.head);
        let error = &refused.json()["error"];
        assert_eq!(error["difference"]["sent"], json!({"kind": "result", "text": "1: 05:00"}), "{view}");
        assert_eq!(error["difference"]["expected"], json!({"kind": "result", "text": "1: 04:12"}), "{view}");
    }
    let request = json!({"model": "m", "messages": [{"role": "user", "content": "Something else?"}]}).to_string();
    assert_eq!(server.post("/v1/messages", &request).status, 409);
    assert_eq!(server.post("/v1/messages", "no JSON").status, 400);
    assert!(server.stop().1.contains("refused: the request differs"));
    let loose = Server::start(&env, &["serve", "--replay", "s1", "--loose"]);
    let answered = loose.post("/v1/messages", &request);
    assert!(answered.status == 200 && answered.body.contains("brest.csv"), "{}", answered.body);
}

#[test]
fn injected_context_ids_and_dates_do_not_count() {
    let env = TestEnv::new();
    tides(&env);
    let server = Server::start(&env, &["serve", "--replay", "s1"]);
    let request = json!({"model": "m", "system": "You are an agent. Today is 2026-11-17.", "tools": [{"name": "read"}], "messages": [
        {"role": "user", "content": [{"type": "text", "text": "<system-reminder>\nIt is 2026-11-17.\n</system-reminder>"}, {"type": "text", "text": "When is high water?"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "I look."}, {"type": "tool_use", "id": "toolu_other", "name": "read", "input": {"path": "brest.csv"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_other", "content": "04:12"}]},
    ]});
    let answered = server.post("/v1/messages", &request.to_string());
    assert!(answered.status == 200 && answered.body.contains("At 04:12."), "{}", answered.body);
}

#[test]
fn side_requests_get_canned_answers_and_are_listed() {
    let env = TestEnv::new();
    tides(&env);
    let server = Server::start(&env, &["serve", "--replay", "s1"]);
    let key = format!("x-api-key: {}", server.token);
    let goog = format!("x-goog-api-key: {}", server.token);
    let ask =
        |method: &str, path: &str, body: Value| -> Answer { server.ask(method, path, &[&key], &body.to_string()) };
    let counted = ask("POST", "/v1/messages/count_tokens", json!({"messages": []}));
    assert!(counted.status == 200 && counted.json()["input_tokens"].is_u64(), "{}", counted.body);
    let titled = ask(
        "POST",
        "/v1/messages",
        json!({"max_tokens": 50, "system": "Generate a title.", "messages": [{"role": "user", "content": "x"}]}),
    );
    assert!(titled.status == 200 && titled.body.contains("When is high water?"), "{}", titled.body);
    assert_eq!(ask("GET", "/v1/models", json!(null)).json()["data"][0]["id"], "tide-1");
    let counted = server.ask("POST", "/v1beta/models/m:countTokens", &[&goog], "{}");
    assert!(counted.json()["totalTokens"].is_u64());
    assert_eq!(ask("POST", "/v1/embeddings", json!({})).status, 404);
    let listed = ask("GET", "/v1/replay", json!(null)).json();
    let outcomes: Vec<&str> =
        listed["requests"].as_array().unwrap().iter().map(|row| row["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["side", "side", "side", "side", "unknown"]);
    // Nobody without the token, and not with the cookie of a browser either.
    for headers in [&[][..], &["x-api-key: wrong"], &["Authorization: Bearer "]] {
        assert_eq!(server.ask("POST", "/v1/messages", headers, "{}").status, 401, "{headers:?}");
    }
    assert_eq!(server.ask("POST", "/v1/messages", &[&server.cookie()], "{}").status, 401);
    let (_, printed) = server.stop();
    assert!(printed.contains("/v1/messages/count_tokens: beside the conversation"), "{printed}");
}

#[test]
fn what_cannot_be_played_is_an_error() {
    let env = TestEnv::new();
    env.session("s1", &line("user", "u1", None, "Nobody answers."));
    env.session("s2", &talk().replace("\"s1\"", "\"s2\""));
    for (args, words) in [
        (&["serve", "--replay", "s1"][..], "no answers to play"),
        (&["serve", "--replay", "nothing"], "no session matches"),
        (&["serve", "--replay", "s2#a1"], "from its start"),
        (&["serve", "--loose"], "--replay"),
    ] {
        let ran = env.run(args);
        assert!(ran.code != 0 && ran.err.contains(words), "{args:?}: {}", ran.all());
    }
}
