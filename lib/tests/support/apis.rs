//! What each API demands of a history, rule by rule. A rule that is broken is one line of complaint.

use std::collections::HashSet;

use serde_json::Value;

/// The complaints of one API about a view of a session. What an agent got from its own API, it may send back as it is.
pub(crate) fn complaints(view: &str, dialect: &str, sent: &Value) -> Vec<String> {
    let own = [("anthropic", "claude-code"), ("openai-responses", "codex"), ("gemini", "qwen-code")];
    let own = own.contains(&(view, dialect));
    let mut judge = Judge { own, said: Vec::new(), ids: HashSet::new() };
    match view {
        "anthropic" => judge.anthropic(list(sent)),
        "openai" => judge.openai(list(sent)),
        "openai-responses" => judge.responses(list(sent)),
        "gemini" => judge.gemini(list(sent)),
        "ai-sdk" => judge.ai_sdk(list(sent)),
        "fluux" => judge.fluux(list(sent)),
        "text" => {}
        other => judge.say(format!("no rules for {other}")),
    }
    judge.said
}

struct Judge {
    /// The session is of an agent that speaks this very API.
    own: bool,
    said: Vec<String>,
    /// The ids of all calls: no two are the same.
    ids: HashSet<String>,
}

impl Judge {
    fn say(&mut self, what: impl Into<String>) {
        self.said.push(what.into());
    }

    fn check(&mut self, holds: bool, rule: &str, place: &Value) {
        if !holds {
            let place: String = place.to_string().chars().take(300).collect();
            self.say(format!("{rule}: {place}"));
        }
    }

    /// Anthropic's Messages: a person begins, the roles alternate, results follow their calls at once and come first. What Claude
    /// Code says in the name of the system is between them.
    fn anthropic(&mut self, messages: &[Value]) {
        let (mut before, mut open) = ("assistant", Vec::new());
        for (at, message) in messages.iter().enumerate() {
            let (role, is_first) = (text(&message["role"]), at == 0);
            if self.own && role == "system" {
                self.check(!is_first, "a person begins", message);
                let [block] = list(&message["content"]) else { return self.say("the system says one text") };
                self.check(!text(&block["text"]).trim().is_empty(), "a text is not blank", block);
                continue;
            }
            self.check(matches!(role, "user" | "assistant"), "a role", message);
            self.check(role != before, "the roles alternate, a person begins", message);
            before = role;
            let blocks = match &message["content"] {
                Value::String(words) => {
                    self.check(!words.trim().is_empty(), "words are not blank", message);
                    &[]
                }
                content => list(content),
            };
            self.check(message["content"].is_string() || !blocks.is_empty(), "content is not empty", message);
            let (mut calls, mut results, mut spoken) = (Vec::new(), Vec::new(), false);
            for block in blocks {
                match (text(&block["type"]), role) {
                    ("text", _) => {
                        self.check(!text(&block["text"]).trim().is_empty(), "a text is not blank", block);
                        spoken = true;
                    }
                    ("tool_use", "assistant") => {
                        self.call(&block["id"], &block["name"], 128);
                        self.check(block["input"].is_object(), "an input is an object", block);
                        calls.push(text(&block["id"]));
                    }
                    ("tool_result", "user") => {
                        self.check(!spoken, "results come first", message);
                        self.anthropic_result(block);
                        results.push(text(&block["tool_use_id"]));
                    }
                    ("thinking", "assistant") => {
                        self.check(!text(&block["signature"]).is_empty(), "thinking is signed", block)
                    }
                    ("redacted_thinking", "assistant") => {
                        self.check(!text(&block["data"]).is_empty(), "hidden thinking has data", block)
                    }
                    ("image" | "document", "user") => {
                        spoken = true;
                        self.anthropic_source(block);
                    }
                    (kind, _) => self.check(self.own && !kind.is_empty(), "a block of this role", block),
                }
            }
            let last = blocks.last().map(|block| text(&block["type"])).unwrap_or_default();
            self.check(!last.ends_with("thinking"), "thinking leads to something", message);
            self.paired(&open, &results, message);
            open = calls;
        }
        self.paired(&open, &[], &"the end".into());
    }

    fn anthropic_result(&mut self, block: &Value) {
        for inner in list(&block["content"]) {
            match text(&inner["type"]) {
                "text" => self.check(!text(&inner["text"]).is_empty(), "a result's text is not empty", inner),
                "image" | "document" => self.anthropic_source(inner),
                _ => self.check(false, "a block of a result", inner),
            }
        }
    }

    fn anthropic_source(&mut self, block: &Value) {
        let (source, media) = (&block["source"], text(&block["source"]["media_type"]));
        match (text(&source["type"]), text(&block["type"])) {
            ("url" | "file", _) => {}
            ("base64", "image") => {
                let known = ["image/png", "image/jpeg", "image/gif", "image/webp"];
                self.check(known.contains(&media), "a picture that it takes", &source["media_type"]);
                self.check(!text(&source["data"]).is_empty(), "a picture has data", block);
            }
            ("base64", _) => self.check(media == "application/pdf", "a document that it takes", &source["media_type"]),
            ("text", _) => self.check(media == "text/plain", "a text document", block),
            _ => self.check(false, "a source", block),
        }
    }

