//! What a person did at an agent's screen, in the words of whichever agent: a converted session keeps the text that the model
//! gets, so a format holds the words of others, too.
//!
//! We mark such a message where the format's own agent would not write it; without the mark it would be a person's text.

use std::borrow::Cow;

use super::{claude_code, codex};
use crate::model::lenient::RawObject;
use crate::model::message::Part;
use crate::model::record::{Content, Display};

/// The field of a line with one of the marks below. The agents ignore fields that they do not know.
pub(super) const MARK_FIELD: &str = "scrollback";

/// The field with what a person typed, where the model gets more than that and the format has no other place for it.
pub(super) const TYPED_FIELD: &str = "scrollbackTyped";

/// What a message is that no person typed as a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// A command or its output.
    Local,
    /// A person stopped the agent.
    Interrupted,
}

impl Mark {
    pub(super) fn of(display: &Display) -> Mark {
        if *display == Display::Interrupted { Mark::Interrupted } else { Mark::Local }
    }

    pub(super) fn parse(name: &str) -> Option<Mark> {
        [Mark::Local, Mark::Interrupted].into_iter().find(|mark| mark.name() == name)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Mark::Local => "local",
            Mark::Interrupted => "interrupted",
        }
    }

    /// How people see a message with this mark.
    pub(super) fn display(self, text: &str) -> Display {
        match self {
            Mark::Interrupted => Display::Interrupted,
            Mark::Local => display(text).unwrap_or_else(|| Display::Notification { text: text.to_owned() }),
        }
    }
}

/// How people see a text that an agent wrote in the user's name, by the tags of any agent.
fn display(text: &str) -> Option<Display> {
    claude_code::local::display(text).or_else(|| codex::local::display_of_text(text.trim()))
}

/// Whether a whole text has the tags of some agent.
pub(crate) fn is_tagged(text: &str) -> bool {
    display(text.trim()).is_some()
}

/// The tags in which agents write what a person did, and what they tell the model.
const TAGS: &[&str] = &[
    "bash-input",
    "bash-stderr",
    "bash-stdout",
    "command-args",
    "command-message",
    "command-name",
    "environment_context",
    "local-command-caveat",
    "local-command-stderr",
    "local-command-stdout",
    "session_context",
    "subagent_notification",
    "system-reminder",
    "task-notification",
    "turn_aborted",
    "user_instructions",
    "user_shell_command",
];

/// A text without the agents' own tags, for a title; if it begins with another tag, without all that are closed.
pub(crate) fn without_tags(text: &str) -> Cow<'_, str> {
    // Hardly any text has tags at all.
    let is_tagged = text.trim_start().starts_with('<') || text.contains("</");
    if !is_tagged {
        return text.into();
    }
    let begins_with_one = is_closed_below(text.trim_start());
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find('<') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let inside = from[1..].split_once('>').map(|(inside, _)| inside);
        let inside = inside.filter(|inside| inside.len() <= LONGEST_TAG_BYTES);
        let name = inside.map(|inside| inside.strip_prefix('/').unwrap_or(inside)).filter(|name| is_tag_name(name));
        let is_taken = |name: &&str| TAGS.contains(name) || (begins_with_one && text.contains(&format!("</{name}>")));
        let taken = inside.filter(|_| name.as_ref().is_some_and(is_taken));
        out.push_str(if taken.is_some() { " " } else { "<" });
        rest = &from[taken.map_or(1, |inside| inside.len() + 2)..];
    }
    out.push_str(rest);
    out.into()
}

/// No tag of an agent is longer.
const LONGEST_TAG_BYTES: usize = 40;

/// Whether a text begins with a tag that is closed in it.
fn is_closed_below(text: &str) -> bool {
    let tag = text.strip_prefix('<').and_then(|text| text.split_once('>'));
    tag.is_some_and(|(tag, rest)| is_tag_name(tag) && rest.contains(&format!("</{tag}>")))
}

/// How Claude Code and Codex begin a summary for the model that goes on.
const SUMMARY_BEGINNINGS: &[&str] = &[
    "This session is being continued from a previous conversation",
    "Another language model started to solve this problem",
];

/// How the agents go on after a summary: what the model is to do with it.
const SUMMARY_ENDINGS: &[&str] = &[
    "If you need specific details from before compaction",
    "Continue the conversation from where it left off",
    "Please continue the conversation from where we left it off",
    "The messages after this summary are the most recent messages",
    "Resume the prior task using the summary above",
];

