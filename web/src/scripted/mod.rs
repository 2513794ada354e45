//! A model that says again what a session recorded: an endpoint for agents, over the APIs of Anthropic, OpenAI and Gemini.
//!
//! Which answer a request gets is decided in the library (`view/replay/script.rs`); here are the addresses, what is answered to requests
//! beside the conversation, and the shapes of each API (one file each).

mod anthropic;
mod chat;
mod gemini;
mod responses;
mod side;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use scrollback::model::Usage;
use scrollback::redact::Redactor;
use scrollback::view::history::View;
use scrollback::view::replay::{AnswerId, Comparison, Difference, Outcome, Script};
use serde::Serialize;
use serde_json::{Value, json};

use crate::server::Guard;

/// The largest request: a long conversation with pictures.
const REQUEST_LIMIT_BYTES: usize = 64 * 1024 * 1024;

/// How many requests are remembered for the list; the others are counted.
const REQUESTS_LISTED: usize = 10_000;

/// A text is streamed in pieces of about this length.
const PIECE_BYTES: usize = 48;

/// About how many bytes are a token, where nobody has counted.
const TOKEN_BYTES: usize = 4;

/// The headers, beside `Authorization`, in which clients of models send their key.
const KEY_HEADERS: [&str; 2] = ["x-api-key", "x-goog-api-key"];

/// A model that answers from a script.
pub struct ScriptedModel {
    /// The answers.
    pub script: Script,
    /// How requests are compared with the session.
    pub comparison: Comparison,
    /// What masked the session, to mask requests alike.
    pub mask: Option<Arc<Redactor>>,
    /// The title of the session, for those who ask for one.
    pub title: String,
    /// The models of the session.
    pub models: Vec<String>,
    /// Is told of each request.
    pub tell: Box<dyn Fn(&RequestRow) + Send + Sync>,
    /// What was asked so far.
    pub asked: Mutex<Asked>,
}

/// What was asked of a model.
#[derive(Debug, Default)]
pub struct Asked {
    count: usize,
    played: HashSet<AnswerId>,
    rows: Vec<RequestRow>,
}

/// One request, and what became of it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestRow {
    /// Its number, counted from 1.
    pub request: usize,
    /// Its address.
    pub path: String,
    /// What became of it.
    pub outcome: Became,
    /// The number of the answer that it got.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<usize>,
    /// The last record of that answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<String>,
    /// Why it was refused, or what was answered beside the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Became {
    /// It got a recorded answer.
    Answered,
    /// It is beside the conversation, and got a canned answer.
    Side,
    /// It differs from the session.
    Refused,
    /// It is none that a model answers.
    Unknown,
}

impl ScriptedModel {
    /// What was asked so far: the requests, how many of the answers were given, and of how many.
    pub fn report(&self) -> (Vec<RequestRow>, usize, usize) {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        (asked.rows.clone(), asked.played.len(), self.script.len())
    }

    fn count(&self) -> usize {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.count += 1;
        asked.count
    }

    fn note(&self, row: RequestRow, played: Option<AnswerId>) {
        (self.tell)(&row);
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.played.extend(played);
        if asked.rows.len() < REQUESTS_LISTED {
            asked.rows.push(row);
        }
    }

    fn find(&self, view: View, request: &Value, how: Comparison) -> scrollback::Result<Outcome> {
        let played = self.asked.lock().unwrap_or_else(PoisonError::into_inner).played.clone();
        self.script.answer(view, request, how, self.mask.as_deref(), &played)
    }
}

/// One of the APIs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    Anthropic,
    Chat,
    Responses,
    Gemini,
}

impl Api {
    fn view(self) -> View {
        match self {
            Api::Anthropic => View::Anthropic,
            Api::Chat => View::OpenAi,
            Api::Responses => View::OpenAiResponses,
            Api::Gemini => View::Gemini,
        }
    }

    /// A text as the messages of an answer.
    fn text(self, text: &str) -> Value {
        match self {
            Api::Anthropic => json!({"role": "assistant", "content": [{"type": "text", "text": text}]}),
            Api::Chat => json!({"role": "assistant", "content": text}),
            Api::Responses => {
                json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]})
            }
            Api::Gemini => json!({"role": "model", "parts": [{"text": text}]}),
        }
    }
}

