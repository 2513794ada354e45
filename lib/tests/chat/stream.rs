//! What endpoints stream, event by event, and the pieces of an answer that come of it.

use scrollback::model::Content;
use scrollback::write::Delta;
use serde_json::json;

use crate::chat::model::Stream;

/// What a stream of events says, a delta a line, and how it ended.
fn check(events: &[&str]) -> String {
    let mut stream = Stream::default();
    let (mut told, mut answer) = (Vec::new(), Content::default());
    for event in events {
        match stream.read(&format!("data: {event}")) {
            Ok(deltas) => deltas.into_iter().for_each(|delta| {
                told.push(match &delta {
                    Delta::Model(model) => format!("model {model}"),
                    Delta::Text(text) => format!("text {text:?}"),
                    Delta::Reasoning(text) => format!("thinks {text:?}"),
                    Delta::End(about) => format!("end {}", json!(about)),
                    Delta::Part(part) => format!("part {}", json!(part)),
                    Delta::About(_) => "about".to_owned(),
                });
                delta.add_to(&mut answer);
            }),
            Err(why) => told.push(format!("broken off: {why}")),
        }
    }
    let going_on = json!(answer.parts).to_string().matches("streaming").count();
    told.extend((going_on > 0).then(|| format!("{going_on} of {} may go on", answer.parts.len())));
    told.push(match stream.end() {
        Ok(usage) => format!("whole {}", json!(usage)),
        Err(why) => format!("not whole: {why}"),
    });
    told.join("\n")
}

#[test]
fn an_answer_of_openai() {
    insta::assert_snapshot!(check(&[
        r#"{"model": "m", "choices": [{"delta": {"role": "assistant", "content": ""}}]}"#,
        r#"{"model": "m", "choices": [{"delta": {"reasoning_content": "Hm"}}]}"#,
        r#"{"model": "m", "choices": [{"delta": {"reasoning": "m."}}]}"#,
        r#"{"model": "m", "choices": [{"delta": {"content": "At "}}]}"#,
        r#"{"model": "m", "choices": [{"delta": {"content": "4."}}]}"#,
        r#"{"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "read", "arguments": "{\"pa"}}]}}]}"#,
        r#"{"choices": [{"delta": {"tool_calls": [{"index": 1, "id": "c2", "function": {"name": "now", "arguments": ""}}]}}]}"#,
        r#"{"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "c1", "function": {"arguments": "th\": 1}"}}]}}]}"#,
        r#"{"choices": [{"delta": {"a_new_field": 1}}], "error": null}"#,
        r#"{"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}"#,
        r#"{"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 6}, "completion_tokens_details": {"reasoning_tokens": 1}}}"#,
        "[DONE]",
    ]), @r#"
    model m
    thinks "Hm"
    thinks "m."
    text "At "
    text "4."
    part {"type":"dynamic-tool","toolName":"read","toolCallId":"c1","state":"input-available","input":{"path":1}}
    part {"type":"dynamic-tool","toolName":"now","toolCallId":"c2","state":"input-available","input":{}}
    whole {"input":3,"output":4,"cacheRead":6,"reasoning":1}
    "#);
    // Calls that the endpoint does not count, arguments that are no JSON.
    insta::assert_snapshot!(check(&[
        r#"{"choices": [{"delta": {"tool_calls": [{"id": "c1", "function": {"name": "a", "arguments": "{\"x\":"}}]}}]}"#,
        r#"{"choices": [{"delta": {"tool_calls": [{"function": {"arguments": "1}"}}]}}]}"#,
        r#"{"choices": [{"delta": {"tool_calls": [{"id": "c2", "function": {"name": "b", "arguments": "{"}}]}, "finish_reason": "length"}]}"#,
    ]), @r#"
    part {"type":"dynamic-tool","toolName":"a","toolCallId":"c1","state":"input-available","input":{"x":1}}
    part {"type":"dynamic-tool","toolName":"b","toolCallId":"c2","state":"input-available","input":"{"}
    whole {}
    "#);
}

#[test]
fn calls_of_endpoints_that_count_otherwise() {
    let piece = |piece: &str| format!(r#"{{"choices": [{{"delta": {{"tool_calls": [{piece}]}}}}]}}"#);
    let (a, b) = (
        r#""id": "c1", "function": {"name": "a", "arguments": "#,
        r#""id": "c2", "function": {"name": "b", "arguments": "#,
    );
    let (one, two) = (r#""{\"x\":""#, r#""1}""#);
    for pieces in [
        // Id and name again with each piece, without a number.
        [format!("{{{a}{one}}}}}"), format!("{{{a}{two}}}}}"), format!("{{{b}{one}}}}}"), format!("{{{b}{two}}}}}")],
        // The same, counted.
        [
            format!(r#"{{"index": 0, {a}{one}}}}}"#),
            format!(r#"{{"index": 0, {a}{two}}}}}"#),
            format!(r#"{{"index": 1, {b}{one}}}}}"#),
            format!(r#"{{"index": 1, {b}{two}}}}}"#),
        ],
        // Every call is the first.
        [
            format!(r#"{{"index": 0, {a}{one}}}}}"#),
            format!(r#"{{"index": 0, "function": {{"arguments": {two}}}}}"#),
            format!(r#"{{"index": 0, {b}{one}}}}}"#),
            format!(r#"{{"index": 0, "function": {{"arguments": {two}}}}}"#),
        ],
        // One after the other, by turns.
        [
            format!(r#"{{"index": 0, {a}{one}}}}}"#),
            format!(r#"{{"index": 1, {b}{one}}}}}"#),
            format!(r#"{{"index": 0, "function": {{"arguments": {two}}}}}"#),
            format!(r#"{{"index": 1, "function": {{"arguments": {two}}}}}"#),
        ],
    ] {
        let mut events: Vec<String> = pieces.iter().map(|text| piece(text)).collect();
        events.push(r#"{"choices": [{"finish_reason": "tool_calls"}]}"#.to_owned());
        let came = check(&events.iter().map(String::as_str).collect::<Vec<_>>());
        let call = |id, name| {
            format!(
                r#"part {{"type":"dynamic-tool","toolName":"{name}","toolCallId":"{id}","state":"input-available","input":{{"x":1}}}}"#
            )
        };
        assert_eq!(came, format!("{}\n{}\nwhole {{}}", call("c1", "a"), call("c2", "b")), "{pieces:?}");
    }
}

#[test]
fn an_incomplete_answer_is_an_error() {
    for (events, expected) in [
        (
            vec![r#"{"error": {}}"#, r#"{"choices": [{"finish_reason": "stop"}]}"#],
            "broken off: the endpoint failed\nwhole {}",
        ),
        (vec![r#"{"choices": [{"delta": {"content": "A"}}]}"#], "text \"A\"\n1 of 1 may go on\nnot whole"),
        (vec![r#"{"error": {"message": "No."}}"#], "broken off: No.\nnot whole"),
        (vec!["{", "7", "null", "[]", r#"{"choices": 1}"#], "broken off: an event is not JSON"),
        (vec!["7", "[]", r#"{"type": 1}"#], "not whole"),
    ] {
        let came = check(&events);
        assert!(came.starts_with(expected), "{came}");
    }
    // Names and comments of events are not data.
    for line in ["event: ping", ": keep-alive", "", "id: 7", "data: [DONE]", "data:[DONE]"] {
        assert_eq!(Stream::default().read(line).unwrap(), Vec::new(), "{line}");
    }
}
