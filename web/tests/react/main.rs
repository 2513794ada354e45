//! The React example in a real browser: it is built as somebody would, and shows a session of ours with `useChat`, stored and while it
//! grows. Needs npm and its registry; where they are not, it says so and is skipped.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "a test may stop where it stands, and uses a part of what it shares with others"
)]
#![expect(clippy::print_stdout, reason = "a test that is skipped says why")]

#[path = "../browser/chromium.rs"]
mod chromium;
#[path = "../support/mod.rs"]
mod support;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use chromium::Browser;
use scrollback_web::server::{self, Guard, Listener, Stop};
use serde_json::{Value, json};
use support::{Served, record};

/// What npm says when it reaches nobody.
const UNREACHABLE: [&str; 5] = ["ENOTFOUND", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "EAI_AGAIN"];

/// Builds the app in the target directory; `None`, and why, where packages cannot be installed.
fn build() -> Option<PathBuf> {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/examples/react");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("react");
    fs::create_dir_all(folder.join("src")).unwrap();
    // Two test processes at once must not install over each other.
    let lock = fs::File::create(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    for from in [example.clone(), example.join("src")] {
        for entry in fs::read_dir(from).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                fs::copy(&path, folder.join(path.strip_prefix(&example).unwrap())).unwrap();
            }
        }
    }
    let npm = |words: &[&str]| Command::new("npm").args(words).current_dir(&folder).output();
    let wanted = fs::read_to_string(example.join("package.json")).unwrap();
    let installed = folder.join("installed.json");
    if !fs::read_to_string(&installed).is_ok_and(|installed| installed == wanted) {
        let output = match npm(&["install", "--no-audit", "--no-fund"]) {
            Ok(output) => output,
            Err(error) => {
                println!("skipped: there is no npm: {error}");
                return None;
            }
        };
        let said = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() && UNREACHABLE.iter().any(|code| said.contains(code)) {
            println!("skipped: npm reaches no registry: {said}");
            return None;
        }
        assert!(output.status.success(), "npm install failed:\n{said}");
        fs::write(&installed, wanted).unwrap();
    }
    let built = npm(&["run", "build"]).unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    Some(folder.join("dist"))
}

/// Serves the files of the app on an origin of their own, as its developer's server does.
fn serve_app(dist: PathBuf) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 4096];
            let read = stream.read(&mut request).unwrap_or(0);
            let request = String::from_utf8_lossy(&request[..read]).into_owned();
            let path = request.split(' ').nth(1).unwrap_or("/").trim_start_matches('/').to_owned();
            let path = if path.is_empty() { "index.html".to_owned() } else { path };
            let kind = match path.rsplit('.').next().unwrap_or_default() {
                "html" => "text/html",
                "js" => "text/javascript",
                "css" => "text/css",
                _ => "application/octet-stream",
            };
            let (status, body) = match fs::read(dist.join(&path)) {
                Ok(body) => ("200 OK", body),
                Err(_) => ("404 Not Found", Vec::new()),
            };
            let length = body.len();
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
            );
            drop(stream.write_all(&[head.into_bytes(), body].concat()));
        }
    });
    port
}

/// A session with every type of part.
fn everything() -> Served {
    let picture = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let parts = json!([
        {"type": "step-start"},
        {"type": "reasoning", "text": "A table, I guess."},
        {"type": "text", "text": "I look. <b>not bold</b>"},
        {"type": "dynamic-tool", "toolName": "read", "toolCallId": "c1", "state": "output-available", "input": {"path": "brest.csv"}, "output": "04:12"},
        {"type": "dynamic-tool", "toolName": "ls", "toolCallId": "c2", "state": "output-error", "input": {}, "errorText": "no such folder"},
        {"type": "file", "mediaType": "application/pdf", "filename": "tides.pdf", "url": "https://tides.example/tides.pdf"},
        {"type": "source-url", "sourceId": "s1", "url": "https://tides.example/", "title": "Tides"},
        {"type": "source-document", "sourceId": "s2", "mediaType": "application/pdf", "title": "The almanac"},
        {"type": "data-weather", "data": {"wind": 7}},
    ]);
    let chat = json!({"id": "parts", "messages": [
        {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "And in the picture?"}, {"type": "file", "mediaType": "image/png", "url": picture, "filename": "tide.png"}]},
        {"id": "a1", "role": "assistant", "parts": parts},
    ]});
    let folder = tempfile::tempdir().unwrap();
    let chats = folder.path().join(".local/share/scrollback/chats");
    fs::create_dir_all(&chats).unwrap();
    fs::write(chats.join("parts.json"), chat.to_string()).unwrap();
    let lines = [record("user", "u1", None, json!({"role": "user", "content": "When is high water?"}))];
    support::write_session(folder.path(), "growing", &lines);
    Served::over(folder)
}

