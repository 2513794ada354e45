//! Endpoints: one that plays a script, and one that keeps what it is asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;

use serde_json::{Value, json};

use crate::support::apis::complaints;
use crate::support::messages;
use crate::{Place, Spoken, said, speak};

/// Answers as many requests as there are answers; the bodies that it was sent.
fn serve(answers: Vec<String>) -> (String, JoinHandle<Vec<Value>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let served = std::thread::spawn(move || {
        answers.iter().map(|answer| answer_one(listener.accept().unwrap().0, answer)).collect()
    });
    (url, served)
}

fn answer_one(mut stream: TcpStream, answer: &str) -> Value {
    let body = request(&stream).unwrap();
    stream.write_all(answer.as_bytes()).unwrap();
    body
}

/// The body of a request.
fn request(stream: &TcpStream) -> Option<Value> {
    let mut reader = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line).ok()? > 2 {
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

/// The address of an endpoint that plays `[{"think": "…", "text": "…", "calls": [{"name": "…", "input": {…}}]}, …]` word by word,
/// and starts again after the last answer. Which one is next depends on how many answers the request has.
pub(crate) fn play(script: &Value) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let turns = script.as_array().unwrap().clone();
    // It ends with the test program. An agent may be killed at any time.
    std::thread::spawn(move || {
        let mut call_count = 0;
        for stream in listener.incoming().flatten() {
            if let Some(body) = request(&stream) {
                play_one(stream, &turns, &body["messages"], &mut call_count).ok();
            }
        }
    });
    url
}

fn play_one(mut stream: TcpStream, turns: &[Value], messages: &Value, call_count: &mut u64) -> std::io::Result<()> {
    let messages = messages.as_array().unwrap();
    let turn = &turns[messages.iter().filter(|message| message["role"] == "assistant").count() % turns.len()];
    let mut deltas = Vec::new();
    for (key, name) in [("think", "reasoning_content"), ("text", "content")] {
        let words = turn[key].as_str().unwrap_or_default().split_inclusive(' ');
        deltas.extend(words.map(|word| json!({"model": "script", "choices": [{"delta": {name: word}}]})));
    }
    for call in turn["calls"].as_array().into_iter().flatten() {
        *call_count += 1;
        let function = json!({"name": call["name"], "arguments": call["input"].to_string()});
        let call = json!({"index": call_count, "id": format!("call-{call_count}"), "function": function});
        deltas.push(json!({"model": "script", "choices": [{"delta": {"tool_calls": [call]}}]}));
    }
    deltas.push(json!({"choices": [{"delta": {}, "finish_reason": "stop"}]}));
    deltas.push(json!({"choices": [], "usage": {"prompt_tokens": messages.len(), "completion_tokens": 1}}));
    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
    deltas.iter().try_for_each(|delta| stream.write_all(format!("data: {delta}\n\n").as_bytes()))
}

fn events(events: &[Value]) -> String {
    let lines: String = events.iter().map(|event| format!("event: e\ndata: {event}\n\n")).collect();
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n{lines}")
}

/// Thinking, words and a call; then words.
fn openai() -> Vec<String> {
    let delta = |delta: Value| json!({"model": "m-1", "choices": [{"index": 0, "delta": delta}]});
    let call = |id: Value, name: Value, arguments: &str| {
        let function = json!({"name": name, "arguments": arguments});
        delta(json!({"tool_calls": [{"index": 0, "id": id, "function": function}]}))
    };
    let end = |reason: &str| json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]});
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 7}});
    vec![
        events(&[
            delta(json!({"reasoning_content": "Let me look."})),
            delta(json!({"content": "I "})),
            delta(json!({"content": "look."})),
            call(json!("call_1"), json!("read_file"), "{\"path\": "),
            call(Value::Null, Value::Null, "\"tide.txt\"}"),
            end("tool_calls"),
            usage.clone(),
        ]),
        events(&[delta(json!({"content": "It is "})), delta(json!({"content": "high."})), end("stop"), usage]),
    ]
}

fn chat(place: &Place, url: &str, more: &[&str], lines: &str) -> Spoken {
    speak(place.agent(more).env("OPENAI_BASE_URL", format!("{url}/v1")), lines)
}

#[test]
fn a_resumed_session_is_sent_whole() {
    for format in crate::FORMATS {
        let place = Place::new(format, &json!([]));
        std::fs::write(place.cwd().join("tide.txt"), "flood").unwrap();
        let (url, served) = serve(openai());
        let spoken = chat(&place, &url, &[], "How is the tide?\n").well();
        assert!(spoken.out.contains("I look.") && spoken.out.contains("It is high."), "{}", spoken.out);
        let asked = served.join().unwrap();
        let in_turn = &asked[1]["messages"];
        assert_eq!(complaints("openai", format, in_turn), [""; 0], "{format}: {in_turn}");
        assert!(in_turn.to_string().contains("flood"), "{format}: {in_turn}");
        assert_eq!(asked[0]["model"], "m-1");

        let (url, served) = serve(openai().split_off(1));
        chat(&place, &url, &["--continue"], "And now?\n").well();
        let sent = served.join().unwrap().remove(0)["messages"].take();
        assert_eq!(complaints("openai", format, &sent), [""; 0], "{format}: {sent}");
        let text = sent.to_string();
        for words in ["How is the tide?", "It is high.", "And now?"] {
            assert_eq!(text.matches(words).count(), 1, "{format}: {sent}");
        }
        // fluux has no place for an answer that calls tools.
        assert_eq!(text.contains("flood"), format != "fluux", "{format}: {sent}");
        let session = place.newest();
        assert!(session.issues().is_empty(), "{format}: {:?}", session.issues());
        assert_eq!(said(&messages(&session)).last().unwrap(), "model: It is high.");
    }
}

#[test]
fn an_answer_that_breaks_off_is_kept_and_the_failure_is_told() {
    let (whole, cut) = (openai().remove(1), "data: {\"model\"");
    let half = whole.split("high.").next().unwrap().rsplit_once("event:").unwrap().0.to_owned();
    let failures = [
        ("HTTP/1.1 500 Oops\r\n\r\nno tide today".to_owned(), "no tide today", false),
        (half.clone(), "broke off", true),
        (format!("{half}data: {{\"error\": {{\"message\": \"overloaded\"}}}}\n\n"), "overloaded", true),
        (format!("{half}{cut}"), "EOF", true),
        (String::new(), "", false),
    ];
    for (answer, why, has_words) in failures {
        for format in crate::FORMATS {
            let place = Place::new(format, &json!([]));
            let (url, served) = serve(vec![answer.clone(), whole.clone()]);
            let spoken = chat(&place, &url, &[], "one\ntwo\n").well();
            assert!(spoken.err.contains(why), "{format} {why}: {}", spoken.err);
            let sent = &served.join().unwrap()[1]["messages"];
            assert_eq!(complaints("openai", format, sent), [""; 0], "{format} {why}: {sent}");
            assert_eq!(sent.to_string().contains("It is "), has_words, "{format} {why}: {sent}");
            assert_eq!(said(&messages(&place.newest())).last().unwrap(), "model: It is high.", "{format} {why}");
        }
    }
}
