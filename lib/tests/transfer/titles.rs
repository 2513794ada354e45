//! What a session is called: the title that counts reaches every format that has titles, wherever the source keeps it.

use std::fs;
use std::path::Path;

use scrollback::model::{Title, TitleSource};
use scrollback::session::{Session, Source};
use scrollback::write::Store;
use serde_json::json;

use super::further::claude_lines;
use super::heads::BRANCHES;
use super::{convert, convert_head, folder, host, named, open, outline, session};

const WITH_TITLES: [&str; 4] = ["native", "claude-code", "qwen-code", "codex"];

/// Sessions with the title "Mine", each written in another way.
fn called_mine(folder: &Path) -> Vec<Session> {
    let talk = claude_lines(&[json!({"role": "user", "content": "Name it."})]);
    let codex = [
        r#"{"timestamp":"2026-10-02T09:00:00.000Z","ordinal":0,"type":"session_meta","payload":{"id":"019a0000-0000-7000-8000-000000000001","timestamp":"2026-10-02T09:00:00.000Z","cwd":"/gone","originator":"codex_cli_rs","cli_version":"0.166.0"}}"#,
        r#"{"timestamp":"2026-10-02T09:00:01.000Z","ordinal":1,"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"One?"}]}}"#,
        r#"{"timestamp":"2026-10-02T09:00:02.000Z","ordinal":2,"type":"event_msg","payload":{"type":"thread_name_updated","thread_name":"Mine"}}"#,
        r#"{"timestamp":"2026-10-02T09:00:03.000Z","ordinal":3,"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Two."}]}}"#,
    ];
    let prompt = r#"{"type":"user","uuid":"u1","parentUuid":null,"timestamp":"2026-10-02T09:00:07.000Z","sessionId":"s1","message":{"role":"user","content":"Name it."}}"#;
    let title = |uuid: &str, parent: Option<&str>, text: &str, source: &str| {
        json!({"type": "custom_title", "uuid": uuid, "parentUuid": parent, "timestamp": "2026-10-02T09:00:08.000Z",
            "sessionId": "s1", "format": 2, "title": text, "titleSource": source})
        .to_string()
    };
    let natives = [
        title("t1", None, "Made up", "automatic"),
        title("t2", Some("u1"), "Mine", "manual"),
        title("t3", Some("t2"), "Made up again", "automatic"),
    ];
    let at = |name: &str| {
        let folder = folder.join(name);
        fs::create_dir(&folder).unwrap();
        folder
    };
    let beside = at("s1");
    fs::write(beside.join("messages.jsonl"), format!("{prompt}\n")).unwrap();
    fs::write(beside.join("metadata.json"), r#"{"id":"s1","customTitle":"Mine"}"#).unwrap();
    let chat = at("chat").join("chat.json");
    fs::write(&chat, r#"{"id":"c1","title":"Mine","messages":[{"id":"m1","role":"user","parts":[{"type":"text","text":"Name it."}]}]}"#).unwrap();
    let of_claude = [
        talk[0].as_str(),
        r#"{"type":"custom-title","customTitle":"Mine","sessionId":"s"}"#,
        r#"{"type":"ai-title","aiTitle":"Made up","sessionId":"s"}"#,
    ];
    vec![
        session("claude-code", &at("claude"), &of_claude),
        session("codex", &at("codex"), &codex),
        session("native", &at("native"), &[prompt, &natives[0], &natives[1], &natives[2]]),
        open(named("native"), &beside.join("messages.jsonl")),
        open(named("ai-sdk"), &chat),
    ]
}

#[test]
fn the_current_title_is_kept() {
    let folder = folder();
    for (case, source) in called_mine(folder.path()).iter().enumerate() {
        assert_eq!(source.title().map(|title| title.text.as_str()), Some("Mine"), "case {case}");
        for to in ["native", "claude-code", "qwen-code", "codex", "ai-sdk", "sage-el", "fluux"] {
            if to == source.dialect().name() {
                continue;
            }
            let converted = convert(source, named(to), &folder.path().join(format!("{case}-{to}"))).unwrap();
            let now = open(named(to), &converted.path);
            let is_told = converted.losses.iter().any(|row| row.what.name() == "title");
            match now.title() {
                Some(title) => {
                    assert!(title.text == "Mine" && !is_told, "case {case} \u{2192} {to}: {:?}", converted.losses)
                }
                None => assert!(is_told && !WITH_TITLES.contains(&to), "case {case} \u{2192} {to}"),
            }
            assert_eq!(now.heads().len(), 1, "case {case} \u{2192} {to}");
        }
    }
}

#[test]
fn a_session_that_was_renamed_elsewhere_comes_back_with_its_new_name() {
    for (from, to) in WITH_TITLES.iter().flat_map(|from| WITH_TITLES.iter().map(move |to| (*from, *to))) {
        if from == to {
            continue;
        }
        let folder = folder();
        let source = super::further::rich(folder.path());
        let from_file = match from {
            "native" => source.path().to_path_buf(),
            from => convert(&source, named(from), &folder.path().join("from")).unwrap().path,
        };
        let there = convert(&open(named(from), &from_file), named(to), &folder.path().join("there")).unwrap();
        let store = Store::open(named(to), folder.path(), host()).unwrap();
        let title = Title { text: "Renamed".to_owned(), source: TitleSource::Manual };
        store.rename(&Source::file(named(to), &there.path), title).unwrap();
        let back = convert(&open(named(to), &there.path), named(from), &folder.path().join("back")).unwrap();
        let back = open(named(from), &back.path);
        assert_eq!(back.title().map(|title| title.text.as_str()), Some("Renamed"), "{from} \u{2192} {to} and back");
        assert_eq!(outline(&back), outline(&open(named(from), &from_file)), "{from} \u{2192} {to} and back");
    }
}

#[test]
fn a_title_beside_the_conversation_does_not_end_it() {
    let lines = [
        r#"{"type":"user","uuid":"11111111-1111-4111-8111-111111111111","parentUuid":null,"sessionId":"s","timestamp":"2026-11-06T16:04:00.000Z","message":{"role":"user","content":"Name it."}}"#,
        r#"{"type":"assistant","uuid":"22222222-2222-4222-8222-222222222222","parentUuid":"11111111-1111-4111-8111-111111111111","sessionId":"s","timestamp":"2026-11-06T16:04:01.000Z","message":{"id":"m","role":"assistant","model":"claude-x","content":[{"type":"text","text":"Tides."}]}}"#,
        r#"{"type":"custom-title","customTitle":"Tides","sessionId":"s"}"#,
    ];
    for to in ["native", "qwen-code", "codex", "ai-sdk"] {
        let folder = folder();
        let source = session("claude-code", folder.path(), &lines);
        let converted = convert(&source, named(to), &folder.path().join("new.jsonl")).unwrap();
        let converted = open(named(to), &converted.path);
        assert_eq!(outline(&converted), ["user: Name it.", "assistant: Tides."], "{to}");
        assert_eq!(converted.heads().len(), 1, "{to}");
    }
}

/// Written last, a title that only a file beside the conversation has does not hide that the conversation ends earlier.
#[test]
fn a_titled_session_opens_on_the_chosen_head() {
    let folder = folder();
    let beside = folder.path().join("beside");
    fs::create_dir(&beside).unwrap();
    fs::write(beside.join("messages.jsonl"), BRANCHES.join("\n") + "\n").unwrap();
    fs::write(beside.join("metadata.json"), r#"{"id":"s1","customTitle":"Mine"}"#).unwrap();
    let chat = folder.path().join("chat.json");
    let message = |id: &str, text: &str| json!({"id": id, "role": "user", "parts": [{"type": "text", "text": text}]});
    let messages = [message("m1", "Name it."), message("m2", "Longer."), message("m3", "Shorter.")];
    fs::write(&chat, json!({"id": "c1", "title": "Mine", "messages": messages}).to_string()).unwrap();
    for (from, path, head, expected) in [
        (
            "native",
            beside.join("messages.jsonl"),
            "33333333",
            &["user: Name it.", "assistant: Tides.", "user: Longer."][..],
        ),
        ("ai-sdk", chat, "m2", &["user: Name it.", "user: Longer."]),
    ] {
        let source = open(named(from), &path);
        for to in WITH_TITLES.into_iter().filter(|to| *to != from) {
            let new = folder.path().join(format!("{from}-{to}.jsonl"));
            let new = open(named(to), &convert_head(&source, named(to), &new, Some(head)).unwrap().path);
            assert_eq!(outline(&new), expected, "{from} \u{2192} {to}");
            assert_eq!(new.title().map(|title| title.text.as_str()), Some("Mine"), "{from} \u{2192} {to}");
        }
    }
}

/// Codex puts a tag before and after each picture of a prompt: nobody typed it, wherever it goes.
#[test]
fn a_tag_is_no_title() {
    let line = |kind: &str, payload: serde_json::Value| {
        json!({"timestamp": "2026-10-02T09:00:00Z", "type": kind, "payload": payload}).to_string()
    };
    let text = |text: &str| json!({"type": "input_text", "text": text});
    let picture = json!({"type": "input_image", "image_url": "data:image/png;base64,AAAA"});
    let content = [text("<image name=[Image #1] path=\"/red.png\">"), picture, text("</image>"), text("What is it?")];
    let lines = [
        line("session_meta", json!({"id": "5e551000-0000-4000-8000-000000000001", "cwd": "/tide"})),
        line("response_item", json!({"type": "message", "role": "user", "content": content})),
    ];
    let folder = folder();
    let source = session("codex", folder.path(), &lines.each_ref().map(String::as_str));
    for to in WITH_TITLES.into_iter().filter(|to| *to != "codex") {
        let there = convert(&source, named(to), &folder.path().join(format!("{to}.jsonl"))).unwrap();
        assert_eq!(open(named(to), &there.path).row().unwrap().title, "What is it?", "{to}");
    }
}
