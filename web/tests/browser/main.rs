//! Pages in a real browser: Chromium, driven over its own protocol.
//!
//! One browser serves all tests of this program; each test has a tab of its own. As root, Chromium runs without its sandbox.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod axe;
mod chromium;
#[path = "../support/mod.rs"]
mod support;

use chromium::{Browser, Tab};
use scrollback::{Recorder, Store, Usage};
use serde_json::{Value, json};
use support::{Running, Served, record, talk, write_session};

impl Running {
    fn origin(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Opens the pages in a tab, as a person does with the printed address.
    fn enter(&self, tab: &mut Tab<'_>) {
        tab.go(&format!("{}/?token={}", self.origin(), self.guard.token().as_str()));
        assert_eq!(tab.eval("location.pathname + location.search"), json!("/"));
    }

    fn go(&self, tab: &mut Tab<'_>, path: &str) {
        tab.go(&format!("{}{path}", self.origin()));
    }
}

/// A session with a bit of everything, and one with two branches.
fn everyday() -> Running {
    let call = |id: &str, name: &str, arguments: Value| json!({"id": id, "name": name, "arguments": arguments});
    let result = |id: &str, parent: &str, call: &str, result: &str| {
        let mut line = record("tool_result", id, Some(parent), Value::Null);
        line["toolCallId"] = call.into();
        line["result"] = result.into();
        line["content"] = result.into();
        line
    };
    let mut lines = vec![record(
        "user",
        "u0",
        None,
        json!({"role": "user", "content": "First of all, look at /home/ada/a-very-long-path/with/many/folders/and/a/name.rs"}),
    )];
    let calls = json!([
        call("c0", "bash", json!({"command": "ls -la"})),
        call("c1", "edit_file", json!({"path": "a.rs", "old_string": "a", "new_string": "b"}))
    ]);
    lines.push(record("assistant", "a0", Some("u0"), json!({"role": "assistant", "model": "m", "content": "# Plan\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```rust\nfn main() {}\n```", "toolCalls": calls})));
    lines.push(result("r0", "a0", "c0", "\u{1b}[32mok\u{1b}[0m\nfile"));
    lines.push(result("r1", "r0", "c1", "done"));
    let mut last = "r1".to_owned();
    for at in 1..80 {
        let (user, answer) = (format!("u{at}"), format!("a{at}"));
        lines.push(record("user", &user, Some(&last), json!({"role": "user", "content": format!("prompt {at}")})));
        lines.push(record(
            "assistant",
            &answer,
            Some(&user),
            json!({"role": "assistant", "content": format!("answer **{at}**")}),
        ));
        last = answer;
    }
    lines.push(record("user", "left", Some("a3"), json!({"role": "user", "content": "a branch that was left"})));
    lines.push(record("user", "last", Some(&last), json!({"role": "user", "content": "the last prompt"})));
    Running::of(Served::of(&[("everyday", lines)]))
}

const PAGES: [&str; 9] = [
    "/",
    "/?by=project",
    "/s/everyday",
    "/s/everyday?first=1&open=tools",
    "/s/everyday/tree",
    "/s/everyday/files",
    "/s/everyday/replay?turn=1",
    "/search?q=prompt",
    "/stats",
];

#[test]
fn every_page_is_quiet_fits_and_stays_at_home_in_both_themes() {
    let Some(browser) = Browser::start() else { return };
    let running = everyday();
    for theme in ["light", "dark"] {
        for width in [390, 1440] {
            let mut tab = browser.tab();
            tab.call(
                "Emulation.setEmulatedMedia",
                json!({"features": [{"name": "prefers-color-scheme", "value": theme}]}),
            );
            tab.call(
                "Emulation.setDeviceMetricsOverride",
                json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false}),
            );
            running.enter(&mut tab);
            for path in PAGES {
                running.go(&mut tab, path);
                let what = format!("{path} in {theme} at {width}");
                assert_eq!(tab.eval("document.querySelectorAll('h1').length"), json!(1), "{what}");
                assert_eq!(tab.eval("document.documentElement.classList.contains('js')"), json!(true), "{what}");
                let wide = tab.eval("document.documentElement.scrollWidth - document.documentElement.clientWidth");
                assert!(wide.as_i64().is_some_and(|wide| wide <= 0), "{what} is {wide} too wide: {}", tab.eval(WIDE));
                let background = tab.eval("getComputedStyle(document.body).backgroundColor");
                assert_eq!(
                    background,
                    json!(if theme == "dark" { "rgb(19, 20, 21)" } else { "rgb(253, 253, 252)" }),
                    "{what}"
                );
            }
            assert_eq!(tab.complaints(&running.origin()), Vec::<String>::new(), "{theme} at {width}");
        }
    }
}

