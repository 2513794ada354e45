//! What the pages of a session say: links that stay right, branches that are compared, sub-agents by their names.

mod support;

use serde_json::{Value, json};
use support::{Served, record, talk};

fn assistant(id: &str, parent: &str, text: &str, more: &[(&str, Value)]) -> Value {
    let mut line = record("assistant", id, Some(parent), json!({"role": "assistant", "content": text}));
    more.iter().for_each(|(key, value)| line[key] = value.clone());
    line
}

#[test]
fn the_link_of_a_message_names_its_record() {
    let page = Served::of(&[("sa", talk("hello", "world"))]).page("/s/sa").body;
    assert!(page.contains("class=\"anchor\" href=\"/s/sa?at=a1#m-a1\""), "{page}");
}

#[test]
fn the_branches_that_are_compared_are_marked_and_counted() {
    let mut lines = talk("Try SQLite.", "Which one shall I try?");
    lines.push(record("user", "u2", Some("a1"), json!({"role": "user", "content": "The first."})));
    lines.push(assistant("a2", "u2", "Done.", &[("usage", json!({"inputTokens": 20, "outputTokens": 3}))]));
    lines.push(record("user", "u3", Some("a1"), json!({"role": "user", "content": "The second."})));
    lines.push(assistant("a3", "u3", "Also done.", &[]));
    let page = Served::of(&[("sa", lines)]).page("/s/sa/tree").body;
    for wanted in [
        "compared below",
        "node node-user node-off node-picked",
        "<path class=\"picked\"",
        ">compared</span>",
        "“Which one shall I try?”",
        "2 messages are the same",
        "2 messages · 20 in, 3 out",
    ] {
        assert!(page.contains(wanted), "{wanted}: {page}");
    }
}

#[test]
fn a_sub_agent_has_its_name_its_task_and_what_it_took() {
    let call = json!([{"id": "c1", "name": "task", "arguments": {"description": "Find it", "prompt": "Find it.", "subagent_type": "explorer"}}]);
    let message = json!({"role": "assistant", "content": "I ask.", "toolCalls": call});
    let mut lines = talk("Go.", "Yes.");
    lines[1]["message"] = message;
    let mut result = record("tool_result", "r1", Some("a1"), Value::Null);
    result.as_object_mut().unwrap().remove("message");
    result["toolResults"] = json!([{"toolCallId": "c1", "toolName": "task", "content": "found", "success": true}]);
    lines.push(result);
    let mut sub = talk("Find it.", "It is here.");
    for line in &mut sub {
        line["metadata"] = json!({"parentSessionId": "sa", "parentToolCallId": "c1"});
    }
    sub[1]["model"] = "beacon-mini".into();
    sub[1]["usage"] = json!({"inputTokens": 20, "outputTokens": 3});
    sub[1]["message"]["toolCalls"] = json!([{"id": "c2", "name": "grep", "arguments": {"pattern": "x"}}]);
    let page = Served::of(&[("sa", lines), ("sub", sub)]).page("/s/sa").body;
    for wanted in ["The task</h3>", "explorer</h3>", "<span dir=\"auto\">beacon-mini</span>", ">1 call, ?</span>"] {
        assert!(page.contains(wanted), "{wanted}: {page}");
    }
}

#[test]
fn the_table_of_changes_has_lines_prompts_and_sums() {
    let mut lines = talk("Mend the reader.", "I edit.");
    lines[1]["message"]["toolCalls"] = json!([{"id": "c1", "name": "edit_file",
        "arguments": {"file_path": "/w/a.rs", "old_string": "one", "new_string": "two\nthree"}}]);
    let mut result = record("tool_result", "r1", Some("a1"), Value::Null);
    result.as_object_mut().unwrap().remove("message");
    result["toolResults"] = json!([{"toolCallId": "c1", "toolName": "edit_file", "content": "ok", "success": true}]);
    lines.push(result);
    let page = Served::of(&[("sa", lines)]).page("/s/sa/files").body;
    let cell = "<span class=\"add-n\">+2</span> <span class=\"del-n\">−1</span>";
    assert_eq!(page.matches(cell).count(), 3, "in the table, its sum and the difference: {page}");
    assert!(page.contains(">Mend the reader.</a></th>"), "{page}");
    // No copy was kept: there is no whole file to show.
    assert!(!page.contains(">whole file<"), "{page}");
}