/// How an answer is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Delivery {
    /// As one JSON document.
    Whole,
    /// As server-sent events.
    Events,
    /// As the elements of a JSON array, as Gemini does without `alt=sse`.
    Elements,
}

/// An answer on its way out.
struct Spoken {
    /// Makes its ids its own.
    number: usize,
    model: String,
    /// Messages of the assistant, as a view writes them.
    messages: Vec<Value>,
    usage: Counts,
}

/// Tokens, estimated where nobody counted them.
#[derive(Debug, Clone, Copy)]
struct Counts {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
    reasoning: u64,
}

impl Counts {
    fn new(usage: Option<Usage>, request: usize, answer: usize) -> Counts {
        let usage = usage.unwrap_or_default();
        let about = |bytes: usize| (bytes / TOKEN_BYTES).max(1) as u64;
        Counts {
            input: usage.input.unwrap_or_else(|| about(request)),
            output: usage.output.unwrap_or_else(|| about(answer)),
            cache_read: usage.cache_read.unwrap_or(0),
            cache_write: usage.cache_write.unwrap_or(0),
            reasoning: usage.reasoning.unwrap_or(0),
        }
    }

    /// Everything that was sent.
    fn sent(self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }
}

/// The addresses of the model. Each wants the token, as a bearer or where clients of models send their key.
pub fn router(model: Arc<ScriptedModel>, guard: Arc<Guard>) -> Router {
    Router::new()
        .route("/v1/messages", post(anthropic_messages))
        .route("/v1/messages/count_tokens", post(count_tokens))
        .route("/v1/chat/completions", post(chat_completions))
        .route("/v1/responses", post(openai_responses))
        .route("/v1/responses/input_tokens", post(count_tokens))
        .route("/v1/models", get(list_models))
        .route("/v1beta/models", get(list_models))
        .route("/v1beta/models/{*call}", post(gemini_call).fallback(unknown))
        .route("/v1/replay", get(report))
        .route("/v1/{*rest}", any(unknown))
        .route("/v1beta/{*rest}", any(unknown))
        .method_not_allowed_fallback(unknown)
        .layer(axum::extract::DefaultBodyLimit::max(REQUEST_LIMIT_BYTES))
        .layer(middleware::from_fn_with_state(guard, judge))
        .with_state(model)
}

async fn judge(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    if guard.knows(request.uri(), request.headers(), &KEY_HEADERS) {
        return next.run(request).await;
    }
    let why = "this model needs the token that `scrollback serve` printed, as a bearer or as the key of your client";
    let mut response = error(StatusCode::UNAUTHORIZED, "authentication_error", why);
    response.headers_mut().insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static("Bearer"));
    response
}

type Model = State<Arc<ScriptedModel>>;

async fn anthropic_messages(State(model): Model, uri: Uri, body: Bytes) -> Response {
    respond(model, Api::Anthropic, uri, body, None).await
}

async fn chat_completions(State(model): Model, uri: Uri, body: Bytes) -> Response {
    respond(model, Api::Chat, uri, body, None).await
}

async fn openai_responses(State(model): Model, uri: Uri, body: Bytes) -> Response {
    respond(model, Api::Responses, uri, body, None).await
}

async fn gemini_call(State(model): Model, Path(call): Path<String>, uri: Uri, body: Bytes) -> Response {
    let is_sse = uri.query().is_some_and(|query| query.split('&').any(|pair| pair == "alt=sse"));
    let delivery = match call.rsplit_once(':').map(|(_, method)| method) {
        Some("generateContent") => Delivery::Whole,
        Some("streamGenerateContent") if is_sse => Delivery::Events,
        Some("streamGenerateContent") => Delivery::Elements,
        Some("countTokens") => return count_tokens(State(model), uri, body).await,
        _ => return unknown(State(model), Method::POST, uri).await,
    };
    respond(model, Api::Gemini, uri, body, Some(delivery)).await
}

