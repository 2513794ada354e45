//! What a conversion did, in two sentences for people: how much was converted, and what was not carried over.

use scrollback::model::{Kind, LossKind, Lost};
use scrollback::transfer::convert::Converted;

use crate::render::plural;
use crate::terminal::clean;

/// What people miss, the most important first. Everything else is bookkeeping, which `--explain` lists.
const MISSED: &[(&str, Numbers, &[Lost])] = &[
    ("prompts", Numbers::Told, &[Lost::Record(Kind::User), Lost::Steering]),
    ("answers", Numbers::Told, &[Lost::Record(Kind::Assistant)]),
    ("output of local commands and other text", Numbers::Told, &[Lost::Text]),
    ("tool calls", Numbers::Told, &[Lost::ToolCall]),
    ("tool inputs", Numbers::Told, &[Lost::ToolInput]),
    ("tool results", Numbers::Told, &[Lost::Record(Kind::ToolResult), Lost::PreliminaryResult, Lost::DuplicateResult]),
    ("instructions", Numbers::Told, &[Lost::Instruction]),
    ("summaries", Numbers::Told, &[Lost::Record(Kind::Compaction)]),
    ("what a summary kept", Numbers::Left, &[Lost::KeptRecords, Lost::ReplacedHistory]),
    ("images", Numbers::Told, &[Lost::Image]),
    ("files", Numbers::Told, &[Lost::File, Lost::Attachment]),
    ("thinking", Numbers::Told, &[Lost::Thinking, Lost::ThinkingFile]),
    ("errors", Numbers::Told, &[Lost::Error]),
    ("reasons of failures", Numbers::Told, &[Lost::FailureReason]),
    ("denials", Numbers::Told, &[Lost::Denial]),
    ("notices", Numbers::Told, &[Lost::Record(Kind::System)]),
    ("records of other branches", Numbers::Told, &[Lost::OtherBranch]),
    ("records of sidechains", Numbers::Told, &[Lost::Sidechain]),
    ("sub-agent sessions", Numbers::Told, &[Lost::SubAgentSession]),
    ("the session that it begins in", Numbers::Left, &[Lost::Base]),
    ("the title", Numbers::Left, &[Lost::Record(Kind::Title)]),
    ("to-do lists", Numbers::Left, &[Lost::Todos]),
    ("sources", Numbers::Told, &[Lost::Source, Lost::Citations]),
    ("reactions", Numbers::Told, &[Lost::Reaction]),
    ("senders", Numbers::Left, &[Lost::Sender]),
    ("other parts", Numbers::Told, &[Lost::CustomPart, Lost::DataPart, Lost::UnknownPart]),
    ("file snapshots", Numbers::Told, &[Lost::Record(Kind::Snapshot), Lost::Record(Kind::Restore)]),
    ("other files", Numbers::Told, &[Lost::OtherFiles]),
    ("damaged places", Numbers::Told, &[Lost::TornLine, Lost::DamagedLine, Lost::UnreadableFile, Lost::Gap]),
    ("unknown records", Numbers::Told, &[Lost::Record(Kind::Other)]),
    ("model names", Numbers::Left, &[Lost::Model]),
    ("times", Numbers::Left, &[Lost::Timestamp]),
    ("token counts", Numbers::Left, &[Lost::Usage, Lost::ReasoningTokens, Lost::CacheTokens]),
];

/// Whether it matters how many of them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Numbers {
    Told,
    Left,
}

/// `Converted 6 messages, 9 tool calls. Not carried over: thinking (3), token counts.`
pub(super) fn sentences(converted: &Converted, is_explained: bool) -> String {
    let messages = plural(converted.messages, "message");
    let calls = match converted.tool_calls {
        0 => String::new(),
        calls => format!(", {}", plural(calls, "tool call")),
    };
    let missed = missed(converted);
    let rest = match (missed.as_slice(), converted.losses.is_empty(), is_explained) {
        ([], true, _) => "Nothing is lost.".to_owned(),
        ([], false, true) => "Only bookkeeping is not carried over.".to_owned(),
        ([], false, false) => "Only bookkeeping is not carried over; --explain lists it.".to_owned(),
        (missed, ..) => format!("Not carried over: {}.", missed.join(", ")),
    };
    format!("Converted {messages}{calls}. {rest}")
}

fn missed(converted: &Converted) -> Vec<String> {
    let mut missed = Vec::new();
    for (name, numbers, kinds) in MISSED {
        let rows = converted.losses.iter().filter(|row| row.kind == LossKind::Dropped && kinds.contains(&row.what));
        match rows.map(|row| row.count).sum::<u64>() {
            0 => {}
            count if kinds.contains(&Lost::OtherFiles) && !converted.other_files.is_empty() => {
                missed.push(format!("{name} ({})", named(&converted.other_files, count)));
            }
            count if *numbers == Numbers::Told => missed.push(format!("{name} ({count})")),
            _ => missed.push((*name).to_owned()),
        }
    }
    missed
}

/// `a.json, b.json and 2 more`
fn named(names: &[String], count: u64) -> String {
    let names: Vec<_> = names.iter().map(|name| clean::line(name)).collect();
    match count.saturating_sub(names.len() as u64) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}
