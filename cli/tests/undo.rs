//! `undo`, `redo` and `files`, end to end: what they say, what they print for programs, and what they refuse.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

#[cfg(target_os = "linux")]
#[path = "undo/calls.rs"]
mod calls;
mod support;

use std::fs;
use std::path::{Path, PathBuf};

use insta::assert_snapshot;
use serde_json::{Value, json};
use support::TestEnv;

/// A project with a native session of two turns: `u1` edits a file, `u2` makes another one.
struct Desk {
    env: TestEnv,
    log: PathBuf,
}

impl Desk {
    fn new() -> Desk {
        let env = TestEnv::new();
        let project = env.work();
        let line = |kind: &str, id: &str, parent: Option<&str>, minute: u32, text: &str| {
            json!({"type": kind, "uuid": id, "parentUuid": parent, "sessionId": "s1", "format": 2, "version": "1",
                "timestamp": format!("2026-11-15T10:{minute:02}:00Z"), "context": {"cwd": project},
                "message": {"role": kind, "content": text}})
        };
        let snapshot = |message: &str, minute: u32, files: Value| {
            json!({"type": "file_history_snapshot", "messageId": message, "sessionId": "s1", "format": 2,
                "timestamp": format!("2026-11-15T10:{minute:02}:30Z"), "isSnapshotUpdate": false,
                "snapshot": {"trackedFiles": files, "fileBackups": {}}})
        };
        let todo = |status: &str| json!([{"content": "Write the table", "status": status, "activeForm": "Writing"}]);
        let mut asked = line("user", "u2", Some("a1"), 2, "Add a note.");
        asked["todos"] = todo("in_progress");
        let lines = [
            line("user", "u1", None, 0, "Fix the tide table."),
            line("assistant", "a1", Some("u1"), 1, "High water is at 04:12."),
            snapshot(
                "a1",
                1,
                json!({"tides.txt": {"originalContent": "03:10\n", "contentHash": sha256("04:12\n"), "size": 6, "state": "modified"}}),
            ),
            asked,
            line("assistant", "a2", Some("u2"), 3, "Noted."),
            snapshot(
                "a2",
                3,
                json!({"notes/new.txt": {"originalContent": null, "contentHash": sha256("see tides\n"), "size": 10, "state": "created"}}),
            ),
        ];
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let log = env.session("s1", &text);
        fs::write(project.join("tides.txt"), "04:12\n").unwrap();
        fs::create_dir(project.join("notes")).unwrap();
        fs::write(project.join("notes/new.txt"), "see tides\n").unwrap();
        Desk { env, log }
    }

    fn run(&self, args: &[&str]) -> String {
        without_ids(&self.env.run(args).all())
    }

    fn file(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.env.work().join(path)).ok()
    }

    fn last_line(&self) -> Value {
        serde_json::from_str(fs::read_to_string(&self.log).unwrap().lines().last().unwrap()).unwrap()
    }
}

/// The SHA-256 of a text, as `sha256sum` prints it.
fn sha256(text: &str) -> &'static str {
    match text {
        "04:12\n" => "9ed72db0612ce7e79d2f4d69b24b3b969b07bd305359570c5612238add0bb887",
        "see tides\n" => "88dd7b325f27a2be2d5f4f0f0397ebcb3efa6d00f8d13fc67c2dbea12f919de7",
        _ => unreachable!("{text}"),
    }
}

