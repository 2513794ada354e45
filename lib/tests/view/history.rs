//! What each view makes of a history, whole or broken: one table of cases, every view that follows an API's rules.

use crate::support::{native_log, read};
use scrollback::dialect;
use scrollback::session::{Session, State};
use scrollback::view::history::{History, View, prepare_resume};

fn from_notation(text: &str) -> Session {
    read(native_log::lines(text))
}

fn of_agent(name: &str, log: &str) -> Session {
    Session::from_bytes(dialect::named(name).unwrap(), log.as_bytes().to_vec(), &crate::support::reading())
}

/// What a view says of the newest branch, a message a line, then every note.
fn said(session: &Session, view: View) -> String {
    at(session, session.head().unwrap().id().as_ref(), view)
}

fn at(session: &Session, head: &str, view: View) -> String {
    let history = History::of(session, session.find(head).unwrap()).unwrap();
    lines(&history, view)
}

fn lines(history: &History<'_>, view: View) -> String {
    let (messages, notes) = view.messages(history).unwrap();
    let messages = messages.iter().map(ToString::to_string);
    let notes = history.notes.iter().chain(&notes).map(|note| format!("note: {}: {}", note.record, note.what));
    messages.chain(notes).collect::<Vec<_>>().join("\n")
}

/// Every case in every view, beside the file of what they should say. `SCROLLBACK_BLESS=1` writes it; then read it.
#[test]
fn every_view_keeps_its_rules_whatever_the_session_lacks() {
    let mut all = String::new();
    for (name, session) in &cases() {
        for view in [View::Anthropic, View::OpenAi, View::OpenAiResponses, View::Text] {
            all += &format!("# {name}, for {}\n{}\n\n", view.name(), said(session, view));
        }
    }
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/history/views.txt");
    if std::env::var_os("SCROLLBACK_BLESS").is_some() {
        std::fs::write(&path, &all).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    for (expected, said) in expected.split("\n\n").zip(all.split("\n\n")) {
        assert_eq!(said, expected);
    }
    assert_eq!(all.len(), expected.len());
}

#[test]
fn a_head_anywhere_has_a_history() {
    let session = from_notation(
        "u user: Go.
         a < u assistant !c !d: Looking.
         r < a result ?c: four
         t < r result ?d: five
         b < t assistant: Done.
         s < u ~ user: Count.
         x < s ~ assistant: Counted.
         i < gone user: Lost.
         j < i assistant: Found.",
    );
    // In the middle of an answer: its results are the answer's, wherever the head is.
    assert_eq!(at(&session, "r", View::Text), at(&session, "t", View::Text));
    assert!(at(&session, "r", View::Text).ends_with("Result of c: four\\nResult of d: five\""));
    assert_eq!(at(&session, "x", View::Text), "\"User: Go.\"\n\"User: Count.\"\n\"Assistant: Counted.\"");
    let island = at(&session, "j", View::Text);
    assert!(
        island.starts_with("\"User: Lost.\"\n\"Assistant: Found.\"\nnote: i: its parent \"gone\" is missing"),
        "{island}"
    );
}

#[test]
fn what_a_compaction_preserves_follows_its_summary() {
    let begin = r#"{"type":"user","uuid":"u","parentUuid":null,"message":{"role":"user","content":"One."}}
{"type":"assistant","uuid":"a","parentUuid":"u","message":{"role":"assistant","content":[{"type":"text","text":"First."}]}}
{"type":"user","uuid":"v","parentUuid":"a","message":{"role":"user","content":"Two."}}
{"type":"assistant","uuid":"b","parentUuid":"v","message":{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"Bash","input":{}}]}}
{"type":"user","uuid":"r","parentUuid":"b","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"ok"}]}}
"#;
    let rest = r#"{"type":"user","uuid":"s","parentUuid":"cut","isCompactSummary":true,"message":{"role":"user","content":"Sum."}}
{"type":"user","uuid":"m","parentUuid":"s","isMeta":true,"message":{"role":"user","content":"Caveat."}}
{"type":"attachment","uuid":"n","parentUuid":"m","attachment":{"type":"date"},"rendered":[{"content":"Today."}]}
{"type":"user","uuid":"w","parentUuid":"n","message":{"role":"user","content":"Three."}}"#;
    let ends = r#"{"preservedSegment":{"headUuid":"v","anchorUuid":"s","tailUuid":"r"}}"#;
    // Its result was written down, so that the call is not closed by a failure.
    let without_result = r#"{"preservedMessages":{"uuids":["v","b"]}}"#;
    for kept in [ends, without_result] {
        let cut = format!(
            r#"{{"type":"system","subtype":"compact_boundary","uuid":"cut","parentUuid":null,"logicalParentUuid":"r","compactMetadata":{kept}}}"#
        );
        let session = of_agent("claude-code", &format!("{begin}{cut}\n{rest}"));
        let said = said(&session, View::Text).replace('"', "");
        assert_eq!(
            said.lines().collect::<Vec<_>>(),
            ["User: Sum.", "User: Two.", "Call c of Bash: {}", "Result of c: ok", "User: Caveat.", "User: Three."],
            "{kept}"
        );
        let with_context = History::with_context(&session, session.head().unwrap()).unwrap();
        let with_context = lines(&with_context, View::Text);
        assert!(with_context.contains("\"User: Today.\"\n\"User: Caveat.\"\n\"User: Three.\""), "{with_context}");
    }
}

