//! The HTTP API: which question an address asks, and who answers it. One file for each question.
//!
//! Answers are the structs that the command line prints with `--json`; an error has one shape (`problem.rs`). docs/api.md says all of it,
//! and `openapi.rs` says it to programs.

mod blobs;
mod chat;
mod files;
mod messages;
mod openapi;
mod problem;
mod search;
mod sessions;
mod stats;
mod tools;
mod tree;
pub(crate) mod twins;

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use percent_encoding::percent_decode_str;
use scrollback::model::{Sdk, json};
use scrollback::session::Source;
use scrollback::view::find::parse_time;
use serde::Serialize;
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;

use crate::catalogue::{Entry, Found};
use crate::live::{self, Live};
use crate::pages::Params;
use crate::site::Site;
pub(crate) use chat::refusal;
pub(crate) use messages::FileAddresses;
pub(crate) use problem::{Problem, RETRY_AFTER_SECONDS};

/// One question.
pub(crate) struct Route {
    pub(crate) method: Method,
    /// Its address; what is in braces can be anything.
    pub(crate) path: &'static str,
    /// What it answers, in a sentence.
    pub(crate) about: &'static str,
    /// What can be asked behind a question mark, each with what it means.
    pub(crate) params: &'static [(&'static str, &'static str)],
    pub(crate) answer: Answerer,
}

impl Route {
    /// Refuses what it does not know: a filter with a wrong name would find everything. A chat's own program may add what it likes.
    pub(crate) fn check(&self, params: &Params) -> Result<(), Problem> {
        let is_known = |name: &str| self.params.iter().any(|(known, _)| *known == name);
        let mut unknown = params.names().filter(|name| !is_known(name));
        match unknown.next().filter(|_| self.path.starts_with("/api/v1/")) {
            None => Ok(()),
            Some(name) => {
                let known = self.params.iter().map(|(known, _)| *known).collect::<Vec<_>>().join(", ");
                let hint = if known.is_empty() { "it takes none".to_owned() } else { format!("known: {known}") };
                Err(Problem::usage(format!("{} has no parameter {name:?}", self.path)).hint(hint))
            }
        }
    }
}

/// Who answers.
pub(crate) enum Answerer {
    /// A function that may read files.
    Reading(fn(&Ask) -> Result<Response, Problem>),
    /// The same for a search, which may read every session.
    Searching(fn(&Ask) -> Result<Response, Problem>),
    /// What a session is from now on, as events.
    SessionEvents,
    /// What all sessions are from now on, as events.
    HomeEvents,
    /// The running answer of a session, as a stream of the AI SDK.
    ChatStream,
    /// Another router (`records/`), where the server has it.
    Records,
}

const LIMIT: (&str, &str) = ("limit", "how many at most");
const CURSOR: (&str, &str) = ("cursor", "`next` of the answer before");
const HEAD: (&str, &str) = ("head", "the branch that ends in this record");
const SDK: (&str, &str) = ("sdk", "the major version of the AI SDK: 5, 6 or 7");
const DIALECT: (&str, &str) = ("dialect", "only sessions of this agent");
const PROJECT: (&str, &str) = ("project", "only sessions of this project: its path or its name");
const SINCE: (&str, &str) = ("since", "a date, an instant, or an age such as 7d");
const UNTIL: (&str, &str) = ("until", "a date, an instant, or an age such as 7d");
const AFTER: (&str, &str) = ("after", "the id of the last event that was seen, as in the header Last-Event-ID");