/// Answers a request to the model itself. `delivery` is known where the address says it.
async fn respond(model: Arc<ScriptedModel>, api: Api, uri: Uri, body: Bytes, delivery: Option<Delivery>) -> Response {
    let Ok(request) = serde_json::from_slice::<Value>(&body) else {
        let why = "the request is not JSON";
        return error(StatusCode::BAD_REQUEST, "invalid_request_error", why);
    };
    let delivery = delivery.unwrap_or(if request["stream"] == true { Delivery::Events } else { Delivery::Whole });
    let answered = tokio::task::spawn_blocking(move || {
        let row = RequestRow {
            request: model.count(),
            path: uri.path().to_owned(),
            outcome: Became::Answered,
            answer: None,
            record: None,
            detail: None,
        };
        answer(&model, api, &request, body.len(), row, delivery)
    });
    answered
        .await
        .unwrap_or_else(|_| error(StatusCode::INTERNAL_SERVER_ERROR, "api_error", "the answer could not be made"))
}

fn answer(
    model: &ScriptedModel,
    api: Api,
    request: &Value,
    bytes: usize,
    mut row: RequestRow,
    delivery: Delivery,
) -> Response {
    let is_side = side::is_side(request);
    let mut found = model.find(api.view(), request, Comparison::Strict);
    if !matches!(found, Ok(Outcome::Answer(_))) && is_side {
        let text = side::text(request, &model.title);
        (row.outcome, row.detail) = (Became::Side, Some(text.clone()));
        let messages = vec![api.text(&text)];
        let spoken = Spoken {
            number: row.request,
            model: requested(request, model),
            usage: Counts::new(None, bytes, text.len()),
            messages,
        };
        model.note(row, None);
        return spoken.deliver(api, request, delivery);
    }
    if model.comparison == Comparison::Loose && !matches!(found, Ok(Outcome::Answer(_))) {
        found = model.find(api.view(), request, Comparison::Loose);
    }
    match found {
        Ok(Outcome::Answer(recorded)) => {
            (row.answer, row.record) = (Some(recorded.number), Some(recorded.record.0));
            let size = recorded.messages.iter().map(|message| message.to_string().len()).sum();
            let spoken = Spoken {
                number: row.request,
                model: recorded.model.unwrap_or_else(|| requested(request, model)),
                usage: Counts::new(recorded.usage, bytes, size),
                messages: recorded.messages,
            };
            model.note(row, Some(recorded.id));
            spoken.deliver(api, request, delivery)
        }
        Ok(Outcome::Differs(difference)) => {
            let why = format!("the request differs from the session at {difference}");
            refuse(model, row, why, Some(&difference))
        }
        Ok(Outcome::NoMore) => {
            let count = model.script.len();
            refuse(model, row, format!("the session has no further answer; it has {count}"), None)
        }
        Err(failed) => {
            let why = format!("the session cannot be read: {failed}");
            (row.outcome, row.detail) = (Became::Refused, Some(why.clone()));
            model.note(row, None);
            error(StatusCode::INTERNAL_SERVER_ERROR, "api_error", &why)
        }
    }
}

fn refuse(model: &ScriptedModel, mut row: RequestRow, why: String, difference: Option<&Difference>) -> Response {
    (row.outcome, row.detail) = (Became::Refused, Some(why.clone()));
    let number = row.request;
    model.note(row, None);
    let mut body = error_body("replay_difference", &why);
    body["error"]["request"] = number.into();
    if let Some(difference) = difference {
        body["error"]["difference"] = json!(difference);
    }
    let mut response = json_response(StatusCode::CONFLICT, &body);
    // Clients try a conflict again by themselves; it would stay one.
    response.headers_mut().insert("x-should-retry", header::HeaderValue::from_static("false"));
    response
}

/// The model that a request names.
fn requested(request: &Value, model: &ScriptedModel) -> String {
    let named = request["model"].as_str().map(str::to_owned);
    named.or_else(|| model.models.first().cloned()).unwrap_or_else(|| "replay".to_owned())
}

async fn count_tokens(State(model): Model, uri: Uri, body: Bytes) -> Response {
    let count = (body.len() / TOKEN_BYTES).max(1);
    model.note(side_row(&model, &uri, format!("{count} tokens")), None);
    json_response(StatusCode::OK, &json!({"input_tokens": count, "totalTokens": count}))
}

