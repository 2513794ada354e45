//! A request to a model as items that can be compared with those of a session: what somebody said, calls, results.
//!
//! What an agent makes anew for each request does not count: instructions, the context that it adds in the user's name, thinking
//! (which only its provider can check), ids, dates and durations. Adjacent texts of one side are one item, because agents join and
//! split them, and results of one answer stand in the order of its calls.

use std::borrow::Cow;
use std::sync::LazyLock;

use hashbrown::HashMap;
use regex::Regex;
use serde::Serialize;
use serde_json::Value;

use crate::model::json;
use crate::model::named_enum;
use crate::redact::Redactor;
use crate::view::history::View;

/// One item of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Item {
    /// What it is.
    pub kind: ItemKind,
    /// What it says, without what does not count.
    pub text: String,
}

named_enum! {
    /// What an item is.
    ItemKind {
        /// Somebody said it, or the agent in their name.
        User = "user",
        /// The model said it.
        Assistant = "assistant",
        /// The model called a tool.
        Call = "call",
        /// A tool answered.
        Result = "result",
    }
}

impl ItemKind {
    /// Whether the model made it.
    pub(super) fn is_answer(self) -> bool {
        matches!(self, ItemKind::Assistant | ItemKind::Call)
    }
}

/// The first difference between two lists of items.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Its position, counted from 1.
    pub item: usize,
    /// What was sent there; absent if nothing was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent: Option<Item>,
    /// What the session has there; absent if it has nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<Item>,
}

impl Difference {
    /// The first difference, if there is one.
    pub fn between(sent: &[Item], expected: &[Item]) -> Option<Difference> {
        let same = sent.iter().zip(expected).take_while(|(sent, expected)| sent == expected).count();
        if same == sent.len() && same == expected.len() {
            return None;
        }
        let (sent, expected) = (sent.get(same), expected.get(same));
        // A long text is shown around its first difference.
        let from = match (sent, expected) {
            (Some(sent), Some(expected)) => common(&sent.text, &expected.text).saturating_sub(SHOWN_BEFORE_BYTES),
            _ => 0,
        };
        let shown = |item: &Item| Item { kind: item.kind, text: excerpt(&item.text, from) };
        Some(Difference { item: same + 1, sent: sent.map(shown), expected: expected.map(shown) })
    }
}

impl std::fmt::Display for Difference {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let named = |item: &Option<Item>| match item {
            Some(item) => format!("{} {:?}", item.kind.name(), item.text),
            None => "nothing".to_owned(),
        };
        write!(out, "item {}: sent {}, expected {}", self.item, named(&self.sent), named(&self.expected))
    }
}

/// How much of a text is shown before its first difference, and in all.
const SHOWN_BEFORE_BYTES: usize = 60;
const SHOWN_BYTES: usize = 400;

fn common(one: &str, other: &str) -> usize {
    one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count()
}

fn excerpt(text: &str, from: usize) -> String {
    let start = text.floor_char_boundary(from);
    let end = text.ceil_char_boundary(start + SHOWN_BYTES);
    let (before, after) = (if start > 0 { "…" } else { "" }, if end < text.len() { "…" } else { "" });
    format!("{before}{}{after}", &text[start..end])
}

/// The items of a request to the API of a view. Secrets are masked as they are in the session.
pub(super) fn of_request(view: View, body: &Value, mask: Option<&Redactor>) -> Vec<Item> {
    let field = match view {
        View::OpenAiResponses => "input",
        View::Gemini => "contents",
        View::Anthropic | View::OpenAi | View::Text | View::Fluux | View::AiSdk => "messages",
    };
    match &body[field] {
        Value::Array(messages) => of_messages(view, messages, mask),
        Value::Null => Vec::new(),
        Value::String(text) => {
            let mut items = Items::new(mask);
            items.text(ItemKind::User, text);
            items.finish()
        }
        one => of_messages(view, std::slice::from_ref(one), mask),
    }
}

