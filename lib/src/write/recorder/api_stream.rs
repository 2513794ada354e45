//! An answer as an endpoint streams it: server-sent events of Anthropic's or OpenAI's API, as pieces for a recorder.
//!
//! The other half of [`crate::view::history::View`]: that one says what is sent, this one hears what comes back.

use std::fmt;

use serde_json::{Map, Value, json};

use super::Delta;
use crate::model::message::{Part, ReasoningPart, ToolPart, ToolState};
use crate::model::record::Usage;

/// Whose events they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// Anthropic's Messages API.
    Anthropic,
    /// OpenAI's Chat Completions API, and what speaks like it.
    OpenAi,
}

/// Why an answer did not come to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenOff(String);

impl fmt::Display for BrokenOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BrokenOff {}

/// An answer that is being streamed.
///
/// ```
/// use scrollback::write::recorder::{Api, ApiStream, Delta};
///
/// let mut stream = ApiStream::of(Api::OpenAi);
/// let event = r#"data: {"choices": [{"delta": {"content": "Four."}, "finish_reason": "stop"}]}"#;
/// assert_eq!(stream.hear(event)?, [Delta::Text("Four.".to_owned()), Delta::End(None)]);
/// assert!(stream.end().is_ok());
/// # Ok::<(), scrollback::write::recorder::BrokenOff>(())
/// ```
#[derive(Debug)]
pub struct ApiStream {
    api: Api,
    /// Calls that are not whole, in their order.
    calls: Vec<Called>,
    signature: String,
    usage: Usage,
    is_named: bool,
    /// A text or a thinking may go on.
    is_open: bool,
    is_whole: bool,
    heard: Vec<Delta>,
}

#[derive(Debug, Default)]
struct Called {
    /// Where the endpoint says that it stands in the answer.
    number: Option<u64>,
    id: String,
    name: String,
    input: String,
    /// The provider runs it, and what it found stands in the same answer.
    is_hosted: bool,
    /// Nothing is added to it any more.
    is_whole: bool,
}

impl ApiStream {
    /// A stream of which nothing was heard yet.
    pub fn of(api: Api) -> ApiStream {
        ApiStream {
            api,
            calls: Vec::new(),
            signature: String::new(),
            usage: Usage::default(),
            is_named: false,
            is_open: false,
            is_whole: false,
            heard: Vec::new(),
        }
    }

    /// Takes one line of the response, and gives what it says. A call comes when it is whole; one to which the endpoint gave
    /// no id has none. Events and blocks that are not known say nothing.
    pub fn hear(&mut self, line: &str) -> Result<Vec<Delta>, BrokenOff> {
        let event = match line.strip_prefix("data:").map(str::trim) {
            None | Some("[DONE]") => return Ok(Vec::new()),
            Some(event) => event,
        };
        let event: Value =
            serde_json::from_str(event).map_err(|error| BrokenOff(format!("an event is no JSON: {error}")))?;
        if let Some(error) = event.get("error").filter(|error| !error.is_null()) {
            return Err(BrokenOff(error["message"].as_str().unwrap_or("the endpoint failed").to_owned()));
        }
        match self.api {
            Api::Anthropic => self.anthropic(&event),
            Api::OpenAi => self.openai(&event),
        }
        Ok(std::mem::take(&mut self.heard))
    }

    /// What the answer cost, if it came to its end.
    pub fn end(self) -> Result<Usage, BrokenOff> {
        if self.is_whole { Ok(self.usage) } else { Err(BrokenOff("the endpoint broke off its answer".to_owned())) }
    }

    fn anthropic(&mut self, event: &Value) {
        let (delta, number) = (&event["delta"], event["index"].as_u64().unwrap_or_default());
        match event["type"].as_str().unwrap_or_default() {
            "message_start" => {
                let used = &event["message"]["usage"];
                self.usage.input = used["input_tokens"].as_u64();
                self.usage.cache_read = used["cache_read_input_tokens"].as_u64();
                self.usage.cache_write = used["cache_creation_input_tokens"].as_u64();
                self.named(&event["message"]["model"]);
            }
            "content_block_start" => self.block_starts(number, &event["content_block"]),
            "content_block_delta" => match delta["type"].as_str().unwrap_or_default() {
                "text_delta" => self.says(&delta["text"], Delta::Text),
                "thinking_delta" => self.says(&delta["thinking"], Delta::Reasoning),
                "signature_delta" => self.signature.push_str(&text(&delta["signature"])),
                "input_json_delta" => {
                    let call = self.calls.iter_mut().rfind(|call| call.is_at(number));
                    call.into_iter().for_each(|call| call.input.push_str(&text(&delta["partial_json"])));
                }
                _ => {}
            },
            "content_block_stop" => match self.calls.iter().rposition(|call| call.is_at(number)) {
                // What it found comes next.
                Some(at) if self.calls[at].is_hosted => self.calls[at].is_whole = true,
                Some(at) => {
                    let call = self.calls.remove(at).called();
                    self.heard.push(Delta::Part(call.into()));
                }
                None if self.signature.is_empty() => self.words_end(),
                None => {
                    let signature = json!({"signature": std::mem::take(&mut self.signature)});
                    self.is_open = false;
                    self.heard.push(Delta::End(Some(of_anthropic(signature))));
                }
            },
            "message_delta" => {
                self.usage.output = event["usage"]["output_tokens"].as_u64().or(self.usage.output);
            }
            "message_stop" => self.message_ends(),
            _ => {}
        }
    }

