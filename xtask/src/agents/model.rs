//! A scripted model on the loopback: it greets whoever asks, over the three APIs that the agents use, and logs what they send.
//! Over Anthropic's API it also calls tools, if a prompt lists the calls.
//!
//! Only what the agents need of HTTP: one request for each connection, bodies with a length or in chunks.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// What the model answers to every prompt.
const GREETING: &str = "Good day. The tide is coming in.";
/// To a prompt with these words it answers the first half at once, and the second after a pause.
pub(super) const SLOWLY: &str = "Answer slowly, please";
/// A prompt that starts with this word goes on with a list of calls as JSON. The model makes one in each answer, then greets.
pub(super) const CALLS: &str = "CALLS ";
pub(super) const PAUSE: Duration = Duration::from_secs(20);
/// What it answers to a request without tools: agents ask for titles and the like.
const ASIDE: &str = r#"{"title": "Tides", "summary": "Tides", "next_speaker": "user", "reasoning": "none"}"#;
/// What a request counts: Qwen Code only compacts if a summary is much shorter than what it replaces.
const INPUT_TOKENS: u64 = 10_000;
/// A request is a whole session, with pictures.
const BODY_LIMIT_BYTES: usize = 64 * 1024 * 1024;

/// Starts the model in a thread, and returns its address.
pub(super) fn start(log: &Path) -> io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = format!("http://{}", listener.local_addr()?);
    let log = Arc::new(Mutex::new(OpenOptions::new().create(true).append(true).open(log)?));
    thread::spawn(move || {
        for (number, stream) in listener.incoming().filter_map(Result::ok).enumerate() {
            let log = Arc::clone(&log);
            thread::spawn(move || {
                // An agent that hangs up early is not a failure.
                serve(stream, number, &log).unwrap_or_default();
            });
        }
    });
    Ok(address)
}

fn serve(stream: TcpStream, number: usize, log: &Mutex<File>) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let Some(request) = Request::read(&mut reader)? else { return Ok(()) };
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let path = request.path.split('?').next().unwrap_or_default();
    let api = match path.rsplit('/').next().unwrap_or_default() {
        _ if request.method != "POST" => "",
        "messages" => "anthropic",
        "responses" => "responses",
        "completions" => "chat",
        _ => "",
    };
    let line = json!({"method": request.method, "path": request.path, "api": api, "body": body});
    if let Ok(mut log) = log.lock() {
        log.write_all(format!("{line}\n").as_bytes())?;
    }
    let has_tools = body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    let call = if has_tools { next_call(&body) } else { None };
    let answer = Answer { number, model: body["model"].clone(), text: if has_tools { GREETING } else { ASIDE }, call };
    let (kind, text) = match (api, body["stream"] == true) {
        ("anthropic", true) => ("text/event-stream", answer.anthropic_stream()),
        ("anthropic", false) => ("application/json", answer.anthropic(true).to_string()),
        ("responses", true) => ("text/event-stream", answer.responses_stream()),
        ("responses", false) => ("application/json", answer.responses("completed").to_string()),
        ("chat", true) => ("text/event-stream", answer.chat_stream()),
        ("chat", false) => ("application/json", answer.chat().to_string()),
        _ if path.ends_with("/count_tokens") => ("application/json", json!({"input_tokens": 100}).to_string()),
        _ if path.ends_with("/models") => {
            ("application/json", json!({"object": "list", "data": [], "models": []}).to_string())
        }
        _ if request.method == "HEAD" => ("application/json", String::new()),
        _ => {
            return respond(
                stream,
                "404 Not Found",
                "application/json",
                r#"{"error": {"message": "not scripted"}}"#,
                Duration::ZERO,
            );
        }
    };
    let is_slow = has_tools && last_prompt(&body).contains(SLOWLY);
    respond(stream, "200 OK", kind, &text, if is_slow { PAUSE } else { Duration::ZERO })
}

/// The last message of a request, as JSON.
fn last_prompt(body: &Value) -> String {
    let messages = body["messages"].as_array().or(body["input"].as_array());
    messages.and_then(|messages| messages.last()).map(Value::to_string).unwrap_or_default()
}

/// The call that is next, if the last prompt that lists calls has one left: each result since then is one that was made.
fn next_call(body: &Value) -> Option<Value> {
    let mut made = 0;
    for message in body["messages"].as_array()?.iter().rev() {
        let blocks = message["content"].as_array().map_or(&[][..], Vec::as_slice);
        let mut texts = message["content"]
            .as_str()
            .into_iter()
            .chain(blocks.iter().filter_map(|block| block["text"].as_str()));
        if let Some(calls) = texts.find_map(|text| text.strip_prefix(CALLS)) {
            return serde_json::from_str::<Vec<Value>>(calls).ok()?.get(made).cloned();
        }
        made += blocks.iter().filter(|block| block["type"] == "tool_result").count();
    }
    None
}