/// One chat with every kind of part in every state, and a room.
fn every_kind() -> Running {
    let folder = tempfile::tempdir().unwrap();
    let chats = folder.path().join(".local/share/scrollback/chats");
    std::fs::create_dir_all(&chats).unwrap();
    let mut count = 0;
    let messages = poisoned(&every_part(), "", "a plain text", &mut count);
    let chat = json!({"id": "parts", "title": "Every part", "messages": messages});
    std::fs::write(chats.join("parts.json"), chat.to_string()).unwrap();
    write_session(
        folder.path(),
        "cost",
        &[
            record("user", "u1", None, json!({"role": "user", "content": "What does it cost?"})),
            record(
                "assistant",
                "a1",
                Some("u1"),
                json!({"role": "assistant", "model": "claude-opus-4-5", "content": "A little.",
                "usage": {"inputTokens": 1000, "outputTokens": 100, "cacheReadTokens": 5000, "cacheCreationTokens": 200}}),
            ),
        ],
    );
    Running::of(Served::over(folder))
}

#[test]
fn everybody_can_use_every_page_in_both_themes() {
    let Some(browser) = Browser::start() else { return };
    let (everyday, kinds) = (everyday(), every_kind());
    let of_kinds = [
        "/",
        "/s/parts",
        "/s/parts?show=prompts",
        "/s/parts/replay",
        "/s/parts/tree",
        "/s/parts/files",
        "/stats?since=all",
        "/nope",
        "/search",
    ];
    for (theme, width) in [("light", 1440), ("dark", 1440), ("dark", 390)] {
        for (running, pages) in [(&everyday, &PAGES[..]), (&kinds, &of_kinds)] {
            let mut tab = browser.tab();
            let features = json!({"features": [{"name": "prefers-color-scheme", "value": theme}]});
            tab.call("Emulation.setEmulatedMedia", features);
            let size = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
            tab.call("Emulation.setDeviceMetricsOverride", size);
            running.enter(&mut tab);
            for path in pages {
                running.go(&mut tab, path);
                assert_eq!(axe::violations(&tab), Vec::<String>::new(), "{path} in {theme} at {width}");
            }
        }
    }
    // It does find what is wrong.
    let mut tab = browser.tab();
    tab.go("data:text/html,<title>x</title><img src=x>");
    assert_ne!(axe::violations(&tab), Vec::<String>::new());
    // Somebody without the cookie, and a file that stands alone.
    everyday.go(&mut tab, "/");
    assert_eq!(axe::violations(&tab), Vec::<String>::new(), "without the cookie");
    let exported = tempfile::tempdir().unwrap();
    let path = exported.path().join("parts.html");
    std::fs::write(&path, kinds.served.page("/s/parts/export").body).unwrap();
    tab.go(&format!("file://{}", path.display()));
    assert_eq!(axe::violations(&tab), Vec::<String>::new(), "a file");
}

