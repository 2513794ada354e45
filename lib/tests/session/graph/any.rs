//! Any graph of records, judged by an oracle that is slow and simple; and very long ones, which end in one go.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use scrollback::model::IssueKind;
use scrollback::session::{HeadKind, RecordRef, Session};
use scrollback::view::Conversation;

use crate::graph::read_bridged;
use crate::support::{cases, read};

/// One line of a random file; numbers are names, few enough to meet each other.
#[derive(Debug, Clone)]
struct Spec {
    id: u8,
    parent: Option<u8>,
    kind: &'static str,
    sidechain: bool,
    calls: Vec<u8>,
    results: Vec<u8>,
    text: u8,
}

fn spec() -> impl Strategy<Value = Spec> {
    let kind = prop_oneof![
        3 => Just("user"), 6 => Just("assistant"), 4 => Just("tool_result"), 1 => Just("system"),
        1 => Just("file_history_snapshot"), 1 => Just("rewind"),
    ];
    let names = || prop::collection::vec(0..4_u8, 0..3);
    let parent = prop::option::weighted(0.85, 0..13_u8);
    (0..12_u8, parent, kind, prop::bool::weighted(0.2), names(), names(), 0..3_u8).prop_map(
        |(id, parent, kind, sidechain, calls, results, text)| Spec {
            id,
            parent,
            kind,
            sidechain,
            calls,
            results,
            text,
        },
    )
}

