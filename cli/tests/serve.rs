//! `serve` as a process: one address, who may ask, no secrets, and how it stops.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use support::TestEnv;

/// A server that runs.
struct Server {
    _env: TestEnv,
    child: Child,
    port: u16,
    token: String,
}

impl Server {
    fn start(env: TestEnv, args: &[&str]) -> Server {
        let mut child = env.command(args).stdin(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let (host, token) = line.trim().strip_prefix("http://").unwrap().split_once("/?token=").unwrap();
        let port = host.strip_prefix("127.0.0.1:").unwrap().parse().unwrap();
        Server { _env: env, child, port, token: token.to_owned() }
    }

    /// The whole answer to a request with these headers.
    fn ask(&self, path: &str, headers: &[&str]) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n{headers}\r\n", self.port);
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn page(&self, path: &str) -> String {
        self.ask(path, &[&format!("Authorization: Bearer {}", self.token)])
    }

    /// What the API answers.
    fn json(&self, path: &str) -> Value {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let (port, token) = (self.port, &self.token);
        // Without chunks: the answer ends with the connection.
        let request = format!("GET {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{path}: {error}: {answer}"))
    }

    /// Presses Ctrl-C, and gives the exit code.
    fn stop(mut self) -> Option<i32> {
        let status = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // One that was stopped is gone already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn the_demo_is_shown_and_ctrl_c_ends_it_well() {
    let server = Server::start(TestEnv::new(), &["--demo", "serve"]);
    for (path, words) in [
        ("/", "Splitting the lamp controller"),
        ("/s/91c5", "Compacted automatically"),
        ("/s/b27d/tree", "Two branches, side by side"),
        ("/s/3f8a/files", "tests/dst.rs"),
        ("/s/91c5/replay?turn=2", "Turn 2 of"),
        ("/search?q=hour", "<mark>hour</mark>"),
        ("/s/91c5/export", "default-src 'none'"),
    ] {
        let page = server.page(path);
        assert!(page.starts_with("HTTP/1.1 200 OK"), "{path}: {page}");
        assert!(page.contains(words), "{path}: {page}");
    }
    // Everything is counted after the first page is there.
    let mut stats = server.page("/stats?since=all");
    while stats.contains("still being counted") {
        std::thread::sleep(std::time::Duration::from_millis(50));
        stats = server.page("/stats?since=all");
    }
    assert!(stats.contains("Cost by model") && stats.contains("beacon-2-large"), "{stats}");
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn the_token_is_exchanged_for_a_cookie() {
    let server = Server::start(TestEnv::new(), &["--demo", "serve"]);
    assert!(server.ask("/", &[]).starts_with("HTTP/1.1 401"));
    let entered = server.ask(&format!("/s/91c5?show=prompts&token={}", server.token), &[]);
    assert!(
        entered.starts_with("HTTP/1.1 303") && entered.contains("\r\nlocation: /s/91c5?show=prompts\r\n"),
        "{entered}"
    );
    let cookie = entered.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    assert!(cookie.starts_with(&format!("scrollback_{}=", server.port)) && !cookie.contains(&server.token), "{cookie}");
    assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();
    assert!(server.ask("/", &[&format!("Cookie: {cookie}")]).starts_with("HTTP/1.1 200"));
    let other = cookie.replace(|c: char| c.is_ascii_digit(), "f");
    assert!(server.ask("/", &[&format!("Cookie: {other}")]).starts_with("HTTP/1.1 401"));
}

#[test]
fn a_taken_port_is_an_error_only_if_it_was_asked_for() {
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let ran = TestEnv::new().run(&["--demo", "serve", "--port", &port]);
    assert_eq!(ran.code, 2, "{}", ran.all());
    let first = Server::start(TestEnv::new(), &["--demo", "serve"]);
    let second = Server::start(TestEnv::new(), &["--demo", "serve"]);
    assert_ne!(first.port, second.port);
    let ran = TestEnv::new().run(&["--demo", "serve", "--bind", "0.0.0.0", "--no-redact"]);
    assert_eq!(ran.code, 2, "{}", ran.all());
}

/// A session in each of two projects.
fn two_projects() -> TestEnv {
    let env = TestEnv::new();
    for (id, project) in [("5a00", "/w/tide"), ("5b00", "/w/ebb")] {
        let folder = env.home().join(".sage/sessions").join(id);
        fs::create_dir_all(&folder).unwrap();
        let prompt = json!({"type": "user", "uuid": "u1", "parentUuid": null, "sessionId": id, "format": 2,
            "timestamp": "2026-11-01T10:00:00Z", "context": {"cwd": project},
            "message": {"role": "user", "content": format!("Water in {project}, neap{id}")}});
        fs::write(folder.join("messages.jsonl"), format!("{prompt}\n")).unwrap();
    }
    env
}

#[test]
fn what_is_hidden_or_of_another_project_is_on_no_page() {
    let hiding = two_projects();
    hiding.run(&["config", "set", "serve.hide", "/w/ebb"]);
    for server in [Server::start(hiding, &["serve"]), Server::start(two_projects(), &["serve", "--project", "/w/tide"])]
    {
        for path in ["/", "/search?q=water"] {
            let page = server.page(path);
            assert!(page.contains("Water in /w/tide") && !page.contains("Water in /w/ebb"), "{path}: {page}");
        }
        assert!(server.page("/s/5a00").starts_with("HTTP/1.1 200"));
        assert!(server.page("/s/5b00").starts_with("HTTP/1.1 404"));
    }
}

#[test]
fn what_is_excluded_is_on_pages_and_not_in_the_index() {
    let env = two_projects();
    env.run(&["config", "set", "exclude", "/w/ebb"]);
    let cache = env.home().join(".cache/scrollback");
    let server = Server::start(env, &["serve"]);
    // Texts are indexed before everything is counted.
    while server.page("/stats?since=all").contains("still being counted") {
        std::thread::sleep(Duration::from_millis(50));
    }
    let page = server.page("/search?q=water");
    assert!(page.contains("neap5a00") && page.contains("neap5b00"), "{page}");
    let read = |name: &str| fs::read(cache.join(name)).unwrap_or_default();
    let indexed = [read("index.db"), read("index.db-wal")].concat();
    let indexed = String::from_utf8_lossy(&indexed);
    assert!(indexed.contains("5a00") && !indexed.contains("5b00"));
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn no_page_has_a_secret() {
    let secret = format!("{}{}", "ghp_", "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dF3hJ5");
    let env = TestEnv::new();
    let folder = env.home().join(".sage/sessions/s1");
    fs::create_dir_all(&folder).unwrap();
    let record = |id: &str, parent: Option<&str>, kind: &str, message: serde_json::Value| {
        json!({"type": kind, "uuid": id, "parentUuid": parent, "sessionId": "s1", "timestamp": "2026-11-01T10:00:00Z",
               "format": 2, "context": {"cwd": format!("/w/{secret}"), "gitBranch": secret}, "message": message})
        .to_string()
    };
    let lines = [
        record("u1", None, "user", json!({"role": "user", "content": format!("my token is {secret}")})),
        record("a1", Some("u1"), "assistant", json!({"role": "assistant", "content": format!("`{secret}`"),
            "toolCalls": [{"id": "c1", "name": "bash", "arguments": {"command": format!("curl -H 'Authorization: Bearer {secret}' x")}},
                          {"id": "c2", "name": "write_file", "arguments": {"path": "a.txt", "content": format!("key={secret}\n")}}]})),
        json!({"type": "tool_result", "uuid": "r1", "parentUuid": "a1", "sessionId": "s1", "format": 2, "toolCallId": "c1",
               "timestamp": "2026-11-01T10:00:01Z", "result": format!("said {secret}"), "content": format!("said {secret}")})
        .to_string(),
    ];
    fs::write(folder.join("messages.jsonl"), lines.join("\n") + "\n").unwrap();
    let server = Server::start(env, &["serve"]);
    for path in [
        "/",
        "/?by=project",
        "/s/s1",
        "/s/s1?open=tools",
        "/s/s1/tree",
        "/s/s1/files",
        "/s/s1/replay",
        "/s/s1/export",
        "/s/s1/export?to=md",
        "/s/s1/part/a1/0",
        "/s/s1/part/a1/1",
        "/s/s1/part/a1/2",
        "/search?q=token",
        "/stats",
    ] {
        let page = server.page(path);
        assert!(page.starts_with("HTTP/1.1 200"), "{path}: {page}");
        assert!(!page.contains(&secret), "{path}: {page}");
    }
    assert!(server.page("/s/s1").contains("[REDACTED"));
}

#[test]
fn the_api_answers_what_the_command_line_prints() {
    let server = Server::start(TestEnv::new(), &["--demo", "serve", "--port", "0"]);
    let printed = |args: &[&str]| -> Value {
        let output = server._env.command(&[&["--demo", "--json"], args].concat()).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let listed = printed(&["list", "--all"]);
    assert_eq!(server.json("/api/v1/sessions?limit=1000")["items"], listed);
    for row in listed.as_array().unwrap() {
        let id = row["id"].as_str().unwrap();
        for sdk in ["5", "6", "7"] {
            let answered = server.json(&format!("/api/v1/sessions/{id}/messages?sdk={sdk}"));
            let printed = printed(&["show", id, "--sdk", sdk]);
            assert_eq!(without_urls(&answered["items"]), without_urls(&printed["messages"]), "{id} for {sdk}");
        }
        let twin = server.json(&format!("/s/{id}.json"));
        assert_eq!(without_urls(&twin), without_urls(&printed(&["show", id])), "{id}");
        assert_eq!(server.json(&format!("/api/v1/sessions/{id}/tree")), printed(&["tree", id]), "{id}");
        assert_eq!(server.json(&format!("/api/v1/sessions/{id}/files"))["items"], printed(&["files", id]), "{id}");
        assert_eq!(
            server.json(&format!("/api/v1/sessions/{id}/tools"))["items"],
            printed(&["extract-tools", id]),
            "{id}"
        );
    }
    // Equal matches have no order.
    let found = |items: &Value| -> Vec<(Value, usize)> {
        let hits = |found: &Value| found["hits"].as_array().unwrap().len();
        items.as_array().unwrap().iter().map(|found| (found["session"].clone(), hits(found))).collect()
    };
    let answered = server.json("/api/v1/search?q=hour");
    assert_eq!(found(&answered["items"]), found(&printed(&["search", "hour", "--all"])));
    for by in ["day", "project,model", "tool"] {
        assert_eq!(server.json(&format!("/api/v1/stats?by={by}")), printed(&["stats", "--all", "--by", by]), "{by}");
    }
}

/// Files have other addresses in the API.
fn without_urls(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(without_urls).collect(),
        Value::Object(fields) if fields.get("type") == Some(&"file".into()) => fields
            .iter()
            .filter(|(key, _)| *key != "url")
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect(),
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), without_urls(value))).collect(),
        other => other.clone(),
    }
}

#[test]
fn an_origin_is_exact() {
    let env = TestEnv::new();
    for origin in ["*", "null", "localhost:5173", "http://", "http://a/", "http://a/b", "http://A", "ftp://a"] {
        let output = env.command(&["serve", "--allow-origin", origin]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{origin}: {said}");
        assert!(said.contains("is no origin"), "{origin}: {said}");
    }
}