#[test]
fn keys_links_and_the_way_back_work() {
    let Some(browser) = Browser::start() else { return };
    let running = everyday();
    let mut tab = browser.tab();
    running.enter(&mut tab);
    running.go(&mut tab, "/s/everyday?at=u5#m-u5");
    assert_eq!(tab.eval("document.querySelector(':target').id"), json!("m-u5"));
    assert_eq!(tab.eval("document.querySelector('.outline [aria-current]').hash"), json!("#m-u5"));
    tab.press("j");
    assert_eq!(tab.eval("document.activeElement.id"), json!("m-a5"));
    tab.press("K");
    assert_eq!(tab.eval("document.activeElement.id"), json!("m-u5"));
    tab.press("?");
    assert_eq!(tab.eval("document.getElementById('help').open"), json!(true));
    tab.press("?");
    tab.press("/");
    assert_eq!(tab.eval("document.activeElement.type"), json!("search"));
    running.go(&mut tab, "/s/everyday?first=1");
    tab.eval("document.querySelector('#m-a0').focus()");
    tab.press("o");
    assert_eq!(tab.eval("[...document.querySelectorAll('#m-a0 details')].every((fold) => fold.open)"), json!(true));
    tab.press("t");
    tab.wait_for("location.pathname === '/s/everyday/tree'");
    tab.eval("history.back()");
    tab.wait_for("location.pathname === '/s/everyday' && document.querySelector('#m-u0') !== null");
    // Earlier messages come into the page.
    running.go(&mut tab, "/s/everyday");
    let before = tab.eval("document.querySelectorAll('#messages > .msg').length").as_i64().unwrap();
    tab.eval("document.querySelector('[data-earlier] > a').click()");
    tab.wait_for(&format!("document.querySelectorAll('#messages > .msg').length > {before}"));
    // The theme is chosen by a form, and stays.
    tab.eval("document.querySelector('form[action=\"/theme\"] button').click()");
    tab.wait_for("document.documentElement.dataset.theme === 'dark' && location.pathname === '/s/everyday'");
    assert_eq!(tab.complaints(&running.origin()), Vec::<String>::new());
}

#[test]
fn pages_work_without_scripts() {
    let Some(browser) = Browser::start() else { return };
    let running = everyday();
    let mut tab = browser.tab();
    tab.call("Emulation.setScriptExecutionDisabled", json!({"value": true}));
    running.enter(&mut tab);
    for path in PAGES {
        running.go(&mut tab, path);
        let text = tab.text();
        assert!(text.contains("scrollback"), "{path}: {text}");
        // What needs the script is not there.
        assert!(!text.contains("all keys"), "{path}: {text}");
    }
    running.go(&mut tab, "/s/everyday?first=1&open=tools");
    assert!(tab.text().contains("ls -la"));
    assert_eq!(tab.complaints(&running.origin()), Vec::<String>::new());
}

/// What somebody may write to take over a page that shows it.
const PAYLOADS: [&str; 16] = [
    "<script>window.hit=1;alert(1)</script>",
    "\"><img src=x onerror=window.hit=1>",
    "'><svg onload=window.hit=1>",
    "</title></style></textarea></script><script>window.hit=1</script>",
    "javascript:window.hit=1",
    "[x](javascript:window.hit=1) [y](JaVaScRiPt:window.hit=1) <javascript:window.hit=1>",
    "![x](http://evil.invalid/x.png) <img src=http://evil.invalid/y.png>",
    "http://evil.invalid/z.png",
    "data:text/html,<script>window.hit=1</script>",
    "data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9IndpbmRvdy5oaXQ9MSIvPg==",
    "```html\"><img src=x onerror=window.hit=1>\n<script>window.hit=1</script>\n```",
    "\u{1b}]8;;javascript:window.hit=1\u{7}x\u{1b}]8;;\u{7}\u{1b}[31m\"><img src=x onerror=window.hit=1>",
    "<iframe srcdoc='<script>parent.hit=1</script>'></iframe><object data=x><embed src=x>",
    "<style>@import url(http://evil.invalid/a.css)</style><link rel=stylesheet href=http://evil.invalid/b.css>",
    "<a href=http://evil.invalid autofocus onfocus=window.hit=1>\u{202e}txt.exe",
    "<math><mi xlink:href=javascript:window.hit=1>x --><script>window.hit=1</script>",
];

/// Every string of a value but those that say what it is, replaced.
fn poisoned(value: &Value, key: &str, payload: &str, count: &mut usize) -> Value {
    match value {
        Value::String(_) if matches!(key, "type" | "role" | "state" | "timestamp" | "status") => value.clone(),
        Value::String(_) if matches!(key, "id" | "toolCallId") => {
            *count += 1;
            format!("{payload}{count}").into()
        }
        Value::String(_) => payload.into(),
        Value::Array(items) => items.iter().map(|item| poisoned(item, key, payload, count)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| (key.clone(), poisoned(value, key, payload, count))).collect()
        }
        other => other.clone(),
    }
}

