//! Numbers of tools' input and output keep their text, whatever reads, converts or prints them.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod support;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use support::{Ran, TestEnv};

const DIALECTS: [&str; 6] = ["native", "claude-code", "codex", "qwen-code", "sage-el", "ai-sdk"];
const VIEWS: [&str; 6] = ["anthropic", "openai", "openai-responses", "gemini", "ai-sdk", "text"];

/// Numbers that 64 bits do not hold, and some that they do.
const NUMBERS: [&str; 10] = [
    "123456789012345678901234567890",
    "-9223372036854775809",
    "18446744073709551616",
    "0.1234567890123456789012345",
    "1e400",
    "-1e-400",
    "-0.0",
    "1.0",
    "1",
    "9007199254740993.0",
];

/// An object of these numbers, one below the other too.
fn object(numbers: &[String]) -> String {
    let fields = numbers.iter().enumerate().map(|(at, number)| format!("\"k{at}\":{number}"));
    let fields = fields.collect::<Vec<_>>().join(",");
    format!("{{{fields},\"in\":[{{{fields}}}]}}")
}

/// Whether each number follows its key, in JSON, in JSON inside a string, or in aligned columns.
fn check(numbers: &[String], times: usize, what: &str, text: &str) {
    let text: String = text.chars().filter(|c| !"\\ \n".contains(*c)).collect();
    for (at, number) in numbers.iter().enumerate() {
        let found = |end: char| text.matches(&format!("\"k{at}\":{number}{end}")).count();
        let in_columns = text.matches(&format!("k{at}{number}")).count();
        assert!(found(',') + found('}') + in_columns >= times, "{what}: {number} is missing in {text}");
    }
}

fn good(ran: Ran, what: &str) -> String {
    assert!(ran.code == 0, "{what}: {}", ran.all());
    ran.out
}

/// The lines that record one call and its result.
fn lines(object: &str) -> String {
    format!(
        "{{\"user\":\"When is high water?\"}}\n\
         {{\"assistant\":{{\"model\":\"m\",\"content\":\"Let me look.\",\"toolCalls\":[{{\"id\":\"c1\",\"name\":\"tides\",\"arguments\":{object}}}]}}}}\n\
         {{\"toolResult\":{{\"callId\":\"c1\",\"output\":{object}}}}}\n\
         {{\"assistant\":\"At four.\"}}\n"
    )
}

/// Everything that prints a session's calls.
fn outlets(env: &TestEnv, file: &str, numbers: &[String], what: &str) {
    for view in VIEWS {
        let told = good(env.run(&["history", file, "--for", view]), what);
        check(numbers, 4, &format!("{what}: history --for {view}"), &told);
    }
    for args in [&["show", file, "--json"][..], &["show", file, "--full"], &["extract-tools", file, "--json"]] {
        check(numbers, 4, &format!("{what}: {args:?}"), &good(env.run(args), what));
    }
}

/// What a pipe that ends shows of a file.
fn followed(env: &TestEnv, file: &str, numbers: &[String], what: &str) {
    let bytes = std::fs::read(env.work().join(file)).unwrap();
    for form in ["--jsonl", "--chunks"] {
        let told = good(env.run_with(&["tail", "-", form], &bytes), what);
        check(numbers, 4, &format!("{what}: tail {form}"), &told);
    }
}

fn record_and_print(numbers: &[String]) {
    for dialect in DIALECTS {
        let env = TestEnv::new();
        let ran = env.run_with(&["record", "--dialect", dialect], lines(&object(numbers)).as_bytes());
        good(ran, dialect);
        outlets(&env, "@", numbers, dialect);
    }
}

fn convert_and_back(numbers: &[String]) {
    for from in DIALECTS {
        let env = TestEnv::new();
        good(env.run_with(&["record", "--dialect", from], lines(&object(numbers)).as_bytes()), from);
        for to in DIALECTS {
            let what = format!("{from} to {to}");
            let (there, back) = (format!("{from}-{to}.jsonl"), format!("{from}-{to}-{from}.jsonl"));
            good(env.run(&["convert", "@", "--to", to, "-o", &there]), &what);
            let told = good(env.run(&["show", &format!("./{there}"), "--json"]), &what);
            check(numbers, 4, &what, &told);
            if from == "native" {
                followed(&env, &there, numbers, &what);
            }
            good(env.run(&["convert", &format!("./{there}"), "--to", from, "-o", &back]), &what);
            let told = good(env.run(&["show", &format!("./{back}"), "--json"]), &what);
            check(numbers, 4, &format!("{what} and back"), &told);
        }
    }
}

fn owned() -> Vec<String> {
    NUMBERS.map(str::to_owned).to_vec()
}

#[test]
fn a_recorded_number_is_printed_as_it_was_said() {
    record_and_print(&owned());
}

#[test]
fn a_converted_number_is_the_same_there_and_back() {
    convert_and_back(&owned());
}

#[test]
fn a_number_alone_is_an_input_or_an_output_like_any_other() {
    for dialect in DIALECTS {
        let texts = |number: &str| {
            let env = TestEnv::new();
            good(env.run_with(&["record", "--dialect", dialect], lines(number).as_bytes()), dialect);
            let views = VIEWS.map(|view| good(env.run(&["history", "@", "--for", view]), dialect));
            views.concat() + &good(env.run(&["extract-tools", "@", "--json"]), dialect)
        };
        let without_ids = |text: String| {
            let lines = text.lines().filter(|line| !line.contains("\"message\":") && !line.contains("\"record"));
            lines.collect::<Vec<_>>().join("\n")
        };
        assert_eq!(without_ids(texts("1e400")), without_ids(texts("7.25")).replace("7.25", "1e400"), "{dialect}");
    }
}

