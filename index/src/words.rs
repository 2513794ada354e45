//! Splits text into the words that are indexed and asked for.
//!
//! A word is a run of letters and digits, in lower case and without accents; everything else separates words.
//! A run in camelCase is split into its parts (`parseHTTPResponse2`: `parse`, `http`, `response2`) and is a word as a whole, too.
//! Each Han, Kana and Hangul character is a word of its own, because such text has no spaces.
//! The same text in NFC and in NFD has the same words.

use std::cell::OnceCell;
use std::ops::Range;

use memchr::memmem;
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::{canonical_combining_class, compose, decompose_canonical, is_combining_mark};

/// Only the first letters of a longer run count, in the index and in a query alike, and such a run is never split:
/// it is base64, a key or a hash, and would fill the index with parts that nobody asks for.
pub(crate) const MAX_WORD_LETTERS: usize = 64;

/// One word of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word<'w> {
    /// In lower case and without accents.
    pub(crate) text: &'w str,
    /// Its bytes in the original text.
    pub(crate) span: Range<usize>,
    /// Whether it has a position.
    pub(crate) kind: WordKind,
}

/// Whether a word has a position in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WordKind {
    /// A word with a position: the parts of a text are numbered as they follow each other.
    Part,
    /// A camelCase run as a whole, after its parts; it has no position.
    Whole,
}

/// Visits the words of a text in their order.
///
/// This is the hot loop of indexing: lower-case ASCII words are borrowed from the text, others from one reused buffer.
pub(crate) fn each_word(text: &str, mut visit: impl FnMut(Word<'_>)) {
    let bytes = text.as_bytes();
    let mut run = Run::default();
    let mut at = 0;
    while let Some(&first) = bytes.get(at) {
        match BYTE_CLASSES[usize::from(first)] {
            ByteClass::Separator => at += 1,
            ByteClass::NotAscii => at = visit_unicode(text, at, &mut run, &mut visit),
            ByteClass::Lower | ByteClass::Upper | ByteClass::Digit => {
                let start = at;
                let mut has_upper = false;
                let mut end_class = ByteClass::Separator;
                while let Some(&byte) = bytes.get(at) {
                    match BYTE_CLASSES[usize::from(byte)] {
                        ByteClass::Lower | ByteClass::Digit => {}
                        ByteClass::Upper => has_upper = true,
                        class @ (ByteClass::Separator | ByteClass::NotAscii) => {
                            end_class = class;
                            break;
                        }
                    }
                    at += 1;
                }
                if end_class == ByteClass::NotAscii {
                    // The next character may belong to this run: an accent, or a letter.
                    at = visit_unicode(text, start, &mut run, &mut visit);
                } else if !has_upper {
                    let end = at.min(start + MAX_WORD_LETTERS);
                    visit(Word { text: &text[start..end], span: start..at, kind: WordKind::Part });
                } else {
                    run.take_ascii(&text[start..at], start);
                    run.visit_words(at, &mut visit);
                }
            }
        }
    }
}

/// A text in lower case and without accents, for fields that are compared as a whole: separators stay.
pub(crate) fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let mut folded = String::with_capacity(text.len());
    // The voice marks of Kana are accents too, where they join with nothing.
    for c in text.nfc().filter(|c| !is_accent(*c)) {
        each_folded(c, |_, lower| folded.push(lower));
    }
    // An accent may have stood between two letters that compose.
    folded.nfc().collect()
}

/// Bytes of a text that can be asked for words at the speed of memory: whoever reads them would only confirm the answer.
pub(crate) struct Searchable {
    /// With ASCII in lower case.
    lowered: Vec<u8>,
    /// The pieces that folding changes otherwise, folded when a word is not found without them.
    folded: OnceCell<String>,
}

impl Searchable {
    pub(crate) fn new(mut bytes: Vec<u8>) -> Searchable {
        bytes.make_ascii_lowercase();
        Searchable { lowered: bytes, folded: OnceCell::new() }
    }

    /// Whether a folded word could be in the text: no is certain.
    pub(crate) fn may_have(&self, word: &str) -> bool {
        let has = |word: &str| {
            memmem::find(&self.lowered, word.as_bytes()).is_some()
                || memmem::find(self.folded().as_bytes(), word.as_bytes()).is_some()
        };
        // Vowel signs that folding joins are apart in a word.
        has(word) || (!word.is_ascii() && has(&fold(word)))
    }

    fn folded(&self) -> &str {
        self.folded.get_or_init(|| match self.lowered.is_ascii() {
            true => String::new(),
            // Checked at once, and piece by piece only if some of it is no text: that is many times slower.
            false => match simdutf8::basic::from_utf8(&self.lowered) {
                Ok(text) => folded_pieces(text),
                Err(_) => folded_pieces(&String::from_utf8_lossy(&self.lowered)),
            },
        })
    }
}

