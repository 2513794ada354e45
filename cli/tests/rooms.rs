//! `record` for chats over XMPP: what is stored of a message, of its files, of a reaction, and who said it.
#![expect(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod support;

use serde_json::{Value, json};
use support::TestEnv;
use support::chats::{fluux, lines};

#[test]
fn messages_of_a_room_are_stored_clean() {
    let env = TestEnv::new();
    let room = "lobby@conference.example.com";
    let input = [
        json!({"message": {"body": "  See https://f.example/1/a.png?x=1 \n\n\n and  https://f.example/1/a.png?x=1 ", "from": format!("{room}/alice"), "id": "s1",
            "oob": [{"url": "https://f.example/1/a.png?x=1", "mimeType": "image/png", "size": 500}]}}),
        json!({"message": {"body": "https://f.example/b", "from": format!("{room}/bob/at/home"), "room": true, "oob": "https://f.example/b"}}),
        json!({"message": {"from": format!("{room}/alice"), "reaction": {"messageId": "s1", "emojis": ["\u{1F44D}"]}}}),
        json!({"assistant": "Nice."}),
        json!({"message": {"body": "The subject", "from": room}}),
        json!({"message": {"from": format!("{room}/alice")}}),
        json!({"message": {"body": "x", "from": format!("{room}/alice"), "oob": [7]}}),
        json!({"message": {"body": "x", "from": "/alice"}}),
    ];
    let ran = fluux(&env, &["record", "--jid", room], &input.map(|line| line.to_string()).join("\n"));
    assert_eq!(ran.code, 1, "{}", ran.all());
    let refused: Vec<Value> = ran.out.lines().skip(4).map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(refused.iter().map(|ack| ack["seq"].as_u64().unwrap()).collect::<Vec<_>>(), [5, 6, 7, 8], "{}", ran.out);
    assert!(refused.iter().all(|ack| ack["error"].as_str().unwrap().starts_with("message: ")));
    let without_time = lines(&env, &format!("{room}/history.jsonl")).into_iter().skip(1).map(|mut line| {
        line.as_object_mut().unwrap().shift_remove("ts");
        if line["msg_id"] != "s1" {
            line.as_object_mut().unwrap().shift_remove("msg_id");
        }
        line
    });
    assert_eq!(
        without_time.collect::<Vec<_>>(),
        [
            json!({"type": "message", "role": "user", "content": "See\nand", "msg_id": "s1", "sender": "alice@muc",
                "attachments": [{"filename": "a.png", "mime_type": "image/png", "size": "500B"}]}),
            json!({"type": "message", "role": "user", "content": "", "sender": "bob/at/home@muc",
                "attachments": [{"filename": "b", "mime_type": "unknown", "size": "unknown"}]}),
            json!({"type": "message", "role": "user", "content": "", "sender": "alice@muc",
                "reaction": {"message_id": "s1", "emojis": ["\u{1F44D}"]}}),
            json!({"type": "message", "role": "assistant", "content": "Nice."}),
        ]
    );
}

/// What is stored of each message, by the rules of the agent's own document: all in one session, in order.
fn check_stored(jid: &str, cases: &[(Value, Value)]) {
    let env = TestEnv::new();
    let input: Vec<String> = cases.iter().map(|(message, _)| json!({ "message": message }).to_string()).collect();
    let ran = fluux(&env, &["record", "--jid", jid], &input.join("\n"));
    let answers: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), cases.len(), "{}", ran.all());
    let mut stored = lines(&env, &format!("{jid}/history.jsonl")).into_iter().skip(1);
    for ((message, expected), answer) in cases.iter().zip(answers) {
        if expected.is_string() {
            assert_eq!(&answer["error"], expected, "{message}");
            continue;
        }
        let mut line = stored.next().unwrap_or_else(|| panic!("{message}: {answer}"));
        assert_eq!((&line["type"], &line["role"]), (&json!("message"), &json!("user")), "{message}");
        for key in ["type", "role", "ts", "msg_id"] {
            assert!(line.as_object_mut().unwrap().shift_remove(key).is_some(), "{message}: {key}");
        }
        assert_eq!(&line, expected, "{message}");
    }
    assert_eq!(stored.next(), None);
}

