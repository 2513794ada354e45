//! Which branches a new session has, and which one it opens on.

use scrollback::model::Error;
use scrollback::write::Store;

use super::{convert, convert_head, folder, host, named, open, outline, session};

pub(super) const BRANCHES: [&str; 5] = [
    r#"{"role":"user","uuid":"11111111-1111-4111-8111-111111111111","parentUuid":null,"content":"Name it."}"#,
    r#"{"role":"assistant","uuid":"22222222-2222-4222-8222-222222222222","parentUuid":"11111111-1111-4111-8111-111111111111","content":"Tides."}"#,
    r#"{"role":"user","uuid":"33333333-3333-4333-8333-333333333333","parentUuid":"22222222-2222-4222-8222-222222222222","content":"Longer."}"#,
    r#"{"role":"user","uuid":"44444444-4444-4444-8444-444444444444","parentUuid":"22222222-2222-4222-8222-222222222222","content":"Shorter."}"#,
    r#"{"role":"assistant","uuid":"55555555-5555-4555-8555-555555555555","parentUuid":"44444444-4444-4444-8444-444444444444","content":"Td."}"#,
];

#[test]
fn branches_stay_where_there_are_some_and_a_head_can_be_chosen() {
    for (to, heads) in [("claude-code", 2), ("qwen-code", 2), ("codex", 1), ("fluux", 1), ("sage-el", 1), ("ai-sdk", 1)]
    {
        let folder = folder();
        let source = session("native", folder.path(), &BRANCHES);
        let newest = convert(&source, named(to), &folder.path().join("newest.jsonl")).unwrap();
        let converted = open(named(to), &newest.path);
        assert_eq!(converted.heads().len(), heads, "{to}");
        assert_eq!(outline(&converted), outline(&source), "{to}");
        let older = convert_head(&source, named(to), &folder.path().join("older.jsonl"), Some("33333333"));
        let older = open(named(to), &older.unwrap().path);
        assert_eq!(outline(&older), ["user: Name it.", "assistant: Tides.", "user: Longer."], "{to}");
        let lost: Vec<_> = newest.losses.iter().filter(|row| row.what.name() == "other branch").collect();
        assert_eq!(lost.len(), usize::from(heads == 1), "{to}: {:?}", newest.losses);
    }
    let folder = folder();
    let source = session("native", folder.path(), &BRANCHES);
    assert!(convert_head(&source, named("codex"), &folder.path().join("x.jsonl"), Some("nobody")).is_err());
    assert!(!folder.path().join("x.jsonl").exists());
}

/// A new session never opens with what somebody has left.
#[test]
fn a_branch_without_messages_is_refused_with_the_one_that_was_left() {
    let rewound = r#"{"type":"rewind","uuid":"66666666-6666-4666-8666-666666666666","parentUuid":null,"timestamp":"2026-10-02T09:00:09Z"}"#;
    for to in ["claude-code", "qwen-code", "codex", "sage-el", "ai-sdk"] {
        let folder = folder();
        let source = session("native", folder.path(), &[&BRANCHES[..], &[rewound]].concat());
        let new = folder.path().join("new.jsonl");
        let error = convert(&source, named(to), &new).err();
        assert!(
            matches!(&error, Some(Error::EmptyBranch { left, .. }) if left.as_str().starts_with("5555")),
            "{to}: {error:?}"
        );
        assert!(!new.exists(), "{to}");
        let chosen = convert_head(&source, named(to), &new, Some("55555555")).unwrap();
        assert_eq!(outline(&open(named(to), &chosen.path)).len(), 4, "{to}");
    }
}

