//! Text for a terminal: cleaning what strangers wrote, measuring it, and Markdown.
//!
//! Every string of a transcript passes [`clean`] before it is printed. Only SGR sequences made here leave this
//! module, each reset before its line ends, so a pager may cut anywhere.

pub(crate) mod clean;
pub(crate) mod interrupt;
pub(crate) mod markdown;
pub(crate) mod pager;
pub(crate) mod paint;
pub(crate) mod width;

mod highlight;
mod inline;
mod page;
mod preview;
mod styled;
mod table;
mod wrap;

#[cfg(test)]
mod tests;

/// How the text should look, decided once per run from the terminal and the flags.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    /// Display columns of a line; fewer than [`MIN_COLUMNS`] count as that many.
    pub(crate) width: usize,
    /// Whether colours and other SGR styles are written. Without them no escape byte is.
    pub(crate) colour: bool,
}

/// The narrowest layout: half of it holds the longest list number (`999999999. `), the other half some text.
pub(crate) const MIN_COLUMNS: usize = 24;
