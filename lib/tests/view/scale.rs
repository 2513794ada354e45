//! Many calls with one id in one answer cost as much as with many ids: the work grows with the file, not with its square.

use scrollback::dialect;
use scrollback::session::Session;
use scrollback::view::history::{History, View};
use scrollback::view::{Conversation, tool_calls};

use crate::support;
use crate::support::effort::check_linear;

/// An answer with so many calls and their results, as a dialect writes it; `with_results` of them have one.
fn session(dialect: &str, calls: usize, results: usize) -> Session {
    let list = |count: usize, item: &str| vec![item; count].join(",");
    let lines = match dialect {
        "native" => format!(
            "{{\"type\":\"assistant\",\"uuid\":\"a\",\"parentUuid\":null,\"message\":{{\"role\":\"assistant\",\"content\":\"\",\"toolCalls\":[{}]}}}}\n\
             {{\"type\":\"tool_result\",\"uuid\":\"b\",\"parentUuid\":\"a\",\"toolResults\":[{}]}}\n",
            list(calls, r#"{"id":"c","name":"t","arguments":{}}"#),
            list(results, r#"{"toolCallId":"c","content":"x"}"#),
        ),
        "claude-code" => format!(
            "{{\"type\":\"assistant\",\"uuid\":\"a\",\"parentUuid\":null,\"sessionId\":\"s\",\"message\":{{\"role\":\"assistant\",\"id\":\"m\",\"content\":[{}]}}}}\n\
             {{\"type\":\"user\",\"uuid\":\"b\",\"parentUuid\":\"a\",\"sessionId\":\"s\",\"message\":{{\"role\":\"user\",\"content\":[{}]}}}}\n",
            list(calls, r#"{"type":"tool_use","id":"c","name":"t","input":{}}"#),
            list(results, r#"{"type":"tool_result","tool_use_id":"c","content":"x"}"#),
        ),
        "codex" => {
            let call = r#"{"timestamp":"2026-11-15T10:00:00Z","type":"response_item","payload":{"type":"function_call","name":"t","arguments":"{}","call_id":"c"}}"#;
            let result = r#"{"timestamp":"2026-11-15T10:00:00Z","type":"response_item","payload":{"type":"function_call_output","call_id":"c","output":"x"}}"#;
            let lines = vec![call; calls].into_iter().chain(vec![result; results]);
            lines.flat_map(|line| [line, "\n"]).collect()
        }
        "qwen-code" => format!(
            "{{\"uuid\":\"a\",\"parentUuid\":null,\"sessionId\":\"s\",\"type\":\"assistant\",\"message\":{{\"role\":\"model\",\"parts\":[{}]}}}}\n\
             {{\"uuid\":\"b\",\"parentUuid\":\"a\",\"sessionId\":\"s\",\"type\":\"tool_result\",\"message\":{{\"role\":\"user\",\"parts\":[{}]}}}}\n",
            list(calls, r#"{"functionCall":{"id":"c","name":"t","args":{}}}"#),
            list(results, r#"{"functionResponse":{"id":"c","name":"t","response":{"output":"x"}}}"#),
        ),
        _ => format!(
            "[{{\"id\":\"a\",\"role\":\"assistant\",\"content\":\"\",\"parts\":[{}],\"toolInvocations\":[{}]}}]",
            list(
                calls,
                r#"{"type":"tool-invocation","toolInvocation":{"state":"call","toolCallId":"c","toolName":"t","args":{}}}"#
            ),
            list(results, r#"{"state":"result","toolCallId":"c","toolName":"t","args":{},"result":"x"}"#),
        ),
    };
    Session::from_bytes(dialect::named(dialect).unwrap(), lines.into_bytes(), &support::reading())
}

/// Everything that shows the calls.
fn show(dialect: &str, calls: usize, results: usize) {
    let session = session(dialect, calls, results);
    let branch = session.branch(session.head().unwrap());
    let conversation = Conversation::new(&branch);
    let rows: usize = tool_calls::of(&conversation).map(|rows| rows.unwrap().len()).sum();
    assert!(rows >= calls.min(results), "{dialect}: {rows}");
    let history = History::of(&session, session.head().unwrap()).unwrap();
    for view in View::ALL {
        view.write(&history, &mut drop).unwrap();
    }
}

#[test]
fn calls_that_share_an_id_cost_no_more_than_others() {
    for dialect in ["native", "claude-code", "codex", "qwen-code", "ai-sdk"] {
        // All answered; all but one; none.
        for missing in [0, 1, usize::MAX] {
            let what = format!("{dialect}, {missing} missing");
            check_linear(&what, 500, |calls| calls, |calls| show(dialect, *calls, calls.saturating_sub(missing)));
        }
    }
}
