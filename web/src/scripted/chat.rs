//! An answer as OpenAI's Chat Completions API sends it.

use serde_json::{Value, json};

use super::{Spoken, pieces};

pub(super) fn whole(spoken: &Spoken) -> Value {
    let (text, calls) = (text(spoken), calls(spoken));
    let mut message = json!({"role": "assistant", "content": if text.is_empty() { Value::Null } else { text.into() }, "refusal": null});
    let reasoning = reasoning(spoken);
    if !reasoning.is_empty() {
        message["reasoning_content"] = reasoning.into();
    }
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    let choices = json!([{"index": 0, "message": message, "logprobs": null, "finish_reason": reason(spoken)}]);
    let mut whole = envelope(spoken, "chat.completion", choices);
    whole["usage"] = usage(spoken);
    whole
}

pub(super) fn events(spoken: &Spoken, request: &Value) -> Vec<Value> {
    let choice = |delta: Value, finish: Option<&str>| {
        let choices = json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]);
        envelope(spoken, "chat.completion.chunk", choices)
    };
    let mut events = vec![choice(json!({"role": "assistant", "content": ""}), None)];
    let reasoning = reasoning(spoken);
    events.extend(pieces(&reasoning).map(|piece| choice(json!({"reasoning_content": piece}), None)));
    let text = text(spoken);
    events.extend(pieces(&text).map(|piece| choice(json!({"content": piece}), None)));
    for (index, call) in calls(spoken).iter().enumerate() {
        let function = &call["function"];
        let begun = json!({"index": index, "id": call["id"], "type": "function", "function": {"name": function["name"], "arguments": ""}});
        events.push(choice(json!({"tool_calls": [begun]}), None));
        let arguments = function["arguments"].as_str().unwrap_or_default();
        events
            .extend(pieces(arguments).map(|piece| {
                choice(json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}), None)
            }));
    }
    events.push(choice(json!({}), Some(reason(spoken))));
    if request["stream_options"]["include_usage"] == true {
        let mut last = envelope(spoken, "chat.completion.chunk", json!([]));
        last["usage"] = usage(spoken);
        events.push(last);
    }
    events
}

fn envelope(spoken: &Spoken, object: &str, choices: Value) -> Value {
    json!({"id": spoken.id("chatcmpl"), "object": object, "created": 0, "model": spoken.model, "choices": choices})
}

fn text(spoken: &Spoken) -> String {
    let plain = |message: &Value| match &message["content"] {
        Value::String(text) => text.clone(),
        parts => parts.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str()).collect(),
    };
    spoken.messages.iter().map(plain).collect::<Vec<_>>().join("\n").trim_matches('\n').to_owned()
}

fn reasoning(spoken: &Spoken) -> String {
    spoken.messages.iter().filter_map(|message| message["reasoning_content"].as_str()).collect()
}

fn calls(spoken: &Spoken) -> Vec<Value> {
    spoken.pieces_of("tool_calls").cloned().collect()
}

fn reason(spoken: &Spoken) -> &'static str {
    if spoken.pieces_of("tool_calls").next().is_some() { "tool_calls" } else { "stop" }
}

fn usage(spoken: &Spoken) -> Value {
    let usage = spoken.usage;
    json!({
        "prompt_tokens": usage.sent(), "completion_tokens": usage.output, "total_tokens": usage.sent().saturating_add(usage.output),
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    })
}
