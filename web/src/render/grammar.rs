//! The grammars of programming languages, and what parsing code may cost. Pages and the terminal share them.

use std::sync::LazyLock;

use syntect::parsing::{ParseState, SyntaxReference, SyntaxSet};

/// Larger blocks stay plain: the grammars parse well under a megabyte per second.
const MAX_BLOCK_BYTES: usize = 64 * 1024;

/// What the code of one text on a terminal may cost, see [`Budget`]: about 200 KiB of ordinary code, one or two seconds at worst.
const TEXT_WORK: usize = 16 << 20;

/// What new code on one page may cost: some sixty lines, about 40 ms. What was highlighted before is kept (`code.rs`).
const PAGE_WORK: usize = 1 << 18;

/// What the code of one file may cost: about 160 ms.
const FILE_WORK: usize = 1 << 20;

/// A line costs its length, and with the worst grammars its square; up to this length, the former is more.
const ORDINARY_LINE_BYTES: usize = 64;

/// Every grammar. A line is parsed with its end.
pub static SYNTAXES: LazyLock<SyntaxSet> = LazyLock::new(two_face::syntax::extra_newlines);

/// The work that highlighting may still cost.
pub struct Budget {
    left: usize,
    /// What code that is folded away leaves for code that is seen at once.
    reserve: usize,
}

/// Where code is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// On the page as it is opened.
    AtOnce,
    /// In something that has to be opened first.
    Folded,
}

impl Budget {
    /// Enough for one text on a terminal.
    pub fn of_text() -> Budget {
        Budget { left: TEXT_WORK, reserve: 0 }
    }

    /// Enough for one page.
    pub fn of_page() -> Budget {
        Budget { left: PAGE_WORK, reserve: PAGE_WORK / 2 }
    }

    /// Enough for one file.
    pub fn of_file() -> Budget {
        Budget { left: FILE_WORK, reserve: FILE_WORK / 2 }
    }

    /// A parser for a block of code, which is paid for with this; `None` if the language is unknown or the block costs too much.
    pub fn parser(&mut self, code: &str, language: &str, seen: Seen) -> Option<ParseState> {
        if code.len() > MAX_BLOCK_BYTES {
            return None;
        }
        let syntax = syntax(language)?;
        let work = code.lines().map(|line| line.len().saturating_mul(line.len() + ORDINARY_LINE_BYTES));
        let left = self.left.checked_sub(work.fold(0, usize::saturating_add))?;
        if seen == Seen::Folded && left < self.reserve {
            return None;
        }
        self.left = left;
        Some(ParseState::new(syntax))
    }
}

/// Loads the grammars, so that whoever shows a page later does not wait for it. What each of them needs in memory comes with its use.
pub fn load() {
    LazyLock::force(&SYNTAXES);
}

/// Finds the grammar by the first word of a fence: `rust,ignore` and `py title="x"` are common.
fn syntax(language: &str) -> Option<&'static SyntaxReference> {
    let name = language
        .split(|c: char| c.is_whitespace() || matches!(c, ',' | ':' | '{' | '}'))
        .find(|word| !word.is_empty())?;
    SYNTAXES.find_syntax_by_token(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_known_by_name_and_extension_and_first_word() {
        for language in ["rust", "rs", "Rust,ignore", "py title=\"x\"", "{json}", "sh", "ts", "toml", "dockerfile"] {
            assert!(Budget::of_text().parser("x = 1\n", language, Seen::AtOnce).is_some(), "{language}");
        }
        for language in ["", " ", "nonsense", "\u{1b}[31m", ","] {
            assert!(Budget::of_text().parser("x = 1\n", language, Seen::AtOnce).is_none(), "{language}");
        }
    }

    #[test]
    fn large_blocks_and_long_lines_stay_plain() {
        let is_parsed = |code: &str| Budget::of_text().parser(code, "rust", Seen::AtOnce).is_some();
        assert!(is_parsed(&"let x = 1;\n".repeat(5000)));
        assert!(!is_parsed(&"let x = 1;\n".repeat(7000)));
        assert!(!is_parsed(&"let x = 1;".repeat(500)));
    }

    #[test]
    fn many_blocks_share_one_budget() {
        let code = "let x = 1;\n".repeat(100);
        let mut budget = Budget { left: 400_000, reserve: 200_000 };
        let mut parsed = |seen: Seen| (0..20).take_while(|_| budget.parser(&code, "rust", seen).is_some()).count();
        // What is folded leaves a half for what is seen.
        assert_eq!((parsed(Seen::Folded), parsed(Seen::AtOnce)), (2, 3));
    }
}
