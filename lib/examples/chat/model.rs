//! Asks an endpoint with OpenAI's Chat Completions API over plain HTTP, and reads its answer event by event.

use std::io::{BufRead, BufReader};

use scrollback::{Delta, ToolPart, ToolState, Usage};
use serde_json::{Map, Value, json};

use super::{Failure, tools};

/// Asks for the next answer, hands over each piece as it comes, and returns the token counts.
pub(crate) fn answer(messages: &[Value], mut take: impl FnMut(Delta) -> Result<(), Failure>) -> Result<Usage, Failure> {
    let variable = |name| std::env::var(name).unwrap_or_default();
    let base = std::env::var("OPENAI_BASE_URL").map_err(|_| "no model: set OPENAI_BASE_URL to an http:// address")?;
    let tools = tools::ALL.map(|(name, description, keys)| {
        let properties: Map<_, _> = keys.iter().map(|key| (key.to_string(), json!({"type": "string"}))).collect();
        let schema = json!({"type": "object", "properties": properties, "required": keys});
        json!({"type": "function", "function": {"name": name, "description": description, "parameters": schema}})
    });
    let request = ureq::post(format!("{}/chat/completions", base.trim_end_matches('/')));
    let request = request.header("authorization", format!("Bearer {}", variable("OPENAI_API_KEY")));
    let mut response = request.config().http_status_as_error(false).build().send_json(json!({
        "model": variable("MODEL"), "messages": messages, "tools": tools,
        "stream": true, "stream_options": {"include_usage": true},
    }))?;
    if response.status() != 200 {
        return Err(format!("{}: {}", response.status(), response.body_mut().read_to_string()?).into());
    }
    let mut stream = Stream::default();
    for line in BufReader::new(response.into_body().into_reader()).lines() {
        stream.read(&line?)?.into_iter().try_for_each(&mut take)?;
    }
    stream.end()
}

/// What a streamed answer leaves open between its events.
#[derive(Default)]
pub(crate) struct Stream {
    /// Index, id, name and arguments of each call.
    calls: Vec<(Option<u64>, String, String, String)>,
    usage: Usage,
    has_model: bool,
    is_complete: bool,
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
        let (choice, delta) = (&event["choices"][0], &event["choices"][0]["delta"]);
        let model = event["model"].as_str().filter(|_| !std::mem::replace(&mut self.has_model, true));
        let mut pieces = Vec::from_iter(model.map(|model| Delta::Model(model.to_owned())));
        let text = |key: &str| delta[key].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        pieces.extend(text("reasoning_content").or_else(|| text("reasoning")).map(Delta::Reasoning));
        pieces.extend(text("content").map(Delta::Text));
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            self.call(call);
        }
        if choice["finish_reason"].is_string() {
            pieces.extend(self.calls.drain(..).map(|(_, id, name, arguments)| {
                let arguments = if arguments.is_empty() { "{}".to_owned() } else { arguments };
                let input = scrollback::model::json::parse(&arguments).unwrap_or_else(|_| Value::from(arguments));
                Delta::Part(ToolPart::dynamic(name, id, ToolState::called(input)).into())
            }));
            self.is_complete = true;
        }
        let (used, number) = (&event["usage"], |value: &Value| value.as_u64());
        if let Some(sent) = number(&used["prompt_tokens"]) {
            // Cached tokens are counted among the prompt's.
            self.usage.cache_read = number(&used["prompt_tokens_details"]["cached_tokens"]);
            self.usage.input = Some(sent.saturating_sub(self.usage.cache_read.unwrap_or_default()));
            self.usage.output = number(&used["completion_tokens"]);
            self.usage.reasoning = number(&used["completion_tokens_details"]["reasoning_tokens"]);
        }
        Ok(pieces)
    }

    /// The token counts of a complete answer.
    pub(crate) fn end(self) -> Result<Usage, Failure> {
        if self.is_complete { Ok(self.usage) } else { Err("the endpoint broke off its answer".into()) }
    }

    /// Adds to a tool call. Not every endpoint counts its calls right: another id is another call.
    fn call(&mut self, piece: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (index, id, function) = (piece["index"].as_u64(), text(&piece["id"]), &piece["function"]);
        let arguments = text(&function["arguments"]);
        let mut known = self.calls.iter_mut().rev();
        match known.find(|call| (index.is_none() || call.0 == index) && (id.is_empty() || call.1 == id)) {
            Some(call) => call.3.push_str(&arguments),
            None => self.calls.push((index, id, text(&function["name"]), arguments)),
        }
    }
}
