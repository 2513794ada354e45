//! Who answers: an endpoint that speaks Anthropic's or OpenAI's API over plain HTTP, or a script.
//!
//! An answer arrives as [`Delta`]s, which the recorder takes as they are.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use scrollback::history::View;
use scrollback::message::{Part, ReasoningPart, ToolPart, ToolState};
use scrollback::record::Usage;
use scrollback::recorder::Delta;
use serde_json::{Map, Value, json};

use super::tools;

pub(crate) type Failure = Box<dyn Error>;

/// Takes a piece of an answer.
pub(crate) type Hear<'a> = &'a mut dyn FnMut(Delta) -> Result<(), Failure>;

/// A model may think for minutes before its first word.
const SILENCE_LIMIT: Duration = Duration::from_secs(600);
/// A longer answer is none.
const ANSWER_LIMIT_BYTES: u64 = 64 * 1024 * 1024;
const ANSWER_TOKENS: u64 = 8192;

pub(crate) enum Model {
    Endpoint {
        view: View,
        /// `127.0.0.1:8080`
        address: String,
        path: String,
        key: String,
        name: String,
    },
    /// `[{"think": "…", "text": "…", "calls": [{"name": "…", "input": {…}}]}, …]`, from the beginning again after the last.
    Script(Vec<Value>),
}

/// An answer, gathered for the next request of the same turn.
#[derive(Default)]
pub(crate) struct Answer {
    pub(crate) parts: Vec<Part>,
    pub(crate) model: Option<String>,
    /// The last part goes on.
    open: bool,
}

impl Answer {
    pub(crate) fn add(&mut self, delta: &Delta) {
        let is_open = std::mem::replace(&mut self.open, matches!(delta, Delta::Text(_) | Delta::Reasoning(_)));
        match (delta, self.parts.last_mut().filter(|_| is_open)) {
            (Delta::Text(more), Some(Part::Text(part))) => part.text.push_str(more),
            (Delta::Reasoning(more), Some(Part::Reasoning(part))) => part.text.push_str(more),
            (Delta::Text(text), _) => self.parts.push(Part::text(text)),
            (Delta::Reasoning(text), _) => self.parts.push(Part::reasoning(text)),
            (Delta::End(about), Some(Part::Reasoning(ReasoningPart { provider_metadata, .. }))) => {
                provider_metadata.clone_from(about);
            }
            (Delta::Part(part), _) => self.parts.push(part.clone()),
            (Delta::Model(model), _) => self.model = Some(model.clone()),
            (Delta::End(_) | Delta::About(_), _) => {}
        }
    }
}

impl Model {
    pub(crate) fn endpoint(view: View, url: &str, key: String, name: String) -> Result<Model, Failure> {
        let rest = url.strip_prefix("http://").ok_or_else(|| {
            format!("{url}: only http:// is spoken here; for https start a proxy on this machine and name that")
        })?;
        let (host, base) = rest.split_once('/').unwrap_or((rest, ""));
        let address = if host.contains(':') { host.to_owned() } else { format!("{host}:80") };
        let verb = if view == View::Anthropic { "v1/messages" } else { "chat/completions" };
        let path = format!("/{}/{verb}", base.trim_end_matches('/')).replace("//", "/");
        Ok(Model::Endpoint { view, address, path, key, name })
    }

    /// Whose words it wants to hear.
    pub(crate) fn view(&self) -> View {
        if let Model::Endpoint { view, .. } = self { *view } else { View::OpenAi }
    }

    /// Asks for the next answer.
    pub(crate) fn answer(&self, messages: &[Value], hear: Hear<'_>) -> Result<Usage, Failure> {
        let Model::Endpoint { view, address, path, key, name } = self else { return self.play(messages, hear) };
        let tools = tools::known().map(|(name, description, parameters)| match view {
            View::Anthropic => json!({"name": name, "description": description, "input_schema": parameters}),
            _ => json!({"type": "function",
                        "function": {"name": name, "description": description, "parameters": parameters}}),
        });
        let mut body = json!({"model": name, "stream": true, "tools": tools, "messages": messages});
        let authority = if *view == View::Anthropic {
            body["max_tokens"] = ANSWER_TOKENS.into();
            format!("x-api-key: {key}\r\nanthropic-version: 2023-06-01")
        } else {
            body["stream_options"] = json!({"include_usage": true});
            format!("authorization: Bearer {key}")
        };
        let lines = post(address, path, &authority, &body.to_string())?.lines();
        let mut stream = Stream::default();
        for line in lines {
            let line = line?;
            let Some(event) = line.strip_prefix("data:").map(str::trim) else { continue };
            if event == "[DONE]" {
                break;
            }
            let event: Value = serde_json::from_str(event)?;
            if let Some(error) = event.get("error").filter(|error| !error.is_null()) {
                return Err(error["message"].as_str().unwrap_or("the endpoint failed").into());
            }
            if *view == View::Anthropic { stream.anthropic(&event, hear)? } else { stream.openai(&event, hear)? }
        }
        if stream.is_whole { Ok(stream.usage) } else { Err("the endpoint broke off its answer".into()) }
    }

    fn play(&self, messages: &[Value], hear: Hear<'_>) -> Result<Usage, Failure> {
        let Model::Script(turns) = self else { return Ok(Usage::default()) };
        let answered = messages.iter().filter(|message| message["role"] == "assistant").count();
        let turn = turns.get(answered % turns.len().max(1)).ok_or("the script is empty")?;
        hear(Delta::Model("script".to_owned()))?;
        let words = |key: &str| turn[key].as_str().unwrap_or_default().split_inclusive(' ').map(str::to_owned);
        words("think").try_for_each(|word| hear(Delta::Reasoning(word)))?;
        words("text").try_for_each(|word| hear(Delta::Text(word)))?;
        for call in turn["calls"].as_array().into_iter().flatten() {
            let name = call["name"].as_str().unwrap_or_default().to_owned();
            hear(Called { id: String::new(), name, input: call["input"].to_string() }.into_delta())?;
        }
        Ok(Usage { input: Some(messages.len() as u64), output: Some(1), ..Usage::default() })
    }
}