/// Sends the events of the first half of an answer, then the rest after a pause.
fn respond(mut stream: TcpStream, status: &str, kind: &str, body: &str, pause: Duration) -> io::Result<()> {
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    let half = if pause.is_zero() { 0 } else { end_of_first_text(body) };
    stream.write_all(&body.as_bytes()[..half])?;
    stream.flush()?;
    thread::sleep(pause);
    stream.write_all(&body.as_bytes()[half..])?;
    stream.flush()
}

/// The end of the event with the first text of an answer.
fn end_of_first_text(events: &str) -> usize {
    let text = events.find(GREETING).unwrap_or_default();
    events[text..].find("\n\n").map_or(0, |end| text + end + 2)
}

/// One HTTP request.
struct Request {
    method: String,
    path: String,
    body: Vec<u8>,
}

impl Request {
    /// None if the other side closed the connection.
    fn read(reader: &mut impl BufRead) -> io::Result<Option<Request>> {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let mut words = line.split_whitespace();
        let (Some(method), Some(path)) = (words.next(), words.next()) else { return Ok(None) };
        let (mut length, mut is_chunked) = (0, false);
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse().unwrap_or(0),
                "transfer-encoding" => is_chunked = value.to_ascii_lowercase().contains("chunked"),
                _ => {}
            }
        }
        let body = if is_chunked { chunks(reader)? } else { exactly(reader, length)? };
        Ok(Some(Request { method: method.to_owned(), path: path.to_owned(), body }))
    }
}

fn exactly(reader: &mut impl BufRead, length: usize) -> io::Result<Vec<u8>> {
    if length > BODY_LIMIT_BYTES {
        return Err(io::Error::other("the request is too large"));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(body)
}

/// A body that comes in chunks, each after its length.
fn chunks(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let digits = line.trim().split(';').next().unwrap_or_default();
        let length = usize::from_str_radix(digits, 16).map_err(io::Error::other)?;
        body.extend(exactly(reader, length)?);
        reader.read_line(&mut String::new())?;
        if length == 0 {
            return Ok(body);
        }
        if body.len() > BODY_LIMIT_BYTES {
            return Err(io::Error::other("the request is too large"));
        }
    }
}

/// An answer, in the words of each API.
struct Answer<'a> {
    number: usize,
    model: Value,
    text: &'a str,
    /// `{"name": "…", "input": {…}}`, in the place of the text.
    call: Option<Value>,
}

