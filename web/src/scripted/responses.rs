//! An answer as OpenAI's Responses API sends it.

use serde_json::{Value, json};

use super::{Spoken, pieces};

pub(super) fn whole(spoken: &Spoken) -> Value {
    let output = items(spoken);
    response(spoken, "completed", &output)
}

pub(super) fn events(spoken: &Spoken) -> Vec<Value> {
    let output = items(spoken);
    let mut events = vec![
        json!({"type": "response.created", "response": response(spoken, "in_progress", &[])}),
        json!({"type": "response.in_progress", "response": response(spoken, "in_progress", &[])}),
    ];
    for (index, item) in output.iter().enumerate() {
        stream(index, item, &mut events);
    }
    events.push(json!({"type": "response.completed", "response": response(spoken, "completed", &output)}));
    for (number, event) in events.iter_mut().enumerate() {
        event["sequence_number"] = number.into();
    }
    events
}

/// The items with the ids and states that only an answer has.
fn items(spoken: &Spoken) -> Vec<Value> {
    let item = |(index, item): (usize, &Value)| {
        let mut item = item.clone();
        let prefix = match item["type"].as_str().unwrap_or_default() {
            "message" => "msg",
            "function_call" => "fc",
            "custom_tool_call" => "ctc",
            "reasoning" => "rs",
            _ => "item",
        };
        if item["id"].is_null() {
            item["id"] = format!("{}x{index}", spoken.id(prefix)).into();
        }
        if prefix != "rs" {
            item["status"] = "completed".into();
        }
        for part in item["content"].as_array_mut().into_iter().flatten().filter(|part| part["type"] == "output_text") {
            part["annotations"] = json!([]);
        }
        item
    };
    spoken.messages.iter().enumerate().map(item).collect()
}

/// One item: as it begins, what is added to it, and as it is at the end.
fn stream(index: usize, item: &Value, events: &mut Vec<Value>) {
    let id = &item["id"];
    let mut begun = item.clone();
    let (text_field, delta, done) =
        match item["type"].as_str().unwrap_or_default() {
            "message" => {
                (begun["content"], begun["status"]) = (json!([]), "in_progress".into());
                events.push(json!({"type": "response.output_item.added", "output_index": index, "item": begun}));
                for (at, part) in item["content"].as_array().into_iter().flatten().enumerate() {
                    let place = json!({"item_id": id, "output_index": index, "content_index": at});
                    let mut empty = part.clone();
                    empty["text"] = "".into();
                    events.push(event("response.content_part.added", &place, json!({"part": empty})));
                    let text = part["text"].as_str().unwrap_or_default();
                    events.extend(pieces(text).map(|piece| {
                        event("response.output_text.delta", &place, json!({"delta": piece, "logprobs": []}))
                    }));
                    events.push(event("response.output_text.done", &place, json!({"text": text, "logprobs": []})));
                    events.push(event("response.content_part.done", &place, json!({"part": part})));
                }
                events.push(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
                return;
            }
            "function_call" => {
                ("arguments", "response.function_call_arguments.delta", "response.function_call_arguments.done")
            }
            "custom_tool_call" => {
                ("input", "response.custom_tool_call_input.delta", "response.custom_tool_call_input.done")
            }
            // Reasoning, and what the provider ran: these come whole.
            _ => {
                events.push(json!({"type": "response.output_item.added", "output_index": index, "item": begun}));
                events.push(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
                return;
            }
        };
    (begun[text_field], begun["status"]) = ("".into(), "in_progress".into());
    events.push(json!({"type": "response.output_item.added", "output_index": index, "item": begun}));
    let place = json!({"item_id": id, "output_index": index});
    let text = item[text_field].as_str().unwrap_or_default();
    events.extend(pieces(text).map(|piece| event(delta, &place, json!({"delta": piece}))));
    events.push(event(done, &place, json!({text_field: text})));
    events.push(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
}

fn event(kind: &str, place: &Value, more: Value) -> Value {
    let mut event = json!({"type": kind});
    for fields in [place, &more] {
        for (name, value) in fields.as_object().into_iter().flatten() {
            event[name] = value.clone();
        }
    }
    event
}

fn response(spoken: &Spoken, status: &str, output: &[Value]) -> Value {
    let usage = spoken.usage;
    let is_whole = status == "completed";
    let counted = json!({
        "input_tokens": usage.sent(), "input_tokens_details": {"cached_tokens": usage.cache_read},
        "output_tokens": usage.output, "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.sent().saturating_add(usage.output),
    });
    json!({
        "id": spoken.id("resp"), "object": "response", "created_at": 0, "model": spoken.model, "status": status, "output": output,
        "error": null, "incomplete_details": null, "instructions": null, "metadata": {}, "parallel_tool_calls": true,
        "tool_choice": "auto", "tools": [], "usage": if is_whole { counted } else { Value::Null },
    })
}
