//! What a command printed, as text: `outputHistoryItems`.
//!
//! Most items have a text. The agent lays out the others itself (`about`, `context_usage`, `tools_list`): their facts are lines.

use serde_json::Value;

use crate::model::json;

/// Items are objects in objects.
const NESTED: usize = 4;

/// The text of an item; `None` if it says nothing.
pub(super) fn text(item: &Value) -> Option<String> {
    if let Some(text) = item["text"].as_str() {
        return Some(text.to_owned()).filter(|text| !text.is_empty());
    }
    let mut lines = Vec::new();
    add_facts(item, NESTED, &mut lines);
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Adds a line for each fact: `os platform: linux`.
fn add_facts(object: &Value, depth: usize, lines: &mut Vec<String>) {
    for (key, value) in object.as_object().into_iter().flatten().filter(|(key, _)| *key != "type") {
        let fact = match value {
            Value::Null | Value::Bool(false) => continue,
            Value::Object(_) if depth > 1 => {
                add_facts(value, depth - 1, lines);
                continue;
            }
            Value::Array(list) => list.iter().filter_map(name).collect::<Vec<_>>().join(", "),
            Value::String(text) => text.clone(),
            Value::Object(_) | Value::Bool(true) | Value::Number(_) => json::to_string(value),
        };
        if !fact.is_empty() {
            lines.push(format!("{}: {fact}", words(key)));
        }
    }
}

/// What an element of a list is called.
fn name(element: &Value) -> Option<&str> {
    let named = || element["displayName"].as_str().or_else(|| element["name"].as_str());
    element.as_str().or_else(named)
}

/// `osPlatform` as `os platform`.
fn words(key: &str) -> String {
    let mut words = String::new();
    for letter in key.chars() {
        if letter.is_uppercase() {
            words.push(' ');
        }
        words.extend(letter.to_lowercase());
    }
    words.trim_start().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_item_without_a_text_is_its_facts() {
        for (item, expected) in [
            (json!({"type": "info", "text": "Kept."}), Some("Kept.")),
            (json!({"type": "info", "text": ""}), None),
            (json!({"type": "model_stats"}), None),
            (
                json!({"type": "about", "systemInfo": {"cliVersion": "0.24.4", "ideClient": "", "lines": 2}}),
                Some("cli version: 0.24.4\nlines: 2"),
            ),
            (
                json!({"type": "tools_list", "tools": [{"name": "agent", "displayName": "Agent"}, {"name": "ls"}]}),
                Some("tools: Agent, ls"),
            ),
            (json!({"type": "x", "a": {"b": {"c": {"d": {"e": 1}}}}}), Some("d: {\"e\":1}")),
            (json!(null), None),
        ] {
            assert_eq!(text(&item).as_deref(), expected, "{item}");
        }
    }
}
