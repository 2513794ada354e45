//! Lines in all three formats: what is recorded of each, and what is refused.

use std::path::Path;

use scrollback::model::{Body, Content, Message, Part, Role, Sdk, Severity, ToolState};
use scrollback::session::{Session, Source};
use scrollback::view::stream::{Chunks, Update};
use scrollback::write::Recorder;
use serde_json::{Value, json};

use super::Ingest;
use crate::lib_support::place::{CWD, PROJECT, store};
use crate::lib_support::{self as support, reading};
use crate::record::sse::{Events, Joined};

/// The session that some lines became, and the reports about them.
struct Recorded {
    session: Session,
    /// By number: why a line was refused, its losses, and notes.
    reports: Vec<String>,
    _folder: tempfile::TempDir,
}

fn record_quietly(lines: &[&[u8]]) -> Recorded {
    let (folder, store) = store(support::native());
    let mut recorder = store.create(Path::new(PROJECT)).unwrap();
    let (mut events, mut ingest, mut reports) = (Events::default(), Ingest::default(), Vec::new());
    for Joined { numbers, text } in lines.iter().zip(1..).flat_map(|(line, seq)| events.add(seq, line.to_vec())) {
        let seq = numbers[0];
        let parsed = match ingest.parse(&text) {
            Ok(parsed) => parsed,
            Err(refused) => {
                reports.push(format!("{seq} refused: {refused}"));
                continue;
            }
        };
        reports.extend(parsed.notes.iter().map(|note| format!("{seq} note: {note}")));
        reports.extend(parsed.losses.iter().map(|loss| format!("{seq} {:?}: {}", loss.kind, loss.what)));
        for op in parsed.ops {
            match ingest.apply(&op, &mut recorder) {
                Ok(entry) => {
                    let losses = entry.saved.map(|saved| saved.losses).unwrap_or_default();
                    reports.extend(losses.iter().map(|loss| format!("{seq} {:?}: {}", loss.kind, loss.what)));
                }
                Err(error) => reports.push(format!("{seq} refused: {error}")),
            }
        }
    }
    for op in ingest.end().ops {
        ingest.apply(&op, &mut recorder).unwrap();
    }
    let path = recorder.path().unwrap().to_path_buf();
    recorder.close().unwrap();
    let session = Session::open(&Source::file(support::native(), &path), &reading()).unwrap();
    Recorded { session, reports, _folder: folder }
}

/// The same; the session must have no errors.
fn record(lines: &[&[u8]]) -> Recorded {
    let recorded = record_quietly(lines);
    let wrong = recorded.session.issues().iter().filter(|issue| issue.kind.severity() == Severity::Error);
    assert_eq!(wrong.collect::<Vec<_>>(), Vec::<&scrollback::model::Issue>::new(), "{:?}", recorded.reports);
    recorded
}

fn messages(session: &Session) -> Vec<Message> {
    if session.head().is_some() { support::messages(session) } else { Vec::new() }
}

/// What a reader sees of messages: consecutive answers are one.
fn essence(messages: &[Message]) -> Vec<(Role, Vec<String>)> {
    let mut told: Vec<(Role, Vec<String>)> = Vec::new();
    for message in messages {
        let parts: Vec<String> = message.parts.iter().filter_map(essential).collect();
        match told.last_mut() {
            Some((Role::Assistant, known)) if message.role == Role::Assistant => known.extend(parts),
            _ if parts.is_empty() => {}
            _ => told.push((message.role, parts)),
        }
    }
    told
}

fn repeats_a_call(messages: &[Message]) -> bool {
    let parts = messages.iter().flat_map(|message| &message.parts);
    let mut seen = std::collections::HashSet::new();
    parts.into_iter().any(|part| matches!(part, Part::Tool(call) if !seen.insert(&call.call_id)))
}

fn essential(part: &Part) -> Option<String> {
    Some(match part {
        Part::StepStart => return None,
        Part::Text(text) if text.text.is_empty() => return None,
        Part::Text(text) => text.text.clone(),
        Part::Reasoning(text) if text.text.is_empty() && text.provider_metadata.is_none() => return None,
        Part::Reasoning(text) => format!("({}) {:?}", text.text, text.provider_metadata),
        Part::File(file) => format!("{} {} {:?}", file.media_type, file.url, file.filename),
        Part::Tool(call) => {
            let input = match &call.state {
                ToolState::OutputError { input, raw_input, .. } => input.as_ref().or(raw_input.as_ref()),
                _ => call.input(),
            };
            let state = serde_json::to_value(&call.state).unwrap();
            let rest = (&state["state"], &state["output"], &state["errorText"]);
            format!("{} {} {:?} {rest:?}", call.name, call.call_id, input.filter(|input| !input.is_null()))
        }
        other => serde_json::to_string(other).unwrap(),
    })
}

/// The branch, one line for each record, then the reports.
fn check(lines: &str) -> String {
    let lines: Vec<&[u8]> = lines.lines().map(|line| line.trim().as_bytes()).filter(|line| !line.is_empty()).collect();
    let recorded = record(&lines);
    let mut told = recorded.session.head().map(|head| outline(&recorded.session, head)).unwrap_or_default();
    told.extend(recorded.reports);
    told.join("\n")
}

fn outline(session: &Session, head: scrollback::session::RecordRef<'_>) -> Vec<String> {
    let line = |record: &scrollback::session::RecordRef<'_>| {
        let body = record.body().unwrap();
        let words = match &body {
            Body::Compaction(compaction) => compaction.summary.clone().unwrap_or_default(),
            body => body.content().map(words).unwrap_or_default(),
        };
        format!("{}: {words}", record.kind().name()).trim_end().to_owned()
    };
    session.branch(head).records.iter().map(line).collect()
}

