//! The table of rules: every kind of secret, with its keywords, its shape, and texts that must and must not match.
//!
//! Shapes are written from what vendors document. To add one, add a row to the file of its family; the test below walks all rows.
//! Texts hold no secret, real or made up: `<w36>` in a text stands for 36 characters that the test makes (see `tests::expand`).

mod ai;
mod cloud;
mod code;
mod messages;
mod money;
mod data;
mod plain;

/// One rule.
pub(super) struct Kind {
    /// In the placeholder and in reports.
    pub(super) name: &'static str,
    /// Without one of these, in any case, the rule is not tried.
    pub(super) keywords: &'static [&'static str],
    pub(super) by: By,
    pub(super) checks: &'static [Check],
    #[cfg_attr(not(test), expect(dead_code, reason = "the table's own test reads it"))]
    pub(super) matches: &'static [&'static str],
    #[cfg_attr(not(test), expect(dead_code, reason = "the table's own test reads it"))]
    pub(super) spares: &'static [&'static str],
}

/// How a secret is found once its keyword is seen.
pub(super) enum By {
    /// An expression that starts at the keyword. The group `secret` is masked, or everything.
    Pattern(&'static str),
    /// An expression whose keyword is up to so many bytes inside.
    Around(usize, &'static str),
    /// By the name before it: `assignment.rs`.
    Name,
    /// Lines of base64: `blocks.rs`.
    Block,
    /// Parts of base64 with dots between them: `jwt.rs`.
    Jwt,
    /// A run of base64 that says a secret, or a Kubernetes Secret: `encoded.rs`.
    Encoded,
    /// Digits with a checksum, without a keyword: `digits.rs`.
    Digits,
    /// Two signs at a distance, without a keyword: `paired.rs`.
    Paired,
    /// What the caller named: `masked.rs`.
    Value,
}

/// What must be true besides the shape.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Check {
    /// Looks random: letters and digits, no words.
    Random,
    /// May follow a letter or a digit.
    Inside,
    /// So few are possible that a hash would give it away: the placeholder has none.
    Guessable,
    /// Words of forms and code are none: `user:password@host`.
    NoWord,
    /// Letters alone are none, unless they are many: "Bearer authentication".
    Odd,
    /// Letters and digits or signs: what a sentence rarely has.
    Mixed,
    /// A cookie that can be a session: one of its values is long, or has letters and digits.
    Session,
    /// Says `user:password` in base64.
    Credentials,
    /// Its shape says what it is, also in a field for ids.
    Certain,
}

impl Kind {
    /// A token with a prefix that only this vendor uses.
    const fn token(
        name: &'static str,
        keywords: &'static [&'static str],
        pattern: &'static str,
        matches: &'static [&'static str],
        spares: &'static [&'static str],
    ) -> Kind {
        Kind { name, keywords, by: By::Pattern(pattern), checks: &[Check::Certain], matches, spares }
    }

    /// A token whose shape others have too: it must look random.
    const fn loose(
        name: &'static str,
        keywords: &'static [&'static str],
        pattern: &'static str,
        matches: &'static [&'static str],
        spares: &'static [&'static str],
    ) -> Kind {
        Kind { name, keywords, by: By::Pattern(pattern), checks: &[Check::Random], matches, spares }
    }

    /// Its prefix is short: it must look random too.
    const fn random(self) -> Kind {
        Kind { checks: &[Check::Random], ..self }
    }

    /// It follows a letter or a digit.
    const fn inside(self) -> Kind {
        Kind { checks: &[Check::Certain, Check::Inside], ..self }
    }

    pub(super) fn has(&self, check: Check) -> bool {
        self.checks.contains(&check)
    }
}

/// All rules.
pub(super) fn all() -> impl Iterator<Item = &'static Kind> {
    [ai::KINDS, cloud::KINDS, code::KINDS, messages::KINDS, money::KINDS, data::KINDS, plain::KINDS]
        .into_iter()
        .flatten()
}

#[cfg(test)]
mod tests;
