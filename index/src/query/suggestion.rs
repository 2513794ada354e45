//! Finds words that were probably meant.

/// How far a word is from another one, in edits; `None` if it is the same, or nobody would mean it.
pub(crate) fn distance(word: &str, known: &str) -> Option<usize> {
    let letters = word.chars().count();
    // A short word has too many neighbours that nobody means.
    let max_edits = match letters {
        0..3 => return None,
        3..6 => 1,
        6.. => 2,
    };
    let is_near = known.chars().count().abs_diff(letters) <= max_edits && known != word;
    is_near.then(|| strsim::damerau_levenshtein(word, known)).filter(|edits| *edits <= max_edits)
}

/// The words of a vocabulary that are similar enough, the most similar first; equals in their order.
pub(crate) fn similar<'v>(word: &str, vocabulary: impl Iterator<Item = &'v str>) -> Vec<&'v str> {
    let mut near: Vec<(usize, &str)> =
        vocabulary.filter_map(|known| distance(word, known).map(|edits| (edits, known))).collect();
    near.sort_by_key(|(edits, _)| *edits);
    near.into_iter().map(|(_, known)| known).collect()
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
            assert_eq!(similar(word, vocabulary.iter().copied()).first().copied(), expected, "{word}");
        }
    }
}