fn words(said: &Content) -> String {
    let part = |part: &Part| match part {
        Part::Text(text) => text.text.clone(),
        Part::Reasoning(text) => {
            let about = text.provider_metadata.as_ref().map(|about| format!(" {}", json!(about)));
            format!("({}{})", text.text, about.unwrap_or_default())
        }
        Part::Tool(call) => format!("[{} {} {}]", call.name, call.call_id, call.input().unwrap_or(&Value::Null)),
        other => serde_json::to_string(other).unwrap(),
    };
    let mut words: Vec<String> = said.parts.iter().map(part).collect();
    words.extend(said.results.iter().map(|result| {
        let what = format!("{:?}", result.outcome);
        format!("<{} {} {what}>", result.call_id, result.output)
    }));
    words.extend(said.model.as_ref().map(|model| format!("model {model}")));
    words.extend(said.sender.as_ref().map(|sender| format!("by {sender}")));
    words.extend(said.usage.map(|usage| format!("cost {}", json!(usage))));
    words.extend(said.todos.as_ref().map(|todos| format!("todos {}", json!(todos))));
    words.extend(said.thinking.as_ref().map(|mode| format!("thinking {}", json!(mode))));
    words.extend((!said.metadata.is_empty()).then(|| scrollback::model::json::to_string(&said.metadata)));
    words.extend(said.error.as_ref().map(|kind| format!("error {kind}")));
    words.join(" ")
}

