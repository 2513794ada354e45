//! An answer as an endpoint streams it: server-sent events of Anthropic's or OpenAI's API, as pieces for a recorder.
//!
//! The other half of [`crate::history::View`]: that one says what is sent, this one hears what comes back.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value, json};

use super::Delta;
use crate::message::{Part, ReasoningPart, ToolPart, ToolState};
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
/// assert_eq!(stream.hear(event)?, [Delta::Text("Four.".to_owned()), Delta::End(None)]);
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
    /// A text or a thinking may go on.
    is_open: bool,
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
                    self.calls.entry(number).or_default().input.push_str(&text(&delta["partial_json"]));
                }
                _ => {}
            },
            "content_block_stop" => match self.calls.remove(&number) {
                Some(call) => self.heard.push(call.whole()),
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
            "message_stop" => self.is_whole = true,
            _ => {}
        }
    }

    /// Most blocks begin empty; what is hidden of a thinking comes at once.
    fn block_starts(&mut self, number: u64, block: &Value) {
        match block["type"].as_str().unwrap_or_default() {
            "tool_use" => {
                let call = Called { id: text(&block["id"]), name: text(&block["name"]), ..Called::default() };
                self.calls.insert(number, call);
            }
            "text" => self.says(&block["text"], Delta::Text),
            "thinking" => self.says(&block["thinking"], Delta::Reasoning),
            "redacted_thinking" => {
                let about = of_anthropic(json!({"redactedData": block["data"]}));
                let part = ReasoningPart { provider_metadata: Some(about), ..ReasoningPart::default() };
                self.heard.push(Delta::Part(Part::Reasoning(part)));
            }
            _ => {}
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
            let id = piece["id"].as_str().unwrap_or_default();
            let last = self.calls.last_key_value().map(|(number, _)| *number);
            // Not every endpoint counts the calls: then an id begins one.
            let uncounted = if id.is_empty() { last } else { last.map(|last| last.saturating_add(1)) };
            let number = piece["index"].as_u64().or(uncounted).unwrap_or_default();
            let call = self.calls.entry(number).or_default();
            if call.id != id {
                call.id.push_str(id);
            }
            call.name.push_str(piece["function"]["name"].as_str().unwrap_or_default());
            call.input.push_str(piece["function"]["arguments"].as_str().unwrap_or_default());
        }
        if choice["finish_reason"].is_string() {
            self.is_whole = true;
            self.words_end();
            self.heard.extend(std::mem::take(&mut self.calls).into_values().map(Called::whole));
        }
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
    fn whole(self) -> Delta {
        let input = if self.input.is_empty() { "{}" } else { &self.input };
        let input = serde_json::from_str(input).unwrap_or_else(|_| Value::from(input));
        Delta::Part(ToolPart::dynamic(self.name, self.id, ToolState::called(input)).into())
    }
}

