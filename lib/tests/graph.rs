//! Every shape that links can make: branches, heads, gaps, islands, cycles, calls and results on other parents.
//!
//! Stories with the tree that they become, then promise P9: any graph ends in time that grows with its length, each record
//! in one place, every root and head listed, every gap labelled.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod support;

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use scrollback::conversation::Conversation;
use scrollback::issue::IssueKind;
use scrollback::reading::Reading;
use scrollback::session::{Bridge, HeadKind, RecordRef, Session};
use support::{cases, native, read, reading, story};

/// The tree that a story becomes, then its newest branch, its state and what is wrong.
fn check(story: &str) -> String {
    outline(&read(story::lines(story)))
}

/// The same for a reader who asked that gaps be closed.
fn check_bridged(story: &str) -> String {
    outline(&read_bridged(story::lines(story)))
}

fn read_bridged(lines: String) -> Session {
    Session::from_bytes(native(), lines.into_bytes(), &Reading { bridge: Bridge::Always, ..reading() })
}

fn outline(session: &Session) -> String {
    let heads: BTreeMap<String, HeadKind> =
        session.heads().map(|head| (head.record.id().into_owned(), head.kind)).collect();
    let mut said = Vec::new();
    let roots: Vec<RecordRef<'_>> = session.records().filter(|record| record.parent().is_none()).collect();
    let mut open: Vec<(RecordRef<'_>, usize)> = roots.into_iter().rev().map(|root| (root, 0)).collect();
    while let Some((record, depth)) = open.pop() {
        let mut depth = depth;
        if let Some(missing) = record.missing_parent() {
            said.push(format!("{}gap {missing}", "  ".repeat(depth)));
            depth += 1;
        }
        let sidechain = if record.is_sidechain() { "~ " } else { "" };
        let head = heads.get(&*record.id()).map(|kind| format!("  <- {}", word(kind))).unwrap_or_default();
        let texts: Vec<String> = record.body().unwrap().said().into_iter().flat_map(texts).collect();
        let text = format!("{}: {}", record.kind().name(), texts.join(" "));
        said.push(format!("{}{sidechain}{} {}{head}", "  ".repeat(depth), record.id(), text.trim_end_matches(": ")));
        open.extend(record.children().rev().map(|child| (child, depth + 1)));
    }
    if let Some(head) = session.head() {
        let branch = session.branch(head);
        let ids: Vec<_> = branch.records.iter().map(|record| record.id()).collect();
        said.push(format!("branch {} ({})", ids.join(" "), session.state(&branch).name()));
    }
    let issue = |issue: &scrollback::issue::Issue| format!("issue {}: {}", issue.line.unwrap(), issue.kind.name());
    said.extend(session.issues().iter().map(issue));
    said.join("\n")
}

fn texts(said: &scrollback::record::Said) -> Vec<String> {
    let parts = said.parts.iter().filter_map(|part| match part {
        scrollback::message::Part::Text(text) => Some(text.text.clone()),
        _ => None,
    });
    parts.collect()
}

fn word(kind: &HeadKind) -> String {
    serde_json::to_value(kind).unwrap().as_str().unwrap().to_owned()
}

#[test]
fn two_answers_to_one_question_are_two_branches() {
    insta::assert_snapshot!(check("
        q          user:      What is two and two?
        a < q      assistant: Four.
        b < q      assistant: It depends.
        c < b      user:      On what?
    "), @"
    q user: What is two and two?
      a assistant: Four.  <- branch
      b assistant: It depends.
        c user: On what?  <- main
    branch q b c (interrupted-prompt)
    ");
}

#[test]
fn an_empty_story_has_no_head() {
    insta::assert_snapshot!(check(""), @"");
}

#[test]
fn the_last_link_of_the_file_is_the_head_whatever_its_time() {
    insta::assert_snapshot!(check("
        q          user @12:00:00:      Hello
        b < q      assistant @12:09:00: Later, but written first.
        a < q      assistant @12:01:00: Earlier, but written last.
    "), @"
    q user: Hello
      b assistant: Later, but written first.  <- branch
      a assistant: Earlier, but written last.  <- main
    branch q a (clean)
    ");
}

#[test]
fn a_file_in_reverse_order_ends_in_its_root() {
    insta::assert_snapshot!(check("
        b < a      user:      Thanks
        a < q      assistant: Hello
        q          user:      Hello
    "), @"
    q user: Hello  <- main
      a assistant: Hello
        b user: Thanks  <- branch
    branch q (interrupted-prompt)
    ");
}

#[test]
fn two_conversations_in_one_file_are_two_branches() {
    insta::assert_snapshot!(check("
        q          user:      One
        a < q      assistant: First
        p          user:      Two
        b < p      assistant: Second
    "), @"
    q user: One
      a assistant: First  <- branch
    p user: Two
      b assistant: Second  <- main
    branch p b (clean)
    ");
}

#[test]
fn going_on_from_an_old_head_makes_it_the_newest_again() {
    insta::assert_snapshot!(check("
        q          user:      One
        a < q      assistant: First
        b < q      assistant: Second
        c < a      user:      On with the first
    "), @"
    q user: One
      a assistant: First
        c user: On with the first  <- main
      b assistant: Second  <- branch
    branch q a c (interrupted-prompt)
    ");
}

#[test]
fn a_missing_parent_is_a_gap_and_what_was_before_it_an_island() {
    insta::assert_snapshot!(check("
        q          user:      One
        a < q      assistant: First
        c < b      user:      Two
        d < c      assistant: Second
    "), @"
    q user: One
      a assistant: First  <- island
    gap b
      c user: Two
        d assistant: Second  <- main
    branch c d (degraded)
    issue 3: orphan
    ");
}

#[test]
fn an_older_island_does_not_degrade_the_branch() {
    insta::assert_snapshot!(check("
        x < gone   assistant: Alone
        q          user:      One
        a < q      assistant: First
    "), @"
    gap gone
      x assistant: Alone  <- island
    q user: One
      a assistant: First  <- main
    branch q a (clean)
    issue 1: orphan
    ");
}

#[test]
fn two_records_may_miss_the_same_parent() {
    insta::assert_snapshot!(check("
        a < gone   assistant: First
        b < gone   assistant: Second
    "), @"
    gap gone
      a assistant: First  <- island
    gap gone
      b assistant: Second  <- main
    branch b (degraded)
    issue 1: orphan
    issue 2: orphan
    ");
}

#[test]
fn each_island_of_many_is_listed() {
    insta::assert_snapshot!(check("
        q          user:      One
        b < w      user:      Two
        c < x      user:      Three
        d < y      user:      Four
    "), @"
    q user: One  <- island
    gap w
      b user: Two  <- island
    gap x
      c user: Three  <- island
    gap y
      d user: Four  <- main
    branch d (degraded)
    issue 2: orphan
    issue 3: orphan
    issue 4: orphan
    ");
}

#[test]
fn a_bridged_gap_is_closed_and_still_marked() {
    insta::assert_snapshot!(check_bridged("
        q          user:      One
        a < q      assistant: First
        c < b      user:      Two
        d < c      assistant: Second
    "), @"
    q user: One
      a assistant: First
        gap b
          c user: Two
            d assistant: Second  <- main
    branch q a c d (degraded)
    issue 3: bridged-gap
    ");
}

#[test]
fn an_orphan_is_bridged_to_the_link_before_it() {
    insta::assert_snapshot!(check_bridged("
        q          user:      One
        a < q      assistant: First
        b < a      user:      Two
        s < b ~    user:      Aside
        c < gone   assistant: Hangs on b, over the sidechain
        d < b      assistant: Hangs on b too
        e < away   user:      Hangs on d
    "), @"
    q user: One
      a assistant: First
        b user: Two
          ~ s user: Aside  <- sidechain
          gap gone
            c assistant: Hangs on b, over the sidechain  <- branch
          d assistant: Hangs on b too
            gap away
              e user: Hangs on d  <- main
    branch q a b d e (degraded)
    issue 5: bridged-gap
    issue 7: bridged-gap
    ");
}

#[test]
fn an_orphan_is_never_bridged_to_its_own_child() {
    insta::assert_snapshot!(check_bridged("
        c < p      assistant: Came first
        p < gone   user:      Its parent
    "), @"
    gap gone
      p user: Its parent  <- main
        c assistant: Came first  <- branch
    branch p (degraded)
    issue 2: orphan
    ");
}

#[test]
fn orphans_that_follow_one_another_make_one_chain() {
    insta::assert_snapshot!(check_bridged("
        b < a      user:      Two
        d < c      user:      Four
        f < e      user:      Six
    "), @"
    gap a
      b user: Two
        gap c
          d user: Four
            gap e
              f user: Six  <- main
    branch b d f (degraded)
    issue 1: orphan
    issue 2: bridged-gap
    issue 3: bridged-gap
    ");
}

#[test]
fn a_cycle_entered_from_outside_is_walked_once() {
    insta::assert_snapshot!(check("
        x < z      user:      X
        y < x      assistant: Y
        z < y      user:      Z
        a < y      assistant: Out of it
    "), @"
    z user: Z
      x user: X
        y assistant: Y
          a assistant: Out of it  <- main
    branch z x y a (clean)
    issue 3: cycle
    ");
}

#[test]
fn a_pure_cycle_is_cut_behind_its_newest_record() {
    insta::assert_snapshot!(check("
        x < z      user:      X
        y < x      assistant: Y
        z < y      user:      Z
    "), @"
    x user: X
      y assistant: Y
        z user: Z  <- main
    branch x y z (interrupted-prompt)
    issue 3: cycle
    ");
}

#[test]
fn a_record_that_is_its_own_parent_is_a_root() {
    insta::assert_snapshot!(check("
        x < x      user:      X
        y < x      assistant: Y
    "), @"
    x user: X
      y assistant: Y  <- main
    branch x y (clean)
    issue 1: cycle
    ");
}

#[test]
fn two_cycles_and_a_tree_are_three_trees() {
    insta::assert_snapshot!(check("
        a < b      user:      A
        b < a      assistant: B
        q          user:      Q
        c < d      user:      C
        d < c      assistant: D
    "), @"
    a user: A
      b assistant: B  <- branch
    q user: Q  <- branch
    c user: C
      d assistant: D  <- main
    branch c d (clean)
    issue 2: cycle
    issue 5: cycle
    ");
}

#[test]
fn results_of_parallel_calls_are_on_the_branch_and_no_heads() {
    insta::assert_snapshot!(check("
        q          user:      Two things
        a < q      assistant !t1 !t2: Calling
        r1 < a     result ?t1: one
        r2 < a     result ?t2: two
        c < r2     assistant: Done
    "), @"
    q user: Two things
      a assistant: Calling
        r1 tool-result
        r2 tool-result
          c assistant: Done  <- main
    branch q a r1 r2 c (clean)
    ");
}

#[test]
fn a_result_that_hangs_anywhere_belongs_to_its_call() {
    insta::assert_snapshot!(check("
        q          user:      Go
        a < q      assistant !t1: Calling
        b < a      user:      Hurry
        c < b      assistant: I do
        r1 < gone  result ?t1: one
        d < c      user:      Well?
    "), @"
    q user: Go
      a assistant: Calling
        b user: Hurry
          c assistant: I do
            d user: Well?  <- main
    gap gone
      r1 tool-result
    branch q a b c r1 d (interrupted-prompt)
    issue 5: orphan
    ");
}

#[test]
fn a_late_result_on_an_old_branch_is_no_head_there_either() {
    insta::assert_snapshot!(check("
        q          user:      Go
        a < q      assistant !t1: Calling
        b < a      assistant: Old branch
        r1 < a     result ?t1: one
        c < q      assistant: New branch
    "), @"
    q user: Go
      a assistant: Calling
        b assistant: Old branch  <- branch
        r1 tool-result
      c assistant: New branch  <- main
    branch q c (clean)
    ");
}

#[test]
fn what_a_result_hangs_on_stays_reachable() {
    insta::assert_snapshot!(check("
        q          user:      Go
        a < q      assistant !t1: Calling
        x < a      user:      Are you there?
        r1 < x     result ?t1: one
        b < a      assistant: Done
    "), @"
    q user: Go
      a assistant: Calling
        x user: Are you there?  <- branch
          r1 tool-result
        b assistant: Done  <- main
    branch q a r1 b (clean)
    ");
}

#[test]
fn a_second_result_beside_the_first_is_no_head() {
    insta::assert_snapshot!(check("
        q          user:      Go
        a < q      assistant !t1: Calling
        r1 < a     result ?t1: one
        b < r1     assistant: One, then.
        r2 < a     result ?t1: other
        c < b      user:      Thanks
    "), @"
    q user: Go
      a assistant: Calling
        r1 tool-result
          b assistant: One, then.
            c user: Thanks  <- main
        r2 tool-result
    branch q a r1 b r2 c (interrupted-prompt)
    issue 5: duplicate-result
    ");
}

#[test]
fn a_result_on_the_way_is_not_joined_by_another_branch_s() {
    insta::assert_snapshot!(check("
        q          user:      Go
        a < q      assistant !t1: Calling
        r1 < a     result ?t1: one
        b < r1     assistant: One, then.
        r2 < a     result ?t1: other
        c < r2     assistant: The other, then.
    "), @"
    q user: Go
      a assistant: Calling
        r1 tool-result
          b assistant: One, then.  <- branch
        r2 tool-result
          c assistant: The other, then.  <- main
    branch q a r2 c (clean)
    issue 5: duplicate-result
    ");
}

#[test]
fn a_result_without_a_call_is_shown_where_it_hangs() {
    insta::assert_snapshot!(check("
        q          user:      Go
        r < q      result ?t9: nobody asked
        a < r      assistant: Strange
    "), @"
    q user: Go
      r tool-result
        a assistant: Strange  <- main
    branch q r a (clean)
    issue 2: orphan-result
    ");
}

#[test]
fn fragments_are_one_record() {
    insta::assert_snapshot!(check("
        q          user:      Go
        a < q      assistant #0: Fo
        a < q      assistant #0: ur.
        b < a      user:      Thanks
    "), @"
    q user: Go
      a assistant: Four.
        b user: Thanks  <- main
    branch q a b (interrupted-prompt)
    ");
}

#[test]
fn a_late_fragment_of_an_inner_record_is_no_head() {
    insta::assert_snapshot!(check("
        q          user:      Go
        a < q      assistant: It is
        b < a      user:      Yes?
        a < q      assistant: four.
    "), @"
    q user: Go
      a assistant: It is four.
        b user: Yes?  <- main
    branch q a b (interrupted-prompt)
    ");
}

#[test]
fn a_late_fragment_of_a_tip_makes_it_the_head() {
    insta::assert_snapshot!(check("
        q          user:      Go
        a < q      assistant: It is
        b < q      assistant: Or is it?
        s < a ~    user:      Aside
        a < q      assistant: four.
    "), @"
    q user: Go
      a assistant: It is four.  <- main
        ~ s user: Aside  <- sidechain
      b assistant: Or is it?  <- branch
    branch q a (clean)
    ");
}

#[test]
fn a_fragment_with_another_parent_stays_where_the_first_is() {
    insta::assert_snapshot!(check("
        q          user:      Go
        p          user:      Elsewhere
        a < q      assistant: It is
        a < p      assistant: four.
    "), @"
    q user: Go
      a assistant: It is four.  <- main
    p user: Elsewhere  <- branch
    branch q a (clean)
    issue 4: conflicting-parent
    ");
}

#[test]
fn an_id_used_by_two_kinds_is_two_records() {
    insta::assert_snapshot!(check("
        q          user:      Go
        q < q      assistant: Also called q
        q < q      system:    And again
        b < q      user:      Hangs on the first
    "), @"
    q user: Go
      q~2 assistant: Also called q  <- branch
      q~3 system: And again  <- branch
      b user: Hangs on the first  <- main
    branch q b (interrupted-prompt)
    issue 2: conflicting-parent
    issue 3: conflicting-parent
    ");
}

#[test]
fn a_line_written_twice_counts_once() {
    insta::assert_snapshot!(check("
        q          user:      Go
        a < q      assistant: Gone
        q          user:      Go
    "), @"
    q user: Go
      a assistant: Gone  <- main
    branch q a (clean)
    issue 3: duplicate-line
    ");
}

#[test]
fn a_sidechain_is_a_head_of_its_own_kind() {
    insta::assert_snapshot!(check("
        q          user:      Go
        a < q      assistant !t1: Somebody shall look
        s < a ~    user:      Look
        t < s ~    assistant: Nothing there
        r < a      result ?t1: nothing
        b < r      assistant: Nothing there
    "), @"
    q user: Go
      a assistant: Somebody shall look
        ~ s user: Look
          ~ t assistant: Nothing there  <- sidechain
        r tool-result
          b assistant: Nothing there  <- main
    branch q a r b (clean)
    ");
}

#[test]
fn a_sidechain_s_calls_are_its_own() {
    insta::assert_snapshot!(check("
        q          user:      Go
        a < q      assistant !t1: Calling
        s < a ~    assistant !t1: Calling too
        u < s ~    result ?t1: to the sidechain
        b < a      user:      And?
    "), @"
    q user: Go
      a assistant: Calling
        ~ s assistant: Calling too
          ~ u tool-result  <- sidechain
        b user: And?  <- main
    branch q a b (interrupted-prompt)
    issue 2: unanswered-call
    ");
}

#[test]
fn in_a_file_of_sidechains_the_newest_is_the_head() {
    insta::assert_snapshot!(check("
        s ~        user:      Look
        t < s ~    assistant: Nothing
        u ~        user:      Look there
    "), @"
    ~ s user: Look
      ~ t assistant: Nothing  <- sidechain
    ~ u user: Look there  <- main
    branch u (interrupted-prompt)
    ");
}

#[test]
fn in_a_file_of_side_records_the_newest_is_the_head() {
    insta::assert_snapshot!(check("
        t          title:     A name
        s          snapshot:
    "), @"
    t title
    s snapshot  <- main
    branch s (clean)
    ");
}

#[test]
fn side_records_are_never_heads_beside_others() {
    insta::assert_snapshot!(check("
        q          user:      Go
        s          snapshot:
        t          title:     A name
    "), @"
    q user: Go  <- main
    s snapshot
    t title
    branch q (interrupted-prompt)
    ");
}

#[test]
fn a_rewind_is_the_head_until_somebody_goes_on() {
    insta::assert_snapshot!(check("
        q          user:      Go
        a < q      assistant: Gone
        b < a      user:      Wrong
        c < b      assistant: Sorry
        w < a      rewind:
    "), @"
    q user: Go
      a assistant: Gone
        b user: Wrong
          c assistant: Sorry  <- branch
        w rewind  <- main
    branch q a w (clean)
    ");
}

#[test]
fn after_a_rewind_the_left_branch_stays_listed() {
    insta::assert_snapshot!(check("
        q          user:      Go
        a < q      assistant: Gone
        b < a      user:      Wrong
        w < a      rewind:
        d < w      user:      Right
    "), @"
    q user: Go
      a assistant: Gone
        b user: Wrong  <- branch
        w rewind
          d user: Right  <- main
    branch q a w d (interrupted-prompt)
    ");
}

#[test]
fn an_unknown_kind_carries_the_chain() {
    insta::assert_snapshot!(check("
        q          user:      Go
        x < q      telemetry: beep
        a < x      assistant: Gone
    "), @"
    q user: Go
      x other
        a assistant: Gone  <- main
    branch q x a (clean)
    issue 2: unknown-kind
    ");
}

#[test]
fn an_answer_without_calls_is_clean() {
    insta::assert_snapshot!(check("
        q          user:      Go
        a < q      assistant: Gone
        t < a      title:     A name in the chain
    "), @"
    q user: Go
      a assistant: Gone
        t title  <- main
    branch q a t (clean)
    ");
}

#[test]
fn a_prompt_without_an_answer_is_an_interrupted_prompt() {
    insta::assert_snapshot!(check("
        q          user:      Go
        e < q      error:     overloaded
    "), @"
    q user: Go
      e system: overloaded  <- main
    branch q e (interrupted-prompt)
    ");
}

#[test]
fn a_call_without_a_result_is_an_interrupted_turn() {
    insta::assert_snapshot!(check("
        q          user:      Go
        a < q      assistant !t1 !t2: Calling
        r1 < a     result ?t1: one
    "), @"
    q user: Go
      a assistant: Calling
        r1 tool-result  <- main
    branch q a r1 (interrupted-turn)
    issue 2: unanswered-call
    ");
}

#[test]
fn results_that_wait_for_the_model_are_an_interrupted_turn() {
    insta::assert_snapshot!(check("
        q          user:      Go
        a < q      assistant !t1: Calling
        r1 < a     result ?t1: one
    "), @"
    q user: Go
      a assistant: Calling
        r1 tool-result  <- main
    branch q a r1 (interrupted-turn)
    ");
}

#[test]
fn a_compaction_does_not_hide_what_was_before_it() {
    insta::assert_snapshot!(check("
        q          user:       Go
        a < q      assistant:  Gone
        c < a      compaction: They went.
        b < c      user:       And now?
    "), @"
    q user: Go
      a assistant: Gone
        c compaction
          b user: And now?  <- main
    branch q a c b (interrupted-prompt)
    ");
}

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
        prop_assert_eq!(session.head().map(|head| head.id().into_owned()), oracle.newest().map(|known| known.name.clone()));
        prop_assert!(session.records().all(|record| record.missing_parent().is_none() || record.parent().is_none()));
        let bridged = read_bridged(lines);
        every_record_has_its_place(&bridged, &oracle);
        every_head_is_listed(&bridged, &oracle);
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
