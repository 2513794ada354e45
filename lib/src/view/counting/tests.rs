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
    early.counts.requests[0].cost = RequestCost::Listed(Cost::from_usd(0.5));
    late.counts.requests[0].cost = RequestCost::Listed(Cost::from_usd(2.0));
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
            line
        })
        .collect();
    let sessions = [claude("a", &marked), claude("z", &turn())];
    check(&sessions, json!({"requests": 3, "turns": 1, "toolCalls": 2, "sessions": 1}));
    check(&sessions[..1], json!({"turns": 1, "toolCalls": 2}));
}

/// Copies of these lines that say so.
fn marked(lines: &[Value], origin: &str) -> Vec<Value> {
    let mark = |(at, line): (usize, &Value)| {
        let mut line = line.clone();
        line["forkedFrom"] = json!({"sessionId": origin, "messageUuid": format!("{origin}-{at}")});
        line
    };
    lines.iter().enumerate().map(mark).collect()
}

#[test]
fn a_marked_copy_counts_where_its_origin_does_not_have_it() {
    let whole = json!({"requests": 3, "messages": 4, "turns": 1, "toolCalls": 2, "sessions": 2});
    let copy = claude("a", &marked(&turn(), "z"));
    check(&[copy.clone(), claude("z", &turn()[..2])], whole.clone());
    check(&[copy.clone(), claude("z", &[])], json!({"requests": 3, "turns": 1, "sessions": 1}));
    // A further copy is one.
    check(&[copy, claude("b", &marked(&turn(), "z")), claude("z", &turn()[..2])], whole);
    // Of a circle, one counts.
    let circle = |names: [&str; 3]| {
        let of = |(id, origin): (&str, &str)| claude(id, &marked(&turn(), origin));
        [(names[0], names[1]), (names[1], names[2]), (names[2], names[0])].map(of)
    };
    check(&circle(["a", "b", "c"]), json!({"requests": 3, "messages": 4, "turns": 1, "toolCalls": 2, "sessions": 1}));
    check(&circle(["c", "b", "a"])[..2], json!({"requests": 3, "turns": 1, "sessions": 1}));
    let [_, b, c] = circle(["a", "b", "c"]);
    check(&[c, b], json!({"requests": 3, "turns": 1}));
}

/// A session of Codex: a header with these fields, and lines, each with the second of its time.
fn codex(id: &str, header: Value, lines: &[(i64, Value)]) -> CountedSession {
    let mut meta = json!({"type": "session_meta", "payload": header});
    meta["payload"]["id"] = id.into();
    let start = lines.first().map_or(0, |(second, _)| *second);
    let mut log = Vec::new();
    for (second, line) in std::iter::once((start, meta)).chain(lines.iter().cloned()) {
        let mut line = line;
        let at: Timestamp = "2026-03-01T08:00:00Z".parse().unwrap();
        line["timestamp"] = (at + jiff::SignedDuration::from_secs(second)).to_string().into();
        log.extend(format!("{line}\n").into_bytes());
    }
    let session = Session::from_bytes(dialect::named("codex").unwrap(), log, &ReadOptions::plain(now()));
    let (row, counts) = (session.row().unwrap(), SessionCounts::of(&session).unwrap());
    CountedSession { row: Box::new(SessionRow { path: format!("/{id}"), ..row }), counts, is_in_scope: true }
}

/// A turn of Codex that begins at this second. The total is that of the session after it.
fn codex_turn(second: i64, prompt: &str, total: u64, last: u64) -> Vec<(i64, Value)> {
    let item = |role: &str, kind: &str, text: &str| {
        let content = json!([{"type": kind, "text": text}]);
        json!({"type": "response_item", "payload": {"type": "message", "role": role, "content": content}})
    };
    let tokens = |output: u64| json!({"input_tokens": output * 2, "output_tokens": output});
    let info = json!({"total_token_usage": tokens(total), "last_token_usage": tokens(last)});
    vec![
        (second, json!({"type": "turn_context", "payload": {"model": "gpt-5-codex"}})),
        (second, item("user", "input_text", prompt)),
        (second + 2, item("assistant", "output_text", "Done.")),
        (second + 3, json!({"type": "event_msg", "payload": {"type": "token_count", "info": info}})),
    ]
}

/// Lines that were copied at this second.
fn stamped(second: i64, lines: &[(i64, Value)]) -> Vec<(i64, Value)> {
    lines.iter().map(|(_, line)| (second, line.clone())).collect()
}

