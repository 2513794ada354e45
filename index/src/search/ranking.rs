//! Ranks what was found by reading as FTS5 ranks what it finds: by BM25. How rare a term is, it takes from what was read.

use regex::Regex;

use crate::query::{DocumentWords, Query, Term};

/// The constants of FTS5: how soon more occurrences add little, and how much a long text counts less.
const SATURATION: f64 = 1.2;
const LENGTH_WEIGHT: f64 = 0.75;

/// More occurrences in one part are not counted: they would add nothing.
const MAX_OCCURRENCES: usize = 1000;

/// What a question is ranked by.
pub(super) struct Wanted<'q> {
    terms: Vec<&'q Term>,
    regexes: Vec<&'q Regex>,
}

impl<'q> Wanted<'q> {
    pub(super) fn of(query: &'q Query) -> Wanted<'q> {
        Wanted { terms: query.terms().collect(), regexes: query.regexes().collect() }
    }
}

/// How often each wanted term, and then each regular expression, is in a part, and how many words the part has.
pub(super) struct Weight {
    occurrences: Vec<u32>,
    words: usize,
}

/// What is known of all parts that were read.
#[derive(Debug, Default)]
pub(super) struct Sample {
    parts: usize,
    words: usize,
    /// How many parts have each wanted term. Regular expressions are looked for only in parts that could match.
    parts_with: Vec<usize>,
}

impl Sample {
    /// Counts a part that does not match.
    pub(super) fn pass(&mut self, wanted: &Wanted<'_>, words: &DocumentWords) {
        let has = wanted.terms.iter().map(|term| words.occurrences(term).next().is_some());
        self.count(words.len(), has);
    }

    /// Counts a part that matches.
    pub(super) fn weigh(&mut self, wanted: &Wanted<'_>, words: &DocumentWords, text: &str) -> Weight {
        let in_words = wanted.terms.iter().map(|term| words.occurrences(term).take(MAX_OCCURRENCES).count() as u32);
        let by_regex = wanted.regexes.iter().map(|regex| regex.find_iter(text).take(MAX_OCCURRENCES).count() as u32);
        let occurrences: Vec<u32> = in_words.chain(by_regex).collect();
        self.count(words.len(), occurrences.iter().map(|count| *count > 0));
        Weight { occurrences, words: words.len() }
    }

    fn count(&mut self, words: usize, has: impl Iterator<Item = bool>) {
        self.parts += 1;
        self.words += words;
        for (at, has) in has.enumerate() {
            if self.parts_with.len() <= at {
                self.parts_with.push(0);
            }
            self.parts_with[at] += usize::from(has);
        }
    }

    pub(super) fn add(&mut self, other: &Sample) {
        self.parts += other.parts;
        self.words += other.words;
        let more = other.parts_with.len().max(self.parts_with.len());
        self.parts_with.resize(more, 0);
        self.parts_with.iter_mut().zip(&other.parts_with).for_each(|(count, more)| *count += more);
    }

    /// How well a part matches: less is better.
    pub(super) fn rank(&self, weight: &Weight) -> f64 {
        let average = self.words as f64 / self.parts.max(1) as f64;
        let length = weight.words as f64 / average.max(1.0);
        let score = |(count, with): (&u32, &usize)| {
            let (count, others) = (f64::from(*count), self.parts.saturating_sub(*with) as f64);
            // Positive also for what is in every part: files without the words were not read.
            let rarity = (1.0 + (others + 0.5) / (*with as f64 + 0.5)).ln();
            let damping = SATURATION * (1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * length);
            rarity * count * (SATURATION + 1.0) / (count + damping)
        };
        -weight.occurrences.iter().zip(&self.parts_with).map(score).sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use jiff::tz::TimeZone;

    use super::*;

    #[test]
    fn a_part_with_more_of_the_rare_word_in_fewer_words_is_better() {
        let query = Query::parse("tide OR lighthouse", Timestamp::UNIX_EPOCH, &TimeZone::UTC).unwrap();
        let wanted = Wanted::of(&query);
        let long = format!("lighthouse {}", "rock ".repeat(30));
        let texts = ["lighthouse lighthouse", "lighthouse", &long, "tide", "tide table", "tide", "tide"];
        let mut sample = Sample::default();
        let weights: Vec<Weight> =
            texts.iter().map(|text| sample.weigh(&wanted, &DocumentWords::of(text), text)).collect();
        for text in ["rock", "sand", "shell"] {
            sample.pass(&wanted, &DocumentWords::of(text));
        }
        let ranks: Vec<f64> = weights.iter().map(|weight| sample.rank(weight)).collect();
        assert!(ranks[0] < ranks[1] && ranks[1] < ranks[2], "{ranks:?}");
        assert!(ranks[1] < ranks[3] && ranks[3] < ranks[4] && ranks[4] < 0.0, "{ranks:?}");
    }
}
