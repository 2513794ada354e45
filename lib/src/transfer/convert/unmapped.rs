//! The fields of a record that the model does not hold: no other format can store them, so they are reported by their keys.
//!
//! ```text
//! a record's JSON ─body─▶ Body ─written in its own dialect─▶ lines     a field whose value is in neither is unmapped
//! ```

use hashbrown::HashSet;
use jiff::Timestamp;
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use super::LossRow;
use super::json::{children, each_leaf, push};
use super::original::Original;
use crate::dialect::writer::NewRecord;
use crate::model::error::Result;
use crate::model::json;
use crate::model::loss::LossKind;
use crate::model::message::Part;
use crate::model::record::{Body, Context, RecordId};
use crate::session::read::sanitize;
use crate::session::{RecordRef, Session};

/// A text of this length inside a longer one is a quotation; a shorter one is there by chance.
const QUOTED_BYTES: usize = 8;

/// How many texts of one record are searched for inside others: each search goes through all of them.
const TEXTS_SEARCHED_FOR: usize = 64;

/// The last words of keys that name, number, place or classify a record. Each format does that in its own way, and the results
/// are compared.
const PLACES: &str = "id ids uuid ref parent session index ordinal seq fragment part turns sidechain timestamp time ts at version \
                      cwd branch type subtype role state status";

/// The last words of keys that count tokens. Each format counts in its own way, and the sums are compared.
const COUNTS: &str = "tokens input output cached thoughts total";

/// The unmapped fields of a session's records, except of records that are dropped as a whole.
pub(super) fn rows(session: &Session, original: Option<&Original>, losses: &[LossRow]) -> Result<Vec<LossRow>> {
    let is_whole = |row: &&LossRow| row.kind == LossKind::Dropped && row.what.is_whole_record();
    let dropped: HashSet<&str> = losses.iter().filter(is_whole).map(|row| row.record.as_str()).collect();
    let mut rows = Vec::new();
    // A row of a database is several records, and only the columns that we know are read.
    for record in session.records().filter(|_| !session.is_rows()) {
        if original.is_none_or(|original| original.is_newer(record)) && !dropped.contains(&*record.id()) {
            let pieces = record.raw()?;
            let fields = pieces.iter().flat_map(|piece| unmapped(record, &sanitize::whole(piece)));
            rows.extend(LossRow::fields(&record.id(), fields));
        }
    }
    Ok(rows)
}

/// The topmost keys of a record's JSON below which nothing is known.
fn unmapped(record: RecordRef<'_>, text: &str) -> Vec<String> {
    let body = record.session.dialect().body(text);
    let mut names = Vec::new();
    // The model holds headers and unknown records as a whole.
    if let (false, Ok(value)) = (matches!(body, Body::Header(_) | Body::Other(_)), json::parse(text)) {
        let json = serde_json::to_value(&body).unwrap_or_default();
        let mut known = Known::default();
        known.add_lines(&written(record, &body));
        known.add_body(&body, &json);
        known.find_unmapped(&mut String::new(), "", &value, &mut names);
    }
    names
}

/// The lines of a record in its own dialect.
fn written(record: RecordRef<'_>, body: &Body) -> Vec<Value> {
    let Some(writing) = record.session.dialect().writer() else { return Vec::new() };
    let (session, id) = (record.session.id(), RecordId(record.id().into_owned()));
    let new = NewRecord {
        session: &session,
        id: &id,
        parent: None,
        answer: &id,
        at: record.at().unwrap_or(Timestamp::UNIX_EPOCH),
        version: record.session.agent_version().unwrap_or_default(),
        body,
        responses: &[],
        context: &Context::default(),
        branches: false,
        sidechain: record.is_sidechain(),
        fragment: None,
        forked_from: None,
        model_before: None,
        last: None,
        prompt: None,
        new_id: &|| id.to_string(),
    };
    (writing.lines)(&new).lines.into_iter().map(|line| line.value).collect()
}