/// The first byte from `at` on that is no ASCII. Eight are looked at together: most of a text is ASCII, up to the next arrow or quote.
fn beyond_ascii(bytes: &[u8], at: usize) -> Option<usize> {
    const HIGH_BITS: u64 = u64::from_le_bytes([0x80; 8]);
    let (words, rest) = bytes[at..].as_chunks();
    for (nth, word) in words.iter().enumerate() {
        let high = u64::from_le_bytes(*word) & HIGH_BITS;
        if high != 0 {
            return Some(at + 8 * nth + high.trailing_zeros() as usize / 8);
        }
    }
    let rest_begins = bytes.len() - rest.len();
    rest.iter().position(|byte| !byte.is_ascii()).map(|next| rest_begins + next)
}

/// The runs of letters in which folding changes more than the case of ASCII, folded. Of most texts that is little.
fn folded_pieces(text: &str) -> String {
    let bytes = text.as_bytes();
    let is_separator = |byte: &u8| byte.is_ascii() && !byte.is_ascii_alphanumeric();
    let (mut pieces, mut at) = (String::new(), 0);
    while let Some(first) = beyond_ascii(bytes, at) {
        let Some(c) = text[first..].chars().next() else { break };
        at = first + c.len_utf8();
        if stays(c) {
            continue;
        }
        let start = bytes[..first].iter().rposition(is_separator).map_or(0, |before| before + 1);
        let end = bytes[first..].iter().position(is_separator).map_or(bytes.len(), |length| first + length);
        pieces.push_str(&fold(&text[start..end]));
        pieces.push(' ');
        at = end;
    }
    pieces
}

/// Whether folding neither changes a character nor joins it with the one before it. Says no of many more.
fn stays(c: char) -> bool {
    // Punctuation, arrows, boxes and emoji; Han, and Kana without marks of their own; Hangul syllables.
    matches!(c,
        '\u{2010}'..='\u{20CF}' | '\u{2190}'..='\u{2BFF}' | '\u{3000}'..='\u{3029}' | '\u{3041}'..='\u{3096}'
        | '\u{30A0}'..='\u{30FF}' | '\u{4E00}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7A3}' | '\u{1F000}'..='\u{1FAFF}')
}

/// Whether a character changes the one before it, so that a text is never cut between the two.
///
/// Vowel signs of Indic scripts are letters here.
pub(crate) fn is_accent(c: char) -> bool {
    // These three are letters by their properties, but each is canonically two accents.
    let is_pair_of_accents = matches!(c, '\u{F73}' | '\u{F75}' | '\u{F81}');
    c >= '\u{300}'
        && is_combining_mark(c)
        && (canonical_combining_class(c) != 0 || !c.is_alphanumeric() || is_pair_of_accents)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ByteClass {
    Separator,
    Lower,
    Upper,
    Digit,
    NotAscii,
}

static BYTE_CLASSES: [ByteClass; 256] = {
    let mut classes = [ByteClass::Separator; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'a'..=b'z' => ByteClass::Lower,
            b'A'..=b'Z' => ByteClass::Upper,
            b'0'..=b'9' => ByteClass::Digit,
            0x80.. => ByteClass::NotAscii,
            _ => ByteClass::Separator,
        };
        byte += 1;
    }
    classes
};

/// What decides where camelCase is split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum LetterCase {
    Lower,
    Upper,
    /// Digits, and letters of scripts without case.
    #[default]
    Neither,
}

/// A place in a run: in its folded letters and in the original text.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    folded: usize,
    text: usize,
}

/// A run of letters and digits while it is read; one value serves all runs of a text.
#[derive(Default)]
struct Run {
    /// The first [`MAX_WORD_LETTERS`] letters.
    folded: String,
    letters: usize,
    start: usize,
    /// Where a part starts, except for the first one.
    cuts: Vec<Place>,
    last: (LetterCase, Place),
    before_last: LetterCase,
}

impl Run {
    fn begin(&mut self, start: usize) {
        self.folded.clear();
        self.cuts.clear();
        self.letters = 0;
        self.start = start;
        self.last = (LetterCase::Neither, Place { folded: 0, text: start });
        self.before_last = LetterCase::Neither;
    }

    /// Reads a whole run of ASCII letters and digits.
    fn take_ascii(&mut self, run: &str, start: usize) {
        self.begin(start);
        self.folded.push_str(&run[..run.len().min(MAX_WORD_LETTERS)]);
        self.folded.make_ascii_lowercase();
        if run.len() > MAX_WORD_LETTERS {
            self.letters = run.len();
            return;
        }
        for (offset, byte) in run.bytes().enumerate() {
            let case = match BYTE_CLASSES[usize::from(byte)] {
                ByteClass::Lower => LetterCase::Lower,
                ByteClass::Upper => LetterCase::Upper,
                ByteClass::Digit | ByteClass::Separator | ByteClass::NotAscii => LetterCase::Neither,
            };
            self.note_letter(case, Place { folded: offset, text: start + offset });
        }
    }

    fn push(&mut self, case: LetterCase, folded: char, at: usize) {
        let place = Place { folded: self.folded.len(), text: at };
        if self.letters < MAX_WORD_LETTERS {
            self.folded.push(folded);
        }
        self.note_letter(case, place);
    }