impl Answer<'_> {
    fn anthropic(&self, is_whole: bool) -> Value {
        let content = if is_whole { json!([self.block(true)]) } else { json!([]) };
        json!({
            "id": format!("msg_scripted{:04}", self.number), "type": "message", "role": "assistant", "model": self.model,
            "content": content, "stop_reason": is_whole.then_some(self.reason()), "stop_sequence": null,
            "usage": {"input_tokens": INPUT_TOKENS, "output_tokens": 12, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0},
        })
    }

    /// The text or the call; one that has only begun is empty.
    fn block(&self, is_whole: bool) -> Value {
        match &self.call {
            Some(call) => json!({
                "type": "tool_use", "id": format!("toolu_scripted{}x{:04}", std::process::id(), self.number), "name": call["name"],
                "input": if is_whole { call["input"].clone() } else { json!({}) },
            }),
            None => json!({"type": "text", "text": if is_whole { self.text } else { "" }}),
        }
    }

    fn reason(&self) -> &'static str {
        if self.call.is_some() { "tool_use" } else { "end_turn" }
    }

    fn anthropic_stream(&self) -> String {
        let delta = match &self.call {
            Some(call) => json!({"type": "input_json_delta", "partial_json": call["input"].to_string()}),
            None => json!({"type": "text_delta", "text": self.text}),
        };
        events(&[
            json!({"type": "message_start", "message": self.anthropic(false)}),
            json!({"type": "content_block_start", "index": 0, "content_block": self.block(false)}),
            json!({"type": "content_block_delta", "index": 0, "delta": delta}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": self.reason(), "stop_sequence": null}, "usage": {"output_tokens": 12}}),
            json!({"type": "message_stop"}),
        ])
    }

    fn item(&self, status: &str) -> Value {
        let content = json!([{"type": "output_text", "text": self.text, "annotations": []}]);
        json!({
            "type": "message", "id": format!("msg_scripted{:04}", self.number), "role": "assistant", "status": status,
            "content": if status == "completed" { content } else { json!([]) },
        })
    }

    fn responses(&self, status: &str) -> Value {
        let is_whole = status == "completed";
        let usage = json!({
            "input_tokens": INPUT_TOKENS, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 12,
            "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": INPUT_TOKENS + 12,
        });
        json!({
            "id": format!("resp_scripted{:04}", self.number), "object": "response", "created_at": 1_790_000_000, "model": self.model,
            "status": status, "output": if is_whole { json!([self.item(status)]) } else { json!([]) },
            "usage": if is_whole { usage } else { Value::Null },
        })
    }

    fn responses_stream(&self) -> String {
        let item = self.item("completed");
        let (begun, id) = (self.item("in_progress"), item["id"].clone());
        events(&[
            json!({"type": "response.created", "response": self.responses("in_progress")}),
            json!({"type": "response.output_item.added", "output_index": 0, "item": begun}),
            json!({"type": "response.output_text.delta", "item_id": id, "output_index": 0, "content_index": 0, "delta": self.text}),
            json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
            json!({"type": "response.completed", "response": self.responses("completed")}),
        ])
    }

    fn chat_part(&self, object: &str, name: &str, choice: Value, finish: Option<&str>) -> Value {
        json!({
            "id": format!("chat_scripted{:04}", self.number), "object": object, "created": 1_790_000_000, "model": self.model,
            "choices": [{"index": 0, name: choice, "finish_reason": finish}],
            "usage": finish.map(|_| json!({"prompt_tokens": INPUT_TOKENS, "completion_tokens": 12, "total_tokens": INPUT_TOKENS + 12})),
        })
    }

    fn chat(&self) -> Value {
        self.chat_part("chat.completion", "message", json!({"role": "assistant", "content": self.text}), Some("stop"))
    }

    fn chat_stream(&self) -> String {
        let part = |delta, finish| self.chat_part("chat.completion.chunk", "delta", delta, finish);
        let parts = [part(json!({"role": "assistant", "content": self.text}), None), part(json!({}), Some("stop"))];
        parts.iter().map(|part| format!("data: {part}\n\n")).collect::<String>() + "data: [DONE]\n\n"
    }
}

/// Server-sent events, named after the type of their data.
fn events(data: &[Value]) -> String {
    let event = |data: &Value| format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or_default());
    data.iter().map(event).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn ask(address: &str, request: &str) -> String {
        let mut stream = TcpStream::connect(address.trim_start_matches("http://")).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn every_api_is_answered_and_logged() {
        let log = std::env::temp_dir().join(format!("scrollback-model-{}.jsonl", std::process::id()));
        let address = start(&log).unwrap();
        let post = |path: &str, body: &str| {
            ask(&address, &format!("POST {path} HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}", body.len()))
        };
        let body = r#"{"model": "m", "stream": true, "tools": [{}], "messages": ["☂"]}"#;
        for (path, last) in [
            ("/v1/messages?beta=true", "message_stop"),
            ("/v1/responses", "response.completed"),
            ("/v1/chat/completions", "[DONE]"),
        ] {
            let answer = post(path, body);
            assert!(
                answer.starts_with("HTTP/1.1 200 OK") && answer.contains(GREETING) && answer.contains(last),
                "{answer}"
            );
        }
        let calls = r#"CALLS [{"name": "Read", "input": {"file_path": "a"}}]"#;
        let ask_with = |rest: &[Value]| {
            let messages = [&[json!({"role": "user", "content": calls})], rest].concat();
            post("/v1/messages", &json!({"stream": true, "tools": [{}], "messages": messages}).to_string())
        };
        assert!(ask_with(&[]).contains(r#""name":"Read""#));
        let result = json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": ""}]});
        assert!(ask_with(&[result]).contains(GREETING), "every call is made once");
        let chunked = "POST /v1/messages HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n{\"tools\"\r\n5;x=y\r\n: [] }\r\n0\r\n\r\n";
        assert!(ask(&address, chunked).contains(r#"\"title\""#));
        assert!(post("/v1/embeddings", "{}").starts_with("HTTP/1.1 404"));
        let logged = std::fs::read_to_string(&log).unwrap();
        let logged: Vec<Value> = logged.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let apis: Vec<&str> = logged.iter().map(|line| line["api"].as_str().unwrap()).collect();
        assert_eq!(apis, ["anthropic", "responses", "chat", "anthropic", "anthropic", "anthropic", ""]);
        assert_eq!(logged[0]["body"]["messages"][0], "☂");
        std::fs::remove_file(log).unwrap();
    }
}
