//! `stats` as a person types it: the same numbers whatever repeats a session, with an index and without one.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod support;

use std::fs;

use serde_json::{Value, json};
use support::{Ran, TestEnv};

/// Puts a session of Claude Code into the home: two turns, an answer in two lines, a call that fails and is tried again.
fn claude(env: &TestEnv, id: &str) -> std::path::PathBuf {
    let folder = env.home().join(".claude/projects/-gone-tides");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(format!("{id}.jsonl"));
    let usage = |output: u64| json!({"input_tokens": 10, "output_tokens": output, "cache_read_input_tokens": 90});
    let answer = |request: u64, block: Value, output: u64| {
        json!({"requestId": format!("req_{request}"), "message": {"role": "assistant", "id": format!("msg_{request}"),
            "model": "claude-opus-4-5", "content": [block], "usage": usage(output)}})
    };
    let user = |content: Value| json!({"message": {"role": "user", "content": content}});
    let call = |call: &str| json!({"type": "tool_use", "id": call, "name": "=Edit", "input": {"file_path": "/gone/tides/a", "old_string": "a", "new_string": "b"}});
    let result = |call: &str, is_error: bool| {
        user(json!([{"type": "tool_result", "tool_use_id": call, "content": "x", "is_error": is_error}]))
    };
    let text = |text: &str| json!({"type": "text", "text": text});
    let lines = [
        user(json!("When is high water?")),
        answer(1, text("Let me look."), 3),
        answer(1, call("c1"), 30),
        result("c1", true),
        answer(2, call("c2"), 20),
        result("c2", false),
        answer(3, text("At five."), 5),
        user(json!("Thanks.")),
        answer(4, text("You are welcome."), 7),
    ];
    let mut log = String::new();
    for (at, mut line) in lines.into_iter().enumerate() {
        line["type"] = line["message"]["role"].clone();
        line["uuid"] = format!("{id}-{at}").into();
        line["parentUuid"] = at.checked_sub(1).map(|before| format!("{id}-{before}")).into();
        line["sessionId"] = id.into();
        line["cwd"] = "/gone/tides".into();
        line["timestamp"] = format!("2026-11-14T23:5{at}:00.000Z").into();
        log.push_str(&format!("{line}\n"));
    }
    fs::write(&path, log).unwrap();
    path
}

fn total(ran: &Ran) -> Value {
    ran.json()["total"].clone()
}

#[test]
fn a_fork_and_a_conversion_change_no_number() {
    let env = TestEnv::new();
    let path = claude(&env, "5e55104a-0000-4000-8000-000000000001");
    let before = env.run(&["stats", "--all", "--json"]);
    assert_eq!(before.code, 0, "{}", before.all());
    let before = total(&before);
    assert_eq!(
        before,
        json!({
            "usage": {"input": 40, "output": 62, "cacheRead": 360}, "costUsd": 0.00193, "unpriced": 0, "requests": 4, "sessions": 1,
            "messages": 6, "turns": 2, "toolCalls": 2, "toolFailures": 1, "toolSeconds": 120.0, "filesTouched": 1,
            "activeSeconds": 480.0, "thinkingCharacters": 0, "thinkingShare": 0.0, "cacheHitRate": 0.9, "retries": 1,
            "compactions": 0, "cleanEnds": 2, "thinkingTurns": 0, "thinkingCleanEnds": 0,
        })
    );
    for arguments in [
        &["fork", "5e55"][..],
        &["convert", "claude-code:5e55104a-0000-4000-8000-000000000001", "--to", "native"],
        &["convert", "claude-code:5e55104a-0000-4000-8000-000000000001", "--to", "codex"],
        &["convert", "claude-code:5e55104a-0000-4000-8000-000000000001", "--to", "qwen-code"],
    ] {
        let made = env.run(arguments);
        assert_eq!(made.code, 0, "{arguments:?} {}", made.all());
        assert_eq!(total(&env.run(&["stats", "--all", "--json"])), before, "{arguments:?}");
        let rows = env.run(&["stats", "--all", "--by", "agent", "--json"]).json()["rows"].clone();
        assert_eq!(rows.as_array().unwrap().len(), 1, "an agent that only has copies has no row: {rows}");
    }
    // The index only remembers: without it the numbers are the same.
    assert_eq!(total(&env.run(&["stats", "--all", "--json", "--no-redact"])), before);
    // Whoever is left has it.
    fs::remove_file(path).unwrap();
    let left = total(&env.run(&["stats", "--all", "--json"]));
    assert_eq!((&left["usage"], &left["turns"]), (&before["usage"], &before["turns"]));
}