#[test]
fn words_are_stored_without_the_addresses_of_files() {
    const URL: &str = "https://f.example/u/a.png";
    let case = |body: &str, oob: Value, content: &str, names: &[&str]| {
        let mut stored = json!({"content": content, "sender": "alice@example.com"});
        if !names.is_empty() {
            let file = |name: &&str| json!({"filename": name, "mime_type": "unknown", "size": "unknown"});
            stored["attachments"] = names.iter().map(file).collect();
        }
        (json!({"body": body, "oob": oob}), stored)
    };
    let longer = format!("{URL}?x=1");
    check_stored(
        "alice@example.com",
        &[
            case("", json!([URL]), "", &["a.png"]),
            case(URL, json!(URL), "", &["a.png"]),
            case(&format!("see {URL} now"), json!([URL]), "see  now", &["a.png"]),
            case(&format!("{URL}\r\n\r\n look \r\n"), json!([URL]), "look", &["a.png"]),
            case(&format!("{URL} {URL}"), json!([URL, URL]), "", &["a.png", "a.png"]),
            case(&format!("{URL}\n{longer}\n"), json!([URL, longer]), "", &["a.png", "a.png"]),
            case(&format!("{URL}\n{longer}\n"), json!([longer, URL]), "", &["a.png", "a.png"]),
            case(&format!("({URL}), {URL}."), json!([URL]), "(), .", &["a.png"]),
            case(&longer, json!([URL]), "?x=1", &["a.png"]),
            case(&URL.to_uppercase(), json!([URL]), &URL.to_uppercase(), &["a.png"]),
            case("a\n\n \n b ", json!([URL]), "a\nb", &["a.png"]),
            case(" a\n\n \n b ", json!([]), "a\n\n \n b", &[]),
            case(&format!("\u{a0}{URL}\u{3000}"), json!([URL]), "", &["a.png"]),
            case(
                "x",
                json!(["https://f.example/d/", "https://f.example", "aesgcm://f.example/s.bin#00ff"]),
                "x",
                &["file", "file", "s.bin"],
            ),
            case("x", json!([""]), "x", &[]),
        ],
    );
}

#[test]
fn files_are_told_by_type_and_size_or_as_unknown() {
    let case = |size: Value, mime_type: Value, expected: Result<(&str, &str), &str>| {
        let message = json!({"oob": [{"url": "https://f.example/a.png", "size": size, "mimeType": mime_type}]});
        let stored = expected.map(|(size, mime_type)| {
            json!({"content": "", "sender": "alice@example.com",
                "attachments": [{"filename": "a.png", "mime_type": mime_type, "size": size}]})
        });
        (message, stored.unwrap_or_else(Value::from))
    };
    let sized = |size: Value, label| case(size, "image/png".into(), Ok((label, "image/png")));
    let refused = |size: Value, told: &str| {
        let why = format!("message: size is {told} and should be a whole number, not negative");
        case(size, Value::Null, Err(&why))
    };
    check_stored(
        "alice@example.com",
        &[
            sized(json!(0), "0B"),
            sized(json!(1), "1B"),
            sized(json!(1023), "1023B"),
            sized(json!(1024), "1KB"),
            sized(json!(2047), "1KB"),
            sized(json!(1_048_575), "1023KB"),
            sized(json!(1_048_576), "1.0MB"),
            sized(json!(1_258_291), "1.2MB"),
            sized(json!(u64::MAX), "17592186044416.0MB"),
            sized(json!(1024.0), "1KB"),
            sized(Value::Null, "unknown"),
            refused(json!(-1), "-1"),
            refused(json!(1.5), "1.5"),
            refused(json!("5"), "\"5\""),
            refused(json!(1e30), "1e+30"),
            case(json!(1), Value::Null, Ok(("1B", "unknown"))),
            case(json!(1), json!(""), Ok(("1B", "unknown"))),
            case(json!(1), json!("application/x-strange"), Ok(("1B", "application/x-strange"))),
        ],
    );
}

