//! Parses a query; the grammar is in the header of the module above.

use std::ops::Range;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use regex::RegexBuilder;
use scrollback::dialect;
use scrollback::view::find::parse_time;

use super::{Expr, Filter, Label, QueryError, ROLES, Term, similar};
use crate::words::{WordKind, each_word, fold, is_accent};

/// Longer text is pasted by mistake; this bounds the work for each document, too.
const MAX_QUERY_BYTES: usize = 4096;

/// Parsing and matching recurse this deep.
const MAX_NESTED_GROUPS: usize = 64;

/// A compiled regular expression is at most this large; a repeated repetition would fill the memory.
const MAX_REGEX_BYTES: usize = 1 << 20;

/// The names of the filters.
const FILTERS: [&str; 11] =
    ["agent", "project", "role", "tool", "file", "model", "branch", "since", "until", "is", "in"];

pub(super) fn parse(text: &str, now: Timestamp, zone: &TimeZone) -> Result<Expr, QueryError> {
    if text.len() > MAX_QUERY_BYTES {
        let end = text.floor_char_boundary(MAX_QUERY_BYTES);
        return Err(error(format!("the query is longer than {MAX_QUERY_BYTES} bytes"), end..text.len()));
    }
    let tokens = Lexer { text, at: 0, now, zone }.tokens()?;
    if tokens.is_empty() {
        let hint = r#"type words, "a phrase", or a filter such as role:user"#;
        return Err(error("the query is empty", 0..text.len()).hint(hint));
    }
    let mut parser = Parser { tokens: tokens.into_iter().peekable(), depth: 0 };
    let expr = parser.any_of()?;
    match parser.tokens.next() {
        None => Ok(expr),
        Some(Token { at, .. }) => Err(unopened(at)),
    }
}

fn error(message: impl Into<String>, at: Range<usize>) -> QueryError {
    QueryError { message: message.into(), at, hint: None }
}

impl QueryError {
    fn hint(self, hint: impl Into<String>) -> QueryError {
        QueryError { hint: Some(hint.into()), ..self }
    }
}

struct Token {
    kind: TokenKind,
    at: Range<usize>,
}

enum TokenKind {
    Open,
    Close,
    Not,
    And,
    Or,
    /// What needs no further parsing.
    Leaf(Expr),
}

struct Lexer<'q> {
    text: &'q str,
    at: usize,
    now: Timestamp,
    zone: &'q TimeZone,
}

impl<'q> Lexer<'q> {
    fn tokens(mut self) -> Result<Vec<Token>, QueryError> {
        let mut tokens = Vec::new();
        loop {
            self.at = self.text.len() - self.rest().trim_start().len();
            let start = self.at;
            let Some(first) = self.rest().chars().next() else { return Ok(tokens) };
            let kind = match first {
                '(' => self.sign(TokenKind::Open),
                ')' => self.sign(TokenKind::Close),
                '-' if self.is_exclusion()? => self.sign(TokenKind::Not),
                '"' => TokenKind::Leaf(self.phrase()?),
                '/' => match self.regex()? {
                    Some(regex) => TokenKind::Leaf(regex),
                    None => self.word()?,
                },
                _ => self.word()?,
            };
            tokens.push(Token { kind, at: start..self.at });
        }
    }

    fn rest(&self) -> &'q str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// A token of one ASCII character.
    fn sign(&mut self, kind: TokenKind) -> TokenKind {
        self.at += 1;
        kind
    }

    /// Whether the `-` here excludes what follows it: `--flag` and `->` are text.
    fn is_exclusion(&self) -> Result<bool, QueryError> {
        match self.rest().chars().nth(1) {
            Some('-' | '>') => Ok(false),
            Some(next) if !next.is_whitespace() && next != ')' => Ok(true),
            Some(_) | None => Err(error("nothing follows the -", self.at..self.at + 1)
                .hint("write the word to exclude directly behind it: -word")),
        }
    }

    fn phrase(&mut self) -> Result<Expr, QueryError> {
        let start = self.at;
        let text = self.quoted()?;
        let is_followed_by_star = self.rest().starts_with('*');
        self.at += usize::from(is_followed_by_star);
        term(text, is_followed_by_star, start..self.at)
    }

