//! What holds for every file, asserted for any bytes: cargo-fuzz and proptest call these functions.
//!
//! Public for them alone. A panic here is a bug somewhere else.

mod redaction;
mod restore;

pub use redaction::{redaction, redaction_of};
pub use restore::restore;

use hashbrown::HashSet;
use jiff::Timestamp;
use xxhash_rust::xxh3::xxh3_64;

use crate::dialect::{self, Dialect};
use crate::model::message::Message;
use crate::session::read::open::ReadOptions;
use crate::session::read::parser::{Parser, Position, Sink, ValueUnit};
use crate::session::read::recover::is_blank;
use crate::session::read::sanitize;
use crate::session::tree::skeleton::Skeleton;
use crate::session::{Bridge, RecordRef, Session};
use crate::view::conversation::Conversation;
use crate::view::history::{History, TurnItem, View};

/// Of a large file, this many records at each end are walked to their roots: all of them would cost the square.
const WALKED: usize = 32;

/// This many heads have their history written, each in every view.
const HISTORIES: usize = 4;

/// The graphs of [`tree`] are small: what is wrong with a large one is wrong with a small one.
const GROWN: usize = 64;

/// One line, or one document, of any dialect.
pub fn line(bytes: &[u8]) {
    let whole = sanitize::whole(bytes);
    assert_eq!(sanitize::whole(whole.as_bytes()), whole, "sanitizing twice is sanitizing once");
    for dialect in dialect::all() {
        for unit in [ValueUnit::Line, ValueUnit::Document] {
            let mut skeleton = Skeleton::default();
            let (now, bases) = (Timestamp::MAX, Vec::new());
            let mut parser = Parser { dialect: *dialect, sink: Sink::Skeleton(&mut skeleton), now, unit, bases };
            parser.line(bytes, Position { offset: 0, line: 1, file: 0 });
            account(&skeleton, 0, bytes, unit);
            for entry in &skeleton.entries {
                let start = entry.place.offset as usize;
                let value = &bytes[start..start + entry.place.length as usize];
                assert_eq!(xxh3_64(value), entry.hash, "a place leads to other bytes");
                dialect.body(&sanitize::whole(value));
            }
        }
    }
}

/// A whole file of any dialect.
pub fn file(bytes: &[u8]) {
    for dialect in dialect::all() {
        check_file(*dialect, bytes, Bridge::AsTheAgent);
    }
}

/// A graph of records that the bytes describe: repeats, cycles, gaps, sidechains, calls and results.
pub fn tree(bytes: &[u8]) {
    let native = dialect::all().iter().filter(|dialect| dialect.name() == "native");
    let grown: String = bytes.chunks_exact(4).take(GROWN).map(grow).collect();
    for dialect in native {
        check_file(*dialect, grown.as_bytes(), Bridge::AsTheAgent);
        check_file(*dialect, grown.as_bytes(), Bridge::Always);
    }
}

/// Asserts that the places of records, the bad regions and separators, joined, are a file of the session.
pub fn account_for(session: &Session, file: usize, bytes: &[u8]) {
    account(&session.skeleton, file, bytes, session.value_unit());
}

fn check_file(dialect: &'static dyn Dialect, bytes: &[u8], bridge: Bridge) {
    let reading = ReadOptions { bridge, ..ReadOptions::plain(Timestamp::MAX) };
    let session = Session::from_bytes(dialect, bytes.to_vec(), &reading);
    account_for(&session, 0, bytes);
    check_tree(&session);
    check_messages(&session);
    let whole = outline(&session);
    for cut in [xxh3_64(bytes) as usize % (bytes.len() + 1), bytes.len() / 2] {
        let mut grown = Session::from_bytes(dialect, bytes[..cut].to_vec(), &reading);
        grown.push(&bytes[cut..], &reading);
        let different = outline(&grown).into_iter().zip(&whole).find(|(grown, whole)| grown != *whole);
        assert_eq!((different, outline(&grown).len()), (None, whole.len()), "read in two pieces, cut at {cut}");
    }
}

fn account(skeleton: &Skeleton, file: usize, bytes: &[u8], unit: ValueUnit) {
    if skeleton.issues.beyond() > 0 {
        return;
    }
    let entries = skeleton.entries.iter().filter(|entry| usize::from(entry.place.file) == file);
    let name = skeleton.file_names.get(file).cloned().flatten();
    let regions = skeleton.issues.kept.iter().filter(|issue| issue.length > 0 && issue.file == name);
    let records = entries.map(|entry| (entry.place.offset as usize, entry.place.length as usize, true));
    let mut known: Vec<(usize, usize, bool)> = records
        .chain(regions.map(|issue| (issue.offset as usize, issue.length as usize, false)))
        .map(|(start, length, record)| (start, start + length, record))
        .collect();
    known.sort_by_key(|(start, end, _)| (*start, std::cmp::Reverse(*end)));
    let (mut covered, mut in_record) = (0, false);
    for (start, end, record) in known {
        if start >= covered {
            assert_separators(&bytes[covered..start], covered, unit);
            (covered, in_record) = (end, record);
        } else {
            assert!(in_record && record && end <= covered, "two things claim byte {start}");
        }
    }
    assert!(covered <= bytes.len(), "something is after the end");
    assert_separators(&bytes[covered..], covered, unit);
}

fn assert_separators(bytes: &[u8], at: usize, unit: ValueUnit) {
    // What holds the records of a document together is left over where it is torn.
    let holds = |byte: u8| unit == ValueUnit::Document && matches!(byte, b'[' | b',' | b']');
    let mut rest = bytes;
    while let [first, tail @ ..] = rest {
        rest = rest.strip_prefix(b"\xef\xbb\xbf").unwrap_or(tail);
        assert!(
            is_blank(*first) || *first == 0xef || holds(*first),
            "nothing is known of the bytes at {at}: {bytes:?}"
        );
    }
}

