//! What every index must do, whichever database it is in: `check` takes a way to open one, and each engine has a test that calls it.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

use std::path::Path;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use scrollback::dialect;
use scrollback::model::{NamedRequests, Usage};
use scrollback::session::Source;
use scrollback::view::SessionRow;
use scrollback::view::texts::TextRole;
use scrollback_index::query::{Label, Labels, Query};
use scrollback_index::{
    Bookmark, Card, Depth, Growth, Index, Learned, Match, Part, Place, Ranking, Rest, SourceId, SqliteIndex, Texts,
    WordSet,
};

/// Opens the index of one user again and again: what was stored stays, if the number is the same.
type Open<'o> = dyn Fn(u64) -> Box<dyn Index> + 'o;

#[test]
fn sqlite_keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    check(&|masking| Box::new(SqliteIndex::open(&folder.path().join("index.db"), masking).unwrap()));
}

fn check(open: &Open<'_>) {
    what_is_stored_is_known_until_it_is_forgotten(open);
    words_phrases_prefixes_and_filters_find_parts(open);
    a_session_that_grew_changes_only_what_changed(open);
    another_process_that_was_faster_wins(open);
    other_rules_forget_everything(open);
    rows_are_those_of_their_parts_whatever_was_stored_and_forgotten(open);
}

fn source(name: &str) -> Source {
    Source::file(dialect::named("native").unwrap(), Path::new(&format!("/sessions/{name}.jsonl")))
}

fn card(name: &str) -> Card {
    Card::new(&SessionRow { named_requests: requests(), ..row(name) })
}

fn requests() -> NamedRequests {
    [(7, Usage { input: Some(3), ..Usage::default() })].into_iter().collect()
}

fn row(name: &str) -> SessionRow {
    serde_json::from_value(serde_json::json!({
        "id": name, "dialect": "native", "path": format!("/sessions/{name}.jsonl"), "title": "Tides",
        "titleSource": "prompt", "sizeBytes": 3,
    }))
    .unwrap()
}

fn part(record: u32, words: &str) -> Part {
    Part {
        record,
        part: 0,
        role: TextRole::User,
        tool: None,
        files: None,
        model: None,
        at: Some(i64::from(record)),
        labels: Labels::default(),
        repeat: u64::from(record),
        length: words.len() as u32,
        rest: None,
        words: words.to_owned(),
        wholes: String::new(),
    }
}

fn learned(name: &str, stamp: u64, texts: Texts) -> Learned {
    let bookmark = Some(Bookmark { checkpoint: vec![1, 2, 3], standings: vec![0, 4] });
    Learned {
        place: Place::of(&source(name)),
        stamp,
        depth: Depth::Text,
        card: card(name),
        texts,
        bookmark,
        counts: None,
    }
}

fn id(index: &dyn Index, name: &str) -> SourceId {
    index.known().unwrap()[&Place::of(&source(name))].id
}

/// The records that match, the newest first.
fn found(index: &dyn Index, query: &str, sources: &[SourceId]) -> Vec<u32> {
    let query = Query::parse(query, Timestamp::UNIX_EPOCH, &TimeZone::UTC).unwrap();
    index
        .search(&query, sources, 100, Ranking::Words)
        .unwrap()
        .iter()
        .map(|found: &Match| found.record)
        .collect()
}

fn what_is_stored_is_known_until_it_is_forgotten(open: &Open<'_>) {
    let mut index = open(1);
    index.clear().unwrap();
    index
        .store(vec![learned("a", 10, Texts::Whole(vec![part(0, "high water")])), learned("b", 20, Texts::Unread)])
        .unwrap();
    drop(index);
    let mut index = open(1);
    let known = index.known().unwrap();
    assert_eq!(known.len(), 2);
    assert_eq!(known[&Place::of(&source("b"))].stamp, 20);
    let (a, b) = (id(&*index, "a"), id(&*index, "b"));
    assert_eq!(index.cards().unwrap()[&a], Card::new(&row("a")));
    assert_eq!(index.requests(&[a, b]).unwrap()[&b], requests());
    assert_eq!(index.bookmark(&Place::of(&source("a"))).unwrap().unwrap().standings, [0, 4]);
    assert!(index.bookmark(&Place::of(&source("c"))).unwrap().is_none());
    assert!(index.has_word("water").unwrap() && !index.has_word("wat").unwrap());
    assert_eq!(index.words_like("wa").unwrap(), ["water"]);
    index.forget(&[a]).unwrap();
    assert!(index.cards().unwrap().contains_key(&b) && index.known().unwrap().len() == 1);
    assert!(!index.has_word("water").unwrap() && index.digests().unwrap().is_empty());
    assert!(index.bookmark(&Place::of(&source("a"))).unwrap().is_none());
}

