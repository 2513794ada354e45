//! A small client of the Chrome DevTools Protocol: just enough to open pages and ask them questions.

use std::cell::RefCell;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tungstenite::stream::MaybeTlsStream;
use tungstenite::{Message, WebSocket, connect};

/// No page needs as long.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running Chromium.
pub(crate) struct Browser {
    child: Child,
    _profile: tempfile::TempDir,
    socket: RefCell<WebSocket<MaybeTlsStream<TcpStream>>>,
    next: RefCell<u64>,
    events: RefCell<Vec<Value>>,
}

impl Browser {
    /// Starts Chromium. `None` where it is not installed; the test command installs it.
    pub(crate) fn start() -> Option<Browser> {
        let profile = tempfile::tempdir().unwrap();
        let mut child = Command::new("chromium")
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", "--no-first-run"])
            .args([
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--no-default-browser-check",
            ])
            .args(["--disable-dev-shm-usage", "--hide-scrollbars"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .ok()?;
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address =
            lines.find_map(|line| line.ok()?.strip_prefix("DevTools listening on ").map(str::to_owned)).unwrap();
        // Whatever else it prints must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        let (socket, _) = connect(&address).unwrap();
        if let MaybeTlsStream::Plain(stream) = socket.get_ref() {
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
        }
        let (socket, next, events) = (RefCell::new(socket), RefCell::new(0), RefCell::default());
        Some(Browser { child, _profile: profile, socket, next, events })
    }

    /// Opens a tab with cookies of its own.
    pub(crate) fn tab(&self) -> Tab<'_> {
        let context = self.call(None, "Target.createBrowserContext", json!({}))["browserContextId"].clone();
        let target = self.call(None, "Target.createTarget", json!({"url": "about:blank", "browserContextId": context}));
        let attached =
            self.call(None, "Target.attachToTarget", json!({"targetId": target["targetId"], "flatten": true}));
        let tab = Tab { browser: self, session: attached["sessionId"].as_str().unwrap().to_owned() };
        for domain in ["Page", "Runtime", "Network", "Log"] {
            tab.call(&format!("{domain}.enable"), json!({}));
        }
        tab
    }

    fn call(&self, session: Option<&str>, method: &str, params: Value) -> Value {
        let id = {
            let mut next = self.next.borrow_mut();
            *next += 1;
            *next
        };
        let mut request = json!({"id": id, "method": method, "params": params});
        if let Some(session) = session {
            request["sessionId"] = session.into();
        }
        self.socket.borrow_mut().send(Message::text(request.to_string())).unwrap();
        loop {
            let message = self.read();
            if message["id"] == id {
                assert!(message.get("error").is_none(), "{method}: {}", message["error"]);
                return message["result"].clone();
            }
            self.events.borrow_mut().push(message);
        }
    }

    fn read(&self) -> Value {
        loop {
            if let Message::Text(text) = self.socket.borrow_mut().read().unwrap() {
                return serde_json::from_str(&text).unwrap();
            }
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// One tab.
pub(crate) struct Tab<'b> {
    browser: &'b Browser,
    session: String,
}

impl Tab<'_> {
    pub(crate) fn call(&self, method: &str, params: Value) -> Value {
        self.browser.call(Some(&self.session), method, params)
    }

    /// Loads a page, and waits until it is there.
    pub(crate) fn go(&mut self, url: &str) {
        let is_load = |event: &Value| event["method"] == "Page.loadEventFired" && event["sessionId"] == *self.session;
        self.browser.events.borrow_mut().retain(|event| !is_load(event));
        let gone = self.call("Page.navigate", json!({"url": url}));
        if gone.get("loaderId").is_none() {
            // Only the anchor changed.
            return;
        }
        while !self.browser.events.borrow().iter().any(is_load) {
            let event = self.browser.read();
            self.browser.events.borrow_mut().push(event);
        }
    }

    /// What an expression gives in the page.
    pub(crate) fn eval(&self, expression: &str) -> Value {
        let answer = self.call("Runtime.evaluate", json!({"expression": expression, "returnByValue": true}));
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// What an expression gives that is not known at once.
    pub(crate) fn eval_later(&self, expression: &str) -> Value {
        let asked = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.call("Runtime.evaluate", asked);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    pub(crate) fn wait_for(&self, expression: &str) {
        let end = Instant::now() + PATIENCE;
        loop {
            let asked = json!({"expression": expression, "returnByValue": true});
            if self.call("Runtime.evaluate", asked)["result"]["value"] == json!(true) {
                return;
            }
            assert!(Instant::now() < end, "{expression} did not become true");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Presses a key.
    pub(crate) fn press(&self, key: &str) {
        let mut down = json!({"type": "keyDown", "key": key});
        if key.len() == 1 {
            down["text"] = key.into();
        }
        self.call("Input.dispatchKeyEvent", down);
        self.call("Input.dispatchKeyEvent", json!({"type": "keyUp", "key": key}));
    }

    /// The text that is seen, found without a script.
    pub(crate) fn text(&self) -> String {
        let tree = self.call("DOMSnapshot.captureSnapshot", json!({"computedStyles": []}));
        let strings = tree["strings"].as_array().cloned().unwrap_or_default();
        let shown = tree["documents"][0]["layout"]["text"].as_array().cloned().unwrap_or_default();
        let words = shown.iter().filter_map(|at| strings.get(usize::try_from(at.as_i64()?).ok()?)?.as_str());
        words.collect::<Vec<_>>().join("\n")
    }

    /// Errors, dialogs, and requests that left the origin, since the tab was opened.
    pub(crate) fn complaints(&self, origin: &str) -> Vec<String> {
        // Events that are on their way come before this answer.
        self.call("Runtime.evaluate", json!({"expression": "0"}));
        let mut complaints = Vec::new();
        for event in self.browser.events.borrow().iter().filter(|event| event["sessionId"] == *self.session) {
            let params = &event["params"];
            match event["method"].as_str().unwrap_or_default() {
                "Runtime.consoleAPICalled" if params["type"] == "error" => {
                    complaints.push(format!("console: {}", params["args"]))
                }
                "Runtime.exceptionThrown" => complaints.push(format!("exception: {}", params["exceptionDetails"])),
                "Log.entryAdded" if params["entry"]["level"] == "error" && !is_expected(&params["entry"]) => {
                    complaints.push(format!("log: {}", params["entry"]));
                }
                "Page.javascriptDialogOpening" => complaints.push(format!("dialog: {}", params["message"])),
                "Network.requestWillBeSent" => {
                    let url = params["request"]["url"].as_str().unwrap_or_default();
                    let is_home = url.starts_with(origin) || url == "about:blank" || url.starts_with("data:image/");
                    if !is_home {
                        complaints.push(format!("request: {url}"));
                    }
                }
                _ => {}
            }
        }
        complaints
    }
}

/// A search that cannot be understood is answered with 400, which the browser logs.
fn is_expected(entry: &Value) -> bool {
    entry["source"] == "network" && entry["url"].as_str().is_some_and(|url| url.contains("/search?q="))
}
