//! The thinking mode that words in a prompt request. Without a list of such words, nothing does.

use crate::model::record::Thinking;

/// Words that request a thinking mode.
///
/// ```
/// use scrollback::model::Triggers;
///
/// let thinking = Triggers::usual().of("Think hard about the tides.").expect("it requests thinking");
/// assert_eq!(thinking.level.as_deref(), Some("medium"));
/// assert!(Triggers::default().of("think hard").is_none());
/// ```
#[derive(Debug, Clone, Default)]
pub struct Triggers {
    /// Each word or phrase with its level, the most binding first.
    pub words: Vec<(String, String)>,
}

impl Triggers {
    /// The words that common agents use.
    pub fn usual() -> Triggers {
        let word = |(word, level): (&str, &str)| (word.to_owned(), level.to_owned());
        let words = [
            ("ultrathink", "high"),
            ("think harder", "high"),
            ("megathink", "medium"),
            ("think hard", "medium"),
            ("think", "low"),
        ];
        Triggers { words: words.map(word).to_vec() }
    }

    /// The mode that a prompt requests: the level of the first word that it contains, and all words that it contains.
    pub fn of(&self, prompt: &str) -> Option<Thinking> {
        if self.words.is_empty() {
            return None;
        }
        let prompt = prompt.to_lowercase();
        let mut found = self.words.iter().filter(|(word, _)| contains_word(&prompt, &word.to_lowercase()));
        let (word, level) = found.next()?;
        let triggers = std::iter::once(word).chain(found.map(|(word, _)| word)).map(|word| word.as_str().into());
        Some(Thinking { level: Some(level.clone()), disabled: false, triggers: triggers.collect() })
    }
}

/// Whether a text contains a word, and not only as a part of another word.
fn contains_word(text: &str, word: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    !word.is_empty()
        && text
            .match_indices(word)
            .any(|(at, found)| !text[..at].ends_with(is_word) && !text[at + found.len()..].starts_with(is_word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strongest_word_decides_and_every_word_is_listed() {
        for (prompt, level, words) in [
            ("Please think harder!", Some("high"), vec!["think harder", "think"]),
            ("ULTRATHINK, then think", Some("high"), vec!["ultrathink", "think"]),
            ("I think so", Some("low"), vec!["think"]),
            ("rethink thinking, think_tank", None, vec![]),
            ("", None, vec![]),
        ] {
            let thinking = Triggers::usual().of(prompt);
            assert_eq!(thinking.as_ref().and_then(|thinking| thinking.level.as_deref()), level, "{prompt}");
            let triggers = thinking.map(|thinking| thinking.triggers).unwrap_or_default();
            assert_eq!(triggers, words, "{prompt}");
        }
    }
}
