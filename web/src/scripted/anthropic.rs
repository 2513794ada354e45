//! An answer as Anthropic's Messages API sends it.

use serde_json::{Value, json};

use super::{Spoken, pieces};

pub(super) fn whole(spoken: &Spoken) -> Value {
    let mut message = message(spoken);
    message["content"] = spoken.pieces_of("content").cloned().collect();
    message["stop_reason"] = reason(spoken).into();
    message["usage"]["output_tokens"] = spoken.usage.output.into();
    message
}

pub(super) fn events(spoken: &Spoken) -> Vec<Value> {
    let mut events = vec![json!({"type": "message_start", "message": message(spoken)})];
    for (index, block) in spoken.pieces_of("content").enumerate() {
        let (start, deltas) = streamed(block);
        events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        events.extend(
            deltas
                .into_iter()
                .map(|delta| json!({"type": "content_block_delta", "index": index, "delta": delta})),
        );
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(json!({
        "type": "message_delta", "delta": {"stop_reason": reason(spoken), "stop_sequence": null},
        "usage": {"output_tokens": spoken.usage.output},
    }));
    events.push(json!({"type": "message_stop"}));
    events
}

/// The message before its first block.
fn message(spoken: &Spoken) -> Value {
    let usage = spoken.usage;
    json!({
        "id": spoken.id("msg"), "type": "message", "role": "assistant", "model": spoken.model, "content": [],
        "stop_reason": null, "stop_sequence": null,
        "usage": {
            "input_tokens": usage.input, "cache_read_input_tokens": usage.cache_read,
            "cache_creation_input_tokens": usage.cache_write, "output_tokens": 1,
        },
    })
}

fn reason(spoken: &Spoken) -> &'static str {
    let calls = spoken.pieces_of("content").any(|block| block["type"] == "tool_use");
    if calls { "tool_use" } else { "end_turn" }
}

/// A block as it begins, and what is added to it.
fn streamed(block: &Value) -> (Value, Vec<Value>) {
    let text = |field: &str| block[field].as_str().unwrap_or_default();
    let mut start = block.clone();
    let deltas = match text("type") {
        "text" => {
            start["text"] = "".into();
            pieces(text("text")).map(|piece| json!({"type": "text_delta", "text": piece})).collect()
        }
        "thinking" => {
            (start["thinking"], start["signature"]) = ("".into(), "".into());
            let thinking = pieces(text("thinking")).map(|piece| json!({"type": "thinking_delta", "thinking": piece}));
            thinking.chain([json!({"type": "signature_delta", "signature": text("signature")})]).collect()
        }
        "tool_use" | "server_tool_use" => {
            start["input"] = json!({});
            let input = block["input"].to_string();
            pieces(&input).map(|piece| json!({"type": "input_json_delta", "partial_json": piece})).collect()
        }
        // The others come whole.
        _ => Vec::new(),
    };
    (start, deltas)
}
