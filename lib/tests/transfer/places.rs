//! The place of a converted session, its person and version, and what is skipped.

use std::fs;
use std::path::Path;

use scrollback::model::Error;
use scrollback::session::Session;
use scrollback::transfer::convert::{Conversion, Target};

use super::{convert, convert_head, folder, host, named, open, session};

const FLUUX: [&str; 2] = [
    r#"{"type":"session","version":1,"created":"2026-01-01T00:00:00+00:00","jid":"ada@example.org"}"#,
    r#"{"type":"message","role":"user","content":"Tides?","msg_id":"m1","ts":"2026-01-01T00:00:00+00:00"}"#,
];

const CLAUDE: &str = r#"{"type":"user","uuid":"11111111-1111-4111-8111-111111111111","parentUuid":null,"sessionId":"s","version":"9.9.9","timestamp":"2026-11-06T16:04:00.000Z","message":{"role":"user","content":"Name it."}}"#;

fn write(path: &Path, lines: &[&str]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
}

/// Opens the only session of a store.
fn only(dialect: &str, store: &Path) -> Session {
    let found = scrollback::write::Store::open(named(dialect), store, host()).unwrap();
    let rows = found.list(None).rows;
    found.load(rows[0].id.as_str()).unwrap()
}

#[test]
fn an_ended_session_comes_to_lie_among_the_ended_ones() {
    let folder = folder();
    let at = |store: &str| folder.path().join(store).join("ada@example.org/sessions/20260101-000000.jsonl");
    write(&at("one"), &FLUUX);
    let source = only("fluux", &folder.path().join("one"));
    let to = |dialect, store: &Path, from: &Session| {
        let how = Conversion { to: named(dialect), target: Target::Store(store), head: None, with: None };
        from.convert(&how, &host()).unwrap()
    };
    assert_eq!(to("fluux", &folder.path().join("two"), &source).path, at("two"));
    let there = to("native", &folder.path().join("native"), &source);
    let back = to("fluux", &folder.path().join("three"), &open(named("native"), &there.path));
    assert_eq!(back.path, at("three"));
}

#[test]
fn the_file_beside_a_session_tells_whether_it_is_over() {
    let answer = r#"{"type":"assistant","uuid":"22222222-2222-4222-8222-222222222222","parentUuid":"11111111-1111-4111-8111-111111111111","sessionId":"s","timestamp":"2026-11-06T16:04:01.000Z","message":{"id":"m","role":"assistant","model":"x","content":[{"type":"text","text":"Tides."}]}}"#;
    let called = r#"{"type":"assistant","uuid":"22222222-2222-4222-8222-222222222222","parentUuid":"11111111-1111-4111-8111-111111111111","sessionId":"s","timestamp":"2026-11-06T16:04:01.000Z","message":{"id":"m","role":"assistant","model":"x","content":[{"type":"tool_use","id":"c","name":"read","input":{}}]}}"#;
    for (lines, state) in
        [(&[CLAUDE][..], "active"), (&[CLAUDE, called][..], "active"), (&[CLAUDE, answer][..], "completed")]
    {
        let folder = folder();
        let (source, store) = (session("claude-code", folder.path(), lines), folder.path().join("store"));
        let how = Conversion { to: named("native"), target: Target::Store(&store), head: None, with: None };
        let converted = source.convert(&how, &host()).unwrap();
        let beside = fs::read(converted.path.with_file_name("metadata.json")).unwrap();
        let sidecar: serde_json::Value = serde_json::from_slice(&beside).unwrap();
        assert_eq!(sidecar["state"], state, "{lines:?}");
    }
}

