//! Asks an endpoint with Anthropic's or OpenAI's API over plain HTTP, and reads its answer event by event.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use scrollback::dialect::anthropic_blocks;
use scrollback::{Delta, ToolPart, ToolState, Usage, View};
use serde_json::{Map, Value, json};

use super::{Failure, tools};

/// A model may think for minutes before its first word.
const TIMEOUT: Duration = Duration::from_secs(600);
const RESPONSE_LIMIT_BYTES: u64 = 64 * 1024 * 1024;

pub(crate) struct Model {
    /// The form of its messages.
    pub(crate) view: View,
    address: String,
    path: String,
    headers: String,
}

impl Model {
    /// The endpoint that the environment names.
    pub(crate) fn from_env() -> Result<Model, Failure> {
        let var = |name: &str| std::env::var(name).unwrap_or_default();
        let (view, url, verb, headers) = if var("ANTHROPIC_BASE_URL").is_empty() {
            let headers = format!("authorization: Bearer {}", var("OPENAI_API_KEY"));
            (View::OpenAi, var("OPENAI_BASE_URL"), "chat/completions", headers)
        } else {
            let headers = format!("anthropic-version: 2023-06-01\r\nx-api-key: {}", var("ANTHROPIC_API_KEY"));
            (View::Anthropic, var("ANTHROPIC_BASE_URL"), "v1/messages", headers)
        };
        let address = url.strip_prefix("http://").map(|rest| rest.split_once('/').unwrap_or((rest, "")));
        let (host, base) =
            address.ok_or("no model: set ANTHROPIC_BASE_URL or OPENAI_BASE_URL to an http:// address")?;
        let address = if host.contains(':') { host.to_owned() } else { format!("{host}:80") };
        Ok(Model { view, address, path: format!("/{base}/{verb}").replace("//", "/"), headers })
    }

    /// Asks for the next answer, hands over each piece as it comes, and returns the token counts.
    pub(crate) fn answer(
        &self,
        messages: &[Value],
        mut take: impl FnMut(Delta) -> Result<(), Failure>,
    ) -> Result<Usage, Failure> {
        let is_anthropic = self.view == View::Anthropic;
        let tools = tools::ALL.map(|(name, description, keys)| {
            let properties: Map<_, _> = keys.iter().map(|key| (key.to_string(), json!({"type": "string"}))).collect();
            let schema = json!({"type": "object", "properties": properties, "required": keys});
            let tool = json!({"name": name, "description": description, "input_schema": schema});
            let function = json!({"name": name, "description": description, "parameters": schema});
            if is_anthropic { tool } else { json!({"type": "function", "function": function}) }
        });
        let model = std::env::var("MODEL").unwrap_or_default();
        let mut body = json!({"model": model, "stream": true, "tools": tools, "messages": messages});
        match is_anthropic {
            true => body["max_tokens"] = 8192.into(),
            false => body["stream_options"] = json!({"include_usage": true}),
        }
        let mut stream = Stream::default();
        for line in self.post(&body.to_string())?.lines() {
            stream.read(&line?)?.into_iter().try_for_each(&mut take)?;
        }
        stream.end()
    }

    /// Sends a request and returns the body of the response. With HTTP/1.0 it ends where the connection does.
    fn post(&self, body: &str) -> Result<impl BufRead + use<>, Failure> {
        let Model { address, path, headers, .. } = self;
        let mut stream = TcpStream::connect(address).map_err(|error| format!("{address}: {error}"))?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        let content = format!("content-type: application/json\r\ncontent-length: {}", body.len());
        write!(stream, "POST {path} HTTP/1.0\r\nhost: {address}\r\n{headers}\r\n{content}\r\n\r\n{body}")?;
        let mut response = BufReader::new(stream.take(RESPONSE_LIMIT_BYTES));
        let (mut status, mut header, mut reason) = (String::new(), String::new(), String::new());
        response.read_line(&mut status)?;
        while response.read_line(&mut header)? > 2 {
            header.clear();
        }
        if status.split(' ').nth(1) == Some("200") {
            return Ok(response);
        }
        response.read_to_string(&mut reason)?;
        Err(format!("{}: {}", status.trim(), reason.trim()).into())
    }
}

/// What a streamed answer leaves open between its events.
#[derive(Default)]
pub(crate) struct Stream {
    calls: Vec<Call>,
    signature: String,
    usage: Usage,
    has_model: bool,
    is_complete: bool,
}

#[derive(Default)]
struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    input: String,
}

