//! No string of a session becomes active in a terminal (P21): every payload in every field, judged by a terminal's parser.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod support;

use serde_json::{Value, json};
use support::TestEnv;

const PAYLOADS: &[&str] = &[
    "\u{1b}[31mred\u{1b}[0m",
    "\u{1b}]0;owned\u{7}",
    "\u{1b}]52;c;ZXZpbA==\u{7}",
    "\u{1b}]8;;https://evil.example\u{1b}\\click\u{1b}]8;;\u{1b}\\",
    "\u{1b}P+q\u{1b}\\",
    "\u{9b}2J",
    "\u{9d}0;c1\u{9c}",
    "\u{8}\u{8}\u{8}\u{7f}",
    "a\rb\u{b}\u{c}c",
    "\u{202e}txt.exe\u{202c}\u{2066}\u{2069}\u{200f}",
    "zero\u{200b}width\u{feff}\u{2060}",
    "\u{0}nul\u{e0041}tag",
    "line\u{2028}separator\u{85}nel",
];

/// A session with the payload in every field that is ever printed.
fn poisoned(payload: &str) -> String {
    let context = json!({"cwd": format!("/gone/{payload}"), "gitBranch": payload, "platform": payload});
    let common = |kind: &str, id: &str, parent: Value| {
        let mut line = json!({
            "type": kind, "uuid": format!("{id}{payload}"), "parentUuid": parent, "timestamp": "2026-11-15T10:00:00Z",
            "sessionId": format!("s1{payload}"), "version": payload, "format": 2, "context": context,
        });
        line["sender"] = payload.into();
        line["model"] = payload.into();
        line
    };
    let mut user = common("user", "u", Value::Null);
    user["message"] = json!({"role": "user", "content": format!("# {payload}\n\n```{payload}\n{payload}\n```\n\n| {payload} |\n|---|\n| {payload} |\n\n[{payload}](http://x/{payload})")});
    user["attachments"] = json!([{"filename": payload, "mime_type": payload, "size": payload}]);
    user["reaction"] = json!({"message_id": payload, "emojis": [payload]});
    let mut answer = common("assistant", "a", format!("u{payload}").into());
    answer["message"] = json!({"role": "assistant", "content": [
        {"type": "reasoning", "text": payload}, {"type": "text", "text": payload}, {"type": payload, "x": payload},
        {"type": "source-url", "sourceId": "s", "url": payload, "title": payload},
        {"type": "source-document", "sourceId": "s", "mediaType": payload, "title": payload, "filename": payload},
        {"type": "file", "mediaType": payload, "url": payload, "filename": payload},
        {"type": "custom", "kind": payload}, {"type": format!("data-{payload}"), "data": payload},
    ], "toolCalls": [
        {"id": format!("t{payload}"), "name": payload, "arguments": {"command": payload}},
        {"id": "t2", "name": payload, "arguments": {payload: payload}},
        {"id": "e1", "name": "Edit", "arguments": {"file_path": payload, "old_string": "x", "new_string": payload}},
        {"id": "e2", "name": "Write", "arguments": {"file_path": payload, "content": payload}},
        {"id": "e3", "name": "apply_patch", "arguments": {"input": format!("*** Begin Patch\n*** Update File: {payload}\n*** Move to: {payload}\n@@ {payload}\n+{payload}\n*** End Patch")}},
        {"id": "e4", "name": "Task", "arguments": {"description": payload, "prompt": payload, "subagent_type": payload}},
        {"id": "e5", "name": "AskUserQuestion", "arguments": {"questions": [{"question": payload, "header": payload, "options": [{"label": payload, "description": payload}]}]}},
        {"id": "e6", "name": "TodoWrite", "arguments": {"todos": [{"content": payload, "status": "pending"}]}},
        {"id": "t3", "name": payload, "arguments": payload, "approval": {"id": payload, "approved": false, "reason": payload}},
    ]});
    answer["todos"] = json!([{"content": payload, "status": payload, "activeForm": payload}]);
    let mut result = common("tool_result", "r", format!("a{payload}").into());
    result["toolResults"] = json!([
        {"toolCallId": format!("t{payload}"), "toolName": payload, "content": payload, "success": true},
        {"toolCallId": "t2", "toolName": payload, "content": payload, "success": false, "error": payload},
        {"toolCallId": payload, "toolName": payload, "content": payload, "success": true},
    ]);
    let mut failure = common("error", "e", format!("r{payload}").into());
    failure["message"] = json!({"role": "error", "content": payload});
    failure["metadata"] = json!({"error_type": payload});
    let mut compaction = common("compaction", "c", format!("e{payload}").into());
    compaction["summary"] = payload.into();
    compaction["trigger"] = payload.into();
    let mut rewind = common("rewind", "w", format!("c{payload}").into());
    rewind["from"] = payload.into();
    rewind["reason"] = payload.into();
    let mut unknown = common(payload, "x", format!("w{payload}").into());
    unknown["payload"] = payload.into();
    let orphan = common("user", "o", format!("missing{payload}").into());
    let title = json!({"type": "custom_title", "title": payload});
    let lines = [user, answer, result, failure, compaction, rewind, unknown, orphan, title];
    lines.iter().map(|line| format!("{line}\n")).collect::<String>()
        + "{\"torn\":\""
        + &payload.replace('\n', " ")
        + "\n"
}

