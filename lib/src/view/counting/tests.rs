//! Each fact counts once, whatever repeats it.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::*;
use crate::dialect;
use crate::session::{ReadOptions, Session};

const NOW: &str = "2026-03-02T12:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

/// A session of Claude Code with these lines.
fn claude(id: &str, lines: &[Value]) -> CountedSession {
    let mut log = Vec::new();
    let mut parent = Value::Null;
    for (at, line) in lines.iter().enumerate() {
        let uuid = format!("{id}-{at}");
        let mut line = line.clone();
        (line["sessionId"], line["uuid"], line["parentUuid"]) = (id.into(), uuid.clone().into(), parent);
        line["cwd"] = "/gone/tide".into();
        log.extend(format!("{line}\n").into_bytes());
        parent = uuid.into();
    }
    let session = Session::from_bytes(dialect::named("claude-code").unwrap(), log, &ReadOptions::plain(now()));
    let (row, counts) = (session.row().unwrap(), SessionCounts::of(&session).unwrap());
    CountedSession { row: Box::new(SessionRow { path: format!("/{id}"), ..row }), counts, is_in_scope: true }
}

fn prompt(clock: &str, text: &str) -> Value {
    json!({"type": "user", "timestamp": format!("2026-03-01T{clock}Z"), "message": {"role": "user", "content": text}})
}

/// One line of the answer of a request: its block and its usage.
fn answer(clock: &str, request: &str, block: Value, usage: Value) -> Value {
    json!({"type": "assistant", "timestamp": format!("2026-03-01T{clock}Z"), "requestId": format!("req_{request}"), "message": {
        "role": "assistant", "id": format!("msg_{request}"), "model": "claude-opus-4-5", "content": [block], "usage": usage}})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn call(id: &str, input: Value) -> Value {
    json!({"type": "tool_use", "id": id, "name": "Edit", "input": input})
}

fn result(clock: &str, id: &str, is_error: bool) -> Value {
    let block = json!({"type": "tool_result", "tool_use_id": id, "content": "done", "is_error": is_error});
    json!({"type": "user", "timestamp": format!("2026-03-01T{clock}Z"), "message": {"role": "user", "content": [block]}})
}

fn tokens(output: u64) -> Value {
    json!({"input_tokens": 10, "output_tokens": output, "cache_read_input_tokens": 30})
}

fn count(sessions: &[CountedSession], by: &[Level]) -> Stats {
    let price = |_: &str, _: Usage| None;
    let query = StatsQuery { by: by.to_vec(), zone: TimeZone::UTC, since: None, until: None, price: &price };
    stats(sessions, &Elected::among(sessions), &query)
}

/// The fields of the total that a test looks at.
fn check(sessions: &[CountedSession], expected: Value) {
    let total = serde_json::to_value(count(sessions, &[]).total).unwrap();
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(&total[field], value, "{field} of {total:#}");
    }
}

fn turn() -> Vec<Value> {
    let thinking = json!({"type": "thinking", "thinking": "12345678901234567890", "signature": "s"});
    let input = json!({"file_path": "tides.txt", "old_string": "a", "new_string": "b"});
    vec![
        prompt("08:00:00", "When is high water?"),
        answer("08:00:10", "1", thinking, tokens(1)),
        answer("08:00:11", "1", call("c1", input.clone()), tokens(50)),
        result("08:00:13", "c1", true),
        answer("08:00:20", "2", call("c2", input), tokens(40)),
        result("08:00:21", "c2", false),
        answer("09:00:00", "3", text("1234567890"), tokens(60)),
    ]
}

#[test]
fn a_turn_is_counted_in_every_respect() {
    let session = [claude("s1", &turn())];
    check(
        &session,
        json!({
            "usage": {"input": 30, "output": 150, "cacheRead": 90}, "requests": 3, "unpriced": 3, "sessions": 1,
            "messages": 4, "turns": 1, "cleanEnds": 1, "toolCalls": 2, "toolFailures": 1, "toolSeconds": 3.0, "retries": 1,
            "filesTouched": 1, "activeSeconds": 21.0, "thinkingShare": 20.0 / 30.0, "cacheHitRate": 0.75, "compactions": 0,
            "thinkingTurns": 1, "thinkingCleanEnds": 1, "costUsd": null,
        }),
    );
}