/// The files that a session begins in are not in its own: what was counted with them does not count without.
#[test]
fn what_a_session_begins_in_counts_as_long_as_it_is_there() {
    let env = TestEnv::new();
    let folder = env.home().join(".codex/sessions/2026/10/02");
    fs::create_dir_all(&folder).unwrap();
    let segments = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/codex/segments");
    let mut files: Vec<_> = fs::read_dir(segments).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "jsonl"));
    files.sort();
    let files: Vec<_> = files
        .iter()
        .map(|file| {
            let copy = folder.join(file.file_name().unwrap());
            fs::copy(file, &copy).unwrap();
            copy
        })
        .collect();
    let is_counted_as_read = |when: &str| {
        let (known, read) = (["stats", "--all", "--json"], ["stats", "--all", "--json", "--no-redact"]);
        let (known, read) = (env.run(&known), env.run(&read));
        assert_eq!((&known.out, known.code), (&read.out, read.code), "{when}");
        known.out
    };
    env.run(&["index"]);
    let whole = is_counted_as_read("all there");
    fs::remove_file(&files[0]).unwrap();
    assert_ne!(is_counted_as_read("the first file is gone"), whole);
    env.run(&["index"]);
    is_counted_as_read("and that is indexed");
    let last = files.last().unwrap();
    let lines = fs::read_to_string(last).unwrap();
    fs::write(last, lines.split_inclusive('\n').take(2).collect::<String>()).unwrap();
    is_counted_as_read("and the last one is cut");
    env.run(&["index"]);
    is_counted_as_read("and that is indexed, too");
}

#[test]
fn rows_have_a_name_for_each_level() {
    let env = TestEnv::new();
    claude(&env, "s1");
    let stats = env.run(&["stats", "--all", "--by", "day,model,day", "--json", "--utc"]).json();
    assert_eq!(stats["by"], json!(["day", "model"]));
    assert_eq!(stats["rows"][0]["key"], json!(["2026-11-14", "claude-opus-4-5"]));
    assert!(stats["total"].get("key").is_none());
    let late = env.run(&["stats", "--all", "--json", "--utc", "--since", "2026-11-14T23:57:00Z"]).json();
    assert_eq!(
        (&late["total"]["requests"], &late["total"]["turns"]),
        (&json!(1), &json!(1)),
        "by the time of the fact"
    );
    let csv = env.run(&["stats", "--all", "--by", "tool", "--csv"]).out;
    let lines: Vec<&str> = csv.lines().collect();
    assert!(lines[0].starts_with("tool,input,output,"), "{csv}");
    assert!(lines[1].starts_with("'=Edit,"), "a name is no formula: {csv}");
    let unknown = env.run(&["stats", "--by", "year"]);
    assert_eq!(unknown.code, 2, "{}", unknown.all());
}

#[test]
fn a_number_is_explained_by_its_lines_and_a_copy_by_its_original() {
    let env = TestEnv::new();
    let path = claude(&env, "s1");
    let copy = fs::read_to_string(&path).unwrap().replace("\"s1\"", "\"s2\"");
    fs::write(path.with_file_name("s2.jsonl"), copy).unwrap();
    let explained = env.run(&["stats", "--all", "--explain", "--json"]).json();
    let [counted, not_counted] = ["counted", "notCounted"].map(|list| explained[list].as_array().unwrap().clone());
    assert_eq!((counted.len(), not_counted.len()), (4, 4));
    let first = &counted[0];
    assert_eq!(
        (&first["lines"], &first["messageId"], &first["requestId"]),
        (&json!([2, 3]), &json!("msg_1"), &json!("req_1"))
    );
    assert_eq!(first["usage"]["output"], 30);
    assert_eq!(first["rule"], "once for 2 lines of one answer: those with the most output");
    assert_eq!(not_counted[0]["rule"], "the same request counts in session s1, which started first");
}

