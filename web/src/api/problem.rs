//! What the API answers when it has no answer: one shape for every error.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use scrollback::model::Error;
use serde::Serialize;
use serde_json::json;

use crate::catalogue::Entry;

/// More sessions with the same beginning are not listed.
const CANDIDATES: usize = 50;

/// When to ask again what takes too long now.
pub(crate) const RETRY_AFTER_SECONDS: &str = "10";

/// Why there is no answer: `{"error": {"kind", "message", "hint"?, "candidates"?}}`, as the command line prints it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Problem {
    #[serde(skip)]
    pub(crate) status: StatusCode,
    /// One word for programs.
    pub(crate) kind: &'static str,
    /// What failed.
    pub(crate) message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
    /// What an ambiguous name can mean.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) candidates: Vec<String>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> Problem {
        Problem { status, kind, message: message.into(), hint: None, candidates: Vec::new() }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Problem {
        Problem { hint: Some(hint.into()), ..self }
    }

    /// The request cannot be understood.
    pub(crate) fn usage(message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, "usage", message)
    }

    /// There is no such thing.
    pub(crate) fn not_found(message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, "not-found", message)
    }

    /// There is no such address.
    pub(crate) fn nothing_at(path: &str) -> Problem {
        Problem::not_found(format!("nothing is at {path}")).hint("GET /api/v1/openapi.json lists every address")
    }

    /// It must not be seen.
    pub(crate) fn forbidden(message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    /// Nobody knows who asks.
    pub(crate) fn unauthorized() -> Problem {
        let message = "this server does not know you";
        Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
            .hint("send the token of the printed address as `Authorization: Bearer TOKEN`")
    }

    /// The address exists, but not for this method.
    pub(crate) fn method(message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", message)
    }

    /// It takes too long, or the server stops.
    pub(crate) fn unavailable(message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message)
    }

    /// Other questions take too long.
    pub(crate) fn busy() -> Problem {
        Problem::unavailable("other searches are reading sessions").hint("ask again in a few seconds")
    }

    /// The code is wrong.
    pub(crate) fn internal() -> Problem {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "the answer could not be made")
    }

    /// Several sessions have an id that begins so.
    pub(crate) fn ambiguous_session(name: &str, entries: &[&Entry]) -> Problem {
        let is_shared = |entry: &Entry| entries.iter().filter(|other| other.row.id == entry.row.id).count() > 1;
        let names = entries.iter().take(CANDIDATES).map(|entry| match is_shared(entry) {
            true => format!("{}:{}", entry.row.dialect, entry.row.id),
            false => entry.row.id.to_string(),
        });
        let candidates = names.collect();
        let message = format!("{name:?} is ambiguous: {} sessions have an id that begins so", entries.len());
        let problem = Problem::new(StatusCode::MULTIPLE_CHOICES, "ambiguous", message).hint("use a longer prefix");
        Problem { candidates, ..problem }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        match &error {
            Error::NoRecord(_) => Problem::not_found(error.to_string()),
            Error::AmbiguousRecord { records, .. } => {
                let candidates = records.iter().map(ToString::to_string).collect();
                let problem = Problem::new(StatusCode::MULTIPLE_CHOICES, "ambiguous", error.to_string());
                Problem { candidates, ..problem.hint("use a longer prefix") }
            }
            Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                Problem::new(StatusCode::GONE, "gone", "the session's file has been moved or deleted")
            }
            _ => Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "io", error.to_string()),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = json!({ "error": self }).to_string();
        let mut response = (self.status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_SECONDS));
        }
        if self.status == StatusCode::METHOD_NOT_ALLOWED {
            headers.entry(header::ALLOW).or_insert(HeaderValue::from_static("GET, HEAD"));
        }
        response
    }
}