#[test]
fn what_another_session_repeats_counts_once() {
    let original = turn();
    let mut copy = turn();
    copy.extend([prompt("10:00:00", "And tomorrow?"), answer("10:00:05", "4", text("At five."), tokens(7))]);
    let both = [claude("b", &original), claude("a", &copy)];
    let expected = json!({"usage": {"input": 40, "output": 157, "cacheRead": 120}, "requests": 4, "messages": 6, "turns": 2,
        "toolCalls": 2, "sessions": 2, "activeSeconds": 26.0});
    check(&both, expected.clone());
    // Both started at the same time, so the smaller id has what both have.
    let rows = count(&both, &[Level::Session]).rows;
    let of = |row: &StatsRow| (row.key.clone().unwrap()[0].clone().unwrap(), row.requests);
    assert_eq!(rows.iter().map(of).collect::<Vec<_>>(), [("a".to_owned(), 4), ("b".to_owned(), 0)]);
    // When it goes, the other one has it.
    check(&both[..1], json!({"requests": 3, "messages": 4, "turns": 1}));
    // The order in which sessions are found changes nothing.
    let [b, a] = both;
    check(&[a, b], expected);
}

#[test]
fn the_whole_usage_with_the_greatest_output_counts_across_files() {
    let early = [
        prompt("08:00:00", "Hi"),
        answer("08:00:01", "1", text("Hel"), json!({"input_tokens": 99, "output_tokens": 2})),
    ];
    let late = [prompt("08:00:00", "Hi"), answer("08:00:01", "1", text("Hello"), tokens(20))];
    let sessions = [claude("a", &early), claude("b", &late)];
    check(&sessions, json!({"usage": {"input": 10, "output": 20, "cacheRead": 30}, "requests": 1}));
    // The cost is that of the tokens that count.
    let [mut early, mut late] = sessions;
    early.counts.requests[0].listed_cost = Some(Cost::from_usd(0.5));
    late.counts.requests[0].listed_cost = Some(Cost::from_usd(2.0));
    check(&[early, late], json!({"costUsd": 2.0}));
}

#[test]
fn a_marked_copy_counts_in_its_origin_only_while_that_is_there() {
    let marked: Vec<Value> = turn()
        .into_iter()
        .enumerate()
        .map(|(at, mut line)| {
            line["forkedFrom"] = json!({"sessionId": "z", "messageUuid": format!("z-{at}")});
            // A copy that does not even repeat the times.
            line["timestamp"] = format!("2026-03-01T07:00:{at:02}Z").into();
            line["requestId"] = Value::Null;
            line["message"]["id"] = Value::Null;
            line
        })
        .collect();
    let sessions = [claude("a", &marked), claude("z", &turn())];
    check(&sessions, json!({"requests": 3, "turns": 1, "toolCalls": 2, "sessions": 1}));
    check(&sessions[..1], json!({"turns": 1, "toolCalls": 2}));
}

#[test]
fn a_sub_agent_belongs_to_its_session_and_has_no_turns() {
    let mut lines = turn();
    for line in &mut lines {
        (line["agentId"], line["isSidechain"]) = ("7".into(), true.into());
    }
    let mut child = claude("s1", &lines);
    child.row.id = SessionId::from("agent-7");
    assert_eq!(child.row.parent_session, Some(SessionId::from("s1")));
    let parent =
        claude("s1", &[prompt("07:59:00", "Look it up"), answer("09:01:00", "9", text("At five."), tokens(5))]);
    let rows = count(&[child.clone(), parent.clone()], &[Level::Session]).rows;
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].requests, rows[0].turns, rows[0].sessions, rows[0].messages), (4, 1, 1, 6));
    check(&[child], json!({"requests": 3, "turns": 0, "sessions": 1}));
}