/// A call and its result as each agent writes them.
fn as_the_agent_writes(object: &str) -> [(&'static str, String); 6] {
    let quoted = serde_json::to_string(object).unwrap();
    let claude = format!(
        "{{\"type\":\"assistant\",\"uuid\":\"a\",\"parentUuid\":null,\"sessionId\":\"s\",\"message\":{{\"role\":\"assistant\",\"id\":\"m\",\"content\":[{{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"t\",\"input\":{object}}}]}}}}\n\
         {{\"type\":\"user\",\"uuid\":\"b\",\"parentUuid\":\"a\",\"sessionId\":\"s\",\"message\":{{\"role\":\"user\",\"content\":[{{\"type\":\"tool_result\",\"tool_use_id\":\"c\",\"content\":{quoted}}}]}}}}\n"
    );
    let codex = format!(
        "{{\"timestamp\":\"2026-11-15T10:00:00Z\",\"type\":\"session_meta\",\"payload\":{{\"id\":\"s\",\"cwd\":\"/gone\"}}}}\n\
         {{\"timestamp\":\"2026-11-15T10:00:00Z\",\"type\":\"response_item\",\"payload\":{{\"type\":\"function_call\",\"name\":\"t\",\"arguments\":{quoted},\"call_id\":\"c\"}}}}\n\
         {{\"timestamp\":\"2026-11-15T10:00:01Z\",\"type\":\"response_item\",\"payload\":{{\"type\":\"function_call_output\",\"call_id\":\"c\",\"output\":{quoted}}}}}\n"
    );
    let qwen = format!(
        "{{\"uuid\":\"a\",\"parentUuid\":null,\"sessionId\":\"s\",\"type\":\"assistant\",\"message\":{{\"role\":\"model\",\"parts\":[{{\"functionCall\":{{\"id\":\"c\",\"name\":\"t\",\"args\":{object}}}}}]}}}}\n\
         {{\"uuid\":\"b\",\"parentUuid\":\"a\",\"sessionId\":\"s\",\"type\":\"tool_result\",\"message\":{{\"role\":\"user\",\"parts\":[{{\"functionResponse\":{{\"id\":\"c\",\"name\":\"t\",\"response\":{object}}}}}]}}}}\n"
    );
    let sage = format!(
        "{{\"type\":\"assistant\",\"uuid\":\"a\",\"parentUuid\":null,\"timestamp\":\"2026-11-15T10:00:00Z\",\"sessionId\":\"s\",\"message\":{{\"role\":\"assistant\",\"content\":\"\",\"toolCalls\":[{{\"id\":\"c\",\"name\":\"t\",\"arguments\":{object}}}],\"toolResults\":[{{\"toolCallId\":\"c\",\"content\":{object}}}]}}}}\n"
    );
    let sdk_4 = format!(
        "[{{\"id\":\"a\",\"role\":\"assistant\",\"content\":\"\",\"toolInvocations\":[{{\"state\":\"result\",\"toolCallId\":\"c\",\"toolName\":\"t\",\"args\":{object},\"result\":{object}}}]}}]"
    );
    let sdk_7 = format!(
        "[{{\"id\":\"a\",\"role\":\"assistant\",\"parts\":[{{\"type\":\"tool-t\",\"toolCallId\":\"c\",\"state\":\"output-available\",\"input\":{object},\"output\":{object}}}]}}]"
    );
    [
        ("claude-code", claude),
        ("codex", codex),
        ("qwen-code", qwen),
        ("native", sage),
        ("ai-sdk", sdk_4),
        ("ai-sdk", sdk_7),
    ]
}

#[test]
fn a_number_that_an_agent_wrote_is_printed_as_it_is() {
    let numbers = owned();
    for (at, (dialect, lines)) in as_the_agent_writes(&object(&numbers)).into_iter().enumerate() {
        let env = TestEnv::new();
        let file = format!("./{at}.jsonl");
        std::fs::write(env.work().join(&file), lines).unwrap();
        outlets(&env, &file, &numbers, dialect);
        for to in DIALECTS.into_iter().filter(|to| *to != dialect) {
            let there = format!("./{to}.jsonl");
            good(env.run(&["convert", &file, "--to", to, "-o", &there]), dialect);
            let told = good(env.run(&["show", &there, "--json"]), dialect);
            check(&numbers, 4, &format!("{dialect} to {to}"), &told);
        }
    }
}

#[test]
fn any_number_is_printed_as_it_was_said() {
    let mut runner = TestRunner::new(Config { cases: 3, failure_persistence: None, ..Config::default() });
    // Too many digits, or too large an exponent, for 64 bits.
    let number = "-?[1-9](\\.[0-9]{20,25}[1-9]|[0-9]{20,25}[1-9]|[eE][-+]?[4-9][0-9]{2})";
    runner
        .run(&prop::collection::vec(number, 12), |numbers| {
            record_and_print(&numbers);
            Ok(())
        })
        .unwrap();
}