/// Every question.
pub(crate) static ROUTES: &[Route] = &[
    Route {
        method: Method::GET,
        path: "/api/v1/sessions",
        about: "Sessions, the newest first",
        params: &[
            LIMIT,
            CURSOR,
            DIALECT,
            PROJECT,
            SINCE,
            UNTIL,
            ("state", "clean, interrupted-prompt, interrupted-turn, degraded or running"),
            ("q", "only sessions whose title, project or first prompt matches"),
            ("sidechains", "1: sessions of sub-agents too"),
        ],
        answer: Answerer::Reading(sessions::list),
    },
    Route {
        method: Method::GET,
        path: "/api/v1/sessions/{id}",
        about: "One session",
        params: &[],
        answer: Answerer::Reading(sessions::one),
    },
    Route {
        method: Method::GET,
        path: "/api/v1/sessions/{id}/messages",
        about: "Its messages, as UIMessages of the AI SDK",
        params: &[HEAD, SDK, ("from", "the first message: a record of it, or its number from 0"), LIMIT, CURSOR],
        answer: Answerer::Reading(messages::list),
    },
    Route {
        method: Method::GET,
        path: "/api/v1/sessions/{id}/tree",
        about: "Every record of it",
        params: &[],
        answer: Answerer::Reading(tree::tree),
    },
    Route {
        method: Method::GET,
        path: "/api/v1/sessions/{id}/files",
        about: "The files that it changed",
        params: &[LIMIT, CURSOR],
        answer: Answerer::Reading(files::list),
    },
    Route {
        method: Method::GET,
        path: "/api/v1/sessions/{id}/tools",
        about: "Its tool calls",
        params: &[HEAD, ("name", "only calls of this tool"), ("failed", "1: only calls that failed"), LIMIT, CURSOR],
        answer: Answerer::Reading(tools::list),
    },
    Route {
        method: Method::GET,
        path: "/api/v1/sessions/{id}/events",
        about: "What changes in it from now on, as server-sent events",
        params: &[AFTER, ("parts", "`html` or `message`: only one of the two")],
        answer: Answerer::SessionEvents,
    },
    Route {
        method: Method::POST,
        path: "/api/v1/sessions/{id}/records",
        about: "Adds records to a native session: only with `serve --allow-record`, and with the token itself",
        params: &[],
        answer: Answerer::Records,
    },
    Route {
        method: Method::GET,
        path: "/api/v1/events",
        about: "What changes in the list of sessions from now on, as server-sent events",
        params: &[AFTER],
        answer: Answerer::HomeEvents,
    },
    Route {
        method: Method::GET,
        path: "/api/v1/search",
        about: "What is found in all sessions",
        params: &[
            ("q", "what to find"),
            ("sort", "newest, oldest or relevance"),
            ("context", "whole lines around each match"),
            ("session", "only in this session"),
            LIMIT,
            CURSOR,
            DIALECT,
            PROJECT,
            SINCE,
            UNTIL,
        ],
        answer: Answerer::Searching(search::search),
    },
    Route {
        method: Method::GET,
        path: "/api/v1/stats",
        about: "Tokens, cost, turns and tool calls",
        params: &[
            ("by", "day, week, month, project, agent, model, tool, session; several with commas"),
            DIALECT,
            PROJECT,
            SINCE,
            UNTIL,
        ],
        answer: Answerer::Reading(stats::stats),
    },
    Route {
        method: Method::GET,
        path: "/api/v1/blobs/{hash}",
        about: "The content of a file that a session kept, by its hash",
        params: &[("session", "only of this session")],
        answer: Answerer::Reading(blobs::blob),
    },
    Route {
        method: Method::GET,
        path: "/api/v1/openapi.json",
        about: "This description",
        params: &[],
        answer: Answerer::Reading(openapi::openapi),
    },
    Route {
        method: Method::GET,
        path: "/api/chat/{id}/messages",
        about: "The messages of a session, as a chat of the AI SDK loads them",
        params: &[SDK, HEAD],
        answer: Answerer::Reading(messages::chat),
    },
    Route {
        method: Method::GET,
        path: "/api/chat/{id}/stream",
        about: "The answer that is being written, as a UI message stream of the AI SDK; 204 if there is none",
        params: &[SDK],
        answer: Answerer::ChatStream,
    },
    Route {
        method: Method::POST,
        path: "/api/chat",
        about: "Always 405: a session is written by its agent",
        params: &[],
        answer: Answerer::Reading(chat::refuse),
    },
];

/// What was asked.
pub(crate) struct Ask {
    pub(crate) site: Arc<Site>,
    pub(crate) live: Arc<Live>,
    pub(crate) params: Params,
    /// What stands in the braces of the address.
    names: Vec<String>,
    /// `http://` and the name of this server that the request used.
    pub(crate) origin: String,
    headers: HeaderMap,
    /// Whether nobody waits for the answer any more.
    pub(crate) given_up: Arc<AtomicBool>,
}

impl Ask {
    pub(crate) fn new(site: Arc<Site>, live: Arc<Live>, params: Params, names: Vec<String>, headers: HeaderMap) -> Ask {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        Ask { origin: format!("http://{host}"), site, live, params, names, headers, given_up: Arc::default() }
    }

    /// What stands in the braces of the address.
    pub(crate) fn name(&self) -> &str {
        self.names.first().map(String::as_str).unwrap_or_default()
    }

