//! Finds the word that was probably meant.

/// The most similar other word of a vocabulary, if one is similar enough; among equals, the first.
pub(crate) fn suggestion<'v>(word: &str, vocabulary: impl Iterator<Item = &'v str>) -> Option<String> {
    let letters = word.chars().count();
    // A short word has too many neighbours that nobody means.
    let max_edits = match letters {
        0..3 => return None,
        3..6 => 1,
        6.. => 2,
    };
    vocabulary
        .filter(|known| known.chars().count().abs_diff(letters) <= max_edits && *known != word)
        .map(|known| (strsim::damerau_levenshtein(word, known), known))
        .filter(|(edits, _)| *edits <= max_edits)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, known)| known.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_suggested_and_the_first_among_equals() {
        for (word, vocabulary, expected) in [
            ("serach", &["seance", "search", "starch"][..], Some("search")),
            ("wter", &["water", "waiter"], Some("water")),
            ("cat", &["cart", "bat"], Some("cart")),
            ("cat", &["bat", "cart"], Some("bat")),
            ("東京都", &["東京部"], Some("東京部")),
            ("water", &["water"], None),
            ("water", &["fire", "weather"], None),
            ("ab", &["ac"], None),
            ("tide", &["tune"], None),
            ("", &["a"], None),
        ] {
            assert_eq!(suggestion(word, vocabulary.iter().copied()).as_deref(), expected, "{word}");
        }
    }
}