#[test]
fn an_older_compaction_of_codex_keeps_the_prompts() {
    let log = r#"{"type":"session_meta","payload":{"id":"s","cwd":"/x"}}
{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"One."}]}}
{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"First."}]}}
{"type":"compacted","payload":{"message":"Sum one."}}
{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Two."}]}}
{"type":"compacted","payload":{"message":"Sum two."}}
{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Three."}]}}"#;
    let said = said(&of_agent("codex", log), View::Text);
    assert_eq!(said, "\"User: One.\"\n\"User: Two.\"\n\"User: Sum two.\"\n\"User: Three.\"");
}

/// A message of Codex whose pieces are of this kind.
fn of_kind(role: &str, kind: &str, text: &str) -> String {
    format!(
        r#"{{"type":"message","role":"{role}","content":[{{"type":"input_text","text":"{text}"}}],"internal_chat_message_metadata_passthrough":{{"content_item_kinds":["{kind}"]}}}}"#
    )
}

#[test]
fn the_summary_in_a_replacement_of_codex_reaches_every_model() {
    let environment = of_kind("user", "environments.environment_context", "The folder is /x.");
    let skills = of_kind("developer", "host_skills.instructions", "Be brief.");
    let prompt = of_kind("user", "user.text", "One?");
    for (how, summary) in [
        ("kind", of_kind("user", "compaction.summary", "They counted.")),
        ("developer", of_kind("developer", "compaction.summary", "They counted.")),
        ("another kind", of_kind("user", "compaction.handoff", "They counted.")),
        ("unknown kind", of_kind("user", "unknown", "They counted.")),
        ("new kind", of_kind("user", "memory.recalled", "They counted.")),
        ("no kind", of_kind("user", "user.text", "They counted.")),
        (
            "item",
            r#"{"type":"compaction_summary","summary":[{"type":"summary_text","text":"They counted."}]}"#.to_owned(),
        ),
        ("text item", r#"{"type":"context_compaction","text":"They counted."}"#.to_owned()),
    ] {
        for message in ["They counted.", ""] {
            let log = format!(
                r#"{{"type":"session_meta","payload":{{"id":"t","timestamp":"2026-10-02T09:00:00.000Z","cwd":"/x"}}}}
{{"type":"response_item","payload":{prompt}}}
{{"type":"compacted","payload":{{"message":"{message}","replacement_history":[{prompt},{skills},{environment},{summary}]}}}}
{{"type":"response_item","payload":{{"type":"message","role":"user","content":[{{"type":"input_text","text":"Three?"}}]}}}}"#
            );
            let session = of_agent("codex", &log);
            for view in View::ALL {
                let said = said(&session, view);
                let count = |text: &str| said.matches(text).count();
                let expected = [("One?", 1), ("They counted.", 1), ("Three?", 1), ("folder", 0), ("brief", 0)];
                for (text, times) in expected {
                    assert_eq!(count(text), times, "{how}, {}: {text} in {said}", view.name());
                }
            }
        }
    }
}

#[test]
fn arguments_are_sent_as_the_model_wrote_them() {
    for written in [
        r#"{ "b" : 1,  "a":2 }"#,
        r#"{"n":1.0e3,"m":123456789012345678901234567890,"o":-0}"#,
        r#"{"a":1,"a":2}"#,
        r#"{"text":"\u00e9\/"}"#,
        r#"{"cmd":"ls"#,
        r#""text""#,
        "[1]",
        "",
        "{}",
    ] {
        let arguments = serde_json::Value::from(written);
        let log = format!(
            r#"{{"type":"session_meta","payload":{{"id":"t","timestamp":"2026-10-02T09:00:00.000Z","cwd":"/x"}}}}
{{"type":"response_item","payload":{{"type":"message","role":"user","content":[{{"type":"input_text","text":"One?"}}]}}}}
{{"type":"response_item","payload":{{"type":"function_call","name":"run","call_id":"c1","arguments":{arguments}}}}}
{{"type":"response_item","payload":{{"type":"function_call_output","call_id":"c1","output":"1"}}}}
{{"type":"response_item","payload":{{"type":"custom_tool_call","name":"patch","call_id":"c2","input":{arguments}}}}}"#
        );
        let session = of_agent("codex", &log);
        let items = crate::support::sent(&session, View::OpenAiResponses);
        assert_eq!(items[1]["type"], "function_call", "{written}");
        assert_eq!(items[1]["arguments"], written);
        assert_eq!(items[2]["type"], "function_call_output", "{written}");
        assert_eq!((&items[3]["type"], &items[3]["input"]), (&"custom_tool_call".into(), &arguments));
        let chat = crate::support::sent(&session, View::OpenAi);
        let sent = chat[1]["tool_calls"][0]["function"]["arguments"].as_str().unwrap();
        match serde_json::from_str::<serde_json::Value>(written) {
            Ok(serde_json::Value::Object(_)) => assert_eq!(sent, written),
            // Some programs behind this API parse arguments, and expect an object.
            _ => assert!(serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(sent).is_ok(), "{sent}"),
        }
    }
}

/// A record of Claude Code: (id, parent), the blocks, and for an answer its message.
fn block(id: &str, parent: &str, message: Option<&str>, content: &str) -> String {
    let parent = if parent.is_empty() { "null".to_owned() } else { format!("\"{parent}\"") };
    let (kind, message) = match message {
        Some(message) => ("assistant", format!(r#""id":"{message}","role":"assistant""#)),
        None => ("user", r#""role":"user""#.to_owned()),
    };
    format!(
        r#"{{"type":"{kind}","uuid":"{id}","parentUuid":{parent},"sessionId":"s","timestamp":"2026-11-01T10:00:00.000Z","message":{{{message},"content":{content}}}}}"#
    )
}

#[test]
fn the_blocks_of_a_branched_answer_follow_its_last_block_on_the_branch() {
    let prompt = |id: &str, parent: &str, text: &str| block(id, parent, None, &format!("\"{text}\""));
    let call = |id: &str, parent: &str| {
        let content = format!(r#"[{{"type":"tool_use","id":"{id}","name":"Read","input":{{}}}}]"#);
        block(&format!("b-{id}"), parent, Some("m1"), &content)
    };
    let result = |id: &str, parent: &str| {
        let content = format!(r#"[{{"type":"tool_result","tool_use_id":"{id}","content":"is {id}"}}]"#);
        block(&format!("r-{id}"), parent, None, &content)
    };
    let head = [prompt("u1", "", "One?"), block("t1", "u1", Some("m1"), r#"[{"type":"text","text":"I look."}]"#)];
    let tail = |parent: &str| [prompt("u2", parent, "Two?")];
    let order = |lines: &[String]| {
        let sent = crate::support::sent(&of_agent("claude-code", &lines.join("\n")), View::Anthropic);
        let blocks = sent[1]["content"].as_array().unwrap().iter();
        let ids: Vec<String> = blocks.filter_map(|block| block["id"].as_str().map(str::to_owned)).collect();
        assert_eq!(sent.len(), 3, "{sent:?}");
        ids.join(" ")
    };
    let log = |middle: &[String], end: &str| [&head[..], middle, &tail(end)[..]].concat();
    // A chain, and results that hang off it.
    let chain = [call("c1", "t1"), call("c2", "b-c1"), call("c3", "b-c2")];
    let chained = [&chain[..], &[result("c1", "b-c1"), result("c2", "b-c2"), result("c3", "b-c3")]].concat();
    assert_eq!(order(&log(&chained, "r-c3")), "c1 c2 c3");
    // Siblings: the block on the branch first, then the others in file order.
    let forked = [call("c1", "t1"), call("c2", "t1"), call("c3", "t1")];
    let results = [result("c1", "b-c1"), result("c2", "b-c2"), result("c3", "b-c3")];
    let forked = [&forked[..], &results].concat();
    assert_eq!(order(&log(&forked, "r-c1")), "c1 c2 c3");
    assert_eq!(order(&log(&forked, "r-c2")), "c2 c1 c3");
    assert_eq!(order(&log(&forked, "r-c3")), "c3 c1 c2");
    // A block that was written after the conversation went on.
    let late = [log(&forked[..1], "b-c1"), vec![call("c2", "t1"), prompt("u3", "u2", "Three?")]].concat();
    assert_eq!(order(&late), "c1 c2");
}

#[test]
fn what_claude_code_keeps_or_mentions_is_sent_where_the_agent_sends_it() {
    let read = |case: &str| {
        let log = crate::support::corpus().join("claude-code").join(case).join("session.jsonl");
        of_agent("claude-code", &std::fs::read_to_string(log).unwrap())
    };
    let compacted = read("compaction-from-here");
    let sent = crate::support::sent(&compacted, View::OpenAi);
    let texts: Vec<&str> = sent.iter().map(|message| message["content"].as_str().unwrap()).collect();
    assert_eq!(texts, ["One?", "Two.", "They counted on.", "Five?", "Six."]);
    let sent = crate::support::sent(&read("compaction-from-here-after-another"), View::OpenAi);
    let texts: Vec<&str> = sent.iter().map(|message| message["content"].as_str().unwrap()).collect();
    assert_eq!(
        texts,
        [
            "They counted to two.",
            "Two.",
            "<local-command-stdout>Compacted</local-command-stdout>",
            "They counted on.",
            "Five?",
            "Six."
        ]
    );
    let sent = crate::support::sent(&read("mentioned-picture"), View::Anthropic);
    let types: Vec<&str> =
        sent[0]["content"].as_array().unwrap().iter().map(|block| block["type"].as_str().unwrap()).collect();
    assert_eq!((types, sent.len()), (vec!["image", "text"], 2));
}

#[test]
fn the_texts_of_one_result_stay_apart_where_the_api_allows_it() {
    let content = r#"[{"type":"tool_result","tool_use_id":"c1","is_error":true,"content":[{"type":"text","text":"first"},{"type":"text","text":"second"}]}]"#;
    let log = [
        block("u1", "", None, "\"One?\""),
        block("a1", "u1", Some("m1"), r#"[{"type":"tool_use","id":"c1","name":"Read","input":{}}]"#),
        block("u2", "a1", None, content),
    ];
    let session = of_agent("claude-code", &log.join("\n"));
    let sent = |view| crate::support::sent(&session, view);
    let pieces = |kind: &str| serde_json::json!([{"type": kind, "text": "first"}, {"type": kind, "text": "second"}]);
    assert_eq!(sent(View::Anthropic)[2]["content"][0]["content"], pieces("text"));
    assert_eq!(sent(View::OpenAiResponses)[2]["output"], pieces("input_text"));
    assert_eq!(sent(View::OpenAi)[2]["content"], "first\nsecond");
    let response = &sent(View::Gemini)[2]["parts"][0]["functionResponse"];
    assert_eq!(response["response"]["error"], "first\nsecond");
    let shown = crate::support::messages(&session);
    let shown = serde_json::to_value(&shown[1]).unwrap();
    let call = shown["parts"].as_array().unwrap().iter().find(|part| part["type"] == "dynamic-tool").unwrap();
    assert_eq!(call["errorText"], "first\nsecond");
}

/// A record of Qwen Code.
fn content(id: &str, parent: &str, kind: &str, parts: &str) -> String {
    let parent = if parent.is_empty() { "null".to_owned() } else { format!("\"{parent}\"") };
    let role = if kind == "assistant" { "model" } else { "user" };
    format!(
        r#"{{"type":"{kind}","uuid":"{id}","parentUuid":{parent},"sessionId":"s","cwd":"/x","timestamp":"2026-11-01T10:00:00.000Z","message":{{"role":"{role}","parts":{parts}}}}}"#
    )
}

#[test]
fn qwen_code_sends_the_texts_of_an_answer_and_adjacent_answers_as_one() {
    let log = [
        content("u1", "", "user", r#"[{"text":"One?"},{"text":" Two?"}]"#),
        content("a1", "u1", "assistant", r#"[{"text":"I th","thought":true},{"text":"A"},{"text":"B"}]"#),
        content(
            "a2",
            "a1",
            "assistant",
            r#"[{"text":"ink.","thought":true},{"text":"C"},{"functionCall":{"id":"c1","name":"f","args":{}}}]"#,
        ),
        content(
            "r1",
            "a2",
            "tool_result",
            r#"[{"functionResponse":{"id":"c1","name":"f","response":{"output":"1"}}}]"#,
        ),
        content("a3", "r1", "assistant", r#"[{"text":"Hm.","thought":true}]"#),
        content("u2", "a3", "user", r#"[{"text":"Three?"}]"#),
    ];
    let session = of_agent("qwen-code", &log.join("\n"));
    let sent = crate::support::sent(&session, View::OpenAi);
    assert_eq!(sent.len(), 5, "{sent:?}");
    assert_eq!(sent[0]["content"].as_array().unwrap().len(), 2);
    assert_eq!((&sent[1]["content"], &sent[1]["reasoning_content"]), (&"ABC".into(), &"I think.".into()));
    assert_eq!(sent[1]["tool_calls"].as_array().unwrap().len(), 1);
    assert_eq!((&sent[3]["content"], &sent[3]["reasoning_content"]), (&"".into(), &"Hm.".into()));
    // The other views keep what was recorded.
    assert_eq!(crate::support::sent(&session, View::Gemini).len(), log.len());
}

#[test]
fn results_of_one_answer_are_one_content_and_nothing_else_is_joined() {
    let response =
        |id: &str| format!(r#"{{"functionResponse":{{"id":"{id}","name":"f","response":{{"output":"{id}"}}}}}}"#);
    let call = |id: &str| format!(r#"{{"functionCall":{{"id":"{id}","name":"f","args":{{}}}}}}"#);
    let log = [
        content("u1", "", "user", r#"[{"text":"One?"}]"#),
        content("u2", "u1", "user", r#"[{"text":"Two?"}]"#),
        content("a1", "u2", "assistant", &format!("[{},{},{}]", call("c1"), call("c2"), call("c3"))),
        content("r1", "a1", "tool_result", &format!("[{}]", response("c1"))),
        content("r2", "r1", "tool_result", &format!("[{}]", response("c2"))),
        content("r3", "r2", "tool_result", &format!("[{}]", response("c3"))),
        content("a2", "r3", "assistant", &format!("[{}]", call("c4"))),
        content("r4", "a2", "tool_result", &format!("[{}]", response("c4"))),
        content("a3", "r4", "assistant", r#"[{"text":"Done."}]"#),
        content("a4", "a3", "assistant", r#"[{"text":"Really."}]"#),
    ];
    let session = of_agent("qwen-code", &log.join("\n"));
    let history = History::of(&session, session.head().unwrap()).unwrap();
    let (contents, notes) = View::Gemini.messages(&history).unwrap();
    let counts: Vec<usize> = contents.iter().map(|content| content["parts"].as_array().unwrap().len()).collect();
    assert_eq!(counts, [1, 1, 3, 3, 1, 1, 1, 1]);
    let ids: Vec<&str> = contents[3]["parts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| part["functionResponse"]["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["c1", "c2", "c3"]);
    let told: Vec<(&str, &str)> = notes.iter().map(|note| (note.record.as_str(), note.what.as_str())).collect();
    assert_eq!(told, [("r1", "the results of one answer are sent as one content")]);
}

#[test]
fn results_that_another_agent_wrote_apart_are_joined_for_gemini_and_that_is_noted() {
    let line = |kind: &str, uuid: &str, parent: &str, blocks: &str| {
        let message = format!(r#"{{"role":"{kind}","id":"m1","content":[{blocks}]}}"#);
        format!(r#"{{"type":"{kind}","uuid":"{uuid}","parentUuid":"{parent}","sessionId":"s1","message":{message}}}"#)
    };
    let call = |id: &str| format!(r#"{{"type":"tool_use","id":"{id}","name":"f","input":{{}}}}"#);
    let result = |id: &str| format!(r#"{{"type":"tool_result","tool_use_id":"{id}","content":"ok"}}"#);
    let log = [
        line("assistant", "a1", "", &format!("{},{}", call("c1"), call("c2"))),
        line("user", "r1", "a1", &result("c1")),
        line("user", "r2", "r1", &result("c2")),
    ];
    let session = of_agent("claude-code", &log.join("\n"));
    let history = History::of(&session, session.head().unwrap()).unwrap();
    let (contents, notes) = View::Gemini.messages(&history).unwrap();
    assert_eq!(contents.last().unwrap()["parts"].as_array().unwrap().len(), 2);
    assert!(notes.iter().any(|note| note.what == "the results of one answer are sent as one content"), "{notes:?}");
}

#[test]
fn a_compaction_in_the_midst_of_a_turn_does_not_lose_its_result() {
    let log = r#"{"uuid":"u","parentUuid":null,"sessionId":"s","type":"user","message":{"role":"user","parts":[{"text":"Go."}]}}
{"uuid":"a","parentUuid":"u","sessionId":"s","type":"assistant","message":{"role":"model","parts":[{"functionCall":{"id":"c","name":"read","args":{}}}]}}
{"uuid":"r","parentUuid":"a","sessionId":"s","type":"tool_result","message":{"role":"user","parts":[{"functionResponse":{"id":"c","name":"read","response":{"output":"four"}}}]}}
{"uuid":"z","parentUuid":"r","sessionId":"s","type":"system","subtype":"chat_compression","systemPayload":{"info":{},"compressedHistory":[{"role":"user","parts":[{"text":"Sum."}]},{"role":"model","parts":[{"functionCall":{"id":"c","name":"read","args":{}}}]}]}}
{"uuid":"b","parentUuid":"z","sessionId":"s","type":"assistant","message":{"role":"model","parts":[{"text":"Four."}]}}"#;
    let said = said(&of_agent("qwen-code", log), View::Text);
    assert_eq!(said, "\"User: Sum.\"\n\"Call c of read: {}\"\n\"Result of c: four\"\n\"Assistant: Four.\"");
}

#[test]
fn what_only_the_model_can_read_is_sent_back_to_it() {
    let log = r#"{"type":"session_meta","payload":{"id":"s","cwd":"/x"}}
{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"One."}]}}
{"type":"compacted","payload":{"message":"","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"One."}]},{"type":"compaction","encrypted_content":"E"}]}}
{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Two."}]}}
{"type":"response_item","payload":{"type":"web_search_call","id":"ws","status":"completed","action":{"type":"search","query":"q"}}}"#;
    let session = of_agent("codex", log);
    assert_eq!(
        said(&session, View::OpenAiResponses).lines().collect::<Vec<_>>(),
        [
            r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"One."}]}"#,
            r#"{"type":"compaction","encrypted_content":"E"}"#,
            r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"Two."}]}"#,
            r#"{"type":"web_search_call","status":"completed","action":{"type":"search","query":"q"}}"#,
        ]
    );
    assert!(said(&session, View::Anthropic).contains("a part that only another API supports is not sent"));
    let log = r#"{"type":"user","uuid":"u","parentUuid":null,"message":{"role":"user","content":"Find it."}}
{"type":"assistant","uuid":"a","parentUuid":"u","message":{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"q"}},{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://example.com","encrypted_content":"E"}]},{"type":"text","text":"Found."}]}}"#;
    assert_eq!(
        said(&of_agent("claude-code", log), View::Anthropic).lines().nth(1),
        Some(
            r#"{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"q"}},{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://example.com","encrypted_content":"E"}]},{"type":"text","text":"Found."}]}"#
        )
    );
}

#[test]
fn in_a_room_every_message_says_whose_it_is() {
    let log = r#"{"type":"message","role":"user","sender":"ada@muc","content":"Hello."}
{"type":"message","role":"assistant","content":"Hi."}
{"type":"message","role":"user","sender":"bo@example.org","content":"Alone."}"#;
    let said = said(&of_agent("fluux", log), View::OpenAi);
    assert!(said.contains(r#""ada@muc: Hello.""#) && said.contains(r#""Alone.""#), "{said}");
}

#[test]
fn a_message_of_several_steps_is_several_turns() {
    let log = r#"[{"id":"u","role":"user","parts":[{"type":"text","text":"Go."}]},
{"id":"a","role":"assistant","parts":[{"type":"step-start"},{"type":"text","text":"One."},
 {"type":"tool-Bash","toolCallId":"c","state":"output-available","input":{},"output":{"n":4}},
 {"type":"steering-message","id":"s","parts":[{"type":"text","text":"Hurry."}]},
 {"type":"step-start"},{"type":"dynamic-tool","toolName":"Read","toolCallId":"d","state":"output-error","input":{},"errorText":"no"},
 {"type":"step-start"},{"type":"text","text":"Two."}]}]"#;
    let said = said(&of_agent("ai-sdk", log), View::Text);
    let expected = [
        r#""User: Go.""#,
        r#""Assistant: One.\nCall c of Bash: {}""#,
        r#""Result of c: {\"n\":4}""#,
        r#""User: Hurry.""#,
        r#""Call d of Read: {}""#,
        r#""Failed result of d: no""#,
        r#""Assistant: Two.""#,
    ];
    assert_eq!(said.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn the_last_messages_are_whole() {
    let session = from_notation(
        "u user: Go.
         a < u assistant !c: Looking.
         r < a result ?c: four
         b < r assistant: Four.
         v < b user: On.",
    );
    let kept = |session: &Session, messages, view: View| {
        let mut history = History::of(session, session.head().unwrap()).unwrap();
        history.last_messages(messages, view).unwrap()
    };
    let counts = |view: View| (0..8).map(|messages| kept(&session, messages, view).0.len()).collect::<Vec<_>>();
    // A result without its call is left out; Anthropic's API needs a user before an answer, who does not count.
    assert_eq!(counts(View::OpenAi), [0, 1, 2, 2, 4, 5, 5, 5]);
    assert_eq!(counts(View::Anthropic), [0, 1, 3, 3, 5, 5, 5, 5]);
    assert_eq!(counts(View::Gemini), [0, 1, 3, 3, 5, 5, 5, 5]);
    assert_eq!(counts(View::OpenAiResponses), [0, 1, 2, 2, 4, 5, 6, 6]);
    assert_eq!(counts(View::AiSdk), [0, 1, 2, 2, 4, 5, 5, 5]);
    assert_eq!(counts(View::Text), [0, 1, 2, 2, 4, 5, 5, 5]);
    assert_eq!(kept(&session, usize::MAX, View::Text).0.len(), 5);
    let (_, notes) = kept(&session, 3, View::Anthropic);
    let notes: Vec<String> = notes.iter().map(|note| format!("{}: {}", note.record, note.what)).collect();
    assert_eq!(
        notes,
        [
            "r: results whose calls come before the last messages are not sent",
            "r: the history starts with an answer; a user message was added before it"
        ]
    );
    // The call, its result and the answer fit.
    let answered =
        from_notation("u user: Go.\na < u assistant !c: Looking.\nr < a result ?c: four\nb < r assistant: Four.");
    for view in [View::OpenAi, View::AiSdk, View::Text, View::OpenAiResponses] {
        assert_eq!(kept(&answered, 3, view).0.len(), 3, "{}", view.name());
    }
    assert_eq!(kept(&answered, 3, View::Anthropic).0.len(), 4);
    // What is one message with another is not lost.
    let summed = from_notation("u user: Go.\nc < u compaction: Sum.\nv < c user: On.\na < v assistant: Done.");
    let messages = kept(&summed, 2, View::Anthropic).0;
    assert_eq!(messages[0]["content"].as_array().unwrap().len(), 2);
    // A history that begins with an answer: the filler stays, and does not count.
    let answer_first = from_notation("a assistant: Hello.\nu < a user: Go.");
    assert_eq!(kept(&answer_first, 2, View::Anthropic).0.len(), 3);
    assert_eq!(kept(&answer_first, 1, View::Anthropic).0.len(), 1);
    let ends_in_results = from_notation("u user: Go.\na < u assistant !c: Looking.");
    assert_eq!(kept(&ends_in_results, 1, View::OpenAi).0.len(), 0);
}

#[test]
fn a_cut_that_nothing_stands_for_cuts_nothing() {
    let log = r#"{"type":"user","uuid":"u","parentUuid":null,"message":{"role":"user","content":"One."}}
{"type":"assistant","uuid":"a","parentUuid":"u","message":{"role":"assistant","content":[{"type":"text","text":"First."}]}}
{"type":"system","subtype":"compact_boundary","uuid":"cut","parentUuid":null,"logicalParentUuid":"a","content":"Compacted"}
{"type":"user","uuid":"v","parentUuid":"cut","message":{"role":"user","content":"Two."}}"#;
    let lost = "note: cut: it has no summary; the history before it is sent";
    let expected = format!("\"User: One.\"\n\"Assistant: First.\"\n\"User: Two.\"\n{lost}");
    assert_eq!(said(&of_agent("claude-code", log), View::Text), expected);
    let log = r#"{"uuid":"u","parentUuid":null,"sessionId":"s","type":"user","message":{"role":"user","parts":[{"text":"One."}]}}
{"uuid":"a","parentUuid":"u","sessionId":"s","type":"assistant","message":{"role":"model","parts":[{"text":"First."}]}}
{"uuid":"cut","parentUuid":"a","sessionId":"s","type":"system","subtype":"chat_compression","systemPayload":{"info":{},"compressedHistory":[]}}
{"uuid":"v","parentUuid":"cut","sessionId":"s","type":"user","message":{"role":"user","parts":[{"text":"Two."}]}}"#;
    assert_eq!(said(&of_agent("qwen-code", log), View::Text), expected);
    assert_eq!(said(&of_agent("qwen-code", log), View::Gemini).lines().count(), 4);
}

#[test]
fn calls_of_one_id_get_their_results_in_order() {
    let begin = r#"{"type":"session_meta","payload":{"id":"s","cwd":"/x"}}
{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Go."}]}}
{"type":"response_item","payload":{"type":"function_call","name":"exec","arguments":"{\"n\":1}","call_id":"c"}}
{"type":"response_item","payload":{"type":"function_call","name":"exec","arguments":"{\"n\":2}","call_id":"c"}}
{"type":"response_item","payload":{"type":"function_call_output","call_id":"c","output":"one"}}"#;
    let second = r#"{"type":"response_item","payload":{"type":"function_call_output","call_id":"c","output":"two"}}"#;
    let results = |log: &str| said(&of_agent("codex", log), View::Text).lines().nth(2).unwrap().to_owned();
    assert_eq!(results(&format!("{begin}\n{second}")), r#""Result of c: one\nResult of c_2: two""#);
    let alone = results(begin);
    assert!(alone.starts_with(r#""Result of c: one\nFailed result of c_2: [no result"#), "{alone}");
}

#[test]
fn reasoning_that_led_to_nothing_does_not_end_a_history() {
    let log = r#"{"type":"session_meta","payload":{"id":"s","cwd":"/x"}}
{"type":"response_item","payload":{"type":"message","role":"developer","content":[{"type":"input_text","text":"Be kind."}]}}
{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Go."}]}}
{"type":"response_item","payload":{"type":"function_call","name":"exec","arguments":"{}","call_id":"c"}}
{"type":"response_item","payload":{"type":"function_call_output","call_id":"c","output":"one"}}
{"type":"response_item","payload":{"type":"reasoning","summary":[],"encrypted_content":"E"}}"#;
    let session = of_agent("codex", log);
    let history = History::with_context(&session, session.head().unwrap()).unwrap();
    assert_eq!(history.state, State::InterruptedTurn);
    assert_eq!(
        history.notice,
        "Resumed session: 2 messages, the last answer was interrupted: nothing follows its thinking."
    );
    let (items, notes) = View::OpenAiResponses.messages(&history).unwrap();
    assert_eq!(items.last().unwrap()["type"], "function_call_output");
    assert_eq!(notes[0].what, "reasoning without an answer is not sent");
    // The developer instructs, and no user.
    assert_eq!(items[0]["role"], "developer");
    assert_eq!(View::OpenAi.messages(&history).unwrap().0[0]["role"], "developer");
}

#[test]
fn a_session_that_nobody_answered_does_not_go_on_after_an_answer() {
    let session = from_notation("u user: Go.\na < u assistant: Done.\nc < a compaction: Sum.");
    let history = History::of(&session, session.head().unwrap()).unwrap();
    assert_eq!(history.notice, "Resumed session: 2 messages, it continues after the summary of what came before.");
}

#[test]
fn what_the_model_was_never_shown_is_no_context() {
    let log = r#"{"type":"user","uuid":"u","parentUuid":null,"message":{"role":"user","content":"Go."}}
{"type":"attachment","uuid":"x","parentUuid":"u","attachment":{"type":"date"}}
{"type":"attachment","uuid":"y","parentUuid":"x","attachment":{"type":"model"},"rendered":[{"content":"Today."}],"renderedRole":"system"}
{"type":"assistant","uuid":"a","parentUuid":"y","message":{"role":"assistant","content":[{"type":"text","text":"Gone."}]}}"#;
    let session = of_agent("claude-code", log);
    let history = History::with_context(&session, session.head().unwrap()).unwrap();
    assert_eq!(lines(&history, View::Text), "\"User: Go.\"\n\"System: Today.\"\n\"Assistant: Gone.\"");
}

/// Claude Code sends what a prompt mentions before all that was said since the last answer.
#[test]
fn what_a_prompt_mentions_is_sent_before_it() {
    let log = r#"{"type":"assistant","uuid":"a","parentUuid":null,"message":{"role":"assistant","content":[{"type":"text","text":"Done."}]}}
{"type":"user","uuid":"c","parentUuid":"a","message":{"role":"user","content":"<command-name>/model</command-name>"}}
{"type":"user","uuid":"u","parentUuid":"c","message":{"role":"user","content":"@a.txt @b.txt Go."}}
{"type":"attachment","uuid":"e","parentUuid":"u","attachment":{"type":"environment"},"rendered":[{"content":"<system-reminder>Here.</system-reminder>"}],"renderedRole":"system"}
{"type":"attachment","uuid":"f","parentUuid":"e","attachment":{"type":"file","filename":"/x/a.txt"},"rendered":[{"content":"<system-reminder>Called.</system-reminder>"},{"content":"<system-reminder>One.</system-reminder>"}]}
{"type":"attachment","uuid":"g","parentUuid":"f","attachment":{"type":"file","filename":"/x/b.txt","content":{"type":"text","file":{"filePath":"/x/b.txt","content":"Two.\nThree.","numLines":2,"startLine":4}}}}
{"type":"attachment","uuid":"d","parentUuid":"g","attachment":{"type":"date"},"rendered":[{"content":"<system-reminder>Today.</system-reminder>"}],"renderedRole":"user"}"#;
    let session = of_agent("claude-code", log);
    let told = |history: &History<'_>| -> Vec<String> {
        let (items, _) = View::OpenAi.messages(history).unwrap();
        let texts = |item: &serde_json::Value| match &item["content"] {
            serde_json::Value::Array(pieces) => {
                pieces.iter().map(|piece| piece["text"].as_str().unwrap().to_owned()).collect()
            }
            text => vec![text.as_str().unwrap().to_owned()],
        };
        let texts: Vec<String> = items.iter().flat_map(texts).collect();
        texts
            .iter()
            .map(|text| text.replace("<system-reminder>", "").replace("</system-reminder>", "").trim().to_owned())
            .collect()
    };
    let (called, read) = (
        r#"Called the Read tool with the following input: {"file_path":"/x/b.txt"}"#,
        "Result of calling the Read tool:\n4\tTwo.\n5\tThree.",
    );
    let (command, prompt) = ("<command-name>/model</command-name>", "@a.txt @b.txt Go.");
    let head = session.head().unwrap();
    let sent = told(&History::of(&session, head).unwrap());
    assert_eq!(sent, ["Done.", "Called.", "One.", called, read, command, prompt]);
    let sent = told(&History::with_context(&session, head).unwrap());
    assert_eq!(sent, ["Done.", "Called.", "One.", called, read, "Today.", command, prompt, "Here."]);
}

fn of_corpus(case: &str) -> Session {
    of_agent(
        "claude-code",
        &std::fs::read_to_string(crate::support::corpus().join(case).join("session.jsonl")).unwrap(),
    )
}

/// Each message: its role and its texts, line feeds included.
fn roles_and_texts(session: &Session) -> Vec<String> {
    let (messages, _) = View::Anthropic.messages(&History::of(session, session.head().unwrap()).unwrap()).unwrap();
    let texts = |message: &serde_json::Value| -> Vec<String> {
        let blocks = message["content"].as_array().unwrap();
        blocks
            .iter()
            .map(|block| block["text"].as_str().or(block["type"].as_str()).unwrap().to_owned())
            .collect()
    };
    messages
        .iter()
        .map(|message| format!("{} {:?}", message["role"].as_str().unwrap(), texts(message)))
        .collect()
}

/// Claude Code says it in a message of its own, without tags; the prompt gets no line feed.
#[test]
fn what_the_system_says_follows_the_users_message() {
    assert_eq!(
        roles_and_texts(&of_corpus("claude-code/changed-on-disk"))[2..],
        [
            r#"user ["And today?"]"#,
            r#"system ["Note: brest.csv changed on disk:\n1\t05:00"]"#,
            r#"assistant ["At 05:00."]"#
        ]
    );
    let hooks = roles_and_texts(&of_corpus("claude-code/hooks"));
    assert_eq!(
        hooks,
        [
            r#"user ["When is high water?"]"#,
            r#"system ["UserPromptSubmit hook success: It is spring."]"#,
            r#"assistant ["tool_use"]"#,
            r#"user ["tool_result"]"#,
            r#"system ["PostToolUse:Read hook blocking error from command: \"check.sh\": [check.sh]: that file is old\n"]"#,
            r#"assistant ["At 04:12."]"#,
            r#"user ["Stop hook feedback:\n[stop.sh]: say the harbour\n"]"#,
            r#"assistant ["At 04:12 in Brest."]"#,
            r#"user ["And today?"]"#,
            r#"system ["UserPromptSubmit hook additional context: It rains."]"#,
            r#"assistant ["At 05:00."]"#,
        ]
    );
    // What it says before the first prompt, and twice.
    let log = r#"{"type":"attachment","uuid":"h","parentUuid":null,"attachment":{"type":"hook_success"},"rendered":[{"content":"<system-reminder>\nOne.\n</system-reminder>"}],"renderedRole":"system"}
{"type":"user","uuid":"u","parentUuid":"h","message":{"role":"user","content":"Go."}}
{"type":"attachment","uuid":"i","parentUuid":"u","attachment":{"type":"hook_success"},"rendered":[{"content":"<system-reminder>\nTwo.\n</system-reminder>"}],"renderedRole":"system"}"#;
    let session = of_agent("claude-code", log);
    assert_eq!(roles_and_texts(&session), [r#"user ["Go."]"#, r#"system ["One.\n\nTwo."]"#]);
    // To other models it is said in the user's name, as the agent says other things.
    assert!(!said(&session, View::OpenAi).contains(r#""role":"system""#));
    let mut history = History::of(&session, session.head().unwrap()).unwrap();
    let (last, _) = history.last_messages(1, View::Anthropic).unwrap();
    assert_eq!(last.iter().map(|message| &message["role"]).collect::<Vec<_>>(), ["user", "system"]);
}

/// The agent attaches context after the report of the failure, and separates it from the summary by no line feed.
#[test]
fn a_summary_that_a_failure_follows_ends_without_a_line_feed() {
    let sent = roles_and_texts(&of_corpus("claude-code/compaction-after-an-error"));
    assert!(
        sent[0].starts_with(r#"user ["They spoke of tides.", "<command-name>/compact</command-name>\n""#),
        "{}",
        sent[0]
    );
    let session = of_corpus("claude-code/compaction-after-an-error");
    let history = History::with_context(&session, session.head().unwrap()).unwrap();
    let whole = View::Anthropic.messages(&history).unwrap().0[0].to_string();
    let place = |text: &str| whole.find(text).unwrap();
    assert!(place("of tides.\"") < place("The branch is main.") && place("The branch is main.") < place("/compact"));
}

#[test]
fn a_prompt_that_waited_is_a_prompt() {
    let queued = |mode: &str| {
        let log = format!(
            r#"{{"type":"user","uuid":"u","parentUuid":null,"message":{{"role":"user","content":"Go."}}}}
{{"type":"assistant","uuid":"a","parentUuid":"u","message":{{"role":"assistant","content":[{{"type":"tool_use","id":"c","name":"Bash","input":{{}}}}]}}}}
{{"type":"user","uuid":"r","parentUuid":"a","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"c","content":"ok"}}]}}}}
{{"type":"attachment","uuid":"q","parentUuid":"r","attachment":{{"type":"queued_command","prompt":"Hurry.","commandMode":"{mode}"}}}}"#
        );
        of_agent("claude-code", &log)
    };
    let session = queued("prompt");
    assert!(said(&session, View::Text).ends_with("\"Result of c: ok\"\n\"User: Hurry.\""));
    let resume = prepare_resume(&session, session.head().unwrap()).unwrap();
    assert_eq!((resume.history.state, resume.messages.len()), (State::InterruptedPrompt, 3));
    assert!(said(&queued("task-notification"), View::Text).ends_with("\"User: Hurry.\""));
}

#[test]
fn files_that_only_one_api_holds_go_back_to_it() {
    let log = r#"{"type":"user","uuid":"u","parentUuid":null,"message":{"role":"user","content":[{"type":"image","source":{"type":"file","file_id":"f"}},{"type":"document","source":{"type":"text","media_type":"text/plain","data":"Words."}},{"type":"image","source":{"type":"base64","media_type":"image/tiff","data":"AAAA"}}]}}"#;
    let session = of_agent("claude-code", log);
    assert_eq!(
        said(&session, View::Anthropic).lines().next().unwrap(),
        r#"{"role":"user","content":[{"type":"image","source":{"type":"file","file_id":"f"}},{"type":"document","source":{"type":"text","media_type":"text/plain","data":"Words."}},{"type":"text","text":"[file (image/tiff)]"}]}"#
    );
    for view in [View::OpenAi, View::OpenAiResponses, View::Gemini] {
        let said = said(&session, view);
        assert!(said.contains(r#""text":"Words.""#) && said.contains(r#""text":"[file (image/tiff)]""#), "{said}");
        assert!(said.contains(r#"note: u: only the name of a file of type "image/tiff" is sent"#), "{said}");
    }
}

#[test]
fn what_fluux_sends_is_the_same_in_every_view() {
    let log = r#"{"type":"message","role":"user","sender":"ada@muc","content":"Hello.","attachments":[{"filename":"a.png","mime_type":"image/png","size":3,"url":"x"}],"msg_id":"m"}
{"type":"message","role":"assistant","content":"Hi.","msg_id":"n"}"#;
    let session = of_agent("fluux", log);
    let history = History::of(&session, session.head().unwrap()).unwrap();
    let sent = |view: View| view.messages(&history).unwrap().0[0].clone();
    let words = sent(View::Fluux)["content"].clone();
    assert_eq!(words, "ada@muc: {\"filename\":\"a.png\",\"mime_type\":\"image/png\",\"size\":3}\nHello.");
    assert_eq!(sent(View::OpenAi)["content"], words);
    assert_eq!(sent(View::Anthropic)["content"], serde_json::json!([{"type": "text", "text": words}]));
    assert_eq!(sent(View::Gemini)["parts"], serde_json::json!([{"text": words}]));
}

#[test]
fn a_message_in_a_role_that_nobody_knows_is_not_dropped_in_silence() {
    let log = r#"{"type":"message","role":"user","content":"Hello.","msg_id":"m"}
{"type":"message","role":"system","content":"Be kind.","msg_id":"s"}
{"type":"message","role":"assistant","content":"Hi.","msg_id":"n"}"#;
    let said = said(&of_agent("fluux", log), View::Text);
    assert_eq!(said, "\"User: Hello.\"\n\"Assistant: Hi.\"\nnote: s: its kind is unknown; it is not sent");
}

#[test]
fn long_names_of_tools_are_cut_and_stay_apart() {
    let call = |end: &str| {
        let (name, id) = (format!("{}{end}", "n".repeat(70)), format!("c{end}"));
        format!(
            r#"{{"type":"response_item","payload":{{"type":"function_call","name":"{name}","arguments":"{{}}","call_id":"{id}"}}}}"#
        )
    };
    let meta = r#"{"type":"session_meta","payload":{"id":"s","cwd":"/x"}}"#;
    let session = of_agent("codex", &[meta.to_owned(), call("a"), call("b")].join("\n"));
    let history = History::of(&session, session.head().unwrap()).unwrap();
    let (items, notes) = View::OpenAiResponses.messages(&history).unwrap();
    let names: Vec<&str> = items.iter().filter_map(|item| item["name"].as_str()).collect();
    assert_eq!(names.iter().map(|name| name.len()).collect::<Vec<_>>(), [64, 64]);
    assert_ne!(names[0], names[1]);
    assert!(notes[0].what.contains("the API rejects its name"));
}

#[test]
fn a_made_up_response_joins_the_recorded_ones() {
    let log = r#"{"uuid":"u","parentUuid":null,"sessionId":"s","type":"user","message":{"role":"user","parts":[{"text":"Go."}]}}
{"uuid":"a","parentUuid":"u","sessionId":"s","type":"assistant","message":{"role":"model","parts":[{"functionCall":{"id":"c","name":"read","args":{}}},{"functionCall":{"id":"d","name":"read","args":{}}}]}}
{"uuid":"r","parentUuid":"a","sessionId":"s","type":"tool_result","message":{"role":"user","parts":[{"functionResponse":{"id":"c","name":"read","response":{"output":"four"}}}]}}"#;
    let session = of_agent("qwen-code", log);
    let history = History::of(&session, session.head().unwrap()).unwrap();
    let contents = View::Gemini.messages(&history).unwrap().0;
    assert_eq!(contents.len(), 3);
    assert_eq!(contents[2]["parts"][0]["functionResponse"]["id"], "c");
    assert_eq!(contents[2]["parts"][1]["functionResponse"]["id"], "d");
}

#[test]
fn everything_that_a_resume_needs_comes_at_once() {
    let session = read(
        r#"{"type":"user","uuid":"u","todos":[{"content":"Look","status":"pending"}],"thinkingMetadata":{"level":"high"},"message":{"content":"Go."}}
{"type":"assistant","uuid":"a","parentUuid":"u","message":{"content":"","toolCalls":[{"id":"c","name":"Read","arguments":{}}]}}"#,
    );
    let resume = prepare_resume(&session, session.head().unwrap()).unwrap();
    assert_eq!(resume.history.state, State::InterruptedTurn);
    assert_eq!(
        resume.history.notice,
        "Resumed session: 2 messages, the last answer was interrupted: one call has no result, and it is not run again."
    );
    assert_eq!(resume.todos.unwrap()[0].content, "Look");
    assert_eq!(resume.thinking.unwrap().level.as_deref(), Some("high"));
    assert_eq!((resume.messages.len(), resume.history.turns.len()), (2, 3));
    let states = [
        ("u user: Go.\na < u assistant: Done.", State::Clean),
        ("u user: Go.", State::InterruptedPrompt),
        ("u user: Go.\na < u assistant !c: Looking.\nr < a result ?c: four", State::InterruptedTurn),
        ("u < gone user: Go.\na < u assistant: Done.", State::Degraded),
    ];
    for (told, state) in states {
        let session = from_notation(told);
        assert_eq!(History::of(&session, session.head().unwrap()).unwrap().state, state, "{told}");
    }
}

#[test]
fn half_a_character_is_named() {
    let session = read(r#"{"type":"user","uuid":"u","message":{"content":"Go \ud83d."}}"#);
    let said = said(&session, View::Text);
    assert_eq!(said, "\"User: Go \u{fffd}.\"\nnote: u: half a character was replaced by U+FFFD");
}

/// Sessions that lack something, or have something that not every API takes.
fn cases() -> Vec<(&'static str, Session)> {
    vec![
        (
            "parallel and failing calls",
            read(
                r#"{"type":"user","uuid":"u","message":{"content":"Go."}}
{"type":"assistant","uuid":"a","parentUuid":"u","message":{"content":"Both.","toolCalls":[{"id":"c1","name":"Read","arguments":{"path":"x"}},{"id":"c2","name":"Bash","arguments":{"command":"false"}}]}}
{"type":"tool_result","uuid":"r2","parentUuid":"a","toolResults":[{"toolCallId":"c2","content":"exit 1","success":false}]}
{"type":"tool_result","uuid":"r1","parentUuid":"r2","toolResults":[{"toolCallId":"c1","content":"text","success":true}]}
{"type":"assistant","uuid":"b","parentUuid":"r1","message":{"content":"Done."}}"#,
            ),
        ),
        ("dangling call", from_notation("u user: Go.\na < u assistant !c: Looking.")),
        (
            "a call that the conversation went on without",
            from_notation("u user: Go.\na < u assistant !c: Looking.\nv < a user: Stop.\nb < v assistant: Stopped."),
        ),
        ("orphan result", from_notation("u user: Go.\nr < u result ?gone: four\na < r assistant: Four.")),
        (
            "doubled result",
            from_notation(
                "u user: Go.\na < u assistant !c: Looking.\nr < a result ?c: one\ns < r result ?c: two\nb < s assistant: One.",
            ),
        ),
        (
            "compaction of a compaction",
            from_notation(
                "u user: One.
                 a < u assistant: First.
                 c < a compaction: Sum one.
                 v < c user: Two.
                 b < v assistant: Second.
                 d < b compaction: Sum two.
                 w < d user: Three.",
            ),
        ),
        (
            "images",
            read(
                r#"{"type":"user","uuid":"u","message":{"content":[{"type":"text","text":"See."},{"type":"file","mediaType":"image/png","url":"data:image/png;base64,AAAA"},{"type":"file","mediaType":"image/jpeg","url":"https://example.com/a.jpg"},{"type":"file","mediaType":"application/pdf","filename":"a.pdf","url":"data:application/pdf;base64,JVBE"},{"type":"file","mediaType":"audio/wav","filename":"a.wav","url":"data:audio/wav;base64,UklG"}]}}
{"type":"assistant","uuid":"a","parentUuid":"u","message":{"content":"","toolCalls":[{"id":"c","name":"Shot","arguments":{}}]}}
{"type":"tool_result","uuid":"r","parentUuid":"a","toolResults":[{"toolCallId":"c","content":[{"type":"text","text":"Here."},{"type":"file","mediaType":"image/png","url":"data:image/png;base64,BBBB"}],"success":true}]}"#,
            ),
        ),
        (
            "empty content",
            read(
                r#"{"type":"user","uuid":"u","message":{"content":"Go."}}
{"type":"assistant","uuid":"a","parentUuid":"u","message":{"content":""}}
{"type":"user","uuid":"v","parentUuid":"a","message":{"content":[{"type":"text","text":""},{"type":"text","text":"  "},{"type":"text","text":"On."}]}}"#,
            ),
        ),
        (
            "calls without a name, without an id, with the same id",
            read(
                r#"{"type":"user","uuid":"u","message":{"content":"Go."}}
{"type":"assistant","uuid":"a","parentUuid":"u","message":{"content":"","toolCalls":[{"arguments":"text"},{"id":"c","name":"mcp: odd name"},{"id":"c","name":"","arguments":[1]}]}}"#,
            ),
        ),
        (
            "said in between",
            from_notation(
                "u user: Go.\na < u assistant !c: Looking.\nv < a user: Hurry.\nr < v result ?c: four\nb < r assistant: Four.",
            ),
        ),
        ("an answer first", from_notation("a assistant: Hello.\nu < a user: Go.")),
        ("an instruction", from_notation("s system: Be kind.\nu < s user: Go.")),
        (
            "foreign reasoning",
            read(
                r#"{"type":"user","uuid":"u","message":{"content":"Go."}}
{"type":"assistant","uuid":"a","parentUuid":"u","message":{"content":[{"type":"reasoning","text":"Hm."},{"type":"reasoning","text":"Signed.","providerMetadata":{"anthropic":{"signature":"S"}}},{"type":"reasoning","text":"","providerMetadata":{"openai":{"reasoningEncryptedContent":"E"}}},{"type":"text","text":"Gone."}]}}
{"type":"user","uuid":"v","parentUuid":"a","message":{"content":"On."}}
{"type":"assistant","uuid":"b","parentUuid":"v","message":{"content":[{"type":"reasoning","text":"Cut off","providerMetadata":{"anthropic":{"signature":"T"}}}]}}
{"type":"user","uuid":"w","parentUuid":"b","message":{"content":"Again."}}"#,
            ),
        ),
    ]
}