#[test]
fn what_no_list_knows_is_unpriced_until_the_user_prices_it() {
    let env = TestEnv::new();
    let path = claude(&env, "s1");
    let log = fs::read_to_string(&path).unwrap().replace("claude-opus-4-5", "my-own-model");
    fs::write(&path, log).unwrap();
    let total = |env: &TestEnv| env.run(&["stats", "--all", "--json"]).json()["total"].clone();
    assert_eq!((total(&env).get("costUsd"), &total(&env)["unpriced"]), (None, &json!(4)));
    let prices = env.home().join(".config/scrollback/prices.toml");
    fs::create_dir_all(prices.parent().unwrap()).unwrap();
    fs::write(&prices, "[[price]]\nmatch = \"my-*\"\ninput = 1000000\noutput = 0\ncache_read = 0\n").unwrap();
    assert_eq!((&total(&env)["costUsd"], &total(&env)["unpriced"]), (&json!(40.0), &json!(0)));
    let question = "select sum(cost_usd) as usd from usage where counted";
    assert_eq!(env.run(&["sql", question, "--all", "--json"]).json(), json!([{"usd": 40.0}]), "the same in SQL");
    // A mistake in one entry leaves the others.
    let good = fs::read_to_string(&prices).unwrap();
    fs::write(&prices, format!("[[price]]\nmatch = \"*\"\ninput = -1\noutput = 0\n{good}")).unwrap();
    let partly = env.run(&["stats", "--all", "--json"]);
    assert_eq!(partly.json()["total"]["costUsd"], json!(40.0));
    assert!(partly.err.contains("number 1 does not count"), "{}", partly.err);
    fs::write(&prices, "[[price]]\nmatch = 3").unwrap();
    let wrong = env.run(&["stats", "--all"]);
    assert!(wrong.code == 0 && wrong.err.contains("prices.toml"), "{}", wrong.all());
}

/// A session of one answer with this usage and these further fields of its line, and what is counted and explained of it.
fn counted(usage: Value, more: &Value) -> (Value, Value) {
    let env = TestEnv::new();
    let path = claude(&env, "s1");
    let log = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = log.lines().take(2).collect();
    let mut answer: Value = serde_json::from_str(lines[1]).unwrap();
    answer["message"]["usage"] = usage;
    answer.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    fs::write(&path, format!("{}\n{answer}\n", lines[0])).unwrap();
    let total = env.run(&["stats", "--all", "--json"]).json()["total"].clone();
    (total, env.run(&["stats", "--all", "--explain", "--json"]).json())
}

#[test]
fn what_cannot_be_true_is_ignored_and_explained() {
    let tokens = json!({"input_tokens": 1_000_000});
    // The cost by the list.
    let listed = (json!(5.0), json!(0), json!(1));
    let unpriced = (Value::Null, json!(1), json!(1));
    for (usage, more, expected, ignored) in [
        (tokens.clone(), json!({"costUSD": 0.25}), (json!(0.25), json!(0), json!(1)), json!(null)),
        (tokens.clone(), json!({"costUSD": 1e12}), listed.clone(), json!(["costUSD: 1000000000000.0"])),
        (tokens.clone(), json!({"costUSD": -1}), listed.clone(), json!(["costUSD: -1"])),
        (tokens, json!({"costUSD": "0.2"}), listed.clone(), json!(["costUSD: \"0.2\""])),
        (json!({"input_tokens": 1e6}), json!({}), listed, json!(null)),
        (json!({}), json!({}), unpriced.clone(), json!(null)),
        (json!({"input_tokens": "12"}), json!({}), unpriced, json!(["input_tokens: \"12\""])),
    ] {
        let (total, explained) = counted(usage.clone(), &more);
        let found = (total["costUsd"].clone(), total["unpriced"].clone(), total["requests"].clone());
        assert_eq!(found, expected, "{usage} {more}");
        assert_eq!(explained["counted"][0]["ignored"], ignored, "{usage} {more}");
    }
    for usage in [json!("str"), json!(5), json!([])] {
        let (total, explained) = counted(usage.clone(), &json!({}));
        assert_eq!((&total["requests"], &explained["counted"]), (&json!(0), &json!([])), "{usage}");
        assert_eq!(explained["notCounted"][0]["ignored"], json!([format!("usage: {usage}")]));
        assert_eq!(explained["notCounted"][0]["lines"], json!([2]));
    }
}

