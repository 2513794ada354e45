//! The line of a text that shows best why it matches a query.

use std::collections::HashMap;
use std::ops::Range;

use serde::Serialize;

use crate::query::{DocumentWords, Query};
use crate::words::is_accent;

/// A piece of a snippet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Piece {
    /// The text, on one line; it is hostile, as every text of a session.
    pub text: String,
    /// Whether the query matches this piece.
    #[serde(rename = "match")]
    pub is_match: bool,
}

/// Occurrences of each term that are looked at: one line is found among the first ones just as well.
const MAX_OCCURRENCES_PER_TERM: usize = 1000;

/// One character between an `…` at each end.
const MIN_WIDTH: usize = 3;

/// At most `width` characters of a text, but at least three, around as many different terms of the query as fit; its beginning if there are none.
///
/// White space is one space, and `…` stands where text is left out.
pub(crate) fn snippet(text: &str, query: &Query, width: usize) -> Vec<Piece> {
    let marks = marks(text, query);
    let (columns, text_columns) = columns(text, &marks);
    let width = width.max(MIN_WIDTH);
    let window = place_window(best_window(&columns, &marks, width - 2), text_columns, width);
    pieces(text, &marks, window, text_columns)
}

/// The line of the first match with so many lines before and after it, as they are.
pub(crate) fn lines_around(text: &str, query: &Query, lines: usize) -> Vec<Piece> {
    let marks = marks(text, query);
    let first = marks.first().map_or(0..0, |mark| mark.bytes.clone());
    let start = text[..first.start].rmatch_indices('\n').nth(lines).map_or(0, |(at, _)| at + 1);
    let end = text[first.end..].match_indices('\n').nth(lines).map_or(text.len(), |(at, _)| first.end + at);
    let mut pieces = Vec::new();
    let mut add = |text: &str, is_match| {
        if !text.is_empty() {
            pieces.push(Piece { text: text.to_owned(), is_match });
        }
    };
    let mut at = start;
    for mark in marks.iter().filter(|mark| mark.bytes.end <= end) {
        let from = mark.bytes.start.max(at);
        if from < mark.bytes.end {
            add(&text[at..from], false);
            add(&text[from..mark.bytes.end], true);
            at = mark.bytes.end;
        }
    }
    add(&text[at..end], false);
    pieces
}

/// A place in the text that the query matches.
struct Mark {
    bytes: Range<usize>,
    /// Which term or regular expression matches.
    term_number: usize,
}

/// What the query matches, in the order of the text.
fn marks(text: &str, query: &Query) -> Vec<Mark> {
    let words = DocumentWords::of(text);
    let mut marks = Vec::new();
    // `git hub` and `github` are one term: what somebody typed as `GitHub`.
    let mut term_numbers: HashMap<String, usize> = HashMap::new();
    for term in query.terms() {
        let next = term_numbers.len();
        let term_number = *term_numbers.entry(term.words.concat()).or_insert(next);
        let found = words.occurrences(term).take(MAX_OCCURRENCES_PER_TERM);
        marks.extend(found.map(|bytes| Mark { bytes, term_number }));
    }
    for (term_number, regex) in (term_numbers.len()..).zip(query.regexes()) {
        let found = regex.find_iter(text).map(|found| found.range()).filter(|bytes| !bytes.is_empty());
        marks.extend(found.take(MAX_OCCURRENCES_PER_TERM).map(|bytes| Mark { bytes, term_number }));
    }
    marks.sort_by_key(|mark| (mark.bytes.start, mark.bytes.end));
    marks
}

/// The characters of a text on one line, each with its byte in the text: white space is one space, and none at the ends.
fn on_one_line(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut chars = text.char_indices().peekable();
    let mut has_begun = false;
    std::iter::from_fn(move || {
        loop {
            let (at, c) = chars.next()?;
            if !c.is_whitespace() {
                has_begun = true;
                return Some((at, c));
            }
            if has_begun && chars.peek().is_some_and(|(_, next)| !next.is_whitespace()) {
                return Some((at, ' '));
            }
        }
    })
}

