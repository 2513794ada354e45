//! What the caller decides about redaction, and what can be wrong with it.

use std::fmt;
use std::sync::Arc;

/// What to mask besides the built-in rules, and how.
///
/// The library reads no environment and no config: the caller hands everything in.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Makes the hashes in placeholders: the same key gives the same placeholder for the same secret, and nobody without it can
    /// test a guess.
    pub key: Key,
    /// How placeholders look.
    pub style: Style,
    /// The user's own rules.
    pub rules: Vec<UserRule>,
    /// Expressions for what is no secret, although a rule says so.
    pub allow: Vec<String>,
    /// Globs of more files whose whole content is a secret.
    pub files: Vec<String>,
    /// Values to mask wherever they are, such as those of environment variables; only hashes are kept.
    pub masked: Vec<String>,
}

impl Settings {
    /// The built-in rules alone.
    pub fn with_key(key: [u8; 32]) -> Settings {
        Settings { key: Key::Known(key), ..Settings::built_in() }
    }

    /// The built-in rules alone, without a key.
    pub fn built_in() -> Settings {
        Settings {
            key: Key::None,
            style: Style::Hashed,
            rules: Vec::new(),
            allow: Vec::new(),
            files: Vec::new(),
            masked: Vec::new(),
        }
    }
}

/// The key of the hashes in placeholders.
#[derive(Clone)]
pub enum Key {
    /// Placeholders have no hash.
    None,
    /// This one.
    Known([u8; 32]),
    /// Asked for when the first secret is found; without an answer, placeholders have no hash.
    WhenNeeded(Arc<dyn Fn() -> Option<[u8; 32]> + Send + Sync>),
}

impl fmt::Debug for Key {
    /// Says nothing about the key itself.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Key::None => "None",
            Key::Known(_) => "Known",
            Key::WhenNeeded(_) => "WhenNeeded",
        })
    }
}

/// How a placeholder looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// `[REDACTED:kind:8hex]`; `[REDACTED:kind]` for cards, social security numbers and passwords, which a hash could give away.
    Hashed,
    /// `[REDACTED]`, with the quotes of `NAME="value"`: the outputs of seed 002.
    Plain,
}

/// A rule of the user. It sees one line at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserRule {
    /// Lower-case letters, digits and dashes: it is in the placeholder.
    pub name: String,
    /// Only a line with one of these is looked at; any line if there is none.
    pub keywords: Vec<String>,
    /// The group `secret` is masked if there is one, else the whole match.
    pub pattern: String,
}

/// What is wrong with a rule of the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// The expression does not compile.
    #[error("redaction rule {name}: invalid pattern: {why}")]
    Pattern {
        /// The rule, or `allow`.
        name: String,
        /// What the compiler of expressions says.
        why: String,
    },
    /// The expression matches the empty text.
    #[error("redaction rule {name}: the pattern matches an empty text")]
    Empty {
        /// The rule, or `allow`.
        name: String,
    },
    /// The name cannot be in a placeholder.
    #[error("invalid name of a redaction rule: {name:?}; use lower-case letters, digits and dashes")]
    Name {
        /// The name.
        name: String,
    },
    /// A file pattern cannot be used.
    #[error("invalid file pattern {globs}: {why}")]
    Glob {
        /// The patterns.
        globs: String,
        /// What is wrong with them.
        why: String,
    },
}
