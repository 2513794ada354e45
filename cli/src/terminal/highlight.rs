//! Colours for code: the terminal's own eight, which suit light and dark backgrounds.

use std::sync::LazyLock;

use anstyle::{AnsiColor, Color, Style};
use scrollback_web::render::grammar::{Budget, SYNTAXES, Seen};
use syntect::highlighting::{self, FontStyle, HighlightIterator, HighlightState, Highlighter};
use syntect::parsing::ScopeStack;
use two_face::theme::EmbeddedThemeName;

use super::styled::Run;

static THEME: LazyLock<highlighting::Theme> =
    LazyLock::new(|| two_face::theme::extra().get(EmbeddedThemeName::Ansi).clone());

/// The styles of a block of clean code; `None` if the language is unknown or the block is too large.
pub(super) fn runs(code: &str, language: &str, budget: &mut Budget) -> Option<Vec<Run>> {
    let mut parser = budget.parser(code, language, Seen::AtOnce)?;
    let highlighter = Highlighter::new(&THEME);
    let mut state = HighlightState::new(&highlighter, ScopeStack::new());
    let mut runs: Vec<Run> = Vec::new();
    let mut end = 0;
    for line in code.split_inclusive('\n') {
        let changes = parser.parse_line(line, &SYNTAXES).ok()?;
        for (style, piece) in HighlightIterator::new(&mut state, &changes, line, &highlighter) {
            end += piece.len();
            let style = terminal_style(style);
            match runs.last_mut() {
                Some(last) if last.style == style || last.end == end => last.end = end,
                _ => runs.push(Run { end, style }),
            }
        }
    }
    Some(runs)
}

fn terminal_style(style: highlighting::Style) -> Style {
    let mut out = Style::new().fg_color(terminal_colour(style.foreground));
    for (font, effect) in [
        (FontStyle::BOLD, anstyle::Effects::BOLD),
        (FontStyle::ITALIC, anstyle::Effects::ITALIC),
        (FontStyle::UNDERLINE, anstyle::Effects::UNDERLINE),
    ] {
        if style.font_style.contains(font) {
            out = out.effects(out.get_effects() | effect);
        }
    }
    out
}

/// The theme writes a colour of the terminal as its number in `r` with no alpha, and the default colour as alpha 1.
fn terminal_colour(colour: highlighting::Color) -> Option<Color> {
    let ansi = match (colour.a, colour.r) {
        (0, 0) => AnsiColor::Black,
        (0, 1) => AnsiColor::Red,
        (0, 2) => AnsiColor::Green,
        (0, 3) => AnsiColor::Yellow,
        (0, 4) => AnsiColor::Blue,
        (0, 5) => AnsiColor::Magenta,
        (0, 6) => AnsiColor::Cyan,
        (0, 7) => AnsiColor::White,
        _ => return None,
    };
    Some(Color::Ansi(ansi))
}
