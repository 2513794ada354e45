//! The file histories of other agents, and contents that are rebuilt from edits where no copy was kept.

use scrollback::transfer::convert::{Conversion, Target};
use scrollback::view::files::{FileHistory, KnownVersion};

use super::*;

const QWEN: &str = "qwen/projects/-project/chats/5e551000-0000-4000-8000-000000000001.jsonl";
const CLAUDE: &str = "claude/projects/-project/5e551000-0000-4000-8000-000000000001.jsonl";
const CODEX: &str = "codex/sessions/2026/11/15/rollout-2026-11-15T12-00-00-5e551000-0000-4000-8000-000000000001.jsonl";
const SESSION: &str = "5e551000-0000-4000-8000-000000000001";

impl Desk {
    /// A line of Qwen Code.
    fn qwen(&self, id: &str, parent: Option<&str>, fields: Value) -> Value {
        let mut line = json!({"uuid": id, "parentUuid": parent, "sessionId": SESSION, "timestamp": "2026-11-15T12:00:00Z",
            "cwd": self.project(), "version": "0.24.4"});
        line.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        line
    }

    fn qwen_prompt(&self, id: &str, parent: Option<&str>) -> Value {
        self.qwen(id, parent, json!({"type": "user", "message": {"role": "user", "parts": [{"text": id}]}}))
    }

    /// A call of a tool that writes a file, and its result.
    fn qwen_write(&self, id: &str, parent: &str, path: &str, content: &str, shown: Value) -> [Value; 2] {
        let (call, answer) = (format!("call-{id}"), format!("answer-{id}"));
        let args = json!({"file_path": self.project().join(path), "content": content});
        [
            self.qwen(
                &answer,
                Some(parent),
                json!({"type": "assistant", "model": "qwen3-coder-plus", "message": {"role": "model",
                "parts": [{"functionCall": {"id": call, "name": "write_file", "args": args}}]}}),
            ),
            self.qwen(
                id,
                Some(&answer),
                json!({"type": "tool_result", "message": {"role": "user", "parts": [{"functionResponse":
                {"id": call, "name": "write_file", "response": {"output": "written"}}}]},
                "toolCallResult": {"callId": call, "status": "success", "resultDisplay": shown}}),
            ),
        ]
    }

    fn qwen_snapshots(&self, id: &str, parent: &str, snapshots: Value) -> Value {
        let payload = json!({"snapshots": snapshots});
        self.qwen(
            id,
            Some(parent),
            json!({"type": "system", "subtype": "file_history_snapshot", "systemPayload": payload}),
        )
    }

    /// A copy in an agent's file history.
    fn copy(&self, place: &str, content: &str) {
        let place = self.root.join(place);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, content).unwrap();
    }

    fn history(&self, source: &Source) -> FileHistory {
        scrollback::write::file_history(&self.open(source), Some(&self.root.join("data")), Some(&self.project()))
            .unwrap()
    }

    /// The files of the project, with their texts.
    fn texts(&self) -> Vec<(String, String)> {
        let files = crate::support::place::files_below(&self.project());
        files.into_iter().map(|path| (path.clone(), self.read(&path).unwrap())).collect()
    }
}

fn texts(files: &[(&str, &str)]) -> Vec<(String, String)> {
    files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
}

/// A backup of Qwen Code or Claude Code: the first version, or another one.
fn backup(name: Option<&str>, version: u32) -> Value {
    json!({"backupFileName": name, "version": version, "backupTime": "2026-11-15T12:00:00Z"})
}

/// Three prompts: the second was rewound and said again, so that all snapshots were written again.
fn qwen_session(desk: &Desk) -> Source {
    for (name, content) in [("a@v1", "a one\n"), ("a@v2", "a two\n"), ("a@v3", "a three\n"), ("late@v1", "late one\n")]
    {
        desk.copy(&format!("qwen/file-history/{SESSION}/{name}"), content);
    }
    let first =
        json!({"promptId": "p1", "trackedFileBackups": {"a.py": backup(Some("a@v1"), 1), "new.py": backup(None, 1)}});
    let second =
        json!({"promptId": "p2", "trackedFileBackups": {"a.py": backup(Some("a@v2"), 2), "new.py": backup(None, 1)}});
    let third = json!({"promptId": "p3", "trackedFileBackups": {"a.py": backup(Some("a@v3"), 3), "late.py": backup(Some("late@v1"), 1)}});
    let nothing = || json!("written");
    let mut lines = vec![desk.qwen_prompt("u1", None), desk.qwen_snapshots("f1", "u1", json!([first]))];
    lines.extend(desk.qwen_write("r1", "f1", "a.py", "a two\n", nothing()));
    lines.extend([desk.qwen_prompt("u2", Some("r1")), desk.qwen_snapshots("f2", "u2", json!([second]))]);
    lines.extend(desk.qwen_write("r2", "f2", "a.py", "a three\n", nothing()));
    // Back to before the second prompt, which left its file as it is; everything is noted again.
    lines.push(desk.qwen(
        "w1",
        Some("r1"),
        json!({"type": "system", "subtype": "rewind", "systemPayload": {"truncatedCount": 2}}),
    ));
    lines.extend([desk.qwen_prompt("u3", Some("w1")), desk.qwen_snapshots("f3", "u3", json!([first, second, third]))]);
    lines.extend(desk.qwen_write("r3", "f3", "a.py", "a four\n", nothing()));
    lines.extend(desk.qwen_write("r4", "r3", "late.py", "late two\n", nothing()));
    desk.file("a.py", "a four\n");
    desk.file("late.py", "late two\n");
    desk.session("qwen-code", QWEN, &lines)
}

