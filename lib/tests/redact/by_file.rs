//! What tool calls read from sensitive files and wrote to them is masked whole, in the shape of every agent; paths and calls stay.

use super::redactor;
use scrollback::redact::SensitiveCalls;
use serde_json::{Value, json};

/// No rule finds it: only the file says that it is a secret.
const CONTENT: &str = "harbour lights at seven";

/// Lines of a session, redacted one after the other.
fn redacted(lines: &[Value]) -> Vec<Value> {
    let (redactor, mut calls) = (redactor(), SensitiveCalls::new());
    let redacted = lines.iter().map(|line| {
        let text = line.to_string();
        let bytes = redactor.line_after(&mut calls, text.as_bytes()).bytes.into_owned();
        let again = redactor.line_after(&mut calls.clone(), &bytes).bytes.into_owned();
        assert_eq!(String::from_utf8_lossy(&again), String::from_utf8_lossy(&bytes), "twice");
        serde_json::from_slice(&bytes).unwrap()
    });
    redacted.collect()
}

fn check_hidden(lines: &[Value], stays: &[&str]) {
    let shown = redacted(lines).iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
    assert!(!shown.contains("harbour") && !shown.contains("seven"), "{shown}");
    assert!(shown.contains("[REDACTED:file:"), "{shown}");
    stays.iter().for_each(|text| assert!(shown.contains(text), "{text} in {shown}"));
}

fn check_unchanged(lines: &[Value]) {
    assert_eq!(redacted(lines), lines);
}

