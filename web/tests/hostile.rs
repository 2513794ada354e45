//! Sessions of hostile sizes and shapes: every page of them is readable and small, and nothing in it is active.

mod support;

use std::fs;
use std::path::Path;

use scrollback_web::catalogue;
use serde_json::{Value, json};
use support::{Served, record, talk, write_session};

/// A page before its assets.
const PAGE_LIMIT_BYTES: usize = 300 * 1024;

/// Whether sizes are those of the promise, or so small that a push is not held up.
fn size(full: usize, push: usize) -> usize {
    if std::env::var_os("SCROLLBACK_TORTURE").is_some() { full } else { push }
}

/// Asks for every page of a session: each is there, small, and runs nothing.
fn check(served: &Served, id: &str) {
    let views = [
        "",
        "?first=1",
        "?open=tools",
        "?show=prompts",
        "/tree",
        "/files",
        "/files?file=0",
        "/replay",
        "/replay?turn=1",
    ];
    for path in views
        .iter()
        .map(|view| format!("/s/{id}{view}"))
        .chain(["/".to_owned(), "/stats?since=all".to_owned()])
    {
        let answer = served.page(&path);
        assert_eq!(answer.status.as_u16(), 200, "{path}: {}", &answer.body[..answer.body.len().min(500)]);
        assert!(answer.body.len() <= PAGE_LIMIT_BYTES, "{path} has {} bytes", answer.body.len());
        assert!(answer.body.ends_with("</html>"), "{path} is cut");
        let scripts = answer.body.matches("<script").count();
        assert_eq!(scripts, 1, "{path} has {scripts} scripts");
    }
    for kind in ["html", "md"] {
        let exported = served.page(&format!("/s/{id}/export?to={kind}"));
        assert_eq!(exported.status.as_u16(), 200, "{kind}");
        assert!(!exported.body.contains("<script"), "{kind}");
    }
}

fn assistant(id: &str, parent: &str, message: Value) -> Value {
    record("assistant", id, Some(parent), message)
}

fn prompt() -> Value {
    record("user", "u1", None, json!({"role": "user", "content": "Go on."}))
}

#[test]
fn a_huge_message_is_cut_with_a_way_to_all_of_it() {
    let huge = "A line of a very long answer.\n".repeat(size(50_000_000, 3_000_000) / 30);
    let answer = assistant("a1", "u1", json!({"role": "assistant", "content": huge}));
    let served = Served::of(&[("huge", vec![prompt(), answer])]);
    check(&served, "huge");
    let page = served.page("/s/huge").body;
    let (before, _) = page.split_once("\">Show all of it").unwrap();
    let whole = served.page(before.rsplit_once("href=\"").unwrap().1);
    assert!(whole.body.len() > 2_000_000, "{}", whole.body.len());
    assert!(whole.headers["content-type"].to_str().unwrap().starts_with("text/plain"));
}

#[test]
fn ten_thousand_parallel_calls_are_shown_page_by_page() {
    let count = size(10_000, 2_000);
    let calls: Vec<Value> = (0..count)
        .map(|at| json!({"id": format!("c{at}"), "name": "bash", "arguments": {"command": format!("echo {at}")}}))
        .collect();
    let answer = assistant("a1", "u1", json!({"role": "assistant", "content": "", "toolCalls": calls}));
    let served = Served::of(&[("calls", vec![prompt(), answer])]);
    check(&served, "calls");
    // Every one of them is reached by going on reading.
    let (mut path, mut seen) = ("/s/calls?message=a1&part=0".to_owned(), 0);
    loop {
        let page = served.page(&path).body;
        assert!(page.len() <= PAGE_LIMIT_BYTES);
        seen += page.matches("<details class=\"tool\"").count();
        let Some((before, _)) = page.split_once("\">Go on reading") else { break };
        let next = before.rsplit_once("href=\"").unwrap().1.replace("&amp;", "&");
        assert_ne!(next, path);
        path = next;
    }
    assert_eq!(seen, count);
}