    /// Calls of which no end was heard are calls still.
    fn message_ends(&mut self) {
        self.is_whole = true;
        self.words_end();
        let calls = std::mem::take(&mut self.calls).into_iter();
        self.heard.extend(calls.map(|call| Delta::Part(call.called().into())));
    }

    /// Most blocks begin empty; what is hidden of a thinking comes at once.
    fn block_starts(&mut self, number: u64, block: &Value) {
        match block["type"].as_str().unwrap_or_default() {
            kind @ ("tool_use" | "server_tool_use") => {
                let (id, name, is_hosted) = (text(&block["id"]), text(&block["name"]), kind != "tool_use");
                self.calls.push(Called { number: Some(number), id, name, is_hosted, ..Called::default() });
            }
            "text" => self.says(&block["text"], Delta::Text),
            "thinking" => self.says(&block["thinking"], Delta::Reasoning),
            "redacted_thinking" => {
                let about = of_anthropic(json!({"redactedData": block["data"]}));
                let part = ReasoningPart { provider_metadata: Some(about), ..ReasoningPart::default() };
                self.heard.push(Delta::Part(Part::Reasoning(part)));
            }
            _ => {
                // Each of the provider's own tools has a type of block for what it found.
                let id = block["tool_use_id"].as_str().unwrap_or_default();
                if let Some(at) = self.calls.iter().position(|call| call.is_hosted && call.id == id) {
                    let mut call = self.calls.remove(at).called();
                    call.state = ToolState::done(call.input().cloned().unwrap_or_default(), block["content"].clone());
                    self.heard.push(Delta::Part(call.into()));
                }
            }
        }
    }

    fn openai(&mut self, event: &Value) {
        self.named(&event["model"]);
        if let Some(used) = event.get("usage").filter(|used| used.is_object()) {
            let cached = used["prompt_tokens_details"]["cached_tokens"].as_u64();
            let sent = used["prompt_tokens"].as_u64();
            self.usage.input = sent.map(|sent| sent.saturating_sub(cached.unwrap_or_default()));
            (self.usage.cache_read, self.usage.output) = (cached, used["completion_tokens"].as_u64());
            self.usage.reasoning = used["completion_tokens_details"]["reasoning_tokens"].as_u64();
        }
        let choice = &event["choices"][0];
        let delta = &choice["delta"];
        // One word or the other: the API itself has none.
        for thinking in ["reasoning_content", "reasoning"] {
            self.says(&delta[thinking], Delta::Reasoning);
        }
        self.says(&delta["content"], Delta::Text);
        for piece in delta["tool_calls"].as_array().into_iter().flatten() {
            let (id, number) = (piece["id"].as_str().unwrap_or_default(), piece["index"].as_u64());
            let call = self.call_of(id, number);
            // Some endpoints say both again with every piece.
            if call.id.is_empty() {
                call.id.push_str(id);
            }
            if call.name.is_empty() {
                call.name.push_str(piece["function"]["name"].as_str().unwrap_or_default());
            }
            call.input.push_str(piece["function"]["arguments"].as_str().unwrap_or_default());
        }
        if choice["finish_reason"].is_string() {
            self.message_ends();
        }
    }

    /// The call that a piece belongs to. Not every endpoint counts its calls, or counts them right: another id is another one.
    fn call_of(&mut self, id: &str, number: Option<u64>) -> &mut Called {
        let is_it = |call: &Called| {
            let is_there = number.is_none() || call.number == number;
            is_there && (id.is_empty() || call.id.is_empty() || call.id == id)
        };
        // A piece without an id goes on with the last one.
        let at = self.calls.iter().rposition(is_it).unwrap_or(self.calls.len());
        if at == self.calls.len() {
            self.calls.push(Called { number, ..Called::default() });
        }
        &mut self.calls[at]
    }

    fn named(&mut self, model: &Value) {
        if let Some(model) = model.as_str().filter(|model| !self.is_named && !model.is_empty()) {
            self.is_named = true;
            self.heard.push(Delta::Model(model.to_owned()));
        }
    }

    fn says(&mut self, words: &Value, delta: impl FnOnce(String) -> Delta) {
        if let Some(words) = words.as_str().filter(|words| !words.is_empty()) {
            self.is_open = true;
            self.heard.push(delta(words.to_owned()));
        }
    }

    fn words_end(&mut self) {
        if std::mem::take(&mut self.is_open) {
            self.heard.push(Delta::End(None));
        }
    }
}

impl Called {
    fn is_at(&self, number: u64) -> bool {
        self.number == Some(number) && !self.is_whole
    }

    fn called(self) -> ToolPart {
        let input = if self.input.is_empty() { "{}" } else { &self.input };
        let input = serde_json::from_str(input).unwrap_or_else(|_| Value::from(input));
        let provider_executed = self.is_hosted.then_some(true);
        ToolPart { provider_executed, ..ToolPart::dynamic(self.name, self.id, ToolState::called(input)) }
    }
}

fn of_anthropic(about: Value) -> Map<String, Value> {
    Map::from_iter([("anthropic".to_owned(), about)])
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