fn of_anthropic(about: Value) -> Map<String, Value> {
    Map::from_iter([("anthropic".to_owned(), about)])
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Said;

    /// What a stream of events says, a delta a line, and how it ended.
    fn check(api: Api, events: &[&str]) -> String {
        let mut stream = ApiStream::of(api);
        let (mut told, mut answer) = (Vec::new(), Said::default());
        for event in events {
            match stream.hear(&format!("data: {event}")) {
                Ok(deltas) => deltas.into_iter().for_each(|delta| {
                    told.push(match &delta {
                        Delta::Model(model) => format!("model {model}"),
                        Delta::Text(text) => format!("text {text:?}"),
                        Delta::Reasoning(text) => format!("thinks {text:?}"),
                        Delta::End(about) => format!("end {}", json!(about)),
                        Delta::Part(part) => format!("part {}", json!(part)),
                        Delta::About(_) => "about".to_owned(),
                    });
                    delta.add_to(&mut answer);
                }),
                Err(why) => told.push(format!("broken off: {why}")),
            }
        }
        let going_on = json!(answer.parts).to_string().matches("streaming").count();
        told.extend((going_on > 0).then(|| format!("{going_on} of {} may go on", answer.parts.len())));
        told.push(match stream.end() {
            Ok(usage) => format!("whole {}", json!(usage)),
            Err(why) => format!("not whole: {why}"),
        });
        told.join("\n")
    }

    const START: &str = r#"{"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 3, "cache_read_input_tokens": 2, "cache_creation_input_tokens": 1, "output_tokens": 1}}}"#;
    const THINKS: &str =
        r#"{"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm"}}"#;
    const SAYS: &str =
        r#"{"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "At 4."}}"#;
    const ENDS: &str = r#"{"type": "content_block_stop", "index": 1}"#;
    const STOP: &str = r#"{"type": "message_stop"}"#;

    #[test]
    fn an_answer_of_anthropic() {
        insta::assert_snapshot!(check(Api::Anthropic, &[
            START,
            r#"{"type": "ping"}"#,
            r#"{"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}}"#,
            THINKS,
            r#"{"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2"}}"#,
            r#"{"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "ln"}}"#,
            r#"{"type": "content_block_stop", "index": 0}"#,
            r#"{"type": "content_block_start", "index": 1, "content_block": {"type": "redacted_thinking", "data": "eA=="}}"#,
            ENDS,
            r#"{"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": "It is "}}"#,
            SAYS,
            ENDS,
            r#"{"type": "content_block_start", "index": 3, "content_block": {"type": "tool_use", "id": "c1", "name": "read", "input": {}}}"#,
            r#"{"type": "content_block_delta", "index": 3, "delta": {"type": "input_json_delta", "partial_json": "{\"path\":"}}"#,
            r#"{"type": "content_block_delta", "index": 3, "delta": {"type": "input_json_delta", "partial_json": " \"a\"}"}}"#,
            r#"{"type": "content_block_delta", "index": 3, "delta": {"type": "citations_delta"}}"#,
            r#"{"type": "content_block_stop", "index": 3}"#,
            r#"{"type": "content_block_start", "index": 4, "content_block": {"type": "tool_use", "id": "c2", "name": "now", "input": {}}}"#,
            r#"{"type": "content_block_stop", "index": 4}"#,
            r#"{"type": "content_block_start", "index": 5, "content_block": {"type": "server_tool_use", "id": "s"}}"#,
            r#"{"type": "content_block_stop", "index": 5}"#,
            r#"{"type": "a_new_event", "index": 5}"#,
            r#"{"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}}"#,
            r#"{"type": "message_delta", "delta": {}}"#,
            STOP,
        ]), @r#"
        model m
        thinks "Hm"
        end {"anthropic":{"signature":"c2ln"}}
        part {"type":"reasoning","text":"","providerMetadata":{"anthropic":{"redactedData":"eA=="}}}
        text "It is "
        text "At 4."
        end null
        part {"type":"dynamic-tool","toolName":"read","toolCallId":"c1","state":"input-available","input":{"path":"a"}}
        part {"type":"dynamic-tool","toolName":"now","toolCallId":"c2","state":"input-available","input":{}}
        whole {"input":3,"output":9,"cacheRead":2,"cacheWrite":1}
        "#);
    }

    #[test]
    fn an_answer_of_openai() {
        insta::assert_snapshot!(check(Api::OpenAi, &[
            r#"{"model": "m", "choices": [{"delta": {"role": "assistant", "content": ""}}]}"#,
            r#"{"model": "m", "choices": [{"delta": {"reasoning_content": "Hm"}}]}"#,
            r#"{"model": "m", "choices": [{"delta": {"reasoning": "m."}}]}"#,
            r#"{"model": "m", "choices": [{"delta": {"content": "At "}}]}"#,
            r#"{"model": "m", "choices": [{"delta": {"content": "4."}}]}"#,
            r#"{"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "read", "arguments": "{\"pa"}}]}}]}"#,
            r#"{"choices": [{"delta": {"tool_calls": [{"index": 1, "id": "c2", "function": {"name": "now", "arguments": ""}}]}}]}"#,
            r#"{"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "c1", "function": {"arguments": "th\": 1}"}}]}}]}"#,
            r#"{"choices": [{"delta": {"a_new_field": 1}}], "error": null}"#,
            r#"{"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}"#,
            r#"{"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 6}, "completion_tokens_details": {"reasoning_tokens": 1}}}"#,
            "[DONE]",
        ]), @r#"
        model m
        thinks "Hm"
        thinks "m."
        text "At "
        text "4."
        end null
        part {"type":"dynamic-tool","toolName":"read","toolCallId":"c1","state":"input-available","input":{"path":1}}
        part {"type":"dynamic-tool","toolName":"now","toolCallId":"c2","state":"input-available","input":{}}
        whole {"input":3,"output":4,"cacheRead":6,"reasoning":1}
        "#);
        // Calls that the endpoint does not count, arguments that are no JSON.
        insta::assert_snapshot!(check(Api::OpenAi, &[
            r#"{"choices": [{"delta": {"tool_calls": [{"id": "c1", "function": {"name": "a", "arguments": "{\"x\":"}}]}}]}"#,
            r#"{"choices": [{"delta": {"tool_calls": [{"function": {"arguments": "1}"}}]}}]}"#,
            r#"{"choices": [{"delta": {"tool_calls": [{"id": "c2", "function": {"name": "b", "arguments": "{"}}]}, "finish_reason": "length"}]}"#,
        ]), @r#"
        part {"type":"dynamic-tool","toolName":"a","toolCallId":"c1","state":"input-available","input":{"x":1}}
        part {"type":"dynamic-tool","toolName":"b","toolCallId":"c2","state":"input-available","input":"{"}
        whole {}
        "#);
    }

    #[test]
    fn what_does_not_come_to_its_end_is_told_so() {
        for (api, events, told) in [
            (
                Api::Anthropic,
                vec![START, THINKS, SAYS],
                "model m\nthinks \"Hm\"\ntext \"At 4.\"\n1 of 2 may go on\nnot whole",
            ),
            (
                Api::Anthropic,
                vec![r#"{"type": "error", "error": {"message": "Overloaded"}}"#],
                "broken off: Overloaded\nnot whole",
            ),
            (Api::Anthropic, vec![r#"{"error": {}}"#, STOP], "broken off: the endpoint failed\nwhole {}"),
            (
                Api::OpenAi,
                vec![r#"{"choices": [{"delta": {"content": "A"}}]}"#],
                "text \"A\"\n1 of 1 may go on\nnot whole",
            ),
            (Api::OpenAi, vec![r#"{"error": {"message": "No."}}"#], "broken off: No.\nnot whole"),
            (Api::OpenAi, vec!["{", "7", "null", "[]", r#"{"choices": 1}"#], "broken off: an event is no JSON"),
            (Api::Anthropic, vec!["7", "[]", r#"{"type": 1}"#, r#"{"type": "message_start"}"#], "not whole"),
        ] {
            let came = check(api, &events);
            assert!(came.starts_with(told), "{came}");
        }
        // Names and comments of events are no data.
        for line in ["event: ping", ": keep-alive", "", "id: 7", "data: [DONE]", "data:[DONE]"] {
            assert_eq!(ApiStream::of(Api::OpenAi).hear(line), Ok(Vec::new()), "{line}");
        }
    }
}
