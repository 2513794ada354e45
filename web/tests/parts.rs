//! The HTML of each kind of part and each state of a call, as it is on a page. Read a changed snapshot as carefully as code.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod support;

use std::fs;

use serde_json::{Value, json};
use support::Served;

/// The messages of a chat as a page shows them, a tag a line.
fn shown(messages: Value) -> String {
    let folder = tempfile::tempdir().unwrap();
    let chats = folder.path().join(".local/share/scrollback/chats");
    fs::create_dir_all(&chats).unwrap();
    fs::write(chats.join("chat.json"), json!({"id": "chat", "messages": messages}).to_string()).unwrap();
    let page = Served::over(folder).page("/s/chat").body;
    let (_, messages) = page.split_once("id=\"messages\"").unwrap().1.split_once('>').unwrap();
    // After them comes what follows the session.
    let (messages, _) = messages.split_once("</div><div class=\"live\"").unwrap();
    messages.replace("><", ">\n<")
}

/// One answer with these parts.
fn answer(parts: Value) -> String {
    let asked = json!({"id": "u", "role": "user", "parts": [{"type": "text", "text": "?"}]});
    let html = shown(json!([asked, {"id": "a", "role": "assistant", "parts": parts}]));
    // The question is always the same.
    html.split_once("</article>\n").map(|(_, answer)| answer.to_owned()).unwrap_or(html)
}

fn prompt(metadata: Value, parts: Value) -> String {
    shown(json!([{"id": "u", "role": "user", "metadata": metadata, "parts": parts}]))
}

fn tool(name: &str, state: &str, more: Value) -> Value {
    let mut part = json!({"type": "dynamic-tool", "toolName": name, "toolCallId": "c", "state": state});
    more.as_object().unwrap().iter().for_each(|(key, value)| part[key] = value.clone());
    json!([part])
}

macro_rules! snapshots {
    ($($name:ident: $html:expr;)*) => { $(
        #[test]
        fn $name() {
            insta::assert_snapshot!(stringify!($name), $html);
        }
    )* };
}

