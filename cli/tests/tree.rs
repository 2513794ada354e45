//! `tree`, end to end: turns and branches as a person reads them at 80 columns, ids that other commands take, and every record.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod support;

use insta::assert_snapshot;
use support::{Ran, TestEnv, line, talk};

/// Runs at a width.
fn run_at(env: &TestEnv, columns: &str, args: &[&str]) -> Ran {
    let mut command = env.command(args);
    command.env("COLUMNS", columns);
    env.ran(command, b"")
}

#[test]
fn a_turn_is_a_line() {
    let env = TestEnv::new();
    assert_snapshot!(run_at(&env, "80", &["--demo", "tree", "91c5"]).all(), @"
    │ 79f5d926  The lamp controller has grown to on…  2 calls · answered
    ├─╮
    │ ◦ f1c28fb0  ⑂ List every module that imports …  1 call · answered  ← sub-agent
    │ 06d9dbf2  Good plan. Go, one class at a time,…  6 calls, 1 failed · answered
    │ 5b864f38  ⊟ compacted: The lamp controller is…
    ● c4413990  Before you cut Schedule and A…  3 calls, 1 denied · answered  ← here
    [exit 0]
    4 turns, 30 records; add --records to see each record.
    ");
    assert_snapshot!(run_at(&env, "200", &["--demo", "tree", "0d93"]).all(), @"
    │ 398feb1c  11 Nov 2026 22:31  The dark theme flashes white when a page loads. Find the…  1 call · answered
    │ 6b559589  11 Nov 2026 22:32  Can it be done without a script?                           answered
    │ 042d5c41  11 Nov 2026 22:32  Do it.                                                     1 call · answered
    ◇ e68cab18  11 Nov 2026 22:33  And the code blocks?                                       no answer  ← unconnected part
    ┄ gap: record 7f59a719 is missing
    │ 755ab450  11 Nov 2026 22:35  The contrast of comments is too low in the dark one.       1 call · answered
    │ 336fbfe5  11 Nov 2026 22:36  Looks right. Same for the print style?                     answered
    ● 913c7cb9  11 Nov 2026 22:37  Then ship it.                                              1 call · interrupted  ← here
    [exit 0]
    7 turns, 20 records; add --records to see each record.
    ");
}

#[test]
fn another_answer_to_the_same_prompt_is_a_branch() {
    let env = TestEnv::new();
    env.session("s1", &(talk() + &line("assistant", "b1", Some("u1"), "It depends.")));
    assert_snapshot!(run_at(&env, "80", &["tree", "s1"]).all(), @"
    ● b1        What is two and two?                  answered  ← here
    ╰─╮
      │ a1        (another answer)                    answered
      ◌ a2        Sure?                               answered  ← earlier branch
    [exit 0]
    3 turns, 5 records; add --records to see each record.
    ");
}

#[test]
fn a_beginning_that_was_left_is_a_branch_of_its_own() {
    let env = TestEnv::new();
    let again = line("user", "b1", None, "Another way?") + &line("assistant", "b2", Some("b1"), "Yes.");
    env.session("s1", &(talk() + &again));
    assert_snapshot!(run_at(&env, "80", &["tree", "s1"]).all(), @"
    ╭─╮ another beginning
    │ │ a1        What is two and two?                answered
    │ ◌ a2        Sure?                               answered  ← earlier branch
    ● b2        Another way?                          answered  ← here
    [exit 0]
    3 turns, 6 records; add --records to see each record.
    ");
    let records = run_at(&env, "80", &["tree", "s1", "--records"]).out;
    assert!(records.starts_with("╭─╮ another beginning\n│ │ u1"), "{records}");
}

#[test]
fn every_line_fits_into_the_width() {
    let env = TestEnv::new();
    let sessions = env.run(&["--demo", "list", "--json"]).json();
    for session in sessions.as_array().unwrap() {
        let drawn = run_at(&env, "80", &["--demo", "tree", session["id"].as_str().unwrap()]);
        for line in drawn.out.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}

/// The id of a turn is that of its last record: what ends there has the whole turn.
#[test]
fn the_id_of_a_turn_names_the_branch_that_ends_with_it() {
    let env = TestEnv::new();
    let sessions = env.run(&["--demo", "list", "--json"]).json();
    for session in sessions.as_array().unwrap() {
        let session = session["id"].as_str().unwrap();
        let drawn = env.run(&["--demo", "tree", session]);
        let ids = drawn
            .out
            .lines()
            .filter_map(|line| line.split(['│', ' ', '●', '◌', '◇', '◦']).find(|word| !word.is_empty()));
        for id in ids.filter(|id| !id.starts_with(['├', '┄', '╰'])) {
            let shown = env.run(&["--demo", "show", session, "--head", id]);
            assert_eq!(shown.code, 0, "{session} --head {id}: {}", shown.all());
            let shown = env.run(&["--demo", "show", &format!("{session}#{id}")]);
            assert_eq!(shown.code, 0, "{session}#{id}: {}", shown.all());
        }
    }
    env.session("s1", &talk());
    let turns = env.run(&["tree", "s1"]).out;
    assert!(turns.starts_with("│ a1 "), "{turns}");
    assert_eq!(env.run(&["fork", "s1#a1", "--id", "half"]).code, 0);
    assert!(env.run(&["tree", "half"]).out.contains("answered  ← here"));
}

#[test]
fn each_record_is_a_line_on_request_and_for_programs() {
    let env = TestEnv::new();
    env.session("s1", &talk());
    let records = env.run(&["tree", "s1", "--records"]);
    assert_eq!((records.out.lines().count(), records.err.as_str()), (4, ""), "{}", records.all());
    assert_eq!(env.run(&["tree", "s1", "--json"]).json()["records"].as_array().unwrap().len(), 4);
    assert_eq!(env.run(&["tree", "s1"]).out.lines().count(), 2);
}