    /// Cuts before `R` in `pR` and in `PRe` or `2Re`.
    fn note_letter(&mut self, case: LetterCase, place: Place) {
        let (last, last_place) = self.last;
        if self.letters > 0 && last == LetterCase::Lower && case == LetterCase::Upper {
            self.cuts.push(place);
        } else if self.letters > 1
            && self.before_last != LetterCase::Lower
            && last == LetterCase::Upper
            && case == LetterCase::Lower
        {
            self.cuts.push(last_place);
        }
        self.before_last = last;
        self.last = (case, place);
        self.letters += 1;
    }

    fn visit_words(&self, end: usize, visit: &mut impl FnMut(Word<'_>)) {
        if self.cuts.is_empty() || self.letters > MAX_WORD_LETTERS {
            visit(Word { text: &self.folded, span: self.start..end, kind: WordKind::Part });
            return;
        }
        let mut from = Place { folded: 0, text: self.start };
        for to in self.cuts.iter().copied().chain([Place { folded: self.folded.len(), text: end }]) {
            visit(Word { text: &self.folded[from.folded..to.folded], span: from.text..to.text, kind: WordKind::Part });
            from = to;
        }
        visit(Word { text: &self.folded, span: self.start..end, kind: WordKind::Whole });
    }
}

/// Visits the words of the run that starts here, if one does, and returns where to go on.
fn visit_unicode(text: &str, start: usize, run: &mut Run, visit: &mut impl FnMut(Word<'_>)) -> usize {
    let mut chars = text[start..].chars();
    let Some(first) = chars.next() else { return text.len() };
    if is_accent(first) || !first.is_alphanumeric() {
        return start + first.len_utf8();
    }
    run.begin(start);
    if is_cjk(first) {
        let end = take_cjk(text, start, first, run);
        run.visit_words(end, visit);
        return end;
    }
    let mut end = start;
    for c in text[start..].chars() {
        if !is_accent(c) {
            if !c.is_alphanumeric() || is_cjk(c) {
                break;
            }
            each_folded(c, |case, folded| run.push(case, folded, end));
        }
        end += c.len_utf8();
    }
    run.visit_words(end, visit);
    end
}

/// Reads one character of a script without spaces, with the marks and vowels that NFD writes apart; returns its end.
fn take_cjk(text: &str, start: usize, first: char, run: &mut Run) -> usize {
    let mut composed = first;
    let mut end = start + first.len_utf8();
    let mut has_accent = false;
    for c in text[end..].chars() {
        let is_mark = is_accent(c);
        let joined = if is_mark || !has_accent { compose(composed, c) } else { None };
        if joined.is_none() && !is_mark {
            break;
        }
        composed = joined.unwrap_or(composed);
        has_accent |= is_mark;
        end += c.len_utf8();
    }
    each_folded(composed, |case, folded| run.push(case, folded, start));
    end
}

/// Visits the lower-case letters of a character without their accents, each with the case that it had.
///
/// Hangul syllables and Kana stay as they are: their canonical parts are letters and voices, not accents.
fn each_folded(c: char, mut visit: impl FnMut(LetterCase, char)) {
    if c.is_ascii() {
        let case = match c {
            'a'..='z' => LetterCase::Lower,
            'A'..='Z' => LetterCase::Upper,
            _ => LetterCase::Neither,
        };
        visit(case, c.to_ascii_lowercase());
    } else if is_syllable(c) {
        visit(LetterCase::Neither, c);
    } else if matches!(c, 'ß' | 'ẞ') {
        let case = if c == 'ß' { LetterCase::Lower } else { LetterCase::Upper };
        (0..2).for_each(|_| visit(case, 's'));
    } else {
        decompose_canonical(c, |letter| {
            for lower in letter.to_lowercase().filter(|lower| !is_accent(*lower)) {
                let case = if lower != letter {
                    LetterCase::Upper
                } else if lower.is_lowercase() {
                    LetterCase::Lower
                } else {
                    LetterCase::Neither
                };
                // A sigma at the end of a word has a form of its own in lower case only.
                visit(case, if lower == 'ς' { 'σ' } else { lower });
            }
        });
    }
}

/// Whether it is a letter of Han, Kana or Hangul (or Bopomofo, which is written between them).
fn is_cjk(c: char) -> bool {
    is_syllable(c)
        || matches!(c,
            '\u{1100}'..='\u{11FF}'
            | '\u{3005}'..='\u{3007}'
            | '\u{3021}'..='\u{3029}'
            | '\u{3031}'..='\u{303C}'
            | '\u{3100}'..='\u{31FF}'
            | '\u{3400}'..='\u{4DBF}'
            | '\u{4E00}'..='\u{9FFF}'
            | '\u{A960}'..='\u{A97F}'
            | '\u{F900}'..='\u{FAFF}'
            | '\u{FF66}'..='\u{FFDC}'
            | '\u{1AFF0}'..='\u{1B16F}'
            | '\u{20000}'..='\u{3FFFF}')
}

/// Whether it is a Kana or a Hangul syllable.
fn is_syllable(c: char) -> bool {
    matches!(c, '\u{3041}'..='\u{30FF}' | '\u{AC00}'..='\u{D7FF}')
}

#[cfg(test)]
pub(crate) mod tests;