#[test]
fn the_way_back_leads_to_where_the_original_lay() {
    let uuid = "11111111-1111-4111-8111-111111111111";
    let claude = CLAUDE.replace(r#""version""#, r#""cwd":"/gone/shore","version""#);
    let codex = r#"{"timestamp":"2026-11-10T09:02:41.000Z","type":"session_meta","payload":{"id":"11111111-1111-4111-8111-111111111111","timestamp":"2026-11-09T08:00:00.000Z","cwd":"/gone/shore","originator":"x","cli_version":"1"}}"#;
    let codex_user = r#"{"timestamp":"2026-11-10T09:02:42.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Tides?"}]}}"#;
    let sage_el = r#"{"role":"user","content":"Tides?","timestamp":"2026-11-07T18:02:12+0100"}"#;
    let qwen = r#"{"uuid":"22222222-2222-4222-8222-222222222222","parentUuid":null,"sessionId":"11111111-1111-4111-8111-111111111111","timestamp":"2026-11-15T20:31:33.880Z","type":"user","cwd":"/gone/shore","version":"1","message":{"role":"user","parts":[{"text":"Tides?"}]}}"#;
    let ai_sdk =
        r#"{"id":"chat-7d2f41","messages":[{"id":"m1","role":"user","parts":[{"type":"text","text":"Tides?"}]}]}"#;
    let originals: [(&str, String, &[&str]); 8] = [
        ("claude-code", format!("projects/-gone-shore/{uuid}.jsonl"), &[&claude]),
        ("codex", format!("sessions/2026/11/10/rollout-2026-11-10T09-02-41-{uuid}.jsonl"), &[codex, codex_user]),
        ("qwen-code", format!("projects/-gone-shore/chats/{uuid}.jsonl"), &[qwen]),
        ("sage-el", "projects/-gone-shore/conversation.jsonl".to_owned(), &[sage_el]),
        ("sage-el", "projects/-gone-shore/history/20261024-091530.jsonl".to_owned(), &[sage_el]),
        ("fluux", "ada@example.org/history.jsonl".to_owned(), &FLUUX),
        ("fluux", "ada@example.org/sessions/20260101-000000.jsonl".to_owned(), &FLUUX),
        ("ai-sdk", "chats/buoys.json".to_owned(), &[ai_sdk]),
    ];
    for (from, place, lines) in originals {
        for to in super::ALL {
            let (folder, case) = (folder(), format!("{place} → {to}"));
            let at = |store: &str| folder.path().join(store).join(&place);
            write(&at("one"), lines);
            if from == "sage-el" {
                let sidecar = r#"{"project_dir":"/gone/shore"}"#;
                write(&folder.path().join("one/projects/-gone-shore/metadata.json"), &[sidecar]);
            }
            let source = only(from, &folder.path().join("one"));
            let is_copied = from == to;
            let into = |dialect, store: &str, from: &Session, with| {
                let store = folder.path().join(store);
                from.convert(
                    &Conversion { to: named(dialect), target: Target::Store(&store), head: None, with },
                    &host(),
                )
            };
            let with = (!is_copied && to == "fluux").then_some("eve@example.org");
            let there = into(to, "two", &source, with).unwrap_or_else(|error| panic!("{case}: {error}"));
            let back =
                if is_copied { there } else { into(from, "three", &open(named(to), &there.path), None).unwrap() };
            let store = if is_copied { "two" } else { "three" };
            assert_eq!(back.path, at(store), "{case}");
            assert_eq!(fs::read(&back.path).unwrap(), fs::read(at("one")).unwrap(), "{case}");
            // There it is found, whatever it is called.
            let again = if is_copied {
                into(from, "one", &source, None)
            } else {
                into(from, "one", &only(to, &folder.path().join("two")), None)
            };
            assert!(matches!(&again, Err(Error::Exists(path)) if *path == at("one")), "{case}: {again:?}");
            if from == "sage-el" {
                let sidecar = fs::read_to_string(folder.path().join(store).join("projects/-gone-shore/metadata.json"));
                assert!(sidecar.unwrap().contains("/gone/shore"), "{case}");
            }
        }
    }
}

#[test]
fn a_chat_stays_with_whom_it_was() {
    let folder = folder();
    write(&folder.path().join("one/ada@example.org/history.jsonl"), &FLUUX);
    let source = only("fluux", &folder.path().join("one"));
    let there = convert(&source, named("native"), &folder.path().join("there.jsonl")).unwrap();
    for session in [source, open(named("native"), &there.path)] {
        let into = |store: &str, with| {
            let store = folder.path().join(store);
            session
                .convert(&Conversion { to: named("fluux"), target: Target::Store(&store), head: None, with }, &host())
        };
        let refused = into("two", Some("eve@example.org"));
        assert!(matches!(&refused, Err(Error::WithAnother { with }) if with == "ada@example.org"), "{refused:?}");
        assert!(!folder.path().join("two").exists());
    }
}

/// The place in a sidecar is untrusted.
#[test]
fn a_place_that_is_none_is_not_gone_to() {
    let places = ["../out.jsonl", "/tmp/out.jsonl", "notes/out.jsonl", "projects/-gone/../../../out.jsonl", ""];
    for place in places {
        let folder = folder();
        let uuid = "11111111-1111-4111-8111-111111111111";
        write(&folder.path().join(format!("one/projects/-gone/{uuid}.jsonl")), &[CLAUDE]);
        let there =
            convert(&only("claude-code", &folder.path().join("one")), named("native"), &folder.path().join("n"));
        let there = there.unwrap();
        let sidecar = there.sidecar.unwrap();
        let mut kept: serde_json::Value = serde_json::from_slice(&fs::read(&sidecar).unwrap()).unwrap();
        kept["from"]["place"] = place.into();
        fs::write(&sidecar, kept.to_string()).unwrap();
        let store = folder.path().join("three");
        let how = Conversion { to: named("claude-code"), target: Target::Store(&store), head: None, with: None };
        let back = open(named("native"), &there.path).convert(&how, &host()).unwrap();
        assert!(back.path.starts_with(store.join("projects")) && !back.path.ends_with("out.jsonl"), "{place}");
    }
}

#[test]
fn the_session_that_it_begins_in_and_the_one_that_it_worked_for_are_told() {
    let folder = folder();
    let agent = CLAUDE.replace(r#""sessionId""#, r#""isSidechain":true,"agentId":"a1","sessionId""#);
    let source = session("claude-code", folder.path(), &[&agent]);
    assert!(source.parent_session().is_some());
    for to in super::ALL.into_iter().filter(|to| *to != "claude-code") {
        let converted = convert(&source, named(to), &folder.path().join(to)).unwrap();
        let is_known = open(named(to), &converted.path).parent_session().is_some();
        let is_told = converted.losses.iter().any(|row| row.what.name() == "parent session");
        assert!(is_known != is_told, "{to}: {:?}", converted.losses);
    }
}

#[test]
fn one_branch_of_what_is_copied_is_refused() {
    let folder = folder();
    let source = session("claude-code", folder.path(), &[CLAUDE]);
    let head = Some("11111111-1111-4111-8111-111111111111");
    let copy = convert_head(&source, named("claude-code"), &folder.path().join("copy"), head);
    assert!(matches!(copy, Err(Error::CopiedWhole)), "{copy:?}");
    let there = convert(&source, named("native"), &folder.path().join("there")).unwrap();
    let there = open(named("native"), &there.path);
    let head = there.head().unwrap().id().into_owned();
    let back = convert_head(&there, named("claude-code"), &folder.path().join("back"), Some(&head));
    assert!(matches!(back, Err(Error::CopiedWhole)), "{back:?}");
}

#[test]
fn a_chat_is_with_somebody_in_any_file() {
    let folder = folder();
    let source = session("claude-code", folder.path(), &[CLAUDE]);
    let file = folder.path().join("chat.jsonl");
    for with in [None, Some("../x"), Some("")] {
        let how = Conversion { to: named("fluux"), target: Target::File(&file), head: None, with };
        assert!(matches!(source.convert(&how, &host()), Err(Error::CannotCreate { .. })), "{with:?}");
        assert!(!file.exists());
    }
}

#[test]
fn one_programs_version_is_not_written_as_anothers() {
    for to in ["native", "codex", "qwen-code"] {
        let folder = folder();
        let source = session("claude-code", folder.path(), &[CLAUDE]);
        let converted = convert(&source, named(to), &folder.path().join("new")).unwrap();
        assert!(!fs::read_to_string(converted.path).unwrap().contains("9.9.9"), "{to}");
    }
}

#[test]
fn what_lies_beside_a_session_and_does_not_go_along_is_told() {
    let folder = folder();
    let project = folder.path().join("projects/-gone");
    let id = "33333333-3333-4333-8333-333333333333";
    write(&project.join(format!("{id}.jsonl")), &[CLAUDE]);
    write(&project.join(id).join("subagents/agent-1.jsonl"), &[CLAUDE]);
    write(&project.join(id).join("subagents/agent-1.meta.json"), &["{}"]);
    write(&project.join(id).join("tool-results/one.txt"), &["much"]);
    let layouts = named("claude-code").layouts_in(folder.path());
    let walked = layouts.into_iter().map(|layout| (named("claude-code"), layout)).collect::<Vec<_>>();
    let found = scrollback::session::Source::walk_all(&walked).into_iter().flatten();
    let source = found.into_iter().find(|source| source.path.ends_with(format!("{id}.jsonl"))).unwrap();
    let source = Session::open(&source, &super::support::reading()).unwrap();
    for to in ["native", "claude-code"] {
        let converted = convert(&source, named(to), &folder.path().join(to)).unwrap();
        let losses: Vec<(&str, u64)> = converted.losses.iter().map(|row| (row.what.name(), row.count)).collect();
        assert!(losses.contains(&("sub-agent session", 1)) && losses.contains(&("other files", 1)), "{to}: {losses:?}");
        assert_eq!(converted.other_files.len(), 1, "{to}: people are told its name");
    }
}

#[test]
fn a_session_that_tells_no_time_is_converted_once() {
    let folder = folder();
    let timeless = CLAUDE.replace(r#""timestamp":"2026-11-06T16:04:00.000Z","#, "");
    let source = session("claude-code", folder.path(), &[&timeless]);
    let store = folder.path().join("store");
    let how = Conversion { to: named("codex"), target: Target::Store(&store), head: None, with: None };
    let mut host = host();
    source.convert(&how, &host).unwrap();
    host.now = std::sync::Arc::new(|| jiff::Timestamp::now() + jiff::SignedDuration::from_hours(48));
    let again = source.convert(&how, &host);
    assert!(matches!(again, Err(Error::Exists(_))), "{again:?}");
}
