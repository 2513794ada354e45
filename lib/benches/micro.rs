//! The steps of reading, each alone, on small logs that lie in memory: `cargo bench -p scrollback-lib`.
//!
//! They tell which step a change made slower. What counts for people, whole homes and large files, is `cargo xtask bench`.
#![allow(clippy::unwrap_used, reason = "a measurement stops where it stands")]
#![allow(missing_docs, reason = "a program, not an interface")]

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use scrollback::dialect::{self, Dialect};
use scrollback::session::{ReadOptions, Session};
use scrollback::view::Conversation;
use serde_json::json;

/// A long session of a person: large enough that the fixed cost of opening one does not count.
const TURNS: usize = 2000;

/// What `show` puts on a screen.
const PAGE_MESSAGES: usize = 20;

criterion_group!(steps, split, link, intake, tree, page);
criterion_main!(steps);

fn reading() -> ReadOptions<'static> {
    ReadOptions::plain(jiff::Timestamp::MAX)
}

/// A prompt and its answer, `TURNS` times, as a dialect writes them.
fn log(dialect: &str) -> String {
    let text = "The tide comes in and the tide goes out, and nobody asks the moon. ".repeat(10);
    (0..2 * TURNS).map(|at| line(dialect, at, &text).to_string() + "\n").collect()
}

fn line(dialect: &str, at: usize, text: &str) -> serde_json::Value {
    let role = ["user", "assistant"][at % 2];
    let time = "2026-10-05T08:30:00Z";
    if dialect == "codex" {
        let kind = ["input_text", "output_text"][at % 2];
        let payload = json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]});
        return json!({"timestamp": time, "ordinal": at, "type": "response_item", "payload": payload});
    }
    let parent = at.checked_sub(1).map(|before| format!("r{before}"));
    let usage = json!({"input_tokens": 10, "output_tokens": 20});
    let message =
        json!({"role": role, "id": format!("m{at}"), "content": [{"type": "text", "text": text}], "usage": usage});
    json!({"type": role, "uuid": format!("r{at}"), "parentUuid": parent, "timestamp": time, "sessionId": "s",
        "version": "2.1.325", "cwd": "/x", "requestId": format!("q{at}"), "message": message})
}

/// Finding the lines: no dialect, nothing but blank ones.
fn split(c: &mut Criterion) {
    let blank = " ".repeat(700) + "\n";
    let bytes = blank.repeat(2 * TURNS).into_bytes();
    let mut group = c.benchmark_group("split");
    group.throughput(Throughput::Bytes(bytes.len() as u64));
    let open = |bytes| Session::from_bytes(&dialect::Unknown, bytes, &reading());
    group.bench_function("blank lines", |b| b.iter_batched(|| bytes.clone(), open, BatchSize::LargeInput));
}

/// What the tree must know of each line, by dialect.
fn link(c: &mut Criterion) {
    each_dialect(c, "link", |dialect, log| {
        let mut events = 0;
        for line in log.lines() {
            dialect.link(line, &mut |event| events += usize::from(black_box(Some(event)).is_some())).unwrap();
        }
        events
    });
}

/// Bytes into a session: lines, links, the tree.
fn intake(c: &mut Criterion) {
    each_dialect(c, "intake", |dialect, log| {
        Session::from_bytes(dialect, log.as_bytes().to_vec(), &reading()).records().len()
    });
}

fn each_dialect(c: &mut Criterion, step: &str, mut work: impl FnMut(&'static dyn Dialect, &str) -> usize) {
    let mut group = c.benchmark_group(step);
    for dialect in dialect::all() {
        let log = log(dialect.name());
        group.throughput(Throughput::Bytes(log.len() as u64));
        group.bench_function(dialect.name(), |b| b.iter(|| work(*dialect, &log)));
    }
}

/// One byte more: the tree of all that is there, folded anew.
fn tree(c: &mut Criterion) {
    let mut session = Session::from_bytes(&dialect::Native, log("native").into_bytes(), &reading());
    c.bench_function("tree", |b| {
        b.iter(|| {
            session.push(b"\n", &reading());
            session.heads().len()
        });
    });
}

/// The newest page of a session that is open already.
fn page(c: &mut Criterion) {
    let session = Session::from_bytes(&dialect::ClaudeCode, log("claude-code").into_bytes(), &reading());
    c.bench_function("page", |b| {
        b.iter(|| {
            let branch = session.branch(session.head().unwrap());
            let conversation = Conversation::new(&branch);
            let from = conversation.len() - PAGE_MESSAGES;
            conversation
                .messages(from..conversation.len())
                .map(|message| message.unwrap().parts.len())
                .sum::<usize>()
        });
    });
}