    /// A header of the request.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The id of the event that a reader has seen last. One that is no text is unknown, as every other one that we never gave.
    pub(crate) fn last_event_id(&self) -> Option<&str> {
        let sent = self.headers.get("last-event-id").map(|id| id.to_str().unwrap_or("?"));
        sent.filter(|id| !id.is_empty()).or(self.params.get("after"))
    }

    /// The session that the address names.
    pub(crate) fn entry(&self) -> Result<Entry, Problem> {
        entry(&self.site, self.name())
    }

    /// How many are wanted; more than `most` are never given.
    pub(crate) fn limit(&self, usual: usize, most: usize) -> Result<usize, Problem> {
        let Some(typed) = self.params.get("limit") else { return Ok(usual) };
        let is_number = typed.bytes().all(|byte| byte.is_ascii_digit());
        match typed.parse::<usize>() {
            Ok(limit) if limit > 0 => Ok(limit.min(most)),
            Err(_) if is_number => Ok(most),
            Ok(_) | Err(_) => Err(Problem::usage(format!("limit: {typed:?} is not a number of at least 1"))),
        }
    }

    /// A time behind the question mark.
    pub(crate) fn time(&self, name: &str) -> Result<Option<jiff::Timestamp>, Problem> {
        let Some(typed) = self.params.get(name) else { return Ok(None) };
        let time = parse_time(typed, (self.site.now)(), &self.site.zone);
        time.map(Some).ok_or_else(|| {
            Problem::usage(format!("{name}: invalid time {typed:?}"))
                .hint("use a date (2026-11-01), an instant, or an age (30m, 12h, 3d, 2w)")
        })
    }

    /// The version of the AI SDK that is asked for.
    pub(crate) fn sdk(&self) -> Result<Sdk, Problem> {
        let Some(typed) = self.params.get("sdk") else { return Ok(Sdk::V7) };
        typed.parse().map_err(|_| Problem::usage(format!("sdk: {typed:?} is not 5, 6 or 7")))
    }

    /// Whether a parameter says yes.
    pub(crate) fn is_set(&self, name: &str) -> Result<bool, Problem> {
        match self.params.get(name) {
            Some("0" | "false" | "no") => Ok(false),
            Some("" | "1" | "true" | "yes") => Ok(true),
            Some(other) => Err(Problem::usage(format!("{name}: {other:?} is neither true nor false"))),
            None => Ok(self.params.has(name)),
        }
    }

    /// An answer without content, if the reader has this version of it.
    pub(crate) fn unchanged(&self, tag: &str) -> Option<Response> {
        let known = self.header("if-none-match")?;
        let is_same = |one: &str| one == "*" || one.trim_start_matches("W/") == tag;
        known.split(',').map(str::trim).any(is_same).then(|| {
            let mut response = StatusCode::NOT_MODIFIED.into_response();
            describe(&mut response, tag);
            response
        })
    }

    /// JSON that is made whole, without secrets; its tag is that of its content.
    pub(crate) fn json(&self, value: &impl Serialize) -> Result<Response, Problem> {
        let mut text = Vec::new();
        json::write(&mut text, value).map_err(|_| Problem::internal())?;
        // What sessions have is read masked; this is the net below, as on the command line.
        if let Some(mask) = &self.site.places.mask {
            text = mask.line(&text).bytes.into_owned();
        }
        Ok(self.tagged(text))
    }

    /// JSON that is made whole and has no secrets; its tag is that of its content.
    pub(crate) fn tagged(&self, text: Vec<u8>) -> Response {
        let hash = Sha256::digest(&text);
        let hash: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let tag = format!("\"{hash}-{}\"", text.len());
        self.unchanged(&tag).unwrap_or_else(|| json_response(Body::from(text), Some(&tag)))
    }
}

/// The session that a name means.
pub(crate) fn entry(site: &Site, name: &str) -> Result<Entry, Problem> {
    let shelf = site.catalogue.shelf();
    match shelf.find(name) {
        Found::One(entry) => Ok(entry.clone()),
        Found::Several(entries) => Err(Problem::ambiguous_session(name, &entries)),
        Found::None => {
            Err(Problem::not_found(format!("no session matches {name:?}")).hint("GET /api/v1/sessions lists them"))
        }
    }
}

/// The tag of what is read of a session: it changes whenever a file of it grows, shrinks or is another one.
pub(crate) fn tag_of(source: &Source) -> Option<String> {
    let length = std::fs::metadata(&source.path).ok()?.len();
    Some(format!("\"{:016x}-{length}\"", source.stamp()?))
}

