//! What a person did at Codex's screen, beside the conversation: the model gets it as a text in tags, in the user's name.
//!
//! ```text
//! <user_shell_command>          `!` and what the command printed
//! <command>ls</command>
//! <result>Exit code: 0 … Output: …</result>
//! </user_shell_command>
//! <turn_aborted>…</turn_aborted>          the person stopped the turn
//! ```

use serde_json::value::RawValue;

use super::context;
use super::line::Payload;
use crate::dialect::printed;
use crate::model::json;
use crate::model::lenient::{self, List, RawObject};
use crate::model::record::Display;

/// The lines of Codex around the output of a command.
const OUTPUT: &str = "\nOutput:\n";

/// How people see a message in the role `user` that is not a prompt.
pub(super) fn display(message: &Payload<'_>) -> Option<Display> {
    let content = message.content.filter(|_| !context::is_prompt(message))?;
    if let Some(mark) = context::mark(message) {
        return only_text(content).map(|text| mark.display(&text));
    }
    // Most context is long, and is not parsed here.
    let is_tagged = content.get().contains("<turn_aborted>") || content.get().contains("<user_shell_command>");
    display_of_text(only_text(content).filter(|_| is_tagged)?.trim())
}

/// How people see a text in the tags of Codex.
pub(in crate::dialect) fn display_of_text(text: &str) -> Option<Display> {
    if inside(text, "turn_aborted").is_some() {
        return Some(Display::Interrupted);
    }
    let run = inside(text, "user_shell_command")?;
    let (command, result) = run.split_once("</command>")?;
    let result = result.trim_start().strip_prefix("<result>").unwrap_or_default();
    let result = result.trim_end().strip_suffix("</result>").unwrap_or(result);
    let (head, output) = result.split_once(OUTPUT).unwrap_or(("", result));
    let exit_code = head.lines().find_map(|line| line.strip_prefix("Exit code: ")?.trim().parse().ok());
    let text = command.trim_start().strip_prefix("<command>")?.trim().to_owned();
    let output = printed::without_escapes(output.trim_end());
    Some(Display::Shell { text, output, exit_code: exit_code.filter(|code| *code != 0) })
}

/// The text of a content that is one text.
fn only_text(content: &RawValue) -> Option<String> {
    if let Some(text) = lenient::parsed::<String>(content) {
        return Some(text);
    }
    let List(pieces) = json::from_str::<List<RawObject<'_>>>(content.get()).ok()?;
    match pieces.as_slice() {
        [piece] => piece.string("text"),
        _ => None,
    }
}

/// The text between the opening and the closing of a tag that wraps all of it.
fn inside<'t>(text: &'t str, tag: &str) -> Option<&'t str> {
    text.strip_prefix(&format!("<{tag}>"))?.strip_suffix(&format!("</{tag}>"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_person_did_is_shown_as_that() {
        let shell = "<user_shell_command>\n<command>\nls\n</command>\n<result>\nExit code: 0\nDuration: 0.03 seconds\n\
                     Output:\na\nb\n\n</result>\n</user_shell_command>";
        let expected = |exit_code| Some(Display::Shell { text: "ls".into(), output: "a\nb".into(), exit_code });
        assert_eq!(display_of_text(shell), expected(None));
        assert_eq!(display_of_text(&shell.replace("code: 0", "code: 2")), expected(Some(2)));
        assert_eq!(display_of_text("<turn_aborted>\nThe user …\n</turn_aborted>"), Some(Display::Interrupted));
        for other in ["", "<turn_aborted>", "<turn_aborted> is what?", "<user_shell_command></user_shell_command>"] {
            assert_eq!(display_of_text(other), None, "{other}");
        }
    }
}