/// What a person did at the screen of Claude Code, with the payload in commands, in what they printed, and in names of files.
fn at_the_screen(payload: &str) -> String {
    let prompt = |text: String| json!({"type": "user", "message": {"role": "user", "content": text}});
    let local = |text: String| json!({"type": "system", "subtype": "local_command", "content": text});
    let file = json!({"filePath": payload, "content": payload, "numLines": 1});
    let mut records = [
        prompt(format!("<bash-input>{payload}</bash-input>")),
        prompt(format!("<bash-stdout>{payload}</bash-stdout><bash-stderr>{payload}</bash-stderr>")),
        local(format!("<command-name>/{payload}</command-name><command-args>{payload}</command-args>")),
        local(format!("<local-command-stdout>{payload}</local-command-stdout>")),
        json!({"type": "system", "subtype": "api_error", "error": {"message": payload}, "retryAttempt": 1}),
        json!({"type": "attachment", "attachment": {"type": "file", "filename": payload, "content": {"type": "text", "file": file}}}),
        json!({"type": "attachment", "attachment": {"type": "queued_command", "prompt": payload, "commandMode": "prompt"}}),
        prompt(payload.to_owned()),
    ];
    for (at, record) in records.iter_mut().enumerate() {
        record["uuid"] = format!("r{at}").into();
        record["parentUuid"] = at.checked_sub(1).map(|before| format!("r{before}")).into();
        (record["sessionId"], record["cwd"]) = ("s1".into(), "/gone".into());
        (record["timestamp"], record["version"]) = ("2026-11-15T10:00:00Z".into(), "2.1.325".into());
    }
    let title = json!({"type": "custom-title", "customTitle": payload, "sessionId": "s1"});
    records.iter().chain([&title]).map(|record| format!("{record}\n")).collect()
}

#[test]
fn nothing_that_a_screen_showed_reaches_the_terminal() {
    let env = TestEnv::new();
    let folder = env.home().join(".claude/projects/-gone");
    std::fs::create_dir_all(&folder).unwrap();
    for payload in PAYLOADS {
        std::fs::write(folder.join("s1.jsonl"), at_the_screen(payload)).unwrap();
        for args in [&["list", "--all"][..], &["show", "s1"], &["show", "s1", "--full"], &["tree", "s1"]] {
            let ran = env.run(&[args, &["--color", "always"]].concat());
            assert_eq!(ran.code, 0, "{args:?}: {}", ran.all().escape_debug());
            assert_eq!(judge(&ran.out), Vec::<String>::new(), "{args:?} {payload:?}\n{}", ran.out.escape_debug());
            assert_eq!(judge(&ran.err), Vec::<String>::new(), "{args:?} {payload:?}\n{}", ran.err.escape_debug());
        }
    }
}

/// Stops at anything but text, line ends and our own styles.
#[derive(Default)]
struct Judge(Vec<String>);