/// What was heard of an answer and is not whole yet.
#[derive(Default)]
struct Stream {
    /// By their numbers in the answer.
    calls: BTreeMap<u64, Called>,
    signature: String,
    usage: Usage,
    is_named: bool,
    is_whole: bool,
}

#[derive(Default)]
struct Called {
    id: String,
    name: String,
    input: String,
}

impl Called {
    fn into_delta(self) -> Delta {
        static MADE_UP: AtomicU64 = AtomicU64::new(0);
        let made_up = || format!("call-{}-{}", std::process::id(), MADE_UP.fetch_add(1, Ordering::Relaxed));
        let id = if self.id.is_empty() { made_up() } else { self.id };
        let input = if self.input.is_empty() { "{}" } else { &self.input };
        let input = serde_json::from_str(input).unwrap_or_else(|_| Value::from(input));
        Delta::Part(ToolPart::dynamic(self.name, id, ToolState::called(input)).into())
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

impl Stream {
    fn anthropic(&mut self, event: &Value, hear: Hear<'_>) -> Result<(), Failure> {
        let (delta, number) = (&event["delta"], event["index"].as_u64().unwrap_or_default());
        match event["type"].as_str().unwrap_or_default() {
            "message_start" => {
                let used = &event["message"]["usage"];
                self.usage.input = used["input_tokens"].as_u64();
                self.usage.cache_read = used["cache_read_input_tokens"].as_u64();
                self.usage.cache_write = used["cache_creation_input_tokens"].as_u64();
                hear(Delta::Model(text(&event["message"]["model"])))?;
            }
            "content_block_start" if event["content_block"]["type"] == "tool_use" => {
                let block = &event["content_block"];
                let call = Called { id: text(&block["id"]), name: text(&block["name"]), ..Called::default() };
                self.calls.insert(number, call);
            }
            "content_block_delta" => match delta["type"].as_str().unwrap_or_default() {
                "text_delta" => hear(Delta::Text(text(&delta["text"])))?,
                "thinking_delta" => hear(Delta::Reasoning(text(&delta["thinking"])))?,
                "signature_delta" => self.signature.push_str(&text(&delta["signature"])),
                "input_json_delta" => {
                    self.calls.entry(number).or_default().input.push_str(&text(&delta["partial_json"]));
                }
                _ => {}
            },
            "content_block_stop" => match self.calls.remove(&number) {
                Some(call) => hear(call.into_delta())?,
                None if self.signature.is_empty() => hear(Delta::End(None))?,
                None => {
                    let signature = json!({"signature": std::mem::take(&mut self.signature)});
                    hear(Delta::End(Some(Map::from_iter([("anthropic".to_owned(), signature)]))))?;
                }
            },
            "message_delta" => self.usage.output = event["usage"]["output_tokens"].as_u64(),
            "message_stop" => self.is_whole = true,
            _ => {}
        }
        Ok(())
    }

    fn openai(&mut self, event: &Value, hear: Hear<'_>) -> Result<(), Failure> {
        if let Some(model) = event["model"].as_str().filter(|_| !std::mem::replace(&mut self.is_named, true)) {
            hear(Delta::Model(model.to_owned()))?;
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
        said("reasoning_content").map_or(Ok(()), |text| hear(Delta::Reasoning(text)))?;
        said("content").map_or(Ok(()), |text| hear(Delta::Text(text)))?;
        for piece in delta["tool_calls"].as_array().into_iter().flatten() {
            let call = self.calls.entry(piece["index"].as_u64().unwrap_or_default()).or_default();
            call.id.push_str(piece["id"].as_str().unwrap_or_default());
            call.name.push_str(piece["function"]["name"].as_str().unwrap_or_default());
            call.input.push_str(piece["function"]["arguments"].as_str().unwrap_or_default());
        }
        if choice["finish_reason"].is_string() {
            self.is_whole = true;
            std::mem::take(&mut self.calls).into_values().try_for_each(|call| hear(call.into_delta()))?;
        }
        Ok(())
    }
}

/// Sends a request; the body of the answer. It asks as of HTTP/1.0, so that the body ends where the connection does.
fn post(address: &str, path: &str, authority: &str, body: &str) -> Result<impl BufRead + use<>, Failure> {
    let mut stream = TcpStream::connect(address).map_err(|error| format!("{address}: {error}"))?;
    stream.set_read_timeout(Some(SILENCE_LIMIT))?;
    let about = format!("content-type: application/json\r\ncontent-length: {}", body.len());
    write!(stream, "POST {path} HTTP/1.0\r\nhost: {address}\r\n{authority}\r\n{about}\r\n\r\n{body}")?;
    let mut answer = BufReader::new(stream.take(ANSWER_LIMIT_BYTES));
    let (mut status, mut header) = (String::new(), String::new());
    answer.read_line(&mut status)?;
    while answer.read_line(&mut header)? > 2 {
        header.clear();
    }
    if status.split(' ').nth(1) == Some("200") {
        return Ok(answer);
    }
    let mut why = String::new();
    answer.read_to_string(&mut why)?;
    Err(format!("{}: {}", status.trim(), why.trim()).into())
}