#[test]
fn a_replay_with_new_times_counts_in_its_origin() {
    let origin = [codex_turn(0, "q", 10, 10), codex_turn(10, "r", 30, 20)].concat();
    let header = json!({"timestamp": "2026-03-01T08:00:00Z", "cwd": "/tide"});
    let a = codex("a", header.clone(), &origin);
    let own = codex_turn(101, "new", 37, 7);
    let both = json!({"usage": {"input": 74, "output": 37}, "requests": 3, "turns": 3, "messages": 6, "sessions": 2});
    let copied = (100, json!({"type": "session_meta", "payload": {"id": "a", "cwd": "/tide"}}));
    let spread: Vec<_> = origin.iter().map(|(second, line)| (100 + second, line.clone())).collect();
    for replay in [stamped(100, &origin), [vec![copied], stamped(100, &origin)].concat(), spread] {
        let fork = |id: &str, own: &[(i64, Value)]| {
            let late = own.iter().map(|(second, line)| (second + 100, line.clone())).collect();
            codex(id, json!({"forked_from_id": "a", "cwd": "/tide"}), &[replay.clone(), late].concat())
        };
        check(&[a.clone(), fork("b", &own)], both.clone());
        // Nothing of its own is no session.
        check(&[a.clone(), fork("b", &[])], json!({"requests": 2, "turns": 2, "messages": 4, "sessions": 1}));
        let other = fork("c", &codex_turn(130, "other", 38, 8));
        check(
            &[a.clone(), fork("b", &own), other],
            json!({"usage": {"input": 90, "output": 45}, "requests": 4, "turns": 4}),
        );
    }
    // Without the origin, what two replays begin with counts once.
    let fork = |id: &str, prompt: &str, tokens: u64| {
        let own = codex_turn(110, prompt, 30 + tokens, tokens);
        codex(id, json!({"forked_from_id": "a"}), &[stamped(100, &origin), own].concat())
    };
    check(
        &[fork("b", "x", 5), fork("c", "y", 6)],
        json!({"usage": {"input": 82, "output": 41}, "requests": 4, "turns": 4}),
    );
    check(&[fork("b", "x", 5)], json!({"usage": {"input": 70, "output": 35}, "requests": 3, "turns": 3}));
}

#[test]
fn a_sub_agent_replays_a_part_of_its_parent() {
    let origin = [codex_turn(0, "q", 10, 10), codex_turn(10, "r", 30, 20)].concat();
    let a = codex("a", json!({}), &origin);
    let spawned = json!({"source": {"subagent": {"thread_spawn": {"parent_thread_id": "a"}}}});
    // Only what was said, and only of the last turn.
    let kept = |(_, line): &&(i64, Value)| line["type"] != "turn_context";
    let part: Vec<_> = stamped(100, &origin[4..]).iter().filter(kept).cloned().collect();
    for replay in [stamped(100, &origin), part, Vec::new()] {
        let child = codex("b", spawned.clone(), &[replay, codex_turn(101, "sub task", 37, 7)].concat());
        check(
            &[child, a.clone()],
            json!({"usage": {"input": 74, "output": 37}, "requests": 3, "turns": 2, "messages": 6, "sessions": 1}),
        );
    }
}

#[test]
fn what_only_looks_like_a_replay_counts() {
    let a = codex("a", json!({}), &codex_turn(0, "go on", 10, 10));
    // The same prompt and the same number of tokens, by chance; the sub-agent has replayed nothing.
    let other = codex("b", json!({"parent_thread_id": "a"}), &codex_turn(50, "sub task", 10, 10));
    check(&[a.clone(), other], json!({"requests": 2, "messages": 4}));
    let other = codex("b", json!({"forked_from_id": "a"}), &codex_turn(50, "go on", 11, 11));
    check(&[a.clone(), other], json!({"requests": 2, "messages": 4, "turns": 2}));
    // Nobody says that one is a copy.
    let other = codex("b", json!({}), &codex_turn(50, "go on", 10, 10));
    check(&[a, other], json!({"requests": 2, "messages": 4, "turns": 2, "sessions": 2}));
}