/// Ids are fresh at each run, whole or short.
fn without_ids(text: &str) -> String {
    let is_short = |word: &str| word.len() == 8 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_id = |word: &str| is_short(word) || (word.len() == 36 && word.matches('-').count() == 4);
    let words = text.split_inclusive(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-');
    let shown = words.map(|word| {
        let name = word.trim_end_matches(|letter: char| !letter.is_ascii_alphanumeric());
        if is_id(name) { word.replace(name, "ID") } else { word.to_owned() }
    });
    shown.collect()
}

#[test]
fn turns_are_undone_one_after_the_other_and_redone() {
    let desk = Desk::new();
    assert_snapshot!(desk.run(&["undo", "s1", "--yes"]), @"
    Restore files to before u2 “Add a note.”:
      delete  notes/new.txt
      the conversation continues from a1
    restored 1 file
    [exit 0]
    Run `scrollback redo s1` to take it back.
    ");
    assert_eq!(desk.file("notes/new.txt"), None);
    let restore = desk.last_line();
    assert_eq!(
        (&restore["type"], &restore["target"], &restore["from"]),
        (&json!("restore"), &json!("u2"), &json!("a2"))
    );
    assert_eq!(restore["parentUuid"], "a1");
    assert_snapshot!(desk.run(&["undo", "s1", "--yes"]), @"
    Restore files to before u1 “Fix the tide table.”:
      restore  tides.txt
      1 file already as it should be
      the conversation continues from the start
    restored 1 file
    [exit 0]
    Run `scrollback redo s1` to take it back.
    ");
    assert_eq!(desk.file("tides.txt").as_deref(), Some("03:10\n"));
    assert_snapshot!(desk.run(&["undo", "s1", "--yes"]), @"
    [exit 0]
    Nothing to undo: the files are as they were then.
    ");
    assert_snapshot!(desk.run(&["redo", "s1", "--yes"]), @"
    Take back the undo to u1 “Fix the tide table.”:
      restore  tides.txt
      the conversation continues from ID
    restored 1 file
    [exit 0]
    Run `scrollback undo s1` to take it back.
    ");
    assert_eq!(desk.file("tides.txt").as_deref(), Some("04:12\n"));
    assert_eq!(desk.env.run(&["redo", "s1", "--yes"]).code, 0);
    assert_eq!(desk.file("notes/new.txt").as_deref(), Some("see tides\n"));
    assert_snapshot!(desk.run(&["redo", "s1", "--yes"]), @"
    [exit 0]
    Nothing to redo: there is no undo that was not taken back, or the agent has changed files since.
    ");
}

#[test]
fn nothing_is_changed_without_an_answer() {
    let desk = Desk::new();
    let before = fs::read(&desk.log).unwrap();
    assert_snapshot!(desk.run(&["undo", "s1"]), @"
    Restore files to before u2 “Add a note.”:
      delete  notes/new.txt
      the conversation continues from a1
    --- a/notes/new.txt
    +++ /dev/null
    @@ -1 +0,0 @@
    -see tides
    [exit 2]
    scrollback: nothing was changed
    hint: answer y, or add --yes
    ");
    let plan = desk.env.run(&["undo", "s1", "--json"]);
    assert_eq!((plan.code, &plan.json()["applied"]), (2, &json!(false)));
    assert_snapshot!(serde_json::to_string_pretty(&desk.env.run(&["undo", "s1#u1", "--dry-run", "--json"]).json()).unwrap(), @r#"
    {
      "session": "s1",
      "target": "u1",
      "applied": false,
      "files": [
        {
          "path": "notes/new.txt",
          "action": "delete",
          "state": "ready",
          "diff": "--- a/notes/new.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-see tides\n"
        },
        {
          "path": "tides.txt",
          "action": "restore",
          "state": "ready",
          "diff": "--- a/tides.txt\n+++ b/tides.txt\n@@ -1 +1 @@\n-04:12\n+03:10\n"
        }
      ],
      "head": "start"
    }
    "#);
    assert_eq!(fs::read(&desk.log).unwrap(), before);
    assert_eq!(desk.file("notes/new.txt").as_deref(), Some("see tides\n"));
}

#[test]
fn an_undo_that_would_change_nothing_is_not_recorded() {
    let desk = Desk::new();
    for (undo, why) in [
        (
            &["undo", "s1#u2", "--yes"][..],
            "no file has changed since then. `scrollback undo s1#u1` undoes the last turn that changed files.",
        ),
        (&["undo", "s1#u1", "--yes"], "the files are as they were then."),
        (
            &["undo", "s1", "--to", "a2", "--yes"],
            "no file has changed since then. `scrollback undo s1#u2` undoes the last turn that changed files.",
        ),
    ] {
        assert_eq!(desk.env.run(undo).code, 0);
        let log = fs::read(&desk.log).unwrap();
        let again = desk.env.run(undo);
        assert_eq!((again.code, again.err.trim_end()), (0, &*format!("Nothing to undo: {why}")), "{undo:?}");
        assert_eq!(fs::read(&desk.log).unwrap(), log, "{undo:?}");
    }
}

#[test]
fn the_plan_is_printed_for_programs_also_if_the_disk_fails() {
    let desk = Desk::new();
    fs::write(desk.log.ancestors().nth(3).unwrap().join("blobs"), "no folder").unwrap();
    let failed = desk.env.run(&["undo", "s1", "--yes", "--json"]);
    assert_eq!(failed.code, 2, "{}", failed.all());
    let plan = failed.json();
    assert_eq!((&plan["applied"], &plan["files"][0]["path"]), (&json!(false), &json!("notes/new.txt")));
}

#[test]
fn a_file_that_somebody_changed_stops_everything() {
    let desk = Desk::new();
    fs::write(desk.env.work().join("tides.txt"), "mine\n").unwrap();
    assert_snapshot!(desk.run(&["undo", "s1#u1", "--yes"]), @"
    Restore files to before u1 “Fix the tide table.”:
      delete    notes/new.txt
      conflict  tides.txt      it was changed since
      the conversation continues from the start
    [exit 1]
    Nothing was changed. --skip-conflicts leaves out the files that are not ready; --force overwrites them and keeps what they were.
    ");
    assert_eq!(desk.file("notes/new.txt").as_deref(), Some("see tides\n"));
    let dry = desk.env.run(&["undo", "s1#u1", "--dry-run", "--json"]);
    assert_eq!((dry.code, &dry.json()["files"][1]["state"]), (1, &json!("conflict")));
    // The others are restored, and this one stays.
    assert_eq!(desk.env.run(&["undo", "s1#u1", "--yes", "--skip-conflicts"]).code, 0);
    assert_eq!((desk.file("tides.txt").as_deref(), desk.file("notes/new.txt")), (Some("mine\n"), None));
}

#[test]
fn if_every_file_is_left_out_there_is_nothing_to_do() {
    let desk = Desk::new();
    for path in ["tides.txt", "notes/new.txt"] {
        fs::write(desk.env.work().join(path), "mine\n").unwrap();
    }
    let log = fs::read(&desk.log).unwrap();
    let undone = desk.env.run(&["undo", "s1#u1", "--yes", "--skip-conflicts"]);
    assert_eq!((undone.code, undone.err.trim_end()), (0, "Nothing to do: no file is ready, so nothing was changed."));
    assert_eq!(fs::read(&desk.log).unwrap(), log, "no record");
    // Who only wants to see it may have agreed, too.
    assert_eq!(desk.env.run(&["undo", "s1#u1", "--dry-run", "--yes"]).code, 1);
}

#[test]
fn force_overwrites_and_keeps_what_it_overwrites() {
    let desk = Desk::new();
    fs::write(desk.env.work().join("tides.txt"), "mine\n").unwrap();
    assert_eq!(desk.env.run(&["undo", "s1#u1", "--yes", "--force"]).code, 0);
    assert_eq!(desk.file("tides.txt").as_deref(), Some("03:10\n"));
    assert_eq!(desk.env.run(&["redo", "s1", "--yes"]).code, 0);
    assert_eq!(desk.file("tides.txt").as_deref(), Some("mine\n"));
}

#[test]
fn force_overwrites_what_it_may_and_the_rest_is_left_out() {
    let desk = Desk::new();
    fs::write(desk.env.work().join("tides.txt"), "mine\n").unwrap();
    let new = desk.env.work().join("notes/new.txt");
    fs::remove_file(&new).unwrap();
    fs::create_dir(&new).unwrap();
    fs::write(new.join("mine"), "mine\n").unwrap();
    assert_eq!(desk.env.run(&["undo", "s1#u1", "--yes", "--force"]).code, 1);
    let undone = desk.env.run(&["undo", "s1#u1", "--yes", "--force", "--skip-conflicts"]);
    assert_eq!(undone.code, 0, "{}", undone.all());
    assert_eq!(desk.file("tides.txt").as_deref(), Some("03:10\n"));
    assert_eq!(fs::read_to_string(new.join("mine")).unwrap(), "mine\n");
}

/// The edit is a person's: whatever is forced, it can be had again.
#[test]
fn what_a_forced_redo_overwrites_comes_back_with_undo() {
    let desk = Desk::new();
    assert_eq!(desk.env.run(&["undo", "s1#u1", "--yes"]).code, 0);
    fs::write(desk.env.work().join("tides.txt"), "mine\n").unwrap();
    assert_eq!(desk.env.run(&["redo", "s1", "--yes"]).code, 1);
    assert_eq!(desk.env.run(&["redo", "s1", "--yes", "--force"]).code, 0);
    assert_eq!(desk.file("tides.txt").as_deref(), Some("04:12\n"));
    assert_eq!(desk.env.run(&["undo", "s1", "--yes"]).code, 0);
    assert_eq!(desk.env.run(&["undo", "s1", "--yes"]).code, 0);
    assert_eq!(desk.file("tides.txt").as_deref(), Some("mine\n"));
}

#[test]
fn what_was_left_out_is_named_when_there_is_nothing_else_to_undo() {
    let desk = Desk::new();
    fs::write(desk.env.work().join("tides.txt"), "mine\n").unwrap();
    assert_eq!(desk.env.run(&["undo", "s1#u1", "--yes", "--skip-conflicts"]).code, 0);
    assert_snapshot!(desk.run(&["undo", "s1", "--yes"]), @"
    [exit 0]
    Nothing else to undo: the last undo left out tides.txt. Run `scrollback redo s1`, then `undo` again.
    ");
}

#[cfg(unix)]
#[test]
fn a_change_of_permissions_and_the_task_list_are_shown() {
    use std::os::unix::fs::PermissionsExt;
    let desk = Desk::new();
    let log = fs::read_to_string(&desk.log).unwrap();
    let tracked = "\"originalContent\":\"03:10\\n\"";
    assert!(log.contains(tracked), "{log}");
    let same = log.replace(tracked, "\"originalContent\":\"04:12\\n\",\"mode\":420,\"modeAfter\":493");
    fs::write(&desk.log, same).unwrap();
    fs::set_permissions(desk.env.work().join("tides.txt"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_snapshot!(desk.run(&["undo", "s1#u1", "--dry-run"]), @"
    Restore files to before u1 “Fix the tide table.”:
      delete   notes/new.txt
      restore  tides.txt      mode 755 → 644
      the conversation continues from the start
    --- a/notes/new.txt
    +++ /dev/null
    @@ -1 +0,0 @@
    -see tides
    [exit 0]
    ");
    assert_snapshot!(desk.run(&["undo", "s1", "--to", "u2", "--dry-run"]), @"
    Restore files to after u2 “Add a note.”:
      delete  notes/new.txt
      the conversation continues from u2
      task list: 1 open, 0 done
    --- a/notes/new.txt
    +++ /dev/null
    @@ -1 +0,0 @@
    -see tides
    [exit 0]
    ");
}

#[test]
fn a_session_that_was_just_written_to_is_told() {
    let desk = Desk::new();
    let log = fs::read_to_string(&desk.log).unwrap();
    fs::write(&desk.log, log.replace("T10:03:", "T11:59:")).unwrap();
    let plan = desk.env.run(&["undo", "s1", "--dry-run"]);
    assert!(plan.err.contains("another program may still be writing"), "{}", plan.all());
}

#[test]
fn doctor_names_contents_that_are_gone() {
    let desk = Desk::new();
    assert_eq!(desk.env.run(&["undo", "s1#u1", "--yes"]).code, 0);
    assert_eq!(desk.env.run(&["doctor", "s1"]).code, 0);
    fs::remove_dir_all(desk.log.ancestors().nth(3).unwrap().join("blobs")).unwrap();
    let examined = desk.env.run(&["doctor", "s1"]);
    assert_eq!(examined.code, 1, "{}", examined.all());
    assert!(examined.out.contains("a content of \"tides.txt\" is not in the store"), "{}", examined.all());
}

#[test]
fn files_only_leaves_the_conversation_where_it_is() {
    let desk = Desk::new();
    assert_eq!(desk.env.run(&["undo", "s1", "--yes", "--files-only"]).code, 0);
    let restore = desk.last_line();
    assert_eq!((&restore["parentUuid"], restore.get("from")), (&json!("a2"), None));
    // The next one goes one turn further all the same.
    assert_eq!(desk.env.run(&["undo", "s1", "--yes", "--files-only"]).code, 0);
    assert_eq!(desk.file("tides.txt").as_deref(), Some("03:10\n"));
}

/// The files come first, and the agent's log is written last: whoever is killed in between has to be told.
#[test]
fn an_undo_that_ended_before_the_conversation_went_back_says_how_to_finish_it() {
    let env = TestEnv::new();
    let (id, file) = ("3f8a2c1e-52f4-4c7a-9a57-3f1f5a4c2e10", env.work().join("new.txt"));
    let line = |kind: &str, uuid: &str, parent: Option<&str>, content: Value| {
        json!({"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": id, "cwd": env.work(), "version": "2.1.0",
            "timestamp": "2026-11-15T10:00:00Z", "message": {"role": kind, "content": content}})
    };
    let write =
        json!([{"type": "tool_use", "id": "t1", "name": "Write", "input": {"file_path": file, "content": "tide"}}]);
    let mut result =
        line("user", "r2", Some("a2"), json!([{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]));
    result["toolUseResult"] =
        json!({"type": "create", "filePath": file, "content": "tide", "originalFile": null, "structuredPatch": []});
    let lines = [
        line("user", "u1", None, json!("Hello.")),
        line("assistant", "a1", Some("u1"), json!([{"type": "text", "text": "Hello."}])),
        line("user", "u2", Some("a1"), json!("Write it down.")),
        line("assistant", "a2", Some("u2"), write),
        result,
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let log = env.home().join(format!(".claude/projects/-desk/{id}.jsonl"));
    fs::create_dir_all(log.parent().unwrap()).unwrap();
    fs::write(&log, &text).unwrap();
    fs::write(&file, "tide").unwrap();

    let undone = env.run(&["undo", id, "--conversation", "--yes"]);
    assert!(undone.code == 0 && !file.exists(), "{}", undone.all());
    let said = |args: &[&str]| env.run(args).err.contains(&format!("run `scrollback rewind {id}#a1`"));
    assert!(!said(&["undo", id, "--dry-run"]), "the conversation went back");
    // What a kill before the last write leaves.
    fs::write(&log, &text).unwrap();
    assert!(said(&["undo", id, "--dry-run"]));
    assert_eq!(env.run(&["rewind", &format!("{id}#a1")]).code, 0);
    assert!(!said(&["undo", id, "--dry-run"]));
}

#[test]
fn files_can_be_restored_to_after_a_record() {
    let desk = Desk::new();
    assert_eq!(desk.env.run(&["undo", "s1", "--to", "a1", "--yes"]).code, 0);
    assert_eq!((desk.file("tides.txt").as_deref(), desk.file("notes/new.txt")), (Some("04:12\n"), None));
    let both = desk.env.run(&["undo", "s1#u1", "--to", "a1"]);
    assert_eq!(both.code, 2, "{}", both.all());
}

#[test]
fn a_project_that_has_moved_is_named() {
    let desk = Desk::new();
    let moved = desk.env.home().join("elsewhere");
    fs::rename(desk.env.work(), &moved).unwrap();
    let run = |args: &[&str]| {
        let mut command = desk.env.command(args);
        command.current_dir(desk.env.home());
        desk.env.ran(command, b"")
    };
    let gone = run(&["undo", "s1", "--yes", "--all"]);
    assert_eq!(gone.code, 2, "{}", gone.all());
    assert!(gone.err.contains("--root DIR"), "{}", gone.err);
    let undone = run(&["undo", "s1", "--yes", "--all", "--root", "elsewhere"]);
    assert_eq!(undone.code, 0, "{}", undone.all());
    assert!(!moved.join("notes/new.txt").exists());
    assert!(undone.err.contains("Run `scrollback redo s1 --root elsewhere` to take it back."), "{}", undone.err);
    assert_eq!(run(&["redo", "s1", "--yes", "--all", "--root", "elsewhere"]).code, 0);
    assert!(moved.join("notes/new.txt").exists());
}

#[test]
fn files_that_nobody_watched_are_told_with_the_reason() {
    let desk = Desk::new();
    let unwatched = json!({"type": "file_history_snapshot", "messageId": "a2", "sessionId": "s1", "format": 2,
        "timestamp": "2026-11-15T10:04:00Z", "isSnapshotUpdate": false,
        "snapshot": {"trackedFiles": {}, "fileBackups": {}, "unwatched": {"the project has more than 100,000 files": 12}}});
    fs::write(&desk.log, fs::read_to_string(&desk.log).unwrap() + &format!("{unwatched}\n")).unwrap();
    for args in [&["undo", "s1", "--dry-run"][..], &["files", "s1"]] {
        let err = desk.env.run(args).err;
        let expected = "12 files of the project not watched: the project has more than 100,000 files";
        assert!(err.contains(expected), "{args:?}: {err}");
    }
}

#[test]
fn files_lists_changes_versions_and_contents() {
    let desk = Desk::new();
    assert_snapshot!(desk.run(&["files", "s1"]), @"
    CHANGE    FILE           TIMES  SIZE  MESSAGE  WHEN
    created   notes/new.txt      1  10 B  a2       1 h ago
    modified  tides.txt          1   6 B  a1       1 h ago
    [exit 0]
    ");
    assert_snapshot!(desk.run(&["files", "s1", "tides.txt"]), @"
    CHANGE    SIZE  MESSAGE  WHEN
    modified   6 B  a1       1 h ago
    [exit 0]
    ");
    assert_snapshot!(desk.run(&["files", "s1", "tides.txt", "--json"]), @r#"
    [
      {
        "path": "tides.txt",
        "changes": [
          {
            "record": "at-458",
            "message": "a1",
            "action": "modified",
            "at": "2026-11-15T10:01:30Z",
            "sizeBytes": 6,
            "hash": "9ed72db0612ce7e79d2f4d69b24b3b969b07bd305359570c5612238add0bb887"
          }
        ]
      }
    ]
    [exit 0]
    "#);
    assert_snapshot!(desk.run(&["files", "s1", "tides.txt", "--at", "u1"]), @"
    03:10
    [exit 0]
    ");
    assert_snapshot!(desk.run(&["files", "s1", "notes/new.txt", "--at", "a1"]), @"
    [exit 1]
    scrollback: notes/new.txt did not exist then
    ");
    assert_snapshot!(desk.run(&["files", "s1", "other.txt"]), @r#"
    [exit 1]
    scrollback: session s1 has not changed "other.txt"
    hint: run `scrollback files SESSION` to see every file
    "#);
    assert_snapshot!(desk.run(&["files", "s1", "--diff", "u1"]), @r#"
    [exit 2]
    scrollback: "u1" is no range of records
    hint: use A..B, A.. or ..B, with records of the session
    "#);
    assert_eq!(desk.env.run(&["undo", "s1#u1", "--yes"]).code, 0);
    assert_snapshot!(desk.run(&["files", "s1", "--diff", "a2.."]), @"
    --- a/notes/new.txt
    +++ /dev/null
    @@ -1 +0,0 @@
    -see tides
    --- a/tides.txt
    +++ b/tides.txt
    @@ -1 +1 @@
    -04:12
    +03:10
    [exit 0]
    ");
}

#[test]
fn the_demo_is_not_written_by_redo() {
    let desk = Desk::new();
    let refused = desk.env.run(&["--demo", "redo", "@"]);
    assert_eq!(refused.code, 2, "{}", refused.all());
    assert!(Path::new(&desk.log).exists());
}

#[test]
fn a_redo_says_which_undo_takes_it_back() {
    let desk = Desk::new();
    for (undo, hint) in [
        (&["undo", "s1"][..], "`scrollback undo s1`"),
        (&["undo", "s1#u1"], "`scrollback undo s1#u1`"),
        (&["undo", "s1", "--to", "u1"], "`scrollback undo s1 --to u1`"),
    ] {
        let files = || ["tides.txt", "notes/new.txt"].map(|path| desk.file(path));
        desk.env.run(&[undo, &["--yes"]].concat());
        let undone = files();
        let redone = desk.env.run(&["redo", "s1", "--yes"]);
        assert!(redone.err.contains(&format!("Run {hint} to take it back.")), "{}", redone.err);
        desk.env.run(&[undo, &["--yes"]].concat());
        assert_eq!(files(), undone, "{hint}");
        desk.env.run(&["redo", "s1", "--yes"]);
    }
}
