//! What somebody does with a session before an agent goes on with it, and how they let it go on.

use std::path::Path;

/// One row of the table.
pub(super) struct Case<'a> {
    pub(super) name: String,
    pub(super) steps: Vec<Step<'a>>,
    pub(super) then: GoOn,
}

/// One thing that is done.
pub(super) enum Step<'a> {
    /// `record`, told these lines.
    Record(&'a str),
    /// `record --resume`, told these lines.
    RecordOn(&'a str),
    /// `convert` of this file.
    Convert(&'a Path),
    /// `rewind` to what was acknowledged last but so many.
    Rewind(usize),
    /// `fork`.
    Fork,
    /// `rename`.
    Rename,
    /// The agent is asked something.
    Ask,
}

/// How an agent is let go on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum GoOn {
    /// With the session that is named.
    Resume,
    /// With the newest of the directory.
    Newest,
    /// With a copy of the one that is named.
    Fork,
}

/// What `record` is told; one session each.
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

/// Everything that is done without a session of the demo.
pub(super) fn deeds<'a>() -> Vec<Case<'a>> {
    let case = |name: &str, steps: Vec<Step<'a>>, then: GoOn| Case { name: name.to_owned(), steps, then };
    let recorded = RECORDED.iter().map(|(name, lines)| Case {
        name: format!("recorded: {name}"),
        steps: vec![Step::Record(lines)],
        then: GoOn::Resume,
    });
    let further = [
        case(
            "recorded, and gone on with as the newest",
            vec![Step::Record(TALK), Step::Record(COMPACTION)],
            GoOn::Newest,
        ),
        case("recorded, and forked there", vec![Step::Record(TOOLS)], GoOn::Fork),
        case("recorded, and forked here", vec![Step::Record(TOOLS), Step::Fork], GoOn::Resume),
        case("recorded, and gone back in here", vec![Step::Record(TALK), Step::Rewind(3)], GoOn::Resume),
        case(
            "recorded, gone on with there, then here",
            vec![Step::Record(TOOLS), Step::Ask, Step::RecordOn(MORE)],
            GoOn::Resume,
        ),
        case(
            "begun there, gone on with and named here",
            vec![Step::Ask, Step::RecordOn(MORE), Step::Rename],
            GoOn::Resume,
        ),
        case("begun there, forked here", vec![Step::Ask, Step::Fork], GoOn::Resume),
    ];
    recorded.chain(further).collect()
}
