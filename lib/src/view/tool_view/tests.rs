//! One call of each kind, in the shapes that agents write.

use serde_json::{Value, json};

use super::*;
use crate::model::message::{FilePart, Part};

fn done(input: Value, output: Value) -> ToolPart {
    ToolPart::dynamic("any", "c1", ToolState::done(input, output))
}

fn failed(input: Value, error: &str) -> ToolPart {
    ToolPart::dynamic("any", "c1", ToolState::failed(input, error))
}

fn noting(mut call: ToolPart, note: Value) -> ToolPart {
    call.call_provider_metadata = json!({"scrollback": note}).as_object().cloned();
    call
}

#[test]
fn a_long_output_says_where_all_of_it_is() {
    let shown = json!({"output": "8\n9", "text": "9\nOutput too long and was saved to: /t/x", "truncated": true});
    let cut = noting(done(json!({"command": "seq 9"}), json!("9")), json!({"resultDisplay": shown}));
    let ToolView::Shell(run) = ToolView::of(&cut) else { panic!("a command") };
    assert_eq!(run.output, "8\n9\nOutput too long and was saved to: /t/x");
    let saved =
        "<persisted-output>\nOutput too large (9KB). Full output saved to: /t/x\n\nPreview:\n1\n</persisted-output>";
    let saved = done(json!({"command": "seq 9"}), json!(saved));
    let ToolView::Shell(run) = ToolView::of(&saved) else { panic!("a command") };
    assert_eq!(run.output, "Output too large (9KB). Full output saved to: /t/x\n\nPreview:\n1");
}

