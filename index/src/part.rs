//! From a session to the rows of an index: the words of each part, and what filters ask for.

use scrollback::session::{RecordRef, Session};
use scrollback::view::texts::{SearchText, SearchTexts, Standing, TextRole};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::query::{Label, Labels};
use crate::word_set::WordSet;
use crate::words::{WordKind, each_word};

/// Of a longer tool output only the beginning is indexed, unless everything is asked for: the rest is searched by reading it.
const OUTPUT_LIMIT_BYTES: usize = 4 * 1024;

/// One part of a record in an index.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// The record, by its number in file order.
    pub record: u32,
    /// The part, by its number in the record.
    pub part: u32,
    /// Whose text it is.
    pub role: TextRole,
    /// The tool that was called.
    pub tool: Option<String>,
    /// The files that are named, one per line.
    pub files: Option<String>,
    /// The model that answered.
    pub model: Option<String>,
    /// When it was written, in microseconds.
    pub at: Option<i64>,
    /// What it is.
    pub labels: Labels,
    /// The same for a copy in another session.
    pub repeat: u64,
    /// How long its text is, in bytes.
    pub length: u32,
    /// What is not indexed of its text.
    pub rest: Option<Rest>,
    /// Its words, with spaces between them.
    pub words: String,
    /// The words that were split at capital letters, whole.
    pub wholes: String,
}

/// The end of a text that is not indexed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rest {
    /// How long it is.
    pub bytes: u64,
    /// Where its record is in the file, if it is in one piece: offset and length.
    pub span: Option<(u64, u32)>,
    /// The words of the whole text: some of a question can be at its beginning, and others in its end.
    pub words: WordSet,
}

impl Part {
    /// A number that is another one if anything of the part is: of its row and of its words.
    pub(crate) fn digest(&self) -> u64 {
        let columns = [(&self.words, 0), (&self.wholes, 1)];
        let words = columns.into_iter().flat_map(|(text, column)| {
            text.split_ascii_whitespace()
                .enumerate()
                .map(move |(at, word)| word_digest(word, column, at as i64))
        });
        let files = self.files.as_deref();
        let row =
            row_digest(self.role as i64, [self.tool.as_deref(), files, self.model.as_deref()], self.at, self.labels);
        let own = row.wrapping_add(rest_digest(self.repeat as i64, self.length, self.rest.as_ref()));
        words.fold(own, u64::wrapping_add)
    }
}

/// What a word adds to the digest of its part: where it stands counts, but not when it is added.
pub(crate) fn word_digest(word: &str, column: i64, at: i64) -> u64 {
    let mut digest = Xxh3::new();
    digest.update(word.as_bytes());
    digest.update(&column.to_le_bytes());
    digest.update(&at.to_le_bytes());
    digest.digest()
}

/// What the row of a part adds to its digest.
pub(crate) fn row_digest(role: i64, names: [Option<&str>; 3], at: Option<i64>, labels: Labels) -> u64 {
    xxh3_64(format!("{role} {names:?} {at:?} {}", labels.bits()).as_bytes())
}

/// What copies have in common, the length of the text and what is not indexed of it add to it.
pub(crate) fn rest_digest(repeat: i64, length: u32, rest: Option<&Rest>) -> u64 {
    xxh3_64(format!("{repeat} {length} {rest:?}").as_bytes())
}

/// How long a text is, in bytes.
pub(crate) fn length(text: &SearchText) -> u32 {
    u32::try_from(text.text.len()).unwrap_or(u32::MAX)
}

/// Calls `add` for each part of these records.
pub(crate) fn each_part<'s>(
    texts: &mut SearchTexts<'s>,
    records: impl Iterator<Item = RecordRef<'s>>,
    everything: bool,
    mut add: impl FnMut(Part),
) -> scrollback::Result<()> {
    for record in records {
        let standing = texts.standing(record);
        for text in texts.of(record)? {
            add(part(record, standing, text, everything));
        }
    }
    Ok(())
}

fn part(record: RecordRef<'_>, standing: Standing, text: SearchText, everything: bool) -> Part {
    let at = record.at().map(|at| at.as_microsecond());
    let end = if is_long_output(&text) && !everything { OUTPUT_LIMIT_BYTES } else { text.text.len() };
    let indexed = &text.text[..text.text.floor_char_boundary(end)];
    let (mut words, mut wholes) = (String::with_capacity(indexed.len()), String::new());
    each_word(indexed, |word| {
        let column = if word.kind == WordKind::Whole { &mut wholes } else { &mut words };
        column.push_str(word.text);
        column.push(' ');
    });
    let rest = (indexed.len() < text.text.len()).then(|| {
        let place = record.place();
        Rest {
            bytes: (text.text.len() - indexed.len()) as u64,
            span: record.is_one_piece().then_some((place.offset, place.length)),
            words: WordSet::of(&text.text),
        }
    });
    Part {
        record: record.order() as u32,
        part: text.part as u32,
        role: text.role,
        labels: labels(standing, &text),
        repeat: repeat(&record.id(), at, &text),
        length: length(&text),
        rest,
        tool: text.tool,
        files: (!text.files.is_empty()).then(|| text.files.join("\n")),
        model: text.model,
        at,
        words,
        wholes,
    }
}

/// Where each record of a session stands, as the bits of labels.
pub(crate) fn standings(session: &Session, texts: &SearchTexts<'_>) -> Vec<u8> {
    session
        .records()
        .map(|record| standing_labels(texts.standing(record)).collect::<Labels>().bits())
        .collect()
}

/// Whether only the beginning of a text is indexed, unless everything is.
pub(crate) fn is_long_output(text: &SearchText) -> bool {
    text.role == TextRole::Tool && text.text.len() > OUTPUT_LIMIT_BYTES
}

/// What a part is, in the words of the filters.
pub(crate) fn labels(standing: Standing, text: &SearchText) -> Labels {
    let own = [(Label::Error, text.is_error), (Label::Thinking, text.is_thinking)];
    own.into_iter()
        .filter(|(_, has)| *has)
        .map(|(label, _)| label)
        .chain(standing_labels(standing))
        .collect()
}

fn standing_labels(standing: Standing) -> impl Iterator<Item = Label> {
    let labels = [
        (Label::Dead, standing.is_dead),
        (Label::Sidechain, standing.is_sidechain),
        (Label::Compacted, standing.is_compacted),
    ];
    labels.into_iter().filter(|(_, has)| *has).map(|(label, _)| label)
}

/// The labels that a record has by where it stands, and that can change when a session grows.
pub(crate) fn labels_by_place() -> Labels {
    [Label::Dead, Label::Sidechain, Label::Compacted].into_iter().collect()
}

/// The same for copies of a part: forks repeat the time and the text of a record, not always its id.
pub(crate) fn repeat(id: &str, at: Option<i64>, text: &SearchText) -> u64 {
    let mut repeat = Xxh3::new();
    match at {
        Some(at) => repeat.update(&at.to_le_bytes()),
        None => repeat.update(id.as_bytes()),
    }
    repeat.update(&[text.role as u8]);
    repeat.update(text.text.as_bytes());
    repeat.digest()
}
