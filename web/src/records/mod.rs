//! Records that programs send: `POST /api/v1/sessions/{id}/records` takes what `record` takes, and answers with its acknowledgements.
//!
//! Only with the token itself, never with the cookie of a browser; only for native sessions, because no other agent expects that its
//! file is written over a network. How lines are recorded is the caller's ([`Record`]); a key makes a request safe to repeat (`keys.rs`).

mod keys;

use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use scrollback::session::Source;

use crate::api::{self, Problem};
use crate::catalogue::{self, Found};
use crate::server::Guard;
use crate::site::Site;
use keys::{Begun, Key, Keys};

/// The largest body: a day of an agent's work.
const BODY_LIMIT_BYTES: usize = 16 * 1024 * 1024;

/// How many lines a body may have: each is answered by a line.
const LINES_LIMIT: usize = 10_000;

const KEY_HEADER: &str = "idempotency-key";

/// The address.
pub(crate) const PATH: &str = "/api/v1/sessions/{id}/records";

/// The only sessions that are recorded to.
const NATIVE: &str = "native";

/// Records lines to a session: returns what `record` prints for them.
pub type Record = dyn Fn(&Source, Vec<u8>) -> Result<Acknowledged, NotRecorded> + Send + Sync;

/// What became of lines.
pub struct Acknowledged {
    /// One line of JSON for each line that is not blank.
    pub lines: Vec<u8>,
    /// How many lines are on disk.
    pub saved: u64,
    /// How many lines were refused.
    pub rejected: u64,
    /// Whether the disk or the system failed.
    pub has_failed: bool,
}

/// Why nothing was recorded.
pub struct NotRecorded {
    /// What failed.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

struct Shared {
    site: Arc<Site>,
    guard: Arc<Guard>,
    record: Option<Box<Record>>,
    /// Held while lines are recorded: two requests at once would continue from the same record, as two branches.
    recording: Mutex<()>,
    keys: Option<Keys>,
}

/// The address. Without `record` it says that the server does not record.
pub fn router(site: Arc<Site>, guard: Arc<Guard>, record: Option<Box<Record>>) -> Router {
    let keys = site.data.as_ref().map(|data| Keys::in_folder(data.join("idempotency"), site.host.clone()));
    let shared = Arc::new(Shared { site, guard, record, recording: Mutex::new(()), keys });
    Router::new()
        .route(PATH, post(records))
        .method_not_allowed_fallback(async || {
            let only = Problem::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "method-not-allowed",
                "records can only be added, with POST",
            );
            let mut response = only.into_response();
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
            response
        })
        .layer(axum::extract::DefaultBodyLimit::max(BODY_LIMIT_BYTES))
        .with_state(shared)
}

async fn records(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    uri: Uri,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    if !shared.guard.knows(&uri, &headers, &[]) {
        return Problem::unauthorized().into_response();
    }
    if shared.record.is_none() {
        return Problem::new(StatusCode::FORBIDDEN, "forbidden", "this server does not record")
            .hint("start it with `scrollback serve --allow-record`")
            .into_response();
    }
    let body = match body {
        Ok(body) => body,
        Err(_) => {
            let message = format!("the body is cut, or larger than {BODY_LIMIT_BYTES} bytes");
            return Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", message)
                .hint("send fewer lines at once")
                .into_response();
        }
    };
    let recorded = tokio::task::spawn_blocking(move || take(&shared, &id, &headers, &body));
    match recorded.await {
        Ok(Ok(response)) => response,
        Ok(Err(refused)) => refused.into_response(),
        Err(_) => Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "the lines could not be recorded")
            .into_response(),
    }
}

