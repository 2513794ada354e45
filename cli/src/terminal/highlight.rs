//! Colours for code: the terminal's own eight, which suit light and dark backgrounds.

use anstyle::{AnsiColor, Style};
use scrollback_web::render::lexer::{Kind, each_piece};

use super::styled::Run;

/// The styles of a block of clean code; `None` if the language is unknown.
pub(super) fn runs(code: &str, language: &str) -> Option<Vec<Run>> {
    let mut runs: Vec<Run> = Vec::new();
    let mut end = 0;
    let is_known = each_piece(code, language, |piece, kind| {
        end += piece.len();
        runs.push(Run { end, style: kind.map(style_of).unwrap_or_default() });
    });
    is_known.then_some(runs)
}

fn style_of(kind: Kind) -> Style {
    let colour = match kind {
        Kind::Comment | Kind::Quoted | Kind::Added => AnsiColor::Green,
        Kind::Number | Kind::Constant => AnsiColor::Yellow,
        Kind::Keyword => AnsiColor::Magenta,
        Kind::Type => AnsiColor::Cyan,
        Kind::Function | Kind::Key => AnsiColor::Blue,
        Kind::Removed => AnsiColor::Red,
    };
    colour.on_default()
}