/// Work beside the conversation can be chosen, and so can an answer whose tools have answered.
#[test]
fn a_chosen_head_is_what_the_new_session_opens_on() {
    let scout = [
        r#"{"role":"user","uuid":"11111111-1111-4111-8111-111111111111","parentUuid":null,"content":"Split it."}"#,
        r#"{"role":"user","uuid":"22222222-2222-4222-8222-222222222222","parentUuid":"11111111-1111-4111-8111-111111111111","isSidechain":true,"content":"Who imports it?"}"#,
        r#"{"role":"assistant","uuid":"33333333-3333-4333-8333-333333333333","parentUuid":"22222222-2222-4222-8222-222222222222","isSidechain":true,"content":"Three modules."}"#,
        r#"{"role":"assistant","uuid":"44444444-4444-4444-8444-444444444444","parentUuid":"11111111-1111-4111-8111-111111111111","content":"It is split."}"#,
    ];
    let parallel = [
        r#"{"type":"user","uuid":"11111111-1111-4111-8111-111111111111","parentUuid":null,"timestamp":"2026-10-02T09:00:01Z","sessionId":"s","cwd":"/gone","message":{"role":"user","content":"Look."}}"#,
        r#"{"type":"assistant","uuid":"33333333-3333-4333-8333-333333333333","parentUuid":"11111111-1111-4111-8111-111111111111","timestamp":"2026-10-02T09:00:02Z","sessionId":"s","cwd":"/gone","message":{"id":"m","role":"assistant","model":"x","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"t1","name":"Read","input":{}},{"type":"tool_use","id":"t2","name":"Read","input":{}}]}}"#,
        r#"{"type":"user","uuid":"44444444-4444-4444-8444-444444444444","parentUuid":"33333333-3333-4333-8333-333333333333","timestamp":"2026-10-02T09:00:03Z","sessionId":"s","cwd":"/gone","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"a"},{"type":"tool_result","tool_use_id":"t2","content":"b"}]}}"#,
        r#"{"type":"assistant","uuid":"55555555-5555-4555-8555-555555555555","parentUuid":"44444444-4444-4444-8444-444444444444","timestamp":"2026-10-02T09:00:04Z","sessionId":"s","cwd":"/gone","message":{"id":"n","role":"assistant","model":"x","content":[{"type":"text","text":"Seen."}]}}"#,
    ];
    let split: &[&str] = &["user: Split it.", "user: Who imports it?", "assistant: Three modules."];
    let seen: &[&str] =
        &["user: Look.", "assistant: I look.", "call Read: output-available", "call Read: output-available"];
    for (from, lines, expected) in [("native", scout, split), ("claude-code", parallel, seen)] {
        for to in ["native", "claude-code", "qwen-code", "codex", "sage-el", "ai-sdk"]
            .into_iter()
            .filter(|to| *to != from)
        {
            let folder = folder();
            let source = session(from, folder.path(), &lines);
            let there = convert_head(&source, named(to), &folder.path().join("there.jsonl"), Some("33333333")).unwrap();
            assert_eq!(outline(&open(named(to), &there.path)), expected, "{from} → {to}");
        }
    }
}

/// A rewind to a chosen head is not in a sidechain, and what follows it continues from the head.
#[test]
fn what_went_on_from_a_chosen_head_comes_back_to_it() {
    let beside = r#"{"role":"user","uuid":"66666666-6666-4666-8666-666666666666","parentUuid":"55555555-5555-4555-8555-555555555555","isSidechain":true,"content":"Look."}"#;
    for to in ["claude-code", "qwen-code", "codex"] {
        let folder = folder();
        let source = session("native", folder.path(), &[&BRANCHES[..], &[beside]].concat());
        let there = convert_head(&source, named(to), &folder.path().join("there.jsonl"), Some("33333333")).unwrap();
        let mut expected = vec!["user: Name it.", "assistant: Tides.", "user: Longer."];
        assert_eq!(outline(&open(named(to), &there.path)), expected, "{to}");
        let store = Store::open(named(to), folder.path(), host()).unwrap();
        let mut recorder =
            store.resume_source(&scrollback::session::Source::file(named(to), &there.path), None).unwrap();
        recorder.user("And then?").unwrap();
        recorder.close().unwrap();
        expected.push("user: And then?");
        let there = open(named(to), &there.path);
        assert_eq!(outline(&there), expected, "{to}");
        let back = convert(&there, named("native"), &folder.path().join("back.jsonl")).unwrap();
        let back = open(named("native"), &back.path);
        assert_eq!(outline(&back), expected, "{to}");
        assert_eq!(back.heads().len(), 2, "{to}");
    }
}
