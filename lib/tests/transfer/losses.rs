//! The losses that a conversion reports: no more and no fewer than there are, under names that docs/converting.md explains.

use std::collections::BTreeMap;
use std::path::Path;

use scrollback::model::{Content, LossKind, Lost, Part, Usage};
use scrollback::session::Session;
use scrollback::transfer::convert::{Conversion, LossRow, Target};
use scrollback::write::Store;
use serde_json::json;

use super::further::rich;
use super::heads::BRANCHES;
use super::support::corpus;
use super::{ALL, convert, folder, host, named, open, session};

const PAGE: &str = include_str!("../../../docs/converting.md");

/// The cells of the table below a heading of the page, without its head.
fn table(heading: &str) -> Vec<Vec<&'static str>> {
    let below = PAGE.split(heading).nth(1).unwrap();
    let rows = below.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

fn count(losses: &[LossRow], what: &str, kind: LossKind) -> u64 {
    losses.iter().filter(|row| row.what.name() == what && row.kind == kind).map(|row| row.count).sum()
}

fn tokens(session: &Session) -> [u64; 4] {
    let Usage { input, output, cache_read, reasoning, .. } = session.usage().unwrap_or_default();
    [input, output, cache_read, reasoning].map(Option::unwrap_or_default)
}

#[test]
fn the_page_lists_every_name() {
    let listed: Vec<(String, &str)> = table("### Names of losses")
        .into_iter()
        .skip(2)
        .map(|row| (row[0].trim_matches('`').to_owned(), row[1]))
        .collect();
    let all: Vec<(String, &str)> = Lost::all().map(|lost| (lost.to_string(), lost.meaning())).collect();
    assert_eq!(listed, all, "docs/converting.md lists the names of lib/src/model/loss.rs, in their order");
}

/// The model gets what hooks told it; of what one told only people, the person who converts hears.
#[test]
fn what_hooks_said_is_carried_or_reported() {
    let log = std::fs::read_to_string(corpus().join("claude-code/hooks/session.jsonl")).unwrap();
    for to in ["codex", "qwen-code"] {
        let folder = folder();
        let source = session("claude-code", folder.path(), &log.lines().collect::<Vec<_>>());
        let there = convert(&source, named(to), &folder.path().join("there.jsonl")).unwrap();
        assert_eq!(count(&there.losses, "notice", LossKind::Dropped), 1, "{to}: {:?}", there.losses);
        let written = std::fs::read_to_string(&there.path).unwrap();
        for said in ["It is spring.", "that file is old", "say the harbour", "It rains."] {
            assert!(written.contains(said), "{to}: {said}");
        }
    }
}

#[test]
fn what_moved_is_not_lost() {
    let logs = [
        ("native", "native/usage/messages.jsonl"),
        ("claude-code", "claude-code/real-full/session.jsonl"),
        ("codex", "codex/plain/rollout.jsonl"),
        ("codex", "codex/models-per-turn/rollout.jsonl"),
        ("qwen-code", "qwen-code/real-full/session.jsonl"),
    ];
    for (from, log) in logs {
        for to in ["native", "claude-code", "codex", "qwen-code", "ai-sdk", "sage-el"]
            .into_iter()
            .filter(|to| *to != from)
        {
            let folder = folder();
            let source = open(named(from), &corpus().join(log));
            let there = convert(&source, named(to), &folder.path().join("there.jsonl")).unwrap();
            for what in ["usage", "model", "tool call", "text", "answer"] {
                assert_eq!(
                    count(&there.losses, what, LossKind::Dropped),
                    0,
                    "{from} → {to}: {what} {:?}",
                    there.losses
                );
            }
            let now = open(named(to), &there.path);
            let (mut was, mut is) = (tokens(&source), tokens(&now));
            if count(&there.losses, "reasoning tokens", LossKind::Dropped) > 0 {
                (was[3], is[3]) = (0, 0);
            }
            assert_eq!(is, was, "{from} → {to}");
            assert_eq!(now.models(), source.models(), "{from} → {to}");
        }
    }
}

