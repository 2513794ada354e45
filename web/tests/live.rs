//! Sessions that are followed while they are written: whatever happens to the file and to the reader, the reader ends with what is in
//! the file, and gets nothing twice.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod support;

use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Running, Served, record, talk};

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// A connection that asks something; the answer ends when it is closed.
fn asked(running: &Running, path: &str, headers: &str) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", running.port)).unwrap();
    let (port, token) = (running.port, running.guard.token().as_str());
    let head =
        format!("GET {path} HTTP/1.0\r\nHost: localhost:{port}\r\nAuthorization: Bearer {token}\r\n{headers}\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    stream
}

/// A whole answer.
fn answer(running: &Running, path: &str) -> (u16, String) {
    let mut text = Vec::new();
    let mut stream = asked(running, path, "");
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.read_to_end(&mut text).unwrap();
    let text = String::from_utf8_lossy(&text).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head[9..12].parse().unwrap(), body.to_owned())
}

/// What a stream has until it ends, which must be soon: a quiet one only says that it is alive.
fn rest(mut stream: TcpStream) -> String {
    let (mut text, mut piece, end) = (Vec::new(), [0; 4096], Instant::now() + PATIENCE);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    loop {
        let read = stream
            .read(&mut piece)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&text)));
        text.extend_from_slice(&piece[..read]);
        if read == 0 {
            return String::from_utf8_lossy(&text).into_owned();
        }
        assert!(Instant::now() < end, "it does not end: {}", String::from_utf8_lossy(&text));
    }
}

fn messages(running: &Running, id: &str) -> Vec<Value> {
    let (status, body) = answer(running, &format!("/api/v1/sessions/{id}/messages"));
    assert_eq!(status, 200, "{body}");
    let list: Value = serde_json::from_str(&body).unwrap();
    list["items"].as_array().unwrap().clone()
}

/// A reader of events, and what it has.
struct Client<'r> {
    running: &'r Running,
    id: &'static str,
    stream: Option<TcpStream>,
    unread: Vec<u8>,
    last: Option<String>,
    messages: Vec<Value>,
    /// Messages that came although they were there already.
    repeats: Vec<String>,
    resets: usize,
    removals: usize,
    is_beginning_anew: bool,
}

impl<'r> Client<'r> {
    fn new(running: &'r Running, id: &'static str) -> Client<'r> {
        let (last, messages, repeats) = Default::default();
        let (resets, removals) = (0, 0);
        let stream = None;
        Client {
            running,
            id,
            stream,
            unread: Vec::new(),
            last,
            messages,
            repeats,
            resets,
            removals,
            is_beginning_anew: false,
        }
    }

    /// Comes (back) with what it has seen; `0:0` has seen nothing.
    fn connect(&mut self) {
        let seen = self.last.clone().unwrap_or_else(|| "0:0".to_owned());
        let path = format!("/api/v1/sessions/{}/events?parts=message", self.id);
        let stream = asked(self.running, &path, &format!("Last-Event-ID: {seen}\r\n"));
        stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        (self.stream, self.unread) = (Some(stream), Vec::new());
    }

    /// Goes, perhaps in the middle of an event.
    fn cut(&mut self) {
        self.stream = None;
    }

    /// Takes what is there, at most so many bytes.
    fn take(&mut self, most: usize) {
        let Some(stream) = &mut self.stream else { return };
        let mut piece = vec![0; most];
        match stream.read(&mut piece) {
            Ok(0) => panic!("the server ended the stream: {}", String::from_utf8_lossy(&self.unread)),
            Ok(read) => self.unread.extend_from_slice(&piece[..read]),
            Err(_) => return,
        }
        while let Some(end) = self.unread.windows(2).position(|two| two == b"\n\n") {
            let event: Vec<u8> = self.unread.drain(..end + 2).collect();
            self.apply(std::str::from_utf8(&event).unwrap());
        }
    }

    fn apply(&mut self, event: &str) {
        let field = |name: &str| event.lines().rev().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        let data: Value = field("data").map_or(Value::Null, |data| serde_json::from_str(data).unwrap());
        match field("event") {
            Some("message") => self.put(&data),
            Some("removed") => {
                self.removals += 1;
                self.messages.retain(|message| !data["ids"].as_array().unwrap().contains(&message["id"]));
            }
            Some("reset") => {
                self.messages.clear();
                (self.resets, self.is_beginning_anew) = (self.resets + 1, true);
            }
            Some(other) => panic!("an unknown event {other}"),
            None => {}
        }
        if let Some(id) = field("id") {
            (self.last, self.is_beginning_anew) = (Some(id.to_owned()), false);
        }
    }

    fn put(&mut self, data: &Value) {
        let message = &data["message"];
        assert_eq!(data["id"], message["id"]);
        let place = |id: &Value| self.messages.iter().position(|known| known["id"] == *id);
        match place(&data["id"]) {
            Some(at) if self.messages[at] == *message => {
                self.repeats.push(format!("{} after {:?}", message["id"], self.last));
            }
            Some(at) => self.messages[at] = message.clone(),
            None => {
                let at = if data["after"].is_null() {
                    0
                } else {
                    place(&data["after"]).unwrap_or_else(|| panic!("{data} stands behind nothing")) + 1
                };
                self.messages.insert(at, message.clone());
            }
        }
    }

    /// Reads until it has what is in the file.
    fn settle(&mut self, what: &dyn Fn() -> String) {
        if self.stream.is_none() {
            self.connect();
        }
        let end = Instant::now() + PATIENCE;
        loop {
            self.take(1 << 20);
            if !self.is_beginning_anew && self.messages == messages(self.running, self.id) {
                return;
            }
            assert!(
                Instant::now() < end,
                "{}:\n{:#?}\nis not\n{:#?}",
                what(),
                ids(&self.messages),
                ids(&messages(self.running, self.id))
            );
        }
    }
}