#[test]
fn tokens_of_a_copied_request_are_those_of_the_session_that_made_it() {
    let mut lines = talk("Try SQLite.", "Which one shall I try?");
    lines[1]["usage"] = json!({"inputTokens": 4321, "outputTokens": 1234});
    lines[1]["requestId"] = "r1".into();
    let mut more = lines.clone();
    more.push(record("user", "u2", Some("a1"), json!({"role": "user", "content": "The first."})));
    more.push(assistant("a2", "u2", "Done.", &[("usage", json!({"inputTokens": 20, "outputTokens": 3}))]));
    more[2]["timestamp"] = "2026-11-01T11:00:00Z".into();
    more[3]["timestamp"] = "2026-11-01T11:00:01Z".into();
    let served = Served::of(&[("sa", lines), ("sb", more)]);
    let home = served.page("/").body;
    assert_eq!(home.matches("1,234<").count(), 1, "{home}");
    assert!(served.page("/s/sb").body.contains("20 in, 3 out"), "{}", served.page("/s/sb").body);
}

#[test]
fn a_tree_of_many_turns_has_pages() {
    let mut lines = talk("First.", "Yes.");
    for turn in 2..=250 {
        let before = format!("a{}", turn - 1);
        let said = json!({"role": "user", "content": format!("Prompt {turn}.")});
        lines.push(record("user", &format!("u{turn}"), Some(&before), said));
        lines.push(assistant(&format!("a{turn}"), &format!("u{turn}"), "Yes.", &[]));
    }
    let served = Served::of(&[("sa", lines)]);
    let (newest, before) = (served.page("/s/sa/tree").body, served.page("/s/sa/tree?until=150").body);
    for (page, wanted) in [
        (&newest, "Turns 151–250 of 250"),
        (&newest, "?until=150\">Earlier"),
        (&newest, "Prompt 151."),
        (&before, "Turns 51–150 of 250"),
        (&before, "?until=250\">Later"),
        (&before, "Prompt 51."),
    ] {
        assert!(page.contains(wanted), "{wanted}: {page}");
    }
    assert!(!newest.contains("Prompt 150.") && !before.contains("Prompt 151."));
    for odd in ["0", "1", "999999"] {
        assert_eq!(served.page(&format!("/s/sa/tree?until={odd}")).status, 200, "{odd}");
    }
}

#[test]
fn a_file_that_was_changed_after_the_session_is_marked() {
    let project = tempfile::tempdir().unwrap();
    let path = |name: &str| project.path().join(name).to_string_lossy().into_owned();
    let calls: Vec<Value> = ["kept.rs", "changed.rs", "gone.rs"]
        .iter()
        .map(|name| json!({"id": name, "name": "write_file", "arguments": {"file_path": path(name), "content": "fn a() {}\n"}}))
        .collect();
    let mut lines = talk("Write them.", "I do.");
    lines[1]["message"]["toolCalls"] = json!(calls);
    let results: Vec<Value> = calls
        .iter()
        .map(|call| json!({"toolCallId": call["id"], "toolName": "write_file", "content": "done", "success": true}))
        .collect();
    let mut answered = record("tool_result", "r1", Some("a1"), Value::Null);
    answered.as_object_mut().unwrap().remove("message");
    answered["toolResults"] = json!(results);
    lines.push(answered);
    lines.iter_mut().for_each(|line| line["context"]["cwd"] = json!(project.path()));
    std::fs::write(path("kept.rs"), "fn a() {}\n").unwrap();
    std::fs::write(path("changed.rs"), "fn b() {}\n").unwrap();
    let served = Served::of(&[("sa", lines)]);
    // How many there are is known when somebody has asked for them.
    assert!(served.page("/s/sa").body.contains(">Files</a>"));
    let page = served.page("/s/sa/files").body;
    let row = |name: &str| {
        let (_, row) = page.split_once(&format!("\">{name}</a></th>")).unwrap();
        row.split_once("</tr>").unwrap().0.to_owned()
    };
    assert!(row("kept.rs").contains("as left"), "{page}");
    assert!(row("changed.rs").contains("changed since"), "{page}");
    assert!(row("gone.rs").contains(">gone<"), "{page}");
    assert!(page.contains("<span class=\"hl-keyword\">fn </span>"), "{page}");
    for address in ["/s/sa", "/s/sa/files", "/s/sa/files?file=1", "/s/sa/tree", "/s/sa/replay"] {
        assert!(served.page(address).body.contains("Files <span class=\"num\">3</span>"), "{address}");
    }
    assert!(served.page("/s/sa/files?file=3").body.contains("This session changed 3 files"));
    // What is in memory is not shown any more when the disk has changed.
    std::fs::write(path("changed.rs"), "fn a() {}\n").unwrap();
    assert!(!served.page("/s/sa/files").body.contains("changed since"));
}