#[test]
fn a_cost_in_another_currency_is_no_cost_in_dollars() {
    let env = TestEnv::new();
    let line = |currency: Value| {
        let answer = json!({"type": "assistant", "uuid": "a1", "parentUuid": null, "sessionId": "s1", "timestamp": "2026-11-14T10:00:00Z",
            "message": {"role": "assistant", "content": "Hi", "model": "my-own-model"},
            "usage": {"inputTokens": 5, "costEstimate": 0.25, "currency": currency}});
        format!("{answer}\n")
    };
    for (currency, cost) in [(json!(null), json!(0.25)), (json!("usd"), json!(0.25)), (json!("EUR"), json!(null))] {
        env.session("s1", &line(currency.clone()));
        let total = env.run(&["stats", "--all", "--json"]).json()["total"].clone();
        assert_eq!(total.get("costUsd").unwrap_or(&Value::Null), &cost, "{currency}");
    }
    let explained = env.run(&["stats", "--all", "--explain", "--json"]).json();
    assert_eq!(explained["counted"][0]["ignored"], json!(["costEstimate: 0.25 EUR"]));
}

#[cfg(target_os = "linux")]
#[test]
fn names_cannot_control_a_terminal_and_a_pipe_has_them_as_they_are() {
    let env = TestEnv::new();
    let path = claude(&env, "s1");
    let log = fs::read_to_string(&path)
        .unwrap()
        .replace("claude-opus-4-5", "\\u001b[31mred\\u001b]0;pwn\\u0007\\u202e");
    fs::write(&path, log).unwrap();
    for command in ["stats --all --by model --csv", "sql --all 'select model from usage' --csv"] {
        let shown = env.on_terminal([24, 80], command);
        assert!(shown.contains("red") && !shown.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{command}: {shown:?}");
    }
    let piped = env.run(&["stats", "--all", "--by", "model", "--csv"]).out;
    assert!(piped.contains("\u{1b}[31mred"), "{piped:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn eighty_columns_have_room_for_what_counts() {
    let env = TestEnv::new();
    claude(&env, "s1");
    let shown = env.on_terminal([24, 80], "stats --all --by tool");
    let rows: Vec<Vec<&str>> = shown.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["TOOL", "CALLS", "FAILED", "SHARE", "TIME", "RETRIED", "FILES"], "{shown}");
    assert_eq!(rows[1][..7], ["=Edit", "2", "1", "50", "%", "2", "min"], "{shown}");
    let days = env.on_terminal([24, 80], "stats --all");
    assert!(days.lines().any(|line| line.starts_with("2026-11-14") && line.contains('█')), "{days}");
}

#[test]
fn a_pipe_has_plain_numbers() {
    let env = TestEnv::new();
    claude(&env, "s1");
    let piped = env.run(&["stats", "--all"]).out;
    assert!(
        piped.contains("\n2 turns, 2 of them ended with an answer (1.0 turns to a clean end); 231 tokens a turn\n"),
        "{piped}"
    );
    assert!(piped.contains("2 tool calls, 1 failed (50 %, 0.50 a turn), 1 retried; 120 s in tools"), "{piped}");
    let blocks = env.run(&["stats", "--all", "--blocks"]).out;
    assert!(blocks.contains("\n2026-11-14T23:00:00Z ") && !blocks.contains('$'), "{blocks}");
    let csv = env.run(&["stats", "--all", "--blocks", "--csv"]).out;
    assert!(
        csv.lines()
            .next()
            .unwrap()
            .ends_with(",tokens_per_minute,cost_per_hour,minutes_left,projected_tokens,projected_cost_usd"),
        "{csv}"
    );
    assert_eq!(env.run(&["stats", "--all", "--blocks", "--by", "model"]).code, 2, "windows have no other rows");
}

#[test]
fn a_time_in_which_nothing_happened_is_said() {
    let env = TestEnv::new();
    claude(&env, "s1");
    for option in ["--by=day", "--blocks"] {
        let nothing = env.run(&["stats", "--all", "--until", "2001-01-01", option]);
        assert!(
            nothing.code == 1 && nothing.out.is_empty() && nothing.err.contains("Nothing happened"),
            "{}",
            nothing.all()
        );
    }
}
