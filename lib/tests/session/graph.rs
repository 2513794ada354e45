//! Every shape that links can make: branches, heads, gaps, islands, cycles, calls and results on other parents.
//!
//! Stories with the tree that they become; then, in `any.rs`, promise P9: any graph ends in time that grows with its length,
//! each record in one place, every root and head listed, every gap labelled.

mod any;

use std::collections::BTreeMap;

use crate::support::{native, native_log, read, reading};
use scrollback::session::{Bridge, HeadKind, ReadOptions, RecordRef, Session};

/// The tree that a log becomes, then its newest branch, its state and what is wrong.
fn check(log: &str) -> String {
    outline(&read(native_log::lines(log)))
}

/// The same for a reader who asked that gaps be closed.
fn check_bridged(log: &str) -> String {
    outline(&read_bridged(native_log::lines(log)))
}

fn read_bridged(lines: String) -> Session {
    Session::from_bytes(native(), lines.into_bytes(), &ReadOptions { bridge: Bridge::Always, ..reading() })
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
        let texts: Vec<String> = record.body().unwrap().content().into_iter().flat_map(texts).collect();
        let text = format!("{}: {}", record.kind().name(), texts.join(" "));
        said.push(format!("{}{sidechain}{} {}{head}", "  ".repeat(depth), record.id(), text.trim_end_matches(": ")));
        open.extend(record.children().rev().map(|child| (child, depth + 1)));
    }
    if let Some(head) = session.head() {
        let branch = session.branch(head);
        let ids: Vec<_> = branch.records.iter().map(|record| record.id()).collect();
        said.push(format!("branch {} ({})", ids.join(" "), session.state(&branch).name()));
    }
    let issue = |issue: &scrollback::model::Issue| format!("issue {}: {}", issue.line.unwrap(), issue.kind.name());
    said.extend(session.issues().iter().map(issue));
    said.join("\n")
}

fn texts(said: &scrollback::model::Content) -> Vec<String> {
    let parts = said.parts.iter().filter_map(|part| match part {
        scrollback::model::Part::Text(text) => Some(text.text.clone()),
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
fn a_file_in_reverse_order_ends_where_its_conversation_does() {
    insta::assert_snapshot!(check("
        b < a      user:      Thanks
        a < q      assistant: Hello
        q          user:      Hello
    "), @"
    q user: Hello
      a assistant: Hello
        b user: Thanks  <- main
    branch q a b (interrupted-prompt)
    ");
    // Of two ends below the last line, the newer one.
    insta::assert_snapshot!(check("
        c < a      user:      Written first
        b < a      user:      Written second
        a < q      assistant: Hello
        q          user:      Hello
    "), @"
    q user: Hello
      a assistant: Hello
        c user: Written first  <- branch
        b user: Written second  <- main
    branch q a b (interrupted-prompt)
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
      p user: Its parent
        c assistant: Came first  <- main
    branch p c (degraded)
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
