//! A session by turns: what belongs to a turn, how it ended, and which branch goes where.

use insta::assert_snapshot;
use scrollback::dialect;
use scrollback::session::Session;

use crate::support::effort::check_linear;
use crate::support::{self, native_log};

/// The turns of a native log, one a line: parent, last record, what it begins with, calls, end, head.
fn turns(notation: &str) -> String {
    drawn("native", &native_log::lines(notation))
}

fn drawn(dialect: &str, lines: &str) -> String {
    let session = Session::from_bytes(dialect::named(dialect).unwrap(), lines.into(), &support::reading());
    let turns = session.turns().unwrap();
    let line = |turn: usize| {
        let row = turns.row(turn).unwrap();
        let parent = turns.parent(turn).map_or_else(|| "-".to_owned(), |parent| parent.to_string());
        let calls = if row.calls > 0 { format!(" {}/{}", row.calls, row.failed_calls) } else { String::new() };
        let end = row.end.map_or("", |end| end.name());
        let head = row.head.map(|head| format!(" {head:?}")).unwrap_or_default();
        let on = if row.on_branch { "" } else { " aside" };
        let gap = row.missing_parent.map(|id| format!(" gap {id}")).unwrap_or_default();
        let line =
            format!("{turn} < {parent} {} {}: {}{calls} {end}{head}{on}{gap}", row.id, row.kind.name(), row.text);
        line.trim_end().to_owned() + "\n"
    };
    (0..turns.len()).map(line).collect()
}

fn claude_line(kind: &str, id: &str, parent: Option<&str>, content: serde_json::Value) -> String {
    let message = serde_json::json!({"role": kind, "content": content});
    let line = serde_json::json!({"type": kind, "uuid": id, "parentUuid": parent, "sessionId": "s", "message": message,
        "timestamp": "2026-11-15T10:00:00Z"});
    format!("{line}\n")
}

