//! The user's rules and allow-list.

use aho_corasick::AhoCorasick;
use regex::{Regex, RegexBuilder};

use super::scan::Found;
use super::{RuleError, UserRule};

/// A compiled expression is at most this large: it comes from a file that somebody may have shared.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// A name in a placeholder.
const MAX_NAME_BYTES: usize = 40;

/// The rules of one user.
pub(super) struct UserRules {
    rules: Vec<Compiled>,
    allow: Vec<Regex>,
}

struct Compiled {
    name: String,
    keywords: Option<AhoCorasick>,
    pattern: Regex,
}

impl UserRules {
    pub(super) fn new(rules: &[UserRule], allow: &[String]) -> Result<UserRules, RuleError> {
        let rules = rules.iter().map(Compiled::new).collect::<Result<_, _>>()?;
        let allow = allow.iter().map(|pattern| compile("allow", pattern)).collect::<Result<_, _>>()?;
        Ok(UserRules { rules, allow })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().map(|rule| rule.name.as_str())
    }

    pub(super) fn allows(&self, secret: &str) -> bool {
        self.allow.iter().any(|allow| allow.is_match(secret))
    }

    /// Looks at each line by itself, so that a stream can do the same.
    pub(super) fn find<'r>(&'r self, text: &str, found: &mut Vec<Found<'r>>) {
        if self.rules.is_empty() {
            return;
        }
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            self.rules.iter().for_each(|rule| rule.find(line.trim_end_matches(['\n', '\r']), start, found));
            start += line.len();
        }
    }
}

impl Compiled {
    fn new(rule: &UserRule) -> Result<Compiled, RuleError> {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let name = rule.name.clone();
        if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.bytes().all(is_plain) {
            return Err(RuleError::Name { name });
        }
        let pattern = compile(&name, &rule.pattern)?;
        let build = || AhoCorasick::builder().ascii_case_insensitive(true).build(&rule.keywords);
        let invalid =
            |error: aho_corasick::BuildError| RuleError::Pattern { name: name.clone(), why: error.to_string() };
        let keywords = if rule.keywords.is_empty() { None } else { Some(build().map_err(invalid)?) };
        Ok(Compiled { keywords, pattern, name })
    }

    fn find<'r>(&'r self, line: &str, start: usize, found: &mut Vec<Found<'r>>) {
        if self.keywords.as_ref().is_some_and(|keywords| !keywords.is_match(line)) {
            return;
        }
        for captures in self.pattern.captures_iter(line) {
            let Some(secret) = captures.name("secret").or_else(|| captures.get(0)) else { continue };
            let span = start + secret.start()..start + secret.end();
            if !span.is_empty() {
                found.push(Found {
                    rule: &self.name,
                    with_quotes: span.clone(),
                    span,
                    is_hashed: true,
                    is_certain: true,
                });
            }
        }
    }
}

fn compile(name: &str, pattern: &str) -> Result<Regex, RuleError> {
    let compiled = RegexBuilder::new(pattern).size_limit(MAX_PATTERN_BYTES).build();
    let regex = compiled.map_err(|error| RuleError::Pattern { name: name.to_owned(), why: error.to_string() })?;
    if regex.is_match("") { Err(RuleError::Empty { name: name.to_owned() }) } else { Ok(regex) }
}
