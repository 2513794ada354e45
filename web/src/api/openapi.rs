//! The API, described for programs: made of the table of questions, so that it cannot say anything else.

use axum::http::Method;
use axum::response::Response;
use serde_json::{Map, Value, json};

use super::{Answerer, Ask, Problem, ROUTES, Route};

/// The description.
pub(super) fn openapi(ask: &Ask) -> Result<Response, Problem> {
    ask.json(&document())
}

/// The description as JSON.
pub(crate) fn document() -> Value {
    let mut paths = Map::new();
    for route in ROUTES {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.as_str().to_ascii_lowercase()] = match route.answer {
            Answerer::Records => records(route),
            _ => operation(route),
        };
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "scrollback",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The sessions of every agent on this machine. docs/api.md and docs/cli-json.md describe the answers.",
        },
        "servers": [{ "url": "/" }],
        "security": [{ "token": [] }, { "cookie": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer" },
                "cookie": { "type": "apiKey", "in": "cookie", "name": "scrollback_PORT" },
            },
            "schemas": {
                "Error": {
                    "type": "object",
                    "required": ["error"],
                    "properties": { "error": {
                        "type": "object",
                        "required": ["kind", "message"],
                        "properties": {
                            "kind": { "type": "string" },
                            "message": { "type": "string" },
                            "hint": { "type": "string" },
                            "candidates": { "type": "array", "items": { "type": "string" } },
                        },
                    } },
                },
            },
        },
    })
}

/// The one question that writes.
fn records(route: &Route) -> Value {
    let error = json!({ "$ref": "#/components/schemas/Error" });
    json!({
        "summary": route.about,
        "security": [{ "token": [] }],
        "parameters": [
            {"name": "id", "in": "path", "required": true, "schema": {"type": "string"}},
            {"name": "Idempotency-Key", "in": "header", "description": "records once what is sent again with it", "schema": {"type": "string"}},
        ],
        "requestBody": { "required": true, "content": { "application/x-ndjson": {} } },
        "responses": {
            "200": { "description": "An acknowledgement for each line", "content": { "application/x-ndjson": {} } },
            "default": { "description": "Why there is no answer", "content": { "application/json": { "schema": error } } },
        },
    })
}

fn operation(route: &Route) -> Value {
    let in_path = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let in_path =
        in_path.map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}));
    let in_query = route
        .params
        .iter()
        .map(|(name, about)| json!({"name": name, "in": "query", "description": about, "schema": {"type": "string"}}));
    let error = json!({ "description": "Why there is no answer", "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Error" } } } });
    let kind = match &route.answer {
        Answerer::SessionEvents | Answerer::HomeEvents | Answerer::ChatStream => "text/event-stream",
        Answerer::Reading(_) if route.path.contains("/blobs/") => "application/octet-stream",
        Answerer::Reading(_) | Answerer::Searching(_) | Answerer::Records => "application/json",
    };
    let mut responses = Map::new();
    if route.method == Method::GET {
        responses.insert("200".to_owned(), json!({ "description": route.about, "content": { kind: {} } }));
    }
    if let Answerer::ChatStream = route.answer {
        responses.insert("204".to_owned(), json!({ "description": "No answer is being written" }));
    }
    responses.insert("default".to_owned(), error);
    json!({ "summary": route.about, "parameters": in_path.chain(in_query).collect::<Vec<_>>(), "responses": responses })
}