#[test]
fn who_speaks_is_a_bare_jid_or_somebody_in_the_room() {
    let case = |from: &str, kind: Value, expected: Result<&str, &str>| {
        let stored = expected.map(|sender| json!({"content": "hi", "sender": sender}));
        (json!({"body": "hi", "from": from, "type": kind}), stored.unwrap_or_else(Value::from))
    };
    check_stored(
        "lobby@conference.example.com",
        &[
            case("lobby@conference.example.com/alice", Value::Null, Ok("alice@muc")),
            case("lobby@conference.example.com/al/ice", json!("groupchat"), Ok("al/ice@muc")),
            case("LOBBY@conference.example.com/\u{c9}ve", Value::Null, Ok("\u{c9}ve@muc")),
            case("lobby@conference.example.com/x\ny", Value::Null, Ok("x\u{FFFD}y@muc")),
            case("lobby@conference.example.com/alice", json!("chat"), Ok("lobby@conference.example.com")),
            case(
                "lobby@conference.example.com",
                Value::Null,
                Err("message: from is \"lobby@conference.example.com\" and should name somebody in the room"),
            ),
            case(
                "eve@example.com/x",
                Value::Null,
                Err("message: from is \"eve@example.com/x\", but the session is with \"lobby@conference.example.com\""),
            ),
            case(
                "lobby@conference.example.com/alice",
                json!("error"),
                Err("message: its type is error: it could not be delivered"),
            ),
        ],
    );
    check_stored(
        "alice@example.com",
        &[
            case("alice@example.com/phone", Value::Null, Ok("alice@example.com")),
            case("alice@example.com/phone", json!("normal"), Ok("alice@example.com")),
            case("alice@example.com/phone", json!("groupchat"), Ok("phone@muc")),
        ],
    );
}

#[test]
fn reactions_are_stored_whatever_they_are_to() {
    let case = |reaction: Value, expected: Result<Value, &str>| {
        let stored =
            expected.map(|reaction| json!({"content": "", "sender": "alice@example.com", "reaction": reaction}));
        (json!({ "reaction": reaction }), stored.unwrap_or_else(Value::from))
    };
    check_stored(
        "alice@example.com",
        &[
            case(
                json!({"messageId": "gone", "emojis": ["\u{1F44D}"]}),
                Ok(json!({"message_id": "gone", "emojis": ["\u{1F44D}"]})),
            ),
            case(
                json!({"message_id": "m", "emojis": "\u{1F44D}"}),
                Ok(json!({"message_id": "m", "emojis": ["\u{1F44D}"]})),
            ),
            case(
                json!({"messageId": "m", "emojis": ["", "\u{1F44D}"]}),
                Ok(json!({"message_id": "m", "emojis": ["\u{1F44D}"]})),
            ),
            case(json!({"messageId": "m"}), Ok(json!({"message_id": "m", "emojis": []}))),
            case(json!({"messageId": "m", "emojis": [""]}), Err("message: emojis is a list of empty texts")),
            case(json!({"emojis": ["\u{1F44D}"]}), Err("message: messageId is missing")),
            case(json!({"messageId": "", "emojis": []}), Err("message: messageId is empty")),
            case(json!("\u{1F44D}"), Err("message: reaction is \"\u{1F44D}\" and should be an object")),
        ],
    );
}

#[test]
fn what_says_nothing_is_not_stored() {
    let env = TestEnv::new();
    let input = "{\"user\": \"\"}\n{\"assistant\": \"\"}\n{\"message\": {\"oob\": [\"\"]}}\n{\"message\": \" \"}\n";
    let ran = fluux(&env, &["record", "--jid", "alice@example.com"], input);
    assert_eq!((ran.code, ran.out.matches("\"error\":").count()), (1, 4), "{}", ran.all());
    assert_eq!(ran.out.matches("fluux cannot store this: empty message").count(), 2, "{}", ran.out);
    assert!(!env.work().join("memory/alice@example.com/history.jsonl").exists());
}

#[test]
fn somebody_in_a_chat_of_two_is_called_by_the_bare_jid() {
    let env = TestEnv::new();
    let input = "{\"message\": {\"body\": \"a\", \"from\": \"Alice@example.com/phone\"}}\n{\"message\": \"b\"}\n\
                 {\"message\": {\"body\": \"c\", \"room\": false, \"mood\": 1}}\n";
    let ran = fluux(&env, &["record", "--jid", "alice@example.com/desk"], input);
    assert_eq!(ran.code, 0, "{}", ran.all());
    assert!(ran.out.lines().last().unwrap().contains("\"what\":\"mood\""), "{}", ran.out);
    let senders: Vec<Value> = lines(&env, "alice@example.com/history.jsonl")
        .into_iter()
        .skip(1)
        .map(|line| line["sender"].clone())
        .collect();
    assert_eq!(senders, ["Alice@example.com", "alice@example.com", "alice@example.com"]);
}
