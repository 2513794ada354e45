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
