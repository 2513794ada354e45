//! Text on a terminal: cleaning untrusted text, measuring it, Markdown, colours, the pager.
//!
//! Every text from a session passes [`clean`] before it is printed. The only escape sequences are SGR styles made here,
//! each reset before its line ends, so that a pager may cut anywhere.

pub(crate) mod ask;
pub(crate) mod clean;
pub(crate) mod interrupt;
pub(crate) mod keys;
pub(crate) mod markdown;
pub(crate) mod pager;
pub(crate) mod paint;
pub(crate) mod preview;
pub(crate) mod progress;
pub(crate) mod sgr;
pub(crate) mod typed;
pub(crate) mod width;
pub(crate) mod wrap;

mod highlight;
mod inline;
mod page;
mod styled;
mod table;

#[cfg(test)]
mod tests;

/// Width and colour of the output, decided once per run from the terminal and the options.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    /// Display columns of a line of prose, at least [`MIN_COLUMNS`].
    pub(crate) width: usize,
    /// The same for code, outputs and differences, which may use the whole window.
    pub(crate) code: usize,
    /// Whether SGR styles are written. Without them the output has no escape byte.
    pub(crate) colour: bool,
}

impl Look {
    /// The room that is left beside something this wide.
    pub(crate) fn beside(self, columns: usize) -> Look {
        Look { width: self.width.saturating_sub(columns), code: self.code.saturating_sub(columns), ..self }
    }
}

/// The narrowest layout: half for the longest list number (`999999999. `), half for text.
pub(crate) const MIN_COLUMNS: usize = 24;