#[test]
fn what_a_stopped_command_had_printed_is_shown() {
    let stopped = failed(json!({"command": "make"}), "[Operation Cancelled] Reason: User intentionally cancelled.");
    let piece = |text: &str| json!({"text": text, "bold": false, "fg": ""});
    let shown =
        |lines: Value| noting(stopped.clone(), json!({"resultDisplay": {"ansiOutput": lines, "totalLines": 2}}));
    let printed = |call: ToolPart| match ToolView::of(&call) {
        ToolView::Shell(run) => run.output.into_owned(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        printed(shown(json!([[piece("one "), piece("two"), piece("  ")], [], [piece("three")], 7]))),
        "one two\n\nthree\n"
    );
    for nothing in [json!([]), json!([[piece(" ")]]), json!("x"), Value::Null] {
        assert!(printed(shown(nothing)).starts_with("[Operation Cancelled]"));
    }
}

#[test]
fn what_an_agent_says_around_an_error_is_left_out() {
    let wrong = failed(json!({"command": "ls"}), "<tool_use_error>Error: No such tool available: ls</tool_use_error>");
    let ToolView::Shell(run) = ToolView::of(&wrong) else { panic!("a command") };
    assert_eq!(run.output, "Error: No such tool available: ls");
    let refused =
        "The user doesn't want to proceed with this tool use. The tool use was rejected. STOP what you are doing.";
    assert_eq!(refusal_words(refused), "");
    assert_eq!(refusal_words(&format!("{refused} To tell you how to proceed, the user said:\nNot now")), "Not now");
    assert_eq!(refusal_words("Not now"), "Not now");
}

#[test]
fn files_that_changed_while_a_command_ran_are_its_changes() {
    let files = json!([{"filePath": "/w/a", "created": true, "hunks": [{"lines": ["+x"]}]}, {"filePath": "/w/b", "hunks": []}, {}, 7]);
    let ran = noting(done(json!({"command": "make"}), json!("")), json!({"changedFiles": files}));
    let ToolView::Shell(run) = ToolView::of(&ran) else { panic!("a command") };
    let changes: Vec<_> = run.changes.files.iter().map(|file| (file.path, file.action, file.added)).collect();
    assert_eq!(changes, [("/w/a", FileAction::Write, 1), ("/w/b", FileAction::Edit, 0)]);
}

/// A change as lines: `path action`, then the hunks.
fn change(call: &ToolPart) -> String {
    let ToolView::Change(changes) = ToolView::of(call) else { return format!("{:?}", ToolView::of(call)) };
    let mut out = String::new();
    for file in &changes.files {
        let moved = file.moved_to.map(|to| format!(" → {to}")).unwrap_or_default();
        out += &format!("{}{moved} {:?} +{} -{}\n", file.path, file.action, file.added, file.removed);
        for hunk in &file.hunks {
            out += &format!("@@ {}\n", hunk.heading.unwrap_or_default());
            for line in &hunk.lines {
                let sign = match line.sign {
                    Sign::Added => '+',
                    Sign::Removed => '-',
                    Sign::Context => ' ',
                };
                out += &format!("{sign}{}\n", line.text);
            }
        }
    }
    out
}

#[track_caller]
fn runs(call: &ToolPart, command: &str, output: &str, exit_code: Option<i64>) {
    let expected = ShellRun { command: command.into(), output: output.into(), exit_code, changes: Changes::default() };
    assert_eq!(ToolView::of(call), ToolView::Shell(expected));
}

#[test]
fn edits_of_all_agents_are_changes() {
    let expected = "a.txt Edit +1 -1\n@@ \n one\n-two\n+2\n three\n";
    let (old, new) = ("one\ntwo\nthree", "one\n2\nthree");
    for input in [
        json!({"file_path": "a.txt", "old_string": old, "new_string": new, "replace_all": false}),
        json!({"filePath": "a.txt", "oldString": old, "newString": new}),
        json!({"path": "a.txt", "old": old, "new": new}),
        json!({"command": "str_replace", "path": "a.txt", "old_str": old, "new_str": new}),
        json!({"file_path": "a.txt", "edits": [{"old_string": old, "new_string": new}]}),
    ] {
        assert_eq!(change(&done(input.clone(), json!("ok"))), expected, "{input}");
    }
}

#[test]
fn what_is_far_from_a_change_is_left_out() {
    let lines = |two: &str| {
        (1..=20)
            .map(|n| if n == 2 || n == 18 { format!("{two}{n}\n") } else { format!("{n}\n") })
            .collect::<String>()
    };
    let call = done(json!({"file_path": "a", "old_string": lines("a"), "new_string": lines("b")}), json!(""));
    insta::assert_snapshot!(change(&call), @"
    a Edit +2 -2
    @@ 
     1
    -a2
    +b2
     3
     4
     5
    @@ 
     15
     16
     17
    -a18
    +b18
     19
     20
    ");
}

#[test]
fn a_write_adds_all_lines_or_what_the_agent_compared() {
    let write = done(json!({"file_path": "n", "content": "a\nb\n"}), json!("ok"));
    assert_eq!(change(&write), "n Write +2 -0\n@@ \n+a\n+b\n");
    let diff =
        "Index: n\n====\n--- n\tOriginal\n+++ n\tWritten\n@@ -1,2 +1,2 @@\n a\n-x\n+b\n\\ No newline at end of file\n";
    let compared = noting(write, json!({"resultDisplay": {"fileDiff": diff}}));
    assert_eq!(change(&compared), "n Write +1 -1\n@@ -1,2 +1,2\n a\n-x\n+b\n");
    let new = json!({"resultDisplay": {"fileDiff": "--- n\tCurrent\n+++ n\tProposed\n@@ -0,0 +1,2 @@\n+a\n+b\n"}});
    let write = done(json!({"file_path": "n", "content": "a\nb\n"}), json!("ok"));
    assert_eq!(change(&noting(write, new)), "n Write +2 -0\n@@ \n+a\n+b\n", "a new file has no place");
    let cell = json!({"notebook_path": "n.ipynb", "new_source": "1 + 1", "edit_mode": "insert"});
    assert_eq!(change(&done(cell, json!("ok"))), "n.ipynb Edit +1 -0\n@@ insert\n+1 + 1\n");
}

#[test]
fn patches_are_changes_wherever_they_stand() {
    let patch = "*** Begin Patch\n*** Add File: a\n+one\n*** Update File: b\n*** Move to: c\n@@ fn main\n x\n-y\n+z\n*** End of File\n*** Delete File: d\n*** End Patch\n";
    let expected = "a Write +1 -0\n@@ \n+one\nb → c Edit +1 -1\n@@ fn main\n x\n-y\n+z\nd Delete +0 -0\n";
    let heredoc = format!("cd x && apply_patch <<'EOF'\n{patch}EOF\n");
    for input in
        [json!(patch), json!({"input": patch}), json!({"command": ["bash", "-lc", heredoc]}), json!({"cmd": heredoc})]
    {
        assert_eq!(change(&done(input.clone(), json!(""))), expected, "{input}");
    }
    let unified = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\ndiff --git a/y b/y\n--- /dev/null\n+++ b/y\n@@ -0,0 +1 @@\n+c\n";
    let expected = "x Edit +1 -1\n@@ -1 +1\n-a\n+b\ny Write +1 -0\n@@ \n+c\n";
    assert_eq!(change(&done(json!({"patch": unified}), json!(""))), expected);
}

#[test]
fn a_patch_that_only_prints_is_a_command() {
    runs(&done(json!({"command": "cat <<E\n*** Begin Patch\nE"}), json!("")), "cat <<E\n*** Begin Patch\nE", "", None);
    runs(&done(json!({"command": "which apply_patch"}), json!("")), "which apply_patch", "", None);
}

#[test]
fn a_command_is_what_a_person_would_type() {
    let run = |command: Value| done(json!({"command": command}), json!("x"));
    runs(&run(json!("ls")), "ls", "x", None);
    runs(&run(json!(["/bin/bash", "-lc", "ls | wc"])), "ls | wc", "x", None);
    runs(&run(json!(["git", "commit", "-m", "it's done"])), r"git commit -m 'it'\''s done'", "x", None);
    runs(&done(json!({"action": {"command": ["ls"]}}), json!("x")), "ls", "x", None);
    assert_eq!(ToolView::of(&run(json!([1]))), ToolView::Other);
    assert_eq!(ToolView::of(&run(json!([]))), ToolView::Other);
}

#[test]
fn an_output_has_no_lines_of_the_agent() {
    let input = json!({"cmd": "ls"});
    let ran = |output: &str| done(input.clone(), json!(output));
    let chunk = "Chunk ID: 53df2d\nWall time: 0.0000 seconds\nProcess exited with code 0\nOriginal token count: 3\nOutput:\na\n";
    runs(&ran(chunk), "ls", "a\n", Some(0));
    runs(&ran("Exit code: 0\nWall time: 0 seconds\nOutput:\n"), "ls", "", Some(0));
    runs(&ran("Wall time: 3 s\nno head"), "ls", "Wall time: 3 s\nno head", None);
    runs(&ran("Exit code 3\nis what it printed"), "ls", "Exit code 3\nis what it printed", None);
    runs(&ran("Output:\nx"), "ls", "Output:\nx", None);
    let qwen = "Command: ls\nDirectory: (root)\nOutput: a\nb\nError: oops\nExit Code: 2\nSignal: (none)";
    runs(&ran(qwen), "ls", "a\nb\noops", Some(2));
    runs(&failed(input.clone(), "Exit code 1\nerror: no"), "ls", "error: no", Some(1));
    runs(&failed(input.clone(), "Wall time: 1.5 seconds\naborted by user"), "ls", "aborted by user", None);
    let codex =
        noting(failed(input.clone(), "exit code 2: oops"), json!({"output": chunk.replace("code 0", "code 2")}));
    runs(&codex, "ls", "a\n", Some(2));
    let noted = noting(ran("x"), json!({"resultDisplay": {"output": "shown", "exitCode": 4}}));
    runs(&noted, "ls", "shown", Some(4));
    runs(&noting(ran("x"), json!({"exitCode": 5})), "ls", "x", Some(5));
}

#[test]
fn task_lists_and_sub_agents_are_known_by_their_input() {
    let items = vec![
        TodoItem { text: "a", status: TodoStatus::InProgress },
        TodoItem { text: "b", status: TodoStatus::Pending },
    ];
    let todos = json!([{"content": "a", "status": "in_progress"}, {"content": "b", "status": "odd"}]);
    assert_eq!(ToolView::of(&done(json!({"todos": todos}), json!(""))), ToolView::Todos { items: items.clone() });
    let plan = json!([{"step": "a", "status": "in_progress"}, {"step": "b"}]);
    assert_eq!(ToolView::of(&done(json!({"plan": plan, "explanation": "x"}), json!(""))), ToolView::Todos { items });

    let task = json!({"description": "look", "prompt": "Look about", "subagent_type": "Explore"});
    let agent = SubAgent { task: "look", role: Some("Explore"), session: None };
    assert_eq!(ToolView::of(&done(task, json!(""))), ToolView::SubAgent(agent));
    let spawned = noting(done(json!({"message": "Look"}), json!("{}")), json!({"session": "s1"}));
    let agent = SubAgent { task: "Look", role: None, session: Some("s1") };
    assert_eq!(ToolView::of(&spawned), ToolView::SubAgent(agent));
    assert_eq!(ToolView::of(&done(json!({"message": "hi", "to": "ada"}), json!(""))), ToolView::Other);
}

#[test]
fn an_ending_is_a_word() {
    let input = json!({});
    assert_eq!(ending(&done(input.clone(), json!(""))), Ending::Ok);
    assert_eq!(ending(&failed(input.clone(), "aborted by user")), Ending::Interrupted);
    let stopped = "[Operation Cancelled] Reason: User intentionally cancelled.";
    assert_eq!(ending(&failed(input.clone(), stopped)), Ending::Interrupted);
    let asks = json!({"cmd": "rm x", "sandbox_permissions": "require_escalated"});
    let asked = failed(asks, "Wall time: 1.5 seconds\naborted by user");
    assert_eq!(ending(&asked), Ending::Denied, "the question was stopped");
    assert_eq!(ending(&noting(asked, json!({"exitCode": 137}))), Ending::Interrupted, "it ran");
    assert_eq!(ending(&failed(input.clone(), "patch rejected by user")), Ending::Denied);
    let refused = "exec_command failed for `ls`: CreateProcess { message: \"Rejected(\\\"rejected by user\\\")\" }";
    assert_eq!(ending(&failed(input.clone(), &refused.replace('\\', ""))), Ending::Denied);
    assert_eq!(ending(&ToolPart::dynamic("a", "b", ToolState::called(input))), Ending::NoResult);
}

#[test]
fn large_changes_are_limited() {
    let many = "x\n".repeat(1 << 20);
    let call = done(json!({"path": "a", "old": many, "new": "y\n".repeat(1 << 20)}), json!(""));
    let ToolView::Change(changes) = ToolView::of(&call) else { panic!("a change") };
    assert_eq!((changes.files[0].added, changes.files[0].removed), (1 << 20, 1 << 20));
    let shown: usize = changes.files[0].hunks.iter().map(|hunk| hunk.lines.len()).sum();
    assert_eq!((shown, changes.left_out), (10_000, (2 << 20) - 10_000));

    let different = |start: usize| (start..start + 100_000).map(|n| format!("{n}\n")).collect::<String>();
    let call = done(json!({"path": "a", "old": different(0), "new": different(500_000)}), json!(""));
    assert!(matches!(ToolView::of(&call), ToolView::Change(_)));

    let hunks = format!("*** Begin Patch\n*** Update File: a\n{}*** End Patch", "@@\n-a\n+b\n".repeat(100_000));
    let deletes = format!("*** Begin Patch\n{}*** End Patch", "*** Delete File: a\n".repeat(100_000));
    for (patch, files, left_out) in [(hunks, 1, 190_000), (deletes, 1_000, 99_000)] {
        let call = done(json!(patch), json!(""));
        let ToolView::Change(changes) = ToolView::of(&call) else { panic!("a change") };
        assert_eq!((changes.files.len(), changes.left_out), (files, left_out));
    }
}

#[test]
fn files_in_a_result_are_named() {
    let result = json!([{"type": "text", "text": "a"}, {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AAAAAA=="}]);
    assert_eq!(result_text(&result), "a\n[image, 4 B]");
    let blocks = json!([
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "high"},
        {"type": "image", "mimeType": "image/png", "data": "AAAAAA"},
        {"type": "image", "source": {"type": "base64", "data": "AAAA"}},
        {"type": "file", "mediaType": "application/pdf", "url": "https://example.org/a.pdf"},
    ]);
    assert_eq!(result_text(&blocks), "[image, 3 B]\n[image, 4 B]\n[image, 3 B]\n[application/pdf]");
    assert_eq!([999, 39_321, 39_321_448].map(size_text), ["999 B", "39 KB", "39.3 MB"]);
    for (data, bytes) in [("", 0), ("AA==", 1), ("AAA=", 2), ("AAAA", 3), ("AAAAAA", 4)] {
        assert_eq!(data_url_bytes(&format!("data:x/y;base64,{data}")), Some(bytes), "{data}");
    }
    assert_eq!((data_url_bytes("data:,abc"), data_url_bytes("https://example.org/a.png")), (Some(3), None));
}

#[test]
fn a_plan_is_a_text_and_not_the_name_of_one() {
    let plan = |input: Value| matches!(ToolView::of(&done(input, json!("ok"))), ToolView::Plan { .. });
    assert!(plan(json!({"plan": "# Plan\n\n1. Do it", "planFilePath": "p.md"})) && plan(json!({"plan": "Do it"})));
    assert!(!plan(json!({"plan": "pro", "user": "ada"})));
}

#[test]
fn answers_are_found_in_what_each_agent_tells_the_model() {
    let input = json!({"questions": [
        {"question": "Which rounding?", "header": "Rounding", "id": "r", "options": [{"label": "Half up", "description": "d"}, {"label": "Half even"}]},
        {"question": "Which tests?", "header": "Tests", "id": "t", "options": [{"label": "A"}, {"label": "B"}, {"label": "C"}]},
    ]});
    let answers = |output: Value| {
        let call = done(input.clone(), output);
        let ToolView::Questions { questions } = ToolView::of(&call) else { panic!("questions") };
        let shown = questions.iter().map(|question| {
            let chosen = question.options.iter().filter(|option| option.is_chosen).map(|option| option.label);
            let other = question.other.iter().map(|other| format!("other: {other}"));
            chosen.map(str::to_owned).chain(other).collect::<Vec<_>>().join("|")
        });
        shown.collect::<Vec<_>>().join(" / ")
    };
    let claude = r#"Your questions have been answered: "Which rounding?"="Half up", "Which tests?"="A, C". You can now continue."#;
    assert_eq!(answers(json!(claude)), "Half up / A|C");
    assert_eq!(
        answers(json!(r#"User: "Which rounding?"="the "other" one". You"#)),
        r#"other: the "other / "#,
        "a limit"
    );
    assert_eq!(
        answers(json!(r#"{"answers":{"r":{"answers":["Half even"]},"t":{"answers":["B","x"]}}}"#)),
        "Half even / B|other: x"
    );
    assert_eq!(answers(json!({"answers": {"0": "Half up", "1": ["A", "B"]}})), "Half up / A|B");
    assert_eq!(answers(json!("User has answered:\n\n**Rounding**: Half up\n**Tests**: none")), "Half up / other: none");
    assert_eq!(answers(json!("no idea")), " / ");
    assert!(matches!(ToolView::of(&done(json!({"questions": ["x"]}), json!(""))), ToolView::Other));
    assert!(matches!(ToolView::of(&done(json!({"questions": []}), json!(""))), ToolView::Other));
}

#[test]
fn an_attached_file_has_a_name() {
    let mut parts = vec![Part::text(r#"<image name=[Image #1] path="/w/red.png">"#), Part::file("image/png", "data:,")];
    assert_eq!(attached_name(&parts, 1), "red.png");
    parts[0] = Part::text("<image name=[Image #1]>");
    assert_eq!(attached_name(&parts, 1), "image");
    assert_eq!(attached_name(&[Part::file("text/plain", "")], 0), "file");
    assert_eq!(
        attached_name(&[Part::File(FilePart { filename: Some("a.txt".to_owned()), ..FilePart::default() })], 0),
        "a.txt"
    );
}

#[test]
fn a_refused_change_of_the_task_list_leaves_it_as_it_was() {
    let list = json!([{"content": "Look", "status": "pending"}]);
    let message = |state: Value| -> crate::model::message::Message {
        let mut call =
            json!({"type": "dynamic-tool", "toolName": "TodoWrite", "toolCallId": "c", "input": {"todos": list}});
        call.as_object_mut().unwrap().extend(state.as_object().unwrap().clone());
        serde_json::from_value(json!({"id": "a", "role": "assistant", "parts": [call], "metadata": {"todos": list}}))
            .unwrap()
    };
    let done = message(json!({"state": "output-available", "output": "ok"}));
    assert_eq!(todo_list(&done), list.as_array());
    let failed = message(json!({"state": "output-error", "errorText": "No."}));
    assert_eq!(todo_list(&failed), None);
}
