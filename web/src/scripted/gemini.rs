//! An answer as the Gemini API sends it.

use serde_json::{Value, json};

use super::{Spoken, pieces};

pub(super) fn whole(spoken: &Spoken) -> Value {
    chunk(spoken, spoken.pieces_of("parts").cloned().collect(), true)
}

pub(super) fn events(spoken: &Spoken) -> Vec<Value> {
    let mut parts: Vec<Value> = Vec::new();
    for part in spoken.pieces_of("parts") {
        match part["text"].as_str() {
            // The signature stays with the last piece.
            Some(text) if !text.is_empty() => {
                let mut texts: Vec<Value> = pieces(text).map(|piece| piece_of(part, piece)).collect();
                if let (Some(last), Some(signature)) = (texts.last_mut(), part.get("thoughtSignature")) {
                    last["thoughtSignature"] = signature.clone();
                }
                parts.append(&mut texts);
            }
            _ => parts.push(part.clone()),
        }
    }
    let last = parts.pop();
    let mut events: Vec<Value> = parts.into_iter().map(|part| chunk(spoken, vec![part], false)).collect();
    events.push(chunk(spoken, last.into_iter().collect(), true));
    events
}

fn piece_of(part: &Value, piece: &str) -> Value {
    let mut fields = json!({"text": piece});
    if part["thought"] == true {
        fields["thought"] = true.into();
    }
    fields
}

fn chunk(spoken: &Spoken, parts: Vec<Value>, is_last: bool) -> Value {
    let usage = spoken.usage;
    let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
    if is_last {
        candidate["finishReason"] = "STOP".into();
    }
    json!({
        "candidates": [candidate], "modelVersion": spoken.model, "responseId": spoken.id("gen"),
        "usageMetadata": {
            "promptTokenCount": usage.sent(), "candidatesTokenCount": usage.output.saturating_sub(usage.reasoning),
            "thoughtsTokenCount": usage.reasoning, "cachedContentTokenCount": usage.cache_read,
            "totalTokenCount": usage.sent().saturating_add(usage.output),
        },
    })
}