fn ids(messages: &[Value]) -> Vec<String> {
    messages.iter().map(|message| format!("{} {}", message["id"], message["parts"])).collect()
}

/// Numbers that look random, the same for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }
}

/// A log that somebody writes, cuts and replaces.
struct Log {
    path: PathBuf,
    lines: Vec<Value>,
    /// A line of which only the beginning is written.
    half: Option<String>,
    number: usize,
    /// How many pieces the last answer has.
    pieces: usize,
}

impl Log {
    fn append(&mut self, bytes: &str) {
        let mut file = OpenOptions::new().append(true).create(true).open(&self.path).unwrap();
        file.write_all(bytes.as_bytes()).unwrap();
    }

    fn add(&mut self, line: Value) {
        self.append(&format!("{line}\n"));
        self.lines.push(line);
    }

    fn new_line(&mut self, kind: &str, parent: Option<String>) -> Value {
        self.number += 1;
        let (id, text) = (format!("m{}", self.number), format!("text {}", self.number));
        let mut line = record(kind, &id, parent.as_deref(), json!({"role": kind, "content": text}));
        line["sessionId"] = "walk".into();
        line
    }

    fn last(&self) -> Option<String> {
        Some(self.lines.last()?["uuid"].as_str()?.to_owned())
    }

    fn text(lines: &[Value]) -> String {
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    fn step(&mut self, dice: &mut Dice) -> &'static str {
        if let Some(rest) = self.half.take() {
            self.append(&rest);
            return "the rest of a line";
        }
        match dice.roll(40) {
            0..=13 => {
                let kind = if self.number.is_multiple_of(2) { "user" } else { "assistant" };
                let line = self.new_line(kind, self.last());
                self.add(line);
                "a line"
            }
            14..=24 => {
                // The last answer grows, or a new one begins.
                let growing = self.lines.last().filter(|last| last.get("fragment").is_some()).cloned();
                let mut line = match growing {
                    Some(last) => last,
                    None => {
                        self.pieces = 0;
                        self.new_line("assistant", self.last())
                    }
                };
                line["fragment"] = json!({"seq": self.pieces, "part": 0});
                line["message"]["content"] = format!("piece {} ", self.pieces).into();
                self.pieces += 1;
                self.add(line);
                "a piece"
            }
            25..=28 => {
                let line = self.new_line("user", self.last());
                let text = format!("{line}\n");
                let at = 1 + dice.roll(text.len() - 1);
                self.append(&text[..at]);
                self.half = Some(text[at..].to_owned());
                self.lines.push(line);
                "half a line"
            }
            29..=31 => {
                let at = dice.roll(self.lines.len());
                let parent = self.lines[at]["uuid"].as_str().map(str::to_owned);
                let line = self.new_line("user", parent);
                self.add(line);
                "another branch"
            }
            32..=34 => {
                let at = dice.roll(self.lines.len());
                let mut line =
                    record("rewind", &format!("w{}", self.number), self.lines[at]["uuid"].as_str(), Value::Null);
                self.number += 1;
                line["sessionId"] = "walk".into();
                line["from"] = self.last().into();
                line.as_object_mut().unwrap().remove("message");
                self.add(line);
                "a rewind"
            }
            35 | 36 => {
                self.lines.truncate(1 + dice.roll(self.lines.len()));
                let file = OpenOptions::new().write(true).open(&self.path).unwrap();
                file.set_len(Log::text(&self.lines).len() as u64).unwrap();
                "a cut"
            }
            37 | 38 => {
                self.lines.truncate(1 + dice.roll(self.lines.len()));
                let line = self.new_line("user", self.last());
                self.lines.push(line);
                let beside = self.path.with_extension("new");
                fs::write(&beside, Log::text(&self.lines)).unwrap();
                fs::rename(&beside, &self.path).unwrap();
                "another file"
            }
            _ => {
                fs::remove_file(&self.path).unwrap();
                std::thread::sleep(Duration::from_millis(dice.roll(60) as u64));
                self.append(&Log::text(&self.lines));
                "gone and back"
            }
        }
    }
}

