//! What a conversion tells of what it could not hold: neither more nor less than what is so, in words that the page explains.

use std::collections::BTreeMap;
use std::path::Path;

use scrollback::convert::LossRow;
use scrollback::message::Part;
use scrollback::record::{Said, Usage};
use scrollback::session::Session;
use scrollback::store::Store;
use scrollback::writing::{LossKind, WORDS};
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
    losses.iter().filter(|row| row.what == what && row.kind == kind).map(|row| row.count).sum()
}

fn tokens(session: &Session) -> [u64; 4] {
    let Usage { input, output, cache_read, reasoning, .. } = session.usage().unwrap_or_default();
    [input, output, cache_read, reasoning].map(Option::unwrap_or_default)
}

#[test]
fn the_page_lists_every_word() {
    let listed: Vec<(&str, &str)> =
        table("### The words").into_iter().skip(2).map(|row| (row[0].trim_matches('`'), row[1])).collect();
    assert_eq!(listed, WORDS, "docs/converting.md lists the words of lib/src/writing/loss.rs, in their order");
}

#[test]
fn what_stands_elsewhere_is_not_lost() {
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
fn each_thing_is_counted_and_each_fact_told_once() {
    let folder = folder();
    let store = Store::open(named("native"), folder.path(), host()).unwrap();
    let mut recorder = store.create(Path::new("/gone/tides")).unwrap();
    recorder.user("Think.").unwrap();
    let parts = vec![Part::reasoning("One."), Part::reasoning("Two."), Part::reasoning("Three."), Part::text("Done.")];
    let metadata = json!({"mood": "calm", "tide": 4}).as_object().unwrap().clone();
    recorder.assistant(Said { parts, metadata, ..Said::default() }).unwrap();
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
fn the_table_of_the_page_says_what_happens() {
    // The row, its words, and a session that has all of them.
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
        ("branches", &["another branch"], branches),
        ("sidechains", &["sidechain"], side),
        ("file snapshots", &["snapshot"], documented),
    ];
    let told = table("## What goes where");
    for (row, words, made) in rows {
        let cells = told.iter().find(|cells| cells[0].starts_with(row)).unwrap_or_else(|| panic!("no row {row}"));
        for (to, cell) in ALL.into_iter().zip(&cells[1..]).filter(|(to, _)| *to != "native") {
            let folder = folder();
            let there = convert(&made(folder.path()), named(to), &folder.path().join("there.jsonl")).unwrap();
            let lost: u64 = words.iter().map(|word| count(&there.losses, word, LossKind::Dropped)).sum();
            assert_eq!(
                lost == 0,
                cell.starts_with("yes") || *cell == "a turn's last words",
                "{row} → {to}: {cell:?}, {:?}",
                there.losses
            );
        }
    }
}