#[test]
fn the_example_shows_every_part_and_an_answer_while_it_is_written() {
    let Some(browser) = Browser::start() else {
        println!("skipped: there is no Chromium");
        return;
    };
    let Some(dist) = build() else { return };
    let app = format!("http://127.0.0.1:{}", serve_app(dist));
    let served = everything();
    let listener = Listener::on([127, 0, 0, 1].into(), 0).unwrap();
    let address = format!("http://127.0.0.1:{}", listener.port());
    let guard = Arc::new(Guard::new(listener.port(), None).unwrap().allowing(vec![app.clone()]));
    let (stop, router) = (Stop::new(), server::router(served.site.clone(), guard.clone()));
    let stopped = stop.clone();
    std::thread::spawn(move || listener.serve(router, &stopped).unwrap());
    let mut tab = browser.tab();
    let place = |session: &str| format!("{app}/#server={address}&token={}&session={session}", guard.token().as_str());

    tab.go(&place(""));
    tab.wait_for("document.querySelectorAll('.sessions a').length === 2");

    tab.go(&place("parts"));
    tab.wait_for("document.querySelectorAll('article').length === 2");
    // The server shows its pictures to its own pages; here it is a link.
    tab.wait_for("document.querySelector('article.user .source')?.textContent === 'tide.png'");
    let count = |selector: &str| tab.eval(&format!("document.querySelectorAll({selector:?}).length"));
    for (selector, wanted) in [
        ("details.reasoning:not([open])", 1),
        ("details.tool", 2),
        ("details.tool.output-error", 1),
        ("article.assistant .source a", 2),
        ("article.assistant .source", 3),
        ("article hr", 1),
        ("details.note", 1),
        ("b", 0),
    ] {
        assert_eq!(count(selector), json!(wanted), "{selector}");
    }
    let text = tab.eval("document.body.textContent");
    let text = text.as_str().unwrap();
    for words in
        ["And in the picture?", "<b>not bold</b>", "04:12", "no such folder", "The almanac", "A table, I guess."]
    {
        assert!(text.contains(words), "{words}: {text}");
    }

    // An answer is written piece by piece while somebody looks.
    let log = served.folder.path().join(".sage/sessions/growing/messages.jsonl");
    let write = |seq: usize, text: &str, more: Value| {
        let mut line = record("assistant", "a1", Some("u1"), json!({"role": "assistant", "content": text}));
        (line["sessionId"], line["fragment"]) = ("growing".into(), json!({"seq": seq, "part": 0}));
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let mut file = fs::OpenOptions::new().append(true).open(&log).unwrap();
        file.write_all(format!("{line}\n").as_bytes()).unwrap();
    };
    write(0, "High ", json!({}));
    write(1, "water ", json!({}));
    tab.go(&place("growing"));
    tab.wait_for("document.querySelector('article.assistant .text')?.textContent.trim() === 'High water'");
    tab.wait_for("document.querySelector('main').dataset.status === 'streaming'");
    write(2, "is at 04:12.", json!({}));
    tab.wait_for("document.querySelector('article.assistant .text').textContent === 'High water is at 04:12.'");
    write(3, "", json!({"usage": {"input_tokens": 3, "output_tokens": 5}}));
    tab.wait_for("document.querySelector('main').dataset.status === 'ready'");
    assert_eq!(tab.eval("document.querySelectorAll('article').length"), json!(2));
    stop.now();
}
