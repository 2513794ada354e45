//! Colours for code: the terminal's own eight, which suit light and dark backgrounds.

use std::sync::LazyLock;

use anstyle::{AnsiColor, Color, Style};
use syntect::highlighting::{self, FontStyle, HighlightIterator, HighlightState, Highlighter};
use syntect::parsing::{ParseState, ScopeStack, SyntaxReference, SyntaxSet};
use two_face::theme::EmbeddedThemeName;

use super::styled::Run;

/// Larger blocks stay plain: the grammars parse well under a megabyte per second.
const MAX_BLOCK_BYTES: usize = 64 * 1024;

/// The limit for one text, see [`Budget`]: about 200 KiB of ordinary code, one or two seconds at worst.
const MAX_WORK: usize = 16 << 20;

/// A line costs its length, and with the worst grammars its square; up to this length, the former is more.
const ORDINARY_LINE_BYTES: usize = 64;

static SYNTAXES: LazyLock<SyntaxSet> = LazyLock::new(two_face::syntax::extra_newlines);

static THEME: LazyLock<highlighting::Theme> =
    LazyLock::new(|| two_face::theme::extra().get(EmbeddedThemeName::Ansi).clone());

/// The styles of a block of clean code; `None` if the language is unknown or the block is too large.
pub(super) fn runs(code: &str, language: &str, budget: &mut Budget) -> Option<Vec<Run>> {
    if code.len() > MAX_BLOCK_BYTES {
        return None;
    }
    let mut parser = ParseState::new(syntax(language)?);
    budget.spend(code)?;
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

/// The work that highlighting one text may still cost.
pub(super) struct Budget(usize);

impl Budget {
    /// Enough for one text.
    pub(super) fn new() -> Self {
        Self(MAX_WORK)
    }

    fn spend(&mut self, code: &str) -> Option<()> {
        let work = code.lines().map(|line| line.len().saturating_mul(line.len() + ORDINARY_LINE_BYTES));
        self.0 = self.0.checked_sub(work.fold(0, usize::saturating_add))?;
        Some(())
    }
}

/// Finds the grammar by the first word of a fence: `rust,ignore` and `py title="x"` are common.
fn syntax(language: &str) -> Option<&'static SyntaxReference> {
    let name = language
        .split(|c: char| c.is_whitespace() || matches!(c, ',' | ':' | '{' | '}'))
        .find(|word| !word.is_empty())?;
    SYNTAXES.find_syntax_by_token(name)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn is_coloured(code: &str, language: &str) -> bool {
        runs(code, language, &mut Budget::new()).is_some()
    }

    #[test]
    fn languages_are_known_by_name_and_extension_and_first_word() {
        for language in ["rust", "rs", "Rust,ignore", "py title=\"x\"", "{json}", "sh", "ts", "toml", "dockerfile"] {
            assert!(is_coloured("x = 1\n", language), "{language}");
        }
        for language in ["", " ", "nonsense", "\u{1b}[31m", ","] {
            assert!(!is_coloured("x = 1\n", language), "{language}");
        }
    }

    #[test]
    fn large_blocks_and_long_lines_stay_plain() {
        assert!(is_coloured(&"let x = 1;\n".repeat(5000), "rust"));
        assert!(!is_coloured(&"let x = 1;\n".repeat(7000), "rust"));
        assert!(!is_coloured(&"let x = 1;".repeat(500), "rust"));
    }

    #[test]
    fn many_blocks_share_one_budget() {
        let code = "let x = 1;\n".repeat(100);
        let mut budget = Budget(100_000);
        let coloured = (0..20).take_while(|_| runs(&code, "rust", &mut budget).is_some()).count();
        assert_eq!(coloured, 1);
    }
}