    /// What is between the quotes that start here.
    fn quoted(&mut self) -> Result<&'q str, QueryError> {
        let start = self.at;
        let inside = self.rest().strip_prefix('"').unwrap_or_default();
        let Some((text, _)) = inside.split_once('"') else {
            return Err(error("the quote is not closed", start..start + 1).hint("add a \" where the phrase ends"));
        };
        self.at += text.len() + 2;
        Ok(text)
    }

    /// The regular expression that starts here, or nothing if this is the text of a path.
    fn regex(&mut self) -> Result<Option<Expr>, QueryError> {
        let inside = self.rest().strip_prefix('/').unwrap_or_default();
        let mut is_escaped = false;
        let end = inside.find(|c| {
            let is_end = c == '/' && !is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            is_end
        });
        let Some((pattern, behind)) = end.and_then(|end| Some((inside.get(..end)?, inside.get(end + 1..)?))) else {
            return Ok(None);
        };
        if pattern.is_empty() || behind.starts_with(|c: char| !c.is_whitespace() && c != ')') {
            return Ok(None);
        }
        let at = self.at..self.at + pattern.len() + 2;
        self.at = at.end;
        let regex = RegexBuilder::new(pattern)
            .case_insensitive(true)
            .multi_line(true)
            .size_limit(MAX_REGEX_BYTES)
            .dfa_size_limit(MAX_REGEX_BYTES)
            .build();
        match regex {
            Ok(regex) => Ok(Some(Expr::Regex(regex))),
            Err(regex::Error::CompiledTooBig(_)) => Err(error("the regular expression is too large", at)),
            Err(invalid) => {
                // The last line says what is wrong; those before it draw the pattern.
                let invalid = invalid.to_string();
                let why = invalid.lines().last().unwrap_or_default().trim_start_matches("error: ");
                Err(error(format!("invalid regular expression: {why}"), at)
                    .hint(r#"put a path into quotes to search for its text: "/etc/""#))
            }
        }
    }

    /// A word, a filter, or `AND` or `OR`.
    fn word(&mut self) -> Result<TokenKind, QueryError> {
        let start = self.at;
        let text = self.bare_word();
        self.at += text.len();
        match text {
            "OR" => return Ok(TokenKind::Or),
            "AND" => return Ok(TokenKind::And),
            _ => {}
        }
        match text.split_once(':') {
            Some((name, value)) if self.is_filter(name, value) => {
                self.filter(name, value, start).map(|filter| TokenKind::Leaf(Expr::Filter(filter)))
            }
            _ => term(text, false, start..self.at).map(TokenKind::Leaf),
        }
    }

    /// Whether the word before this place is meant as a filter, known or not.
    fn is_filter(&self, name: &str, value: &str) -> bool {
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphabetic());
        let is_path_or_url = value.starts_with(':') || value.starts_with("//");
        let has_value = !value.is_empty() || self.rest().starts_with('"');
        let is_unknown_but_meant = has_value && !value.starts_with(['/', '\\']);
        is_name && !is_path_or_url && (FILTERS.contains(&name) || is_unknown_but_meant)
    }

    /// Everything up to white space, a quote, or a `)` that closes no `(` of this word.
    fn bare_word(&self) -> &'q str {
        let mut open = 0_usize;
        let end = self.rest().find(|c: char| match c {
            '(' => {
                open += 1;
                false
            }
            ')' if open > 0 => {
                open -= 1;
                false
            }
            ')' | '"' => true,
            _ => c.is_whitespace(),
        });
        self.rest().get(..end.unwrap_or(self.rest().len())).unwrap_or_default()
    }

    /// The filter that starts there; its value may be in the quotes that start here.
    fn filter(&mut self, name: &str, mut value: &'q str, start: usize) -> Result<Filter, QueryError> {
        if !FILTERS.contains(&name) {
            let at = start..start + name.len();
            return Err(error(format!(r#"unknown filter "{name}:""#), at).hint(nearest_filter(name)));
        }
        if value.is_empty() && self.rest().starts_with('"') {
            value = self.quoted()?;
        }
        let at = start + name.len() + 1..self.at;
        if value.trim().is_empty() {
            return Err(error(format!("{name}: needs a value"), start..at.end)
                .hint(format!("write it directly behind the colon, or put text into quotes: \"{name}:\"")));
        }
        let unknown_value = |known: &[&str]| {
            error(format!("unknown value of {name}:"), at.clone())
                .hint(format!("the values of {name}: are {}", known.join(", ")))
        };
        let time = || {
            parse_time(value, self.now, self.zone).ok_or_else(|| {
                error("invalid time", at.clone()).hint(
                    "a time is a date (2026-11-01), an instant (2026-11-01T10:00:00Z) or an age (30m, 2h, 3d, 1w)",
                )
            })
        };
        Ok(match name {
            "agent" => match dialect::named(value) {
                Some(dialect) => Filter::Agent(dialect.name().to_owned()),
                None => {
                    let names: Vec<&str> = dialect::all().iter().map(|dialect| dialect.name()).collect();
                    return Err(unknown_value(&names));
                }
            },
            "project" => Filter::Project(fold(value)),
            "role" if ROLES.contains(&value) => Filter::Role(value.to_owned()),
            "role" => return Err(unknown_value(&ROLES)),
            "tool" => Filter::Tool(fold(value)),
            "file" => Filter::File(fold(value)),
            "model" => Filter::Model(fold(value)),
            "branch" => Filter::Branch(fold(value)),
            "since" => Filter::Since(time()?),
            "until" => Filter::Until(time()?),
            "is" => match Label::ALL.into_iter().find(|label| label.name() == value) {
                Some(label) => Filter::Is(label),
                None => return Err(unknown_value(&Label::ALL.map(Label::name))),
            },
            _ if value == "title" => Filter::InTitle,
            _ => return Err(unknown_value(&["title"])),
        })
    }
}

fn nearest_filter(name: &str) -> String {
    let in_other_case = FILTERS.into_iter().find(|filter| filter.eq_ignore_ascii_case(name)).map(str::to_owned);
    match in_other_case.or_else(|| similar(name, FILTERS.into_iter()).first().map(|near| (*near).to_owned())) {
        Some(filter) => format!("did you mean {filter}:?"),
        None => format!("the filters are {}:; put text that has a colon into quotes", FILTERS.join(": ")),
    }
}

/// The words of a typed text, beside each other.
///
/// With camelCase, they may also be written without: `GitHub` finds `github`.
fn term(text: &str, is_prefix: bool, at: Range<usize>) -> Result<Expr, QueryError> {
    let without_star = text
        .strip_suffix('*')
        .filter(|before| before.ends_with(|c: char| c.is_alphanumeric() || is_accent(c)));
    let is_prefix = is_prefix || without_star.is_some();
    let split = parts(text);
    if split.is_empty() {
        return Err(error("no letter or digit to search for", at).hint("punctuation is not indexed; use /regex/"));
    }
    let unsplit = parts(&text.to_lowercase());
    let [split, unsplit] = [split, unsplit].map(|words| Term { words, is_prefix });
    Ok(if split == unsplit { Expr::Term(split) } else { Expr::Or(vec![Expr::Term(split), Expr::Term(unsplit)]) })
}

fn parts(text: &str) -> Vec<String> {
    let mut parts = Vec::new();
    each_word(text, |word| {
        if word.kind == WordKind::Part {
            parts.push(word.text.to_owned());
        }
    });
    parts
}

struct Parser {
    tokens: std::iter::Peekable<std::vec::IntoIter<Token>>,
    depth: usize,
}

impl Parser {
    /// `all_of OR all_of …`
    fn any_of(&mut self) -> Result<Expr, QueryError> {
        let mut sides = vec![self.all_of()?];
        while let Some(or) = self.tokens.next_if(|token| matches!(token.kind, TokenKind::Or)) {
            self.expect_side(&or)?;
            sides.push(self.all_of()?);
        }
        Ok(one_or(sides, Expr::Or))
    }

    /// `one one AND one …`
    fn all_of(&mut self) -> Result<Expr, QueryError> {
        let mut sides = vec![self.one()?];
        loop {
            match self.tokens.peek().map(|token| &token.kind) {
                None | Some(TokenKind::Or | TokenKind::Close) => return Ok(one_or(sides, Expr::And)),
                Some(TokenKind::And) => {
                    if let Some(and) = self.tokens.next() {
                        self.expect_side(&and)?;
                    }
                }
                Some(TokenKind::Open | TokenKind::Not | TokenKind::Leaf(_)) => {}
            }
            sides.push(self.one()?);
        }
    }

    /// Checks that something to search for follows an operator.
    fn expect_side(&mut self, operator: &Token) -> Result<(), QueryError> {
        match self.tokens.peek().map(|token| &token.kind) {
            Some(TokenKind::Open | TokenKind::Not | TokenKind::Leaf(_)) => Ok(()),
            None | Some(TokenKind::Close | TokenKind::And | TokenKind::Or) => Err(lonely(operator.at.clone())),
        }
    }

    /// A leaf, a group, or one of them excluded.
    fn one(&mut self) -> Result<Expr, QueryError> {
        let Some(Token { kind, at }) = self.tokens.next() else {
            // The lexer and `expect_side` leave no such place.
            return Err(error("the query ends too early", 0..0));
        };
        match kind {
            TokenKind::Leaf(expr) => Ok(expr),
            TokenKind::Not => self.one().map(|excluded| Expr::Not(Box::new(excluded))),
            TokenKind::Open => self.group(at),
            TokenKind::Close if self.depth == 0 => Err(unopened(at)),
            TokenKind::Close => Err(error("nothing is inside the parentheses", at)),
            TokenKind::And | TokenKind::Or => Err(lonely(at)),
        }
    }

    fn group(&mut self, open: Range<usize>) -> Result<Expr, QueryError> {
        if self.depth == MAX_NESTED_GROUPS {
            return Err(error(format!("parentheses are nested deeper than {MAX_NESTED_GROUPS}"), open));
        }
        let is_not_closed = || error("the parenthesis is not closed", open.clone()).hint("add a )");
        if self.tokens.peek().is_none() {
            return Err(is_not_closed());
        }
        self.depth += 1;
        let inside = self.any_of()?;
        self.depth -= 1;
        match self.tokens.next() {
            Some(_) => Ok(inside),
            None => Err(is_not_closed()),
        }
    }
}

fn one_or(mut sides: Vec<Expr>, several: fn(Vec<Expr>) -> Expr) -> Expr {
    match sides.pop() {
        Some(only) if sides.is_empty() => only,
        last => {
            sides.extend(last);
            several(sides)
        }
    }
}

/// A `)` too many.
fn unopened(at: Range<usize>) -> QueryError {
    error("no parenthesis is open here", at).hint(r#"put text that has parentheses into quotes: "f(x, y)""#)
}

/// An operator that misses a side.
fn lonely(at: Range<usize>) -> QueryError {
    error("AND and OR stand between two things to search for", at)
        .hint(r#"write it in lower case or in quotes to search for the word: "or""#)
}