/// The items of messages as a view writes them.
pub(super) fn of_messages(view: View, messages: &[Value], mask: Option<&Redactor>) -> Vec<Item> {
    let mut items = Items::new(mask);
    for message in messages {
        match view {
            View::Anthropic => items.anthropic(message),
            View::OpenAiResponses => items.responses(message),
            View::Gemini => items.gemini(message),
            View::OpenAi | View::Text | View::Fluux | View::AiSdk => items.chat(message),
        }
    }
    items.finish()
}

struct Items<'m> {
    mask: Option<&'m Redactor>,
    items: Vec<Item>,
    /// How many calls there were, and the number of each by its id.
    calls: usize,
    by_id: HashMap<String, usize>,
    /// Results that wait for the next item, with the number of their call.
    results: Vec<(usize, String)>,
}

impl<'m> Items<'m> {
    fn new(mask: Option<&'m Redactor>) -> Items<'m> {
        Items { mask, items: Vec::new(), calls: 0, by_id: HashMap::new(), results: Vec::new() }
    }

    fn finish(mut self) -> Vec<Item> {
        self.settle();
        self.items
    }

    /// Adds the results so far, in the order of their calls.
    fn settle(&mut self) {
        self.results.sort_by_key(|(call, _)| *call);
        for (call, text) in std::mem::take(&mut self.results) {
            self.items.push(Item { kind: ItemKind::Result, text: format!("{call}: {text}") });
        }
    }

    fn counted(&self, text: &str) -> String {
        let masked = self.mask.map_or(Cow::Borrowed(text), |mask| mask.text(text).text);
        counted(&masked)
    }

    fn text(&mut self, kind: ItemKind, text: &str) {
        let text = self.counted(text);
        if text.is_empty() {
            return;
        }
        self.settle();
        match self.items.last_mut().filter(|last| last.kind == kind && kind != ItemKind::Call) {
            Some(last) => last.text.extend(["\n", &text]),
            None => self.items.push(Item { kind, text }),
        }
    }

    fn call(&mut self, id: &str, name: &str, input: &Value) {
        self.settle();
        self.calls += 1;
        self.by_id.insert(id.to_owned(), self.calls);
        let text = self.counted(&format!("{name}({})", sorted(input)));
        self.items.push(Item { kind: ItemKind::Call, text: format!("{}: {text}", self.calls) });
    }

    fn result(&mut self, id: &str, text: &str) {
        // Some APIs name only the tool: then results come in the order of the calls.
        let answered = self.items.iter().filter(|item| item.kind == ItemKind::Result).count() + self.results.len();
        let call = self.by_id.get(id).copied().unwrap_or(answered + 1);
        let text = self.counted(text);
        self.results.push((call, text));
    }

    fn file(&mut self, kind: ItemKind, media_type: &str, content: &str) {
        let name = format!("[file {media_type} {:016x}]", xxhash_rust::xxh3::xxh3_64(content.as_bytes()));
        self.text(kind, &name);
    }

    fn anthropic(&mut self, message: &Value) {
        let Some(kind) = speaker(&message["role"]) else { return };
        if let Some(text) = message["content"].as_str() {
            return self.text(kind, text);
        }
        for block in list(&message["content"]) {
            match text_of(&block["type"]) {
                "text" => self.text(kind, text_of(&block["text"])),
                "tool_use" => self.call(text_of(&block["id"]), text_of(&block["name"]), &block["input"]),
                "tool_result" => self.result(text_of(&block["tool_use_id"]), &joined(&block["content"])),
                "image" | "document" => {
                    let source = &block["source"];
                    let content = [&source["data"], &source["url"], &source["file_id"]].map(text_of).concat();
                    self.file(kind, text_of(&source["media_type"]), &content);
                }
                // Thinking, and what the provider ran within an answer.
                _ => {}
            }
        }
    }

    fn chat(&mut self, message: &Value) {
        if message["role"] == "tool" {
            return self.result(text_of(&message["tool_call_id"]), &joined(&message["content"]));
        }
        let Some(kind) = speaker(&message["role"]) else { return };
        match &message["content"] {
            Value::String(text) => self.text(kind, text),
            parts => list(parts).iter().for_each(|part| self.part(kind, part)),
        }
        for call in list(&message["tool_calls"]) {
            let function = &call["function"];
            self.call(text_of(&call["id"]), text_of(&function["name"]), &parsed(&function["arguments"]));
        }
    }

    fn responses(&mut self, item: &Value) {
        match item["type"].as_str().unwrap_or("message") {
            "message" => {
                let Some(kind) = speaker(&item["role"]) else { return };
                match &item["content"] {
                    Value::String(text) => self.text(kind, text),
                    parts => list(parts).iter().for_each(|part| self.part(kind, part)),
                }
            }
            "function_call" => {
                self.call(text_of(&item["call_id"]), text_of(&item["name"]), &parsed(&item["arguments"]));
            }
            "custom_tool_call" => self.call(text_of(&item["call_id"]), text_of(&item["name"]), &item["input"]),
            "local_shell_call" => self.call(text_of(&item["call_id"]), "local_shell", &item["action"]),
            kind if kind.ends_with("_call_output") => self.result(text_of(&item["call_id"]), &joined(&item["output"])),
            _ => {}
        }
    }

    fn gemini(&mut self, content: &Value) {
        let kind = if content["role"] == "model" { ItemKind::Assistant } else { ItemKind::User };
        for part in list(&content["parts"]) {
            if let Some(call) = part.get("functionCall") {
                let name = text_of(&call["name"]);
                // Ids are optional there.
                let id = call["id"].as_str().unwrap_or(name);
                let no_arguments = Value::Object(serde_json::Map::new());
                self.call(id, name, call.get("args").unwrap_or(&no_arguments));
            } else if let Some(response) = part.get("functionResponse") {
                let id = response["id"].as_str().unwrap_or_default();
                self.result(id, &gemini_result(&response["response"]));
            } else if let Some(data) = part.get("inlineData").or(part.get("fileData")) {
                let content = [&data["data"], &data["fileUri"]].map(text_of).concat();
                self.file(kind, text_of(&data["mimeType"]), &content);
            } else if part["thought"] != true {
                self.text(kind, text_of(&part["text"]));
            }
        }
    }

    /// A part of a message of OpenAI's APIs.
    fn part(&mut self, kind: ItemKind, part: &Value) {
        match text_of(&part["type"]) {
            "image_url" | "input_image" | "input_file" | "file" | "input_audio" => {
                // Its place differs from API to API; its type is in a data URL.
                self.file(kind, "", &part.to_string());
            }
            _ => self.text(kind, part["text"].as_str().or(part["refusal"].as_str()).unwrap_or_default()),
        }
    }
}

/// Who speaks; nobody of a session gives instructions.
fn speaker(role: &Value) -> Option<ItemKind> {
    match text_of(role) {
        "assistant" => Some(ItemKind::Assistant),
        "system" | "developer" => None,
        _ => Some(ItemKind::User),
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A text, the texts of a list, or JSON.
fn joined(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Array(parts) => {
            let text = |part: &Value| part["text"].as_str().map_or_else(|| named(part), str::to_owned);
            parts.iter().map(text).collect::<Vec<_>>().join("\n")
        }
        other => sorted(other),
    }
}

/// What stands for a part without a text.
fn named(part: &Value) -> String {
    format!("[{}]", text_of(&part["type"]))
}

fn gemini_result(response: &Value) -> String {
    let fields = response.as_object().filter(|fields| fields.len() == 1);
    let only = fields.and_then(|fields| fields.get("output").or(fields.get("error")));
    only.map_or_else(|| sorted(response), joined)
}

/// Arguments that are a text, as JSON if they are that.
fn parsed(arguments: &Value) -> Value {
    let parsed = arguments.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    parsed.filter(Value::is_object).unwrap_or_else(|| arguments.clone())
}

/// JSON whose fields are in the order of their names: their order says nothing.
fn sorted(value: &Value) -> String {
    let mut value = json::plain(value.clone());
    value.sort_all_objects();
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

/// What counts of a text.
fn counted(text: &str) -> String {
    let text = ELEMENT.replace_all(text, "");
    let text = text.trim();
    if CONTEXT.iter().any(|start| text.starts_with(start)) {
        return String::new();
    }
    let mut text = Cow::Borrowed(text);
    for (pattern, name) in CHANGING.iter() {
        if let Cow::Owned(neutral) = pattern.replace_all(&text, *name) {
            text = Cow::Owned(neutral);
        }
    }
    // Line ends and trailing blanks differ between terminals.
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// How further texts start that agents build for each request.
const CONTEXT: &[&str] = &[
    "# AGENTS.md instructions",
    "This is the Qwen Code.",
    "This is the Gemini CLI.",
    "Got it. Thanks for the context!",
];

/// Elements that agents put into what a person or a tool said.
const ELEMENTS: &[&str] = &[
    "system-reminder",
    "environment_context",
    "session_context",
    "user_instructions",
    "permissions instructions",
    "skills_instructions",
    "plugins_instructions",
    "apps_instructions",
    "collaboration_mode",
    "local-command-caveat",
];

/// One of these elements. Expressions have no memory: its end may be that of another one.
static ELEMENT: LazyLock<Regex> = LazyLock::new(|| {
    let names = ELEMENTS.join("|");
    expression(&format!(r"(?s)<(?:{names})\b[^>]*>.*?</(?:{names})>"))
});

/// What differs from run to run, and what stands for it.
static CHANGING: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    [
        (r"(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "<id>"),
        (r"\b(?:toolu|call|msg|resp|req|chatcmpl|fc|rs|agent|task)[_-][0-9A-Za-z_]{6,}", "<id>"),
        (r"\b(Chunk ID|PGID|PIDs?|pid|session ID|agentId|task-id)([:=>]\s*)[0-9A-Za-z_.-]+", "$1$2<id>"),
        (r"\b[0-9a-f]{12,64}\b", "<id>"),
        (r"\b(duration(?:_ms)?|[Ee]lapsed)([:=] ?)\d+(?:\.\d+)?", "$1$2<time>"),
        (r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?)?", "<date>"),
        (
            r"\b(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? +)?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* +\d{1,2}(?:,? +(?:\d{4}|\d\d:\d\d))?(?::\d\d)?(?: +[A-Z]{3,4})?(?: +\d{4})?\b",
            "<date>",
        ),
        (r"\b\d{1,2}\.? (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* \d{4}\b", "<date>"),
        (r"\b\d{1,2}/\d{1,2}/\d{4}\b", "<date>"),
        (r"\b\d{1,2}:\d\d:\d\d(?:\.\d+)?\b", "<time>"),
        (r"\b\d+\.\d+ ?(?:ms|s|sec|secs|seconds)\b", "<time>"),
    ]
    .map(|(pattern, name)| (expression(pattern), name))
    .into()
});

#[expect(clippy::expect_used, reason = "our own expressions, and a test compiles each")]
fn expression(pattern: &str) -> Regex {
    Regex::new(pattern).expect("an expression")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(view: View, messages: Value) -> Vec<String> {
        let items = of_messages(view, messages.as_array().unwrap(), None);
        items.into_iter().map(|item| format!("{} {}", item.kind.name(), item.text)).collect()
    }

    #[test]
    fn the_same_history_has_the_same_items_in_every_api() {
        let anthropic = json!([
            {"role": "user", "content": [{"type": "text", "text": "<system-reminder>\nToday is 2026-11-17.\n</system-reminder>"}, {"type": "text", "text": "When?"}]},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "x"}, {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"b": 1, "a": "x"}}, {"type": "tool_use", "id": "toolu_2", "name": "bash", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_2", "content": [{"type": "text", "text": "none"}]},
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "04:12\n"}, {"type": "text", "text": "Go on."}]},
        ]);
        let chat = json!([
            {"role": "system", "content": "You are an agent."},
            {"role": "user", "content": "When?"},
            {"role": "assistant", "content": "I look.", "reasoning_content": "hm", "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{\"a\": \"x\", \"b\": 1}"}},
                {"id": "c2", "type": "function", "function": {"name": "bash", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "04:12"},
            {"role": "tool", "tool_call_id": "c2", "content": "none"},
            {"role": "user", "content": [{"type": "text", "text": "Go on."}]},
        ]);
        let responses = json!([
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "You are an agent."}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "<environment_context>x</environment_context>"}]},
            {"role": "user", "content": "When?"},
            {"type": "reasoning", "summary": [], "encrypted_content": "x"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
            {"type": "function_call", "call_id": "c1", "name": "read", "arguments": "{\"b\":1,\"a\":\"x\"}"},
            {"type": "function_call", "call_id": "c2", "name": "bash", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "04:12"},
            {"type": "function_call_output", "call_id": "c2", "output": "none"},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go on."}]},
        ]);
        let gemini = json!([
            {"role": "user", "parts": [{"text": "When?"}]},
            {"role": "model", "parts": [{"text": "hm", "thought": true}, {"text": "I look."}, {"functionCall": {"name": "read", "args": {"a": "x", "b": 1}}}, {"functionCall": {"name": "bash"}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {"output": "04:12"}}}, {"functionResponse": {"name": "bash", "response": {"output": "none"}}}, {"text": "Go on."}]},
        ]);
        let expected = [
            "user When?",
            "assistant I look.",
            r#"call 1: read({"a":"x","b":1})"#,
            "call 2: bash({})",
            "result 1: 04:12",
            "result 2: none",
            "user Go on.",
        ];
        assert_eq!(shown(View::Anthropic, anthropic), expected);
        assert_eq!(shown(View::OpenAi, chat), expected);
        assert_eq!(shown(View::OpenAiResponses, responses), expected);
        assert_eq!(shown(View::Gemini, gemini), expected);
    }

    #[test]
    fn ids_dates_and_durations_do_not_count() {
        for (one, other) in [
            ("made 0196f2a1-0000-4000-8000-00000000000a", "made 0196f2a1-0000-4000-8000-00000000000b"),
            ("at 2026-11-17T10:00:00.123Z", "at 2026-11-18T11:22:33Z"),
            ("on 2026-11-17", "on 2025-01-01"),
            ("on 11/17/2026, Tuesday, 17 November 2026", "on 1/2/2025, Tuesday, 2 January 2025"),
            ("-rw-r--r-- 1 root root 4 Nov 17 10:00 a", "-rw-r--r-- 1 root root 4 Dec  3 2025 a"),
            ("Tue Nov 17 23:02:53 UTC 2026", "Wed Nov 18 01:02:03 UTC 2026"),
            ("Chunk ID: 3f2a1b\nWall time: 0.0512 seconds", "Chunk ID: aa0011\nWall time: 1.2 seconds"),
            ("Process Group PGID: 4711", "Process Group PGID: 12"),
            ("to 'a2dfbd3bd5d771c6f' in duration_ms: 402", "to 'a0009b463d4158273' in duration_ms: 532"),
            ("a\r\nb  \n", "a\nb"),
        ] {
            assert_eq!(counted(one), counted(other), "{one}");
        }
        for (one, other) in
            [("04:12", "04:13"), ("5 seconds", "6 seconds"), ("May we?", "May I?"), ("<b>1</b>", "<b>2</b>")]
        {
            assert_ne!(counted(one), counted(other), "{one}");
        }
    }

    #[test]
    fn a_difference_names_its_place_and_shows_what_is_around_it() {
        let item = |kind, text: &str| Item { kind, text: text.to_owned() };
        let long = "x".repeat(1_000);
        let sent = [item(ItemKind::User, "When?"), item(ItemKind::Assistant, &format!("{long}a"))];
        let expected = [item(ItemKind::User, "When?"), item(ItemKind::Assistant, &format!("{long}b"))];
        let found = Difference::between(&sent, &expected).unwrap();
        assert_eq!(found.item, 2);
        let x = "x".repeat(60);
        assert_eq!(found.to_string(), format!("item 2: sent assistant \"…{x}a\", expected assistant \"…{x}b\""));
        let short = Difference::between(&sent[..1], &expected).unwrap();
        assert!(short.to_string().starts_with("item 2: sent nothing, expected assistant"), "{short}");
        assert_eq!(Difference::between(&sent, &sent), None);
    }
}