impl vte::Perform for Judge {
    fn print(&mut self, c: char) {
        let hidden = matches!(c, '\u{80}'..='\u{9f}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}' | '\u{2060}'
            | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}');
        if hidden {
            self.0.push(format!("printed {:?}", c));
        }
    }
    fn execute(&mut self, byte: u8) {
        if byte != b'\n' {
            self.0.push(format!("executed {byte:#x}"));
        }
    }
    fn csi_dispatch(&mut self, _: &vte::Params, _: &[u8], _: bool, action: char) {
        if action != 'm' {
            self.0.push(format!("CSI {action}"));
        }
    }
    fn osc_dispatch(&mut self, _: &[&[u8]], _: bool) {
        self.0.push("OSC".to_owned());
    }
    fn esc_dispatch(&mut self, _: &[u8], _: bool, byte: u8) {
        self.0.push(format!("ESC {byte:#x}"));
    }
    fn hook(&mut self, _: &vte::Params, _: &[u8], _: bool, _: char) {
        self.0.push("DCS".to_owned());
    }
}

fn judge(bytes: &str) -> Vec<String> {
    let mut judge = Judge::default();
    vte::Parser::new().advance(&mut judge, bytes.as_bytes());
    judge.0
}

#[test]
fn no_payload_in_any_field_reaches_the_terminal() {
    let env = TestEnv::new();
    for (number, payload) in PAYLOADS.iter().enumerate() {
        let path = env.session(&format!("p{number}"), &poisoned(payload));
        let path = path.to_str().unwrap();
        let head = format!("r{payload}");
        for args in [
            &["list", "--all", "--color", "always"][..],
            &["show", path, "--color", "always"],
            &["show", path, "--full", "--color", "always"],
            &["show", path, "--head", &head, "--full", "--color", "always"],
            &["show", path, "--head", &head],
            &["show", path, "--bridge", "--color", "always"],
            &["tree", path, "--color", "always"],
            &["doctor", path, "--full", "--color", "always"],
            &["show", payload],
            &["show", &format!("{path}#{payload}")],
        ] {
            if args.iter().any(|arg| arg.contains('\0')) {
                continue; // No program can be given such a word.
            }
            let ran = env.run(args);
            // A program that says nothing sends nothing either.
            let is_there = args[0] == "list" || args[1] == path;
            assert!(ran.code >= 0 && is_there != ran.out.is_empty(), "{args:?}: {}", ran.all().escape_debug());
            assert_eq!(judge(&ran.out), Vec::<String>::new(), "{args:?} {payload:?}\n{}", ran.out.escape_debug());
            assert_eq!(judge(&ran.err), Vec::<String>::new(), "{args:?} {payload:?}\n{}", ran.err.escape_debug());
        }
        std::fs::remove_dir_all(env.home().join(".sage")).unwrap();
    }
}

#[test]
fn without_colour_no_escape_is_printed_at_all() {
    let env = TestEnv::new();
    let path = env.session("p", &poisoned(PAYLOADS[0]));
    let path = path.to_str().unwrap();
    for args in [
        &["--demo", "list"][..],
        &["--demo", "show", "3f8a", "--full"],
        &["--demo", "tree", "b27d"],
        &["--demo", "doctor"],
        &["list", "--all"],
        &["show", path, "--full"],
        &["tree", path],
        &["doctor", path, "--full"],
    ] {
        let ran = env.run(args);
        assert!(!ran.out.is_empty(), "{args:?}: {}", ran.err);
        assert!(!ran.all().contains('\u{1b}'), "{args:?}");
    }
}

/// The demo is private whatever the umask, and never follows what somebody else put into the temporary directory.
#[cfg(unix)]
#[test]
fn the_demo_is_unpacked_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let env = TestEnv::new();
    let (tmp, ours) = (env.work().join("tmp"), env.work().join("ours"));
    std::fs::create_dir(&tmp).unwrap();
    for home in [ours.clone(), "/proc/none".into()] {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "umask 000; exec \"$0\" --demo list --all", env!("CARGO_BIN_EXE_scrollback")]);
        command
            .env_clear()
            .env("HOME", env.home())
            .env("SCROLLBACK_HOME", &home)
            .env("TMPDIR", &tmp)
            .current_dir(env.work());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{home:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let mut folders = vec![tmp.clone(), ours];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let mode = path.symlink_metadata().unwrap().permissions().mode() & 0o777;
            if path.is_dir() {
                assert_eq!(mode, 0o700, "{path:?}");
                folders.push(path);
            } else {
                assert_eq!(mode, 0o600, "{path:?}");
                files += 1;
            }
        }
    }
    assert!(files > 15, "{files}");
    let spare: Vec<_> = std::fs::read_dir(&tmp).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(spare.is_empty(), "{spare:?}");
}