/// The columns of each mark on the line, and how many the whole line has.
fn columns(text: &str, marks: &[Mark]) -> (Vec<Range<usize>>, usize) {
    let mut bytes: Vec<usize> = marks.iter().flat_map(|mark| [mark.bytes.start, mark.bytes.end]).collect();
    bytes.sort_unstable();
    bytes.dedup();
    let mut columns = Vec::with_capacity(bytes.len());
    let mut count = 0;
    for (at, _) in on_one_line(text) {
        while bytes.get(columns.len()).is_some_and(|byte| *byte <= at) {
            columns.push(count);
        }
        count += 1;
    }
    let column = |byte: usize| bytes.binary_search(&byte).ok().and_then(|at| columns.get(at)).copied().unwrap_or(count);
    (marks.iter().map(|mark| column(mark.bytes.start)..column(mark.bytes.end)).collect(), count)
}

/// The columns of the marks that show the most different terms within the width; the first among equals.
fn best_window(columns: &[Range<usize>], marks: &[Mark], width: usize) -> Range<usize> {
    let terms = marks.iter().map(|mark| mark.term_number + 1).max().unwrap_or(0);
    let mut shown = vec![0_usize; terms];
    let mut distinct = 0;
    let mut first = 0;
    let mut best = (0, 0..0);
    for (last, mark) in marks.iter().enumerate() {
        distinct += usize::from(shown[mark.term_number] == 0);
        shown[mark.term_number] += 1;
        while first < last && columns[last].end.saturating_sub(columns[first].start) > width {
            shown[marks[first].term_number] -= 1;
            distinct -= usize::from(shown[marks[first].term_number] == 0);
            first += 1;
        }
        if distinct > best.0 {
            best = (distinct, columns[first].start..columns[last].end);
        }
    }
    best.1
}

/// The window with as much text around it as the width allows, less at the start of the text and at its end.
fn place_window(wanted: Range<usize>, text_columns: usize, width: usize) -> Range<usize> {
    let before = (width.saturating_sub(wanted.len()) / 2).max(1);
    let start = wanted.start.saturating_sub(before).min(text_columns.saturating_sub(width));
    start..(start + width).min(text_columns)
}