#[test]
fn qwen_codes_snapshots_stand_at_their_prompts() {
    let desk = Desk::new();
    let source = qwen_session(&desk);
    let log = fs::read(&source.path).unwrap();
    let now = texts(&[("a.py", "a four\n"), ("late.py", "late two\n")]);
    for (goal, expected) in [
        (Goal::LastTurn, texts(&[("a.py", "a three\n"), ("late.py", "late one\n")])),
        (Goal::Redo, now.clone()),
        (Goal::Before("u3".to_owned()), texts(&[("a.py", "a three\n"), ("late.py", "late one\n")])),
        (Goal::Redo, now.clone()),
        (Goal::Before("u2".to_owned()), texts(&[("a.py", "a two\n"), ("late.py", "late one\n")])),
        (Goal::Redo, now.clone()),
        // The first version of a file that was tracked later is what it was all the time.
        (Goal::Before("u1".to_owned()), texts(&[("a.py", "a one\n"), ("late.py", "late one\n")])),
        (Goal::Redo, now),
    ] {
        let planned = desk.planned(&source, &goal);
        assert!(planned.iter().all(|file| file.1 == Readiness::Ready), "{goal:?}: {planned:?}");
        desk.step(&source, &goal);
        assert_eq!(desk.texts(), expected, "{goal:?}");
    }
    assert_eq!(fs::read(&source.path).unwrap(), log, "another agent's file stays as it is");
}

#[test]
fn what_qwen_code_could_not_copy_is_reported() {
    let desk = Desk::new();
    let failed = json!({"backupFileName": null, "version": 1, "failed": true});
    let snapshot =
        json!([{"promptId": "p1", "trackedFileBackups": {"bad.py": failed, "gone.py": backup(Some("gone@v1"), 1)}}]);
    let mut lines = vec![desk.qwen_prompt("u1", None), desk.qwen_snapshots("f1", "u1", snapshot)];
    lines.extend(desk.qwen_write("r1", "f1", "bad.py", "now\n", json!("written")));
    lines.extend(desk.qwen_write("r2", "r1", "gone.py", "now\n", json!("written")));
    desk.file("bad.py", "now\n");
    desk.file("gone.py", "now\n");
    let source = desk.session("qwen-code", QWEN, &lines);
    let missing = format!(
        "its backup is missing: {}",
        desk.root.join("qwen/file-history").join(SESSION).join("gone@v1").display()
    );
    let failed = |path: &str, why: &str| (path.to_owned(), Readiness::Failed, why.to_owned());
    let expected = [failed("bad.py", "the agent could not copy it"), failed("gone.py", &missing)];
    assert_eq!(desk.planned(&source, &Goal::LastTurn), expected);
}

/// Two turns of Qwen Code that replaced a word each, with what its file history says of the file at each prompt.
fn qwen_turns(desk: &Desk, backups: [Value; 2], has_notes: bool) -> Source {
    let mut lines = Vec::new();
    let mut last = None;
    for (number, (words, backup)) in [["one", "two"], ["two", "three"]].into_iter().zip(backups).enumerate() {
        let [user, snapshot, result] = ["u", "f", "r"].map(|kind| format!("{kind}{}", number + 1));
        let entry = json!([{"promptId": format!("p{number}"), "trackedFileBackups": {"a.py": backup}}]);
        lines.push(desk.qwen_prompt(&user, last.as_deref()));
        lines.push(desk.qwen_snapshots(&snapshot, &user, entry));
        let [old, new] = words;
        let noted =
            json!({"fileName": "a.py", "originalContent": format!("{old}\n"), "newContent": format!("{new}\n")});
        let shown = if has_notes { noted } else { json!("replaced") };
        let [mut call, mut answer] = desk.qwen_write(&result, &snapshot, "a.py", "", shown);
        let place = desk.project().join("a.py");
        call["message"]["parts"][0]["functionCall"] = json!({"id": format!("call-{result}"), "name": "edit",
            "args": {"file_path": place, "old_string": old, "new_string": new}});
        answer["message"]["parts"][0]["functionResponse"]["name"] = json!("edit");
        lines.extend([call, answer]);
        last = Some(result);
    }
    desk.file("a.py", "three\n");
    desk.session("qwen-code", QWEN, &lines)
}

#[test]
fn a_copy_that_failed_or_is_missing_is_said_whatever_else_is_known() {
    let failed = || json!({"backupFileName": null, "version": 2, "failed": true});
    let could_not = "the agent could not copy it";
    let missing = "its backup is missing";
    for (what, second, why) in [("failed", failed(), could_not), ("missing", backup(Some("gone@v2"), 2), missing)] {
        for has_notes in [false, true] {
            let desk = Desk::new();
            desk.copy(&format!("qwen/file-history/{SESSION}/a@v1"), "one\n");
            let source = qwen_turns(&desk, [backup(Some("a@v1"), 1), second.clone()], has_notes);
            let check = |goal: &Goal, expected: Readiness, why: &str| {
                let (_, state, reason) = desk.planned(&source, goal).remove(0);
                assert_eq!(state, expected, "{what} {goal:?} {has_notes} {reason}");
                assert!(reason.contains(why) && !reason.contains("os error"), "{what} {goal:?} {reason}");
            };
            check(&Goal::LastTurn, Readiness::Failed, why);
            // What the agent noted in the second turn tells that nobody else changed the file between the two.
            match has_notes {
                true => check(&Goal::Before("u1".to_owned()), Readiness::Ready, ""),
                false => check(&Goal::Before("u1".to_owned()), Readiness::Failed, why),
            }
        }
    }
}