#[test]
fn native_lines() {
    insta::assert_snapshot!(check(r#"
        {"user": "When is high water?"}
        {"user": {"content": ["Look:", {"type": "text", "text": "this"}], "attachments": [{"url": "https://x.example/a.png", "mimeType": "image/png", "name": "a.png"}], "sender": "ada", "todos": ["look"], "thinking": "high"}}
        {"assistant": {"content": "Let me look.", "toolCalls": [{"id": "c1", "name": "read", "arguments": {"path": "a"}}, {"id": "c2", "type": "function", "function": {"name": "run", "arguments": "{\"cmd\":\"ls\"}"}}], "model": "m-1", "usage": {"input_tokens": 5, "output_tokens": 2, "cache_read_input_tokens": 7}}}
        {"toolResult": [{"callId": "c1", "output": "A", "durationMs": 3}, {"callId": "c2", "error": "no such file"}]}
        {"assistant": {"content": [{"type": "thinking", "thinking": "Again?", "signature": "sig"}, {"type": "tool_use", "id": "c4", "name": "read", "input": {}}]}}
        {"toolResult": {"callId": "c4", "output": {"a": 1}, "isError": true, "mood": "bad"}}
        {"assistant": "Done."}
        {"usage": {"prompt_tokens": 10, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}, "total_tokens": 13}}
        {"thinking": {"level": "low", "disabled": false, "triggers": ["think"]}}
        {"system": "Be brief."}
        {"error": {"kind": "rate_limit", "text": "429", "retryAfter": 7}}
        {"compaction": {"summary": "Tides.", "tokensBefore": 900}}
        {"delta": {"reasoning": "Hm"}}
        {"delta": {"text": "At "}}
        {"delta": {"text": "four."}}
        {"delta": {"part": {"type": "tool_use", "id": "c3", "name": "read", "input": {}}}}
        {"finish": {"usage": {"input": 1, "output": 2}}}
        {"toolResult": {"callId": "c3", "denied": "not now"}}
    "#), @r#"
    user: When is high water?
    user: Look: this {"type":"file","mediaType":"image/png","filename":"a.png","url":"https://x.example/a.png"} by ada todos [{"content":"look","status":"pending"}] thinking {"level":"high","disabled":false,"triggers":[]}
    assistant: Let me look. [read c1 {"path":"a"}] [run c2 {"cmd":"ls"}] model m-1 cost {"input":5,"output":2,"cacheRead":7}
    tool-result: <c1 "A" Done> <c2 null Failed("no such file")>
    assistant: (Again? {"anthropic":{"signature":"sig"}}) [read c4 {}]
    tool-result: <c4 {"a":1} Failed("{\"a\":1}")>
    assistant: Done. cost {"input":6,"output":3,"cacheRead":4} thinking {"level":"low","disabled":false,"triggers":["think"]}
    system: Be brief.
    system: 429 {"retryAfter":7} error rate_limit
    compaction: Tides.
    assistant: (Hm) At four. [read c3 {}] cost {"input":1,"output":2}
    tool-result: <c3 null Denied(Some("not now"))>
    6 Dropped: mood
    "#);
}

#[test]
fn invalid_lines_are_refused_and_the_others_recorded() {
    insta::assert_snapshot!(check(r#"
        {"user": "One"}
        {"users": "Two"}
        {}
        []
        "text"
        {"user": "a", "assistant": "b"}
        {"user": {}}
        {"user": 7}
        {"user": {"content": [7]}}
        {"user": {"content": {"type": "unheard-of"}}}
        {"assistant": {"content": "x", "toolCalls": [{"id": "c"}]}}
        {"toolResult": {"output": "whose?"}}
        {"toolResult": []}
        {"todos": "none"}
        {"usage": {"tokens": 7}}
        {"usage": {"input": -1}}
        {"title": "  "}
        {"rewind": "nowhere"}
        {"delta": {"txt": "x"}}
        {"finish": {}}
        {"type": "unheard-of"}
        {"type": "text-delta", "id": "t", "delta": "x"}
        {"type": "text-end", "id": "t"}
        {"type": "tool-input-delta", "toolCallId": "c", "inputTextDelta": "{"}
        {"type": "tool-approval-response", "approvalId": "a", "approved": true}
        {"type": "source-url", "sourceId": "s"}
        {"role": "nobody", "content": "x"}
        {"user": "unfinished
        {"user": 1e999}
        {"user": "Last"}
    "#), @r#"
    user: One
    user: Last
    2 refused: unknown key "users"; known keys: user, assistant, toolResult, system, todos, thinking, usage, title, compaction, error, rewind, snapshot, restore, delta, finish, message
    3 refused: an empty object; known keys: user, assistant, toolResult, system, todos, thinking, usage, title, compaction, error, rewind, snapshot, restore, delta, finish, message
    4 refused: a line is a JSON object, such as {"user": "…"}
    5 refused: a line is a JSON object, such as {"user": "…"}
    6 refused: user and assistant need a line each
    7 refused: user: content is missing
    8 refused: user: content is 7 and should be a text or a list of parts
    9 refused: user: content is 7 and should be a list of texts and parts
    10 refused: user: a part of type "unheard-of" is incomplete or unknown
    11 refused: assistant: name is missing
    12 refused: toolResult: callId is missing
    13 refused: toolResult: an empty list
    14 refused: todos: todos is "none" and should be a list
    15 refused: usage: a usage without tokens; known: input, output, cacheRead, cacheWrite, reasoning, and the names of Anthropic and OpenAI
    16 refused: usage: input is -1 and should be a whole number, not negative
    17 refused: title: a title is one line of 1 to 500 characters
    18 refused: no record "nowhere"
    19 refused: delta: no known field; known: text, reasoning, part, toolCalls, model, end
    20 refused: no answer was started
    21 refused: unknown type "unheard-of"; known keys: user, assistant, toolResult, system, todos, thinking, usage, title, compaction, error, rewind, snapshot, restore, delta, finish, message
    22 refused: text-delta: nothing with the id "t" has begun
    23 refused: text-end: nothing with the id "t" has begun
    24 refused: tool-input-delta: nothing with the id "c" has begun
    25 refused: tool-approval-response: nothing with the id "a" has begun
    26 refused: source-url: incomplete
    27 refused: unknown role "nobody"; known: user, assistant, system, tool
    28 refused: not JSON at column 20: EOF while parsing a string
    29 refused: user is 1e999 and should be a text, a list or an object
    "#);
}

#[test]
fn chunks_of_a_stream() {
    insta::assert_snapshot!(check(r#"
        data: {"type": "start", "messageId": "m1", "messageMetadata": {"model": "m-1", "createdAt": 7}}
        : a comment
        event: message
        {"type": "start-step"}
        {"type": "reasoning-start", "id": "r"}
        {"type": "reasoning-delta", "id": "r", "delta": "Let "}
        {"type": "reasoning-delta", "id": "r", "delta": "me see."}
        {"type": "reasoning-end", "id": "r", "providerMetadata": {"anthropic": {"signature": "sig"}}}
        {"type": "text-start", "id": "a"}
        {"type": "text-start", "id": "b"}
        {"type": "text-delta", "id": "a", "delta": "First, "}
        {"type": "text-delta", "id": "b", "delta": "Second, "}
        {"type": "text-delta", "id": "a", "delta": "first."}
        {"type": "text-end", "id": "a"}
        {"type": "text-delta", "id": "b", "delta": "second."}
        {"type": "text-end", "id": "b"}
        {"type": "tool-input-start", "toolCallId": "c1", "toolName": "read", "dynamic": true}
        {"type": "tool-input-delta", "toolCallId": "c1", "inputTextDelta": "{\"path\""}
        {"type": "tool-input-available", "toolCallId": "c1", "toolName": "read", "input": {"path": "a"}}
        {"type": "tool-output-available", "toolCallId": "c1", "output": "half", "preliminary": true}
        {"type": "tool-output-available", "toolCallId": "c1", "output": "A"}
        {"type": "tool-input-available", "toolCallId": "c2", "toolName": "run", "input": {}}
        {"type": "tool-approval-request", "approvalId": "q1", "toolCallId": "c2"}
        {"type": "tool-approval-response", "approvalId": "q1", "approved": false, "reason": "no"}
        {"type": "tool-output-denied", "toolCallId": "c2"}
        {"type": "tool-input-error", "toolCallId": "c3", "toolName": "run", "input": "{", "errorText": "bad input"}
        {"type": "data-weather", "id": "w", "data": {"sky": "grey"}}
        {"type": "data-weather", "id": "w", "data": {"sky": "blue"}}
        {"type": "data-progress", "data": 7, "transient": true}
        {"type": "source-url", "sourceId": "s", "url": "https://x.example"}
        {"type": "file", "mediaType": "image/png", "url": "https://x.example/a.png"}
        {"type": "finish-step"}
        {"type": "start-step"}
        {"type": "text-start", "id": "c"}
        {"type": "text-delta", "id": "c", "delta": "Wrong."}
        {"type": "reset-step"}
        {"type": "text-start", "id": "c"}
        {"type": "text-delta", "id": "c", "delta": "Right."}
        {"type": "finish", "messageMetadata": {"usage": {"inputTokens": 9, "outputTokens": 4, "cachedInputTokens": 2}}}
        data: [DONE]
        {"type": "start"}
        {"type": "tool-input-start", "toolCallId": "c4", "toolName": "read"}
        {"type": "tool-input-delta", "toolCallId": "c4", "inputTextDelta": "{"}
        {"type": "abort", "reason": "enough"}
        {"type": "error", "errorText": "overloaded"}
    "#), @r#"
    assistant: (Let me see. {"anthropic":{"signature":"sig"}}) First, first. Second, second. [read c1 {"path":"a"}] [run c2 {}] [run c3 "{"] {"type":"data-weather","id":"w","data":{"sky":"blue"}} {"type":"source-url","sourceId":"s","url":"https://x.example"} {"type":"file","mediaType":"image/png","url":"https://x.example/a.png"} model m-1 {"createdAt":7}
    tool-result: <c1 "half" Done>
    tool-result: <c1 "A" Done>
    tool-result: <c2 null Denied(Some("no"))>
    tool-result: <c3 "bad input" Failed("bad input")>
    rewind:
    assistant: Right. cost {"input":7,"output":4,"cacheRead":2}
    assistant: [read c4 "{"]
    system: enough error abort
    system: overloaded error error
    1 Dropped: messageId
    "#);
}

#[test]
fn the_stream_of_claude_code() {
    insta::assert_snapshot!(check(r#"
        {"type": "system", "subtype": "init", "session_id": "s", "model": "claude-x", "cwd": "/gone", "tools": []}
        {"type": "user", "session_id": "s", "message": {"role": "user", "content": "When?"}}
        {"type": "stream_event", "session_id": "s", "event": {"type": "message_start", "message": {"id": "m1", "model": "claude-x", "usage": {"input_tokens": 3, "output_tokens": 1}}}}
        {"type": "stream_event", "session_id": "s", "event": {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}}}
        {"type": "stream_event", "session_id": "s", "event": {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm."}}}
        {"type": "assistant", "session_id": "s", "parent_tool_use_id": null, "message": {"id": "m1", "role": "assistant", "model": "claude-x", "content": [{"type": "thinking", "thinking": "Hm.", "signature": "sig"}], "usage": {"input_tokens": 3, "output_tokens": 1}}}
        {"type": "stream_event", "session_id": "s", "event": {"type": "content_block_stop", "index": 0}}
        {"type": "stream_event", "session_id": "s", "event": {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}}}
        {"type": "stream_event", "session_id": "s", "event": {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Let me "}}}
        {"type": "stream_event", "session_id": "s", "event": {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "look."}}}
        {"type": "stream_event", "session_id": "s", "event": {"type": "content_block_stop", "index": 1}}
        {"type": "assistant", "session_id": "s", "message": {"id": "m1", "role": "assistant", "model": "claude-x", "content": [{"type": "text", "text": "Let me look."}], "usage": {"input_tokens": 3, "output_tokens": 1}}}
        {"type": "assistant", "session_id": "s", "message": {"id": "m1", "role": "assistant", "model": "claude-x", "content": [{"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "a"}}], "usage": {"input_tokens": 3, "output_tokens": 1}}}
        {"type": "assistant", "session_id": "s", "parent_tool_use_id": "t1", "message": {"id": "m9", "role": "assistant", "content": [{"type": "text", "text": "inner"}]}}
        {"type": "user", "session_id": "s", "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "04:12"}]}, "tool_use_result": {"durationMs": 5}}
        {"type": "assistant", "session_id": "s", "message": {"id": "m1", "role": "assistant", "model": "claude-x", "content": [{"type": "tool_use", "id": "t2", "name": "Read", "input": {"file_path": "b"}}], "usage": {"input_tokens": 3, "output_tokens": 20}}}
        {"type": "user", "session_id": "s", "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t2", "content": "gone", "is_error": true}]}}
        {"type": "rate_limit_event", "session_id": "s", "rate_limit_info": {}}
        {"type": "rate_limit_event", "session_id": "s", "rate_limit_info": {}}
        {"type": "assistant", "session_id": "s", "message": {"id": "m2", "role": "assistant", "model": "claude-x", "content": [{"type": "text", "text": "At 04:12."}], "usage": {"input_tokens": 30, "output_tokens": 2}}}
        {"type": "result", "subtype": "success", "is_error": false, "session_id": "s", "result": "At 04:12.", "usage": {"input_tokens": 33, "output_tokens": 27, "cache_read_input_tokens": 0}}
        {"type": "user", "session_id": "s", "message": {"role": "user", "content": [{"type": "text", "text": "And then?"}]}}
        {"type": "result", "subtype": "error_max_turns", "is_error": true, "session_id": "s"}
    "#), @r#"
    user: When?
    assistant: (Hm. {"anthropic":{"signature":"sig"}}) Let me look. [Read t1 {"file_path":"a"}] [Read t2 {"file_path":"b"}] model claude-x cost {"input":3,"output":20}
    tool-result: <t1 "04:12" Done>
    tool-result: <t2 "gone" Failed("gone")>
    assistant: At 04:12. model claude-x cost {"input":30,"output":7,"cacheRead":0}
    user: And then?
    system: The turn failed. error error_max_turns
    14 note: Messages of sub-agents are not recorded.
    18 note: Lines of type rate_limit_event are not recorded.
    "#);
}

#[test]
fn what_claude_code_says_of_a_failed_turn_is_no_answer() {
    insta::assert_snapshot!(check(r#"
        {"type": "user", "session_id": "s", "message": {"role": "user", "content": "One"}}
        {"type": "assistant", "session_id": "s", "message": {"id": "m1", "role": "assistant", "model": "<synthetic>", "content": [{"type": "text", "text": "API Error: 400 bad"}], "usage": {"input_tokens": 0, "output_tokens": 0}}}
        {"type": "result", "subtype": "success", "is_error": true, "session_id": "s", "result": "API Error: 400 bad", "usage": {"input_tokens": 0, "output_tokens": 0}}
        {"type": "user", "session_id": "s", "message": {"role": "user", "content": "/cost"}}
        {"type": "assistant", "session_id": "s", "message": {"id": "m2", "role": "assistant", "model": "<synthetic>", "content": [{"type": "text", "text": "Total cost: 0"}]}}
        {"type": "result", "subtype": "success", "is_error": false, "session_id": "s", "result": "Total cost: 0"}
        {"type": "assistant", "session_id": "s", "message": {"id": "m3", "role": "assistant", "model": "<synthetic>", "content": [{"type": "text", "text": "Cut off"}]}}
    "#), @r#"
    user: One
    system: API Error: 400 bad error error
    user: /cost
    assistant: Total cost: 0
    assistant: Cut off
    "#);
}

#[test]
fn whole_messages() {
    insta::assert_snapshot!(check(r#"
        {"id": "u", "role": "user", "parts": [{"type": "text", "text": "Why?"}], "metadata": {"sender": "ada"}}
        {"id": "a", "role": "assistant", "metadata": {"model": "m", "usage": {"input": 1, "output": 2}}, "parts": [{"type": "step-start"}, {"type": "text", "text": "One."}, {"type": "dynamic-tool", "toolName": "read", "toolCallId": "c", "state": "output-available", "input": {}, "output": 7}, {"type": "step-start"}, {"type": "text", "text": "Two."}]}
        {"role": "user", "content": "Plain"}
        {"role": "assistant", "content": null, "tool_calls": [{"id": "d", "function": {"name": "f", "arguments": "{}"}}]}
        {"role": "tool", "tool_call_id": "d", "content": "done"}
        {"role": "system", "content": "Be brief."}
    "#), @r#"
    user: Why? by ada
    assistant: One. [read c {}] model m
    tool-result: <c 7 Done>
    assistant: Two. model m cost {"input":1,"output":2}
    user: Plain
    assistant: [f d {}]
    tool-result: <d "done" Done>
    system: Be brief.
    1 Dropped: id
    2 Dropped: id
    "#);
}

#[test]
fn incomplete_content_is_recorded_at_the_end_of_the_input() {
    insta::assert_snapshot!(check(r#"
        {"type": "start", "messageMetadata": {"usage": {"inputTokens": 3, "outputTokens": 1}}}
        {"type": "text-start", "id": "a"}
        {"type": "text-start", "id": "b"}
        {"type": "text-delta", "id": "a", "delta": "First"}
        {"type": "text-delta", "id": "b", "delta": "Second"}
        {"type": "tool-input-start", "toolCallId": "c", "toolName": "read"}
        {"type": "tool-input-delta", "toolCallId": "c", "inputTextDelta": "{\"path"}
    "#), @r#"assistant: First Second [read c "{\"path"] cost {"input":3,"output":1}"#);
    // What is taken back stays so, and calls are said in the order in which they began.
    insta::assert_snapshot!(check(r#"
        {"type": "start-step"}
        {"type": "tool-input-start", "toolCallId": "gone", "toolName": "read"}
        {"type": "reset-step"}
        {"type": "tool-input-start", "toolCallId": "c3", "toolName": "read"}
        {"type": "tool-input-start", "toolCallId": "c1", "toolName": "read"}
        {"type": "tool-input-start", "toolCallId": "c4", "toolName": "read"}
        {"type": "tool-input-start", "toolCallId": "c2", "toolName": "read"}
        {"type": "tool-input-start", "toolCallId": "c5", "toolName": "read"}
        {"type": "finish-step"}
    "#), @"assistant: [read c3 null] [read c1 null] [read c4 null] [read c2 null] [read c5 null]");
    insta::assert_snapshot!(check(r#"
        {"type": "assistant", "session_id": "s", "message": {"id": "m1", "role": "assistant", "model": "claude-x", "content": [{"type": "text", "text": "Half."}], "usage": {"input_tokens": 3, "output_tokens": 1}}}
    "#), @r#"assistant: Half. model claude-x cost {"input":3,"output":1}"#);
}

/// Waiting lines are acknowledged when the content of all is on disk, not with the first.
#[test]
fn waiting_lines_are_released_together() {
    let mut ingest = Ingest::default();
    let mut released = |line: &str| {
        let parsed = ingest.parse(line.as_bytes()).unwrap();
        (parsed.waits, parsed.releases)
    };
    assert_eq!(released(r#"{"type": "tool-input-start", "toolCallId": "a", "toolName": "read"}"#), (true, false));
    assert_eq!(released(r#"{"type": "tool-input-start", "toolCallId": "b", "toolName": "read"}"#), (true, false));
    let whole = |id: &str| {
        format!(r#"{{"type": "tool-input-available", "toolCallId": "{id}", "toolName": "read", "input": {{}}}}"#)
    };
    assert_eq!(released(&whole("a")), (false, false), "b is not whole");
    assert_eq!(released(&whole("b")), (false, true));
    assert_eq!(released(r#"{"type": "text-start", "id": "t"}"#), (false, false));
    assert_eq!(released(r#"{"type": "text-start", "id": "u"}"#), (false, false));
    assert_eq!(released(r#"{"type": "text-delta", "id": "u", "delta": "x"}"#), (true, false));
    assert_eq!(released(r#"{"type": "reset-step"}"#), (false, true), "it was taken back");
    assert_eq!(released(r#"{"type": "tool-input-start", "toolCallId": "c", "toolName": "read"}"#), (true, false));
    assert_eq!(released(r#"{"type": "start"}"#), (false, true), "it was said as it was");
}

#[test]
fn a_result_without_a_call_stays_alone() {
    let recorded = record_quietly(&[
        br#"{"type": "start"}"#,
        br#"{"type": "tool-output-available", "toolCallId": "c", "output": 1}"#,
        br#"{"type": "text-start", "id": "a"}"#,
        br#"{"type": "text-delta", "id": "a", "delta": "Done."}"#,
        br#"{"type": "finish"}"#,
    ]);
    let told = outline(&recorded.session, recorded.session.head().unwrap());
    assert_eq!(told, ["tool-result: <c 1 Done>", "assistant: Done."]);
}

#[test]
fn broken_lines_of_claude_code_are_refused_and_unknown_types_are_noted_once() {
    insta::assert_snapshot!(check(r#"
        {"type": "user"}
        {"type": "user", "message": {"role": "user"}}
        {"type": "user", "message": {"role": "user", "content": []}}
        {"type": "assistant", "message": {"role": "assistant"}}
        {"type": "assistant", "session_id": "s"}
        {"type": "stream_event"}
        {"type": "rate_limit_event", "rate_limit_info": {}}
        {"type": "rate_limit_event", "rate_limit_info": {}}
        {"type": "control_request", "request_id": "1", "request": {"subtype": "interrupt"}}
        {"type": "of_tomorrow", "uuid": "8a0c1f52-0000-4000-8000-000000000001"}
        {"type": "of_nobody"}
    "#), @r#"
    1 refused: user: message is missing
    2 refused: user: message.content is missing
    3 refused: user: content is empty
    4 refused: assistant: message.content is missing
    5 refused: assistant: message is missing
    6 refused: stream_event: event is missing
    7 note: Lines of type rate_limit_event are not recorded.
    9 note: Lines of type control_request are not recorded.
    10 note: Lines of type of_tomorrow are not recorded.
    11 refused: unknown type "of_nobody"; known keys: user, assistant, toolResult, system, todos, thinking, usage, title, compaction, error, rewind, snapshot, restore, delta, finish, message
    "#);
}

#[test]
fn reserved_metadata_is_lost() {
    let line = r#"{"user": {"content": "q", "parentSessionId": "p", "timestamp": 7, "colour": "red", "metadata": {"timestamp": "2001-01-01T00:00:00Z", "model": 7, "usage": "much", "cwd": "/x", "gitBranch": "b", "todos": 7, "thinking": 7, "sender": 7, "error": true, "records": ["r"], "continues": "c", "error_type": "e", "parentSessionId": "p", "parentToolCallId": "c", "mood": "fine"}}}"#;
    let recorded = record(&[
        line.as_bytes(),
        br#"{"assistant": {"content": "a", "model": "m", "metadata": {"model": "other"}}}"#,
        br#"{"error": {"text": "no", "parentSessionId": "p", "retry": 7}}"#,
    ]);
    insta::assert_snapshot!(outline(&recorded.session, recorded.session.head().unwrap()).join("\n"), @r#"
    user: q {"mood":"fine","colour":"red"}
    assistant: a model m
    system: no {"retry":7} error error
    "#);
    let lost: Vec<&str> = recorded.reports.iter().map(|said| said.trim_start_matches("1 Dropped: ")).collect();
    assert_eq!(lost.len(), 18, "{lost:?}");
    assert_eq!(lost[16..], ["2 Dropped: metadata.model", "3 Dropped: parentSessionId"]);
    assert_eq!(recorded.session.parent_session(), None);
    let said = messages(&recorded.session);
    assert_eq!(said[0].metadata.as_ref().unwrap()["cwd"], CWD);
}

#[test]
fn nothing_is_lost_silently() {
    insta::assert_snapshot!(check(r#"
        {"user": "a", "user": "b"}
        {"user": {"content": "a", "content": "b"}}
        {"user": {"content": "q", "metadata": {"big": 18446744073709551617123}}}
        {"thinking": {"level": "high", "disabled": false, "triggers": [], "budget": 9}}
        {"todos": [{"status": "pending"}]}
        {"todos": [{"content": 7}]}
        {"todos": [{"content": "look", "status": "napping"}, {"content": "go"}]}
        {"snapshot": {"states": 7}}
        {"snapshot": {"states": {"trackedFiles": [], "fileBackups": {}}}}
        {"title": "two\nlines"}
        {"assistant": {"toolCalls": [{"id": "c", "type": "function", "title": "Look", "providerExecuted": true, "colour": 1, "function": {"name": "read", "arguments": "{}", "strict": true}, "refusal": null}]}}
        {"snapshot": {}}
    "#), @r#"
    user: q todos [{"content":"look","status":"napping"},{"content":"go","status":"pending"}] thinking {"level":"high","disabled":false,"triggers":[]} {"big":18446744073709551617123}
    assistant: [read c {}]
    1 refused: duplicate key "user"
    2 refused: duplicate key "content"
    4 Dropped: thinking.budget
    5 refused: todos: a todo: content is missing
    6 refused: todos: a todo: invalid type: integer `7`, expected a string
    8 refused: snapshot: states must be {trackedFiles, fileBackups}, two objects with a key for each file; or give before: [paths], after: true, or watch: a folder
    9 refused: snapshot: states must be {trackedFiles, fileBackups}, two objects with a key for each file; or give before: [paths], after: true, or watch: a folder
    10 refused: title: a title is one line of 1 to 500 characters
    11 Dropped: toolCalls.colour
    11 Dropped: toolCalls.strict
    12 refused: snapshot: states must be {trackedFiles, fileBackups}, two objects with a key for each file; or give before: [paths], after: true, or watch: a folder
    "#);
}

#[test]
fn system_messages_go_to_the_model_by_default() {
    let recorded = record(&[
        br#"{"system": "Be brief."}"#,
        br#"{"system": {"content": "For people.", "toModel": false}}"#,
        br#"{"system": {"content": "Obey.", "instructs": true}}"#,
        br#"{"role": "system", "content": "Be kind."}"#,
        br#"{"id": "s", "role": "system", "parts": [{"type": "text", "text": "Be fair."}]}"#,
        br#"{"error": "no"}"#,
    ]);
    let told: Vec<(bool, bool)> = recorded
        .session
        .records()
        .map(|record| record.body().unwrap().content().map(|said| (said.to_model, said.instructs)).unwrap())
        .collect();
    assert_eq!(told, [(true, false), (false, false), (true, true), (true, false), (true, false), (false, false)]);
}

#[test]
fn almost_json_is_repaired_and_reported() {
    let lines: [&[u8]; 9] = [
        b"\xef\xbb\xbf{\"user\": \"bom\"}\r\n",
        b"   ",
        b"\0\0\0",
        b"{\"user\": \"half \\ud83d\"}",
        b"{\"user\": \"raw \x01 control\"}",
        b"{\"user\": \"bad \xff utf-8\"}",
        b"{\"user\": \"nul \\u0000 and \\ud83d\\ude00\"}",
        b"\0\0{\"user\": \"after NUL\"}",
        b"{\"user\": \"last\"}",
    ];
    let recorded = record(&lines);
    insta::assert_snapshot!(outline(&recorded.session, recorded.session.head().unwrap()).join("\n").replace('\0', "␀"), @"
    user: bom
    user: half �
    user: raw   control
    user: bad � utf-8
    user: nul ␀ and 😀
    user: after NUL
    user: last
    ");
    insta::assert_snapshot!(recorded.reports.join("\n"), @"
    3 refused: a line of NUL bytes
    4 Renamed: half a surrogate pair
    5 Renamed: a control character
    6 Renamed: bad UTF-8
    8 Renamed: a control character
    ");
}

#[test]
fn deep_and_long_lines_stop_nothing() {
    let deep = format!("{{\"user\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let long = format!("{{\"user\": \"{}\"}}", "x".repeat(20_000_000));
    let recorded = record(&[deep.as_bytes(), long.as_bytes(), b"{\"assistant\": \"still here\"}"]);
    assert_eq!(recorded.reports, ["1 refused: not JSON at column 136: recursion limit exceeded"]);
    assert_eq!(recorded.session.records().len(), 2);
}

/// Chunks that we print for a session become the same session when they are recorded.
#[test]
fn our_own_chunks_become_the_same_messages() {
    let mut compared = 0;
    for (dialect, log) in support::logs_of_all() {
        let session = Session::open(&Source::file(dialect, &log), &reading()).unwrap();
        let messages = messages(&session);
        if repeats_a_call(&messages) {
            continue; // Which result is whose cannot be said by ids then.
        }
        let mut chunks = Chunks::new(Sdk::V7);
        let mut said: Vec<String> = Vec::new();
        for message in messages.iter().cloned() {
            let told = chunks.of(Update::Message(Box::new(message)));
            said.extend(told.iter().map(|chunk| serde_json::to_string(chunk).unwrap()));
        }
        said.extend(chunks.finish().iter().map(|chunk| serde_json::to_string(chunk).unwrap()));
        let lines: Vec<&[u8]> = said.iter().map(String::as_bytes).collect();
        let recorded = record_quietly(&lines);
        let ready: Vec<Message> = messages.into_iter().map(|message| message.for_sdk(Sdk::V7)).collect();
        assert_eq!(essence(&self::messages(&recorded.session)), essence(&ready), "{}", log.display());
        compared += ready.len();
    }
    assert!(compared > 500, "only {compared} messages");
}

/// Any value of a line may be anything, and so may the bytes: nothing panics, and the next line is parsed.
#[test]
fn odd_lines_stop_nothing() {
    let page = include_str!("tests.rs");
    let samples: Vec<Value> = page.lines().filter_map(|line| serde_json::from_str(line.trim()).ok()).collect();
    assert!(samples.len() > 80, "only {}", samples.len());
    let odd = [json!(null), json!(-1), json!(true), json!("odd"), json!([[], "x", {}]), json!({"odd": {"id": 1}})];
    let mut recorder = Recorder::disabled();
    let mut ingest = Ingest::default();
    let mut parsed = |line: &str| {
        for op in ingest.parse(line.as_bytes()).map(|parsed| parsed.ops).unwrap_or_default() {
            ingest.apply(&op, &mut recorder).ok();
        }
    };
    for sample in &samples {
        for path in support::paths_of_keys(sample) {
            for value in &odd {
                let mut changed = sample.clone();
                *changed.pointer_mut(&path).unwrap() = value.clone();
                parsed(&changed.to_string());
            }
        }
        let text = sample.to_string();
        for cut in (0..text.len()).filter(|at| text.is_char_boundary(*at)).step_by(7) {
            parsed(&text[..cut]);
            parsed(&text[cut..]);
        }
    }
    assert_eq!(ingest.parse(b"{\"user\": \"still here\"}").unwrap().ops.len(), 1);
}

#[test]
fn a_restore_goes_back_only_where_it_names_a_record() {
    let lines: [&[u8]; 4] = [
        br#"{"user": "first"}"#,
        br#"{"assistant": "answer"}"#,
        br#"{"restore": {"target": "x", "files": [{"path": "a", "action": "delete"}]}}"#,
        br#"{"user": "second"}"#,
    ];
    let stays = record(&lines);
    let kinds = |recorded: &Recorded| outline(&recorded.session, recorded.session.head().unwrap()).join(", ");
    assert_eq!(kinds(&stays), "user: first, assistant: answer, restore:, user: second");
    let first = stays.session.records().next().unwrap().id().into_owned();
    let back = json!({"restore": {"to": first, "files": []}}).to_string();
    let goes_back = record(&[lines[0], lines[1], back.as_bytes(), lines[3]]);
    assert_eq!(kinds(&goes_back), "user: first, restore:, user: second");
    let nowhere = record(&[lines[0], br#"{"restore": {"to": "nowhere", "files": []}}"#]);
    assert_eq!(nowhere.reports.len(), 1, "{:?}", nowhere.reports);
}

/// Chunks of every kind that changes the state between lines.
const EVERY_CHUNK: &str = r#"
    {"type": "start", "messageId": "m1", "messageMetadata": {"model": "m"}}
    {"type": "start-step"}
    {"type": "reasoning-start", "id": "r"}
    {"type": "reasoning-delta", "id": "r", "delta": "Hm."}
    {"type": "text-start", "id": "t"}
    {"type": "text-delta", "id": "t", "delta": "Waits "}
    {"type": "text-delta", "id": "t", "delta": "for it."}
    {"type": "reasoning-end", "id": "r", "providerMetadata": {"p": {"signature": "s"}}}
    {"type": "text-delta", "id": "t", "delta": " Not."}
    {"type": "text-end", "id": "t"}
    {"type": "tool-input-start", "toolCallId": "c1", "toolName": "read"}
    {"type": "tool-input-delta", "toolCallId": "c1", "inputTextDelta": "{\"path\":"}
    {"type": "tool-input-delta", "toolCallId": "c1", "inputTextDelta": "1}"}
    {"type": "tool-input-available", "toolCallId": "c1", "toolName": "read", "input": {"path": 1}}
    {"type": "tool-approval-request", "approvalId": "q", "toolCallId": "c1"}
    {"type": "tool-approval-response", "approvalId": "q", "approved": true}
    {"type": "tool-output-available", "toolCallId": "c1", "output": "04:12"}
    {"type": "finish-step"}
    {"type": "message-metadata", "messageMetadata": {"mood": "fine"}}
    {"type": "start-step"}
    {"type": "tool-input-start", "toolCallId": "c2", "toolName": "read"}
    {"type": "reset-step"}
    {"type": "data-message", "transient": true, "data": {"id": "w", "role": "user", "parts": [{"type": "text", "text": "Else?"}]}}
    {"type": "text-start", "id": "t2"}
    {"type": "text-delta", "id": "t2", "delta": "Yes."}
    {"type": "text-end", "id": "t2"}
    {"type": "finish-step"}
    {"type": "finish", "messageMetadata": {"usage": {"inputTokens": 3, "outputTokens": 4}}}
    {"type": "start"}
    {"type": "text-start", "id": "t"}
    {"type": "text-delta", "id": "t", "delta": "Again."}
    {"type": "tool-input-start", "toolCallId": "c3", "toolName": "read"}
    {"type": "abort"}
"#;

/// A line that could not be recorded is undone: sent again, it means the same, whatever came before.
#[test]
fn a_line_that_is_undone_means_the_same_again() {
    let claude = r#"
        {"type": "stream_event", "session_id": "s", "event": {"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 1}}}}
        {"type": "stream_event", "session_id": "s", "event": {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}}
        {"type": "stream_event", "session_id": "s", "event": {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello"}}}
        {"type": "assistant", "session_id": "s", "message": {"id": "m", "role": "assistant", "content": [{"type": "text", "text": "Hello there."}]}}
        {"type": "result", "session_id": "s", "usage": {"input_tokens": 1, "output_tokens": 2}}
    "#;
    for (lines, whole_turns) in [(EVERY_CHUNK, false), (EVERY_CHUNK, true), (claude, false)] {
        let [mut once, mut twice] = [(); 2].map(|()| Ingest::default().of_whole_turns(whole_turns));
        for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let parsed = once.parse(line.as_bytes());
            for _ in 0..2 {
                drop(twice.parse(line.as_bytes()));
                twice.undo();
            }
            let again = twice.parse(line.as_bytes());
            assert_eq!(format!("{parsed:?}"), format!("{again:?}"), "{line}");
        }
        assert_eq!(format!("{:?}", once.end()), format!("{:?}", twice.end()));
    }
}

/// A chunk that is refused changes nothing: without it, the stream means the same.
#[test]
fn a_chunk_that_is_refused_changes_nothing() {
    let bad = [
        r#"{"type": "tool-input-available", "toolCallId": "c9"}"#,
        r#"{"type": "tool-approval-request", "approvalId": "q9", "toolCallId": "none"}"#,
        r#"{"type": "text-delta", "id": "none", "delta": "x"}"#,
        r#"{"type": "text-start", "id": 7}"#,
        r#"{"type": "start", "messageMetadata": 7}"#,
    ];
    let [mut good, mut mixed] = [(); 2].map(|()| Ingest::default());
    for line in EVERY_CHUNK.lines().map(str::trim).filter(|line| !line.is_empty()) {
        for bad in bad {
            assert!(mixed.parse(bad.as_bytes()).is_err(), "{bad}");
        }
        assert_eq!(
            format!("{:?}", good.parse(line.as_bytes())),
            format!("{:?}", mixed.parse(line.as_bytes())),
            "{line}"
        );
    }
}
