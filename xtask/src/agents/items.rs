//! A request to a model as a list of items that can be compared: a prompt, an answer, thinking, a call, a result.

use serde_json::Value;

/// One item. The label says what it is and, of a call or a result, which one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) label: String,
    pub(super) text: String,
}

/// How texts start that an agent builds for each request; they are not part of a session.
const CONTEXT: &[&str] = &[
    "<system-reminder>",
    "<environment_context>",
    "<session_context>",
    "<user_instructions>",
    "<permissions",
    "<skills_instructions",
    "# AGENTS",
    "This is the Qwen ",
    "Got it. Thanks",
];

/// The items of a history as one API sends it: `messages`, or `input` of the Responses API.
pub(super) fn items(api: &str, messages: &[Value]) -> Vec<Item> {
    let mut items = Items(Vec::new());
    for message in messages {
        match api {
            "anthropic" => items.anthropic(message),
            "responses" => items.responses(message),
            _ => items.chat(message),
        }
    }
    items.0
}

/// The list of messages in a request.
pub(super) fn messages<'a>(api: &str, body: &'a Value) -> &'a [Value] {
    let name = if api == "responses" { "input" } else { "messages" };
    body[name].as_array().map_or(&[], Vec::as_slice)
}

struct Items(Vec<Item>);

impl Items {
    fn push(&mut self, label: &str, text: &str) {
        self.0.push(Item { label: label.to_owned(), text: text.trim_end().to_owned() });
    }

    /// A text that somebody said; a note about a task that ended in the background counts, other context does not.
    fn text(&mut self, role: &str, text: &str) {
        let is_context = CONTEXT.iter().any(|start| text.trim_start().starts_with(start));
        let task = text.split_once("<task-id>").and_then(|(_, rest)| rest.split_once("</task-id>"));
        match task.filter(|_| is_context || text.starts_with("<task-notification>")) {
            Some((task, _)) if text.contains("<task-notification>") => self.push("notification", task),
            _ if is_context => {}
            _ => self.push(role, text),
        }
    }

    fn call(&mut self, id: &Value, name: &Value, input: &str) {
        self.push(&format!("call {}", plain(id)), &format!("{}({input})", plain(name)));
    }

    fn anthropic(&mut self, message: &Value) {
        let role = plain(&message["role"]);
        if role == "system" {
            return;
        }
        if let Some(text) = message["content"].as_str() {
            return self.text(&role, text);
        }
        for block in list(&message["content"]) {
            match block["type"].as_str().unwrap_or_default() {
                "text" => self.text(&role, &plain(&block["text"])),
                "thinking" => {
                    self.push("thinking", &format!("{} {}", plain(&block["thinking"]), plain(&block["signature"])));
                }
                "tool_use" => self.call(&block["id"], &block["name"], &block["input"].to_string()),
                "tool_result" => {
                    let failed = if block["is_error"] == true { " failed" } else { "" };
                    self.push(&format!("result {}{failed}", plain(&block["tool_use_id"])), &joined(&block["content"]));
                }
                other => self.push(&role, other),
            }
        }
    }

    fn chat(&mut self, message: &Value) {
        let role = plain(&message["role"]);
        match role.as_str() {
            "system" => return,
            "tool" => {
                return self.push(&format!("result {}", plain(&message["tool_call_id"])), &joined(&message["content"]));
            }
            _ => {}
        }
        if let Some(thinking) = message["reasoning_content"].as_str().filter(|text| !text.is_empty()) {
            self.push("thinking", thinking);
        }
        match &message["content"] {
            Value::String(text) if !text.is_empty() => self.text(&role, text),
            content => list(content).iter().for_each(|part| self.text(&role, &part_text(part))),
        }
        for call in list(&message["tool_calls"]) {
            let function = &call["function"];
            self.call(&call["id"], &function["name"], &arguments(&function["arguments"]));
        }
    }

    fn responses(&mut self, item: &Value) {
        let kind = item["type"].as_str().unwrap_or("message");
        match kind {
            "message" => {
                let role = plain(&item["role"]);
                if role != "user" && role != "assistant" {
                    return;
                }
                match &item["content"] {
                    Value::String(text) => self.text(&role, text),
                    content => list(content).iter().for_each(|part| self.text(&role, &part_text(part))),
                }
            }
            "reasoning" => {
                self.push("thinking", &format!("{} {}", joined(&item["summary"]), plain(&item["encrypted_content"])));
            }
            "function_call" => self.call(&item["call_id"], &item["name"], &arguments(&item["arguments"])),
            "custom_tool_call" => self.call(&item["call_id"], &item["name"], &plain(&item["input"])),
            _ if kind.ends_with("_output") => {
                self.push(&format!("result {}", plain(&item["call_id"])), &output(&item["output"]));
            }
            other => self.push("other", other),
        }
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A string, or anything else as JSON; nothing for null.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// The text of a part, or its type if it is a picture or the like.
fn part_text(part: &Value) -> String {
    part["text"].as_str().or(part["type"].as_str()).unwrap_or_default().to_owned()
}

/// A text, or the texts of a list.
fn joined(content: &Value) -> String {
    match content {
        Value::Array(parts) => parts.iter().map(part_text).collect::<Vec<_>>().join(" "),
        other => plain(other),
    }
}

/// Arguments without blanks between their pieces, which say nothing.
fn arguments(text: &Value) -> String {
    let parsed = text.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    parsed.filter(Value::is_object).map_or_else(|| plain(text), |arguments| arguments.to_string())
}

/// An output without how the tool ended, which older versions of Codex put around it.
fn output(value: &Value) -> String {
    let parsed = value.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok()).unwrap_or_default();
    let wrapped = parsed.get("metadata").and(parsed.get("output"));
    plain(wrapped.unwrap_or(value))
}
