//! Raw JSON: strings are judged decoded and with their key, and everything else stays byte for byte.

use super::effort::check_linear;
use super::fakes::{self, BASE64, WORD, signs};
use super::redactor;
use serde_json::{Value, json};

fn line(text: &str) -> String {
    String::from_utf8(redactor().line(text.as_bytes()).bytes.into_owned()).unwrap()
}

#[test]
fn a_line_and_its_text_give_the_same_result() {
    let redactor = redactor();
    for (text, _) in (1..10).flat_map(fakes::all) {
        let record = json!({"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": text}]}})
            .to_string();
        let redacted: Value = serde_json::from_slice(&redactor.line(record.as_bytes()).bytes).unwrap();
        assert_eq!(redacted["message"]["content"][0]["text"], redactor.text(&text).text.as_ref());
    }
}

#[test]
fn what_is_not_masked_stays_byte_for_byte() {
    let token = format!("{}{}", "ghp_", signs(1, WORD, 36));
    let text = format!(
        "{{ \"n\" : 1e400, \"n\":12345678901234567890123 ,\"\\u0061\": \"caf\\u00e9 \\/ {token}\", \"z\" : \"\\u00e9\\/\" }}\r\n"
    );
    let redacted = line(&text);
    assert!(
        redacted.starts_with(
            "{ \"n\" : 1e400, \"n\":12345678901234567890123 ,\"\\u0061\": \"caf\\u00e9 \\/ [REDACTED:github-token:"
        ),
        "{redacted}"
    );
    assert!(redacted.ends_with("]\", \"z\" : \"\\u00e9\\/\" }\r\n"), "{redacted}");
    assert_eq!(line(&redacted), redacted);
}