#[test]
fn what_claude_code_read_or_wrote() {
    let read = json!({"type": "assistant", "message": {"content": [{"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "/srv/.env"}}]}});
    let result = json!({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": format!("1\t{CONTENT}")}]},
        "toolUseResult": {"type": "text", "file": {"filePath": "/srv/.env", "content": CONTENT, "numLines": 1}}, "uuid": "u-1"});
    check_hidden(&[read, result], &["/srv/.env", "toolu_1", "\"Read\"", "u-1", "numLines"]);
    let shell = json!({"message": {"content": [{"type": "tool_use", "id": "toolu_2", "name": "Bash", "input": {"command": "cd /srv && cat ./.env | head", "description": "Show it"}}]}});
    let output = json!({"message": {"content": [{"type": "tool_result", "tool_use_id": "toolu_2", "content": [{"type": "text", "text": CONTENT}]}]},
        "toolUseResult": {"stdout": CONTENT, "stderr": "", "interrupted": false}});
    check_hidden(&[shell, output], &["cat ./.env | head", "Show it"]);
    let write = json!({"message": {"content": [{"type": "tool_use", "id": "t3", "name": "Write", "input": {"file_path": "config/secrets.yaml", "content": CONTENT}}]}});
    check_hidden(&[write], &["config/secrets.yaml"]);
    let edit = json!({"message": {"content": [{"type": "tool_use", "id": "t4", "name": "Edit", "input": {"file_path": "~/.ssh/id_ed25519", "old_string": CONTENT, "new_string": CONTENT}}]}});
    let edited = json!({"message": {"content": [{"type": "tool_result", "tool_use_id": "t4", "content": "updated: harbour"}]},
        "toolUseResult": {"filePath": "~/.ssh/id_ed25519", "oldString": CONTENT, "originalFile": CONTENT, "structuredPatch": [{"oldStart": 1, "lines": [CONTENT]}]}});
    check_hidden(&[edit, edited], &["oldStart"]);
    let mention = json!({"type": "attachment", "attachment": {"type": "file", "filename": "/srv/.npmrc", "content": {"type": "text", "file": {"filePath": "/srv/.npmrc", "content": CONTENT}}, "displayPath": ".npmrc"},
        "rendered": [{"content": CONTENT}], "uuid": "u-9", "cwd": "/srv"});
    check_hidden(&[mention], &["/srv/.npmrc", "u-9", "\"/srv\""]);
}

#[test]
fn what_codex_read_or_wrote() {
    let call = json!({"type": "response_item", "payload": {"type": "function_call", "name": "shell", "call_id": "call_1", "arguments": "{\"command\":[\"bash\",\"-lc\",\"cat .env.production\"]}"}});
    let output = json!({"type": "response_item", "payload": {"type": "function_call_output", "call_id": "call_1", "output": CONTENT}});
    let event = json!({"type": "event_msg", "payload": {"type": "exec_command_end", "call_id": "call_1", "command": ["cat", ".env.production"], "stdout": CONTENT, "aggregated_output": CONTENT}});
    check_hidden(&[call, output, event], &["cat .env.production", "exec_command_end"]);
    let patch = format!(
        "*** Begin Patch\n*** Update File: src/main.rs\n+fn main() {{}}\n*** Add File: .env\n+{CONTENT}\n*** End Patch\n"
    );
    let call =
        json!({"payload": {"type": "custom_tool_call", "name": "apply_patch", "call_id": "call_2", "input": patch}});
    check_hidden(&[call], &["fn main() {}", "*** Add File: .env", "*** End Patch"]);
    let applied = json!({"payload": {"type": "patch_apply_begin", "call_id": "call_2", "changes": {".env": {"add": {"content": CONTENT}}}}});
    check_hidden(&[applied], &["patch_apply_begin"]);
    let written = json!({"payload": {"type": "function_call", "call_id": "call_3", "name": "write", "arguments": format!("{{\"path\":\"kubeconfig\",\"content\":\"{CONTENT}\"}}")}});
    check_hidden(&[written], &["kubeconfig"]);
}

#[test]
fn what_other_agents_read_or_wrote() {
    let call = json!({"message": {"parts": [{"functionCall": {"id": "c1", "name": "read_file", "args": {"absolute_path": "/srv/credentials.json"}}}]}});
    let result = json!({"message": {"parts": [{"functionResponse": {"id": "c1", "name": "read_file", "response": {"output": CONTENT}}}]}, "toolCallResult": {"callId": "c1", "resultDisplay": CONTENT}});
    check_hidden(&[call, result], &["credentials.json"]);
    let call = json!({"role": "model", "parts": [{"functionCall": {"name": "read_file", "args": {"path": ".netrc"}}}]});
    let result = json!({"role": "user", "parts": [{"functionResponse": {"name": "read_file", "response": {"output": CONTENT}}}]});
    check_hidden(&[call, result], &[".netrc"]);
    let call =
        json!({"message": {"toolCalls": [{"id": "c2", "name": "read", "arguments": {"path": "deploy/server.pem"}}]}});
    let result =
        json!({"toolResults": [{"toolCallId": "c2", "toolName": "read", "content": CONTENT, "success": true}]});
    check_hidden(&[call, result], &["server.pem", "success"]);
    let part = json!({"parts": [{"type": "tool-read", "toolCallId": "c3", "state": "output-available", "input": {"path": ".aws/credentials"}, "output": {"lines": [CONTENT]}}]});
    check_hidden(&[part], &["output-available"]);
    let file = json!({"parts": [{"type": "file", "filename": ".env", "mediaType": "text/plain", "url": "data:text/plain;base64,aGFyYm91ciBsaWdodHM="}]});
    assert_eq!(redacted(&[file])[0]["parts"][0]["mediaType"], "text/plain");
    let call = json!({"role": "assistant", "tool_calls": [{"id": "c4", "type": "function", "function": {"name": "bash", "arguments": "{\"command\":\"cat ~/.ssh/id_rsa\"}"}}]});
    let result = json!({"role": "tool", "tool_call_id": "c4", "content": CONTENT});
    check_hidden(&[call, result], &["id_rsa"]);
    let mention = json!({"message": {"parts": [{"text": "@.env What is it?"}, {"text": "\nContent from .env:\n"}, {"text": CONTENT}, {"text": "\n--- End of content ---"}, {"text": "stays"}]}});
    check_hidden(&[mention], &["What is it?", "stays"]);
    let here =
        json!({"id": "c5", "name": "bash", "input": {"command": format!("cat > .env <<'EOF'\n{CONTENT}\nEOF\nls")}});
    check_hidden(&[here], &["cat > .env", "EOF\\nls"]);
    let echo = json!({"id": "c6", "name": "bash", "input": {"command": format!("echo \"{CONTENT}\" >> .env")}});
    check_hidden(&[echo], &[">> .env"]);
    let snapshot = json!({"snapshot": {"trackedFiles": [".env"], "fileBackups": {".env": {"originalContent": CONTENT, "backupFileName": "0a1b@v1"}}}});
    check_hidden(&[snapshot], &["0a1b@v1"]);
}

#[test]
fn other_files_calls_and_words_stay() {
    let call = json!({"message": {"content": [{"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "/srv/.env.example"}}]}});
    let result = json!({"message": {"content": [{"type": "tool_result", "tool_use_id": "t1", "content": CONTENT}]}, "toolUseResult": {"file": {"filePath": "/srv/.env.example", "content": CONTENT}}});
    check_unchanged(&[call, result]);
    let talk = json!({"type": "user", "message": {"content": "Put it into .env, please: harbour"}, "cwd": "/srv/.env"});
    check_unchanged(&[talk]);
    let other = json!({"message": {"content": [
        {"type": "tool_use", "id": "t2", "name": "Bash", "input": {"command": "cat .env"}},
        {"type": "tool_use", "id": "t3", "name": "Bash", "input": {"command": "ls", "description": "not .env"}}]}});
    let results = json!({"message": {"content": [{"type": "tool_result", "tool_use_id": "t3", "content": CONTENT}]}});
    check_unchanged(&[other, results]);
}

/// Every way in which a shell writes a file.
#[test]
fn what_a_shell_wrote() {
    for (script, stays) in [
        (format!("cat > .env <<EOF\nA={CONTENT}\nEOF\nls"), "EOF\\nls"),
        (format!("tee .env <<EOF\nA={CONTENT}\nEOF"), "tee .env <<EOF"),
        (format!("printf '{CONTENT}' | tee .env"), "| tee .env"),
        (format!("sed -i 's/A=.*/A={CONTENT}/' .env"), "sed -i '["),
        (format!("echo A={CONTENT} > .env"), "> .env"),
        (format!("echo 'A={CONTENT} # .env' > .env"), "> .env"),
        (format!("cat <<< 'A={CONTENT}' > .env"), "> .env"),
        (format!("cat a | sed 's/x/{CONTENT}/' > .env"), "cat a | sed"),
        (format!("{{ echo 'A={CONTENT}'; }} > .env"), "> .env"),
        (format!("( echo 'A={CONTENT}' ) > .env"), "> .env"),
        (format!("ls 2>/dev/null; echo 'A={CONTENT}' > .env"), "ls 2>/dev/null; echo '["),
        (format!("echo 'hi' > a.txt; echo 'A={CONTENT}' > .env"), "echo 'hi' > a.txt; echo '["),
        (format!("echo 'A={CONTENT}' > .env && echo 'B={CONTENT}' >> .env"), "&& echo '["),
        (format!("cat > a <<A\nstays\nA\ncat > .env <<B\n{CONTENT}\nB\ncat >> .env <<C\n{CONTENT}\nC"), "stays"),
        (
            format!(
                "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: a\n+stays\n*** Add File: .env\n+{CONTENT}\n*** End Patch\nEOF"
            ),
            "+stays",
        ),
        (format!("git apply <<'EOF'\n--- a/.env\n+++ b/.env\n+{CONTENT}\nEOF"), "+++ b/.env"),
        (format!("python3 -c \"open('.env','w').write('A={CONTENT}')\""), "open('.env','w').write('["),
        (format!("bash -c \"echo 'A={CONTENT}' > .env\""), "> .env"),
        (format!("F=.env; echo 'A={CONTENT}' > $F"), "F=.env; echo '["),
        (format!("ssh host \"echo A={CONTENT} > /srv/.env\""), "> /srv/.env"),
        (format!("docker exec c sh -c 'echo A={CONTENT} > .env'"), "docker exec c sh -c 'echo ["),
        (format!("echo A={CONTENT} | ssh host 'cat > .env'"), "| ssh host 'cat > .env'"),
        (format!("ssh host 'cat > .env' <<EOF\nA={CONTENT}\nEOF"), "ssh host 'cat > .env' <<EOF"),
        (format!("dotenv set NAME {CONTENT} -f .env"), "-f .env"),
        (format!("install -m 600 /dev/stdin .env <<< '{CONTENT}'"), "/dev/stdin .env <<< '["),
        (format!("export OUT=\"/srv/.env\"\nprintf '{CONTENT}' | tee \"${{OUT}}\""), "/srv/.env"),
        (format!("exec > .env\necho 'A={CONTENT}'"), "exec > .env"),
        (format!("MODE=x tee .env <<< '{CONTENT}'"), "MODE=x tee .env"),
    ] {
        check_hidden(&[json!({"id": "c", "name": "bash", "input": {"command": script}})], &[stays]);
        check_hidden(&[json!({"id": "c", "name": "bash", "input": {"cmd": script}})], &[".env"]);
        check_hidden(
            &[json!({"call_id": "c", "arguments": json!({"command": ["bash", "-lc", script]}).to_string()})],
            &[".env"],
        );
        check_hidden(&[json!({"call_id": "c", "arguments": json!({"cmd": script}).to_string()})], &[".env"]);
    }
    for words in [json!(["sed", "-i", format!("s/A=.*/A={CONTENT}/"), ".env"]), json!(["env", "tee", ".env", CONTENT])]
    {
        check_hidden(
            &[json!({"call_id": "c", "arguments": json!({"command": words}).to_string()})],
            &[".env", "command"],
        );
        check_hidden(&[json!({"call_id": "c", "command": words})], &[".env"]);
    }
    check_unchanged(&[json!({"id": "c", "input": {"command": ["sed", "-i", "s/a/b/", "README.md"]}})]);
    check_unchanged(&[json!({"id": "c", "input": {"command": "F=a.txt; echo 'hi' > $F"}})]);
    for script in
        ["cat README.md", "ls -la", "grep env src/", "echo hi > a.txt", "cat .env > /dev/null", "cp .env b.txt"]
    {
        check_unchanged(&[json!({"id": "c", "name": "bash", "input": {"command": script}})]);
    }
}

#[test]
fn reads_by_search_mention_and_progress() {
    for input in [
        json!({"pattern": "KEY", "glob": ".env*"}),
        json!({"pattern": "KEY", "include": ".env"}),
        json!({"paths": ["a", ".env"]}),
        json!({"command": "cat .env{,.local}"}),
        json!({"command": "cd ~/.ssh && cat id_work"}),
        json!({"command": "cd ~/.aws/ && cat credentials"}),
        json!({"command": "pushd ~/.kube; cat config"}),
        json!({"command": "cat ~/.ssh/*"}),
        json!({"command": "cd ~/.ssh && git -C /p status && cat id_work"}),
        json!({"command": "ls ~/.ssh; cat id_work"}),
        json!({"command": "cat {.env,a.txt}"}),
        json!({"file_path": "config/secrets.prod.yaml"}),
        json!({"file_path": "/home/ada/.codex/auth.json"}),
        json!({"file_path": ".env-prod"}),
    ] {
        let call = json!({"type": "tool_use", "id": "toolu_1", "name": "x", "input": input});
        for result in [
            json!({"tool_use_id": "toolu_1", "content": CONTENT}),
            json!({"id": "toolu_1-result", "result": CONTENT}),
            json!({"type": "progress", "toolUseID": "bash-progress-0", "parentToolUseID": "toolu_1", "data": {"type": "bash_progress", "output": CONTENT}}),
        ] {
            check_hidden(&[call.clone(), result], &["toolu_1"]);
        }
    }
    for text in [
        format!("a.rs:1:stays\n.env:1:{CONTENT}\n.env-2-{CONTENT}\n"),
        format!("./a.rs:stays\n./.env:TIDE={CONTENT}\n"),
        format!(
            "Note: stays\nCalled the Read tool with the following input: {{\"file_path\":\"/w/.env\"}}\nResult of calling the Read tool: \"     1→{CONTENT}\""
        ),
        format!("stays @.env\n{{\"path\":\".env\",\"content\":\"{CONTENT}\"}}"),
        format!("stays <file path=\".env\">\n{CONTENT}\n</file> x"),
        format!("stays\nNote: /p/.env was modified, either by the user or by a linter.\n1\t{CONTENT}\n"),
    ] {
        check_hidden(&[json!({"role": "user", "content": text})], &["stays", ".env"]);
    }
    check_hidden(&[json!({"parts": [{"name": ".env", "content": CONTENT}]})], &[".env"]);
    let nested =
        format!("<bash-input>cat .env</bash-input><bash-stdout>A<bash-stderr>{CONTENT}</bash-stderr></bash-stdout>");
    check_hidden(&[json!({"type": "user", "message": {"content": nested}})], &["cat .env"]);
    check_unchanged(&[json!({"role": "user", "content": "  - .env:/app/.env\nserver.key:server.crt\n"})]);
    check_unchanged(&[json!({"role": "user", "content": "I put it in .env: harbour, see <file> and .env-files"})]);
}

/// What a person ran with `!` or mentioned, and commands that name a file in another way.
#[test]
fn what_a_person_ran_or_mentioned() {
    let codex = |command: &str| {
        json!({"type": "response_item", "payload": {"type": "message", "role": "user", "content": [{"type": "input_text",
        "text": format!("<user_shell_command>\n<command>\n{command}\n</command>\n<result>\nExit code: 0\nDuration: 0.03 seconds\nOutput:\n{CONTENT}\n</result>\n</user_shell_command>")}]}})
    };
    check_hidden(&[codex("cat .env")], &["cat .env", "Exit code: 0", "</result>"]);
    check_unchanged(&[codex("cat .env.example")]);
    let user = |id: &str, parent: &str, content: Value| json!({"type": "user", "uuid": id, "parentUuid": parent, "message": {"role": "user", "content": content}});
    let ran = |command: &str| {
        [
            user("u-1", "u-0", json!(format!("<bash-input>{command}</bash-input>"))),
            user(
                "u-2",
                "u-1",
                json!(format!("<bash-stdout>{CONTENT}</bash-stdout><bash-stderr>{CONTENT}</bash-stderr>")),
            ),
        ]
    };
    check_hidden(&ran("cat .env"), &["cat .env", "<bash-stderr>", "u-2"]);
    check_unchanged(&ran("cat .envy"));
    let after = user("u-4", "u-3", json!(format!("<bash-stdout>{CONTENT}</bash-stdout>")));
    assert_eq!(redacted(&[&ran("cat .env")[..], std::slice::from_ref(&after)].concat())[2], after);
    let told = |path: &str| {
        format!(
            "<system-reminder>\nCalled the Read tool with the following input: {{\"file_path\":\"{path}\"}}\n</system-reminder>"
        )
    };
    let result = format!("<system-reminder>Result of calling the Read tool: \"1→{CONTENT}\"</system-reminder>");
    let parts = |path: &str| {
        user("u-1", "u-0", json!([{"type": "text", "text": told(path)}, {"type": "text", "text": result}]))
    };
    check_hidden(&[parts("/p/.env")], &["/p/.env", "</system-reminder>"]);
    check_unchanged(&[parts("/p/a.py")]);
    check_hidden(&[user("u-1", "u-0", json!(told("/p/.env"))), user("u-2", "u-1", json!(result))], &["/p/.env"]);
    for told in
        [told("/p/.env"), "Called the Read tool with the following input: {\"file_path\":\"/p/.env\"}".to_owned()]
    {
        let in_one = format!("{told}\nResult of calling the Read tool: \"     1→{CONTENT}\"");
        check_hidden(&[user("u-1", "u-0", json!(in_one))], &["/p/.env"]);
    }
    for call in [
        json!({"type": "function_call", "name": "write_stdin", "call_id": "call_1", "arguments": "{\"session_id\":1,\"chars\":\"cat .env\\n\"}"}),
        json!({"type": "custom_tool_call", "name": "exec", "call_id": "call_1", "input": "await read('.env')"}),
        json!({"type": "function_call", "name": "shell", "call_id": "call_1", "arguments": "{\"command\":\"cat kubeconfig\"}"}),
        json!({"type": "function_call", "name": "shell", "call_id": "call_1", "arguments": "{\"command\":\"cat .en\\\"\\\"v\"}"}),
        json!({"type": "tool_use", "name": "Bash", "id": "call_1", "input": {"command": "cat .en''v"}}),
    ] {
        check_hidden(
            &[json!({"payload": call}), json!({"payload": {"call_id": "call_1", "output": CONTENT}})],
            &["call_1"],
        );
    }
}

/// Broken scripts do not break us, and other rules still see what is not the file's.
#[test]
fn broken_scripts_and_other_secrets() {
    for script in [
        "> .env \"",
        "echo é\\é > .env '",
        "cat > .env <<",
        "cat <<EOF > .env",
        "a \\",
        "<<<'é' tee .env $(",
        "\"é > .env",
        "# .env",
        ">&>|.env &>",
    ] {
        redacted(&[json!({"id": "c", "input": {"command": script}})]);
    }
    let both = format!("export PASSWORD=tide-4-morning-9; echo '{CONTENT}' > .env");
    let shown = redacted(&[json!({"id": "c", "input": {"command": both}})])[0].to_string();
    assert!(!shown.contains("tide-4") && !shown.contains("harbour"), "{shown}");
}

#[test]
fn patches_that_delete_move_or_date_a_file_are_masked_and_nested_json_ends() {
    for patch in [
        format!("*** Begin Patch\n*** Update File: .env\n*** Move to: .env.local\n+{CONTENT}\n*** End Patch"),
        format!("diff --git a/.env b/.env\n--- a/.env\n+++ /dev/null\n-{CONTENT}\n"),
        format!("--- .env\t2026-01-01\n+++ .env\t2026-01-02\n+{CONTENT}\n"),
        format!("*** Begin Patch\n*** Update File: a.txt\n*** Move to: .env\n+{CONTENT}\n*** End Patch"),
    ] {
        check_hidden(&[json!({"type": "tool_use", "id": "p1", "name": "apply_patch", "input": patch})], &["p1"]);
    }
    check_hidden(&[json!({"input": {"path": "/a/.ENV", "content": CONTENT}})], &["/a/.ENV"]);
    let mut nested = json!({"path": ".env", "content": CONTENT});
    for _ in 0..10 {
        nested = json!({"arguments": nested.to_string()});
    }
    check_hidden(&[nested], &["arguments"]);
}

#[test]
fn looking_for_the_results_of_many_calls_takes_linear_time() {
    let redactor = redactor();
    let call = |id: usize| json!({"type": "tool_use", "id": format!("toolu_{id:08}"), "input": {"file_path": ".env"}});
    let result =
        |id: usize| json!({"tool_use_id": format!("toolu_{id:08}"), "content": CONTENT, "text": "x".repeat(400)});
    let prepare = |count: usize| {
        let mut calls = SensitiveCalls::new();
        (0..count).for_each(|id| drop(redactor.line_after(&mut calls, call(id).to_string().as_bytes())));
        // Of other calls.
        let lines: Vec<String> = (0..count).map(|id| result(count + id).to_string()).collect();
        assert_eq!(redactor.line_after(&mut calls.clone(), result(count - 1).to_string().as_bytes()).findings.len(), 1);
        (calls, lines)
    };
    super::effort::check_linear("lines and calls", 2_000, prepare, |(calls, lines)| {
        let has_none = |line: &String| redactor.line_after(&mut calls.clone(), line.as_bytes()).findings.is_empty();
        assert!(lines.iter().all(has_none));
    });
}

#[test]
fn a_restore_of_a_secret_file_keeps_its_hashes_and_reasons() {
    let hash = "0f".repeat(32);
    let restored = json!({"path": ".env", "action": "restore", "state": "ready", "reason": "it was changed since",
        "hashes": {"before": hash, "after": null}, "modes": {"before": 420, "after": 420}});
    check_unchanged(&[json!({"type": "restore", "files": [restored]})]);
    // A name alone opens no hole.
    check_hidden(&[json!({"files": [{"path": ".env", "hashes": {"before": CONTENT, "after": hash}}]})], &[]);
    check_hidden(&[json!({"files": [{"path": ".env", "hashes": CONTENT}]})], &[]);
}