#[test]
fn losses_are_counted_and_each_row_occurs_once() {
    let folder = folder();
    let store = Store::open(named("native"), folder.path(), host()).unwrap();
    let mut recorder = store.create(Path::new("/gone/tides")).unwrap();
    recorder.user("Think.").unwrap();
    let parts = vec![Part::reasoning("One."), Part::reasoning("Two."), Part::reasoning("Three."), Part::text("Done.")];
    let metadata = json!({"mood": "calm", "tide": 4}).as_object().unwrap().clone();
    recorder.assistant(Content { parts, metadata, ..Content::default() }).unwrap();
    let path = recorder.path().unwrap().to_path_buf();
    recorder.close().unwrap();
    let source = open(named("native"), &path);
    for to in ["sage-el", "fluux", "claude-code"] {
        let there = convert(&source, named(to), &folder.path().join(to)).unwrap();
        assert_eq!(count(&there.losses, "thinking", LossKind::Dropped), 3, "{to}: {:?}", there.losses);
        assert_eq!(count(&there.losses, "metadata", LossKind::Dropped), 1, "{to}: {:?}", there.losses);
        let mut seen = BTreeMap::new();
        there
            .losses
            .iter()
            .for_each(|row| *seen.entry((&row.record, &row.what, row.kind)).or_insert(0) += 1);
        assert!(seen.values().all(|rows| *rows == 1), "{to}: {:?}", there.losses);
    }
}

#[test]
fn the_table_on_the_page_is_true() {
    // The row, the names of its losses, and a session that could have all of them.
    type Made = fn(&Path) -> Session;
    let branches: Made = |folder| session("native", folder, &BRANCHES);
    let rich_one: Made = |folder| rich(folder);
    let documented: Made = |_| open(named("native"), &corpus().join("native/documented/messages.jsonl"));
    let side: Made = |_| open(named("native"), &corpus().join("native/sidechain-inline/messages.jsonl"));
    let rows: [(&str, &[&str], Made); 10] = [
        ("prompts and answers", &["prompt", "answer"], rich_one),
        ("calls and results", &["tool call", "tool result"], rich_one),
        ("thinking", &["thinking"], rich_one),
        ("images", &["image"], rich_one),
        ("model and usage", &["model", "usage"], rich_one),
        ("title", &["title"], rich_one),
        ("todos, thinking mode", &["todos", "thinking mode"], documented),
        ("branches", &["other branch"], branches),
        ("sidechains", &["sidechain"], side),
        ("file snapshots", &["snapshot"], documented),
    ];
    let table = table("## What goes where");
    for (row, names, made) in rows {
        let cells = table.iter().find(|cells| cells[0].starts_with(row)).unwrap_or_else(|| panic!("no row {row}"));
        for (to, cell) in ALL.into_iter().zip(&cells[1..]).filter(|(to, _)| *to != "native") {
            let folder = folder();
            let there = convert(&made(folder.path()), named(to), &folder.path().join("there.jsonl")).unwrap();
            let lost: u64 = names.iter().map(|name| count(&there.losses, name, LossKind::Dropped)).sum();
            assert_eq!(
                lost == 0,
                cell.starts_with("yes") || *cell == "the last text of a turn",
                "{row} → {to}: {cell:?}, {:?}",
                there.losses
            );
        }
    }
}

/// The rows with some names, as `kind name record`.
fn reported<'l>(losses: &'l [LossRow], names: &'l [&str]) -> Vec<String> {
    let row = |row: &LossRow| format!("{:?} {} {}", row.kind, row.what, row.record).to_lowercase();
    losses.iter().filter(|row| names.contains(&row.what.name())).map(row).collect()
}

const DAMAGE: [&str; 5] = ["torn line", "damaged line", "damaged text", "gap", "interruption"];