#[test]
fn a_total_that_grows_beyond_the_requests_is_one() {
    let report = |second: i64, output: u64, total: Option<u64>| {
        let tokens = |output: u64| json!({"input_tokens": output * 2, "output_tokens": output});
        let mut payload = json!({"response_id": format!("resp-{output}"), "usage": tokens(output)});
        total.into_iter().for_each(|total| payload["thread_token_usage"] = tokens(total));
        (second, json!({"type": "token_usage_record", "payload": payload}))
    };
    for total in [Some(10), None] {
        let mut first = codex_turn(0, "q", 10, 10);
        first.insert(3, report(3, 10, total));
        let mut last = codex_turn(20, "s", 35, 5);
        last.insert(3, report(23, 5, total.map(|_| 35)));
        // The turn in the middle is one of an older version, without a record.
        let lines = [first, codex_turn(10, "r", 30, 20), last].concat();
        check(&[codex("a", json!({}), &lines)], json!({"usage": {"input": 70, "output": 35}, "requests": 3}));
    }
}

#[test]
fn a_turn_is_the_same_whichever_branch_is_last() {
    let thinking = json!({"type": "thinking", "thinking": "Tide tables.", "signature": "s"});
    let lines = [
        prompt("08:00:00", "When is high water?"),
        answer("08:00:10", "1", thinking, tokens(1)),
        answer("08:00:11", "1", text("At four."), tokens(9)),
        answer("08:00:20", "2", text("At five."), tokens(5)),
    ];
    // Of the same lines, the last one answers the prompt again, or the conversation went back to a record of this number.
    let session = |again: bool, back_to: Option<usize>| {
        let mut lines = lines.to_vec();
        back_to.into_iter().for_each(|at| {
            lines.push(json!({"type": "last-prompt", "explicit": true, "leafUuid": format!("s-{at}")}));
        });
        let mut log = Vec::new();
        for (at, mut line) in lines.into_iter().enumerate() {
            let parent = if at == 3 && again { 0 } else { at.wrapping_sub(1) };
            line["sessionId"] = "s".into();
            if line["type"] != "last-prompt" {
                line["uuid"] = format!("s-{at}").into();
                line["parentUuid"] = if at == 0 { Value::Null } else { format!("s-{parent}").into() };
            }
            log.extend(format!("{line}\n").into_bytes());
        }
        let session = Session::from_bytes(dialect::named("claude-code").unwrap(), log, &ReadOptions::plain(now()));
        let (row, counts) = (session.row().unwrap(), SessionCounts::of(&session).unwrap());
        CountedSession { row: Box::new(row), counts, is_in_scope: true }
    };
    for again in [false, true] {
        for back_to in [None, Some(0), Some(1), Some(2), Some(3)] {
            let counted =
                json!({"turns": 1, "cleanEnds": 1, "thinkingTurns": 1, "thinkingCleanEnds": 1, "messages": 3});
            check(&[session(again, back_to)], counted);
        }
    }
}

#[test]
fn a_copied_sub_agent_of_a_fork_is_no_session() {
    let sub_agent = |id: &str| {
        let mut lines = turn();
        for line in &mut lines {
            (line["agentId"], line["isSidechain"]) = ("7".into(), true.into());
        }
        let mut child = claude(id, &lines);
        (child.row.id, child.row.path) = (SessionId::from(format!("agent-{id}").as_str()), format!("/{id}/agent"));
        child
    };
    let own = [prompt("07:59:00", "Look it up"), answer("09:01:00", "9", text("At five."), tokens(5))];
    let fork = claude("b", &marked(&own, "a"));
    let sessions = [claude("a", &own), sub_agent("a"), fork, sub_agent("b")];
    check(&sessions, json!({"requests": 4, "sessions": 1}));
    // Nor is the same session in another folder.
    let mut moved = claude("a", &own);
    moved.row.path = "/moved/a".into();
    check(&[claude("a", &own), moved], json!({"requests": 1, "sessions": 1}));
    assert_eq!(count(&sessions, &[Level::Session]).rows.len(), 1);
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
    let query = StatsQuery { since: "2026-03-01T12:30:00Z".parse().ok(), ..query };
    let since = super::blocks(&sessions, &Elected::among(&sessions), &query, "2026-03-01T14:00:00Z".parse().unwrap());
    assert_eq!(since, blocks, "a time does not change where windows begin, nor what is in them");
    let query = StatsQuery { since: "2026-03-01T13:15:00Z".parse().ok(), ..query };
    let since = super::blocks(&sessions, &Elected::among(&sessions), &query, "2026-03-01T14:00:00Z".parse().unwrap());
    assert_eq!(since, blocks[1..]);
}