snapshots! {
    text_of_a_prompt: prompt(json!({"timestamp": "2026-11-02T16:20:05Z"}), json!([{"type": "text", "text": "Two\nlines <b>"}]));
    text_of_an_answer: answer(json!([{"type": "text", "text": "# Head\n\n*one* `two` [three](https://example.org)\n\n```rust\nfn main() {}\n```"}]));
    reasoning: answer(json!([{"type": "reasoning", "text": "First, **look**.\n\nThen act."}]));
    reasoning_that_is_hidden: answer(json!([{"type": "reasoning", "text": ""}]));
    steps: answer(json!([{"type": "step-start"}, {"type": "text", "text": "one"}, {"type": "step-start"}, {"type": "text", "text": "two"}]));
    sources: answer(json!([
        {"type": "source-url", "sourceId": "1", "url": "https://example.org/a", "title": "A page"},
        {"type": "source-url", "sourceId": "2", "url": "javascript:alert(1)"},
        {"type": "source-document", "sourceId": "3", "mediaType": "application/pdf", "title": "A paper", "filename": "p.pdf"}
    ]));
    files: prompt(json!({}), json!([
        {"type": "file", "mediaType": "image/png", "filename": "dot.png", "url": "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="},
        {"type": "file", "mediaType": "text/plain", "filename": "notes.md", "url": "data:text/plain;base64,IyBub3Rlcw=="},
        {"type": "file", "mediaType": "image/png", "filename": "far.png", "url": "https://example.org/far.png"},
        {"type": "file", "mediaType": "application/zip", "filename": "a.zip", "url": "data:application/zip;base64,UEs="}
    ]));
    metadata_of_an_answer: shown(json!([{"id": "a", "role": "assistant", "parts": [{"type": "text", "text": "Done."}], "metadata": {
        "timestamp": "2026-11-02T16:20:11Z", "model": "claude-opus-4-5", "usage": {"input": 1000, "output": 100, "cacheRead": 5000},
        "todos": [{"content": "one", "status": "completed"}, {"content": "two", "status": "in_progress"}, {"content": "three", "status": "pending"}]}}]));
    call_without_a_result: answer(tool("bash", "input-available", json!({"input": {"command": "make"}})));
    call_of_a_shell: answer(tool("bash", "output-available", json!({"input": {"command": "make"}, "output": "\u{1b}[32mok\u{1b}[0m\nsecond line\n"})));
    call_of_an_edit: answer(tool("edit_file", "output-available", json!({"input": {"file_path": "a.rs", "old_string": "let a = 1;", "new_string": "let a = 2;"}, "output": "done"})));
    call_of_a_write: answer(tool("write_file", "output-available", json!({"input": {"file_path": "b.rs", "content": "fn b() {}\n"}, "output": "done"})));
    call_of_a_sub_agent: answer(tool("task", "output-available", json!({"input": {"description": "look", "prompt": "Look around.", "subagent_type": "scout"}, "output": "Nothing there."})));
    call_of_todos: answer(tool("TodoWrite", "output-available", json!({"input": {"todos": [{"content": "one", "status": "completed"}, {"content": "two", "status": "pending"}]}, "output": "ok"})));
    call_of_a_plan: answer(tool("ExitPlanMode", "output-available", json!({"input": {"plan": "1. one\n2. two"}, "output": "ok"})));
    call_of_a_question: answer(tool("AskUserQuestion", "output-available", json!({"input": {"questions": [{"question": "Which?", "options": [{"label": "A", "description": "the first"}, {"label": "B"}]}]}, "output": "ok"})));
    call_of_another_tool: answer(tool("weather", "output-available", json!({"input": {"city": "Brest", "days": 2}, "output": {"wind": "W 5", "rain": true}})));
    call_that_failed: answer(tool("bash", "output-error", json!({"input": {"command": "make"}, "errorText": "exit status 2\nno rule"})));
    call_that_was_refused: answer(tool("bash", "output-denied", json!({"input": {"command": "rm -r x"}, "approval": {"id": "q", "approved": false, "reason": "not that"}})));
    call_that_waits_for_approval: answer(tool("bash", "approval-requested", json!({"input": {"command": "git push"}, "approval": {"id": "q"}})));
    call_that_was_approved: answer(tool("bash", "approval-responded", json!({"input": {"command": "git push"}, "approval": {"id": "q", "approved": true}})));
    call_that_is_running: answer(tool("bash", "output-available", json!({"input": {"command": "sleep 9"}, "output": "half", "preliminary": true})));
    compaction: answer(json!([{"type": "data-compaction", "data": {"summary": "What **was** said.", "trigger": "auto", "tokensBefore": 90000, "tokensAfter": 9000, "record": "r1"}}, {"type": "text", "text": "On."}]));
    rewind: answer(json!([{"type": "data-rewind", "data": {"from": "aaaaaaaaaaaa", "to": "bbbbbbbbbbbb", "reason": "wrong way"}}, {"type": "text", "text": "On."}]));
    restore: answer(json!([{"type": "data-restore", "data": {"target": "cccccccccccc", "files": [{"path": "a.rs", "action": "restore"}]}}, {"type": "text", "text": "On."}]));
    error: answer(json!([{"type": "data-error", "data": {"kind": "overloaded", "text": "Try later.", "attempts": 3}}]));
    interrupted: answer(json!([{"type": "text", "text": "I"}, {"type": "data-error", "data": {"kind": "interrupted"}}]));
    attachment_of_a_room: prompt(json!({"sender": "ada@rooms.example"}), json!([{"type": "text", "text": "@bob look"}, {"type": "data-attachment", "data": {"filename": "map.pdf", "mime_type": "application/pdf", "size": 2048}}]));
    an_unknown_part: answer(json!([{"type": "data-hologram", "data": {"x": 1}}]));
}