#[test]
fn absurd_counts_are_not_believed() {
    for usage in [
        json!({"input_tokens": -5, "output_tokens": "many", "cache_read_input_tokens": 30}),
        json!({"input_tokens": 1e18, "output_tokens": u64::MAX, "cache_read_input_tokens": 30}),
        json!({"input_tokens": null, "output_tokens": [], "cache_read_input_tokens": 30}),
    ] {
        let lines = [prompt("08:00:00", "Hi"), answer("08:00:01", "1", text("Hello"), usage)];
        check(&[claude("s", &lines)], json!({"usage": {"cacheRead": 30}, "requests": 1}));
    }
}

#[test]
fn a_day_is_that_of_the_zone_and_a_request_belongs_to_its_first_record() {
    let lines = [
        prompt("23:59:58", "Hi"),
        answer("23:59:59", "1", text("Hel"), tokens(1)),
        json!({"type": "assistant", "timestamp": "2026-03-02T00:00:01Z", "requestId": "req_1", "message": {
            "role": "assistant", "id": "msg_1", "model": "m", "content": [{"type": "text", "text": "lo"}], "usage": tokens(9)}}),
    ];
    let sessions = [claude("s", &lines)];
    let days = |zone: TimeZone| {
        let price = |_: &str, _: Usage| None;
        let query = StatsQuery { by: vec![Level::Day], zone, since: None, until: None, price: &price };
        let rows = stats(&sessions, &Elected::among(&sessions), &query).rows;
        let day = |row: &StatsRow| (row.key.clone().unwrap()[0].clone().unwrap(), row.usage.output);
        rows.iter().map(day).collect::<Vec<_>>()
    };
    assert_eq!(days(TimeZone::UTC), [("2026-03-01".to_owned(), Some(9))]);
    assert_eq!(days(TimeZone::get("Asia/Kathmandu").unwrap()), [("2026-03-02".to_owned(), Some(9))]);
}

#[test]
fn weeks_and_months_and_levels_have_names() {
    let session = [claude("s", &turn())];
    let key = |by: &[Level]| count(&session, by).rows[0].key.clone().unwrap().into_iter().flatten().collect::<Vec<_>>();
    assert_eq!(key(&[Level::Week]), ["2026-W09"]);
    assert_eq!(key(&[Level::Month, Level::Agent, Level::Model]), ["2026-03", "claude-code", "claude-opus-4-5"]);
    let tools = count(&session, &[Level::Tool]).rows;
    assert_eq!((tools.len(), tools[0].tool_calls, tools[0].requests), (1, 2, 0), "only calls belong to a tool");
}

#[test]
fn a_window_has_five_hours_from_the_full_hour() {
    let line = |clock: &str, request: &str| answer(clock, request, text("x"), tokens(60));
    let lines = [line("08:30:00", "1"), line("12:59:59", "2"), line("13:00:00", "3"), line("13:30:00", "4")];
    let sessions = [claude("s", &lines)];
    let price = |_: &str, _: Usage| Some(Cost::from_usd(0.5));
    let query = StatsQuery { by: Vec::new(), zone: TimeZone::UTC, since: None, until: None, price: &price };
    let blocks = blocks(&sessions, &Elected::among(&sessions), &query, "2026-03-01T14:00:00Z".parse().unwrap());
    let shown: Vec<_> = blocks.iter().map(|block| (block.start.to_string(), block.requests, block.cost_usd)).collect();
    assert_eq!(
        shown,
        [("2026-03-01T08:00:00Z".to_owned(), 2, Some(1.0)), ("2026-03-01T13:00:00Z".to_owned(), 2, Some(1.0))]
    );
    assert_eq!(blocks[0].left, None);
    let running = &blocks[1];
    assert_eq!((running.cost_per_hour, running.tokens_per_minute), (Some(2.0), Some(200.0 / 30.0)));
    assert_eq!(running.left.as_ref().map(|left| (left.minutes, left.projected_cost_usd)), Some((240.0, Some(9.0))));
}