#[test]
fn a_reader_loses_nothing_and_gets_nothing_twice_whatever_happens() {
    const STEPS: usize = 10_000;
    const CHECKED_EVERY: usize = 40;
    let running = Running::of(Served::of(&[("walk", talk("hello", "world"))]));
    let path = running.served.folder.path().join(".sage/sessions/walk/messages.jsonl");
    let lines = fs::read_to_string(&path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut log = Log { path, lines, half: None, number: 0, pieces: 0 };
    let seed = std::env::var("SCROLLBACK_TORTURE").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1_u64);
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).max(1));
    let mut clients = [Client::new(&running, "walk"), Client::new(&running, "walk")];
    clients.iter_mut().for_each(|client| client.settle(&|| "the beginning".to_owned()));
    let mut story: Vec<&str> = Vec::new();
    for step in 1..=STEPS {
        story.push(log.step(&mut dice));
        for client in &mut clients {
            match dice.roll(12) {
                0 => client.cut(),
                1 if client.stream.is_none() => client.connect(),
                // A slow one takes a few bytes, and is cut in the middle of an event.
                2 => client.take(1 + dice.roll(300)),
                3..=7 => client.take(1 << 16),
                _ => {}
            }
        }
        if log.lines.len() > 60 {
            log.lines.truncate(3);
            fs::write(&log.path, Log::text(&log.lines)).unwrap();
            log.half = None;
        }
        if step % CHECKED_EVERY == 0 {
            if let Some(rest) = log.half.take() {
                log.append(&rest);
            }
            let what = || format!("seed {seed}, step {step}: {:?}", &story[story.len() - CHECKED_EVERY..]);
            clients.iter_mut().for_each(|client| client.settle(&what));
        }
    }
    for client in &clients {
        assert!(client.resets > 10 && client.removals > 10, "{} resets, {} removals", client.resets, client.removals);
        assert_eq!(client.repeats, Vec::<String>::new());
    }
}

#[test]
fn readers_who_take_nothing_or_come_back_all_the_time_disturb_nobody() {
    let running = Running::of(Served::of(&[("walk", talk("hello", "world"))]));
    let path = running.served.folder.path().join(".sage/sessions/walk/messages.jsonl");
    let mut log = Log { path, lines: talk("hello", "world"), half: None, number: 0, pieces: 0 };
    // They ask, and never read.
    let silent: Vec<TcpStream> =
        (0..50).map(|_| asked(&running, "/api/v1/sessions/walk/events?after=0:0", "")).collect();
    let mut client = Client::new(&running, "walk");
    client.connect();
    for step in 0..1_000 {
        let line = log.new_line(if step % 2 == 0 { "user" } else { "assistant" }, log.last());
        log.add(line);
        if step % 10 == 0 {
            drop(asked(&running, "/api/v1/sessions/walk/events", "Last-Event-ID: no such id\r\n"));
        }
        client.take(1 << 16);
    }
    client.settle(&|| "a thousand lines".to_owned());
    assert_eq!(client.repeats, Vec::<String>::new());
    drop(silent);
}

