//! Which messages in the role `user` a person typed: Codex sends context in that role, too.

use serde_json::value::RawValue;

use super::line::Payload;
use crate::dialect::local::Mark;
use crate::model::json;
use crate::model::lenient::{List, RawObject, Text};

/// The start and the end of context. A person's text may start so; then it does not end so.
const CONTEXT_TAGS: &[(&str, &str)] = &[
    ("<environment_context>", "</environment_context>"),
    ("<user_instructions>", "</user_instructions>"),
    ("# AGENTS.md instructions", "</INSTRUCTIONS>"),
    ("<skills_instructions>", "</skills_instructions>"),
    ("<permissions", ">"),
    ("<skill>", "</skill>"),
    ("<turn_aborted>", "</turn_aborted>"),
    ("<subagent_notification>", "</subagent_notification>"),
    ("<user_shell_command>", "</user_shell_command>"),
    ("<collaboration_mode>", "</collaboration_mode>"),
    ("<apps_instructions>", "</apps_instructions>"),
    ("<plugins_instructions>", "</plugins_instructions>"),
    ("<model_switch>", "</model_switch>"),
    ("<personality_spec>", "</personality_spec>"),
];

/// The start of context about what happened in the conversation. Codex generates all other context anew.
const KEPT_TAGS: &[&str] = &["<subagent_notification>", "<turn_aborted>", "<user_shell_command>", "<skill>"];

/// The kinds of pieces that a person wrote: `user.text`, `user.image`.
const TYPED: &str = "user.";

/// The kinds of pieces in which a compaction says what it replaced: `compaction.summary`.
const SUMMARY: &str = "compaction.";

/// The start or the end of the kinds that Codex generates anew: `environments.environment_context`, `permissions.instructions`.
const GENERATED: (&str, &str) = ("environments.", ".instructions");

/// The start of our own kinds: `scrollback.context`, `scrollback.local`.
pub(super) const OURS: &str = "scrollback.";

/// The kind of a piece without one.
const UNKNOWN: &str = "unknown";

/// Whether a message in the role `user` is a prompt.
pub(super) fn is_prompt(message: &Payload<'_>) -> bool {
    if !known_kinds(message).is_empty() {
        return is_typed(message);
    }
    message.content.is_none_or(|content| !is_context(content))
}

/// Whether Codex says that a person typed it.
pub(super) fn is_typed(message: &Payload<'_>) -> bool {
    known_kinds(message).iter().any(|kind| kind.starts_with(TYPED))
}

/// Whether context is part of the conversation and sent again. A kind that we do not know is, as Codex sends it too.
pub(super) fn is_kept(message: &Payload<'_>) -> bool {
    let is_kept = |text: &str| KEPT_TAGS.iter().any(|start| text.trim_start().starts_with(start));
    let is_generated = |kind: &String| kind.starts_with(GENERATED.0) || kind.ends_with(GENERATED.1);
    let kinds = known_kinds(message);
    let has_own_kind = !kinds.is_empty() && !kinds.iter().any(is_generated);
    let content = message.content;
    is_summary(message)
        || content.is_some_and(|content| all_texts(content, is_kept))
        || (has_own_kind && content.is_some_and(|content| !is_context(content)))
}

/// Whether a message is the summary of a compaction, in whichever role.
pub(super) fn is_summary(message: &Payload<'_>) -> bool {
    known_kinds(message).iter().any(|kind| kind.starts_with(SUMMARY))
}

/// What we say that a message is which came from another agent.
pub(super) fn mark(message: &Payload<'_>) -> Option<Mark> {
    known_kinds(message).iter().find_map(|kind| Mark::parse(kind.strip_prefix(OURS)?))
}

/// What Codex says that the pieces of a message are.
fn known_kinds(message: &Payload<'_>) -> Vec<String> {
    let passthrough = message.passthrough.0.as_ref();
    let kinds = passthrough.and_then(|passthrough| passthrough.parsed::<Vec<String>>("content_item_kinds"));
    let beside = || message.content_item_kinds.and_then(|kinds| json::from_str(kinds.get()).ok());
    kinds.or_else(beside).unwrap_or_default().into_iter().filter(|kind| kind != UNKNOWN).collect()
}

/// Whether a content is only context.
fn is_context(content: &RawValue) -> bool {
    all_texts(content, is_context_text)
}

/// Whether a content is only texts that pass a test.
fn all_texts(content: &RawValue, test: impl Fn(&str) -> bool) -> bool {
    if let Ok(Text(Some(text))) = json::from_str(content.get()) {
        return test(&text);
    }
    let Ok(List(pieces)) = json::from_str::<List<RawObject<'_>>>(content.get()) else { return false };
    !pieces.is_empty() && pieces.iter().all(|piece| piece.get::<Text<'_>>("text").0.as_deref().is_some_and(&test))
}

fn is_context_text(text: &str) -> bool {
    let text = text.trim();
    CONTEXT_TAGS.iter().any(|(start, end)| text.starts_with(start) && text.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn context_starts_and_ends_as_codex_writes_it() {
        for (text, context) in [
            ("<environment_context>\n  <cwd>/x</cwd>\n</environment_context>", true),
            ("  <environment_context></environment_context>\n", true),
            ("# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\nBe kind.\n</INSTRUCTIONS>", true),
            ("<permissions instructions>\nask\n</permissions instructions>", true),
            ("<environment_context> is what I ask about", false),
            ("What is <environment_context></environment_context>", false),
            ("# AGENTS.md instructions are what I want", false),
            ("", false),
        ] {
            assert_eq!(is_context_text(text), context, "{text:?}");
        }
    }
}