impl Stream {
    /// The pieces in one line of the response. A tool call comes when it is complete.
    pub(crate) fn read(&mut self, line: &str) -> Result<Vec<Delta>, Failure> {
        let data = line.strip_prefix("data:").map(str::trim).filter(|data| *data != "[DONE]");
        let Some(data) = data else { return Ok(Vec::new()) };
        let event: Value = serde_json::from_str(data).map_err(|error| format!("an event is not JSON: {error}"))?;
        if let Some(error) = event.get("error").filter(|error| !error.is_null()) {
            return Err(error["message"].as_str().unwrap_or("the endpoint failed").into());
        }
        // An event has the fields of its own API only: the first three here are Anthropic's, the last two OpenAI's.
        let (message, block, piece) = (&event["message"], &event["content_block"], &event["delta"]);
        let (choice, delta) = (&event["choices"][0], &event["choices"][0]["delta"]);
        let model = [&event["model"], &message["model"]].into_iter().find_map(Value::as_str);
        let model = model.filter(|_| !self.has_model);
        self.has_model |= model.is_some();
        let mut pieces = Vec::from_iter(model.map(|model| Delta::Model(model.to_owned())));
        let mut add = |value: &Value, piece: fn(String) -> Delta| {
            pieces.extend(value.as_str().filter(|text| !text.is_empty()).map(|text| piece(text.to_owned())));
        };
        let reasoning = [&block["thinking"], &piece["thinking"], &delta["reasoning_content"], &delta["reasoning"]];
        reasoning.iter().for_each(|text| add(text, Delta::Reasoning));
        [&block["text"], &piece["text"], &delta["content"]].iter().for_each(|words| add(words, Delta::Text));
        [&message["usage"], &event["usage"]].iter().for_each(|used| self.count(used));
        self.signature.push_str(text(&piece["signature"]));
        match text(&block["type"]) {
            "tool_use" => self.call(None, text(&block["id"]), text(&block["name"]), ""),
            "redacted_thinking" => pieces.extend(anthropic_blocks(block).0.into_iter().map(Delta::Part)),
            _ => {}
        }
        if let Some(input) = piece["partial_json"].as_str() {
            self.calls.iter_mut().for_each(|call| call.input.push_str(input));
        }
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            let (name, input) = (text(&call["function"]["name"]), text(&call["function"]["arguments"]));
            self.call(call["index"].as_u64(), text(&call["id"]), name, input);
        }
        let is_end = event["type"] == "content_block_stop" || choice["finish_reason"].is_string();
        if is_end && self.calls.is_empty() {
            let signature = Some(std::mem::take(&mut self.signature)).filter(|signature| !signature.is_empty());
            let metadata = |signature| Map::from_iter([("anthropic".to_owned(), json!({"signature": signature}))]);
            pieces.push(Delta::End(signature.map(metadata)));
        }
        if is_end {
            pieces.extend(self.calls.drain(..).map(Call::into_piece));
        }
        self.is_complete |= event["type"] == "message_stop" || choice["finish_reason"].is_string();
        Ok(pieces)
    }

    /// The token counts of a complete answer.
    pub(crate) fn end(self) -> Result<Usage, Failure> {
        if self.is_complete { Ok(self.usage) } else { Err("the endpoint broke off its answer".into()) }
    }

    /// Adds to a tool call. Not every endpoint counts its calls right: another id is another call.
    fn call(&mut self, index: Option<u64>, id: &str, name: &str, input: &str) {
        let is_same = |call: &&mut Call| (index.is_none() || call.index == index) && (id.is_empty() || call.id == id);
        match self.calls.iter_mut().rfind(is_same) {
            Some(call) => call.input.push_str(input),
            None => self.calls.push(Call { index, id: id.into(), name: name.into(), input: input.into() }),
        }
    }

    /// OpenAI counts cached tokens twice.
    fn count(&mut self, used: &Value) {
        let (usage, number) = (&mut self.usage, |key: &str| used[key].as_u64());
        let cached = used["prompt_tokens_details"]["cached_tokens"].as_u64();
        let sent = number("prompt_tokens").map(|sent| sent.saturating_sub(cached.unwrap_or_default()));
        usage.input = number("input_tokens").or(sent).or(usage.input);
        usage.output = number("output_tokens").or(number("completion_tokens")).or(usage.output);
        usage.cache_read = number("cache_read_input_tokens").or(cached).or(usage.cache_read);
        usage.cache_write = number("cache_creation_input_tokens").or(usage.cache_write);
        usage.reasoning = used["completion_tokens_details"]["reasoning_tokens"].as_u64().or(usage.reasoning);
    }
}

impl Call {
    fn into_piece(self) -> Delta {
        let input = if self.input.is_empty() { "{}" } else { &self.input };
        let input = serde_json::from_str(input).unwrap_or_else(|_| Value::from(input));
        Delta::Part(ToolPart::dynamic(self.name, self.id, ToolState::called(input)).into())
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
