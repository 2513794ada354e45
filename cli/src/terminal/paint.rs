//! The styles of our own text.

use anstyle::{AnsiColor, Style};

use crate::terminal::clean;

/// Adds styles to text; without colour it adds nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    pub(crate) colour: bool,
}

impl Paint {
    pub(crate) fn plain(self, text: &str) -> String {
        self.apply(Style::new(), text)
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.apply(Style::new().bold(), text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.apply(Style::new().dimmed(), text)
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.apply(AnsiColor::Red.on_default(), text)
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.apply(AnsiColor::Green.on_default(), text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.apply(AnsiColor::Yellow.on_default(), text)
    }

    pub(crate) fn cyan(self, text: &str) -> String {
        self.apply(AnsiColor::Cyan.on_default(), text)
    }

    /// Cleans the text too: no escape sequence from a session passes.
    fn apply(self, style: Style, text: &str) -> String {
        let text = clean::line(text);
        if self.colour && !text.is_empty() { format!("{style}{text}{style:#}") } else { text.into_owned() }
    }
}