#[test]
fn damage_is_reported_with_its_place() {
    let user =
        r#"{"uuid":"u1","type":"user","timestamp":"2026-11-01T10:00:00Z","message":{"role":"user","content":"Hi"}}"#;
    let answer = r#"{"uuid":"a1","parentUuid":"u1","type":"assistant","timestamp":"2026-11-01T10:00:01Z","message":{"role":"assistant","content":"Yes."}}"#;
    let line = |text: &str| [text.as_bytes(), b"\n"].concat();
    let (user, whole) = (line(user), [line(user), line(answer)].concat());
    for (damaged, expected) in [
        (whole.clone(), vec![]),
        (answer.as_bytes()[..60].to_vec(), vec!["dropped torn line line 3"]),
        (b"no JSON at all\n".to_vec(), vec!["dropped damaged line line 3"]),
        (b"[1, 2]\n".to_vec(), vec!["dropped damaged line line 3"]),
        (b"\0\0\0\0\n".to_vec(), vec!["dropped damaged line line 3"]),
        // The end of a record that was cut off, and a whole one behind it.
        ([&answer.as_bytes()[..60], &user].concat(), vec!["dropped torn line line 3"]),
        (
            [
                &br#"{"uuid":"a2","parentUuid":"a1","type":"assistant","message":{"role":"assistant","content":""#[..],
                b"\xff\"}}\n",
            ]
            .concat(),
            vec!["renamed damaged text line 3"],
        ),
    ] {
        for to in ALL {
            let folder = folder();
            let file = folder.path().join("source.jsonl");
            std::fs::write(&file, [&whole[..], &damaged].concat()).unwrap();
            let source = open(named("native"), &file);
            let there = convert(&source, named(to), &folder.path().join(to)).unwrap();
            // The same dialect gets the same bytes: nothing is lost.
            let expected = if to == "native" { Vec::new() } else { expected.clone() };
            let damaged = String::from_utf8_lossy(&damaged);
            assert_eq!(reported(&there.losses, &DAMAGE[..3]), expected, "{to}: {damaged}");
        }
    }
}

#[test]
fn a_gap_and_an_interruption_are_reported_if_the_new_file_has_none() {
    let user = r#"{"uuid":"u1","type":"user","message":{"role":"user","content":"Hi"}}"#;
    let orphan =
        r#"{"uuid":"a1","parentUuid":"gone","type":"assistant","message":{"role":"assistant","content":"Yes."}}"#;
    let call = r#"{"uuid":"a1","parentUuid":"u1","type":"assistant","message":{"role":"assistant","content":"","toolCalls":[{"id":"c1","name":"look","input":{}}]}}"#;
    let result =
        r#"{"uuid":"r1","parentUuid":"a1","type":"tool_result","toolResults":[{"toolCallId":"c1","content":"sea"}]}"#;
    for (lines, to, expected) in [
        (vec![user, orphan], "claude-code", vec!["dropped gap a1"]),
        (vec![user, orphan], "codex", vec!["dropped gap a1"]),
        (vec![user, call, result], "claude-code", vec![]),
        (vec![user, call, result], "sage-el", vec!["dropped interruption r1"]),
        (vec![user, call, result], "ai-sdk", vec!["dropped interruption r1"]),
        (vec![user], "ai-sdk", vec![]),
    ] {
        let folder = folder();
        let source = session("native", folder.path(), &lines);
        let there = convert(&source, named(to), &folder.path().join("there.jsonl")).unwrap();
        assert_eq!(reported(&there.losses, &DAMAGE), expected, "{to}: {lines:?}");
    }
}