fn words_phrases_prefixes_and_filters_find_parts(open: &Open<'_>) {
    let mut index = open(1);
    index.clear().unwrap();
    let tool = Part {
        role: TextRole::Tool,
        tool: Some("Bash".into()),
        files: Some("src/tide.rs".into()),
        rest: Some(Rest { bytes: 5, span: Some((100, 20)), words: WordSet::of("high tide and a long ebb") }),
        ..part(2, "high tide")
    };
    let parts = vec![part(0, "high water"), part(1, "water high up"), tool];
    index
        .store(vec![learned("a", 10, Texts::Whole(parts)), learned("b", 20, Texts::Whole(vec![part(7, "water")]))])
        .unwrap();
    let (a, b) = (id(&*index, "a"), id(&*index, "b"));
    for (query, expected) in [
        ("water", &[7, 1, 0][..]),
        ("high water", &[1, 0]),
        ("\"high water\"", &[0]),
        ("wat*", &[7, 1, 0]),
        ("high -water", &[2]),
        ("tide OR up", &[2, 1]),
        ("role:tool", &[2]),
        ("tool:bash", &[2]),
        ("file:tide.rs", &[2]),
        ("-role:tool -water", &[]),
        ("up OR role:tool", &[2, 1]),
        ("-(water role:user)", &[2]),
        ("-tide", &[7, 1, 0]),
        ("water since:1970-01-01T00:00:00.000001Z", &[7, 1]),
    ] {
        assert_eq!(found(&*index, query, &[a, b]), expected, "{query}");
    }
    assert_eq!(found(&*index, "water", &[b]), [7], "only where it is asked for");
    let query = Query::parse("water", Timestamp::UNIX_EPOCH, &TimeZone::UTC).unwrap();
    assert_eq!(index.search(&query, &[a, b], 1, Ranking::Words).unwrap().len(), 1);
    let ranks = |by| index.search(&query, &[a, b], 9, by).unwrap().iter().map(|found| found.rank).collect::<Vec<_>>();
    assert_eq!(ranks(Ranking::Length), [5.0, 13.0, 10.0], "in bytes, the newest match first");
    assert_eq!(ranks(Ranking::Time), [0.0; 3]);
    let cut = |query: &str| -> Vec<_> {
        let query = Query::parse(query, Timestamp::UNIX_EPOCH, &TimeZone::UTC).unwrap();
        let cut = index.cut_records(&query, &[a, b]).unwrap();
        cut.iter().map(|cut| (cut.source, cut.record, cut.span)).collect()
    };
    for query in ["ebb", "high ebb", "\"long ebb\"", "eb*", "role:tool", "ebb OR nowhere", "-ebb"] {
        assert_eq!(cut(query), [(a, 2, Some((100, 20)))], "{query}");
    }
    for query in ["nowhere", "ebb nowhere", "\"high nowhere\""] {
        assert_eq!(cut(query), [], "{query}");
    }
    assert_eq!(index.known().unwrap()[&Place::of(&source("a"))].cut_bytes, 5);
    // Whatever is asked, nothing fails.
    for hostile in ["\"\"", "'; drop table parts; --", "words MATCH *", "\u{0}", "NEAR(a b)", "^water", "split:water"] {
        if let Ok(query) = Query::parse(hostile, Timestamp::UNIX_EPOCH, &TimeZone::UTC) {
            index.search(&query, &[a, b], 10, Ranking::Words).unwrap();
        }
    }
}

fn a_session_that_grew_changes_only_what_changed(open: &Open<'_>) {
    let mut index = open(1);
    index.clear().unwrap();
    let rest = Rest { bytes: 9, span: None, words: WordSet::of("half a line") };
    let cut = Part { rest: Some(rest), ..part(1, "half a line") };
    index.store(vec![learned("a", 10, Texts::Whole(vec![part(0, "high water"), cut]))]).unwrap();
    let a = id(&*index, "a");
    let growth = Growth {
        since: 10,
        records: vec![1, 2],
        parts: vec![part(1, "a whole line"), part(2, "low water")],
        moved: vec![(0, [Label::Dead].into_iter().collect())],
    };
    index.store(vec![learned("a", 11, Texts::Grown(growth))]).unwrap();
    assert_eq!(id(&*index, "a"), a);
    for (query, expected) in
        [("water", &[2, 0][..]), ("half", &[]), ("whole", &[1]), ("is:dead", &[0]), ("-is:dead", &[2, 1])]
    {
        assert_eq!(found(&*index, query, &[a]), expected, "{query}");
    }
    let known = &index.known().unwrap()[&Place::of(&source("a"))];
    assert_eq!((known.stamp, known.cut_bytes), (11, 0));
    assert_eq!(index.digests().unwrap().len(), 3);
}