#[test]
fn a_string_is_judged_with_its_key() {
    for (text, wanted) in [
        (r#"{"password":"tide-x"}"#, r#"{"password":"[REDACTED:password]"}"#),
        (r#"{"db":{"user":"ada","pass_word":"swordfish"}}"#, r#"{"db":{"user":"ada","pass_word":"swordfish"}}"#),
        (
            r#"{"passwords":[],"db_password":["swordfish","kelp4x"]}"#,
            r#"{"passwords":[],"db_password":["[REDACTED:password]","[REDACTED:password]"]}"#,
        ),
        (r#"{"name":"DB_PASSWORD","value":"swordfish"}"#, r#"{"name":"DB_PASSWORD","value":"[REDACTED:password]"}"#),
        (r#"{"ssn":"219-09-9998"}"#, r#"{"ssn":"[REDACTED:ssn]"}"#),
        (
            r#"{"max_tokens":"4096","token":"none","password":null,"secret":true}"#,
            r#"{"max_tokens":"4096","token":"none","password":null,"secret":true}"#,
        ),
        (
            r#"{"kind":"Secret","data":{"user":"YWRtaW4tdGlkZQ=="}}"#,
            r#"{"kind":"Secret","data":{"user":"[REDACTED:password]"}}"#,
        ),
    ] {
        assert_eq!(line(text), wanted);
    }
}

#[test]
fn secrets_in_keys_and_in_torn_lines_are_masked_and_findings_say_where() {
    let token = format!("{}{}", "glpat-", signs(4, WORD, 20));
    let text = format!("{{\"a/b\":[0,{{\"{token}\":1}}],\"c\":\"{token}");
    let redactor = redactor();
    let redacted = redactor.line(text.as_bytes());
    assert!(!String::from_utf8_lossy(&redacted.bytes).contains(&token[6..]));
    let pointers: Vec<&str> = redacted.findings.iter().map(|finding| finding.pointer.as_str()).collect();
    assert_eq!(pointers.len(), 2);
    assert!(pointers[0].starts_with("/a~1b/1/[REDACTED:gitlab-token:"), "{pointers:?}");
    assert_eq!(pointers[1], "/c");
    for torn in [format!("garbage {token} more"), format!("{{\"a\": {token}}}"), format!("\u{fffd}{token}")] {
        assert!(!line(&torn).contains(&token[6..]), "{torn}");
    }
}

#[test]
fn signatures_images_ids_and_hashes_stay_but_open_no_hole() {
    let redactor = redactor();
    let blob = signs(5, BASE64, 400);
    let record = json!({
        "uuid": "0199a3f0-8d43-7b51-9a5e-3c1f2b7d9e10", "requestId": "req_011CWzMd5vc7cwkNhz5GovQM", "tool_use_id": "toolu_01A09q90qw90lq917835lq9",
        "content": [{"type": "thinking", "thinking": "hm", "signature": blob}, {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": blob}},
            {"type": "reasoning", "encrypted_content": format!("gAAAAA-{}_", signs(6, WORD, 300))}, {"image_url": format!("data:image/png;base64,{blob}")}],
        "usage": {"input_tokens": 3, "output_tokens": 5}, "sha256": signs(7, fakes::HEX, 64), "integrity": format!("sha512-{blob}"),
    })
    .to_string();
    assert_eq!(redactor.line(record.as_bytes()).findings, []);
    let token = format!("{}{}", "ghp_", signs(1, WORD, 36));
    for field in ["id", "signature", "data", "encrypted_content", "hash"] {
        let record = json!({field: token}).to_string();
        assert_eq!(redactor.line(record.as_bytes()).findings.len(), 1, "{field}");
    }
}

#[test]
fn a_value_is_redacted_like_its_line() {
    let redactor = redactor();
    for (text, _) in fakes::all(3) {
        let mut value = json!({"text": text, "n": 1.5});
        let findings = redactor.json(&mut value);
        assert!(!findings.is_empty());
        assert_eq!(value["text"], redactor.text(&text).text.as_ref());
        assert_eq!(value["n"], 1.5);
    }
}

#[test]
fn a_text_field_is_no_picture_and_an_address_is_no_id() {
    let redactor = redactor();
    let key_ids: Vec<String> =
        (0..8).map(|at| format!("AKIA{}", signs(20 + at, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16))).collect();
    let token = format!("{}{}", "ghp_", signs(1, WORD, 36));
    for (key, text) in [
        ("content", key_ids.join("\n")),
        ("data", key_ids.join("\n")),
        ("version", format!("git+https://bob:{token}@github.com/x/y.git")),
        ("id", format!("token={token}")),
        ("commit", format!("x-{token}")),
        ("version", format!("ag-{token}/1")),
        ("signature", format!("{token}:{token}")),
    ] {
        let record = json!({key: text}).to_string();
        let redacted = String::from_utf8(redactor.line(record.as_bytes()).bytes.into_owned()).unwrap();
        assert!(!redacted.contains(&token[8..]) && !redacted.contains(&key_ids[0][4..]), "{key}: {redacted}");
    }
    // Data that a provider sealed, and pictures.
    for data in ["EmwKhgEYBCJgZ2lu/AH8Ag".repeat(12), format!("iVBORw0KGgo{}", signs(3, BASE64, 300))] {
        let record = json!({"type": "redacted_thinking", "data": data}).to_string();
        assert_eq!(redactor.line(record.as_bytes()).findings, [], "{data}");
    }
    let id = "0B5F3A51-9C0D-4E2B-BE75-25C1E442DB70";
    assert_eq!(redactor.text(id).text, id);
}

#[test]
fn arguments_in_a_list_and_nested_values_are_judged_by_their_names() {
    for text in [
        r#"{"args":["login","--password","Tr0ub4dor3xyz"]}"#,
        r#"{"command":["mysql","--password","Tr0ub4dor3xyz","--host","db"]}"#,
        r#"{"password":{"value":"Tr0ub4dor3xyz"}}"#,
    ] {
        assert!(!line(text).contains("Tr0ub4dor3xyz"), "{}", line(text));
    }
    let plain = r#"{"args":["--verbose","harbour7lights","--name","Tr0ub4dor3xyz"]}"#;
    assert_eq!(line(plain), plain);
}

/// Agents write the arguments of calls and the answers of tools as JSON in a string, and that in another one.
#[test]
fn json_in_strings_is_judged_like_json_and_stays_json() {
    let redactor = redactor();
    let iban = "DE89370400440532013000";
    let inner = json!({
        "offset": 4_111_111_111_111_111_u64, "script": format!("pay:\n{iban}"), "quoted": "\u{e9}378282246310005\u{201c}",
        "password": {"value": "Xk7vv29aQz"}, "path": "a",
    });
    let lines = format!("{inner}\n{}\n", json!([{"total": 5_500_005_555_555_559_u64, "to": format!("x:\t{iban}")}]));
    for depth in 0..4 {
        for text in [inner.to_string(), lines.clone()] {
            let mut record = text;
            for _ in 0..depth {
                record = json!({"arguments": record, "call_id": "call_1"}).to_string();
            }
            let record = json!({"type": "function_call", "arguments": record}).to_string();
            let redacted = line(&record);
            let mut found: Value = serde_json::from_str(&redacted).unwrap();
            for _ in 0..=depth {
                let text = found["arguments"].as_str().unwrap();
                found = serde_json::Deserializer::from_str(text).into_iter().next().unwrap().unwrap();
            }
            assert_eq!(found["offset"], inner["offset"], "{redacted}");
            assert_eq!(found["path"], "a");
            assert_eq!(found["script"], "pay:\n[REDACTED:iban]");
            assert_eq!(found["quoted"], "\u{e9}[REDACTED:card]\u{201c}");
            assert_eq!(found["password"]["value"], "[REDACTED:password]");
            assert!(!redacted.contains(iban) && redacted.contains("call_1") == (depth > 0), "{redacted}");
            assert_eq!(line(&redacted), redacted, "twice");
        }
    }
    let findings = redactor.line(br#"{"a":"{\"b\":\"pay:\\nDE89370400440532013000\"}"}"#).findings;
    assert_eq!(findings.iter().map(|it| (it.rule.as_str(), it.pointer.as_str())).collect::<Vec<_>>(), [("iban", "/a")]);
    // What is no JSON is text.
    assert_eq!(line(r#"{"a":"{4111 1111 1111 1111}"}"#), r#"{"a":"{[REDACTED:card]}"}"#);
}

#[test]
fn what_is_in_a_container_of_secrets_is_judged_by_its_name() {
    for text in [
        r#"{"password":{"ada":"Xk7vv29aQz"}}"#,
        r#"{"passwords":["Xk7vv29aQz"]}"#,
        r#"{"passwords":{"ada":"Xk7vv29aQz"}}"#,
        r#"{"api_keys":["Xk7vv29aQz"]}"#,
        r#"{"clientSecret":{"value":"Xk7vv29aQz"}}"#,
        r#"{"headers":[["Authorization","Xk7vv29aQzXk7vv29aQz31pq"]]}"#,
        r#"{"command":["curl","-s","-u","ada:Xk7vv29aQz","https://x.example"]}"#,
        r#"{"argv":["mysql","-pXk7vv29aQz"]}"#,
    ] {
        let redacted = line(text);
        assert!(!redacted.contains("Xk7vv29aQz"), "{redacted}");
        assert_eq!(line(&redacted), redacted, "twice");
    }
    for text in [
        r#"{"password":{"type":"string","minLength":"8","description":"At least 8 characters, 1 digit"}}"#,
        r#"{"secret":{"name":"tide-tls-v2","namespace":"prod-2","secretName":"default-token-x7k2p"}}"#,
        r##"{"secret":{"$ref":"#/definitions/io.k8s.api.core.v1.SecretVolumeSource"}}"##,
        r#"{"passwords":{"created":"2026-11-17","host":"10.20.30.40","algorithm":"argon2id-v19"}}"#,
        r#"{"secrets":["tide-tls","harbour_db","inherit"]}"#,
        r#"{"rows":[["api_key","created_2024-11-02"]],"token":{"contract":"0xdAC17F958D2ee523a2206206994597C13D831ec7"}}"#,
        r#"{"headers":[["Content-Type","text/html; charset=utf-8"]],"command":["ls","-p1234","ada:x1y2z3w4"]}"#,
    ] {
        assert_eq!(line(text), text);
    }
}

#[test]
fn several_values_in_a_string_stay_json_and_a_key_in_a_list_of_lines_is_masked_whole() {
    let text = json!({"output": r#"{"a":1} 5 {"password":"hunter2x9"}"#}).to_string();
    let redacted: Value = serde_json::from_str(&line(&text)).unwrap();
    assert_eq!(redacted["output"], r#"{"a":1} 5 {"password":"[REDACTED:password]"}"#);
    let mut lines: Vec<String> = (0..4).map(|at| signs(30 + at, BASE64, 64) + "\n").collect();
    lines.insert(0, "-----BEGIN RSA PRIVATE KEY-----\n".to_owned());
    lines.push("-----END RSA PRIVATE KEY-----".to_owned());
    let notebook = json!({"cells": [{"source": lines, "kind": "raw"}]});
    let record = json!({"content": notebook.to_string()}).to_string();
    let redacted = line(&record);
    assert!(!lines[1..5].iter().any(|line| redacted.contains(&line[20..40])), "{redacted}");
    let value: Value = serde_json::from_str(&redacted).unwrap();
    let inner: Value = serde_json::from_str(value["content"].as_str().unwrap()).unwrap();
    assert_eq!(inner["cells"][0]["kind"], "raw", "{redacted}");
    assert_eq!(line(&redacted), redacted, "twice");
}

/// None of these takes the square of its length, in time or in memory.
#[test]
fn deep_lists_and_long_commands_are_judged_in_linear_time() {
    type Make = fn(usize) -> String;
    let call = |command: String| json!({"name": "x", "id": "1", "input": {"command": command}}).to_string();
    let makes: [(&str, Make, usize); 3] = [
        ("lists", |n| format!("{{\"\\u0061{}\":{}", "k".repeat(n), "[".repeat(n)), 20_000),
        ("words", |n| "q.ssh/ ".repeat(n) + " .env.example", 20_000),
        ("a folder", |n| format!("cd {} ; cat {} .env.example", "a".repeat(n), "b ".repeat(n)), 20_000),
    ];
    for (what, make, few) in makes {
        let prepare = |n: usize| if what == "lists" { make(n) } else { call(make(n)) };
        check_linear(what, few, prepare, |text| drop(redactor().line(text.as_bytes())));
    }
}

#[test]
fn a_file_that_starts_with_a_bracket_is_text_unless_it_has_json() {
    let redactor = redactor();
    let key = format!(
        "-----BEGIN RSA PRIVATE KEY-----\n{}\n{}\n-----END RSA PRIVATE KEY-----\n",
        signs(1, BASE64, 64),
        signs(2, BASE64, 64)
    );
    for start in ["[default]\n", "[x](https://example.org)\n", "{{ template }}\n"] {
        let redacted = redactor.document(format!("{start}{key}").as_bytes()).bytes.into_owned();
        let redacted = String::from_utf8(redacted).unwrap();
        assert!(redacted.starts_with(&format!("{start}[REDACTED:private-key")), "{redacted}");
    }
    // A log whose first line is torn is a log.
    let log = format!("{{\"type\": \"us\n{}\n", json!({"password": "tide4x"}));
    let redacted = redactor.document(log.as_bytes());
    assert_eq!(redacted.findings[0].pointer, "/password");
}