    /// OpenAI's chat: results follow their calls at once.
    fn openai(&mut self, messages: &[Value]) {
        let mut open: Vec<&str> = Vec::new();
        for message in messages {
            let role = text(&message["role"]);
            let calls = list(&message["tool_calls"]);
            if role != "tool" {
                self.check(open.is_empty(), "each call has a result at once", message);
                open.clear();
            }
            match role {
                "system" | "developer" | "user" => self.openai_content(message),
                "assistant" => {
                    if calls.is_empty() || !message["content"].is_null() {
                        self.openai_content(message);
                    }
                    self.check(message["tool_calls"].is_null() || !calls.is_empty(), "a list of calls", message);
                    for call in calls {
                        let function = &call["function"];
                        self.call(&call["id"], &function["name"], 64);
                        let arguments = serde_json::from_str::<Value>(text(&function["arguments"]));
                        self.check(call["type"] == "function", "a call's type", call);
                        self.check(arguments.is_ok(), "arguments are JSON", call);
                        open.push(text(&call["id"]));
                    }
                }
                "tool" => {
                    let at = open.iter().position(|id| *id == text(&message["tool_call_id"]));
                    self.check(at.is_some(), "a result has its call", message);
                    at.into_iter().for_each(|at| _ = open.remove(at));
                    let content = &message["content"];
                    self.check(content.is_string() || !list(content).is_empty(), "a result says something", message);
                }
                _ => self.check(false, "a role", message),
            }
        }
        self.check(open.is_empty(), "each call has a result", &"the end".into());
    }

    fn openai_content(&mut self, message: &Value) {
        match &message["content"] {
            // An answer of reasoning alone has an empty text.
            Value::String(words) => {
                let is_reasoning = message["reasoning_content"].is_string();
                self.check(!words.is_empty() || is_reasoning, "content is not empty", message);
            }
            content => {
                self.check(!list(content).is_empty(), "content is not empty", message);
                for part in list(content) {
                    match text(&part["type"]) {
                        "text" => self.check(!text(&part["text"]).is_empty(), "a text is not empty", part),
                        "image_url" => self.check(part["image_url"]["url"].is_string(), "a picture's address", part),
                        "file" => self.check(part["file"].is_object(), "a file", part),
                        "input_audio" => self.check(part["input_audio"].is_object(), "a recording", part),
                        _ => self.check(false, "a part", part),
                    }
                }
            }
        }
    }

    /// OpenAI's Responses: items; each call has one output, somewhere behind it.
    fn responses(&mut self, items: &[Value]) {
        let mut open: Vec<&str> = Vec::new();
        for item in items {
            match (text(&item["type"]), text(&item["role"])) {
                ("message" | "", "user" | "assistant" | "system" | "developer") => self.responses_content(item),
                ("function_call", _) => {
                    self.call(&item["call_id"], &item["name"], 128);
                    self.check(item["arguments"].is_string(), "arguments are a text", item);
                    open.push(text(&item["call_id"]));
                }
                ("custom_tool_call", _) => {
                    self.call(&item["call_id"], &item["name"], 128);
                    self.check(item["input"].is_string(), "an input is a text", item);
                    open.push(text(&item["call_id"]));
                }
                ("function_call_output" | "custom_tool_call_output", _) => {
                    let at = open.iter().position(|id| *id == text(&item["call_id"]));
                    self.check(at.is_some(), "an output has its call", item);
                    at.into_iter().for_each(|at| _ = open.remove(at));
                    let output = &item["output"];
                    self.check(output.is_string() || !list(output).is_empty(), "an output says something", item);
                }
                ("reasoning", _) => {
                    let sealed = !text(&item["encrypted_content"]).is_empty();
                    self.check(sealed || self.own, "reasoning is sealed", item);
                    self.check(item["summary"].is_array(), "reasoning has a summary", item);
                }
                (kind, _) => {
                    let sealed = item["encrypted_content"].is_string() && kind.contains("compaction");
                    self.check(self.own && (kind.ends_with("_call") || sealed), "an item", item);
                }
            }
        }
        self.check(open.is_empty(), "each call has an output", &open.join(" ").into());
    }

    fn responses_content(&mut self, item: &Value) {
        let assistant = item["role"] == "assistant";
        if let Value::String(words) = &item["content"] {
            return self.check(!words.is_empty(), "content is not empty", item);
        }
        self.check(!list(&item["content"]).is_empty(), "content is not empty", item);
        for part in list(&item["content"]) {
            match (text(&part["type"]), assistant) {
                ("input_text", false) | ("output_text", true) => {
                    self.check(!text(&part["text"]).is_empty(), "a text is not empty", part)
                }
                ("input_image" | "input_file", false) => {}
                (kind, _) => self.check(self.own && !kind.is_empty(), "a part of this role", part),
            }
        }
    }