/// A list, or a page of it.
#[derive(Serialize)]
pub(crate) struct List<Item> {
    pub(crate) items: Vec<Item>,
    /// Asks for the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

impl<Item> List<Item> {
    /// A page of a list that is made whole: its cursor is a number.
    pub(crate) fn page(mut items: Vec<Item>, ask: &Ask, most: usize) -> Result<List<Item>, Problem> {
        let from = number_cursor(ask)?;
        let limit = ask.limit(most, most)?;
        let all = items.len();
        items.drain(..from.min(all));
        items.truncate(limit);
        let next = (from + limit < all).then(|| (from + limit).to_string());
        Ok(List { items, next })
    }
}

/// A cursor that is a number.
pub(crate) fn number_cursor(ask: &Ask) -> Result<usize, Problem> {
    let Some(typed) = ask.params.get("cursor") else { return Ok(0) };
    typed.parse().map_err(|_| invalid_cursor(typed))
}

pub(crate) fn invalid_cursor(typed: &str) -> Problem {
    Problem::usage(format!("cursor: {typed:?} is not `next` of an answer"))
}

/// JSON that goes to the reader.
pub(crate) fn json_response(body: Body, tag: Option<&str>) -> Response {
    let mut response = body.into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(tag) = tag {
        describe(&mut response, tag);
    }
    response
}

fn describe(response: &mut Response, tag: &str) {
    if let Ok(tag) = HeaderValue::from_str(tag) {
        response.headers_mut().insert(header::ETAG, tag);
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    }
}

/// A body that is made piece by piece, each when the reader has taken those before: a slow reader costs no memory and no thread.
pub(crate) fn streamed(next: impl FnMut() -> Option<io::Result<Bytes>> + Send + 'static) -> Body {
    let (sender, receiver) = mpsc::channel::<io::Result<Bytes>>(1);
    tokio::spawn(async move {
        let mut next = next;
        loop {
            let made = tokio::task::spawn_blocking(move || {
                let piece = next();
                (next, piece)
            });
            let piece = match made.await {
                Ok((back, Some(piece))) => {
                    next = back;
                    piece
                }
                Ok((_, None)) => return,
                Err(_) => {
                    // The reader sees that it is not whole.
                    drop(sender.send(Err(io::Error::other("the answer could not be made"))).await);
                    return;
                }
            };
            let is_last = piece.is_err();
            if sender.send(piece).await.is_err() || is_last {
                return;
            }
        }
    });
    Body::from_stream(live::Received(receiver))
}

/// Whether errors at this address are told to programs.
pub(crate) fn is_for_programs(path: &str) -> bool {
    is_api(path) || path.ends_with(".json")
}

/// Whether an address belongs to the API.
pub(crate) fn is_api(path: &str) -> bool {
    path == "/api" || path.starts_with("/api/")
}

/// Finds who answers, and what stands in the braces of the address.
pub(crate) fn find(method: &Method, path: &str) -> Result<(&'static Route, Vec<String>), Problem> {
    let asked: Vec<&str> = path.split('/').skip(1).collect();
    let method = if method == Method::HEAD { &Method::GET } else { method };
    let mut is_known = false;
    for route in ROUTES {
        let Some(names) = matched(route.path, &asked) else { continue };
        is_known = true;
        if route.method == *method {
            let names: Option<Vec<String>> = names
                .into_iter()
                .map(|name| percent_decode_str(name).decode_utf8().ok().map(|name| name.into_owned()))
                .collect();
            return names.map(|names| (route, names)).ok_or_else(|| Problem::usage("the address is not UTF-8"));
        }
    }
    match is_known {
        // The one address that is only there to say no.
        true if path == "/api/chat" => Err(refusal()),
        true => Err(Problem::method(format!("{path} cannot be asked with {method}"))),
        false => Err(Problem::nothing_at(path)),
    }
}

/// What stands in the braces of a pattern.
fn matched<'a>(pattern: &str, asked: &[&'a str]) -> Option<Vec<&'a str>> {
    let mut names = Vec::new();
    let mut pattern = pattern.split('/').skip(1);
    let mut asked = asked.iter();
    loop {
        match (pattern.next(), asked.next()) {
            (None, None) => return Some(names),
            (Some(wanted), Some(given)) if wanted.starts_with('{') && !given.is_empty() => names.push(*given),
            (Some(wanted), Some(given)) if wanted == *given => {}
            _ => return None,
        }
    }
}

/// The parameters of an address.
pub(crate) fn params(uri: &Uri) -> Params {
    let pairs = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(uri);
    Params::new(pairs.map(|axum::extract::Query(pairs)| pairs).unwrap_or_default())
}