/// As `Display` would be, but for JSON: the line itself.
fn line(spec: &Spec) -> String {
    let Spec { id, parent, kind, sidechain, text, .. } = spec;
    let parent = parent.map_or("null".to_owned(), |parent| format!("\"{parent}\""));
    let mut line = format!(r#"{{"type":"{kind}","uuid":"{id}","parentUuid":{parent},"isSidechain":{sidechain}"#);
    if *kind == "assistant" {
        let calls: Vec<String> = spec.calls.iter().map(|call| format!(r#"{{"id":"{call}","name":"x"}}"#)).collect();
        line += &format!(r#","message":{{"content":"{text}","toolCalls":[{}]}}"#, calls.join(","));
    }
    if *kind == "tool_result" {
        let results = spec.results.iter().map(|call| format!(r#"{{"toolCallId":"{call}","content":"{text}"}}"#));
        line += &format!(r#","toolResults":[{}]"#, results.collect::<Vec<_>>().join(","));
    }
    line + "}\n"
}

/// What a session is, said the slow and simple way: a list of records, each question answered by looking at all of them.
struct Oracle {
    records: Vec<Known>,
}

#[derive(Debug)]
struct Known {
    name: String,
    parent: Option<u8>,
    sidechain: bool,
    side: bool,
    first_line: usize,
    last_line: usize,
    calls: BTreeSet<u8>,
    results: BTreeSet<u8>,
}

impl Oracle {
    fn new(specs: &[Spec]) -> Oracle {
        let mut records: Vec<Known> = Vec::new();
        let mut kinds: BTreeMap<String, &str> = BTreeMap::new();
        let mut lines: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut copies: BTreeMap<u8, usize> = BTreeMap::new();
        for (at, spec) in specs.iter().enumerate() {
            let first = spec.id.to_string();
            let mut name = first.clone();
            if let Some(kind) = kinds.get(&first) {
                if lines[&first].contains(&line(spec)) {
                    continue;
                }
                if *kind != spec.kind {
                    let copy = copies.entry(spec.id).or_insert(1);
                    *copy += 1;
                    name = format!("{first}~{copy}");
                }
            }
            kinds.entry(name.clone()).or_insert(spec.kind);
            lines.entry(first).or_default().insert(line(spec));
            let keys = |keys: &[u8], wanted| keys.iter().filter(|_| spec.kind == wanted).copied().collect::<Vec<_>>();
            let (calls, results) = (keys(&spec.calls, "assistant"), keys(&spec.results, "tool_result"));
            match records.iter_mut().find(|known| known.name == name) {
                Some(known) => {
                    known.last_line = at;
                    known.calls.extend(calls);
                    known.results.extend(results);
                }
                None => records.push(Known {
                    name,
                    parent: spec.parent,
                    sidechain: spec.sidechain,
                    side: spec.kind == "file_history_snapshot",
                    first_line: at,
                    last_line: at,
                    calls: calls.into_iter().collect(),
                    results: results.into_iter().collect(),
                }),
            }
        }
        Oracle { records }
    }

    fn get(&self, name: &str) -> &Known {
        self.records.iter().find(|known| known.name == name).unwrap()
    }

    /// The record that this one names as its parent.
    fn parent(&self, known: &Known) -> Option<&Known> {
        let name = known.parent?.to_string();
        self.records.iter().find(|known| known.name == name)
    }

    /// Whether a record is its own ancestor.
    fn in_cycle(&self, known: &Known) -> bool {
        let mut at = self.parent(known);
        for _ in 0..self.records.len() {
            match at {
                Some(above) if above.name == known.name => return true,
                Some(above) => at = self.parent(above),
                None => return false,
            }
        }
        false
    }

    fn cycles(&self) -> usize {
        let mut left: BTreeSet<&str> =
            self.records.iter().filter(|known| self.in_cycle(known)).map(|known| known.name.as_str()).collect();
        let mut cycles = 0;
        while let Some(start) = left.pop_first() {
            cycles += 1;
            let mut at = self.parent(self.get(start)).unwrap();
            while at.name != start {
                left.remove(at.name.as_str());
                at = self.parent(at).unwrap();
            }
        }
        cycles
    }

    fn rank(known: &Known) -> u8 {
        if known.side {
            0
        } else if known.sidechain {
            1
        } else {
            2
        }
    }

    fn newest(&self) -> Option<&Known> {
        let goes_on = |known: &Known| {
            let mut others = self.records.iter();
            let is_child = |child: &Known| self.parent(child).is_some_and(|parent| parent.name == known.name);
            others.any(|child| Self::rank(child) >= Self::rank(known) && is_child(child))
        };
        let came = |known: &Known| if goes_on(known) { known.first_line } else { known.last_line };
        self.records.iter().max_by_key(|known| (Self::rank(known), came(known)))
    }

    /// The newest record without children below this one, by the tree that the session became.
    fn newest_leaf<'o>(&'o self, session: &Session, top: &'o Known) -> &'o Known {
        let continues = |record: &RecordRef<'_>| !top.side && Self::rank(self.get(&record.id())) >= Self::rank(top);
        let (mut open, mut leaves) = (vec![session.find(&top.name).unwrap()], Vec::new());
        while let Some(record) = open.pop() {
            let children: Vec<RecordRef<'_>> = record.children().filter(continues).collect();
            leaves.extend(children.is_empty().then(|| self.get(&record.id())));
            open.extend(children);
        }
        let newest = |known: &&Known| (session.find(&known.name).unwrap().at(), known.last_line);
        leaves.into_iter().max_by_key(newest).unwrap()
    }
}

fn names<'s>(records: impl IntoIterator<Item = RecordRef<'s>>) -> Vec<String> {
    records.into_iter().map(|record| record.id().into_owned()).collect()
}

/// The records that a walk by parents meets; panics where it does not end.
fn ancestors<'s>(record: RecordRef<'s>, limit: usize) -> Vec<RecordRef<'s>> {
    let walk: Vec<_> = std::iter::successors(Some(record), |record| record.parent()).take(limit + 1).collect();
    assert!(walk.len() <= limit, "a walk that never ends: {walk:?}");
    walk
}

/// Everything that must hold of any graph, whether gaps are bridged or not.
fn every_record_has_its_place(session: &Session, oracle: &Oracle) {
    let count = oracle.records.len();
    assert_eq!(names(session.records()), oracle.records.iter().map(|known| known.name.clone()).collect::<Vec<_>>());
    let mut children = 0;
    let mut loose = 0;
    for record in session.records() {
        ancestors(record, count);
        children += record.children().len();
        assert!(record.children().all(|child| child.parent() == Some(record)));
        let known = oracle.get(&record.id());
        let named = oracle.parent(known).map(|parent| parent.name.as_str());
        match (named, record.parent()) {
            (Some(named), Some(parent)) => assert_eq!(parent.id(), named),
            (Some(_), None) => {
                assert!(oracle.in_cycle(known), "{} lost its parent", known.name);
                loose += 1;
            }
            (None, None) => {}
            (None, Some(_)) => assert!(record.missing_parent().is_some(), "{} was hung on nothing", known.name),
        }
        let missing = known.parent.filter(|_| named.is_none()).map(|parent| parent.to_string());
        assert_eq!(record.missing_parent().map(str::to_owned), missing, "the gap above {}", known.name);
    }
    let roots = session.records().filter(|record| record.parent().is_none()).count();
    assert_eq!(children + roots, count);
    assert_eq!(loose, oracle.cycles(), "each cycle is cut once");
    let cycles = session.issues().iter().filter(|issue| issue.kind == IssueKind::Cycle).count();
    assert_eq!(cycles, oracle.cycles(), "each cycle is reported");
}

fn every_head_is_listed(session: &Session, oracle: &Oracle) {
    let heads: Vec<_> = session.heads().collect();
    let mut reached: BTreeSet<String> = BTreeSet::new();
    for head in &heads {
        let branch = session.branch(head.record);
        let on = names(branch.records.iter().copied());
        let unique: BTreeSet<&String> = on.iter().collect();
        assert_eq!(unique.len(), on.len(), "a record twice on a branch: {on:?}");
        let mut way = names(ancestors(head.record, oracle.records.len()));
        way.reverse();
        let mut rest = on.iter();
        assert!(way.iter().all(|step| rest.any(|on| on == step)), "the way {way:?} is not in {on:?}");
        for pulled in on.iter().filter(|on| !way.contains(on)) {
            let answers = &oracle.get(pulled).results;
            let calls = |on: &String| oracle.get(on).calls.iter().any(|call| answers.contains(call));
            assert!(way.iter().any(calls), "{pulled} does not belong to {way:?}");
        }
        let gaps = way.iter().filter(|step| session.find(step).unwrap().missing_parent().is_some());
        assert_eq!(names(branch.gaps.iter().map(|gap| gap.child)), gaps.cloned().collect::<Vec<_>>());
        reached.extend(on);
        let same_chain = |other: RecordRef<'_>| other.is_sidechain() == head.record.is_sidechain();
        for other in heads.iter().filter(|other| other.record != head.record && other.kind != HeadKind::Main) {
            let inner = way.contains(&other.record.id().into_owned());
            assert!(!inner || !same_chain(other.record), "{:?} is on the way to {:?}", other.record, head.record);
        }
    }
    for record in session.records().filter(|record| !record.is_side()) {
        assert!(reached.contains(&*record.id()), "no head leads to {}", record.id());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(10_000, 1_000_000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_graph_of_records_is_read_whole(specs in prop::collection::vec(spec(), 0..14)) {
        let oracle = Oracle::new(&specs);
        let lines: String = specs.iter().map(line).collect();
        let session = read(lines.clone());
        every_record_has_its_place(&session, &oracle);
        every_head_is_listed(&session, &oracle);
        let newest = oracle.newest().map(|known| oracle.newest_leaf(&session, known).name.clone());
        prop_assert_eq!(session.head().map(|head| head.id().into_owned()), newest);
        prop_assert!(session.records().all(|record| record.missing_parent().is_none() || record.parent().is_none()));
        let bridged = read_bridged(lines);
        every_record_has_its_place(&bridged, &oracle);
        every_head_is_listed(&bridged, &oracle);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(300, 30_000), failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever a program did to the order of the lines, the head is the end of a conversation.
    #[test]
    fn the_head_has_no_descendants_however_lines_are_shuffled(
        log in 0..crate::support::logs_of_all().len(),
        keys in prop::collection::vec(any::<u64>(), 1..64),
        reversed in any::<bool>(),
    ) {
        let (dialect, path) = crate::support::logs_of_all().swap_remove(log);
        let text = std::fs::read(path).unwrap();
        prop_assume!(text.len() < 64 * 1024);
        let mut lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
        if reversed {
            lines.reverse();
        } else {
            let mut at = keys.iter().cycle();
            lines.sort_by_cached_key(|_| at.next().copied());
        }
        let session = Session::from_bytes(dialect, lines.join(&b'\n'), &crate::support::reading());
        let names_its_head = lines.iter().any(|line| {
            ["last-prompt", "thread_rolled_back"].iter().any(|name| String::from_utf8_lossy(line).contains(name))
        });
        if let Some(head) = session.head().filter(|head| !names_its_head && !head.is_side()) {
            let continues = |child: &RecordRef<'_>| !child.is_side() && (head.is_sidechain() || !child.is_sidechain());
            let children = names(head.children().filter(continues));
            prop_assert!(children.is_empty(), "{} goes on with {children:?}", head.id());
        }
    }
}

/// Reads `count` lines and looks at all that the tree answers.
fn finishes(count: u32, line: impl Fn(u32) -> String) {
    let mut lines = String::new();
    for at in 0..count {
        lines += &line(at);
        lines.push('\n');
    }
    let session = read_bridged(lines);
    assert_eq!(session.records().len(), count as usize);
    let branch = session.branch(session.head().unwrap());
    assert!(!Conversation::new(&branch).is_empty());
}

#[test]
fn a_long_chain_is_read_in_one_go() {
    finishes(cases(1_000_000, 10_000_000), |at| match at.checked_sub(1) {
        None => r#"{"type":"user","uuid":"0"}"#.to_owned(),
        Some(parent) => format!(r#"{{"type":"user","uuid":"{at}","parentUuid":"{parent}"}}"#),
    });
}

/// Shapes in which a careless reader looks at every record again for every record.
#[test]
fn wide_deep_and_tangled_graphs_are_read_in_one_go() {
    let count = cases(50_000, 5_000_000);
    let user = |at: u32, parent: u32| format!(r#"{{"type":"user","uuid":"{at}","parentUuid":"{parent}"}}"#);
    // A star; a comb, each tooth a head; islands; a cycle; a file in reverse order.
    finishes(count, |at| user(at, 0));
    finishes(count, |at| user(at, (at / 2 * 2).saturating_sub(2)));
    finishes(count, |at| user(at, at + count));
    finishes(count, |at| user(at, (at + 1) % count));
    finishes(count, |at| user(at, at + 1));
    let calls = |at: u32, parent: u32, call: u32| {
        let calls = format!(r#"{{"content":"","toolCalls":[{{"id":"{call}"}}]}}"#);
        format!(r#"{{"type":"assistant","uuid":"{at}","parentUuid":"{parent}","message":{calls}}}"#)
    };
    let result = |at: u32, parent: u32, call: u32| {
        let results = format!(r#"[{{"toolCallId":"{call}","content":""}}]"#);
        format!(r#"{{"type":"tool_result","uuid":"{at}","parentUuid":"{parent}","toolResults":{results}}}"#)
    };
    let either = |at: u32, parent: u32, call: u32| {
        if at.is_multiple_of(2) { calls(at, parent, call) } else { result(at, parent, call) }
    };
    // Calls and results in turn; results beside the chain; one id for all of them, in a chain, beside it and as islands.
    finishes(count, |at| either(at, at.saturating_sub(1), at / 2));
    finishes(count, |at| either(at, (at / 2 * 2).saturating_sub(u32::from(at.is_multiple_of(2)) * 2), at / 2));
    finishes(count, |at| either(at, at.saturating_sub(1), 0));
    finishes(count, |at| either(at, (at / 2 * 2).saturating_sub(u32::from(at.is_multiple_of(2)) * 2), 0));
    finishes(count, |at| either(at, at + count, 0));
}
