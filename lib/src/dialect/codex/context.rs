//! Which messages of role `user` somebody typed: Codex gives the model context in that role too.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::line::Payload;
use crate::model::lenient::{List, Text};

/// How context begins, and how it ends. A person's text may begin so; then it does not end so.
const CONTEXT: &[(&str, &str)] = &[
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

/// How context begins that tells what happened in the conversation. Codex makes all other context anew.
const HAPPENED: &[&str] = &["<subagent_notification>", "<turn_aborted>", "<user_shell_command>", "<skill>"];

/// What Codex calls the pieces of a message that a person wrote: `user.text`, `user.image`.
const TYPED: &str = "user.";

/// Says nothing about a piece.
const UNKNOWN: &str = "unknown";

/// Whether a message of role `user` is a prompt.
pub(super) fn is_prompt(message: &Payload<'_>) -> bool {
    let kinds = message.passthrough.0.as_ref().and_then(|passthrough| passthrough.content_item_kinds);
    let kinds: Vec<String> = kinds.and_then(|kinds| serde_json::from_str(kinds.get()).ok()).unwrap_or_default();
    if kinds.iter().any(|kind| kind != UNKNOWN) {
        return kinds.iter().any(|kind| kind.starts_with(TYPED));
    }
    message.content.is_none_or(|content| !is_context(content))
}

/// Whether context is a part of the conversation.
pub(super) fn is_told(message: &Payload<'_>) -> bool {
    let happened = |text: &str| HAPPENED.iter().any(|begin| text.trim_start().starts_with(begin));
    message.content.is_some_and(|content| all_texts(content, happened))
}

/// Whether a content is nothing but context.
fn is_context(content: &RawValue) -> bool {
    all_texts(content, is_context_text)
}

/// Whether a content is nothing but texts of one kind.
fn all_texts(content: &RawValue, is: impl Fn(&str) -> bool) -> bool {
    #[derive(Deserialize, Default)]
    #[serde(default, bound(deserialize = "'de: 'a"))]
    struct Piece<'a> {
        text: Text<'a>,
    }
    if let Ok(Text(Some(text))) = serde_json::from_str(content.get()) {
        return is(&text);
    }
    let Ok(List(pieces)) = serde_json::from_str::<List<Piece<'_>>>(content.get()) else { return false };
    !pieces.is_empty() && pieces.iter().all(|piece| piece.text.0.as_deref().is_some_and(&is))
}

fn is_context_text(text: &str) -> bool {
    let text = text.trim();
    CONTEXT.iter().any(|(begin, end)| text.starts_with(begin) && text.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn context_begins_and_ends_as_codex_writes_it() {
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
