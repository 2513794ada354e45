//! A question over all sessions: words, phrases, regular expressions and filters, combined.
//!
//! A query is asked of one document at a time: one part of a record, or a title.
//!
//! | typed | finds documents |
//! | --- | --- |
//! | `high water` | with both words, wherever they are; `AND` between them says the same |
//! | `"high water"` | with the words beside each other; everything in quotes is text |
//! | `snake_case`, `src/main.rs`, `東京` | with the words of it beside each other |
//! | `GitHub` | with `GitHub`, `git hub`, `github` |
//! | `wat*`, `"high wat*"` | with a word that starts so |
//! | `-word`, `-"a phrase"`, `-role:user`, `-(a OR b)` | without it; `--word` is text |
//! | `a OR b` | with one of them; binds less than `AND` |
//! | `(a OR b) c` | groups; a parenthesis inside a word, as in `main()`, is text |
//! | `/expr/` | that a regular expression matches, in any case and line by line |
//! | `agent:codex`, `role:user` | of a dialect; of `user`, `assistant`, `tool` or `system` |
//! | `tool:read`, `tool:mcp*` | of a tool with this name, or one that starts so |
//! | `project:"my app"`, `file:`, `model:`, `branch:` | whose project, file, model or git branch contains the value, in any case |
//! | `since:3d`, `until:2026-11-01` | from this time on; before this time |
//! | `is:error`, `is:thinking`, `is:dead`, `is:sidechain`, `is:compacted` | with this label |
//! | `in:title` | that are titles |
//!
//! A `/` starts a regular expression only if white space, `)` or the end follows the next `/` that is not written `\/`: `/usr/bin/x` is text.
//! `name:value` is a filter, and an error if there is none of that name.
//! It is text if the name is not made of ASCII letters (`12:30`, `main.rs:7`) or if `:` or `//` follows the colon (`std::fs`, `http://x`);
//! with an unknown name also if `/`, `\` or nothing follows it (`C:\x`, `foo:`).

mod documents;
mod parse;
mod suggestion;

use std::ops::Range;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use regex::Regex;

pub use documents::Labels;
pub(crate) use documents::{DocumentFacts, DocumentWords};
pub(crate) use suggestion::{distance, similar};

use crate::word_set::PossibleWords;

/// A parsed query.
///
/// ```
/// use jiff::tz::TimeZone;
/// use scrollback_index::query::Query;
///
/// let now = "2026-11-15T12:00:00Z".parse()?;
/// assert!(Query::parse(r#""high water" -tide since:3d"#, now, &TimeZone::UTC).is_ok());
///
/// let error = Query::parse("water rol:user", now, &TimeZone::UTC).unwrap_err();
/// assert_eq!((error.to_string().as_str(), error.at), (r#"unknown filter "rol:""#, 6..9));
/// # Ok::<(), jiff::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Query {
    expr: Expr,
}

/// What is wrong with a query, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct QueryError {
    /// What is wrong.
    pub message: String,
    /// The bytes of the query that are wrong; empty only if the query is.
    pub at: Range<usize>,
    /// What to type instead.
    pub hint: Option<String>,
}

impl Query {
    /// Parses what a person typed; ages such as `since:3d` end now, dates are those of the time zone.
    pub fn parse(text: &str, now: Timestamp, zone: &TimeZone) -> Result<Query, QueryError> {
        parse::parse(text, now, zone).map(|expr| Query { expr })
    }

    /// What is left of a question.
    pub(crate) fn of(expr: Expr) -> Query {
        Query { expr }
    }

    /// A question for one word.
    pub(crate) fn of_word(word: &str) -> Query {
        Query::of(Expr::Term(Term { words: vec![word.to_owned()], is_prefix: false }))
    }

    /// Whether it asks for one word, and nothing else.
    pub(crate) fn is_word(&self, word: &str) -> bool {
        matches!(&self.expr, Expr::Term(Term { words, is_prefix: false }) if *words == [word])
    }

    /// The whole query as a tree.
    pub(crate) fn expr(&self) -> &Expr {
        &self.expr
    }