/// Records the lines of a request, or answers as before if they are recorded already.
fn take(shared: &Shared, id: &str, headers: &HeaderMap, body: &[u8]) -> Result<Response, Problem> {
    let source = find(&shared.site, id)?;
    let lines = body.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).count();
    if lines == 0 {
        return Err(Problem::new(StatusCode::BAD_REQUEST, "usage", "the body has no lines")
            .hint("send lines of JSON such as {\"user\": \"…\"}; docs/recording.md lists them"));
    }
    if lines > LINES_LIMIT {
        let message = format!("the body has {lines} lines; at most {LINES_LIMIT} are recorded at once");
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", message).hint("send fewer lines at once"));
    }
    let Some(key) = key_of(headers)? else {
        return Ok(shared.recorded(&source, body)?.1);
    };
    let Some(keys) = &shared.keys else {
        let message = "idempotency keys cannot be kept: the data folder is unknown";
        return Err(Problem::new(StatusCode::CONFLICT, "usage", message).hint("set HOME to an absolute path"));
    };
    let key = Key::new(&source, &key, body);
    let begun = keys.begin(&key, &source)?;
    let ticket = match begun {
        Begun::Known(answer) => {
            let mut response = acknowledgements(
                StatusCode::from_u16(answer.status).unwrap_or(StatusCode::OK),
                answer.lines.into_bytes(),
            );
            response
                .headers_mut()
                .insert(HeaderName::from_static("idempotent-replayed"), HeaderValue::from_static("true"));
            return Ok(response);
        }
        Begun::New(ticket) => ticket,
    };
    match shared.recorded(&source, body) {
        Ok((answer, response)) => {
            // What the disk refused can be sent again, unless a part of it is there.
            let is_final = !response.status().is_server_error();
            keys.end(&ticket, is_final.then_some(answer))?;
            Ok(response)
        }
        Err(refused) => {
            keys.end(&ticket, None)?;
            Err(refused)
        }
    }
}

impl Shared {
    fn recorded(&self, source: &Source, body: &[u8]) -> Result<(keys::Answer, Response), Problem> {
        let Some(record) = &self.record else {
            return Err(Problem::new(StatusCode::FORBIDDEN, "forbidden", "this server does not record"));
        };
        let _recording = self.recording.lock().unwrap_or_else(PoisonError::into_inner);
        let done = record(source, body.to_vec()).map_err(|why| {
            let refused =
                Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "not-recorded", self.site.masked(&why.message));
            why.hint.map_or(refused.clone(), |hint| refused.hint(hint))
        })?;
        let status = match (done.saved, done.rejected) {
            (0, 1..) if done.has_failed => StatusCode::INTERNAL_SERVER_ERROR,
            (0, 1..) => StatusCode::UNPROCESSABLE_ENTITY,
            _ => StatusCode::OK,
        };
        let lines = self.site.masked(&String::from_utf8_lossy(&done.lines));
        let response = acknowledgements(status, lines.clone().into_bytes());
        Ok((keys::Answer { status: status.as_u16(), lines }, response))
    }
}

/// The session of an address, if it can be recorded to.
fn find(site: &Site, id: &str) -> Result<Source, Problem> {
    if matches!(site.catalogue.shelf().find(id), Found::None) {
        // It may have begun a moment ago, and its first records are here already.
        catalogue::list(site);
    }
    let source = api::entry(site, id)
        .map_err(|unknown| match unknown.status {
            StatusCode::NOT_FOUND => unknown.hint("sessions are created with `scrollback record`"),
            _ => unknown,
        })?
        .source;
    let dialect = source.dialect.name();
    if dialect != NATIVE {
        let message = format!("the session is one of {dialect}; only {NATIVE} sessions are recorded to over HTTP");
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "not-native", message)
            .hint(format!("convert it first: scrollback convert {id} --to {NATIVE}")));
    }
    if source.kept_from().is_some() {
        let message = "the session is a kept copy, which is not written to";
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "kept", message));
    }
    Ok(source)
}

/// The key of a request: printable, and short.
fn key_of(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    const KEY_CHARS: usize = 255;
    let mut given = headers.get_all(KEY_HEADER).iter();
    let (Some(key), more) = (given.next(), given.next()) else { return Ok(None) };
    let key = key
        .to_str()
        .ok()
        .map(str::trim)
        .filter(|key| !key.is_empty() && key.len() <= KEY_CHARS && more.is_none());
    let message = format!("an Idempotency-Key has 1 to {KEY_CHARS} printable characters");
    key.map(|key| Some(key.to_owned()))
        .ok_or_else(|| Problem::new(StatusCode::BAD_REQUEST, "usage", message))
}

fn acknowledgements(status: StatusCode, lines: Vec<u8>) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "application/x-ndjson"),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (status, headers, lines).into_response()
}
