//! Requests beside the conversation: an agent asks for a title, or whether its key works.

use serde_json::Value;

/// What such a request wants, in its instructions. A conversation has tools, these requests have none.
const WISHES: &[&str] = &["title", "topic", "summar", "suggest", "classif", "next speaker", "recap"];

/// Whether a request that is not in the session is beside it: it wants next to nothing, or it has no tools and its instructions name a
/// wish. Other requests without tools are conversations, of a chat.
pub(super) fn is_side(request: &Value) -> bool {
    let limits =
        [&request["max_tokens"], &request["max_output_tokens"], &request["generationConfig"]["maxOutputTokens"]];
    if limits.iter().any(|limit| limit.as_u64() == Some(1)) {
        return true;
    }
    let has_tools = request["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    let instructions = instructions(request).to_lowercase();
    !has_tools && WISHES.iter().any(|wish| instructions.contains(wish))
}

/// What is answered to it: the title, as JSON where JSON is wanted.
pub(super) fn text(request: &Value, title: &str) -> String {
    let wants_json = ["response_format", "output_config", "output_format", "text"]
        .iter()
        .any(|field| request[*field].to_string().contains("json"))
        || request["generationConfig"]["responseMimeType"] == "application/json"
        || instructions(request).contains("JSON");
    if wants_json { serde_json::json!({"title": title, "isNewTopic": false}).to_string() } else { title.to_owned() }
}

/// What is said to the model in nobody's name.
fn instructions(request: &Value) -> String {
    let mut texts = Vec::new();
    for field in ["system", "instructions", "systemInstruction", "system_instruction"] {
        collect(&request[field], &mut texts);
    }
    let messages = request["messages"].as_array().or(request["input"].as_array());
    let given = messages
        .into_iter()
        .flatten()
        .filter(|message| matches!(message["role"].as_str(), Some("system" | "developer")));
    given.for_each(|message| collect(&message["content"], &mut texts));
    texts.join("\n")
}

/// The texts of a string, a list of blocks, or parts.
fn collect<'v>(value: &'v Value, texts: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(blocks) => texts.extend(blocks.iter().filter_map(|block| block["text"].as_str())),
        Value::Object(content) => {
            let parts = content.get("parts").and_then(Value::as_array).into_iter().flatten();
            texts.extend(parts.filter_map(|part| part["text"].as_str()));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_request_that_wants_something_else_is_beside_the_conversation() {
        for (request, expected) in [
            (json!({"messages": [{"role": "user", "content": "Write a title"}]}), false),
            (json!({"system": "Generate a short title.", "messages": []}), true),
            (json!({"system": [{"type": "text", "text": "Name the topic."}], "messages": []}), true),
            (json!({"system": "Generate a short title.", "tools": [{"name": "read"}]}), false),
            (json!({"max_tokens": 1, "messages": [{"role": "user", "content": "quota"}]}), true),
            (json!({"messages": [{"role": "system", "content": "Summarize it."}]}), true),
            (json!({"systemInstruction": {"parts": [{"text": "Suggest a prompt."}]}, "contents": []}), true),
            (json!({"instructions": "You are a helpful assistant.", "input": "Hello?"}), false),
            (json!(null), false),
        ] {
            assert_eq!(is_side(&request), expected, "{request}");
        }
        assert_eq!(text(&json!({"system": "A title, please."}), "Tides"), "Tides");
        assert!(text(&json!({"system": "A title, as JSON."}), "Tides").starts_with(r#"{"title":"Tides""#));
    }
}