    /// Whether it has a regular expression, which no index answers.
    pub fn has_regex(&self) -> bool {
        self.leaves().any(|(leaf, _)| matches!(leaf, Expr::Regex(_)))
    }

    /// Whether it asks for titles.
    pub(crate) fn wants_titles(&self) -> bool {
        self.leaves().any(|(leaf, _)| matches!(leaf, Expr::Filter(Filter::InTitle)))
    }

    /// The terms that are wanted, not excluded, in the order in which they were typed.
    pub(crate) fn terms(&self) -> impl Iterator<Item = &Term> {
        self.leaves().filter_map(|(leaf, is_wanted)| match leaf {
            Expr::Term(term) if is_wanted => Some(term),
            _ => None,
        })
    }

    /// Whether a text could match: fast to ask before it is read.
    pub(crate) fn could_match(&self, text: &dyn PossibleWords) -> bool {
        self.expr.could_match(text)
    }

    /// The regular expressions that are wanted, not excluded.
    pub(crate) fn regexes(&self) -> impl Iterator<Item = &Regex> {
        self.leaves().filter_map(|(leaf, is_wanted)| match leaf {
            Expr::Regex(regex) if is_wanted => Some(regex),
            _ => None,
        })
    }

    /// Terms, regular expressions and filters, each with whether it is wanted: beneath no `-`, or beneath an even number.
    fn leaves(&self) -> impl Iterator<Item = (&Expr, bool)> {
        let mut pending = vec![(&self.expr, true)];
        std::iter::from_fn(move || {
            while let Some((expr, is_wanted)) = pending.pop() {
                match expr {
                    Expr::Term(_) | Expr::Regex(_) | Expr::Filter(_) => return Some((expr, is_wanted)),
                    Expr::And(sides) | Expr::Or(sides) => {
                        pending.extend(sides.iter().rev().map(|side| (side, is_wanted)));
                    }
                    Expr::Not(excluded) => pending.push((excluded, !is_wanted)),
                }
            }
            None
        })
    }
}

/// A query, or a part of one.
#[derive(Debug, Clone)]
pub(crate) enum Expr {
    Term(Term),
    Regex(Regex),
    Filter(Filter),
    /// All of them; without any, true.
    And(Vec<Expr>),
    /// One of them; without any, false.
    Or(Vec<Expr>),
    Not(Box<Expr>),
}

/// Words that stand beside each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Term {
    /// Folded; at least one.
    /// One word is equal to a part or to a whole run, several are equal to consecutive parts ([`crate::words::WordKind`]).
    pub(crate) words: Vec<String>,
    /// Whether the last word is only the beginning of one.
    pub(crate) is_prefix: bool,
}

/// A property of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Filter {
    /// The name of a dialect.
    Agent(String),
    /// A folded piece of the project's path.
    Project(String),
    /// One of [`ROLES`].
    Role(String),
    /// The folded name of a tool; with `*` at its end, the beginning of one.
    Tool(String),
    /// A folded piece of the path of a file that the part is about.
    File(String),
    /// A folded piece of the model's name.
    Model(String),
    /// A folded piece of the git branch's name.
    Branch(String),
    /// At this time or later.
    Since(Timestamp),
    /// Before this time.
    Until(Timestamp),
    Is(Label),
    /// Only titles.
    InTitle,
}

/// The values of `role:`.
pub(crate) const ROLES: [&str; 4] = ["user", "assistant", "tool", "system"];

/// The values of `is:`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Label {
    /// A tool call that failed, or an error message.
    Error,
    /// What a model thought.
    Thinking,
    /// On a branch that was left.
    Dead,
    /// Of a sub-agent.
    Sidechain,
    /// Before a compaction: people see it, the model does not.
    Compacted,
}

impl Label {
    pub(crate) const ALL: [Label; 5] = [Label::Error, Label::Thinking, Label::Dead, Label::Sidechain, Label::Compacted];

    /// As in `is:NAME`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Label::Error => "error",
            Label::Thinking => "thinking",
            Label::Dead => "dead",
            Label::Sidechain => "sidechain",
            Label::Compacted => "compacted",
        }
    }
}

#[cfg(test)]
mod tests;
