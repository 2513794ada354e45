//! The scenarios: what happens to a session before an agent resumes it, and how the agent is started.

use std::path::Path;

/// One scenario: one row of the table.
pub(super) struct Scenario<'a> {
    pub(super) name: String,
    pub(super) steps: Vec<Step<'a>>,
    pub(super) start: Start,
}

/// One step of a scenario.
pub(super) enum Step<'a> {
    /// `record` with these lines as input.
    Record(&'a str),
    /// `record --resume` with these lines as input.
    RecordMore(&'a str),
    /// `convert` of this file.
    Convert(&'a Path),
    /// `rewind` to the n-th last acknowledged record.
    Rewind(usize),
    /// `fork`.
    Fork,
    /// `rename`.
    Rename,
    /// `undo`.
    Undo,
    /// `redo`.
    Redo,
    /// The agent itself answers a prompt.
    Prompt,
}

/// How the agent is started at the end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// It resumes the session by id.
    Resume,
    /// It continues the newest session of the directory.
    Continue,
    /// It forks the session by id.
    Fork,
}

/// Inputs of `record`, one session each.
const RECORDED: [(&str, &str); 6] = [
    ("talk", include_str!("talk.jsonl")),
    ("tools", include_str!("tools.jsonl")),
    ("parallel", include_str!("parallel.jsonl")),
    ("stream", include_str!("stream.jsonl")),
    ("compaction", include_str!("compaction.jsonl")),
    ("interrupted", include_str!("interrupted.jsonl")),
];
const TALK: &str = include_str!("talk.jsonl");
const TOOLS: &str = include_str!("tools.jsonl");
const COMPACTION: &str = include_str!("compaction.jsonl");
const MORE: &str = include_str!("more.jsonl");

/// Every scenario that does not start from a session of the demo.
pub(super) fn scenarios<'a>() -> Vec<Scenario<'a>> {
    let scenario = |name: &str, steps: Vec<Step<'a>>, start: Start| Scenario { name: name.to_owned(), steps, start };
    let recorded = RECORDED.iter().map(|(name, lines)| Scenario {
        name: format!("recorded: {name}"),
        steps: vec![Step::Record(lines)],
        start: Start::Resume,
    });
    let more = [
        scenario(
            "recorded; the agent continues the newest",
            vec![Step::Record(TALK), Step::Record(COMPACTION)],
            Start::Continue,
        ),
        scenario("recorded; the agent forks it", vec![Step::Record(TOOLS)], Start::Fork),
        scenario("recorded, forked by scrollback", vec![Step::Record(TOOLS), Step::Fork], Start::Resume),
        scenario("recorded, rewound by scrollback", vec![Step::Record(TALK), Step::Rewind(3)], Start::Resume),
        scenario(
            "recorded, continued by the agent, then by scrollback",
            vec![Step::Record(TOOLS), Step::Prompt, Step::RecordMore(MORE)],
            Start::Resume,
        ),
        scenario(
            "started by the agent, continued and renamed by scrollback",
            vec![Step::Prompt, Step::RecordMore(MORE), Step::Rename],
            Start::Resume,
        ),
        scenario("started by the agent, forked by scrollback", vec![Step::Prompt, Step::Fork], Start::Resume),
    ];
    recorded.chain(more).collect()
}
