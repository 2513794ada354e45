//! The HTTP API: every question, its errors, paging, tags, other sites, and contents by hash.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod support;

use std::io::Write;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{Method, Request};
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use scrollback_web::server::Guard;
use serde_json::{Value, json};
use support::{Answer, PORT, Served, record, talk, write_session};

fn served() -> Served {
    let folder = tempfile::tempdir().unwrap();
    for (id, lines) in
        [("sa", talk("hello", "world")), ("sb", talk("another", "one")), ("äö %", talk("a strange", "id"))]
    {
        write_session(folder.path(), id, &lines);
    }
    let parts = json!([{"type": "text", "text": "look"}, {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,iVBORw0KGgo="}]);
    let chat = json!({"id": "file", "messages": [
        {"id": "u1", "role": "user", "parts": parts},
        {"id": "a1", "role": "assistant", "parts": [{"type": "text", "text": "seen"}]},
    ]});
    let chats = folder.path().join(".local/share/scrollback/chats");
    std::fs::create_dir_all(&chats).unwrap();
    std::fs::write(chats.join("file.json"), chat.to_string()).unwrap();
    Served::over(folder)
}

impl Served {
    fn ask(&self, method: Method, path: &str, headers: &[(&str, &str)]) -> Answer {
        let mut request = Request::builder().method(method).uri(path).header("host", format!("localhost:{PORT}"));
        for (name, value) in headers {
            request = request.header(*name, value.replace("TOKEN", self.guard.token().as_str()));
        }
        self.send(request.body(Body::empty()).unwrap())
    }

    fn json(&self, path: &str) -> Value {
        let answer = self.page(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        assert_eq!(answer.headers["content-type"], "application/json", "{path}");
        serde_json::from_str(&answer.body).unwrap()
    }
}

const BEARER: (&str, &str) = ("authorization", "Bearer TOKEN");

#[test]
fn the_description_has_every_question_and_every_question_is_answered() {
    let served = served();
    let description = served.json("/api/v1/openapi.json");
    let page = include_str!("../../docs/api.md");
    let paths = description["paths"].as_object().unwrap();
    for (path, operations) in paths {
        assert!(page.contains(&format!("`{path}`")), "docs/api.md does not describe {path}");
        for (method, operation) in operations.as_object().unwrap() {
            let is_stream = operation["responses"]["200"]["content"].get("text/event-stream").is_some();
            let path = path.replace("{id}", "sa").replace("{hash}", &"0".repeat(64));
            let asked = format!("{path}{}", if path.ends_with("/search") { "?q=hello" } else { "" });
            if is_stream && !path.contains("chat") {
                // A stream has no end; its head is enough.
                assert_eq!(served.ask(Method::HEAD, &asked, &[BEARER]).status, 200, "{asked}");
                continue;
            }
            if path.ends_with("/records") {
                // `serve` adds it: cli/tests/serve_record.rs.
                continue;
            }
            let method: Method = method.to_ascii_uppercase().parse().unwrap();
            let answer = served.ask(method.clone(), &asked, &[BEARER]);
            let wanted = match (method, path.as_str()) {
                (Method::POST, path) if path.ends_with("/records") => 403,
                (Method::POST, _) => 405,
                (_, path) if path.contains("/blobs/") => 404,
                (_, path) if path.ends_with("/stream") => 204,
                _ => 200,
            };
            assert_eq!(answer.status, wanted, "{asked}: {}", answer.body);
        }
    }
    // What is not described is not there.
    let listed = page.lines().filter_map(|line| line.strip_prefix("| `GET /api/")?.split('`').next());
    for path in listed {
        let path = format!("/api/{}", path.split('?').next().unwrap());
        assert!(paths.contains_key(&path), "docs/api.md has {path}, which does not exist");
    }
}

#[test]
fn an_error_has_one_shape_and_the_right_status() {
    let served = served();
    for (method, path, headers, status, kind) in [
        (Method::GET, "/api/v1/sessions", vec![], 401, "unauthorized"),
        (Method::GET, "/s/sa.json", vec![], 401, "unauthorized"),
        (Method::GET, "/api/v1/sessions", vec![("authorization", "Bearer no")], 401, "unauthorized"),
        (Method::GET, "/api/v1/sessions", vec![("sec-fetch-site", "cross-site")], 401, "unauthorized"),
        (Method::GET, "/api/v1/sessions", vec![BEARER, ("origin", "http://evil.example")], 403, "forbidden"),
        (Method::GET, "/api/v1/sessions/none", vec![BEARER], 404, "not-found"),
        (Method::GET, "/api/v1/sessions/s", vec![BEARER], 300, "ambiguous"),
        (Method::GET, "/api/v1/sessions/%ff", vec![BEARER], 400, "usage"),
        (Method::GET, "/api/v1/sessions/%00", vec![BEARER], 404, "not-found"),
        (Method::GET, "/api/v1/sessions/..%2f..%2fetc", vec![BEARER], 404, "not-found"),
        (Method::GET, "/api/v1/sessions/sa/messages?head=zz", vec![BEARER], 404, "not-found"),
        (Method::GET, "/api/v1/sessions/sa/messages?from=zz", vec![BEARER], 404, "not-found"),
        (Method::GET, "/api/v1/sessions/sa/messages?sdk=8", vec![BEARER], 400, "usage"),
        (Method::GET, "/api/v1/sessions?limit=0", vec![BEARER], 400, "usage"),
        (Method::GET, "/api/v1/sessions?limit=-1", vec![BEARER], 400, "usage"),
        (Method::GET, "/api/v1/sessions?cursor=x", vec![BEARER], 400, "usage"),
        (Method::GET, "/api/v1/sessions?since=x", vec![BEARER], 400, "usage"),
        (Method::GET, "/api/v1/sessions?nosuch=1", vec![BEARER], 400, "usage"),
        (Method::GET, "/api/v1/sessions/sa?limit=1", vec![BEARER], 400, "usage"),
        (Method::GET, "/api/v1/search", vec![BEARER], 400, "usage"),
        (Method::GET, "/api/v1/search?q=%22open", vec![BEARER], 400, "usage"),
        (Method::GET, "/api/v1/stats?by=colour", vec![BEARER], 400, "usage"),
        (Method::GET, "/api/v1/blobs/zz", vec![BEARER], 400, "usage"),
        (Method::GET, "/api/v2/sessions", vec![BEARER], 404, "not-found"),
        (Method::GET, "/api", vec![BEARER], 404, "not-found"),
        (Method::GET, "/api/", vec![BEARER], 404, "not-found"),
        (Method::GET, "/none.json", vec![BEARER], 404, "not-found"),
        (Method::DELETE, "/api/v1/sessions/sa", vec![BEARER], 405, "method-not-allowed"),
        (Method::POST, "/api/v1/sessions", vec![BEARER], 405, "method-not-allowed"),
        (Method::POST, "/api/chat", vec![BEARER], 405, "method-not-allowed"),
        (Method::POST, "/api/chat", vec![], 405, "method-not-allowed"),
        (Method::GET, "/api/chat", vec![BEARER], 405, "method-not-allowed"),
        (Method::GET, "/s/none.json", vec![BEARER], 404, "not-found"),
        (Method::GET, "/s/sa.json?head=zz", vec![BEARER], 404, "not-found"),
        (Method::GET, "/s/sa.json?before=zz", vec![BEARER], 404, "not-found"),
        (Method::GET, "/s/%ff.json", vec![BEARER], 400, "usage"),
        (Method::GET, "/s/%ff/tree.json", vec![BEARER], 400, "usage"),
        (Method::GET, "/s/s/tree.json", vec![BEARER], 300, "ambiguous"),
    ] {
        let answer = served.ask(method, path, &headers);
        assert_eq!(answer.status.as_u16(), status, "{path}: {}", answer.body);
        assert_eq!(answer.headers["content-type"], "application/json", "{path}");
        let error: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(error["error"]["kind"], kind, "{path}");
        assert!(error["error"]["message"].as_str().is_some_and(|message| !message.is_empty()), "{path}");
        assert_eq!(error.as_object().unwrap().len(), 1, "{path}");
    }
    let several: Value = serde_json::from_str(&served.page("/api/v1/sessions/s").body).unwrap();
    assert_eq!(several["error"]["candidates"].as_array().map(Vec::len), Some(2));
}

/// What a page cuts before it asks whether sessions must be read would pass that question here.
#[test]
fn a_question_that_is_too_long_is_refused() {
    let served = served();
    for path in ["/api/v1/search", "/search.json"] {
        let right = served.page(&format!("{path}?q={}", "a".repeat(2_000)));
        assert_eq!(right.status.as_u16(), 200, "{path}: {}", right.body);
        let long = served.page(&format!("{path}?q={}+/x/", "a".repeat(2_000)));
        assert_eq!(long.status.as_u16(), 400, "{path}: {}", long.body);
        assert!(long.body.contains("q is longer than 2000 bytes"), "{path}: {}", long.body);
    }
}

#[test]
fn a_list_is_paged_without_loss_and_a_huge_limit_is_a_limit() {
    let served = served();
    let (mut ids, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = served.json(&format!("/api/v1/sessions?limit=1{cursor}"));
        let items = page["items"].as_array().unwrap();
        ids.extend(items.iter().map(|row| row["id"].as_str().unwrap().to_owned()));
        let Some(next) = page["next"].as_str() else { break };
        assert_eq!(items.len(), 1);
        cursor = format!("&cursor={next}");
    }
    let all = served.json("/api/v1/sessions?limit=99999999999999999999999999");
    let all: Vec<&str> = all["items"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(ids, all);
    assert_eq!(ids.len(), 4);
    let first = served.json("/api/v1/sessions/sa/messages?limit=1");
    assert_eq!((&first["items"][0]["id"], &first["next"]), (&json!("u1"), &json!("a1")));
    for rest in ["from=a1", "from=1", "cursor=a1", "from=a1&limit=18446744073709551616"] {
        let rest = served.json(&format!("/api/v1/sessions/sa/messages?{rest}"));
        assert_eq!(rest["items"].as_array().map(Vec::len), Some(1), "{rest}");
        assert_eq!((&rest["items"][0]["id"], rest.get("next")), (&json!("a1"), None));
    }
    assert_eq!(served.json("/api/v1/sessions/sa/messages?from=99")["items"], json!([]));
    assert_eq!(served.json("/api/v1/sessions/%C3%A4%C3%B6%20%25")["id"], "äö %");
    assert_eq!(served.json("/api/v1/sessions/native:sa")["id"], "sa");
    let found = served.json("/api/v1/sessions?q=another");
    assert_eq!(found["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(served.json("/api/v1/sessions?dialect=codex")["items"], json!([]));
}

#[test]
fn a_file_of_a_message_has_an_address_on_the_origin_that_was_asked() {
    let served = served();
    for path in ["/api/v1/sessions/file/messages", "/api/chat/file/messages", "/s/file.json"] {
        let answer = served.json(path);
        let messages = answer.get("items").or(answer.get("messages")).unwrap_or(&answer);
        let url = messages[0]["parts"][1]["url"].as_str().unwrap().to_owned();
        assert_eq!(url, format!("http://localhost:{PORT}/s/file/file/u1/1"), "{path}");
        let picture = served.page(url.strip_prefix(&format!("http://localhost:{PORT}")).unwrap());
        assert_eq!((picture.status.as_u16(), &picture.headers["content-type"]), (200, &"image/png".parse().unwrap()));
    }
}

#[test]
fn a_session_is_found_by_its_id_whatever_that_looks_like() {
    let ids = ["a b", "a%2Fb", "..%2f", "x.json", "?#&", "\u{202e}", "codex:zz", "native:codex:zz"];
    let served = Served::of(&ids.map(|id| (id, talk("hello", "world"))));
    for id in ids {
        let path = format!("/api/v1/sessions/{}", percent_encode(id.as_bytes(), NON_ALPHANUMERIC));
        assert_eq!(served.json(&path)["id"], id);
    }
}

#[test]
fn a_tag_says_whether_something_changed() {
    let served = served();
    let log = served.folder.path().join(".sage/sessions/sa/messages.jsonl");
    for path in [
        "/api/v1/sessions/sa",
        "/api/v1/sessions/sa/messages",
        "/api/v1/sessions/sa/tree",
        "/api/chat/sa/messages",
        "/s/sa.json",
    ] {
        let tag = served.page(path).headers["etag"].to_str().unwrap().to_owned();
        let again = served.ask(Method::GET, path, &[BEARER, ("if-none-match", &tag)]);
        assert_eq!((again.status.as_u16(), again.body.as_str()), (304, ""), "{path}");
        assert_eq!(again.headers["etag"], tag);
        let mut file = std::fs::OpenOptions::new().append(true).open(&log).unwrap();
        let line =
            record("user", &format!("more{}", path.len()), Some("a1"), json!({"role": "user", "content": "more"}));
        writeln!(file, "{line}").unwrap();
        let changed = served.ask(Method::GET, path, &[BEARER, ("if-none-match", &tag)]);
        assert_eq!(changed.status, 200, "{path}");
        assert_ne!(changed.headers["etag"], tag, "{path}");
    }
    let tag = served.page("/api/v1/sessions").headers["etag"].to_str().unwrap().to_owned();
    assert_eq!(served.ask(Method::GET, "/api/v1/sessions", &[BEARER, ("if-none-match", &tag)]).status, 304);
    let files = "/api/v1/sessions/sa/files";
    let tag = served.page(files).headers["etag"].to_str().unwrap().to_owned();
    assert_eq!(served.ask(Method::GET, files, &[BEARER, ("if-none-match", &tag)]).status, 304);
}

#[test]
fn another_site_may_ask_the_api_only_if_it_is_allowed_and_only_with_the_token() {
    let mut served = served();
    let guard = Guard::new(PORT, None).unwrap().allowing(vec!["http://app.example:5173".to_owned()]);
    served.guard = Arc::new(guard);
    let (app, evil) = (("origin", "http://app.example:5173"), ("origin", "http://app.example:5174"));
    let preflight = ("access-control-request-method", "GET");
    let cookie = {
        let answer = served.ask(Method::GET, &format!("/?token={}", served.guard.token().as_str()), &[]);
        answer.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned()
    };
    for (what, method, path, headers, status, is_told) in [
        ("a preflight", Method::OPTIONS, "/api/v1/sessions", vec![app, preflight], 204, true),
        (
            "a preflight of a message",
            Method::OPTIONS,
            "/api/chat",
            vec![app, ("access-control-request-method", "POST")],
            204,
            true,
        ),
        ("another port", Method::OPTIONS, "/api/v1/sessions", vec![evil, preflight], 403, false),
        ("a preflight for a page", Method::OPTIONS, "/s/sa", vec![app, preflight], 403, false),
        ("the token", Method::GET, "/api/v1/sessions", vec![app, BEARER], 200, true),
        ("a message", Method::POST, "/api/chat", vec![app, BEARER], 405, true),
        ("the token of another site", Method::GET, "/api/v1/sessions", vec![evil, BEARER], 403, false),
        ("the token for a page", Method::GET, "/s/sa", vec![app, BEARER], 403, false),
        ("no token", Method::GET, "/api/v1/sessions", vec![app], 401, true),
        ("the cookie", Method::GET, "/api/v1/sessions", vec![app, ("cookie", &cookie)], 401, true),
        ("the cookie of our own page", Method::GET, "/api/v1/sessions", vec![("cookie", &cookie)], 200, false),
        ("two origins", Method::GET, "/api/v1/sessions", vec![app, evil, BEARER], 403, false),
    ] {
        let answer = served.ask(method, path, &headers);
        assert_eq!(answer.status.as_u16(), status, "{what}: {}", answer.body);
        let told = answer.headers.get("access-control-allow-origin").map(|origin| origin.to_str().unwrap().to_owned());
        assert_eq!(told, is_told.then(|| app.1.to_owned()), "{what}");
        assert!(!answer.headers.contains_key("access-control-allow-credentials"), "{what}");
    }
}

#[test]
fn every_page_has_a_twin() {
    let served = served();
    for (path, key) in [
        ("/.json", "items"),
        ("/index.json", "items"),
        ("/search.json?q=hello", "items"),
        ("/stats.json", "total"),
        ("/s/sa.json", "messages"),
        ("/s/sa/tree.json", "records"),
        ("/s/sa/files.json", "items"),
        ("/s/sa/replay.json?turn=1", "messages"),
    ] {
        assert!(served.json(path).get(key).is_some(), "{path}");
    }
}

#[test]
fn a_content_is_found_by_its_hash_and_a_secret_stays_one() {
    let write = |id: &str, parent: &str, path: &str, content: &str| {
        let call =
            json!([{"id": format!("c-{id}"), "name": "write_file", "arguments": {"path": path, "content": content}}]);
        let mut result = record("tool_result", &format!("r-{id}"), Some(id), Value::Null);
        result["toolCallId"] = format!("c-{id}").into();
        result["result"] = "written".into();
        [record("assistant", id, Some(parent), json!({"role": "assistant", "content": "", "toolCalls": call})), result]
    };
    let mut lines = vec![record("user", "u1", None, json!({"role": "user", "content": "write"}))];
    lines.extend(write("a1", "u1", "plain.txt", "high water\n"));
    lines.extend(write("a2", "r-a1", ".env", "HARBOUR=open\n"));
    let served = Served::masked(&[("files", lines)]);
    let files = served.json("/api/v1/sessions/files/files");
    let hash = |path: &str| {
        let row = files["items"].as_array().unwrap().iter().find(|row| row["path"] == path).cloned();
        row.unwrap_or_else(|| panic!("{files}"))["changes"][0]["hash"].as_str().unwrap().to_owned()
    };
    let plain = served.page(&format!("/api/v1/blobs/{}", hash("plain.txt")));
    assert_eq!((plain.status.as_u16(), plain.body.as_str()), (200, "high water\n"));
    let secret = files["items"].as_array().unwrap().iter().find_map(|row| {
        let path = row["path"].as_str()?;
        (path != "plain.txt").then(|| row["changes"][0]["hash"].as_str().map(str::to_owned))?
    });
    let secret = served.page(&format!("/api/v1/blobs/{}", secret.unwrap()));
    assert_eq!(secret.status, 403, "{}", secret.body);
    assert!(secret.body.contains("secret as a whole") && !secret.body.contains("HARBOUR"), "{}", secret.body);
}