/// A chat with every kind of part in every state.
fn every_part() -> Value {
    let tool = |state: &str, more: Value| {
        let mut part = json!({"type": "dynamic-tool", "toolName": "t", "toolCallId": "c", "state": state,
            "input": {"command": "x", "description": "x"}, "title": "x",
            "callProviderMetadata": {"scrollback": {"description": "x", "resultDisplay": "x"}}});
        more.as_object().unwrap().iter().for_each(|(key, value)| part[key] = value.clone());
        part
    };
    let approval = json!({"id": "q", "approved": false, "reason": "x", "requestReason": "x"});
    json!([
        {"id": "m", "role": "user", "metadata": {"timestamp": "2026-11-02T16:20:05Z", "sender": "x", "cwd": "x"},
         "parts": [{"type": "text", "text": "x"}, {"type": "file", "mediaType": "x", "filename": "x", "url": "x"}]},
        {"id": "m", "role": "assistant",
         "metadata": {"timestamp": "2026-11-02T16:20:11Z", "model": "x", "todos": [{"content": "x", "status": "pending"}], "thinking": {"level": "x"}},
         "parts": [
            {"type": "step-start"}, {"type": "reasoning", "text": "x"}, {"type": "text", "text": "x"},
            {"type": "source-url", "sourceId": "x", "url": "x", "title": "x"},
            {"type": "source-document", "sourceId": "x", "mediaType": "x", "title": "x", "filename": "x"},
            {"type": "file", "mediaType": "x", "filename": "x", "url": "x"},
            tool("input-available", json!({})),
            tool("output-available", json!({"output": "x"})),
            tool("output-available", json!({"input": {"file_path": "x", "old_string": "x", "new_string": "y x"}, "output": {"x": "x"}})),
            tool("output-available", json!({"input": {"prompt": "x", "agent": "x"}, "output": "x"})),
            tool("output-available", json!({"input": {"plan": "x"}, "output": ["x"]})),
            tool("output-available", json!({"input": {"questions": [{"question": "x", "options": [{"label": "x", "description": "x"}]}]}, "output": "x"})),
            tool("output-available", json!({"input": {"todos": [{"content": "x", "status": "completed"}]}, "output": "x"})),
            tool("output-available", json!({"input": {"path": "x"}, "output": "x"})),
            tool("output-error", json!({"errorText": "x"})),
            tool("output-denied", json!({"approval": approval})),
            tool("approval-requested", json!({"approval": {"id": "q", "requestReason": "x"}})),
            {"type": "data-compaction", "data": {"summary": "x", "trigger": "x", "record": "x"}},
            {"type": "data-rewind", "data": {"from": "x", "to": "x", "reason": "x"}},
            {"type": "data-restore", "data": {"target": "x", "files": [{"path": "x"}]}},
            {"type": "data-error", "data": {"kind": "x", "text": "x"}},
            {"type": "data-attachment", "data": {"filename": "x", "mime_type": "x", "size": "x", "url": "x"}},
            {"type": "data-reaction", "data": {"message_id": "x", "emojis": ["x"]}},
            {"type": "data-x", "data": "x"}
         ]}
    ])
}