fn another_process_that_was_faster_wins(open: &Open<'_>) {
    let (mut one, mut other) = (open(1), open(1));
    one.clear().unwrap();
    one.store(vec![learned("a", 10, Texts::Whole(vec![part(0, "high water")]))]).unwrap();
    let growth =
        |word: &str| Texts::Grown(Growth { since: 10, records: vec![1], parts: vec![part(1, word)], moved: vec![] });
    other.store(vec![learned("a", 11, growth("ebb"))]).unwrap();
    one.store(vec![learned("a", 12, growth("flood"))]).unwrap();
    let a = id(&*one, "a");
    assert_eq!((found(&*one, "ebb", &[a]), found(&*one, "flood", &[a])), (vec![1], vec![]));
    // What is known deeper stays.
    one.store(vec![Learned { depth: Depth::Ends, ..learned("a", 11, Texts::Unread) }]).unwrap();
    assert_eq!(found(&*other, "water", &[a]), [0]);
    one.store(vec![learned("a", 13, Texts::Unread)]).unwrap();
    assert!(found(&*other, "water", &[a]).is_empty(), "other files");
}

fn other_rules_forget_everything(open: &Open<'_>) {
    let mut index = open(1);
    index.clear().unwrap();
    index.store(vec![learned("a", 10, Texts::Whole(vec![part(0, "high water")]))]).unwrap();
    drop(index);
    assert!(open(2).known().unwrap().is_empty());
    assert!(open(1).known().unwrap().is_empty());
}

/// An index may store many parts together, and give what was forgotten away.
fn rows_are_those_of_their_parts_whatever_was_stored_and_forgotten(open: &Open<'_>) {
    let mut index = open(1);
    index.clear().unwrap();
    let parts = |word: &str, records: std::ops::Range<u32>| records.map(|at| part(at, word)).collect::<Vec<_>>();
    let grown = |since: u64, records: Vec<u32>, parts: Vec<Part>| {
        Texts::Grown(Growth { since, records, parts, moved: vec![(5, [Label::Dead].into_iter().collect())] })
    };
    index
        .store(vec![
            learned("a", 10, Texts::Whole(parts("tide", 0..300))),
            learned("b", 20, Texts::Whole(parts("ebb", 0..3))),
            learned("c", 30, Texts::Whole(parts("flood", 0..200))),
        ])
        .unwrap();
    let [a, b, c] = ["a", "b", "c"].map(|name| id(&*index, name));
    // A record of the first rows grows, and the session as a whole.
    index
        .store(vec![learned("a", 11, grown(10, vec![7, 300], [parts("neap", 7..8), parts("tide", 300..301)].concat()))])
        .unwrap();
    // What was stored last goes, and something else comes; then that grows, twice.
    index.forget(&[c]).unwrap();
    index.store(vec![learned("d", 40, Texts::Whole(parts("surge", 0..2)))]).unwrap();
    let d = id(&*index, "d");
    for at in 2..4_u32 {
        let stamp = 40 + u64::from(at);
        let since = if at == 2 { 40 } else { stamp - 1 };
        index.store(vec![learned("d", stamp, grown(since, vec![at], parts("surge", at..at + 1)))]).unwrap();
    }
    let all = [a, b, d];
    let count = |query: &str| {
        let query = Query::parse(query, Timestamp::UNIX_EPOCH, &TimeZone::UTC).unwrap();
        index.search(&query, &all, 1_000, Ranking::Time).unwrap().len()
    };
    for (query, expected) in [
        ("tide", 300),
        ("neap", 1),
        ("ebb", 3),
        ("flood", 0),
        ("surge", 4),
        ("role:user", 308),
        ("is:dead", 1),
        ("-tide", 8),
    ] {
        assert_eq!(count(query), expected, "{query}");
    }
    assert_eq!(found(&*index, "neap", &all), [7]);
    assert_eq!(
        index
            .search(&Query::parse("tide", Timestamp::UNIX_EPOCH, &TimeZone::UTC).unwrap(), &all, 1, Ranking::Time)
            .unwrap()[0]
            .record,
        300
    );
    // The same as in an index that has read everything at once.
    let own = |index: &dyn Index, name: &str| {
        let of = id(index, name);
        let digests = index.digests().unwrap().into_iter().filter(|((source, _, _), _)| *source == of);
        digests
            .map(|((_, record, part), digest)| (record, part, digest))
            .collect::<std::collections::BTreeSet<_>>()
    };
    let names = ["a", "b", "d"];
    let (before, rows) = (names.map(|name| own(&*index, name)), index.digests().unwrap().len());
    assert_eq!(rows, 308, "nothing is left over");
    index.clear().unwrap();
    let mut of_a = parts("tide", 0..301);
    (of_a[5].labels, of_a[7].words) = ([Label::Dead].into_iter().collect(), "neap".to_owned());
    of_a[7].length = 4;
    index
        .store(vec![
            learned("a", 11, Texts::Whole(of_a)),
            learned("b", 20, Texts::Whole(parts("ebb", 0..3))),
            learned("d", 43, Texts::Whole(parts("surge", 0..4))),
        ])
        .unwrap();
    assert_eq!(names.map(|name| own(&*index, name)), before);
}