#[test]
fn fields_of_one_format_are_reported_by_their_keys() {
    let logs: [(&str, &str, &[&str]); 9] = [
        (
            "native",
            r#"{"uuid":"u1","type":"user","mood":"calm","message":{"role":"user","content":"Hi","tone":{"a":1,"b":"x"}}}"#,
            &["message.tone", "mood"],
        ),
        (
            "native",
            r#"{"uuid":"u1","type":"user","isSidechain":false,"mood":null,"message":{"role":"user","content":"Hi"}}"#,
            &[],
        ),
        (
            "claude-code",
            r#"{"uuid":"u1","parentUuid":null,"type":"user","sessionId":"s","entrypoint":"cli","message":{"role":"user","content":"Hi"}}"#,
            &["entrypoint"],
        ),
        (
            "claude-code",
            r#"{"uuid":"a1","parentUuid":null,"type":"assistant","sessionId":"s","effort":"high","requestId":"q","message":{"id":"m","role":"assistant","model":"o","stop_reason":"end_turn","content":[{"type":"text","text":"Hi","lane":4}],"usage":{"input_tokens":3,"output_tokens":4,"speed":"fast"}}}"#,
            &["effort", "message.content[].lane", "message.stop_reason", "message.usage.speed"],
        ),
        (
            "qwen-code",
            r#"{"uuid":"u1","parentUuid":null,"sessionId":"s","timestamp":"2026-11-01T10:00:00Z","type":"user","agentName":"x","message":{"role":"user","parts":[{"text":"Hi"}]}}"#,
            &["agentName"],
        ),
        (
            "codex",
            r#"{"timestamp":"2026-11-01T10:00:00Z","type":"response_item","payload":{"type":"message","role":"user","weather":"wet","content":[{"type":"input_text","text":"Hi"}]}}"#,
            &["payload.weather"],
        ),
        ("fluux", r#"{"type":"message","role":"user","content":"Hi","mood":"calm"}"#, &["mood"]),
        (
            "sage-el",
            r#"{"role":"user","content":"Hi","timestamp":"2026-01-11T17:00:00Z","usage":{"estimated_cost_usd":2}}"#,
            &["usage"],
        ),
        // The input of a call is not lost, even if it is written as a string.
        (
            "ai-sdk",
            r#"{"id":"a","role":"assistant","content":"","function_call":{"name":"look","arguments":"{\"at\": \"the sea\"}"}}"#,
            &[],
        ),
    ];
    for (from, line, expected) in logs {
        for to in ALL.into_iter().filter(|to| *to != from) {
            let folder = folder();
            let source = session(from, folder.path(), &[line]);
            let Ok(there) = convert(&source, named(to), &folder.path().join("there.jsonl")) else { continue };
            let rows: Vec<_> = there.losses.iter().filter(|row| row.what.name() == "field").collect();
            let fields: Vec<&str> = rows.iter().flat_map(|row| &row.fields).map(String::as_str).collect();
            assert_eq!(fields, expected, "{from} → {to}: {line}");
            assert!(rows.iter().all(|row| row.count == row.fields.len() as u64 && row.kind == LossKind::Dropped));
        }
    }
}

#[test]
fn a_working_directory_that_is_made_up_or_dropped_is_reported() {
    let bare = r#"{"role":"user","content":"Hi","timestamp":"2026-01-11T17:00:00Z"}"#;
    let placed = r#"{"role":"user","content":"Hi","timestamp":"2026-01-11T17:00:00Z","cwd":"/gone/harbour"}"#;
    let header = r#"{"timestamp":"2026-11-01T10:00:00Z","type":"session_meta","payload":{"id":"01a1e0f0-02d2-7883-ad24-b4bf59fc7c6f","cwd":"/gone/harbour"}}"#;
    let item = r#"{"timestamp":"2026-11-01T10:00:00Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Hi"}]}}"#;
    for (from, lines, to, expected) in [
        ("sage-el", vec![bare], "native", Some(LossKind::Synthesised)),
        ("sage-el", vec![bare], "claude-code", Some(LossKind::Synthesised)),
        ("sage-el", vec![bare], "codex", Some(LossKind::Synthesised)),
        ("sage-el", vec![bare], "qwen-code", Some(LossKind::Synthesised)),
        ("sage-el", vec![bare], "ai-sdk", None),
        ("sage-el", vec![placed], "native", None),
        ("sage-el", vec![placed], "fluux", Some(LossKind::Dropped)),
        ("codex", vec![item], "sage-el", Some(LossKind::Synthesised)),
        ("codex", vec![header, item], "sage-el", None),
        ("codex", vec![header, item], "native", None),
        ("codex", vec![header, item], "ai-sdk", Some(LossKind::Dropped)),
        ("codex", vec![header, item], "fluux", Some(LossKind::Dropped)),
    ] {
        let folder = folder();
        let source = session(from, folder.path(), &lines);
        let store = folder.path().join("store");
        let how =
            Conversion { to: named(to), target: Target::Store(&store), head: None, with: Some("ada@example.org") };
        let there = source.convert(&how, &host()).unwrap();
        let kinds: Vec<_> =
            there.losses.iter().filter(|row| row.what.name() == "environment").map(|row| row.kind).collect();
        assert_eq!(kinds.first().copied(), expected, "{from} → {to}: {lines:?}: {:?}", there.losses);
    }
}

/// Each loss has its own name, and counts as often as it occurs.
#[test]
fn losses_are_counted_under_names_that_the_page_explains() {
    let asked = r#"{"type":"user","uuid":"11111111-1111-4111-8111-111111111111","parentUuid":null,"message":{"content":"Go."}}"#;
    let costly = r#"{"type":"user","uuid":"22222222-2222-4222-8222-222222222222","parentUuid":"11111111-1111-4111-8111-111111111111","model":"m","usage":{"inputTokens":3},"message":{"content":"On."}}"#;
    let custom = r#"{"type":"assistant","uuid":"22222222-2222-4222-8222-222222222222","parentUuid":"11111111-1111-4111-8111-111111111111","message":{"content":[{"type":"custom","kind":"a.b"},{"type":"custom","kind":"a.c"},{"type":"custom","kind":"a.d"}]}}"#;
    let back = r#"{"type":"rewind","uuid":"22222222-2222-4222-8222-222222222222","parentUuid":"11111111-1111-4111-8111-111111111111","from":"11111111-1111-4111-8111-111111111111"}"#;
    let cases: [(&str, &[(&str, u64)]); 3] =
        [(costly, &[("model", 1), ("usage", 1)]), (custom, &[("custom part", 3)]), (back, &[("rewind", 1)])];
    for (line, expected) in cases {
        for to in ["claude-code", "qwen-code", "codex"] {
            let folder = folder();
            let source = session("native", folder.path(), &[asked, line]);
            let there = convert(&source, named(to), &folder.path().join("there.jsonl")).unwrap();
            let unexplained = there.losses.iter().find(|row| !Lost::all().any(|lost| lost == row.what));
            assert!(unexplained.is_none(), "{to}: {unexplained:?}");
            for (what, times) in expected {
                assert_eq!(count(&there.losses, what, LossKind::Dropped), *times, "{to}: {what} {:?}", there.losses);
            }
        }
    }
}

#[test]
fn what_a_compaction_cost_is_not_the_cost_of_an_answer() {
    let folder = folder();
    let source = open(named("codex"), &corpus().join("codex/compaction-own-turn/rollout.jsonl"));
    assert_eq!(tokens(&source)[0], 190_150);
    for to in ["native", "claude-code", "qwen-code"] {
        let there = convert(&source, named(to), &folder.path().join(to)).unwrap();
        assert_eq!(tokens(&open(named(to), &there.path))[0], 150, "{to}");
        let usage: Vec<_> = there.losses.iter().filter(|row| row.what == Lost::Usage).collect();
        assert!(matches!(usage[..], [LossRow { kind: LossKind::Dropped, count: 1, .. }]), "{to}: {usage:?}");
    }
}