#[test]
fn nothing_that_a_session_says_becomes_active() {
    let Some(browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let chats = folder.path().join(".local/share/scrollback/chats");
    std::fs::create_dir_all(&chats).unwrap();
    for (at, payload) in PAYLOADS.iter().enumerate() {
        let messages = poisoned(&every_part(), "", payload, &mut 0);
        let chat = json!({"id": format!("chat-{at}"), "title": payload, "messages": messages});
        std::fs::write(chats.join(format!("chat-{at}.json")), chat.to_string()).unwrap();
        let mut user = record("user", &format!("u{payload}"), None, json!({"role": "user", "content": payload}));
        user["context"] = json!({"cwd": format!("/w/{payload}"), "gitBranch": payload, "platform": payload});
        user["version"] = (*payload).into();
        let title = json!({"type": "custom_title", "uuid": "t", "parentUuid": format!("u{payload}"), "title": payload, "customTitle": payload});
        write_session(folder.path(), &format!("native-{at}"), &[user, title]);
    }
    let running = Running::of(Served::over(folder));
    assert!(running.served.site.catalogue.shelf().entries.len() >= 2 * PAYLOADS.len());
    let mut tab = browser.tab();
    running.enter(&mut tab);
    let entries: Vec<String> =
        running.served.site.catalogue.shelf().entries.iter().map(|entry| entry.row.id.to_string()).collect();
    let mut pages = vec!["/".to_owned(), "/?by=project&sidechains=1".to_owned(), "/stats".to_owned()];
    for payload in PAYLOADS {
        pages.push(format!("/search?q={}", encoded(payload)));
    }
    for id in &entries {
        pages.push(format!("/s/{}?open=tools", encoded(id)));
        pages.extend(["tree", "files", "replay?open=tools"].map(|view| format!("/s/{}/{view}", encoded(id))));
    }
    for path in &pages {
        running.go(&mut tab, path);
        let found = tab.eval(ACTIVE);
        assert_eq!(found, json!([]), "{path}");
    }
    assert_eq!(tab.complaints(&running.origin()), Vec::<String>::new());
    // The same in files that stand alone.
    let exported = tempfile::tempdir().unwrap();
    let mut tab = browser.tab();
    for (at, id) in entries.iter().enumerate() {
        let answer = running.served.page(&format!("/s/{}/export", encoded(id)));
        let path = exported.path().join(format!("{at}.html"));
        std::fs::write(&path, answer.body).unwrap();
        tab.go(&format!("file://{}", path.display()));
        assert_eq!(tab.eval(ACTIVE), json!([]), "{id}");
    }
    assert_eq!(tab.complaints("file:///"), Vec::<String>::new());
}

/// The elements that are wider than the page.
const WIDE: &str = "[...document.querySelectorAll('main *')].filter((one) => one.getBoundingClientRect().right > innerWidth + 1).map((one) => one.outerHTML.slice(0, 80)).slice(0, 5)";

/// What of a page could act: a script that is not ours, an attribute that is one, an address that is none of a page.
const ACTIVE: &str = r#"(() => {
  const found = [];
  if (window.hit !== undefined) found.push("hit");
  for (const element of document.querySelectorAll("*")) {
    const name = element.localName;
    if (name === "script" && element.getAttribute("src") !== "/assets/page.js") found.push("script");
    if (["iframe", "object", "embed", "base", "math", "video", "audio", "frame"].includes(name)) found.push(name);
    for (const { name: key, value } of element.attributes) {
      if (key.startsWith("on") || key === "style" || key === "srcdoc") found.push(`${name} ${key}`);
      if (["href", "src", "action", "formaction", "xlink:href"].includes(key) && /^\s*(javascript|vbscript|data:text)/i.test(value)) found.push(`${name} ${value}`);
    }
  }
  return found;
})()"#;

fn encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// A session that a recorder has begun, and a server that shows it.
fn recorded() -> (Running, Recorder, String) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::native(folder.path().join(".local/share/scrollback")).unwrap();
    let mut session = store.create(folder.path()).unwrap();
    session.user("the first prompt").unwrap();
    let id = session.session().unwrap().to_string();
    (Running::of(Served::over(folder)), session, id)
}

/// A page with a session.
fn opened<'b>(browser: &'b Browser, running: &Running, id: &str) -> Tab<'b> {
    let mut tab = browser.tab();
    running.enter(&mut tab);
    running.go(&mut tab, &format!("/s/{id}"));
    tab
}

const SHOWN: &str = "[...document.querySelectorAll('#messages > .msg')].map((one) => [one.id, one.textContent])";

/// Waits until the page has exactly the messages of the session.
fn shows_all(tab: &Tab<'_>, running: &Running, id: &str) {
    let list: Value =
        serde_json::from_str(&running.served.page(&format!("/api/v1/sessions/{id}/messages")).body).unwrap();
    let messages = list["items"].as_array().unwrap();
    tab.wait_for(&format!("document.querySelectorAll('#messages > .msg').length === {}", messages.len()));
    let text_of = |message: &Value| {
        let texts = message["parts"].as_array().unwrap().iter().filter_map(|part| part["text"].as_str());
        texts.collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let last = text_of(messages.last().unwrap());
    tab.wait_for(&format!(
        "[...document.querySelectorAll('#messages > .msg')].pop().textContent.replace(/\\s+/g, ' ').includes({})",
        json!(last)
    ));
    let shown = tab.eval(SHOWN);
    for (shown, message) in shown.as_array().unwrap().iter().zip(messages) {
        assert_eq!(shown[0], format!("m-{}", message["id"].as_str().unwrap()));
        let words = shown[1].as_str().unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(&text_of(message)), "{words}\nhas not\n{}", text_of(message));
    }
}