#[test]
fn an_id_that_nobody_gave_means_that_everything_is_new() {
    let running = Running::of(Served::of(&[("walk", talk("hello", "world"))]));
    for id in ["x", "5", ":5", "0:0", "\u{fffd}", "1:-1", "1:99999999999999999999"] {
        let mut stream =
            asked(&running, "/api/v1/sessions/walk/events?parts=message", &format!("Last-Event-ID: {id}\r\n"));
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let (mut text, mut piece, end) = (Vec::new(), [0; 4096], Instant::now() + PATIENCE);
        while !text.windows(7).any(|window| window == b"\"world\"") {
            assert!(Instant::now() < end, "{id:?}: {}", String::from_utf8_lossy(&text));
            let read = stream.read(&mut piece).unwrap_or_else(|_| panic!("{id:?}: {}", String::from_utf8_lossy(&text)));
            assert!(read > 0, "{id:?}");
            text.extend_from_slice(&piece[..read]);
        }
        assert!(text.windows(12).any(|window| window == b"event: reset"), "{id:?}");
    }
}

#[test]
fn a_session_that_does_not_exist_or_is_gone_is_an_error_and_not_a_stream() {
    let running = Running::of(Served::of(&[("sa", talk("hello", "world")), ("sb", talk("gone", "soon"))]));
    assert_eq!(answer(&running, "/api/v1/sessions/none/events").0, 404);
    assert_eq!(answer(&running, "/api/v1/sessions/sa/events?parts=colours").0, 400);
    fs::remove_file(running.served.folder.path().join(".sage/sessions/sb/messages.jsonl")).unwrap();
    assert_eq!(answer(&running, "/api/v1/sessions/sb/events").0, 410);
    assert_eq!(answer(&running, "/api/v1/sessions/sb/messages").0, 410);
    for export in ["/s/sb/export", "/s/sb/export?to=md"] {
        let (status, page) = answer(&running, export);
        assert_eq!(status, 410, "{export}");
        assert!(page.contains("This session is gone"), "{export}: {page}");
    }
}

#[test]
fn a_line_that_is_written_over_comes_and_a_session_that_is_deleted_ends_the_stream() {
    let running = Running::of(Served::of(&[("walk", talk("hello", &"world ".repeat(200)))]));
    let path = running.served.folder.path().join(".sage/sessions/walk/messages.jsonl");
    let mut client = Client::new(&running, "walk");
    client.settle(&|| "the beginning".to_owned());
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("hello", "hullo")).unwrap();
    client.settle(&|| "as long as it was".to_owned());
    assert_eq!(client.messages[0]["parts"][0]["text"], "hullo");
    fs::remove_file(&path).unwrap();
    rest(client.stream.take().unwrap());
    assert_eq!(answer(&running, "/api/v1/sessions/walk/events").0, 410);
}

#[test]
fn an_answer_of_ours_ends_however_its_recorder_ends_it() {
    let pieces: [(&str, Value, Option<Value>); 4] = [
        ("finished without tokens", json!({"content": ""}), None),
        ("only thought", json!({"content": [{"type": "reasoning", "text": "hm"}]}), Some(json!({"content": ""}))),
        ("cut off", json!({"content": ""}), None),
        ("failed", json!({"content": "and "}), None),
    ];
    for (what, message, more) in pieces {
        let running = Running::of(Served::of(&[("chat", talk("hello", "world"))]));
        let path = running.served.folder.path().join(".sage/sessions/chat/messages.jsonl");
        let mut log = Log { path, lines: talk("hello", "world"), half: None, number: 0, pieces: 0 };
        let prompt = log.new_line("user", log.last());
        log.add(prompt);
        let mut piece = log.new_line("assistant", log.last());
        if what == "only thought" {
            piece["message"]["content"] = json!([{"type": "reasoning", "text": "well"}]);
        }
        piece["fragment"] = json!({"seq": 0, "part": 0});
        log.add(piece.clone());
        let mut stream = asked(&running, "/api/chat/chat/stream", "");
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut begun = [0; 4096];
        assert!(stream.read(&mut begun).unwrap() > 0 && begun.starts_with(b"HTTP/1.0 200"), "{what}");
        for (seq, message) in std::iter::once(message).chain(more).enumerate() {
            piece["fragment"]["seq"] = (seq + 1).into();
            for (name, value) in message.as_object().unwrap() {
                piece["message"][name] = value.clone();
            }
            if what == "cut off" {
                piece["metadata"] = json!({"interrupted": true});
            }
            log.add(piece.clone());
        }
        if what == "failed" {
            let error = record("error", "e1", log.last().as_deref(), json!({"role": "error", "content": "overloaded"}));
            log.add(error);
        }
        let rest = rest(stream);
        assert!(rest.ends_with("data: [DONE]\n\n"), "{what}: {rest}");
        assert_eq!(answer(&running, "/api/chat/chat/stream").0, 204, "{what}");
    }
}

