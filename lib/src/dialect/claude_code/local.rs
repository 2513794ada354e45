//! What a person did at Claude Code's screen, and what the agent reports to the model in the user's name: texts in tags.
//!
//! ```text
//! <command-name>/rename</command-name> … <command-args>Shop talk</command-args>     a command of the agent
//! <command-message>init is …</command-message> <command-name>/init</command-name>   a command that is a prompt
//! <local-command-stdout>…</local-command-stdout>                                    its output
//! <bash-input>ls</bash-input>    <bash-stdout>…</bash-stdout><bash-stderr>…</…>     `!` and its output
//! <task-notification>…<summary>…</summary>…</task-notification>                     the end of a task in the background
//! [Request interrupted by user]    [Request interrupted by user for tool use]
//! ```
//!
//! The agent sends all of them as they are. Which record may hold such a text is decided in `record_class.rs`.

use crate::dialect::printed;
use crate::model::record::Display;

/// What the agent writes in the user's name when a person stops it.
const INTERRUPTS: &[&str] = &["[Request interrupted by user]", "[Request interrupted by user for tool use]"];

/// The tag around what the agent shows the model in the user's name.
pub(super) const REMINDER_TAG: &str = "<system-reminder>";

/// How people see a text that the agent wrote in the user's name; `None` for any other text.
pub(in crate::dialect) fn display(text: &str) -> Option<Display> {
    let trimmed = text.trim();
    if INTERRUPTS.contains(&trimmed) {
        return Some(Display::Interrupted);
    }
    let inside = |tag: &str| inside(trimmed, tag);
    let printed = |tag: &str| printed::without_escapes(inside(tag).unwrap_or_default());
    Some(match first_tag(trimmed)? {
        "command-name" | "command-message" => {
            let name = inside("command-name").or(inside("command-message"))?.trim();
            let arguments = inside("command-args").unwrap_or_default().trim();
            let text = if arguments.is_empty() { name.to_owned() } else { format!("{name} {arguments}") };
            Display::Command { text }
        }
        "local-command-stdout" | "local-command-stderr" => {
            Display::Output { text: printed("local-command-stdout"), errors: printed("local-command-stderr") }
        }
        "bash-input" => {
            Display::Shell { text: inside("bash-input")?.trim().to_owned(), output: String::new(), exit_code: None }
        }
        "bash-stdout" | "bash-stderr" => {
            let printed = |tag: &str| without_persisted_tags(without_entities(&printed(tag)));
            Display::Output { text: printed("bash-stdout"), errors: printed("bash-stderr") }
        }
        "task-notification" => Display::Notification { text: printed("summary") },
        _ => return None,
    })
}

/// The output of a command, in which the agent escapes what could be a tag.
fn without_entities(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

/// An output that the agent cut and saved elsewhere, which its text says, without the tags around it.
fn without_persisted_tags(text: String) -> String {
    let inside = text
        .trim()
        .strip_prefix("<persisted-output>")
        .and_then(|text| text.strip_suffix("</persisted-output>"));
    inside.map(|inside| inside.trim().to_owned()).unwrap_or(text)
}

/// Whether a text is a command that the agent expands to a prompt: its tags are in another order than a local command's.
pub(super) fn is_prompt(text: &str) -> bool {
    text.trim_start().starts_with("<command-message>")
}

/// The text without the tags that mark context.
pub(super) fn without_reminder_tags(text: &str) -> &str {
    let inner = text.trim().strip_prefix(REMINDER_TAG).and_then(|text| text.strip_suffix("</system-reminder>"));
    inner.map_or(text, str::trim)
}

/// The name of the tag that a text begins with, if the text also ends with a closing tag.
fn first_tag(text: &str) -> Option<&str> {
    let (tag, _) = text.strip_prefix('<')?.split_once('>')?;
    let last = text.strip_suffix('>')?.rsplit_once("</")?.1;
    let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
    (is_name(tag) && is_name(last)).then_some(tag)
}

/// The text from the first opening of a tag to its last closing.
fn inside<'t>(text: &'t str, tag: &str) -> Option<&'t str> {
    let after = |text: &'t str| text.strip_prefix(tag)?.strip_prefix('>');
    let rest = text.match_indices('<').find_map(|(at, _)| after(&text[at + 1..]))?;
    let last = rest.rmatch_indices("</").find(|(at, _)| after(&rest[at + 2..]).is_some());
    last.map(|(at, _)| &rest[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<Display>) {
        assert_eq!(display(text), expected, "{text}");
    }

    #[test]
    fn a_text_in_tags_is_shown_as_what_it_is() {
        let command = |text: &str| Some(Display::Command { text: text.to_owned() });
        let output =
            |text: &str, errors: &str| Some(Display::Output { text: text.to_owned(), errors: errors.to_owned() });
        check("<command-name>/clear</command-name>\n <command-args></command-args>", command("/clear"));
        check("<command-name>/rename</command-name>\n<command-args>A b</command-args>", command("/rename A b"));
        check("<command-message>init is …</command-message>\n<command-name>/init</command-name>", command("/init"));
        check(
            "<bash-input>ls</bash-input>",
            Some(Display::Shell { text: "ls".to_owned(), output: String::new(), exit_code: None }),
        );
        check(
            "<bash-input> ls </bash-input>",
            Some(Display::Shell { text: "ls".to_owned(), output: String::new(), exit_code: None }),
        );
        check("<bash-stdout>a\nb</bash-stdout><bash-stderr></bash-stderr>", output("a\nb", ""));
        check("<bash-stdout>&lt;b&gt; &amp;amp; c</bash-stdout><bash-stderr></bash-stderr>", output("<b> &amp; c", ""));
        check("<bash-stdout></bash-stdout><bash-stderr>oops</bash-stderr>", output("", "oops"));
        check("<local-command-stdout></local-command-stdout>", output("", ""));
        check("<local-command-stdout>Set to \u{1b}[1mlow\u{1b}[22m</local-command-stdout>", output("Set to low", ""));
        check("[Request interrupted by user for tool use]", Some(Display::Interrupted));
    }

    #[test]
    fn other_texts_stay_texts() {
        for text in
            ["", "<", "<bash-input>", "<bash-input>ls", "<b>bold</b>", "see <bash-input>ls</bash-input>", "a <b"]
        {
            check(text, None);
        }
    }
}
