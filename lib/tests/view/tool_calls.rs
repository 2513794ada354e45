//! Tool calls as a flat list: static and dynamic parts alike, with what came of each and how long it took.

use crate::support::reading;
use scrollback::dialect;
use scrollback::session::Session;
use scrollback::view::Conversation;
use scrollback::view::tool_calls::{self, ToolCallRow};

fn rows(dialect: &str, lines: &str) -> Vec<ToolCallRow> {
    let session = Session::from_bytes(dialect::named(dialect).unwrap(), lines.as_bytes().to_vec(), &reading());
    let branch = session.branch(session.head().unwrap());
    let conversation = Conversation::new(&branch);
    tool_calls::of(&conversation).flat_map(Result::unwrap).collect()
}

#[test]
fn static_and_dynamic_calls_are_listed_alike() {
    let parts = r#"{"type":"tool-weather","toolCallId":"c1","state":"output-available","input":{"city":"Brest"},"output":9,"providerExecuted":true},
        {"type":"dynamic-tool","toolName":"Bash","toolCallId":"c2","state":"output-error","input":{},"errorText":"no shell"},
        {"type":"dynamic-tool","toolName":"Bash","toolCallId":"c3","state":"input-available","input":{"command":"ls"}},
        {"type":"dynamic-tool","toolName":"Bash","toolCallId":"c4","state":"output-error","rawInput":"{\"comm","errorText":"no JSON"},
        {"type":"text","text":"done"}"#;
    let message = format!(r#"{{"id":"m","role":"assistant","parts":[{parts}]}}"#).replace('\n', "");
    let rows = rows("ai-sdk", &format!("{message}\n"));
    let told: Vec<String> = rows.iter().map(|row| serde_json::to_string(row).unwrap()).collect();
    insta::assert_snapshot!(told.join("\n"), @r#"
    {"message":"m","callId":"c1","name":"weather","state":"output-available","input":{"city":"Brest"},"output":9,"providerExecuted":true}
    {"message":"m","callId":"c2","name":"Bash","state":"output-error","input":{},"errorText":"no shell","providerExecuted":false}
    {"message":"m","callId":"c3","name":"Bash","state":"input-available","input":{"command":"ls"},"providerExecuted":false}
    {"message":"m","callId":"c4","name":"Bash","state":"output-error","rawInput":"{\"comm","errorText":"no JSON","providerExecuted":false}
    "#);
    assert_eq!(rows.iter().map(ToolCallRow::has_failed).collect::<Vec<_>>(), [false, true, false, true]);
}

#[test]
fn a_duration_is_recorded_or_measured() {
    let call = |id: &str, at: &str| {
        format!(
            r#"{{"type":"assistant","uuid":"{id}","timestamp":"{at}","message":{{"content":"","toolCalls":[{{"id":"t{id}","name":"x","arguments":{{}}}}]}}}}"#
        )
    };
    let result = |id: &str, of: &str, at: &str, more: &str| {
        format!(
            r#"{{"type":"tool_result","uuid":"{id}","parentUuid":"{of}","timestamp":"{at}","toolResults":[{{"toolCallId":"t{of}","content":"ok"{more}}}]}}"#
        )
    };
    let lines = [
        call("a", "2026-11-15T10:00:00Z"),
        result("r", "a", "2026-11-15T10:00:02.5Z", ""),
        call("b", "2026-11-15T10:00:03Z").replace(r#""uuid":"b""#, r#""uuid":"b","parentUuid":"r""#),
        result("s", "b", "2026-11-15T10:00:09Z", r#","durationMs":40"#),
    ];
    let rows = rows("native", &lines.join("\n"));
    let told: Vec<String> = rows
        .iter()
        .map(|row| format!("{} {:?} {:?}", row.call_id, row.duration_ms, row.duration_source))
        .collect();
    insta::assert_snapshot!(told.join("\n"), @"
    ta Some(2500) Some(Times)
    tb Some(40) Some(Recorded)
    ");
}