    /// Gemini: calls are answered by the contents that follow at once.
    fn gemini(&mut self, contents: &[Value]) {
        let mut open: Vec<(&str, &str)> = Vec::new();
        for (at, content) in contents.iter().enumerate() {
            let role = text(&content["role"]);
            self.check(matches!(role, "user" | "model"), "a role", content);
            self.check(at > 0 || role == "user", "a person begins", content);
            let alternates = at == 0 || contents[at - 1]["role"] != content["role"];
            self.check(alternates || self.own, "the roles alternate", content);
            self.check(!list(&content["parts"]).is_empty(), "content is not empty", content);
            if role == "model" {
                self.check(open.is_empty(), "each call has a response at once", content);
                open.clear();
            }
            for part in list(&content["parts"]) {
                let kinds = ["text", "functionCall", "functionResponse", "inlineData", "fileData"];
                let known = kinds.iter().filter(|kind| part.get(**kind).is_some()).count();
                self.check(known <= 1, "a part is one thing", part);
                if let Some(words) = part.get("text") {
                    let signed = part.get("thoughtSignature").is_some();
                    self.check(signed || !text(words).is_empty(), "a text is not empty", part);
                    self.check(signed || part["thought"] != true || self.own, "a thought is signed", part);
                }
                if let Some(call) = part.get("functionCall") {
                    self.check(role == "model", "the model calls", part);
                    self.check(!text(&call["name"]).is_empty(), "a call has a name", part);
                    self.check(call["args"].is_object() || call["args"].is_null(), "arguments are an object", part);
                    let id = text(&call["id"]);
                    let new = id.is_empty() || self.ids.insert(id.to_owned());
                    self.check(new, "ids are unique", part);
                    open.push((id, text(&call["name"])));
                }
                if let Some(response) = part.get("functionResponse") {
                    let (id, name) = (text(&response["id"]), text(&response["name"]));
                    let fits = |call: &(&str, &str)| if id.is_empty() { call.1 == name } else { call.0 == id };
                    let call = open.iter().position(fits).filter(|_| role == "user");
                    self.check(call.is_some(), "a response has its call", part);
                    call.into_iter().for_each(|call| _ = open.remove(call));
                    self.check(response["response"].is_object(), "a response is an object", part);
                }
            }
        }
        self.check(open.is_empty(), "each call has a response", &"the end".into());
    }

    /// The AI SDK's model messages: a step's results follow in one message of the tools.
    fn ai_sdk(&mut self, messages: &[Value]) {
        let mut open: Vec<&str> = Vec::new();
        for message in messages {
            let role = text(&message["role"]);
            let content = &message["content"];
            if role == "system" {
                self.check(content.is_string(), "instructions are a text", message);
                continue;
            }
            self.check(matches!(role, "user" | "assistant" | "tool"), "a role", message);
            self.check(!list(content).is_empty(), "content is not empty", message);
            self.check(role == "tool" || open.is_empty(), "each call has a result at once", message);
            for part in list(content) {
                match (text(&part["type"]), role) {
                    ("text" | "file", "user") | ("text" | "file" | "reasoning", "assistant") => {}
                    ("reasoning-file" | "custom" | "tool-approval-request", "assistant") => {}
                    ("tool-approval-response", "tool") => {}
                    ("tool-call", "assistant") => {
                        let new = self.ids.insert(text(&part["toolCallId"]).to_owned());
                        self.check(new, "ids are unique", part);
                        open.push(text(&part["toolCallId"]));
                    }
                    ("tool-result", _) => {
                        let at = open.iter().position(|id| *id == text(&part["toolCallId"]));
                        self.check(at.is_some(), "a result has its call", part);
                        at.into_iter().for_each(|at| _ = open.remove(at));
                        self.check(part["output"]["type"].is_string(), "a result has an output", part);
                    }
                    _ => self.check(false, "a part of this role", part),
                }
            }
        }
        self.check(open.is_empty(), "each call has a result", &"the end".into());
    }

    fn fluux(&mut self, turns: &[Value]) {
        for turn in turns {
            self.check(matches!(text(&turn["role"]), "user" | "assistant"), "a role", turn);
            self.check(!text(&turn["content"]).is_empty(), "content is not empty", turn);
            self.check(turn.as_object().is_some_and(|turn| turn.len() == 2), "nothing else", turn);
        }
    }

    /// A call's id is its own, and its name one that the API takes.
    fn call(&mut self, id: &Value, name: &Value, longest: usize) {
        let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
        let (id, name) = (text(id), text(name));
        self.check(!id.is_empty() && plain(id), "a call's id", &id.into());
        let new = self.ids.insert(id.to_owned());
        self.check(new, "ids are unique", &id.into());
        self.check(!name.is_empty() && name.len() <= longest && plain(name), "a tool's name", &name.into());
    }

    fn paired(&mut self, calls: &[&str], results: &[&str], place: &Value) {
        let (mut calls, mut results) = (calls.to_vec(), results.to_vec());
        calls.sort_unstable();
        results.sort_unstable();
        self.check(calls == results, "each call has one result at once, each result a call", place);
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
