//! What the real Qwen Code 0.24.4 sends when it resumes a session is what we would send, string by string.
//!
//! The cases are sessions as the agent left them or as they were damaged, and `expected.json` is what it sent.

use std::path::{Path, PathBuf};

use crate::support::sent;
use scrollback::dialect::QwenCode;
use scrollback::session::{ReadOptions, Session, Source};
use scrollback::view::history::View;
use serde_json::Value;

/// Where the agent itself is wrong: it joins a line that stands there twice with itself.
const DOUBLED: &[(&str, &str, &str)] = &[("exp__f-dup-line", "A1 first answerA1 first answer", "A1 first answer")];

/// How a path begins in the cases, and how many characters longer it was.
const NEUTRAL: (&str, usize) = ("/home/dev/w/", 6);

/// The contents, in the notation of the cases: its chat messages are made of them one by one.
#[test]
fn our_contents_are_what_qwen_code_sends() {
    for case in cases() {
        let ours = without_context(sent(&read(&case), View::Gemini).iter().flat_map(lines));
        let theirs = told(&case);
        let same = ours.len() == theirs.len() && ours.iter().zip(&theirs).all(|(ours, theirs)| is_line(ours, theirs));
        assert!(same, "{}\n{theirs:#?}\n{ours:#?}", case.display());
    }
}

/// What was sent but for context, the prompt of the resume and the agent's own faults.
fn told(case: &Path) -> Vec<String> {
    let mut told = crate::support::oracle::told(case);
    assert!(!told.is_empty(), "{}: nothing to compare", case.display());
    for line in &mut told {
        let of_case = DOUBLED.iter().find(|(name, doubled, _)| case.ends_with(name) && line.ends_with(doubled));
        of_case.into_iter().for_each(|(_, doubled, once)| *line = line.replace(doubled, once));
    }
    told
}

/// The notation counts the model's acknowledgement of a summary as context.
fn without_context(lines: impl Iterator<Item = String>) -> Vec<String> {
    lines.filter(|line| !line.starts_with("A: Got it. Thanks")).collect()
}

fn lines(content: &Value) -> Vec<String> {
    let who = if content["role"] == "model" { "A" } else { "U" };
    let words = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned).replace('\n', "\\n");
    let line = |part: &Value| {
        if let Some(call) = part.get("functionCall") {
            format!("A.call {} {}({})", words(&call["id"]), words(&call["name"]), words(&call["args"]))
        } else if let Some(response) = part.get("functionResponse") {
            let given = &response["response"];
            let given = given.get("output").or_else(|| given.get("error")).unwrap();
            format!("T.result {}: {}", words(&response["id"]), words(given))
        } else if part["thought"] == true {
            format!("{who}.think: {}", words(&part["text"]))
        } else {
            format!("{who}: {}", words(&part["text"]))
        }
    };
    content["parts"].as_array().unwrap().iter().map(line).collect()
}

/// Whether a line is this one, which may be cut: `…(N)`, N characters in all.
fn is_line(ours: &str, theirs: &str) -> bool {
    let Some((begin, count)) = theirs.trim_end_matches(')').rsplit_once("…(") else { return ours == theirs };
    let said = ours.split_once(if theirs.starts_with("A.call") { "(" } else { ": " }).unwrap().1;
    let said = if theirs.starts_with("A.call") { said.strip_suffix(')').unwrap() } else { said };
    // The counts were taken before paths were made neutral.
    let length = said.chars().count() + NEUTRAL.1 * said.matches(NEUTRAL.0).count();
    ours.starts_with(begin) && count.parse() == Ok(length)
}

/// It speaks to a chat API, which has a place for thoughts in its own dialect of it.
#[test]
fn our_chat_messages_are_what_qwen_code_sends() {
    for case in cases() {
        let theirs = told(&case);
        let ours = without_context(sent(&read(&case), View::OpenAi).iter().flat_map(chat_lines));
        let same = ours.len() == theirs.len() && ours.iter().zip(&theirs).all(|(ours, theirs)| is_line(ours, theirs));
        assert!(same, "{}\n{theirs:#?}\n{ours:#?}", case.display());
    }
}

fn chat_lines(message: &Value) -> Vec<String> {
    let plain = |text: &Value| text.as_str().unwrap_or_default().replace('\n', "\\n");
    let text = plain(&message["content"]);
    if let Some(pieces) = message["content"].as_array() {
        return pieces.iter().map(|piece| format!("U: {}", plain(&piece["text"]))).collect();
    }
    let calls = message["tool_calls"].as_array().into_iter().flatten().map(|call| {
        let told = |value: &Value| value.as_str().unwrap().to_owned();
        let function = &call["function"];
        format!("A.call {} {}({})", told(&call["id"]), told(&function["name"]), told(&function["arguments"]))
    });
    let said = match message["role"].as_str().unwrap() {
        "tool" => Some(format!("T.result {}: {text}", message["tool_call_id"].as_str().unwrap())),
        "assistant" => (!text.is_empty()).then(|| format!("A: {text}")),
        _ => Some(format!("U: {text}")),
    };
    let thoughts = message["reasoning_content"].as_str().map(|thoughts| format!("A.think: {thoughts}"));
    thoughts.into_iter().chain(said).chain(calls).collect()
}

#[test]
fn only_damaged_sessions_have_issues() {
    for case in cases() {
        let issues: Vec<&str> = read(&case).issues().iter().map(|issue| issue.kind.name()).collect::<Vec<_>>();
        match case.file_name().unwrap().to_str().unwrap() {
            "exp__f-trunc" | "exp__dbl-trunc" => assert_eq!(issues, ["torn"]),
            "exp__f-dup-line" => assert_eq!(issues, ["duplicate-line"]),
            _ => assert_eq!(issues, [] as [&str; 0], "{}", case.display()),
        }
        assert_eq!(read(&case).unknown_kinds().count(), 0);
    }
}

fn read(case: &Path) -> Session {
    // The files are of later days than the noon that the other tests have.
    let reading = ReadOptions { now: "2026-11-18T12:00:00Z".parse().unwrap(), ..crate::support::reading() };
    Session::open(&Source::file(&QwenCode, &case.join("session.jsonl")), &reading).unwrap()
}

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/qwen");
    let mut cases: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    assert!(cases.len() >= 6);
    cases
}
