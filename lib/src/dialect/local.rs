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

/// The tags in which agents write what a person did.
const TAGS: &[&str] = &[
    "bash-input",
    "bash-stderr",
    "bash-stdout",
    "command-args",
    "command-message",
    "command-name",
    "local-command-stderr",
    "local-command-stdout",
    "task-notification",
    "user_shell_command",
];

/// A text without the agents' own tags around parts of it.
pub(crate) fn without_tags(text: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(text);
    // Hardly any text has tags at all.
    let tags = if text.contains("</") { TAGS } else { &[] };
    for tag in tags {
        let (begin, end) = (format!("<{tag}>"), format!("</{tag}>"));
        if text.contains(&begin) && text.contains(&end) {
            text = text.replace(&begin, " ").replace(&end, " ").into();
        }
    }
    text
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
