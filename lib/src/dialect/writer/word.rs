//! Which word of [`super::WORDS`] stands for what: records, roles and keys, and words that stand for the same difference.

use super::Loss;
use crate::model::message::Role;
use crate::model::record::Kind;

/// Losses that are a whole record. Others are of a record that is there.
pub(crate) const WHOLE_RECORDS: [&str; 15] = [
    "prompt",
    "answer",
    "tool result",
    "context",
    "instruction",
    "notice",
    "snapshot",
    "title",
    "compaction",
    "rewind",
    "restore",
    "header",
    "unknown record",
    "sidechain",
    "another branch",
];

/// Words for the same difference as far as a message shows it: the first is what is found, the others what a writer may call it.
const SAME: [&[&str]; 15] = [
    &[
        "details of a call",
        "provider metadata",
        "call of a provider",
        "note of a run",
        "duration",
        "exit code",
        "state of a call",
    ],
    &["details of a part", "provider metadata", "citations"],
    &["surroundings"],
    &["thinking", "provider metadata", "details of a part"],
    &["file", "image", "media type", "file name", "attachment", "provider metadata", "details of a part"],
    &["image", "file", "media type", "file name", "attachment", "provider metadata", "details of a part"],
    &[
        "text",
        "several texts",
        "citations",
        "sender",
        "reaction",
        "attachment",
        "image",
        "file",
        "data part",
        "empty message",
        "message inside another",
        "provider metadata",
        "details of a part",
    ],
    &[
        "tool call",
        "tool input",
        "tool output",
        "tool name",
        "tool result",
        "id of a call",
        "preliminary result",
        "another result of the same call",
        "reason of a failure",
        "call of a provider",
        "note of a run",
        "duration",
        "exit code",
        "details of a call",
        "state of a call",
        "approval",
        "denial",
        "provider metadata",
    ],
    &["usage", "reasoning tokens", "cache tokens"],
    &["error", "kind of an error", "notice"],
    &["compaction", "compaction facts", "kept records", "replaced history"],
    &["rewind", "reason of a rewind"],
    &["title", "title source"],
    &["role", "instruction", "context", "notice"],
    &["several texts", "text", "message inside another"],
];

/// The words that stand for a difference.
pub(crate) fn same(what: &str) -> impl Iterator<Item = &str> {
    let names = SAME.iter().find(|names| names.first() == Some(&what)).copied().unwrap_or_default();
    [what].into_iter().chain(names.iter().copied())
}

/// What is lost with a record that has no place in the other format.
pub(crate) fn word_of_kind(kind: Kind) -> &'static str {
    match kind {
        Kind::User => "prompt",
        Kind::Assistant => "answer",
        Kind::ToolResult => "tool result",
        Kind::Attachment => "context",
        Kind::System => "notice",
        Kind::Snapshot => "snapshot",
        Kind::Title => "title",
        Kind::Compaction => "compaction",
        Kind::Rewind => "rewind",
        Kind::Restore => "restore",
        Kind::Header => "header",
        Kind::Other => "unknown record",
    }
}

/// What is lost with a message of a role.
pub(crate) fn word_of_role(role: Role) -> &'static str {
    match role {
        Role::System => "notice",
        Role::User => "prompt",
        Role::Assistant => "answer",
    }
}

/// The word for what a message says under a key of its metadata; nothing for what only our reader says there.
pub(crate) fn word_of_key(key: &str) -> Option<&'static str> {
    match key {
        "records" | "continues" => None,
        "cwd" | "gitBranch" | "platform" | "userType" => Some(Loss::SURROUNDINGS),
        "timestamp" => Some("timestamp"),
        "model" => Some("model"),
        "usage" => Some("usage"),
        "todos" => Some("todos"),
        "thinking" => Some("thinking mode"),
        "sender" => Some("sender"),
        "error" => Some("error"),
        _ => Some("metadata"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::writer::WORDS;

    #[test]
    fn every_word_is_explained() {
        let kinds = [
            Kind::User,
            Kind::Assistant,
            Kind::ToolResult,
            Kind::Attachment,
            Kind::System,
            Kind::Snapshot,
            Kind::Title,
            Kind::Compaction,
            Kind::Rewind,
            Kind::Restore,
            Kind::Header,
            Kind::Other,
        ];
        let of_kinds = kinds.map(word_of_kind).into_iter();
        assert!(of_kinds.clone().all(|word| WHOLE_RECORDS.contains(&word)));
        let of_roles = [Role::System, Role::User, Role::Assistant].map(word_of_role);
        let of_keys = ["cwd", "timestamp", "model", "usage", "todos", "thinking", "sender", "error", "x"];
        let of_keys = of_keys.into_iter().filter_map(word_of_key);
        let all = of_kinds
            .chain(of_roles)
            .chain(of_keys)
            .chain(WHOLE_RECORDS)
            .chain(SAME.into_iter().flatten().copied());
        let unexplained: Vec<&str> = all.filter(|word| !WORDS.iter().any(|(known, _)| known == word)).collect();
        assert_eq!(unexplained, [""; 0]);
    }
}