#[test]
fn what_somebody_changed_where_a_copy_failed_is_a_conflict() {
    let desk = Desk::new();
    desk.copy(&format!("qwen/file-history/{SESSION}/a@v1"), "one\n");
    let failed = json!({"backupFileName": null, "version": 2, "failed": true});
    let source = qwen_turns(&desk, [backup(Some("a@v1"), 1), failed], true);
    let log = fs::read_to_string(&source.path).unwrap();
    let log = log
        .replace(r#""originalContent":"two\n""#, r#""originalContent":"two\nmine\n""#)
        .replace(r#""newContent":"three\n""#, r#""newContent":"three\nmine\n""#);
    fs::write(&source.path, log).unwrap();
    desk.file("a.py", "three\nmine\n");
    assert_eq!(desk.planned(&source, &Goal::Before("u1".to_owned()))[0].1, Readiness::Conflict);
}

#[test]
fn a_name_of_a_copy_that_is_no_plain_name_is_refused() {
    for name in [
        "../2697143bd723d6a9@v2",
        "x/2697143bd723d6a9@v2",
        "/etc/2697143bd723d6a9@v2",
        "..\\2697143bd723d6a9@v2",
        "2697\0",
        "..",
        ".",
    ] {
        let desk = Desk::new();
        let source = desk.claude();
        let log = fs::read_to_string(&source.path).unwrap();
        fs::write(&source.path, log.replace("\"2697143bd723d6a9@v2\"", &json!(name).to_string())).unwrap();
        let (_, state, reason) = desk.planned(&source, &Goal::LastTurn).remove(0);
        assert_eq!(state, Readiness::Refused, "{name:?}: {reason}");
        assert!(reason.contains("outside"), "{name:?}: {reason}");
    }
}

/// A session of Sage with these snapshots in a file of their own.
fn sage_session(desk: &Desk, snapshots: &[Value]) -> Source {
    let line = |kind: &str, id: &str, parent: Value| {
        json!({"type": kind, "uuid": id, "parentUuid": parent, "timestamp": "2026-11-15T12:00:00Z", "sessionId": "s1",
            "context": {"cwd": desk.project()}, "message": {"role": kind, "content": id}})
    };
    let lines = [
        line("user", "u1", Value::Null),
        line("assistant", "a1", json!("u1")),
        line("user", "u2", json!("a1")),
        line("assistant", "a2", json!("u2")),
    ];
    desk.session("native", ".sage/sessions/s1/snapshots.jsonl", snapshots);
    desk.session("native", ".sage/sessions/s1/messages.jsonl", &lines)
}

fn sage_snapshot(message: &str, is_update: bool, tracked: Value, backups: Value) -> Value {
    json!({"type": "file_history_snapshot", "messageId": message, "timestamp": "2026-11-15T12:00:00Z",
        "isSnapshotUpdate": is_update, "snapshot": {"trackedFiles": tracked, "fileBackups": backups}})
}

#[test]
fn sages_snapshots_stand_where_their_messages_stand() {
    let desk = Desk::new();
    desk.copy(".sage/sessions/s1/backups/beside.txt_1.backup", "beside one\n");
    desk.copy("project/.sage/backups/inside.txt_1.backup", "inside one\n");
    let tracked = |original: Value, after: &str, state: &str| json!({"originalContent": original, "contentHash": sha256(after), "size": after.len(), "state": state});
    let copy = |name: &str, content: &str| json!({"backupPath": name, "originalHash": sha256(content)});
    // The file is written at the end, so that its lines come in any order; one message has an update.
    let snapshots = [
        sage_snapshot(
            "a2",
            false,
            json!({"inline.txt": tracked(json!("inline two\n"), "inline three\n", "modified"),
                "created.txt": tracked(Value::Null, "created\n", "created")}),
            json!({}),
        ),
        sage_snapshot(
            "a1",
            false,
            json!({"inline.txt": tracked(json!("inline one\n"), "inline and a half\n", "modified"),
                "beside.txt": tracked(Value::Null, "beside two\n", "modified")}),
            json!({"beside.txt": copy("/gone/sessions/s1/backups/beside.txt_1.backup", "beside one\n")}),
        ),
        sage_snapshot(
            "a1",
            true,
            json!({"inline.txt": tracked(json!("inline and a half\n"), "inline two\n", "modified"),
                // A null original is no proof of absence if a copy exists.
                "inside.txt": tracked(Value::Null, "inside two\n", "created")}),
            json!({"inside.txt": copy(".sage/backups/inside.txt_1.backup", "inside one\n")}),
        ),
    ];
    let files: &[(&str, &str)] = &[("beside.txt", "beside two\n"), ("inside.txt", "inside two\n")];
    let now = [files, &[("inline.txt", "inline three\n"), ("created.txt", "created\n")]].concat();
    now.iter().for_each(|(path, text)| _ = desk.file(path, text));
    let source = sage_session(&desk, &snapshots);
    let own = |desk: &Desk| {
        let mut found = desk.texts();
        found.retain(|(path, _)| !path.starts_with(".sage/"));
        found.sort();
        found
    };
    let sorted = |files: &[(&str, &str)]| {
        let mut files = texts(files);
        files.sort();
        files
    };
    let session = desk.open(&source);
    let history = scrollback::write::file_history(&session, None, None).unwrap();
    let path = history.find("inline.txt", &desk.project()).unwrap();
    for change in history.rows().into_iter().find(|row| row.path == "inline.txt").unwrap().changes {
        let [record, message] = [&change.record, &change.message].map(|id| session.record(id).unwrap());
        let after = |record| history.version_after(path, record);
        assert_eq!(after(record), after(message), "a snapshot counts where its message stands: {change:?}");
    }
    for (goal, expected) in [
        (Goal::LastTurn, [files, &[("inline.txt", "inline two\n")]].concat()),
        (
            Goal::LastTurn,
            vec![("beside.txt", "beside one\n"), ("inside.txt", "inside one\n"), ("inline.txt", "inline one\n")],
        ),
        (Goal::Redo, [files, &[("inline.txt", "inline two\n")]].concat()),
        (Goal::Redo, now),
    ] {
        let planned = desk.planned(&source, &goal);
        assert!(planned.iter().all(|file| file.1 == Readiness::Ready), "{goal:?}: {planned:?}");
        desk.step(&source, &goal);
        assert_eq!(own(&desk), sorted(&expected), "{goal:?}");
    }
}

#[test]
fn a_file_that_sage_calls_new_is_not_deleted_if_it_may_have_been_something_else() {
    let desk = Desk::new();
    let hash = desk.file("data.bin", b"\0\xff not text");
    let tracked = json!({"data.bin": {"originalContent": null, "contentHash": hash, "state": "created"}});
    let source = sage_session(&desk, &[sage_snapshot("a2", false, tracked, json!({}))]);
    assert_eq!(desk.planned(&source, &Goal::LastTurn)[0].1, Readiness::Unproven);
}

/// What a plan says of the only file, and the file after it.
fn rebuilt(desk: &Desk, source: &Source) -> (Readiness, bool, Option<String>) {
    let session = desk.open(source);
    let undo = Undo::open(&session, desk.host(), Some(&desk.project())).unwrap();
    let plan = undo.plan(&Goal::LastTurn, Scope::FilesOnly).unwrap();
    let [file] = plan.files.as_slice() else { panic!("{:?}", plan.files) };
    if plan.is_ready(Blocked::Stop) {
        undo.apply(&plan, Blocked::Stop).unwrap();
    }
    (file.state, file.is_rebuilt, desk.read(&file.path))
}

/// One turn of Claude Code with calls of its tools and what it noted of them.
fn claude_session(desk: &Desk, calls: &[(&str, Value, Value)]) -> Source {
    let line = |kind: &str, id: &str, parent: Option<&str>, message: Value| {
        json!({"type": kind, "uuid": id, "parentUuid": parent, "sessionId": SESSION, "timestamp": "2026-11-15T12:00:00Z",
            "cwd": desk.project(), "version": "2.1.325", "isSidechain": false, "userType": "external", "message": message})
    };
    let mut lines = vec![line("user", "u1", None, json!({"role": "user", "content": "Change it."}))];
    let mut last = "u1".to_owned();
    for (number, (name, input, note)) in calls.iter().enumerate() {
        let (call, answer, result) = (format!("toolu_{number}"), format!("a{number}"), format!("r{number}"));
        let content = json!([{"type": "tool_use", "id": call, "name": name, "input": input}]);
        let message =
            json!({"role": "assistant", "id": format!("msg_{number}"), "model": "claude-opus-5-5", "content": content});
        lines.push(line("assistant", &answer, Some(&last), message));
        let content = json!([{"type": "tool_result", "tool_use_id": call, "content": "done"}]);
        let mut answered = line("user", &result, Some(&answer), json!({"role": "user", "content": content}));
        if !note.is_null() {
            answered["toolUseResult"] = note.clone();
        }
        lines.push(answered);
        last = result;
    }
    desk.session("claude-code", CLAUDE, &lines)
}

#[test]
fn edits_of_claude_code_without_copies_are_taken_back() {
    let edit = |old: &str, new: &str| {
        ("Edit", json!({"file_path": "a.txt", "old_string": old, "new_string": new}), Value::Null)
    };
    let noted = |original: &str| {
        let patch = json!([{"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": ["-one", "+two"]}]);
        json!({"filePath": "a.txt", "oldString": "one", "newString": "two", "originalFile": original,
            "structuredPatch": patch, "userModified": false, "replaceAll": false})
    };
    let (_, input, _) = edit("one", "two");
    let write = |content: &str, note: Value| ("Write", json!({"file_path": "a.txt", "content": content}), note);
    let new =
        json!({"type": "create", "filePath": "a.txt", "content": "two\n", "structuredPatch": [], "originalFile": null});
    let ready = |text: &str| (Readiness::Ready, true, Some(text.to_owned()));
    for (what, calls, now, expected) in [
        ("the original file", vec![("Edit", input.clone(), noted("one\n"))], "two\n", ready("one\n")),
        (
            "two originals",
            vec![
                write(
                    "one\n",
                    json!({"type": "update", "filePath": "a.txt", "originalFile": "zero\n", "content": "one\n"}),
                ),
                ("Edit", input.clone(), noted("one\n")),
            ],
            "two\n",
            ready("zero\n"),
        ),
        ("a new file", vec![write("two\n", new)], "two\n", (Readiness::Ready, false, None)),
        ("only the edit", vec![edit("one", "two")], "say two\n", ready("say one\n")),
        ("edits one after the other", vec![edit("one", "two"), edit("say", "sing")], "sing two\n", ready("say one\n")),
    ] {
        let desk = Desk::new();
        desk.file("a.txt", now);
        let source = claude_session(&desk, &calls);
        assert_eq!(rebuilt(&desk, &source), expected, "{what}");
    }
    for (what, calls, now, state) in [
        ("nobody knows where the text was", vec![edit(" more", "")], "one\n", Readiness::Unproven),
        ("the new text was there before", vec![edit("b", "a")], "a a\n", Readiness::Unproven),
        ("the edit is not on disk", vec![edit("one", "two")], "three\n", Readiness::Unproven),
        ("a file that was written without a copy", vec![write("two\n", Value::Null)], "two\n", Readiness::Unproven),
        ("the file was changed since", vec![("Edit", input, noted("one\n"))], "two, and more\n", Readiness::Conflict),
    ] {
        let desk = Desk::new();
        desk.file("a.txt", now);
        let source = claude_session(&desk, &calls);
        let (found, _, text) = rebuilt(&desk, &source);
        assert_eq!((found, text.as_deref()), (state, Some(now)), "{what}");
    }
}

/// Claude Code notes only line feeds of a file that has carriage returns, too.
#[test]
fn what_was_noted_without_carriage_returns_comes_back_with_them() {
    let call = |old: &str, new: &str, original: &str| {
        let input = json!({"file_path": "a.txt", "old_string": old, "new_string": new});
        ("Edit", input, json!({"filePath": "a.txt", "originalFile": original, "userModified": false}))
    };
    let one = || call("two", "2", "one\ntwo\nthree");
    let ready = (Readiness::Ready, "one\r\ntwo\r\nthree");
    for (what, calls, now, expected) in [
        ("one edit", vec![one()], "one\r\n2\r\nthree", ready),
        ("two edits", vec![one(), call("one\n2", "1\n2", "one\n2\nthree")], "1\r\n2\r\nthree", ready),
        ("changed since", vec![one()], "one\r\n2\r\nthree\r\nmine", (Readiness::Conflict, "one\r\n2\r\nthree\r\nmine")),
        ("line feeds, too", vec![one()], "one\r\n2\nthree", (Readiness::Ready, "one\r\ntwo\nthree")),
        (
            "something else in between",
            vec![one(), call("one", "1", "one\n2\nthree\n")],
            "1\r\n2\r\nthree",
            (Readiness::Conflict, "1\r\n2\r\nthree"),
        ),
    ] {
        let desk = Desk::new();
        desk.file("a.txt", now);
        let source = claude_session(&desk, &calls);
        let (state, _, text) = rebuilt(&desk, &source);
        assert_eq!((state, text.as_deref()), (expected.0, Some(expected.1)), "{what}");
    }
}

#[test]
fn qwen_codes_notes_of_both_contents_are_used() {
    let desk = Desk::new();
    let shown = json!({"fileName": "a.txt", "originalContent": "one\n", "newContent": "two\n",
        "fileDiff": "--- a.txt\n+++ a.txt\n@@ -1,1 +1,1 @@\n-one\n+two\n"});
    let mut lines = vec![desk.qwen_prompt("u1", None)];
    lines.extend(desk.qwen_write("r1", "u1", "a.txt", "two\n", shown));
    desk.file("a.txt", "two\n");
    let source = desk.session("qwen-code", QWEN, &lines);
    assert_eq!(rebuilt(&desk, &source), (Readiness::Ready, true, Some("one\n".to_owned())));
}

#[test]
fn a_file_that_qwen_code_made_goes_away_and_what_may_have_been_empty_is_not_touched() {
    let shown = json!({"fileName": "a.txt", "originalContent": "", "newContent": "one\n",
        "fileDiff": "--- a.txt\tOriginal\n+++ a.txt\tWritten\n@@ -0,0 +1,1 @@\n+one\n"});
    let edited = json!({"fileName": "a.txt", "originalContent": "one\n", "newContent": "two\n",
        "fileDiff": "--- a.txt\n+++ a.txt\n@@ -1,1 +1,1 @@\n-one\n+two\n"});
    for (answer, expected, action) in [
        ("Successfully created and wrote to new file: a.txt.", (Readiness::Ready, false, None), "created"),
        ("Successfully overwrote file: a.txt.", (Readiness::Unproven, false, Some("two\n".to_owned())), "modified"),
    ] {
        let desk = Desk::new();
        let mut lines = vec![desk.qwen_prompt("u1", None)];
        lines.extend(desk.qwen_write("r1", "u1", "a.txt", "one\n", shown.clone()));
        lines[2]["message"]["parts"][0]["functionResponse"]["response"]["output"] = answer.into();
        lines.extend(desk.qwen_write("r2", "r1", "a.txt", "two\n", edited.clone()));
        desk.file("a.txt", "two\n");
        let source = desk.session("qwen-code", QWEN, &lines);
        let rows = desk.history(&source).rows();
        assert_eq!(rows[0].changes[0].action.name(), action, "{answer}");
        assert_eq!(rebuilt(&desk, &source), expected, "{answer}");
    }
}

#[test]
fn what_an_agent_wrote_as_a_whole_does_not_prove_what_was_there_before() {
    let replaced = |old: &str, new: &str| json!({"file_path": "a.txt", "old_string": old, "new_string": new});
    let written = |content: &str| json!({"file_path": "a.txt", "content": content});
    let noted = |old: &str| json!({"type": "update", "filePath": "a.txt", "originalFile": old, "structuredPatch": []});
    let patch = |old: &str| {
        let lines = [format!("-{old}"), "+agent two".to_owned()];
        json!({"type": "update", "structuredPatch": [{"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": lines}]})
    };
    let two = || ("Write", written("agent two\n"), Value::Null);
    let edit = || ("Edit", replaced("one", "uno"), Value::Null);
    let unproven = (Readiness::Unproven, true, "agent two\n");
    for (what, later, expected) in [
        ("nothing else is known", vec![two()], unproven),
        ("an edit that fits before it", vec![edit(), two()], unproven),
        (
            "what was there",
            vec![("Write", written("agent two\n"), noted("agent one\n"))],
            (Readiness::Ready, true, "agent one\n"),
        ),
        (
            "something else was there",
            vec![("Write", written("agent two\n"), noted("mine\n"))],
            (Readiness::Ready, true, "mine\n"),
        ),
        (
            "the difference",
            vec![("Write", written("agent two\n"), patch("agent one"))],
            (Readiness::Ready, true, "agent one\n"),
        ),
        ("another difference", vec![("Write", written("agent two\n"), patch("mine"))], unproven),
        // The note shows what the edit was made in.
        (
            "an edit in something else",
            vec![edit(), ("Write", written("agent two\n"), noted("agent uno\nmine\n"))],
            unproven,
        ),
        (
            "an edit in what is known",
            vec![edit(), ("Write", written("agent two\n"), noted("agent uno\n"))],
            (Readiness::Ready, true, "agent one\n"),
        ),
    ] {
        let desk = Desk::new();
        let new = json!({"type": "create", "filePath": "a.txt", "originalFile": null});
        let mut calls = vec![("Write", written("agent one\n"), new)];
        calls.extend(later);
        let source = claude_session(&desk, &calls);
        // The second prompt comes after the first call.
        let lines: Vec<String> = fs::read_to_string(&source.path).unwrap().lines().map(str::to_owned).collect();
        let second = lines[0].replace("\"u1\"", "\"u2\"").replace("\"parentUuid\":null", "\"parentUuid\":\"r0\"");
        let answer = lines[3].replace("\"parentUuid\":\"r0\"", "\"parentUuid\":\"u2\"");
        let lines = [&lines[..3], &[second, answer], &lines[4..]].concat();
        fs::write(&source.path, lines.join("\n") + "\n").unwrap();
        desk.file("a.txt", "agent two\n");
        let (state, is_rebuilt, text) = rebuilt(&desk, &source);
        assert_eq!((state, is_rebuilt, text.as_deref()), (expected.0, expected.1, Some(expected.2)), "{what}");
    }
}

#[test]
fn patches_of_codex_are_taken_back_if_they_were_applied() {
    let session = |desk: &Desk, patch: &str, output: &str| {
        let item =
            |payload: Value| json!({"timestamp": "2026-11-15T12:00:00Z", "type": "response_item", "payload": payload});
        let meta = json!({"id": SESSION, "timestamp": "2026-11-15T12:00:00Z", "cwd": desk.project(), "originator": "codex_cli_rs",
            "cli_version": "0.166.0", "source": "cli"});
        let lines = [
            json!({"timestamp": "2026-11-15T12:00:00Z", "type": "session_meta", "payload": meta}),
            item(json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Change it."}]})),
            item(
                json!({"type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "input": patch, "status": "completed"}),
            ),
            item(json!({"type": "custom_tool_call_output", "call_id": "c1", "output": output})),
        ];
        desk.session("codex", CODEX, &lines)
    };
    let done =
        json!({"output": "Success. Updated the following files:\nM a.txt\n", "metadata": {"exit_code": 0}}).to_string();
    let update = "*** Begin Patch\n*** Update File: a.txt\n@@\n zero\n-one\n+two\n*** End Patch\n";
    let add = "*** Begin Patch\n*** Add File: a.txt\n+new\n*** End Patch\n";
    let remove = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n*** End Patch\n";
    for (patch, now, expected) in [
        (update, "zero\ntwo\n", (Readiness::Ready, true, Some("zero\none\n".to_owned()))),
        // The agent adds a file over one that was there, and does not tell.
        (add, "new\n", (Readiness::Unproven, false, Some("new\n".to_owned()))),
        // Nothing says where the deleted line stood.
        (remove, "zero\n", (Readiness::Unproven, false, Some("zero\n".to_owned()))),
    ] {
        let desk = Desk::new();
        desk.file("a.txt", now);
        let source = session(&desk, patch, &done);
        assert_eq!(rebuilt(&desk, &source), expected, "{patch}");
    }
    let desk = Desk::new();
    desk.file("a.txt", "zero\ntwo\n");
    let failed = "apply_patch verification failed: Failed to find expected lines in a.txt:\none";
    let source = session(&desk, update, failed);
    assert_eq!(desk.planned(&source, &Goal::LastTurn), [], "a patch that failed changed nothing");
}

#[test]
fn a_copy_that_is_not_what_the_agent_saw_is_not_restored() {
    for (copy, expected) in [
        ("print(\"hello\")\r\n", None),
        ("print(\"hostile\")\n", Some("the copy is not what the agent saw before its edit")),
    ] {
        let desk = Desk::new();
        let source = desk.claude();
        desk.copy("claude/file-history/81362430-fc3d-485a-8970-a4cdcbaf9389/2697143bd723d6a9@v2", copy);
        let planned = desk.planned(&source, &Goal::LastTurn);
        let (path, state, reason) = &planned[0];
        match expected {
            Some(why) => assert_eq!((path.as_str(), *state, reason.as_str()), ("a.py", Readiness::Failed, why)),
            None => assert_ne!(*state, Readiness::Failed, "{reason}"),
        }
    }
}

/// The agent copies a file at the prompt, and notes it once more before its edit.
#[test]
fn after_a_prompt_the_copy_counts_that_was_made_there() {
    let desk = Desk::new();
    let source = desk.claude();
    let session = desk.open(&source);
    let prompts: Vec<String> = session
        .records()
        .filter(|record| record.kind() == scrollback::model::Kind::User)
        .map(|record| record.id().into_owned())
        .collect();
    let goal = Goal::After(prompts[1].clone());
    let undo = Undo::open(&session, desk.host(), Some(&desk.project())).unwrap();
    let plan = undo.plan(&goal, Scope::FilesOnly).unwrap();
    assert_eq!((plan.files[0].state, plan.files[0].is_rebuilt), (Readiness::Ready, false));
    fs::remove_file(desk.root.join("claude/file-history/81362430-fc3d-485a-8970-a4cdcbaf9389/2697143bd723d6a9@v2"))
        .unwrap();
    assert_eq!(desk.planned(&source, &goal)[0].1, Readiness::Failed);
}

/// Two turns of Claude Code, each an edit of which no copy was kept.
#[test]
fn a_second_undo_of_edits_without_copies_goes_one_turn_further() {
    let desk = Desk::new();
    let edit =
        |old: &str, new: &str| json!({"file_path": desk.project().join("a.py"), "old_string": old, "new_string": new});
    let calls = [("Edit", edit("one", "two"), Value::Null), ("Edit", edit("two", "three"), Value::Null)];
    let source = claude_session(&desk, &calls);
    let lines: Vec<String> = fs::read_to_string(&source.path).unwrap().lines().map(str::to_owned).collect();
    let second = lines[0].replace("\"u1\"", "\"u2\"").replace("\"parentUuid\":null", "\"parentUuid\":\"r0\"");
    let rest = [&lines[..3], &[second, lines[3].replace("\"r0\"", "\"u2\""), lines[4].clone()]].concat();
    fs::write(&source.path, rest.join("\n") + "\n").unwrap();
    desk.file("a.py", "say three\n");
    let step = |goal: &Goal| desk.step(&source, goal).1.unwrap_or_default();
    assert_eq!(step(&Goal::LastTurn), "say two\n");
    assert_eq!(step(&Goal::LastTurn), "say one\n");
    assert_eq!(step(&Goal::Redo), "say two\n");
    // What a person changes in between is not overwritten.
    desk.file("a.py", "say two, loudly\n");
    assert_eq!(desk.planned(&source, &Goal::LastTurn)[0].1, Readiness::Conflict);
}

/// Claude Code names every file that it tracks again at each prompt.
#[test]
fn a_path_outside_blocks_only_an_undo_to_before_its_change() {
    let desk = Desk::new();
    let outside = desk.root.join("outside.txt");
    let edit = |path: &Path| ("Write", json!({"file_path": path, "content": "two\n"}), Value::Null);
    let source = claude_session(&desk, &[edit(&outside), edit(&desk.project().join("a.py"))]);
    let tracked = json!({"trackedFileBackups": {outside.to_str().unwrap(): backup(None, 1)}});
    let mut text = fs::read_to_string(&source.path).unwrap();
    for message in ["u1", "a1"] {
        text += &format!(
            "{}\n",
            json!({"type": "file-history-snapshot", "messageId": message, "snapshot": tracked, "isSnapshotUpdate": false})
        );
    }
    fs::write(&source.path, text).unwrap();
    desk.file("a.py", "two\n");
    let refused = |goal: &str| {
        let planned = desk.planned(&source, &Goal::Before(goal.to_owned()));
        planned.iter().any(|(_, state, _)| *state == Readiness::Refused)
    };
    assert_eq!((refused("u1"), refused("a1")), (true, false));
    let rows = desk.history(&source).rows();
    let paths: Vec<&str> = rows.iter().map(|row| row.path.as_str()).collect();
    assert_eq!(paths, ["a.py", outside.to_str().unwrap()], "what undo refuses is a change, too");
}

#[test]
fn what_an_undo_rebuilds_can_be_looked_at() {
    let desk = Desk::new();
    let edit = |old: &str, new: &str| {
        ("Edit", json!({"file_path": "a.txt", "old_string": old, "new_string": new}), Value::Null)
    };
    let source = claude_session(&desk, &[edit("one", "two"), edit("say", "sing")]);
    desk.file("a.txt", "sing two\n");
    let (session, history) = (desk.open(&source), desk.history(&source));
    let path = history.find("a.txt", &desk.project()).unwrap();
    let text = |version: Option<KnownVersion>| String::from_utf8(version?.ok()?.bytes().ok()??).ok();
    let after = |record: &str| text(history.version_after(path, session.find(record).unwrap()));
    assert_eq!(text(history.version_at_start(path)).as_deref(), Some("say one\n"));
    assert_eq!([after("u1"), after("a0")].map(Option::unwrap), ["say one\n", "say two\n"]);
    assert_eq!(after("a1"), None, "nothing proves what is on disk");
    let record = |id: &str| Some(session.find(id).unwrap());
    let changed =
        [("u1", "a0"), ("a0", "a1"), ("a1", "r1")].map(|(a, b)| history.is_changed_between(path, record(a), record(b)));
    assert_eq!(changed, [true, true, false]);
    assert!(!history.is_changed_between(path, None, record("u1")));
}

#[test]
fn a_snapshot_of_an_answer_with_one_call_names_its_tool() {
    for (calls, tool) in [(vec!["shell"], Some("shell")), (vec!["shell", "write"], None), (vec![], None)] {
        let desk = Desk::new();
        let tracked =
            json!({"a.txt": {"originalContent": "one\n", "contentHash": sha256("two\n"), "state": "modified"}});
        let source = desk.native(&tracked, &json!({}));
        let log = fs::read_to_string(&source.path).unwrap();
        let mut lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let call = |name: &str| json!({"id": format!("call-{name}"), "name": name, "arguments": {"command": "make"}});
        lines[1]["message"]["toolCalls"] = calls.iter().map(|name| call(name)).collect();
        fs::write(&source.path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
        let rows = desk.history(&source).rows();
        assert_eq!(rows[0].changes[0].tool.as_deref(), tool, "{calls:?}");
    }
}

#[test]
fn a_copy_that_is_missing_between_is_nobody_elses_change() {
    let desk = Desk::new();
    let tracked = |text: &str| json!({"a.txt": {"contentHash": sha256(text), "state": "modified"}});
    let copy = |name: &str| json!({"a.txt": {"backupPath": name}});
    let source = sage_session(
        &desk,
        &[
            sage_snapshot("a1", false, tracked("two\n"), copy("one.backup")),
            sage_snapshot("a2", false, tracked("three\n"), copy("two.backup")),
        ],
    );
    desk.copy(".sage/sessions/s1/backups/one.backup", "one\n");
    desk.file("a.txt", "three\n");
    let first = || desk.planned(&source, &Goal::Before("u1".to_owned())).remove(0);
    let (_, state, why) = first();
    assert_eq!((state, why.contains("its backup is missing")), (Readiness::Failed, true), "{why}");
    desk.copy(".sage/sessions/s1/backups/two.backup", "somebody's\n");
    assert_eq!(first().1, Readiness::Conflict);
    desk.copy(".sage/sessions/s1/backups/two.backup", "two\n");
    assert_eq!(first().1, Readiness::Ready);
}

#[cfg(unix)]
#[test]
fn bits_that_would_be_lost_are_a_conflict() {
    use std::os::unix::fs::PermissionsExt;
    let desk = Desk::new();
    let source = desk.claude();
    fs::set_permissions(desk.project().join("a.py"), fs::Permissions::from_mode(0o4755)).unwrap();
    let planned = desk.planned(&source, &Goal::LastTurn);
    assert_eq!(
        (planned[0].1, planned[0].2.as_str()),
        (Readiness::Conflict, "its set-user-id, set-group-id or sticky bit would be lost")
    );
}

/// A session of Qwen Code in a folder of a repository, which made a file there.
#[test]
fn a_converted_session_names_the_same_files_in_a_folder_of_a_repository() {
    let desk = Desk::new();
    fs::create_dir(desk.project().join(".git")).unwrap();
    let in_web = |mut line: Value| {
        line["cwd"] = json!(desk.project().join("web"));
        line
    };
    let made = json!({"promptId": "p1", "trackedFileBackups": {"new.py": backup(None, 1)}});
    let mut lines = vec![desk.qwen_prompt("u1", None), desk.qwen_snapshots("f1", "u1", json!([made]))];
    lines.extend(desk.qwen_write("r1", "f1", "web/new.py", "new\n", json!("written")));
    let lines: Vec<Value> = lines.into_iter().map(in_web).collect();
    let source = desk.session("qwen-code", QWEN, &lines);
    desk.file("web/new.py", "new\n");
    desk.file("new.py", "somebody else's\n");
    let planned = desk.planned(&source, &Goal::LastTurn);
    assert_eq!(planned[0].0, "web/new.py");
    let file = desk.root.join("converted.jsonl");
    let native = scrollback::dialect::named("native").unwrap();
    let how = Conversion { to: native, target: Target::File(&file), head: None, with: None };
    desk.open(&source).convert(&how, &desk.host()).unwrap();
    assert_eq!(desk.planned(&Source::file(native, &file), &Goal::LastTurn), planned);
    // And back, to a format that names files from the working directory.
    let (again, qwen) = (desk.root.join("again.jsonl"), scrollback::dialect::named("qwen-code").unwrap());
    // Beside its sidecar, it would become the original again.
    let alone = desk.root.join("alone.jsonl");
    fs::copy(&file, &alone).unwrap();
    let how = Conversion { to: qwen, target: Target::File(&again), head: None, with: None };
    desk.open(&Source::file(native, &alone)).convert(&how, &desk.host()).unwrap();
    assert_eq!(desk.planned(&Source::file(qwen, &again), &Goal::LastTurn), planned);
}