#[test]
fn long_titles_ids_and_names_take_one_line() {
    let long = "<b>word ".repeat(size(1_000_000, 400_000) / 8);
    let mut lines = talk("hello", "world");
    lines.push(json!({"type": "custom_title", "uuid": "t", "parentUuid": "a1", "title": long, "customTitle": long, "timestamp": "2026-11-01T10:00:01Z", "format": 2}));
    let call = json!({"id": "c", "name": long, "arguments": {"path": long, "x": long}});
    lines.push(assistant("a2", "a1", json!({"role": "assistant", "content": "", "model": long, "toolCalls": [call]})));
    lines[0]["context"] = json!({"cwd": format!("/w/{}", "x".repeat(5_000)), "gitBranch": long});
    let served = Served::of(&[("long", lines)]);
    check(&served, "long");
    assert!(!served.page("/").body.contains("<b>word"));
}

#[test]
fn a_table_of_a_thousand_columns_scrolls_in_its_own_box() {
    let row = |cell: &str| format!("|{}", format!("{cell}|").repeat(1_000));
    let table = format!("{}\n{}\n{}", row("a"), row("-"), format!("{}\n", row("<i>")).repeat(50));
    let answer = assistant("a1", "u1", json!({"role": "assistant", "content": table}));
    let served = Served::of(&[("table", vec![prompt(), answer])]);
    check(&served, "table");
}

#[test]
fn what_is_called_a_picture_is_one_only_by_its_bytes() {
    use base64::Engine;
    let data = |kind: &str, bytes: &[u8]| {
        format!("data:{kind};base64,{}", base64::engine::general_purpose::STANDARD.encode(bytes))
    };
    let files = [
        data("image/png", b"<html><script>alert(1)</script>"),
        data(
            "image/svg+xml",
            b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'><script>alert(1)</script></svg>",
        ),
        data("text/html", b"<script>alert(1)</script>"),
        "data:image/png;base64,****".to_owned(),
        "data:text/html,<script>alert(1)</script>".to_owned(),
        "javascript:alert(1)".to_owned(),
        "https://evil.invalid/x.png".to_owned(),
    ];
    let parts: Vec<Value> = files
        .iter()
        .map(|url| json!({"type": "file", "mediaType": "image/png", "filename": "x.png", "url": url}))
        .collect();
    let chat = json!({"id": "pictures", "messages": [{"id": "m1", "role": "user", "parts": parts}]});
    let folder = tempfile::tempdir().unwrap();
    let chats = folder.path().join(".local/share/scrollback/chats");
    fs::create_dir_all(&chats).unwrap();
    fs::write(chats.join("pictures.json"), chat.to_string()).unwrap();
    let served = Served::over(folder);
    check(&served, "pictures");
    for part in 0..files.len() {
        let answer = served.page(&format!("/s/pictures/file/m1/{part}"));
        let policy = answer.headers["content-security-policy"].to_str().unwrap();
        match answer.status.as_u16() {
            200 => {
                // What is no picture is saved, and never shown.
                match answer.headers["content-type"].to_str().unwrap() {
                    "image/svg+xml" => {}
                    kind => assert_eq!(kind, "application/octet-stream", "{part}"),
                }
                let is_saved = answer
                    .headers
                    .get("content-disposition")
                    .is_some_and(|how| how.to_str().unwrap().starts_with("attachment"));
                assert_eq!(is_saved, answer.headers["content-type"] == "application/octet-stream", "{part}");
                assert_eq!(answer.headers["x-content-type-options"], "nosniff");
                assert!(policy.starts_with("sandbox; default-src 'none'"), "{policy}");
            }
            status => assert_eq!(status, 404, "{part}"),
        }
        let text = served.page(&format!("/s/pictures/part/m1/{part}"));
        assert!(text.headers["content-type"].to_str().unwrap().starts_with("text/plain"), "{part}");
    }
}