/// The summary that a model wrote, in what the agents send instead of a conversation; the whole, if there is nothing else in it.
pub(crate) fn summary_itself(text: &str) -> &str {
    let mut summary = text.trim();
    if SUMMARY_BEGINNINGS.iter().any(|beginning| summary.starts_with(beginning)) {
        let first_line = || summary.split_once('\n').map(|(_, rest)| rest);
        summary = match summary.split_once("\nSummary:\n") {
            Some((_, rest)) => rest,
            None => without_reminder(first_line().unwrap_or_default().trim_start()),
        };
    }
    let endings = SUMMARY_ENDINGS.iter().filter_map(|ending| summary.rfind(&format!("\n{ending}")));
    summary = summary[..endings.min().unwrap_or(summary.len())].trim();
    if summary.starts_with("<analysis>") || summary.starts_with("<summary>") {
        let inside = summary.split_once("<summary>").and_then(|(_, rest)| rest.rsplit_once("</summary>"));
        summary = inside.map_or(summary, |(inside, _)| inside.trim());
    }
    if summary.is_empty() { text } else { summary }
}

/// A text without the context that it begins with.
fn without_reminder(text: &str) -> &str {
    let rest = text.strip_prefix("<system-reminder>").and_then(|text| text.split_once("</system-reminder>"));
    rest.map_or(text, |(_, rest)| rest.trim_start())
}

/// Whether a text is a tag and its closing, with all that is in between.
pub(crate) fn is_wrapped(text: &str) -> bool {
    let text = text.trim();
    let Some((tag, rest)) = text.strip_prefix('<').and_then(|text| text.split_once('>')) else { return false };
    is_tag_name(tag) && rest.contains(&format!("</{tag}>")) && rest.ends_with('>')
}

fn is_tag_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c == '-' || c == '_')
}

/// What a person typed of a prompt, as we wrote it beside what the model gets, or as its tags tell.
pub(super) fn typed(message: &RawObject<'_>, content: &Content) -> Option<Display> {
    let written = message.string(TYPED_FIELD).map(|text| Display::Typed { text });
    written.or_else(|| without_image_tags(content))
}

/// What a person typed of a prompt, if only a field of our own can tell.
pub(super) fn typed_beside(content: &Content) -> Option<&str> {
    match &content.display {
        Some(Display::Typed { text }) if content.display != without_image_tags(content) => Some(text),
        _ => None,
    }
}

/// A prompt with pictures: Codex puts a tag before and after each, which nobody typed.
fn without_image_tags(content: &Content) -> Option<Display> {
    let is_tag = |text: &str| text == "</image>" || (text.starts_with("<image name=") && text.ends_with('>'));
    let texts: Vec<&str> = content.parts.iter().filter_map(Part::as_text).collect();
    let has_file = content.parts.iter().any(|part| matches!(part, Part::File(_)));
    let typed: Vec<&str> = texts.iter().copied().filter(|text| !is_tag(text.trim())).collect();
    (has_file && typed.len() < texts.len()).then(|| Display::Typed { text: typed.join("\n") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_what_the_model_wrote() {
        let claude = "This session is being continued from a previous conversation that ran out of context. The summary below covers \
                      the earlier portion of the conversation.\n\n<system-reminder>\n<tools-used-before-summary>Bash\
                      </tools-used-before-summary>\n</system-reminder>\n";
        let ending = "\n\nIf you need specific details from before compaction (like code), read the full transcript at: x.jsonl\n\
                      Continue the conversation from where it left off without asking.\n\nThe messages after this summary are the \
                      most recent messages from before compaction, kept verbatim.";
        let codex =
            "Another language model started to solve this problem and produced a summary. Here is the summary:\n";
        let tagged = "<analysis>Hm.</analysis>\n<summary>\nThey counted.\n\nTo four.\n</summary>";
        let qwen = "\n\nResume the prior task using the summary above. Continue from the last step.";
        let itself = "They counted.\n\nTo four.";
        for text in [
            itself.to_owned(),
            format!("{claude}Summary:\n{itself}{ending}"),
            format!("{claude}{itself}{ending}"),
            format!("{codex}{tagged}"),
            format!("{codex}{itself}"),
            format!("{tagged}{qwen}"),
        ] {
            assert_eq!(summary_itself(&text), itself, "{text}");
        }
        for whole in [
            "",
            " ",
            "<summary>",
            "<summary></summary>",
            codex,
            "What does <summary>x</summary> mean?",
            "a\nSummary:\nb",
        ] {
            assert!(!whole.is_empty() || summary_itself(whole).is_empty());
            assert!(
                whole.contains(summary_itself(whole)) && (whole.is_empty() || !summary_itself(whole).is_empty()),
                "{whole}"
            );
        }
        assert_eq!(summary_itself("What does <summary>x</summary> mean?"), "What does <summary>x</summary> mean?");
    }

    #[test]
    fn a_title_has_no_tags_of_agents() {
        let without = |text: &str| without_tags(text).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(without("<turn_aborted> by me<environment_context>x</environment_context>"), "by me x");
        assert_eq!(without("Why <b>bold</b>, a < b and <T>?"), "Why <b>bold</b>, a < b and <T>?");
        assert_eq!(without("<summary>a <b>sum</b></summary>"), "a sum");
        assert_eq!(without("<T> is missing </T>"), "<T> is missing </T>");
        assert_eq!(without("<a"), "<a");
    }
}
