//! The few styles we use, and the one place that decides whether they are used at all.

use anstyle::{AnsiColor, Style};

use crate::terminal::clean;

/// Puts styles round words. Without colour it puts nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    pub(crate) colour: bool,
}

impl Paint {
    pub(crate) fn plain(self, text: &str) -> String {
        self.put(Style::new(), text)
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.put(Style::new().bold(), text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.put(Style::new().dimmed(), text)
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.put(AnsiColor::Red.on_default(), text)
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.put(AnsiColor::Green.on_default(), text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.put(AnsiColor::Yellow.on_default(), text)
    }

    pub(crate) fn cyan(self, text: &str) -> String {
        self.put(AnsiColor::Cyan.on_default(), text)
    }

    /// The text is cleaned here too: a style must never carry somebody's escape with it.
    fn put(self, style: Style, text: &str) -> String {
        let text = clean::line(text);
        if self.colour && !text.is_empty() { format!("{style}{text}{style:#}") } else { text.into_owned() }
    }
}