#[test]
fn a_page_that_is_open_ends_with_exactly_what_a_recorder_writes() {
    const TURNS: usize = 100;
    const PIECES: usize = 100;
    let Some(browser) = Browser::start() else { return };
    let (running, mut session, id) = recorded();
    let mut tab = opened(&browser, &running, &id);
    for turn in 0..TURNS {
        let mut answer = session.answer("model-1").unwrap();
        for piece in 0..PIECES {
            answer.text(format!("w{turn}-{piece} ")).unwrap();
        }
        answer.finish(Usage { input: Some(2), output: Some(1), ..Usage::default() }).unwrap();
        session.user(format!("prompt {turn}").as_str()).unwrap();
    }
    shows_all(&tab, &running, &id);
    assert_eq!(tab.eval("document.querySelectorAll('[role=status][aria-live=polite]').length"), json!(1));
    // The outline and the trace have grown with it.
    let around = "[...document.querySelectorAll('.outline > li, .trace-map > a:nth-last-child(-n + 20)')].slice(-40).map((one) => one.textContent)";
    let prompts = TURNS + 1;
    tab.wait_for(&format!("document.querySelector('.rail .count').textContent === '{prompts} prompts'"));
    let grown = tab.eval(around);
    assert_eq!(tab.eval("document.querySelectorAll('.outline > li').length"), json!(prompts));
    running.go(&mut tab, &format!("/s/{id}"));
    assert_eq!(grown, tab.eval(around), "as it is loaded");
    assert_eq!(tab.complaints(&running.origin()), Vec::<String>::new());
}

#[test]
fn a_live_page_never_moves_under_its_reader_and_can_be_paused() {
    let Some(browser) = Browser::start() else { return };
    let (running, mut session, id) = recorded();
    for turn in 0..30 {
        session.assistant(format!("answer {turn}\n\n{}", "and more words\n\n".repeat(5)).as_str()).unwrap();
        session.user(format!("prompt {turn}").as_str()).unwrap();
    }
    let tab = opened(&browser, &running, &id);
    tab.eval("scrollTo({ top: 200, behavior: 'instant' })");
    let count = "document.querySelectorAll('#messages > .msg').length";
    let before = tab.eval(count).as_u64().unwrap();
    session.assistant("something new").unwrap();
    tab.wait_for(&format!("{count} === {}", before + 1));
    assert_eq!(tab.eval("scrollY"), json!(200), "the reader is somewhere else");
    let button = |name: &str| format!("document.querySelector('[data-live-key={name}]')");
    assert_eq!(tab.eval(&format!("{}.hidden", button("newest"))), json!(false));
    tab.eval(&format!("{}.click()", button("newest")));
    assert_eq!(tab.eval("scrollY + innerHeight >= document.documentElement.scrollHeight - 2"), json!(true));
    // At the end it follows.
    session.user("one more prompt").unwrap();
    tab.wait_for(&format!("{count} === {}", before + 2));
    assert_eq!(tab.eval("scrollY + innerHeight >= document.documentElement.scrollHeight - 2"), json!(true));
    tab.eval(&format!("{}.click()", button("pause")));
    session.assistant("while it was paused").unwrap();
    session.user("and this, too").unwrap();
    tab.eval_later("new Promise((done) => setTimeout(done, 500))");
    assert_eq!(tab.eval(count), json!(before + 2), "it is paused");
    tab.eval(&format!("{}.click()", button("pause")));
    tab.wait_for(&format!("{count} === {}", before + 4));
    assert_eq!(tab.complaints(&running.origin()), Vec::<String>::new());
}

#[test]
fn the_outline_of_a_live_page_has_no_prompt_that_stands_before_the_page() {
    let Some(browser) = Browser::start() else { return };
    let (running, mut session, id) = recorded();
    session.assistant("one answer").unwrap();
    let tab = opened(&browser, &running, &id);
    // As if the page began with the answer.
    tab.eval("document.querySelectorAll('#messages > .msg-user, .outline > li').forEach((one) => one.remove())");
    session.assistant("another answer").unwrap();
    tab.wait_for("document.getElementById('messages').textContent.includes('another answer')");
    assert_eq!(tab.eval("document.querySelectorAll('.outline > li').length"), json!(0));
    session.user("another prompt").unwrap();
    tab.wait_for("document.querySelectorAll('.outline > li').length === 1");
    assert_eq!(tab.complaints(&running.origin()), Vec::<String>::new());
}