/// What is known of a record.
#[derive(Default)]
struct Known<'b> {
    /// Hashes of paths that its dialect writes, whatever the values are; of keys with their values; and of texts.
    hashes: HashSet<u64>,
    texts: Vec<&'b str>,
    has_usage: bool,
    searches: usize,
}

impl<'b> Known<'b> {
    fn add_lines(&mut self, lines: &[Value]) {
        for line in lines {
            each_leaf(line, &mut |path, key, leaf| {
                if is_set(leaf) {
                    self.hashes.extend([hash("path", path), hash(key, leaf)]);
                }
            });
        }
    }

    fn add_body(&mut self, body: &Body, json: &'b Value) {
        each_leaf(json, &mut |_, key, leaf| {
            if is_set(leaf) {
                self.hashes.insert(hash(key, leaf));
            }
            // Equal numbers may be equal by chance, and so may names of kinds. The working directory is unique.
            let is_text = key == "cwd" || !is_word_of(PLACES, key);
            if let Some(text) = leaf.as_str().filter(|text| !text.is_empty() && is_text) {
                self.hashes.insert(hash("", leaf));
                self.texts.extend(Some(text).filter(|text| text.len() >= QUOTED_BYTES));
            }
        });
        let Some(content) = body.content() else { return };
        let inputs = content
            .parts
            .iter()
            .filter_map(|part| if let Part::Tool(call) = part { call.input() } else { None });
        self.hashes.extend(inputs.map(|input| hash("input", input)));
        self.has_usage = content.usage.is_some();
    }

    /// Adds the topmost keys below which nothing is known. Returns whether something is.
    fn find_unmapped(&mut self, path: &mut String, key: &str, value: &Value, names: &mut Vec<String>) -> bool {
        let (first, mut is_known) = (names.len(), false);
        for (field, child) in children(value) {
            let length = push(path, field);
            is_known |= self.find_unmapped(path, field.unwrap_or(key), child, names);
            path.truncate(length);
        }
        let word = last_word(key);
        if is_set(value) && !is_word_of(PLACES, &word) {
            is_known = (self.has_usage && value.is_number() && is_word_of(COUNTS, &word))
                || [hash("path", &*path), hash(key, value), hash("", value)]
                    .iter()
                    .any(|hash| self.hashes.contains(hash))
                || value.as_str().is_some_and(|text| self.quotes(text));
            names.extend((!is_known).then(|| path.clone()));
        } else if !is_known && names.len() > first && !path.is_empty() {
            names.truncate(first);
            names.push(path.clone());
        }
        is_known
    }

    /// Whether a text is the JSON of a tool call's input, or part of a longer text.
    fn quotes(&mut self, text: &str) -> bool {
        if text.len() < QUOTED_BYTES {
            return false;
        }
        let input = json::parse(text).ok().filter(json::is_object);
        self.searches += 1;
        input.is_some_and(|input| self.hashes.contains(&hash("input", &input)))
            || (self.searches <= TEXTS_SEARCHED_FOR && self.texts.iter().any(|longer| longer.contains(text)))
    }
}

/// Whether a value is neither null, false, zero, empty, a list nor an object.
fn is_set(value: &Value) -> bool {
    match value {
        value if json::number_text(value).is_some() => true,
        Value::String(text) => !text.is_empty(),
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::Bool(is_true) => *is_true,
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

fn is_word_of(words: &str, word: &str) -> bool {
    words.split_ascii_whitespace().any(|known| known == word)
}

/// The last word of a key, in lower case: `uuid` of `sourceToolAssistantUUID`.
fn last_word(key: &str) -> String {
    let begins = |pair: &[u8]| {
        matches!(pair, [b'_' | b'-', _]) || matches!(pair, [a, b] if !a.is_ascii_uppercase() && b.is_ascii_uppercase())
    };
    let from = key.as_bytes().windows(2).rposition(begins).map_or(0, |at| at + 1);
    key.get(from..).unwrap_or(key).to_ascii_lowercase()
}

fn hash(what: &str, value: impl std::fmt::Display) -> u64 {
    xxh3_64(format!("{what}\0{value}").as_bytes())
}