#[test]
fn a_turn_is_a_prompt_with_everything_up_to_the_next() {
    assert_snapshot!(turns("
        q user: Look at it.
        a < q assistant !t1: I look.
        r < a result ?t1: found
        b < r assistant: It is fine.
        p < b user: Sure?
        c < p assistant: Yes.
        t < c title: Looking
    "), @"
    0 < - b prompt: Look at it. 1/0 answered
    1 < 0 t prompt: Sure? answered Main
    ");
}

#[test]
fn parallel_results_are_no_forks() {
    assert_snapshot!(turns("
        q user: Look at both.
        a < q assistant !t1: One.
        b < a assistant !t2: Two.
        r < a result ?t1: first
        s < b result ?t2: second
        c < s assistant: Both are fine.
    "), @"0 < - c prompt: Look at both. 2/0 answered Main");
}

#[test]
fn branches_leave_where_a_turn_ends_or_answers_again() {
    assert_snapshot!(turns("
        q user: Two and two?
        a < q assistant: Four.
        p < a user: Sure?
        b < p assistant: Yes.
        x < a user: Or five?
        c < q assistant: It depends.
    "), @"
    0 < - c prompt: Two and two? answered Main
    1 < 0 a answer:  answered aside
    2 < 1 b prompt: Sure? answered Branch aside
    3 < 1 x prompt: Or five? no-answer Branch aside
    ");
}

#[test]
fn a_turn_ends_as_it_was_left() {
    assert_snapshot!(turns("
        q user: Run it.
        a < q assistant !t1: I run it.
        p < a user: Hello?
        e < p error: overloaded
        s < e user: Again.
        b < s assistant !t2: I run it again.
        r < b result ?t2: done
        u < r user: And this, while you are at it.
        c < u assistant: Both are done.
        z < c user: Thanks.
    "), @"
    0 < - a prompt: Run it. 1/0 interrupted
    1 < 0 e prompt: Hello? failed
    2 < 1 r prompt: Again. 1/0 answered-with-next
    3 < 2 c prompt: And this, while you are at it. answered
    4 < 3 z prompt: Thanks. no-answer Main
    ");
}

/// What was typed while a tool ran is in the file before the tool's result.
#[test]
fn a_result_belongs_to_the_turn_of_its_call() {
    assert_snapshot!(turns("
        q user: Run it.
        a < q assistant !t1: I run it.
        p < a user: Hello?
        r < p result ?t1: done
        b < r assistant: It is done, and hello.
    "), @"
    0 < - a prompt: Run it. 1/0 answered-with-next
    1 < 0 b prompt: Hello? answered Main
    ");
}

/// Who allows a call can say something with it: Claude Code puts both into one record.
#[test]
fn a_result_in_the_record_of_the_next_prompt_belongs_to_the_turn_of_its_call() {
    let drawn_with = |is_error: bool| {
        let call = serde_json::json!([{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "make"}}]);
        let both = serde_json::json!([
            {"type": "tool_result", "tool_use_id": "t1", "content": "built", "is_error": is_error},
            {"type": "text", "text": "but only this once"}
        ]);
        let lines = [
            claude_line("user", "1", None, "Run it".into()),
            claude_line("assistant", "2", Some("1"), call),
            claude_line("user", "3", Some("2"), both),
            claude_line("assistant", "4", Some("3"), "Understood.".into()),
        ];
        drawn("claude-code", &lines.concat())
    };
    assert_snapshot!(drawn_with(false), @"
    0 < - 2 prompt: Run it 1/0 answered-with-next
    1 < 0 4 prompt: but only this once answered Main
    ");
    assert_snapshot!(drawn_with(true), @"
    0 < - 2 prompt: Run it 1/1 answered-with-next
    1 < 0 4 prompt: but only this once answered Main
    ");
}

#[test]
fn compactions_rewinds_and_side_conversations_are_turns_of_their_own() {
    assert_snapshot!(turns("
        h session: 
        q user: Count.
        s < q ~ user: Count for me.
        t < s ~ assistant: Three.
        a < q assistant: Three.
        c < a compaction: They counted.
        p < c user: Again.
        b < p assistant: Three.
        x < gone user: Who are you?
        w < a rewind: It was wrong.
    "), @"
    0 < - a prompt: Count. answered
    1 < 0 t prompt: Count for me. answered Sidechain aside
    2 < 0 c compaction: They counted.  aside
    3 < 2 b prompt: Again. answered Branch aside
    4 < 0 w rewind:   Main
    5 < - x prompt: Who are you? no-answer Island aside gap gone
    ");
}

#[test]
fn what_a_person_did_at_the_screen_is_named_as_they_typed_it() {
    let line = |kind, id, parent, content: &str| claude_line(kind, id, parent, content.into());
    let lines = [
        line("user", "1", None, "<command-name>/rename</command-name>\n<command-args>Shop talk</command-args>"),
        line("user", "2", Some("1"), "<local-command-stdout>renamed</local-command-stdout>"),
        line("user", "3", Some("2"), "<bash-input>git status</bash-input>"),
        line("user", "4", Some("3"), "<bash-stdout>clean</bash-stdout><bash-stderr></bash-stderr>"),
        line("user", "5", Some("4"), "Explain the design"),
        line("assistant", "6", Some("5"), "It is"),
        line("user", "7", Some("6"), "[Request interrupted by user]"),
    ];
    assert_snapshot!(drawn("claude-code", &lines.concat()), @"
    0 < - 2 command: /rename Shop talk
    1 < 0 4 shell: git status
    2 < 1 7 prompt: Explain the design interrupted Main
    ");
}

/// A command that a person runs while the model works asks for no answer: what follows is of the turn in which it was run.
#[test]
fn a_command_in_the_middle_of_a_turn_leaves_the_outcome_to_the_prompt() {
    let line = |kind, id, parent, content: &str| claude_line(kind, id, parent, content.into());
    let call = serde_json::json!([{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "make"}}]);
    let result = serde_json::json!([{"type": "tool_result", "tool_use_id": "t1", "content": "built"}]);
    let until_command = [
        line("user", "1", None, "Run it"),
        claude_line("assistant", "2", Some("1"), call),
        claude_line("user", "3", Some("2"), result),
        line("user", "4", Some("3"), "<bash-input>date</bash-input>"),
        line("user", "5", Some("4"), "<bash-stdout>today</bash-stdout><bash-stderr></bash-stderr>"),
    ];
    let answered = until_command.concat() + &line("assistant", "6", Some("5"), "Built.");
    assert_snapshot!(drawn("claude-code", &answered), @"
    0 < - 3 prompt: Run it 1/0 answered
    1 < 0 6 shell: date  Main
    ");
    let left = until_command.concat() + &line("user", "6", Some("5"), "[Request interrupted by user]");
    assert_snapshot!(drawn("claude-code", &left), @"
    0 < - 3 prompt: Run it 1/0 interrupted
    1 < 0 6 shell: date  Main
    ");
    let with_next = until_command.concat()
        + &line("user", "6", Some("5"), "And test it")
        + &line("assistant", "7", Some("6"), "Both are done.");
    assert_snapshot!(drawn("claude-code", &with_next), @"
    0 < - 3 prompt: Run it 1/0 answered-with-next
    1 < 0 5 shell: date
    2 < 1 7 prompt: And test it answered Main
    ");
    let alone = line("user", "1", None, "<bash-input>date</bash-input>") + &line("assistant", "2", Some("1"), "Today.");
    assert_snapshot!(drawn("claude-code", &alone), @"0 < - 2 shell: date answered Main");
}

/// A long session costs as much as its records, however they hang together.
#[test]
fn many_records_take_linear_time() {
    let chain = |count: usize| -> String {
        let record = |at: usize| match at {
            0 => "n0 user: q\n".to_owned(),
            _ => format!("n{at} < n{} {}: x\n", at - 1, if at.is_multiple_of(2) { "user" } else { "assistant" }),
        };
        (0..count).map(record).collect()
    };
    let fan = |count: usize| -> String {
        (0..count)
            .map(|at| if at == 0 { "n0 user: q\n".to_owned() } else { format!("n{at} < n0 user: x\n") })
            .collect()
    };
    for shape in [&chain as &dyn Fn(usize) -> String, &fan] {
        check_linear("turns", 2_000, |count| native_log::lines(&shape(count)), |lines| drop(drawn("native", lines)));
    }
}

#[test]
fn the_answer_that_a_compaction_asked_for_is_of_no_turn() {
    let folder = support::corpus().join("codex/compaction-own-turn");
    let lines = std::fs::read_to_string(folder.join("rollout.jsonl")).unwrap();
    assert_snapshot!(drawn("codex", &lines), @"
    0 < - ord-3 prompt: When is high water? answered
    1 < 0 ord-10 compaction: Another model began this. High water was asked for.
    2 < 1 ord-14 prompt: And low water? answered Main
    ");
    let session = Session::from_bytes(dialect::named("codex").unwrap(), lines.into(), &support::reading());
    let branch = session.branch(session.head().unwrap());
    let ids: Vec<_> = session.records().map(|record| record.id().into_owned()).collect();
    let usages = session.usage_by_record(&branch.records);
    let inputs: Vec<_> =
        usages.into_iter().map(|(record, usage)| (ids[record].clone(), usage.input.unwrap())).collect();
    assert_eq!(inputs, [("ord-3", 100), ("ord-10", 190_000), ("ord-14", 50)].map(|(id, input)| (id.to_owned(), input)));
    let before = session.branch(session.find("ord-8").unwrap());
    assert_eq!(before.records.last().unwrap().id(), "ord-3", "nobody continues from it");
    assert_eq!(session.usage().and_then(|usage| usage.input), Some(190_150));
}

/// What another agent sends beside its summary is context here, in between the records of one compaction.
#[test]
fn a_compaction_with_what_it_kept_is_one_turn() {
    let attached = |id: &str, parent: &str| {
        let line = serde_json::json!({"type": "attachment", "uuid": id, "parentUuid": parent, "sessionId": "s",
            "attachment": {"type": "note"}, "rendered": [{"content": "One?"}], "timestamp": "2026-11-15T10:00:00Z"});
        format!("{line}\n")
    };
    let boundary = serde_json::json!({"type": "system", "subtype": "compact_boundary", "uuid": "c", "parentUuid": null,
        "logicalParentUuid": "a", "sessionId": "s", "timestamp": "2026-11-15T10:00:00Z"});
    let summary =
        claude_line("user", "m", Some("k2"), "They counted.".into()).replacen('{', "{\"isCompactSummary\":true,", 1);
    let lines = [
        claude_line("user", "u", None, "One?".into()),
        claude_line("assistant", "a", Some("u"), serde_json::json!([{"type": "text", "text": "One."}])),
        format!("{boundary}\n"),
        attached("k", "c"),
        attached("k2", "k"),
        summary,
        claude_line("user", "v", Some("m"), "Two?".into()),
    ];
    assert_snapshot!(drawn("claude-code", &lines.concat()), @"
    0 < - a prompt: One? answered
    1 < 0 m compaction: They counted.
    2 < 1 v prompt: Two? no-answer Main
    ");
}

#[test]
fn a_compaction_is_told_by_its_summary() {
    let text = "This session is being continued from a previous conversation.\\n\\nSummary:\\nThey counted.";
    let lines = format!(
        "{{\"type\":\"user\",\"uuid\":\"m\",\"isCompactSummary\":true,\"sessionId\":\"s\",\"message\":{{\"content\":\"{text}\"}}}}\n"
    );
    assert_snapshot!(drawn("claude-code", &lines), @"0 < - m compaction: They counted.  Main");
}

#[test]
fn what_a_compaction_kept_does_not_answer_it() {
    let folder = support::corpus().join("claude-code/compaction-copied-by-a-branch");
    let lines = std::fs::read_to_string(folder.join("session.jsonl")).unwrap();
    assert_snapshot!(drawn("claude-code", &lines), @"
    0 < - d1 compaction: They counted on.
    1 < 0 a2 prompt: Five? answered
    2 < 1 s2 compaction: They counted to six.
    3 < 2 a3 prompt: Seven? answered Main
    ");
}

#[test]
fn the_summary_of_a_compaction_in_a_turn_does_not_answer_it() {
    let folder = support::corpus().join("codex/compaction-in-a-turn");
    let lines = std::fs::read_to_string(folder.join("rollout.jsonl")).unwrap();
    assert_snapshot!(drawn("codex", &lines), @"
    0 < - ord-6 prompt: Read both tables. 1/0
    1 < 0 ord-11 compaction: High water is at 04:12; the second table is left. 1/0 answered Main
    ");
    let answered = lines.replacen("the second table is left", "see the first table", 1);
    assert!(drawn("codex", &answered).starts_with("0 < - ord-6 prompt: Read both tables. 1/0 answered\n"));
}

#[test]
fn prompts_that_are_answered_together_are_answered() {
    assert_snapshot!(turns("
        q user: One.
        r < q user: Two.
        s < r user: Three.
        a < s assistant: All three.
        t < a user: Nothing?
        u < t user: Still nothing?
    "), @"
    0 < - q prompt: One. answered-with-next
    1 < 0 r prompt: Two. answered-with-next
    2 < 1 a prompt: Three. answered
    3 < 2 t prompt: Nothing? no-answer
    4 < 3 u prompt: Still nothing? no-answer Main
    ");
}