#[test]
fn a_live_page_whose_session_has_no_messages_any_more_says_so() {
    let Some(browser) = Browser::start() else { return };
    let (running, session, id) = recorded();
    let tab = opened(&browser, &running, &id);
    drop(session);
    let folder = running.served.folder.path().join(".local/share/scrollback/sessions").join(&id);
    std::fs::write(folder.join("messages.jsonl"), "").unwrap();
    tab.wait_for("!document.getElementById('messages') && document.body?.textContent.includes('Nothing to read')");
}

#[test]
fn a_live_page_says_that_its_session_was_deleted() {
    let Some(browser) = Browser::start() else { return };
    let (running, session, id) = recorded();
    let tab = opened(&browser, &running, &id);
    drop(session);
    std::fs::remove_dir_all(running.served.folder.path().join(".local/share/scrollback/sessions").join(&id)).unwrap();
    tab.wait_for("document.querySelector('.live:not([hidden]) [role=status]')?.textContent === 'Deleted'");
}

#[test]
fn the_list_shows_what_is_running_while_it_is_open() {
    let Some(browser) = Browser::start() else { return };
    let (running, mut session, id) = recorded();
    let mut tab = browser.tab();
    running.enter(&mut tab);
    tab.wait_for("document.querySelector('.running')?.hidden === true");
    // The stream begins with what is there now.
    tab.eval_later("new Promise((done) => setTimeout(done, 500))");
    session.assistant("it grows").unwrap();
    scrollback_web::catalogue::list_and_count(&running.served.site);
    tab.wait_for(&format!("document.querySelector('.running:not([hidden]) .run')?.dataset.session === '{id}'"));
    assert_eq!(tab.complaints(&running.origin()), Vec::<String>::new());
}

#[test]
fn what_a_message_says_stays_inside_of_it_and_esc_leaves_the_search() {
    let Some(browser) = Browser::start() else { return };
    let list: String = (0..120).map(|depth| format!("{}- x\n", "  ".repeat(depth))).collect();
    let marks = format!("a{}", "\u{301}".repeat(2_000));
    let running = Running::of(Served::of(&[("list", talk("deep", &list)), ("marks", talk("stacked", &marks))]));
    let mut tab = browser.tab();
    let size = json!({"width": 1280, "height": 900, "deviceScaleFactor": 1, "mobile": false});
    tab.call("Emulation.setDeviceMetricsOverride", size);
    running.enter(&mut tab);
    running.go(&mut tab, "/s/list");
    let wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
    assert_eq!(tab.eval(wide), json!(0), "{}", tab.eval(WIDE));
    let right =
        "Math.max(...[...document.querySelectorAll('.prose li')].map((one) => one.getBoundingClientRect().left))";
    assert!(tab.eval(right).as_f64().is_some_and(|right| right < 800.0), "every item is seen: {}", tab.eval(right));
    running.go(&mut tab, "/s/marks");
    assert_eq!(tab.eval("getComputedStyle(document.querySelector('#m-a1 .msg-body')).overflow"), json!("clip"));
    tab.press("/");
    assert_eq!(tab.eval("document.activeElement.type"), json!("search"));
    tab.press("Escape");
    assert_eq!(tab.eval("document.activeElement.type"), Value::Null);
}

#[test]
fn nothing_stands_alone_in_a_second_row() {
    let Some(browser) = Browser::start() else { return };
    let running = every_kind();
    let mut tab = browser.tab();
    running.enter(&mut tab);
    let rows = |tab: &Tab<'_>, what: &str| {
        tab.eval(&format!("new Set([...document.querySelectorAll('{what}')].map((one) => Math.round((one.getBoundingClientRect().top + one.getBoundingClientRect().bottom) / 80))).size"))
    };
    for (width, path, what) in [(360, "/search?q=text", ".top-in > *"), (1280, "/s/cost", ".facts > div")] {
        tab.call(
            "Emulation.setDeviceMetricsOverride",
            json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false}),
        );
        running.go(&mut tab, path);
        assert_eq!(rows(&tab, what), json!(1), "{path} at {width}");
    }
}