async fn list_models(State(model): Model, uri: Uri) -> Response {
    let row = |id: &String| {
        json!({
            "id": id, "object": "model", "type": "model", "display_name": id, "created": 0, "created_at": "1970-01-01T00:00:00Z",
            "owned_by": "replay",
        })
    };
    let data: Vec<Value> = model.models.iter().map(row).collect();
    let models: Vec<Value> = match uri.path().starts_with("/v1beta") {
        true => model.models.iter().map(|id| json!({"name": format!("models/{id}"), "displayName": id})).collect(),
        false => Vec::new(),
    };
    model.note(side_row(&model, &uri, format!("{} models", data.len())), None);
    let body = json!({"object": "list", "data": data, "models": models, "has_more": false});
    json_response(StatusCode::OK, &body)
}

/// What was asked so far. This is no request to a model, and it is not listed.
async fn report(State(model): Model) -> Response {
    let (requests, answered, answers) = model.report();
    json_response(StatusCode::OK, &json!({"answers": answers, "answered": answered, "requests": requests}))
}

async fn unknown(State(model): Model, method: Method, uri: Uri) -> Response {
    let row = RequestRow {
        outcome: Became::Unknown,
        ..side_row(&model, &uri, format!("{method} is not answered by a replay"))
    };
    model.note(row, None);
    error(StatusCode::NOT_FOUND, "not_found_error", "a replay does not answer this address")
}

fn side_row(model: &ScriptedModel, uri: &Uri, detail: String) -> RequestRow {
    let (request, path) = (model.count(), uri.path().to_owned());
    RequestRow { request, path, outcome: Became::Side, answer: None, record: None, detail: Some(detail) }
}

impl Spoken {
    fn deliver(&self, api: Api, request: &Value, delivery: Delivery) -> Response {
        let (kind, body) = match (api, delivery) {
            (Api::Anthropic, Delivery::Whole) => (JSON, anthropic::whole(self).to_string()),
            (Api::Anthropic, _) => (EVENTS, named_events(&anthropic::events(self))),
            (Api::Chat, Delivery::Whole) => (JSON, chat::whole(self).to_string()),
            (Api::Chat, _) => (EVENTS, plain_events(&chat::events(self, request)) + "data: [DONE]\n\n"),
            (Api::Responses, Delivery::Whole) => (JSON, responses::whole(self).to_string()),
            (Api::Responses, _) => (EVENTS, named_events(&responses::events(self))),
            (Api::Gemini, Delivery::Whole) => (JSON, gemini::whole(self).to_string()),
            (Api::Gemini, Delivery::Events) => (EVENTS, plain_events(&gemini::events(self))),
            (Api::Gemini, Delivery::Elements) => (JSON, Value::from(gemini::events(self)).to_string()),
        };
        ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "no-store")], body).into_response()
    }

    /// The blocks of all messages, from this field of them.
    fn pieces_of<'a>(&'a self, field: &'a str) -> impl Iterator<Item = &'a Value> {
        self.messages.iter().flat_map(move |message| message[field].as_array().into_iter().flatten())
    }

    fn id(&self, prefix: &str) -> String {
        format!("{prefix}_replay{:06}", self.number)
    }
}

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

/// Server-sent events, each named after the type of its data.
fn named_events(events: &[Value]) -> String {
    let event = |data: &Value| format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or_default());
    events.iter().map(event).collect()
}

/// Server-sent events without names.
fn plain_events(events: &[Value]) -> String {
    events.iter().map(|data| format!("data: {data}\n\n")).collect()
}

/// A text in the pieces that it is streamed in.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (piece, after) = rest.split_at(rest.ceil_char_boundary(PIECE_BYTES));
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

/// An error in the shape that the clients of all APIs understand.
fn error(status: StatusCode, kind: &str, why: &str) -> Response {
    json_response(status, &error_body(kind, why))
}

fn error_body(kind: &str, why: &str) -> Value {
    json!({"type": "error", "error": {"type": kind, "message": why}})
}

fn json_response(status: StatusCode, body: &Value) -> Response {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static(JSON));
    headers.insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-store"));
    (status, headers, body.to_string()).into_response()
}

#[cfg(test)]
mod tests;