/// Writes the columns of the window; an `…` takes the place of a character.
fn pieces(text: &str, marks: &[Mark], window: Range<usize>, text_columns: usize) -> Vec<Piece> {
    let has_more_before = window.start > 0;
    let has_more_behind = window.end < text_columns;
    let start = window.start + usize::from(has_more_before);
    let end = window.end.saturating_sub(usize::from(has_more_behind));
    let shown = end.saturating_sub(start);
    let mut line: Vec<(usize, char)> = on_one_line(text).skip(start).take(shown + 1).collect();
    // A letter is not cut from its accents.
    if line.len() > shown
        && let Some((_, next)) = line.pop()
        && is_accent(next)
    {
        while line.pop().is_some_and(|(_, c)| is_accent(c)) {}
    }
    let accents = if has_more_before { line.iter().take_while(|(_, c)| is_accent(*c)).count() } else { 0 };

    let mut pieces: Vec<Piece> = Vec::new();
    let mut add = |c: char, is_match: bool| match pieces.last_mut() {
        Some(last) if last.is_match == is_match => last.text.push(c),
        _ => pieces.push(Piece { text: c.to_string(), is_match }),
    };
    if has_more_before {
        add('…', false);
    }
    let mut pending = marks.iter().peekable();
    let mut marked_until = 0;
    for (at, c) in line.into_iter().skip(accents) {
        while let Some(mark) = pending.next_if(|mark| mark.bytes.start <= at) {
            marked_until = marked_until.max(mark.bytes.end);
        }
        add(c, at < marked_until);
    }
    if has_more_behind {
        add('…', false);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use jiff::tz::TimeZone;
    use proptest::prelude::*;

    use super::*;
    use crate::words::tests::any_text;

    /// A snippet with its matches in brackets.
    fn check(text: &str, query: &str, width: usize) -> String {
        let query = Query::parse(query, Timestamp::UNIX_EPOCH, &TimeZone::UTC).unwrap();
        marked(snippet(text, &query, width))
    }

    fn marked(pieces: Vec<Piece>) -> String {
        let show = |piece: Piece| if piece.is_match { format!("[{}]", piece.text) } else { piece.text };
        pieces.into_iter().map(show).collect()
    }

    #[test]
    fn a_snippet_shows_the_most_terms_on_one_line() {
        let far = format!("water here {} high\n\t water there", "x ".repeat(50));
        for (text, query, width, expected) in [
            ("High water at noon.", "water", 40, "High [water] at noon."),
            ("High water at noon.", "role:user", 40, "High water at noon."),
            ("High water at noon.", "role:user", 10, "High wate…"),
            ("High water at noon.", "-low", 10, "High wate…"),
            ("", "water", 10, ""),
            ("\n  a\r\n\r\n b \n", "b", 10, "a [b]"),
            ("one two three four five six", "four", 12, "…ee [four] fi…"),
            ("one two three four five six", "six", 12, "…ur five [six]"),
            ("xx aa bbbb cc yy", "aa cc", 10, "xx [aa] bbb…"),
            ("xx aa bbbb cc yy", "aa cc", 12, "…[aa] bbbb [cc]…"),
            (&far, "high water", 22, "… x x [high] [water] there"),
            ("on GitHub one two three four a github action", "GitHub action", 20, "…our a [github] [action]"),
            // Phrases, beginnings, parts and wholes, regular expressions.
            ("the snake_case name", "snake_case", 40, "the [snake_case] name"),
            ("call parseHttp now", "http", 40, "call parse[Http] now"),
            ("call parseHttp now", "parsehttp", 40, "call [parseHttp] now"),
            ("call parseHttp now", "par*", 40, "call [parseHttp] now"),
            ("Über den Dächern", "\"uber den\" dach*", 40, "[Über den] [Dächern]"),
            ("東京タワーに行く", "タワー", 40, "東京[タワー]に行く"),
            ("東京タワーに行く", "行く", 5, "…ーに[行く]"),
            ("error E1234 and e99", r"/e\d+/", 40, "error [E1234] and [e99]"),
            ("abc", "/x*/", 40, "abc"),
            ("a word", "a -word", 40, "[a] word"),
            // A match that is longer than the line, and letters with accents at both cuts.
            ("say one two three four", "\"one two three\"", 8, "…[one tw]…"),
            ("xxe\u{301}e\u{301} b e\u{301}e\u{301}xx", "b", 7, "… [b] …"),
        ] {
            assert_eq!(check(text, query, width), expected, "{query} in {text:?}");
        }
    }

    #[test]
    fn lines_around_a_match_stay_lines() {
        let text = "one\ntwo high\nthree water\nfour\nfive";
        for (query, lines, expected) in [
            ("water", 0, "three [water]"),
            ("water", 1, "two high\nthree [water]\nfour"),
            ("high water", 1, "one\ntwo [high]\nthree [water]"),
            ("five", 9, "one\ntwo high\nthree water\nfour\n[five]"),
            ("role:user", 0, "one"),
        ] {
            let parsed = Query::parse(query, Timestamp::UNIX_EPOCH, &TimeZone::UTC).unwrap();
            assert_eq!(marked(lines_around(text, &parsed, lines)), expected, "{query}, {lines}");
        }
    }

    #[test]
    fn a_piece_is_written_with_text_and_match() {
        let piece = Piece { text: "a".to_owned(), is_match: true };
        assert_eq!(serde_json::to_string(&piece).unwrap(), r#"{"text":"a","match":true}"#);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_snippet_of_any_text_fits(text in any_text(), width in 0_usize..30, query in "[a-z東é]{1,2}[*]?|/[a-z]/") {
            let query = Query::parse(&query, Timestamp::UNIX_EPOCH, &TimeZone::UTC).unwrap();
            let line: String = snippet(&text, &query, width).into_iter().map(|piece| piece.text).collect();
            prop_assert!(line.chars().count() <= width.max(MIN_WIDTH));
            let whole: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
            prop_assert!(whole.contains(line.trim_matches('…')), "{line:?}");
        }
    }
}