#[test]
fn a_running_answer_is_a_stream_that_ends_and_an_idle_session_has_none() {
    let running = Running::of(Served::of(&[("chat", talk("hello", "world"))]));
    let path = running.served.folder.path().join(".sage/sessions/chat/messages.jsonl");
    assert_eq!(answer(&running, "/api/chat/chat/stream").0, 204, "nobody writes it");
    let mut log = Log { path, lines: talk("hello", "world"), half: None, number: 0, pieces: 0 };
    let prompt = log.new_line("user", log.last());
    log.add(prompt);
    let mut piece = log.new_line("assistant", log.last());
    let mut write = |log: &mut Log, text: &str, usage: Option<Value>| {
        piece["fragment"] = json!({"seq": log.pieces, "part": 0});
        piece["message"]["content"] = text.into();
        if let Some(usage) = usage {
            piece["usage"] = usage;
        }
        log.pieces += 1;
        log.add(piece.clone());
    };
    write(&mut log, "High ", None);
    let mut stream = asked(&running, "/api/chat/chat/stream", "");
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut text = String::new();
    until(&mut stream, &mut text, "High ");
    assert!(text.contains("x-vercel-ai-ui-message-stream: v1") && text.contains("text/event-stream"), "{text}");
    write(&mut log, "water.", None);
    until(&mut stream, &mut text, "water.");
    write(&mut log, "", Some(json!({"inputTokens": 2, "outputTokens": 1})));
    until(&mut stream, &mut text, "data: [DONE]\n\n");
    let chunks: Vec<Value> =
        text.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok()).collect();
    assert_eq!(chunks.first().map(|chunk| &chunk["type"]), Some(&json!("start")));
    assert_eq!(chunks.last().map(|chunk| &chunk["type"]), Some(&json!("finish")), "{text}");
    assert_eq!(answer(&running, "/api/chat/chat/stream").0, 204, "it has ended");
}

#[test]
fn a_call_that_is_running_ends_without_a_result_when_something_else_follows() {
    let running = Running::of(Served::of(&[("walk", talk("hello", "world"))]));
    let path = running.served.folder.path().join(".sage/sessions/walk/messages.jsonl");
    let mut log = Log { path, lines: talk("hello", "world"), half: None, number: 0, pieces: 0 };
    let mut stream = asked(&running, "/api/v1/sessions/walk/events?parts=html&after=0:0", "");
    let mut call = log.new_line("assistant", log.last());
    call["message"]["toolCalls"] = json!([{"id": "c1", "name": "bash", "arguments": {"command": "make"}}]);
    let prompt = log.new_line("user", call["uuid"].as_str().map(str::to_owned));
    let mut text = String::new();
    until(&mut stream, &mut text, "world");
    log.add(call);
    until(&mut stream, &mut text, "tool-note\\\">running<");
    assert!(!text.contains("no result"), "{text}");
    log.add(prompt);
    until(&mut stream, &mut text, "tool-note\\\">no result was recorded<");
}

/// Reads on until something is there.
fn until(stream: &mut TcpStream, text: &mut String, wanted: &str) {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let (mut piece, end) = ([0; 4096], Instant::now() + PATIENCE);
    while !text.contains(wanted) {
        assert!(Instant::now() < end, "{wanted} does not come: {text}");
        let read = stream.read(&mut piece).unwrap_or_else(|error| panic!("{error}, {wanted}: {text}"));
        assert!(read > 0, "{wanted} did not come: {text}");
        *text += &String::from_utf8_lossy(&piece[..read]);
    }
}