#[test]
fn two_changes_of_one_message_are_two_differences() {
    let call = |id: &str, name: &str, input: Value| {
        let mut line = record("assistant", id, None, json!({"role": "assistant", "content": ""}));
        line["message"]["toolCalls"] = json!([{"id": format!("c-{id}"), "name": name, "arguments": input}]);
        line
    };
    let mut lines = talk("Write it, then change it.", "I do.");
    lines.push(call("a2", "write_file", json!({"file_path": "/w/a.txt", "content": "one\n"})));
    lines.push(call("a3", "edit_file", json!({"file_path": "/w/a.txt", "old_string": "one", "new_string": "two"})));
    lines[2]["parentUuid"] = "a1".into();
    lines[3]["parentUuid"] = "a2".into();
    // No copy was kept of a file that somebody else has: the calls say what changed.
    for (at, path) in [(2, "/elsewhere/a.txt"), (3, "/elsewhere/a.txt")] {
        lines[at]["message"]["toolCalls"][0]["arguments"]["file_path"] = path.into();
    }
    let page = Served::of(&[("sa", lines)]).page("/s/sa/files").body;
    let (_, first) = page.split_once("id=\"c-a2-0\"").unwrap();
    let (first, second) = first.split_once("id=\"c-a3-0\"").unwrap();
    assert!(first.contains(">one</td>") && !first.contains("two"), "{page}");
    assert!(second.contains("two"), "{page}");
}

/// A session whose last call has no result, written so late.
fn at_work(at: &str) -> Vec<Value> {
    let mut lines = talk("Run the benchmark.", "Running.");
    lines[1]["message"]["toolCalls"] = json!([{"id": "c1", "name": "bash", "arguments": {"command": "cargo bench"}}]);
    lines.iter_mut().for_each(|line| line["timestamp"] = at.into());
    lines
}

#[test]
fn a_call_without_a_result_is_running_while_its_session_is() {
    // The clock stands at 10:06:05.
    let served = Served::of(&[("now", at_work("2026-11-14T10:01:00Z")), ("past", at_work("2026-11-14T09:50:00Z"))]);
    let (now, past) = (served.page("/s/now").body, served.page("/s/past").body);
    assert!(
        now.contains("tool-note\">running<") && now.contains("aria-hidden=\"true\"></span>running</span>"),
        "{now}"
    );
    assert!(!now.contains("no result") && !now.contains("before this call finished"), "{now}");
    assert!(past.contains("no result was recorded") && past.contains("stopped mid-turn"), "{past}");
    assert!(served.page("/s/now/replay").body.contains("tool-note\">running<"));
    assert_eq!(served.page("/").body.matches(">stopped mid-turn</span>").count(), 1);
}

#[test]
fn only_a_call_at_the_end_of_a_running_session_is_running() {
    let mut lines = at_work("2026-11-14T10:05:50Z");
    lines.push(record("user", "u2", Some("a1"), json!({"role": "user", "content": "Never mind."})));
    lines[2]["timestamp"] = "2026-11-14T10:05:55Z".into();
    let page = Served::of(&[("sa", lines)]).page("/s/sa").body;
    assert!(page.contains("no result was recorded") && !page.contains("tool-note\">running<"), "{page}");
}

#[test]
fn a_call_that_waits_for_approval_is_not_counted_as_refused() {
    let folder = tempfile::tempdir().unwrap();
    let chats = folder.path().join(".local/share/scrollback/chats");
    std::fs::create_dir_all(&chats).unwrap();
    let call = |id: &str, state: &str, approval: Value| json!({"type": "dynamic-tool", "toolName": "bash", "toolCallId": id, "state": state, "input": {"command": "git push"}, "approval": approval});
    let parts = json!([
        call("c1", "output-denied", json!({"id": "q1", "approved": false})),
        call("c2", "approval-requested", json!({"id": "q2"})),
    ]);
    let chat = json!({"id": "chat", "messages": [{"id": "a", "role": "assistant", "parts": parts}]});
    std::fs::write(chats.join("chat.json"), chat.to_string()).unwrap();
    let served = Served::over(folder);
    let page = served.page("/s/chat").body;
    assert!(page.contains("2 tool calls</dd><dd>1 refused, 1 waiting</dd>"), "{page}");
    assert!(served.page("/").body.contains("2 tool calls, 1 refused, 1 waiting"));
}

#[test]
fn answers_of_one_model_have_one_name_and_a_failure_says_once_what_it_is() {
    let mut lines = talk("Go.", "I");
    lines.push(record("error", "e1", Some("a1"), json!({"role": "error", "content": "[rate_limit] 429: try again"})));
    lines[2]["metadata"] = json!({"error_type": "rate_limit"});
    lines.push(assistant("a2", "e1", "Done.", &[("model", "beacon-2".into())]));
    let page = Served::of(&[("sa", lines)]).page("/s/sa").body;
    assert_eq!(
        page.matches("dir=\"auto\">beacon-2</h2>").count(),
        page.matches("class=\"msg-who\"").count() - 1,
        "{page}"
    );
    assert!(page.contains("</code> 429: try again. The agent went on"), "{page}");
}
