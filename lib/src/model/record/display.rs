//! How people see a message whose parts are what the agent made of it for the model.

use serde::{Deserialize, Serialize};

/// How people see a message, where that is not what the model sees.
///
/// The parts of such a message are what the agent sends: often a text in tags.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Display {
    /// A person typed this; the agent added more for the model.
    Typed {
        /// The text as typed.
        text: String,
    },
    /// A person ran a command of the agent, such as `/rename Shop talk`.
    Command {
        /// The command with its arguments.
        text: String,
    },
    /// A person ran a shell command.
    Shell {
        /// The command line.
        text: String,
        /// What it printed, if the record says so.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        output: String,
        /// How it ended, if it failed.
        #[serde(rename = "exitCode", default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i64>,
    },
    /// What such a command printed.
    Output {
        /// What it printed.
        text: String,
        /// What it printed as errors.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        errors: String,
    },
    /// A person stopped the agent.
    Interrupted,
    /// The agent told the model about an event, such as the end of a task in the background.
    Notification {
        /// The event in a sentence.
        text: String,
    },
}

impl Display {
    /// The text that represents it in a list or a tree.
    pub fn text(&self) -> &str {
        match self {
            Display::Typed { text }
            | Display::Command { text }
            | Display::Shell { text, .. }
            | Display::Notification { text } => text,
            Display::Output { text, errors } if text.is_empty() => errors,
            Display::Output { text, .. } => text,
            Display::Interrupted => "interrupted",
        }
    }
}