#[test]
fn a_session_that_changes_between_two_pages_gets_a_readable_answer() {
    let served = Served::of(&[("sa", talk("hello", "world")), ("sb", talk("other", "one"))]);
    let file = |id: &str| served.folder.path().join(".sage/sessions").join(id).join("messages.jsonl");
    let pages = |id: &str| -> Vec<u16> {
        let views = ["", "?before=a1", "?at=u1", "?first=1", "/tree", "/files", "/replay", "/part/u1/0"];
        views.iter().map(|view| served.page(&format!("/s/{id}{view}")).status.as_u16()).collect()
    };
    assert!(pages("sa").iter().all(|status| *status == 200), "{:?}", pages("sa"));
    // Cut in the middle of its last line.
    let whole = fs::read(file("sa")).unwrap();
    fs::write(file("sa"), &whole[..whole.len() - 40]).unwrap();
    assert!(served.page("/s/sa").body.contains("hello"));
    assert_eq!(
        pages("sa"),
        [200, 404, 200, 200, 200, 200, 200, 200],
        "the answer is gone, and a page before it with it"
    );
    // Replaced by another one.
    fs::write(file("sa"), fs::read(file("sb")).unwrap()).unwrap();
    assert!(served.page("/s/sa").body.contains("other"));
    // Empty, then gone.
    fs::write(file("sa"), "").unwrap();
    assert!(served.page("/s/sa").body.contains("no message yet"));
    fs::remove_file(file("sa")).unwrap();
    let gone = served.page("/s/sa");
    assert_eq!(gone.status.as_u16(), 410);
    assert!(gone.body.contains("moved or deleted"));
    assert!(pages("sa").iter().all(|status| matches!(status, 404 | 410)), "{:?}", pages("sa"));
    catalogue::list(&served.site);
    assert_eq!(served.page("/s/sa").status.as_u16(), 404);
    assert_eq!(served.page("/s/sb").status.as_u16(), 200);
}

#[test]
fn a_call_that_names_its_own_session_does_not_go_on_for_ever() {
    let call = |at: usize| json!({"id": format!("c{at}"), "name": "task", "arguments": {"prompt": "again", "description": "again"}});
    let calls: Vec<Value> = (0..50).map(call).collect();
    let mut lines =
        vec![prompt(), assistant("a1", "u1", json!({"role": "assistant", "content": "", "toolCalls": calls}))];
    for at in 0..50 {
        let mut result = record("tool_result", &format!("r{at}"), Some("a1"), Value::Null);
        result["toolCallId"] = format!("c{at}").into();
        result["result"] = json!({"sessionId": "again", "agentId": "again"});
        lines.push(result);
    }
    let served = Served::of(&[("again", lines)]);
    check(&served, "again");
}

#[test]
fn bytes_that_are_no_session_do_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    write_session(folder.path(), "good", &talk("hello", "world"));
    let write = |id: &str, bytes: &[u8]| {
        let place: &Path = &folder.path().join(".sage/sessions").join(id);
        fs::create_dir_all(place).unwrap();
        fs::write(place.join("messages.jsonl"), bytes).unwrap();
    };
    write("noise", &(0..60_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect::<Vec<_>>());
    write("nuls", &[0; 10_000]);
    write("deep", "[".repeat(100_000).as_bytes());
    let served = Served::over(folder);
    assert!(served.page("/").body.contains("hello"));
    for id in ["good", "noise", "nuls", "deep"] {
        for view in ["", "/tree", "/files", "/replay", "/export"] {
            let answer = served.page(&format!("/s/{id}{view}"));
            assert!(answer.body.len() <= PAGE_LIMIT_BYTES, "{id}{view}");
            assert!(matches!(answer.status.as_u16(), 200 | 404 | 500), "{id}{view}: {}", answer.status);
        }
    }
}

#[test]
fn a_file_has_all_of_a_long_text() {
    let long = |end: &str| format!("{}<{end}>", "**words** and more\n".repeat(60_000));
    let call = json!([{"id": "c1", "name": "bash", "arguments": {"command": "make"}}]);
    let mut lines = talk(&long("prompt"), &long("answer"));
    lines[1]["message"]["toolCalls"] = call;
    let mut result = record("tool_result", "r1", Some("a1"), Value::Null);
    result.as_object_mut().unwrap().remove("message");
    result["toolResults"] =
        json!([{"toolCallId": "c1", "toolName": "bash", "content": long("output"), "success": true}]);
    lines.push(result);
    let served = Served::of(&[("sa", lines)]);
    check(&served, "sa");
    let file = served.page("/s/sa/export").body;
    for end in ["prompt", "answer", "output"] {
        assert_eq!(file.matches(&format!("&lt;{end}&gt;")).count(), 1, "{end}");
    }
    assert!(file.matches(" and more").count() >= 180_000 && !file.contains('\0'));
}
