//! Who answers: an endpoint that speaks Anthropic's or OpenAI's API over plain HTTP, or a script.
//!
//! An answer arrives as [`Delta`]s, which the recorder takes as they are.

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use scrollback::model::message::{Part, ToolPart, ToolState};
use scrollback::model::record::Usage;
use scrollback::view::history::View;
use scrollback::write::recorder::{Api, ApiStream, Delta};
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
    /// The address is `127.0.0.1:8080` or the like.
    Endpoint { api: Api, address: String, path: String, key: String, name: String },
    /// `[{"think": "…", "text": "…", "calls": [{"name": "…", "input": {…}}]}, …]`, from the beginning again after the last.
    Script(Vec<Value>),
}

impl Model {
    /// The endpoint that the environment names.
    pub(crate) fn named() -> Result<Model, Failure> {
        let var = |name: &str| std::env::var(name).unwrap_or_default();
        let (api, of, verb) = match var("ANTHROPIC_BASE_URL").as_str() {
            "" => (Api::OpenAi, "OPENAI", "chat/completions"),
            _ => (Api::Anthropic, "ANTHROPIC", "v1/messages"),
        };
        let url = var(&format!("{of}_BASE_URL"));
        let rest = url.strip_prefix("http://").ok_or_else(|| match url.as_str() {
            "" => "no model: ANTHROPIC_BASE_URL or OPENAI_BASE_URL names an endpoint; or say --script FILE".to_owned(),
            url => format!("{url}: only http:// is spoken here; for https start a proxy on this machine and name that"),
        })?;
        let (host, base) = rest.split_once('/').unwrap_or((rest, ""));
        let address = if host.contains(':') { host.to_owned() } else { format!("{host}:80") };
        let path = format!("/{}/{verb}", base.trim_end_matches('/')).replace("//", "/");
        Ok(Model::Endpoint { api, address, path, key: var(&format!("{of}_API_KEY")), name: var("MODEL") })
    }

    /// Whose words it wants to hear.
    pub(crate) fn view(&self) -> View {
        if let Model::Endpoint { api: Api::Anthropic, .. } = self { View::Anthropic } else { View::OpenAi }
    }

    /// Asks for the next answer, and tells what it cost.
    pub(crate) fn answer(&self, messages: &[Value], hear: Hear<'_>) -> Result<Usage, Failure> {
        let (api, address, path, key, name) = match self {
            Model::Endpoint { api, address, path, key, name } => (*api, address, path, key, name),
            Model::Script(turns) => return play(turns, messages, hear),
        };
        let tools = tools::KNOWN.map(|(name, about, keys)| {
            let properties: Map<_, _> = keys.iter().map(|key| (key.to_string(), json!({"type": "string"}))).collect();
            let takes = json!({"type": "object", "properties": properties, "required": keys});
            match api {
                Api::Anthropic => json!({"name": name, "description": about, "input_schema": takes}),
                Api::OpenAi => {
                    json!({"type": "function", "function": {"name": name, "description": about, "parameters": takes}})
                }
            }
        });
        let mut body = json!({"model": name, "stream": true, "tools": tools, "messages": messages});
        let authority = match api {
            Api::Anthropic => {
                body["max_tokens"] = ANSWER_TOKENS.into();
                format!("x-api-key: {key}\r\nanthropic-version: 2023-06-01")
            }
            Api::OpenAi => {
                body["stream_options"] = json!({"include_usage": true});
                format!("authorization: Bearer {key}")
            }
        };
        let mut stream = ApiStream::of(api);
        for line in post(address, path, &authority, &body.to_string())?.lines() {
            stream.hear(&line?)?.into_iter().try_for_each(&mut *hear)?;
        }
        Ok(stream.end()?)
    }
}

/// Plays the next answer of a script, word by word.
fn play(turns: &[Value], messages: &[Value], hear: Hear<'_>) -> Result<Usage, Failure> {
    let answered = messages.iter().filter(|message| message["role"] == "assistant").count();
    let turn = turns.get(answered % turns.len().max(1)).ok_or("the script is empty")?;
    hear(Delta::Model("script".to_owned()))?;
    let words = |key: &str| turn[key].as_str().unwrap_or_default().split_inclusive(' ').map(str::to_owned);
    words("think").try_for_each(|word| hear(Delta::Reasoning(word)))?;
    words("text").try_for_each(|word| hear(Delta::Text(word)))?;
    for call in turn["calls"].as_array().into_iter().flatten() {
        let told = call["name"].as_str().zip(call.get("input"));
        let (name, input) = told.ok_or_else(|| format!("a call in a script has a name and an input: {call}"))?;
        hear(Delta::Part(Part::from(ToolPart::dynamic(name, "", ToolState::called(input.clone())))))?;
    }
    Ok(Usage { input: Some(messages.len() as u64), output: Some(1), ..Usage::default() })
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
