//! The requests of a session: the model that answered each, and what the agent says that it cost.

use scrollback::dialect;
use scrollback::session::Session;

use crate::support::reading;

fn read(dialect: &str, log: &str) -> Session {
    Session::from_bytes(dialect::named(dialect).unwrap(), log.as_bytes().to_vec(), &reading())
}

/// Each request in one line, and below them the costs by model.
fn check(session: &Session) -> String {
    let requests = session.requests().into_values().map(|request| {
        let cost = request.cost.map_or("-".to_owned(), |cost| format!("{} USD", cost.to_usd()));
        format!("{} tokens out, {}, {cost}", request.usage.output.unwrap(), request.model.unwrap_or("-"))
    });
    let mut lines: Vec<String> = requests.collect();
    lines.sort();
    let costs = session.costs().into_iter();
    lines.extend(costs.map(|(model, cost)| format!("{}: {} USD", model.unwrap_or("-"), cost.to_usd())));
    lines.join("\n")
}

#[test]
fn old_claude_code_records_the_cost_of_each_request() {
    let session = read(
        "claude-code",
        r#"{"parentUuid":null,"sessionId":"s1","version":"0.2.56","type":"user","uuid":"q","timestamp":"2025-03-22T10:00:00Z","message":{"role":"user","content":"Two and two?"}}
{"parentUuid":"q","sessionId":"s1","version":"0.2.56","type":"assistant","uuid":"a","timestamp":"2025-03-22T10:00:04Z","costUSD":0.0134775,"durationMs":3912,"requestId":"req_1","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-3-7-sonnet-20250219","content":[{"type":"text","text":"Four."}],"usage":{"input_tokens":4,"cache_creation_input_tokens":3400,"cache_read_input_tokens":0,"output_tokens":42}}}
"#,
    );
    insta::assert_snapshot!(check(&session), @"
    42 tokens out, claude-3-7-sonnet-20250219, 0.0134775 USD
    claude-3-7-sonnet-20250219: 0.0134775 USD
    ");
}

#[test]
fn claude_code_counts_the_cost_so_far_and_the_last_count_holds() {
    let session = read(
        "claude-code",
        r#"{"parentUuid":null,"sessionId":"s1","version":"2.1.197","type":"user","uuid":"q","timestamp":"2026-11-14T10:00:00Z","message":{"role":"user","content":"Two and two?"}}
{"parentUuid":"q","sessionId":"s1","version":"2.1.197","type":"assistant","uuid":"a","timestamp":"2026-11-14T10:00:04Z","requestId":"req_1","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-5-5","content":[{"type":"text","text":"Four."}],"usage":{"input_tokens":3006,"output_tokens":156}}}
{"type":"cost-state","sessionId":"s1","totalCostUSD":0.015714,"totalAPIDuration":1418,"modelUsage":{"claude-opus-5-5":{"inputTokens":3006,"outputTokens":156,"costUSD":0.015714}},"hasUnknownModelCost":false}
{"type":"cost-state","sessionId":"s1","totalCostUSD":0.0265,"totalAPIDuration":2382,"modelUsage":{"claude-opus-5-5":{"inputTokens":5009,"outputTokens":259,"costUSD":0.026166},"claude-haiku-5":{"inputTokens":300,"outputTokens":12,"costUSD":0.000334}},"hasUnknownModelCost":false}
"#,
    );
    insta::assert_snapshot!(check(&session), @"
    156 tokens out, claude-opus-5-5, -
    claude-haiku-5: 0.000334 USD
    claude-opus-5-5: 0.026166 USD
    ");
}

#[test]
fn native_and_sage_for_emacs_estimate_the_cost_of_each_request() {
    let native = read(
        "native",
        r#"{"type":"assistant","uuid":"a1","parentUuid":null,"model":"beacon-2-large","message":{"role":"assistant","content":"One."},"usage":{"inputTokens":1840,"outputTokens":212,"costEstimate":0.0134}}
{"type":"assistant","uuid":"a2","parentUuid":"a1","message":{"role":"assistant","content":"Two.","model":"beacon-2-small"},"usage":{"inputTokens":10,"outputTokens":2,"costEstimate":"much"}}
{"type":"assistant","uuid":"a3","parentUuid":"a2","model":"beacon-2-large","message":{"role":"assistant","content":"Three."},"usage":{"inputTokens":1,"outputTokens":3,"costEstimate":1}}
"#,
    );
    insta::assert_snapshot!(check(&native), @"
    2 tokens out, beacon-2-small, -
    212 tokens out, beacon-2-large, 0.0134 USD
    3 tokens out, beacon-2-large, 1 USD
    beacon-2-large: 1.0134 USD
    ");
    let emacs = read(
        "sage-el",
        r#"{"role":"assistant","content":"One.","timestamp":"2026-01-11T17:00:02-0500","model":"beacon-2-large","usage":{"input_tokens":1234,"output_tokens":567,"estimated_cost_usd":0.0045}}"#,
    );
    insta::assert_snapshot!(check(&emacs), @"
    567 tokens out, beacon-2-large, 0.0045 USD
    beacon-2-large: 0.0045 USD
    ");
}

#[test]
fn the_model_of_a_codex_request_is_that_of_its_turn() {
    let session = read(
        "codex",
        r#"{"timestamp":"2026-10-02T09:00:00Z","type":"turn_context","payload":{"cwd":"/x","model":"gpt-6"}}
{"timestamp":"2026-10-02T09:00:01Z","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":10,"output_tokens":5},"last_token_usage":{"input_tokens":10,"output_tokens":5}}}}
{"timestamp":"2026-10-02T09:00:02Z","type":"turn_context","payload":{"cwd":"/x","model":"gpt-6-mini"}}
{"timestamp":"2026-10-02T09:00:03Z","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":30,"output_tokens":11},"last_token_usage":{"input_tokens":20,"output_tokens":6}}}}
"#,
    );
    insta::assert_snapshot!(check(&session), @"
    5 tokens out, gpt-6, -
    6 tokens out, gpt-6-mini, -
    ");
}

#[test]
fn qwen_code_and_the_ai_sdk_name_the_model_of_each_request() {
    let qwen = read(
        "qwen-code",
        r#"{"uuid":"a","parentUuid":null,"sessionId":"s1","timestamp":"2026-10-02T09:00:00Z","type":"assistant","cwd":"/x","version":"0.2.0","model":"qwen3-coder","message":{"role":"model","parts":[{"text":"Four."}]},"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":7}}"#,
    );
    insta::assert_snapshot!(check(&qwen), @"7 tokens out, qwen3-coder, -");
    let sdk = read(
        "ai-sdk",
        r#"{"id":"m1","role":"assistant","metadata":{"model":"gpt-6","totalUsage":{"inputTokens":10,"outputTokens":9}},"parts":[{"type":"text","text":"Four."}]}"#,
    );
    insta::assert_snapshot!(check(&sdk), @"9 tokens out, gpt-6, -");
}
