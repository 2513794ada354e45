//! The shapes of the answers: a stream says what the whole answer says.

use super::*;

/// An answer with thinking, a text and two calls, in the words of each API.
fn spoken(messages: Value) -> Spoken {
    let usage =
        Counts::new(Some(Usage { input: Some(20), output: Some(7), cache_read: Some(100), ..Usage::default() }), 0, 0);
    let messages = messages.as_array().unwrap().clone();
    Spoken { number: 3, model: "model-1".to_owned(), messages, usage }
}

const LONG: &str = "High water is at 04:12 and 16:41, low water at 10:20 and 22:51 — as in the table of the harbour ☂.";

#[test]
fn a_stream_of_anthropic_adds_up_to_the_message() {
    let blocks = json!([
        {"type": "thinking", "thinking": LONG, "signature": "c2ln"},
        {"type": "text", "text": LONG},
        {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": LONG}},
        {"type": "redacted_thinking", "data": "x"},
    ]);
    let spoken = spoken(json!([{"role": "assistant", "content": blocks}]));
    let whole = anthropic::whole(&spoken);
    assert_eq!((&whole["content"], &whole["stop_reason"]), (&blocks, &"tool_use".into()));
    assert_eq!(
        whole["usage"],
        json!({"input_tokens": 20, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 0, "output_tokens": 7})
    );
    let (mut content, mut input): (Vec<Value>, String) = (Vec::new(), String::new());
    for event in anthropic::events(&spoken) {
        match event["type"].as_str().unwrap() {
            "content_block_start" => content.push(event["content_block"].clone()),
            "content_block_delta" => {
                let (delta, block) = (&event["delta"], content.last_mut().unwrap());
                for field in ["text", "thinking", "signature"] {
                    if let Some(piece) = delta[field].as_str() {
                        block[field] = format!("{}{piece}", block[field].as_str().unwrap()).into();
                    }
                }
                input += delta["partial_json"].as_str().unwrap_or_default();
            }
            "content_block_stop" if !input.is_empty() => {
                content.last_mut().unwrap()["input"] = serde_json::from_str(&std::mem::take(&mut input)).unwrap();
            }
            _ => {}
        }
    }
    assert_eq!(Value::from(content), blocks);
}

#[test]
fn a_stream_of_chat_adds_up_to_the_message() {
    let calls = json!([{"id": "c1", "type": "function", "function": {"name": "read", "arguments": format!("{{\"path\":\"{LONG}\"}}")}},
        {"id": "c2", "type": "function", "function": {"name": "ls", "arguments": "{}"}}]);
    let message = json!({"role": "assistant", "content": LONG, "reasoning_content": LONG, "tool_calls": calls});
    let spoken = spoken(json!([message]));
    let whole = chat::whole(&spoken);
    let (told, choice) = (&whole["choices"][0]["message"], &whole["choices"][0]);
    assert_eq!(
        (&told["content"], &told["tool_calls"], &choice["finish_reason"]),
        (&LONG.into(), &calls, &"tool_calls".into())
    );
    assert_eq!(whole["usage"]["prompt_tokens"], 120);
    let (mut text, mut arguments) = (String::new(), [String::new(), String::new()]);
    let events = chat::events(&spoken, &json!({"stream_options": {"include_usage": true}}));
    for event in &events {
        let delta = &event["choices"][0]["delta"];
        text += delta["content"].as_str().unwrap_or_default();
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            arguments[call["index"].as_u64().unwrap() as usize] += call["function"]["arguments"].as_str().unwrap();
        }
    }
    assert_eq!(text, LONG);
    assert_eq!(arguments[0], calls[0]["function"]["arguments"].as_str().unwrap());
    assert_eq!(arguments[1], "{}");
    assert_eq!(events.last().unwrap()["usage"]["completion_tokens"], 7);
}

#[test]
fn a_stream_of_responses_adds_up_to_the_output() {
    let spoken = spoken(json!([
        {"type": "reasoning", "summary": [], "encrypted_content": "x"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": LONG}]},
        {"type": "function_call", "call_id": "c1", "name": "read", "arguments": format!("{{\"path\":\"{LONG}\"}}")},
        {"type": "custom_tool_call", "call_id": "c2", "name": "apply_patch", "input": "*** Begin Patch"},
    ]));
    let whole = responses::whole(&spoken);
    let events = responses::events(&spoken);
    let done: Vec<Value> = events
        .iter()
        .filter(|event| event["type"] == "response.output_item.done")
        .map(|event| event["item"].clone())
        .collect();
    assert_eq!(Value::from(done), whole["output"]);
    assert_eq!(events.last().unwrap()["response"], whole);
    let text = |kind: &str| -> String {
        let of_kind = events.iter().filter(|event| event["type"] == kind);
        of_kind.map(|event| event["delta"].as_str().unwrap()).collect()
    };
    assert_eq!(text("response.output_text.delta"), LONG);
    assert_eq!(whole["output"][2]["arguments"], text("response.function_call_arguments.delta"));
    assert_eq!(text("response.custom_tool_call_input.delta"), "*** Begin Patch");
    let mut ids: Vec<&str> =
        whole["output"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect();
    ids.dedup();
    assert_eq!(ids.len(), 4);
}

#[test]
fn a_stream_of_gemini_adds_up_to_the_content() {
    let parts = json!([{"text": LONG, "thought": true, "thoughtSignature": "c2ln"}, {"text": LONG},
        {"functionCall": {"id": "c1", "name": "read", "args": {"path": LONG}}}]);
    let spoken = spoken(json!([{"role": "model", "parts": parts}]));
    let whole = gemini::whole(&spoken);
    assert_eq!(whole["candidates"][0]["content"], json!({"role": "model", "parts": parts}));
    let events = gemini::events(&spoken);
    let streamed: Vec<&Value> = events
        .iter()
        .flat_map(|event| event["candidates"][0]["content"]["parts"].as_array().unwrap())
        .collect();
    let text = |is_thought: bool| -> String {
        let wanted = streamed.iter().filter(|part| (part["thought"] == true) == is_thought);
        wanted.filter_map(|part| part["text"].as_str()).collect()
    };
    assert_eq!((text(true), text(false)), (LONG.to_owned(), LONG.to_owned()));
    assert_eq!(streamed.iter().filter(|part| part.get("thoughtSignature").is_some()).count(), 1);
    assert_eq!(*streamed.last().unwrap(), &parts[2]);
    assert_eq!(events.last().unwrap()["candidates"][0]["finishReason"], "STOP");
}