fn check_tree(session: &Session) {
    assert_eq!(session.head().is_some(), session.records().len() > 0, "records have a head");
    assert_eq!(session.head(), session.heads().next().map(|head| head.record), "the head is the first");
    let mut seen = HashSet::new();
    let mut waiting: Vec<RecordRef<'_>> = session.records().filter(|record| record.parent().is_none()).collect();
    while let Some(record) = waiting.pop() {
        assert!(seen.insert(record.node), "{record:?} is in two places");
        for child in record.children() {
            assert_eq!(child.parent(), Some(record), "a child knows its parent");
            waiting.push(child);
        }
    }
    assert_eq!(seen.len(), session.records().len(), "every record has a root");
    let ends = session.records().take(WALKED).chain(session.records().rev().take(WALKED));
    for record in ends.chain(session.heads().map(|head| head.record).take(WALKED)) {
        let branch = session.branch(record);
        let on: HashSet<u32> = branch.records.iter().map(|record| record.node).collect();
        assert_eq!(on.len(), branch.records.len(), "a record is on a branch once");
        assert!(on.contains(&record.node), "a branch leads to its end");
        session.state(&branch);
    }
}

fn check_messages(session: &Session) {
    for record in session.records() {
        assert!(record.body().is_ok(), "{record:?} has no body");
    }
    for head in session.heads().take(WALKED) {
        let branch = session.branch(head.record);
        let conversation = Conversation::new(&branch);
        for message in conversation.messages(0..conversation.len()) {
            let Ok(message) = message else { panic!("a message of {:?} cannot be read", head.record) };
            let json = serde_json::to_string(&message).unwrap_or_default();
            let again: Option<Message> = serde_json::from_str(&json).ok();
            assert_eq!(again.as_ref(), Some(&message), "{json}");
        }
    }
    session.heads().take(HISTORIES).for_each(|head| check_history(session, head.record));
    assert!(session.tree_view().is_ok(), "the tree cannot be shown");
    // It adds what is wrong around the session, such as a directory that is gone.
    assert!(session.examine().issues.len() >= session.issues().len());
}

/// Every view can write the history, and no call in it is open.
fn check_history(session: &Session, head: RecordRef<'_>) {
    let Ok(history) = History::of(session, head) else { panic!("the history to {head:?} cannot be read") };
    let items = history.turns.iter().flat_map(|turn| &turn.items);
    let balance = items.fold(0_i64, |open, item| match item {
        TurnItem::Call(_) => open + 1,
        TurnItem::Result(_) => open - 1,
        TurnItem::Part(_) => open,
    });
    assert_eq!(balance, 0, "as many calls as results");
    for view in View::ALL {
        assert!(view.messages(&history).is_ok(), "{} cannot write the history to {head:?}", view.name());
    }
}

/// Everything that is known of a session without its bodies.
fn outline(session: &Session) -> Vec<String> {
    let record = |record: RecordRef<'_>| {
        let links = (record.place(), record.parent(), record.missing_parent(), record.kind(), record.at());
        format!("{record:?}: {links:?}")
    };
    let facts = (session.title(), session.cwd(), session.models(), session.usage(), session.parent_session());
    let unknown: Vec<_> = session.unknown_kinds().collect();
    let whole = format!("{} {facts:?} {unknown:?} {} lines", session.id(), session.line_count());
    let records = session.records().map(record);
    let heads = session.heads().map(|head| format!("{head:?}"));
    let issues = session.issues().iter().map(|issue| format!("{issue:?}"));
    records.chain(heads).chain(issues).chain([whole]).collect()
}

/// The line of a record that four bytes describe. Ids, parents and calls are few, so that they meet.
fn grow(bytes: &[u8]) -> String {
    const KINDS: &[&str] = &[
        "user",
        "assistant",
        "tool_result",
        "assistant",
        "tool_result",
        "user",
        "system",
        "error",
        "summary",
        "custom_title",
        "file_history_snapshot",
        "compaction",
        "rewind",
        "restore",
        "unheard-of",
        "",
    ];
    let [kind, id, parent, more] = [0, 1, 2, 3].map(|at| bytes.get(at).copied().unwrap_or_default());
    let name = |byte: u8| char::from(b'a' + byte % 8);
    let kind = KINDS[usize::from(kind) % KINDS.len()];
    let mut fields = vec![format!(r#""timestamp":"2026-01-01T00:00:{:02}Z""#, more % 60)];
    if !kind.is_empty() {
        fields.push(format!(r#""type":"{kind}""#));
    }
    if id < 240 {
        fields.push(format!(r#""uuid":"{}""#, name(id)));
    }
    match parent {
        0..200 => fields.push(format!(r#""parentUuid":"{}""#, name(parent))),
        200..220 => fields.push(r#""parentUuid":"nobody""#.to_owned()),
        220..240 => fields.push(r#""parentUuid":null"#.to_owned()),
        240.. => {}
    }
    if id & 64 != 0 && parent & 64 != 0 {
        fields.push(r#""isSidechain":true"#.to_owned());
    }
    if more & 1 != 0 {
        fields.push(format!(r#""fragment":{{"seq":{id},"part":{}}}"#, more >> 6));
    }
    let call = more >> 1 & 3;
    fields.push(match kind {
        "assistant" => format!(r#""message":{{"content":"{more}","toolCalls":[{{"id":"{call}","name":"t"}}]}}"#),
        "tool_result" => format!(r#""toolResults":[{{"toolCallId":"{call}","content":"{more}","success":true}}]"#),
        _ => format!(r#""message":{{"role":"user","content":"{more}"}}"#),
    });
    format!("{{{}}}\n", fields.join(","))
}
