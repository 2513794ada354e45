//! An answer as an endpoint streams it: server-sent events of Anthropic's or OpenAI's API, as pieces for a recorder.
//!
//! The other half of [`crate::history::View`]: that one says what is sent, this one hears what comes back.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value, json};

use super::Delta;
use crate::message::{ToolPart, ToolState};
use crate::record::Usage;

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
/// use scrollback::recorder::{Api, ApiStream, Delta};
///
/// let mut stream = ApiStream::of(Api::OpenAi);
/// let event = r#"data: {"choices": [{"delta": {"content": "Four."}, "finish_reason": "stop"}]}"#;
/// assert_eq!(stream.hear(event)?, [Delta::Text("Four.".to_owned())]);
/// assert!(stream.end().is_ok());
/// # Ok::<(), scrollback::recorder::BrokenOff>(())
/// ```
#[derive(Debug)]
pub struct ApiStream {
    api: Api,
    /// Calls that are not whole, by their numbers in the answer.
    calls: BTreeMap<u64, Called>,
    signature: String,
    usage: Usage,
    is_named: bool,
    is_whole: bool,
    heard: Vec<Delta>,
}

#[derive(Debug, Default)]
struct Called {
    id: String,
    name: String,
    input: String,
}

impl ApiStream {
    /// A stream of which nothing was heard yet.
    pub fn of(api: Api) -> ApiStream {
        ApiStream {
            api,
            calls: BTreeMap::new(),
            signature: String::new(),
            usage: Usage::default(),
            is_named: false,
            is_whole: false,
            heard: Vec::new(),
        }
    }

    /// Takes one line of the response, and gives what it says. A call comes when it is whole; one to which the endpoint gave
    /// no id has none.
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
                self.heard.push(Delta::Model(text(&event["message"]["model"])));
            }
            "content_block_start" if event["content_block"]["type"] == "tool_use" => {
                let block = &event["content_block"];
                let call = Called { id: text(&block["id"]), name: text(&block["name"]), ..Called::default() };
                self.calls.insert(number, call);
            }
            "content_block_delta" => match delta["type"].as_str().unwrap_or_default() {
                "text_delta" => self.heard.push(Delta::Text(text(&delta["text"]))),
                "thinking_delta" => self.heard.push(Delta::Reasoning(text(&delta["thinking"]))),
                "signature_delta" => self.signature.push_str(&text(&delta["signature"])),
                "input_json_delta" => {
                    self.calls.entry(number).or_default().input.push_str(&text(&delta["partial_json"]));
                }
                _ => {}
            },
            "content_block_stop" => match self.calls.remove(&number) {
                Some(call) => self.heard.push(call.whole()),
                None if self.signature.is_empty() => self.heard.push(Delta::End(None)),
                None => {
                    let signature = json!({"signature": std::mem::take(&mut self.signature)});
                    self.heard.push(Delta::End(Some(Map::from_iter([("anthropic".to_owned(), signature)]))));
                }
            },
            "message_delta" => self.usage.output = event["usage"]["output_tokens"].as_u64(),
            "message_stop" => self.is_whole = true,
            _ => {}
        }
    }

    fn openai(&mut self, event: &Value) {
        if let Some(model) = event["model"].as_str().filter(|_| !std::mem::replace(&mut self.is_named, true)) {
            self.heard.push(Delta::Model(model.to_owned()));
        }
        if let Some(used) = event.get("usage").filter(|used| used.is_object()) {
            let cached = used["prompt_tokens_details"]["cached_tokens"].as_u64();
            let sent = used["prompt_tokens"].as_u64();
            self.usage.input = sent.map(|sent| sent.saturating_sub(cached.unwrap_or_default()));
            (self.usage.cache_read, self.usage.output) = (cached, used["completion_tokens"].as_u64());
        }
        let choice = &event["choices"][0];
        let delta = &choice["delta"];
        let said = |key: &str| delta[key].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        self.heard.extend(said("reasoning_content").map(Delta::Reasoning));
        self.heard.extend(said("content").map(Delta::Text));
        for piece in delta["tool_calls"].as_array().into_iter().flatten() {
            let call = self.calls.entry(piece["index"].as_u64().unwrap_or_default()).or_default();
            call.id.push_str(piece["id"].as_str().unwrap_or_default());
            call.name.push_str(piece["function"]["name"].as_str().unwrap_or_default());
            call.input.push_str(piece["function"]["arguments"].as_str().unwrap_or_default());
        }
        if choice["finish_reason"].is_string() {
            self.is_whole = true;
            self.heard.extend(std::mem::take(&mut self.calls).into_values().map(Called::whole));
        }
    }
}

impl Called {
    fn whole(self) -> Delta {
        let input = if self.input.is_empty() { "{}" } else { &self.input };
        let input = serde_json::from_str(input).unwrap_or_else(|_| Value::from(input));
        Delta::Part(ToolPart::dynamic(self.name, self.id, ToolState::called(input)).into())
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
